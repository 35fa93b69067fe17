"""The engine: feeds commands to runs, one actor per active run, and does as they say.

A turn takes what is in the mailbox, decides it, starts what is ready and has a
permit, appends everything in one transaction, and only then publishes, replies
and dispatches. So a step's result and the next step's start share one commit.

Pure work needs no barrier: while a turn brings only that, its events ride with the
next append, at the latest after `LAZY_EVENTS` events or `LAZY_SECONDS`. Nobody
sees them before.

When the journal cannot acknowledge, callers are told so and nothing else changes:
results that were already obtained stay in the mailbox, the run is loaded anew when
the journal answers again, and what was never handed over is released.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import cast

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.core.run.wanting import CLOCK
from holdfast.errors import (
    CallerError,
    HoldfastError,
    InternalError,
    InvalidValue,
    JournalUnavailable,
    NotAllowed,
    OperatorError,
    VersionConflict,
)
from holdfast.journal.port import NOTHING, Append, Attached, Journal, Notice, Snapshot
from holdfast.journal.snapshots import SCHEMA, dump_state
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.runtime import outages, views
from holdfast.runtime.acting import current
from holdfast.runtime.actor import Actor, Letter
from holdfast.runtime.appends import append_of
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.crew import Crew
from holdfast.runtime.faults import FaultPoints, NoFaults
from holdfast.runtime.hub import Hub
from holdfast.runtime.library import Library
from holdfast.runtime.machines import Definition, blank, definition_of
from holdfast.runtime.outages import Outages, Ways
from holdfast.runtime.performing import Deliveries, Performer, is_pure
from holdfast.runtime.permits import Permits
from holdfast.runtime.ports import Planner, Worker
from holdfast.runtime.residents import Residents
from holdfast.runtime.starting import Starter
from holdfast.runtime.timers import Timers
from holdfast.runtime.wanting import Wanting

log = logging.getLogger("holdfast")

LAZY_EVENTS = 128
LAZY_SECONDS = 0.05
SNAPSHOT_BYTES = 64 * 1024
"""Tuning: how far pure work may run ahead, and after how many bytes of events a snapshot
may pay."""

LOCAL = "local"
"""Who acts in a process that lets nobody in from outside."""

_UNSIGNED = (
    c.OpenConversation,
    c.Converse,
    c.Hold,
    c.Unhold,
    c.Abort,
    c.GoOn,
    c.StartOver,
    c.RestoreSnapshot,
)

Replies = list[tuple[Letter, HoldfastError | None]]


class Engine:
    def __init__(
        self,
        journal: Journal,
        worker: Worker,
        planner: Planner,
        *,
        clock: Clock | None = None,
        max_effects: int = 64,
        faults: FaultPoints | None = None,
        four_eyes: bool = False,
    ) -> None:
        self.journal = journal
        self.library = Library(journal)
        self.hub = Hub(journal)
        self.clock = clock or SystemClock()
        self.worker = worker
        self._planner = planner
        self._faults = faults or NoFaults()
        self._secret = os.urandom(32)
        self._crew = Crew()
        self._residents = Residents(journal, self.library, self._read_again)
        self.wanting = Wanting(journal, self._residents, four_eyes=four_eyes)
        self._permits = Permits(max_effects)
        self._starter = Starter(worker, self.library, self._permits, self._moment, self._fed)
        self._performer = Performer(
            worker, planner, self._permits, self.clock, self._faults, self._deliveries()
        )
        self._timers = Timers(journal, self.clock, self._tick)
        self._outages = Outages(
            journal, self._residents, self._timers, self._performer, self._crew, self._ways()
        )
        self._closing = False

    async def open(self) -> None:
        """Take up what a former owner left: notices unheard, runs with work in flight."""
        notices = await self.journal.notices()
        orphans = await self.journal.active_runs()
        self._residents.orphans.update(orphans)
        for run_id in sorted(orphans):
            self._crew.spawn(self._wake(run_id))
        for notice in notices:
            self._crew.spawn(self._deliver(notice))
        self._timers.start()

    async def close(self, grace: float = 10.0) -> None:
        """Start nothing more, let what is in flight end, and keep the rest for later."""
        self._closing = True
        self._performer.closing = True
        self._outages.closing = True
        await self._timers.stop()
        self._hang_up()
        await self._crew.finish(grace)
        await self._performer.close()
        for actor in self._residents:
            if actor.unsaved or actor.mailbox:
                await self._drain(actor)
        self.hub.close()

    def _hang_up(self) -> None:
        """Asking a model changes nothing: a reply need not be waited for, it is asked for again."""
        for actor in [one for one in self._residents if one.flying]:
            for effect in actor.machine.effects_in_flight(actor.committed):
                if isinstance(effect, f.AskModel):
                    self._performer.dispatch(actor, f.StopModel(effect.work))

    async def create(
        self, plan: CompiledPlan, command: c.StartRun, attached: Attached = NOTHING
    ) -> RunState:
        """A new run of a plan; its first events are on disk when this returns."""
        number = await self.journal.next_number("inst")
        return await self.begin(f"inst_{number:06d}", plan, command, attached)

    async def begin(
        self,
        run_id: str,
        definition: Definition,
        command: c.Command,
        attached: Attached = NOTHING,
    ) -> RunState:
        """A new run under an id that nobody has used yet; NotAllowed if somebody has."""
        command = self._signed(command)
        await self.library.keep(definition, self.clock.now())
        if isinstance(command, c.StartRun):
            command = replace(command, authors=self.library.authors(definition.digest))
        if run_id in self._residents:
            raise NotAllowed(f"there already is a run {run_id}")
        actor = Actor.of(blank(run_id, definition))
        self._residents.add(actor)
        return await self._hand_in(actor, command, attached)

    async def submit(
        self, run_id: str, command: c.Command, attached: Attached = NOTHING
    ) -> RunState:
        """The run's state after `command`, committed together with `attached`; a refusal raises."""
        return await self._submit(run_id, self._signed(command), attached)

    async def _submit(
        self, run_id: str, command: c.Command, attached: Attached = NOTHING
    ) -> RunState:
        actor = await self._residents.find(run_id)
        return await self._hand_in(actor, command, attached)

    async def state(self, run_id: str) -> RunState:
        """The run as it is on disk."""
        return (await self._residents.find(run_id)).committed

    async def state_since(self, run_id: str, version: int) -> RunState:
        """As `state`, for one who has read up to `version` from the disk himself: the engine
        may learn a moment later than the disk that an event is there."""
        return await self.wait_for(run_id, lambda state: state.version >= version)

    @property
    def damaged(self) -> Collection[str]:
        """The runs that could not be read."""
        return self._residents.damaged

    async def wait_for(
        self,
        run_id: str,
        settled: Callable[[RunState], bool],
        timeout: float | None = None,
    ) -> RunState:
        """The first committed state that satisfies `settled`, or the last before the time-out."""
        done: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()

        def watch(state: RunState) -> None:
            if settled(state) and not done.done():
                done.set_result(state)

        unwatch = self.hub.watch(run_id, watch)
        try:
            # Let the others have a turn: whoever only polls must not keep the loop to himself.
            await asyncio.sleep(0)
            state = await self.state(run_id)
            if settled(state):
                return state
            async with asyncio.timeout(timeout):
                return await done
        except TimeoutError:
            return await self.state(run_id)
        finally:
            unwatch()

    async def abandon(self, run_id: str) -> None:
        """Break off what a run has in flight, as if its owner had gone."""
        actor = await self._residents.find(run_id)
        await self._performer.abandon(actor)
        await self.submit(run_id, c.Recover(crashed=False))

    def _deliveries(self) -> Deliveries:
        return Deliveries(self._crew.spawn, self._post, self._take, self._submit, self.hub.speak)

    def _ways(self) -> Ways:
        return Ways(self._drain, self._tell, self._deliver, self._wake)

    def _read_again(self, actor: Actor) -> None:
        self._outages.retry(actor)

    def _moment(self, actor: Actor) -> c.Moment:
        return c.Moment(self.clock.now(), self._secret, self.wanting.of(actor.state))

    def _hand_in(
        self, actor: Actor, command: c.Command, attached: Attached
    ) -> asyncio.Future[RunState]:
        """The reply to a caller's command. It is decided in a task of the engine's own: the
        caller may be cancelled, and that must not tear the others' turn apart."""
        reply: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()
        letter = Letter(command, reply, acting=current(), attached=attached)
        self._nudge(actor, letter)
        return reply

    def _signed(self, command: c.Command) -> c.Command:
        """With the name of whoever acts, where the command was given without one."""
        by = getattr(command, "by", None)
        if by == "" and (self.wanting.four_eyes or isinstance(command, _UNSIGNED)):
            acts, nobody = current(), LOCAL if self.wanting.four_eyes else ""
            by = nobody if acts is None else acts.who
            command = cast(c.Command, replace(cast(c.StartOver, command), by=by))
        if by == CLOCK:
            message = f"{by} is a name of ours: give that of a person or a service"
            raise InvalidValue(message, "by")
        return command

    def _nudge(self, actor: Actor, letter: Letter) -> None:
        actor.mailbox.append(letter)
        self._residents.wake(actor)
        if not actor.draining:
            actor.draining = True
            self._crew.spawn(self._drain(actor))

    async def _post(self, run_id: str, letter: Letter) -> None:
        """Have a letter of the engine's own decided, however long the journal is down."""
        actor = await self._find_at_last(run_id)
        if actor is not None:
            await self._take(actor, letter)

    async def _take(self, actor: Actor, letter: Letter) -> None:
        """As `_post`, by one who has the run's actor in hand."""
        if not self._residents.holds(actor):
            await self._post(actor.run_id, letter)
            return
        actor.mailbox.append(letter)
        self._residents.wake(actor)
        if not actor.draining:
            await self._drain(actor)

    async def _find_at_last(self, run_id: str) -> Actor | None:
        while True:
            try:
                return await self._residents.find(run_id)
            except JournalUnavailable as error:
                if self._closing:
                    return None
                log.warning("run %s waits for the journal: %s", run_id, error)
                await asyncio.sleep(outages.RETRY_JOURNAL)

    async def _drain(self, actor: Actor) -> None:
        """Turn after turn, until the mailbox is empty."""
        actor.draining = True
        try:
            while True:
                if actor.stale:
                    await self._outages.refresh(actor)
                await self.wanting.read(actor.state.root_id)
                letters = list(actor.mailbox)
                actor.mailbox.clear()
                await self._turn(actor, letters)
                if not actor.mailbox:
                    break
        except OperatorError as error:
            self._outages.stall(actor, error)
        finally:
            actor.draining = False
        self._residents.rest(actor)

    async def _turn(self, actor: Actor, letters: Sequence[Letter]) -> None:
        """Decide, start what may start, commit, and only then let anybody know."""
        before = len(actor.unsaved)
        replies: Replies = []
        effects = self._decide(actor, letters, replies)
        if not self._closing:
            effects += self._starter.start_ready(actor)
        if self._may_wait(actor, letters, effects, before):
            self._set_flush_timer(actor)
        else:
            try:
                await self._commit(actor, letters)
            except VersionConflict:
                self._forget(actor, effects, letters)
                actor.stale = True
                return
            except OperatorError:
                self._forget(actor, effects, letters)
                raise
            except Exception as error:
                log.exception("run %s could not be recorded", actor.run_id)
                self._forget(actor, effects)
                replies, effects = [(one, _ours(error)) for one in letters], []
                actor.mailbox.extend(_unrecorded(letters))
        for letter, refusal in replies:
            letter.answer(actor.committed, refusal)
        for effect in effects:
            self._performer.dispatch(actor, effect)

    def _decide(self, actor: Actor, letters: Sequence[Letter], replies: Replies) -> list[f.Effect]:
        """Each letter by itself: a refusal, or a mistake of ours, concerns nobody else."""
        effects: list[f.Effect] = []
        for letter in letters:
            try:
                decided = actor.take(letter, self._moment(actor))
            except CallerError as error:
                replies.append((letter, error))
            except Exception as error:
                log.exception("run %s could not decide %s", actor.run_id, letter.command)
                replies.append((letter, _ours(error)))
            else:
                replies.append((letter, None))
                if decided:
                    self._charge(decided)
                    effects += decided
        return effects

    def _charge(self, effects: Sequence[f.Effect]) -> None:
        """What was in flight before us is in flight again, whether or not a permit is free."""
        self._permits.charge(sum(isinstance(effect, f.CallTool) for effect in effects))

    def _fed(self, actor: Actor) -> None:
        """A permit has come free for a run that waits for one."""
        actor.hungry = False
        if self._residents.holds(actor):
            actor.permits += 1
            self._nudge(actor, Letter(c.Tick()))
        else:
            self._permits.give_back()

    @staticmethod
    def _may_wait(
        actor: Actor, letters: Sequence[Letter], effects: Sequence[f.Effect], before: int
    ) -> bool:
        """Only pure work is under way, and nobody waits for what has happened so far."""
        if actor.attached:
            return False
        if len(actor.unsaved) == before:
            return not actor.unsaved and not any(letter.notice for letter in letters)
        if not effects or actor.births or len(actor.unsaved) >= LAZY_EVENTS:
            return False
        return all(letter.lazy for letter in letters) and all(map(is_pure, effects))

    def _set_flush_timer(self, actor: Actor) -> None:
        if actor.unsaved and actor.flush_timer is None:
            loop = asyncio.get_running_loop()
            actor.flush_timer = loop.call_later(LAZY_SECONDS, self._flush, actor)

    def _flush(self, actor: Actor) -> None:
        actor.flush_timer = None
        if actor.unsaved and not actor.draining:
            self._nudge(actor, Letter(c.Tick()))

    async def _commit(self, actor: Actor, letters: Sequence[Letter]) -> None:
        children = [child for _, child in actor.births]
        for child in children:
            await self.library.keep(definition_of(child.state), self.clock.now())
        heard = [letter.notice for letter in letters if letter.notice is not None]
        append = append_of(actor, [append for append, _ in actor.births], heard)
        if append.records or append.heard or append.attached is not NOTHING:
            self._faults.reach("append.before")
            await self.journal.append(append)
            self._faults.reach("append.after")
        before = actor.committed_all()
        self.wanting.note(actor.committed)
        self._tell(before, actor.committed)
        for child in children:
            self.wanting.note(child.committed)
            self._residents.add(child)
            self._residents.doubtful.discard(child.run_id)
            self._nudge(child, Letter(c.Tick(), lazy=True))
        self._after_commit(actor, append)

    def _tell(self, before: RunState, state: RunState) -> None:
        if isinstance(before, PlanState) and isinstance(state, PlanState):
            self._planner.tasks_changed(before, state)
        self.hub.publish(state)
        if state.open_questions is not before.open_questions:
            self.hub.ask_below(state.run_id)

    def _after_commit(self, actor: Actor, append: Append) -> None:
        self.hub.hand_on(actor.run_id, append.records)
        if append.row is not None:
            self._timers.note(append.row.wake_at)
        for notice in append.notices:
            self._crew.spawn(self._deliver(notice))
        for record in append.records:
            actor.bytes_since += len(record.payload)
        if actor.bytes_since >= max(SNAPSHOT_BYTES, 4 * actor.snapshot_size):
            actor.bytes_since = 0
            self._crew.spawn(self._snapshot(actor))

    def _forget(
        self, actor: Actor, effects: Sequence[f.Effect], letters: Sequence[Letter] = ()
    ) -> None:
        """What was decided did not happen; the letters are to be decided once more."""
        for effect in effects:
            if isinstance(effect, f.CallTool):
                self._permits.give_back()
        for _, child in actor.births:
            self._outages.doubt(child.run_id)
        actor.forget()
        actor.mailbox.extendleft(reversed(letters))

    async def _deliver(self, notice: Notice) -> None:
        letter = Letter(views.heard(notice), notice=(notice.source_id, notice.seq))
        await self._post(notice.target_id, letter)

    async def _wake(self, run_id: str) -> None:
        await self._post(run_id, Letter(c.Tick(), lazy=True))

    async def _tick(self, run_id: str) -> None:
        await self.submit(run_id, c.Tick())

    async def _snapshot(self, actor: Actor) -> None:
        state = actor.committed
        payload = await asyncio.to_thread(dump_state, state)
        actor.snapshot_size = len(payload)
        try:
            await self.journal.save_snapshot(Snapshot(actor.run_id, state.version, SCHEMA, payload))
        except JournalUnavailable as error:
            log.info("no snapshot of %s: %s", actor.run_id, error)


def _unrecorded(letters: Sequence[Letter]) -> Iterator[Letter]:
    """A result that cannot be written down is lost, and the run must know that."""
    for letter in letters:
        command = letter.command
        if isinstance(command, c.ReportOutcome) and not isinstance(command.outcome, c.Lost):
            lost = c.Lost("its result could not be recorded")
            claim = (command.step_id, command.firing, command.claim)
            yield Letter(c.ReportOutcome(*claim, lost))


def _ours(error: Exception) -> InternalError:
    return InternalError(f"{type(error).__name__}: {error}")
