"""What a process tells the others on its journal: soon, and not often."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from holdfast.journal.shared import SharedJournal
from holdfast.runtime import hints
from holdfast.runtime.hints import Outbox, read_hint


class Telling:
    """A journal that remembers which runs it was to tell of, each time, and which had turned."""

    def __init__(self) -> None:
        self.told: list[dict[str, int]] = []
        self.turned: list[set[str]] = []

    async def tell(self, texts: Sequence[str]) -> None:
        found = [read_hint(text, "") for text in texts]
        self.told.append({name: at for one in found if one for name, at in one.runs.items()})
        self.turned.append({name for one in found if one for name in one.turned})


async def turns_of_the_loop() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_first_hint_goes_at_once_and_what_follows_goes_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hints, "GATHER_SECONDS", 3600.0)
    journal = Telling()
    outbox = Outbox(cast(SharedJournal, journal))
    outbox.moved("a", 1)
    outbox.moved("b", 1)
    await turns_of_the_loop()
    assert journal.told == [{"a": 1, "b": 1}]
    for version in (2, 3, 4):
        outbox.moved("a", version)
        await turns_of_the_loop()
    assert len(journal.told) == 1
    await outbox.close()
    assert journal.told[1:] == [{"a": 4}]


async def test_what_has_turned_does_not_wait_for_what_is_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hints, "GATHER_SECONDS", 3600.0)
    monkeypatch.setattr(hints, "TURN_SECONDS", 0.0)
    journal = Telling()
    outbox = Outbox(cast(SharedJournal, journal))
    outbox.moved("a", 1)
    await turns_of_the_loop()
    outbox.moved("a", 2)
    outbox.moved("b", 7, turned=True)
    await turns_of_the_loop()
    outbox.moved("a", 3)
    await outbox.close()
    assert journal.told == [{"a": 1}, {"a": 2, "b": 7}, {"a": 3}]
    assert journal.turned == [set(), {"b"}, set()]


async def test_after_the_pause_the_next_goes_at_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "GATHER_SECONDS", 0.0)
    journal = Telling()
    outbox = Outbox(cast(SharedJournal, journal))
    for version in (1, 2, 3):
        outbox.moved("a", version)
        await turns_of_the_loop()
    assert journal.told == [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize(
    "text", ["[" * 7900, '{"f": "a", "r": [["b", 1e999]]}', '{"f": "a", "r": 1}', "[]", "{}", "x"]
)
def test_what_another_program_says_is_left_out(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert read_hint(text, "") is None
    assert "a hint of another program was left out" in caplog.text
