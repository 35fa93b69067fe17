"""Its process dies while a consumer handles an event, or before that: the next one makes the same
call, hears in order what was recorded and is not certainly heard, and does nothing again.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conversation_child import HEARD, LEDGER, REPORT
from conversation_mortals import Mortals
from conversation_scenes import GOAL, ORDER, Ledger, Llm, heard, kinds

from holdfast import Holdfast
from holdfast.conversations.consumer import heard_up_to
from holdfast.conversations.engine import ConversationEngine, EngineState
from holdfast.conversations.engine import EngineEventType as T

Told = list[tuple[str, dict[str, Any]]]

DIES = -signal.SIGKILL


@pytest.fixture(scope="module")
def mortals() -> Iterator[Mortals]:
    mortals = Mortals()
    with mortals.process:
        yield mortals
    assert mortals.process.returncode == 0


@pytest.fixture(scope="module")
def whole(mortals: Mortals, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What one hears who never dies."""
    home = tmp_path_factory.mktemp("whole")
    assert mortals.order_now(home, hears=True) == 0
    return heard_in(home)


def heard_in(home: Path) -> Told:
    """What consumers have heard since somebody looked."""
    book = home / HEARD
    lines = book.read_text().splitlines() if book.exists() else []
    book.write_text("")
    return [(kind, data) for kind, data in map(json.loads, lines)]


def report_of(home: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((home / REPORT).read_text())
    return report


def once_begun(told: Told) -> Told:
    """A task that was under way begins again, and is told to."""
    return [
        one
        for number, one in enumerate(told)
        if one[0] != "task_started" or one not in told[number + 1 :]
    ]


def repeated(first: Told, second: Told, whole: Told) -> int:
    """How much of what the first process heard the second one hears again; nothing is lost."""
    rest = once_begun(second)
    begins = len(whole) - len(rest)
    assert rest == whole[begins:]
    assert first == whole[: len(first)]
    assert begins <= len(first)
    return len(first) - begins


BEYOND = [*[0] * 2, *[2] * 9, *range(11, 19), *[18] * 2]
"""For each event, how many had been heard for certain when it was recorded, where the consumer is
quick; where it is not, as many as one append before."""
STANDS = sorted(set(BEYOND))


@pytest.mark.parametrize("at", range(1, 22))
async def test_the_same_call_hears_what_may_not_have_been_heard_and_does_nothing_again(
    mortals: Mortals, tmp_path: Path, whole: Told, at: int
) -> None:
    assert await mortals.order(tmp_path, hears=True, at=at) == DIES
    first = heard_in(tmp_path)
    assert len(first) == at
    done = Ledger(tmp_path / LEDGER).counts
    assert await mortals.order(tmp_path, hears=True) == 0
    again = repeated(first, heard_in(tmp_path), whole)
    quick = STANDS.index(BEYOND[at - 1])
    assert at - again in STANDS[max(quick - 1, 0) : quick + 1], "what it had asked beyond is told"
    counts = Ledger(tmp_path / LEDGER).counts
    assert report_of(tmp_path)["state"] == "completed"
    assert set(counts) == set(ORDER)
    assert counts == {**dict.fromkeys(ORDER, 1), **done}
    assert done.total() == len(done)


async def test_whatever_append_or_effect_it_dies_at_nothing_is_lost(
    mortals: Mortals, tmp_path: Path, whole: Told
) -> None:
    assert await mortals.order(tmp_path / "whole", hears=True) == 0
    points = report_of(tmp_path / "whole")["reached"]
    for point, reached in points.items():
        for nth in range(1, reached + 1):
            home = tmp_path / f"{point}.{nth}"
            assert await mortals.order(home, hears=True, point=point, nth=nth) == DIES
            first = heard_in(home)
            assert await mortals.order(home, hears=True) == 0
            repeated(first, heard_in(home), whole)
            counts = Ledger(home / LEDGER).counts
            twice = [one for one in ORDER if counts[one] > 1]
            assert len(twice) <= (point in ("append.before", "effect.after")), home.name


async def test_it_may_die_again_and_again(mortals: Mortals, tmp_path: Path, whole: Told) -> None:
    told: Told = []
    lives = 0
    while await mortals.order(tmp_path, hears=True, at=12 if lives % 2 else 3) == DIES:
        lives += 1
        told += [one for one in heard_in(tmp_path) if one not in told]
    assert lives > 2
    assert told + [one for one in heard_in(tmp_path) if one not in told] == whole


@pytest.mark.parametrize("leaves", ["never", "engine_completed"])
async def test_the_same_words_after_an_end_that_was_heard_are_a_new_turn(
    mortals: Mortals, tmp_path: Path, whole: Told, leaves: str
) -> None:
    """However soon the process dies after that."""
    assert await mortals.order(tmp_path, hears=True, leaves=leaves, dies=True) == DIES
    assert heard_in(tmp_path) == whole
    assert await mortals.order(tmp_path, hears=True) == 0
    assert report_of(tmp_path)["before"] == "completed"
    new = ("state_changed", {"from": "completed", "to": "idle"})
    assert heard_in(tmp_path) == [new, *whole]
    assert Ledger(tmp_path / LEDGER).counts == dict.fromkeys(ORDER, 2)


async def test_other_words_are_a_new_turn_once_the_end_is_heard(
    mortals: Mortals, tmp_path: Path, whole: Told
) -> None:
    assert await mortals.order(tmp_path, hears=True, at=19) == DIES
    assert heard_in(tmp_path)[-1][1]["progress"] == 1.0
    assert await mortals.order(tmp_path, hears=True, goal="something else") == 0
    new = ("state_changed", {"from": "completed", "to": "idle"})
    assert heard_in(tmp_path) == [*whole[18:], new, *whole]


async def test_whoever_comes_back_is_shown_what_was_heard(mortals: Mortals, tmp_path: Path) -> None:
    """So that nobody who looks at the state first takes the end for heard."""
    assert await mortals.order(tmp_path, hears=True, at=19) == DIES
    assert await mortals.order(tmp_path, hears=True, at=1) == DIES
    assert await mortals.order(tmp_path, hears=True) == 0
    assert report_of(tmp_path)["before"] == "executing"


async def test_who_leaves_in_good_order_hears_nothing_again(
    mortals: Mortals, tmp_path: Path, whole: Told
) -> None:
    assert await mortals.order(tmp_path, hears=True, leaves="task_decomposed", dies=True) == DIES
    first = heard_in(tmp_path)
    assert await mortals.order(tmp_path, hears=True) == 0
    assert [*first, *heard_in(tmp_path)] == whole


async def test_a_failure_that_may_not_have_been_heard_is_told_and_then_refused(
    mortals: Mortals, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    assert await mortals.order(whole, hears=True, fails=True) == 0
    told = heard_in(whole)
    assert [kind for kind, _ in told[-2:]] == ["state_changed", "engine_error"]
    for at in (len(told) - 1, len(told)):
        home = tmp_path / str(at)
        assert await mortals.order(home, hears=True, fails=True, at=at) == DIES
        heard_in(home)
        assert await mortals.order(home, hears=True, fails=True) == 0
        assert heard_in(home) == told[-2:]
        assert report_of(home)["state"] == "error"
        assert Ledger(home / LEDGER).counts == {"print": 1}


async def of(app: Holdfast) -> ConversationEngine:
    executors: dict[str, Any] = {"work": Ledger().work}
    return await ConversationEngine.open(app, "sales", llm=Llm(), executors=executors)


async def test_what_was_taken_back_by_a_reset_is_not_told_by_the_next_process() -> None:
    async with Holdfast.in_memory() as app:
        engine = await of(app)
        async for event in engine.run(GOAL):
            if event.event_type is T.TASK_STARTED:
                engine.reset()
        whole = await heard(engine.run(GOAL))
        # As a process leaves it that dies early.
        await app.journal.attach(heard_up_to("sales", 4))
        again = await of(app)
        assert (again.state, again.tasks) == (EngineState.IDLE, [])
        assert kinds(await heard(again.run(GOAL))) == kinds(whole)


async def test_who_only_looks_while_another_consumes_sees_what_is_recorded() -> None:
    async with Holdfast.in_memory() as app:
        async for event in (await of(app)).run(GOAL):
            if event.data.get("progress") == 1.0:
                assert (await of(app)).state is EngineState.COMPLETED


async def test_nothing_is_kept_of_a_conversation_whose_end_was_heard() -> None:
    async with Holdfast.in_memory() as app:
        async for _ in (await of(app)).run(GOAL):
            assert await app.journal.kept("heard", "sales", 0.0) is not None
        assert await app.journal.kept("heard", "sales", 0.0) is None
