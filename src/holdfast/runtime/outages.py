"""When the journal could not acknowledge: what is kept, what is read again, who takes it up.

A refused append may have happened or not. So callers are told, results already obtained
stay in the mailbox, and the run is loaded anew as soon as the journal answers; what is on
disk and was never handed over is handed over then, or released.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.run.state import RunState
from holdfast.errors import NotFound, OperatorError
from holdfast.journal.port import Journal, Notice
from holdfast.model import commands as c
from holdfast.runtime.actor import Actor, Letter, report
from holdfast.runtime.crew import Crew
from holdfast.runtime.performing import Performer
from holdfast.runtime.ports import Performed
from holdfast.runtime.residents import Residents
from holdfast.runtime.timers import Timers

log = logging.getLogger("holdfast")

RETRY_JOURNAL = 0.25
"""How soon a journal that was down is tried again, in seconds."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How the engine goes on with a run, tells its followers and reaches others."""

    drain: Callable[[Actor], Coroutine[Any, Any, None]]
    tell: Callable[[RunState, RunState], None]
    deliver: Callable[[Notice], Coroutine[Any, Any, None]]
    wake: Callable[[str], Coroutine[Any, Any, None]]


class Outages:
    def __init__(
        self,
        journal: Journal,
        residents: Residents,
        timers: Timers,
        performer: Performer,
        crew: Crew,
        ways: Ways,
    ) -> None:
        self._journal = journal
        self._residents = residents
        self._timers = timers
        self._performer = performer
        self._crew = crew
        self._ways = ways
        self.closing = False

    def stall(self, actor: Actor, error: OperatorError) -> None:
        """Tell the callers; keep what was obtained, and try again by and by."""
        kept = [letter for letter in actor.mailbox if letter.reply is None]
        for letter in actor.mailbox:
            letter.answer(actor.committed, error)
        actor.mailbox.clear()
        actor.mailbox.extend(kept)
        if actor.committed.version == 0:
            self._residents.drop(actor)
            self.doubt(actor.run_id)
            return
        actor.stale = True
        if actor.retry is None:
            log.warning("run %s waits for the journal: %s", actor.run_id, error)
            loop = asyncio.get_running_loop()
            actor.retry = loop.call_later(RETRY_JOURNAL, self.retry, actor)

    def retry(self, actor: Actor) -> None:
        actor.retry = None
        if not actor.draining and not self.closing:
            actor.draining = True
            self._crew.spawn(self._ways.drain(actor))

    def doubt(self, run_id: str) -> None:
        """A run whose birth was refused may be on disk all the same: somebody must own it."""
        self._residents.doubtful.add(run_id)
        asyncio.get_running_loop().call_later(RETRY_JOURNAL, self._adopt, run_id)

    def _adopt(self, run_id: str) -> None:
        if not self.closing and run_id in self._residents.doubtful:
            self._crew.spawn(self._wake_if_born(run_id))

    async def _wake_if_born(self, run_id: str) -> None:
        try:
            await self._ways.wake(run_id)
        except NotFound:
            self._residents.doubtful.discard(run_id)

    async def refresh(self, actor: Actor) -> None:
        """Load the run anew, and take up what was decided on disk but never handed over."""
        fresh = await self._residents.read(actor.run_id)
        parent = fresh.state.parent
        unheard = await self._journal.notices(parent.run_id) if parent is not None else []
        before = actor.committed
        actor.committed = fresh.committed
        actor.forget()
        actor.ready = fresh.ready
        actor.stale = False
        self._timers.note(min(actor.state.timers.values(), default=None))
        if before.version != actor.committed.version:
            self._tell_all(before, actor.committed, unheard)
        if not any(isinstance(letter.command, c.Recover) for letter in actor.mailbox):
            self._take_up(actor)

    def _tell_all(self, before: RunState, state: RunState, unheard: Sequence[Notice]) -> None:
        """What was refused has happened after all, and nobody has been told."""
        self._ways.tell(before, state)
        for notice in unheard:
            self._crew.spawn(self._ways.deliver(notice))

    def _take_up(self, actor: Actor) -> None:
        """Behind what is in the mailbox: a result that was obtained counts before this."""
        for effect in actor.machine.effects_in_flight(actor.state):
            match effect:
                case effect if isinstance(effect, Performed):
                    if (effect.work.step_id, effect.work.claim) not in actor.flying:
                        actor.mailbox.append(Letter(report(effect.work, c.NotSent())))
                case _:
                    self._performer.dispatch(actor, effect)
