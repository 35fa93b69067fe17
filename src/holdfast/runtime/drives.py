"""The runs of a shared journal that this process drives.

Many processes decide commands on a run; one at a time drives it: it alone starts steps and performs
effects. Which one is written in the run's row as a job of the dispatcher and the attempt at it, and
the driver's appends check it (`Append.drive`), so that one which was thought dead appends nothing.

A driver ends only with an append of its own that says that nothing goes on by itself. An append by
another process makes that one conflict: the driver looks again, and no wake-up is lost. While it
drives, its appends say that the run is active; so no further job is deferred.

What is in flight when a run is taken was left by a former driver that is gone, unless this process
has it itself: then, and only then, the run is told `Recover`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from holdfast.core.conversation.resting import moves_unattended
from holdfast.core.conversation.state import ConversationState
from holdfast.errors import HoldfastError
from holdfast.journal.port import Append, Drive, OutboxMessage
from holdfast.journal.shared import SharedJournal
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.runtime import projections
from holdfast.runtime.actor import Actor, Envelope
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.executor import PERFORMED, diagnosing
from holdfast.runtime.hints import Outbox
from holdfast.runtime.machines import run_row

log = logging.getLogger("holdfast")

JOBS_KEPT: Final = 256
"""How many ids of jobs are in reserve for runs that are born here."""

SOON: Final = 2.0
"""A timer that is due within so many seconds is waited for by the driver that has set it."""


class HandedBack(Exception):
    """The process ends, or cannot drive this run: another driver is to go on with it."""

    def __init__(self, run_id: str, reason: str, delay: float = 0.0) -> None:
        super().__init__(f"run {run_id} was handed back: {reason}")
        self.delay = delay


class Refused(HandedBack):
    """This process lacks what the run needs, and another may have it."""


class Drives:
    def __init__(
        self, journal: SharedJournal, background: BackgroundTasks, outbox: Outbox, most: int
    ) -> None:
        self._journal = journal
        self._background = background
        self.outbox = outbox
        self.most = most
        """How many runs this process drives at a time."""
        self._jobs: deque[int] = deque()
        self._reserving = False
        self._consumed: set[str] = set()
        """Conversations that a consumer in this process moves, under no job."""
        self.driven: dict[str, Actor] = {}

    async def due_runs(self, now: float, limit: int = 100) -> list[str]:
        due = [(at, run_id) for at, run_id in self._wakes() if at <= now]
        return [run_id for _, run_id in sorted(due)[:limit]]

    async def next_wake(self, after: float | None = None) -> float | None:
        return min((at for at, _ in self._wakes() if after is None or at > after), default=None)

    def _wakes(self) -> Iterator[tuple[float, str]]:
        for run_id, actor in self.driven.items():
            if actor.committed.timers:
                yield min(actor.committed.timers.values()), run_id

    def adopt(self, actor: Actor, consumed: Drive | None = None) -> None:
        """Drive a run that is about to be born here, for its consumer or under a job of our own
        while there is room; without one its birth defers a job."""
        if consumed is not None:
            self._begin(actor, consumed)
            return
        room = len(self.driven) < self.most and not actor.pulled
        if not room or self._journal.worker_id is None:
            return
        if len(self._jobs) < JOBS_KEPT // 2 and not self._reserving:
            self._reserving = True
            self._background.spawn(self._reserve())
        if self._jobs:
            self._begin(actor, Drive(self._jobs.popleft(), 0))

    async def _reserve(self) -> None:
        try:
            self._jobs += await self._journal.reserve_jobs(JOBS_KEPT)
        except HoldfastError as error:
            log.warning("no jobs could be reserved: %s", error)
        finally:
            self._reserving = False

    def _begin(self, actor: Actor, drive: Drive) -> None:
        actor.drive = drive
        self.driven[actor.run_id] = actor

    def begin(self, actor: Actor, drive: Drive, version: int = 0) -> asyncio.Future[None]:
        """Go on with a run that was taken at a version (`Journal.take`); what ends when it needs no
        driver any more. A former drive of ours ends: we were thought gone, and are given the job
        again."""
        self.end(actor)
        self._begin(actor, drive)
        actor.unmoved = version == actor.committed.version and not actor.stale
        actor.stale = actor.taking = True
        actor.let_go = asyncio.get_running_loop().create_future()
        return actor.let_go

    async def consume(self, run_id: str) -> Drive | None:
        """What to drive a conversation as for its consumer in this process, before whom any other
        driver gives way; None where it is driven here already."""
        if run_id in self.driven:
            return None
        [job] = await self._journal.reserve_jobs(1)
        drive = Drive(job, 0)
        await self._journal.take(run_id, drive)  # in vain where it is yet to be opened
        self._consumed.add(run_id)
        return drive

    def leave(self, run_id: str) -> Append | None:
        """Its consumer has left, perhaps after another driver has taken it over. Where it goes on
        without one: what has it driven."""
        if run_id not in self._consumed:
            return None
        self._consumed.discard(run_id)
        if (actor := self.driven.get(run_id)) is None:
            return None
        self.end(actor)
        state = actor.committed
        if not isinstance(state, ConversationState) or not moves_unattended(state):
            return None
        return Append(run_id, state.version, [], replace(run_row(state), active=True))

    def end(self, actor: Actor, why: HandedBack | None = None) -> None:
        """Drive it no longer. A job of ours that is not driven any more is returned by the
        dispatcher."""
        if actor.drive is None:
            return
        actor.drive, actor.taking = None, False
        actor.drop_of_drives()
        if self.driven.get(actor.run_id) is actor:
            del self.driven[actor.run_id]
        done, actor.let_go = actor.let_go, None
        if done is None or done.done():
            return
        if why is None:
            done.set_result(None)
        else:
            done.set_exception(why)

    def superseded(self, actor: Actor, drive: Drive | None) -> None:
        """Another has taken it over from this drive, unless we have since. What is still in flight
        here is reported when it ends."""
        if actor.drive != drive:
            return
        log.warning(
            "run %s has another driver now: what is in flight here is late",
            actor.run_id,
            extra=actor.logged,
        )
        self.end(actor)

    def hand_back(self) -> None:
        """Let go of everything: the process ends."""
        for actor in tuple(self.driven.values()):
            self.end(actor, HandedBack(actor.run_id, "this process ends"))

    def holds(self, job: int) -> bool:
        """Whether a run is driven here under this job."""
        drives = (actor.drive for actor in self.driven.values())
        return any(drive is not None and drive.job == job for drive in drives)

    def recovers(self, actor: Actor) -> bool:
        """Whether a run that has just been taken lost something with its former driver."""
        taking, actor.taking = actor.taking, False
        if actor.pulled:
            return taking  # its consumer says so, when it is there
        here = {*actor.in_flight, *reported(actor)}
        if not taking or not any(
            key is not None and key not in here
            for key in map(_counted, actor.machine.effects_in_flight(actor.committed))
        ):
            return False
        actor.mailbox.appendleft(Envelope(c.Recover(), drive=actor.drive))
        return True

    def has_ended(self, actor: Actor) -> bool:
        """Whether an append is to say that nothing of it goes on by itself. Where its birth was
        refused there is nothing to append to."""
        if not actor.state.version:
            self.end(actor)
        return actor.drive is not None and self.is_over(actor)

    def is_over(self, actor: Actor) -> bool:
        """Nothing of it goes on by itself, here or soon."""
        state = actor.state
        if actor.in_flight or actor.mailbox or self._moves(actor):
            return False
        return not state.timers or min(state.timers.values()) > actor.builder.now + SOON

    def _moves(self, actor: Actor) -> bool:
        """Whether it needs a driver."""
        if not actor.pulled:
            return actor.goes_on_by_itself(actor.state)
        state = actor.state
        assert isinstance(state, ConversationState)
        return actor.run_id in self._consumed or moves_unattended(state)

    def marked(self, actor: Actor, append: Append, effects: Sequence[f.Effect]) -> Append:
        """An append with what a shared journal must know: who makes it, and words to children."""
        births = [self._born(child, one) for one, child in actor.child_appends]
        words = tuple(words_to_children(actor, effects))
        if births or words:
            notices = (*append.notices, *words)
            append = replace(append, child_appends=births, notices=notices)
        row = append.row
        if row is not None and actor.pulled and actor.run_id not in self._consumed:
            append = replace(append, row=(row := replace(row, active=self._moves(actor))))
        if actor.drive is None:
            return append
        if actor.run_id in self._consumed:
            return replace(append, drive=actor.drive)
        ends = len(words) == len(effects) and self.is_over(actor)
        if not append.expected and ends:
            self.end(actor)
            return append
        if row is not None and not ends and not row.active:
            row = replace(row, active=True)
        return replace(append, drive=actor.drive, ends_drive=ends, row=row)

    def _born(self, child: Actor, birth: Append) -> Append:
        if child.drive is None and child.goes_on_by_itself(child.state):
            self.adopt(child)
        return replace(birth, drive=child.drive)

    def committed(self, actor: Actor, append: Append, *, turned: bool) -> None:
        """An append is on disk, and the run has another status if it has `turned`."""
        if append.records:
            turned = turned or append.ends_drive
            self.outbox.moved(actor.run_id, actor.committed.version, turned=turned)
        for birth in append.child_appends:
            self.outbox.moved(birth.run_id, len(birth.records))
        if append.ends_drive and append.drive == actor.drive:
            self.end(actor)


def reported(actor: Actor) -> Iterator[tuple[str, int]]:
    """What has come to an end here and is yet to be recorded."""
    for envelope in actor.mailbox:
        match envelope.command:
            case c.ReportOutcome(step_id=step_id, claim=claim):
                yield step_id, claim
            case c.ReportDiagnosis(case_id=case_id, number=number):
                yield diagnosing(case_id, number)


def _counted(effect: f.Effect) -> tuple[str, int] | None:
    """What must not be done again as if it had not been begun: work, and requests to a model."""
    if isinstance(effect, PERFORMED):
        return effect.work.step_id, effect.work.claim
    if isinstance(effect, f.Diagnose) and effect.number:
        return diagnosing(effect.case_id, effect.number)
    return None


def words_to_children(actor: Actor, effects: Sequence[f.Effect]) -> Iterator[OutboxMessage]:
    """What is to be said to runs below: it commits with the decision, and they are woken by it."""
    for effect in effects:
        if isinstance(effect, f.CancelChild | f.ResumeChild):
            payload = projections.word(effect)
            yield OutboxMessage(effect.child_id, actor.run_id, actor.state.version, payload)
