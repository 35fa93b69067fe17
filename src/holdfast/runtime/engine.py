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
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import copy_context
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
from holdfast.journal.port import NOTHING, Append, Attached, Journal, Notice, Record, Snapshot
from holdfast.journal.snapshots import SCHEMA, dump_state
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.run import RunStatus
from holdfast.runtime import outages, views
from holdfast.runtime.acting import current
from holdfast.runtime.actor import Actor, Letter
from holdfast.runtime.appends import append_of
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.crew import Crew
from holdfast.runtime.faults import FaultPoints
from holdfast.runtime.hub import Hub, Watcher
from holdfast.runtime.library import Library
from holdfast.runtime.machines import Definition, blank, definition_of
from holdfast.runtime.outages import Outages, Ways
from holdfast.runtime.performing import Deliveries, Performer, is_pure
from holdfast.runtime.permits import Permits
from holdfast.runtime.ports import Performed, Planner, Worker
from holdfast.runtime.residents import Residents
from holdfast.runtime.starting import Starter
from holdfast.runtime.timers import Timers
from holdfast.runtime.wanting import Wanting
from holdfast.work.ending import ends_from_without

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

MOST_LETTERS = 64
"""Letters that one turn decides, so that it does not hold the loop for long."""


class Turn:
    """What one turn takes, decides and leaves to be done once it is on disk."""

    __slots__ = ("effects", "letters", "replies", "waits")

    def __init__(self, mailbox: deque[Letter]) -> None:
        if len(mailbox) <= MOST_LETTERS:
            self.letters = list(mailbox)
            mailbox.clear()
        else:
            self.letters = [mailbox.popleft() for _ in range(MOST_LETTERS)]
        self.replies: list[tuple[Letter, HoldfastError | None]] = []
        self.effects: list[f.Effect] = []
        self.waits = False

    def clear(self) -> None:
        """It has not happened, and will be decided anew."""
        self.replies, self.effects = [], []

    def fail(self, error: HoldfastError) -> None:
        """It cannot happen."""
        self.replies, self.effects = [(one, error) for one in self.letters], []


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
        self._faults = faults
        self._secret = os.urandom(32)
        self._crew = Crew()
        self._residents = Residents(journal, self.library, self._read_again)
        self.wanting = Wanting(journal, self._residents, four_eyes=four_eyes)
        self._permits = Permits(max_effects)
        self._starter = Starter(worker, self.library, self._permits, self._fed)
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
                await self._carry(actor)
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
        return await self._wait(run_id, settled, timeout, self.hub.watch)

    async def wait_for_status(
        self, run_id: str, statuses: Collection[RunStatus], timeout: float | None = None
    ) -> RunState:
        """As `wait_for`, for one of these statuses."""
        return await self._wait(
            run_id, lambda state: state.status in statuses, timeout, self.hub.watch_status
        )

    async def _wait(
        self,
        run_id: str,
        settled: Callable[[RunState], bool],
        timeout: float | None,
        watching: Callable[[str, Watcher], Callable[[], None]],
    ) -> RunState:
        done: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()

        def watch(state: RunState) -> None:
            if settled(state) and not done.done():
                done.set_result(state)

        unwatch = watching(run_id, watch)
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
        return Deliveries(
            self._crew.spawn, self._carry, self._post, self._take, self._submit, self.hub.speak
        )

    def _ways(self) -> Ways:
        return Ways(self._carry, self._tell, self._deliver, self._wake)

    def _read_again(self, actor: Actor) -> None:
        self._outages.retry(actor)

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
            self._crew.spawn(self._carry(actor))

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
            await self._carry(actor)

    async def _find_at_last(self, run_id: str) -> Actor | None:
        while True:
            try:
                return await self._residents.find(run_id)
            except JournalUnavailable as error:
                if self._closing:
                    return None
                log.warning("run %s waits for the journal: %s", run_id, error)
                await asyncio.sleep(outages.RETRY_JOURNAL)

    async def _carry(self, actor: Actor, call: Performed | None = None) -> None:
        """Turn after turn, and in between the call that a turn leaves, all in one task.

        Another task goes on where a call has left context variables behind, or a cancellation that
        this one has yet to hear of.
        """
        task, context = asyncio.current_task(), copy_context()
        assert task is not None
        while True:
            if call is not None:
                try:
                    letter = await self._performer.perform(actor, call, task)
                except GeneratorExit as error:
                    # One that a future carries closes whatever waits for it, up to here.
                    if ends_from_without(error, task):
                        raise
                    letter = self._performer.failed(call, error)
                # While it had this in flight the run was not evicted: the actor is still its own.
                actor.mailbox.append(letter)
                if actor.draining:
                    return
                try:
                    clean = not task.cancelling() and copy_context() == context
                except Exception:  # a value that was left there cannot be compared
                    clean = False
                if not clean:
                    actor.draining = True
                    self._crew.spawn(self._carry(actor), context.copy())
                    return
            call = await self._drain(actor)
            if call is None:
                self._residents.rest(actor)
                return

    async def _drain(self, actor: Actor) -> Performed | None:
        """Turns until the mailbox is empty; the call that the last one leaves to be made."""
        actor.draining = True
        try:
            while True:
                if actor.stale:
                    await self._outages.refresh(actor)
                if self.wanting.four_eyes:
                    await self.wanting.read(actor.state.root_id)
                turn = self._decide(actor)
                if turn.waits:
                    self._set_flush_timer(actor)
                else:
                    try:
                        if actor.births:
                            await self._keep_definitions(actor)
                        append = append_of(actor, turn.letters)
                        if self._faults is not None:
                            self._faults.reach("append.before")
                        await self.journal.append(append)
                    except Exception as error:
                        self._undo(actor, turn, error)
                    else:
                        self._committed(actor, append)
                call = self._follow(actor, turn)
                if not actor.mailbox:
                    return call
                if call is not None:
                    self._performer.dispatch(actor, call)
        except OperatorError as error:
            self._outages.stall(actor, error)
            return None
        finally:
            actor.draining = False

    def _decide(self, actor: Actor) -> Turn:
        """What the letters come to, and what may start; nobody is told before it is on disk."""
        before, wanting = len(actor.unsaved), self.wanting
        wanted = wanting.of(actor.state) if wanting.four_eyes else None
        moment = c.Moment(self.clock.now(), self._secret, wanted)
        turn = Turn(actor.mailbox)
        for letter in turn.letters:
            # Each letter by itself: a refusal, or a mistake of ours, concerns nobody else.
            refusal: HoldfastError | None = None
            try:
                decided = actor.take(letter, moment)
                if decided:
                    self._charge(decided)
                    turn.effects += decided
            except CallerError as error:
                refusal = error
            except Exception as error:
                log.exception("run %s could not decide %s", actor.run_id, letter.command)
                refusal = _ours(error)
            if letter.reply is not None:
                turn.replies.append((letter, refusal))
        if not self._closing:
            turn.effects += self._starter.start_ready(actor, moment)
        turn.waits = self._may_wait(actor, turn, before)
        return turn

    def _follow(self, actor: Actor, turn: Turn) -> Performed | None:
        """Tell the callers, and hand the effects over; the first call is left to this task, unless
        there is a caller, who may want to listen before it is made."""
        for letter, refusal in turn.replies:
            letter.answer(actor.committed, refusal)
        first: Performed | None = None
        for effect in turn.effects:
            if first is None and not turn.replies and isinstance(effect, Performed):
                first = effect
            else:
                self._performer.dispatch(actor, effect)
        return first

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
    def _may_wait(actor: Actor, turn: Turn, before: int) -> bool:
        """Only pure work is under way, and nobody waits for what has happened so far."""
        if actor.attached:
            return False
        if len(actor.unsaved) == before:
            return not actor.unsaved and not any(letter.notice for letter in turn.letters)
        if not turn.effects or actor.births or len(actor.unsaved) >= LAZY_EVENTS:
            return False
        if turn.letters and not turn.letters[0].lazy:
            return False
        return all(letter.lazy for letter in turn.letters) and all(map(is_pure, turn.effects))

    def _set_flush_timer(self, actor: Actor) -> None:
        if actor.unsaved and actor.flush_timer is None:
            loop = asyncio.get_running_loop()
            actor.flush_timer = loop.call_later(LAZY_SECONDS, self._flush, actor)

    def _flush(self, actor: Actor) -> None:
        actor.flush_timer = None
        if actor.unsaved and not actor.draining:
            self._nudge(actor, Letter(c.Tick()))

    async def _keep_definitions(self, actor: Actor) -> None:
        """Whatever a child run is pinned to is stored before the run is."""
        for _, child in actor.births:
            await self.library.keep(definition_of(child.state), self.clock.now())

    def _undo(self, actor: Actor, turn: Turn, error: Exception) -> None:
        """What was decided could not be recorded: it has not happened, or nobody knows."""
        if isinstance(error, VersionConflict):
            self._forget(actor, turn.effects, turn.letters)
            actor.stale = True
            turn.clear()
        elif isinstance(error, OperatorError):
            self._forget(actor, turn.effects, turn.letters)
            raise error
        else:
            log.error("run %s could not be recorded", actor.run_id, exc_info=error)
            self._forget(actor, turn.effects)
            actor.mailbox.extend(_unrecorded(turn.letters))
            turn.fail(_ours(error))

    def _committed(self, actor: Actor, append: Append) -> None:
        """It is on disk: now everybody may know."""
        if self._faults is not None:
            self._faults.reach("append.after")
        children = actor.births
        before = actor.committed_all()
        self._tell(before, actor.committed, append.records)
        for _, child in children:
            self.wanting.note(child.committed)
            self._residents.add(child)
            self._residents.doubtful.discard(child.run_id)
            self._nudge(child, Letter(c.Tick(), lazy=True))
        if append.row is not None:
            self._timers.note(append.row.wake_at)
        for notice in append.notices:
            self._crew.spawn(self._deliver(notice))
        for record in append.records:
            actor.bytes_since += len(record.payload)
        if actor.bytes_since >= SNAPSHOT_BYTES and actor.bytes_since >= 4 * actor.snapshot_size:
            actor.bytes_since = 0
            self._crew.spawn(self._snapshot(actor))

    def _tell(self, before: RunState, state: RunState, records: Sequence[Record] = ()) -> None:
        if self.wanting.four_eyes:
            self.wanting.note(state)
        if isinstance(before, PlanState) and isinstance(state, PlanState):
            self._planner.tasks_changed(before, state)
        self.hub.publish(before, state, records)
        if state.open_questions is not before.open_questions:
            self.hub.ask_below(state.run_id)

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
