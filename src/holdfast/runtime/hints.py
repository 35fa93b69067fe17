"""What processes on one journal tell each other: that a run has moved on, what a model is saying,
that plans have changed.

Hints make others look sooner; nothing depends on one. They are sent apart from any transaction, and
a process that missed some finds out by looking itself. The first goes at once, and what comes
within `GATHER_SECONDS` after it goes together; within `TURN_SECONDS` where a run among it has
turned, that is, has another status or came to rest: people and programs wait for that.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from holdfast.errors import HoldfastError
from holdfast.journal.shared import SharedJournal

log = logging.getLogger("holdfast")

GATHER_SECONDS: Final = 0.05
TURN_SECONDS: Final = 0.002
MOST_BYTES: Final = 7_000
MOST_SPEECH: Final = 2_000
"""Characters of a model's reply in one hint."""

Spoken = tuple[str, int, str | None]
"""A run, the record that began the reply, and a piece of it; None takes it back."""


@dataclass(frozen=True, slots=True)
class Hint:
    """`runs` have moved on to a version, and those `turned` have another status or came to rest;
    `missed` says that there may have been others."""

    runs: Mapping[str, int] = field(default_factory=dict)
    turned: frozenset[str] = frozenset()
    said: tuple[Spoken, ...] = ()
    plans: bool = False
    missed: bool = False


class Outbox:
    """Hints of this process on their way."""

    def __init__(self, journal: SharedJournal) -> None:
        self._journal = journal
        self.sender = uuid4().hex[:12]
        self._runs: dict[str, int] = {}
        self._turned: dict[str, None] = {}
        self._said: list[Spoken] = []
        self._plans = False
        self._hurry = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def moved(self, run_id: str, version: int, *, turned: bool = False) -> None:
        self._runs[run_id] = version
        if turned:
            self._turned[run_id] = None
            self._hurry.set()
        self._send_soon()

    def said(self, run_id: str, began: int, text: str | None) -> None:
        if text is None:
            self._said.append((run_id, began, None))
        else:
            starts = range(0, len(text), MOST_SPEECH)
            self._said += ((run_id, began, text[at : at + MOST_SPEECH]) for at in starts)
        self._send_soon()

    def plans_changed(self) -> None:
        self._plans = True
        self._send_soon()

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending
        await self._send()

    def _send_soon(self) -> None:
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_until_empty())

    async def _send_until_empty(self) -> None:
        try:
            while self._runs or self._said or self._plans:
                self._hurry.clear()
                await self._send()
                with suppress(TimeoutError):
                    async with asyncio.timeout(GATHER_SECONDS):
                        await self._hurry.wait()
                    await asyncio.sleep(TURN_SECONDS)
        finally:
            self._sending = None

    async def _send(self) -> None:
        parts = self._taken()
        if parts:
            with suppress(HoldfastError):  # they are found without it, a little later
                await self._journal.tell(list(self._written(parts)))

    def _taken(self) -> list[tuple[str, object]]:
        parts: list[tuple[str, object]] = [("r", [name, at]) for name, at in self._runs.items()]
        parts += (("t", name) for name in self._turned)
        parts += (("s", list(one)) for one in self._said)
        if self._plans:
            parts.append(("p", 1))
        self._runs, self._turned, self._said, self._plans = {}, {}, [], False
        return parts

    def _written(self, parts: Iterable[tuple[str, object]]) -> Iterator[str]:
        """As few texts as have room for it all."""
        members: dict[str, list[object]] = {}
        size = 0
        for kind, part in parts:
            cost = len(json.dumps(part)) + 2
            if members and size + cost > MOST_BYTES - 100:
                yield json.dumps({"f": self.sender, **members})
                members, size = {}, 0
            members.setdefault(kind, []).append(part)
            size += cost
        yield json.dumps({"f": self.sender, **members})


def read_hint(text: str, ourselves: str) -> Hint | None:
    """None for what this process has told itself."""
    if not text:
        return Hint(missed=True)
    try:
        told = json.loads(text)
        if told["f"] == ourselves:
            return None
        runs = {str(name): int(at) for name, at in told.get("r", ())}
        said = tuple((str(name), int(at), words) for name, at, words in told.get("s", ()))
        turned = frozenset(str(name) for name in told.get("t", ()))
        return Hint(runs, turned, said, bool(told.get("p")))
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        log.warning("a hint of another program was left out: %s", text[:80])
        return None
