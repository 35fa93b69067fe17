"""The consumer of a conversation, and what lasts as long as there is one.

A consumer is a generator that may be left at any time: by a `break`, closed, cancelled, or
forgotten. Leaving takes awaits (work is broken off, an application closed), and none of them may be
skipped, however often the leaving task is cancelled meanwhile. There must be no second generator
inside the first: a loop that ends closes all of them at once.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from holdfast.journal.port import Attached, ExpiringValue, Record
from holdfast.model import commands as c
from holdfast.model.conversation import EngineEvent, EngineEventType
from holdfast.runtime.engine import Engine

MOST_TAKEN = 1000
"""Records that wait for the consumer; if there are more, they are read from the journal."""

HEARD = "heard"
"""The kind under which it is kept how far the consumer of a conversation has heard."""

Events = AsyncGenerator[EngineEvent, None]


class Consumer:
    """What asks for events just now; `gone` when no other one will be asked for."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.dismissed = False
        self._events: weakref.ref[Events] | None = None

    def of(self, events: Events) -> Events:
        """The generator of this consumer's events; only its holder keeps it alive."""
        self._events = weakref.ref(events)
        return events

    @property
    def gone(self) -> bool:
        return self.dismissed or self._generator() is None

    def _generator(self) -> Events | None:
        return None if self._events is None else self._events()

    async def leave(self) -> None:
        """Wait until it has gone for good; one that rests between two events is closed."""
        events = self._generator()
        if events is None or getattr(events, "ag_running", False):
            await self.left.wait()
        else:
            await events.aclose()


class Asking:
    """While it is entered the consumer waits for the next event."""

    def __init__(self, asking: set[str], run_id: str) -> None:
        self._asking = asking
        self.run_id = run_id

    def __enter__(self) -> None:
        self._asking.add(self.run_id)

    def __exit__(self, *error: object) -> None:
        self._asking.discard(self.run_id)


class ConsumerSession:
    """What lasts as long as the conversation is consumed.

    Once it is `reset` under its consumer, the commands after that are for the next one.
    `heard` is the record beyond which the consumer has asked, `carried` the last such place that
    went to the journal.
    """

    def __init__(self, engine: Engine, consumer: Consumer, asking: Asking, heard: int) -> None:
        self.engine = engine
        self.consumer = consumer
        self.asking = asking
        self.heard = self.carried = heard
        self.coordinated = True
        self.reset = False
        self._leaving = False
        self.loop = asyncio.get_running_loop()
        self.woken = asyncio.Event()
        self.order = asyncio.Lock()
        self.granter: asyncio.Task[None] | None = None
        self.shown: set[str] = set()
        self.taken: deque[Record] = deque(maxlen=MOST_TAKEN)

    async def records(self, run_id: str, after: int) -> list[Record]:
        """What follows a record: as it was committed here, or else from the journal."""
        taken = [one for one in self.taken if one.seq > after]
        self.taken.clear()
        if taken and taken[-1].seq == after + len(taken):
            return taken
        return await self.engine.journal.read(run_id, after)

    def along(self) -> Attached:
        """Goes with every append: a process after this one tells what follows."""
        self.carried = self.heard
        return heard_up_to(self.asking.run_id, self.heard)

    def note_granted(self, command: c.Command) -> None:
        ours = self.consumer.dismissed and not self._leaving
        self.reset = ours and isinstance(command, c.StartOver)

    def leave(self) -> None:
        """Nothing of it runs any more, so that every pending command may be recorded."""
        self._leaving, self.reset = True, False

    async def keep_heard(self, heard: int, latest: int) -> None:
        """After a turn that was heard to its end the next one is new, in any process."""
        if heard != self.carried:
            run_id = self.asking.run_id
            mark = heard_up_to(run_id, heard) if heard < latest else heard_all(run_id)
            await self.engine.journal.attach(mark)

    def is_news(self, event: EngineEvent) -> bool:
        """A question is shown once, whether it is found in the record or among the open ones."""
        if event.event_type is not EngineEventType.INTERACTION:
            return True
        question_id = str(event.data["requestId"])
        known = question_id in self.shown
        self.shown.add(question_id)
        return not known


async def heard_before(engine: Engine, run_id: str) -> int | None:
    """How far a former consumer has heard; None where it has heard everything."""
    kept = await engine.journal.kept(HEARD, run_id, engine.clock.now())
    return None if kept is None else int(kept.body)


def heard_up_to(run_id: str, heard: int) -> Attached:
    return Attached(kept=[ExpiringValue(HEARD, run_id, str(heard))])


def heard_all(run_id: str) -> Attached:
    """Nothing is kept of one whose consumer has heard everything."""
    return Attached(dropped=[(HEARD, run_id)])


async def to_the_end(work: Coroutine[Any, Any, Any]) -> None:
    """Wait for it, however often the caller is cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
