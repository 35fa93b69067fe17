"""The turns of runs: envelopes are delivered, decided and recorded, and what follows is done.

A turn takes what is in the mailbox, decides it, starts what is ready and has a permit, appends
everything in one transaction, and only then publishes, replies and dispatches. So a step's result
and the next step's start share one commit. One task carries a run: it performs the call that a
turn leaves, takes the result through the next turn, and so on.

Pure work needs no barrier: while a turn brings only that, its events ride with the next append, at
the latest after `LAZY_EVENTS` events or `LAZY_SECONDS`. They are not published before.

A refused append may have happened or not. So callers are told, results already obtained stay in the
mailbox, and the run is loaded anew as soon as the journal answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Final, assert_never, cast

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.state import NO_REPAIRS
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import (
    JournalUnavailable,
    NotFound,
    OperatorError,
    Superseded,
    VersionConflict,
)
from holdfast.i18n.message import msg
from holdfast.journal.port import Journal, OutboxMessage, Written
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.runtime import projections
from holdfast.runtime.actor import Actor, Envelope, append_of, report
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.clock import Clock, Timers
from holdfast.runtime.drives import Drives, reported
from holdfast.runtime.executor import (
    PERFORMED,
    ConcurrencyLimit,
    Executor,
    FaultPoints,
    Performed,
    Planner,
    consulting,
    diagnosing,
)
from holdfast.runtime.four_eyes import FourEyes
from holdfast.runtime.hub import Hub
from holdfast.runtime.log_context import CARRIED, Carried
from holdfast.runtime.machines import definition_of
from holdfast.runtime.registry import ActorRegistry, DefinitionRegistry
from holdfast.runtime.scheduler import Scheduler, Turn, internal, refuse_late
from holdfast.work.failed_attempts import ends_from_without

log = logging.getLogger("holdfast")

LAZY_SECONDS = 0.05
SNAPSHOT_BYTES = 128 * 1024
"""Tuning: how long pure work may run ahead, and after how many bytes of events a snapshot
may pay."""

RETRY_JOURNAL = 0.25
LONGEST_RETRY = 600.0
"""How soon a journal that was down is tried again, in seconds, and how rarely at last what a
mistake of ours keeps from it."""

_CANCELLING: Final = RunStatus.CANCELLING


class TurnLoop:
    """Delivers envelopes to actors and carries their turns; what it needs, it calls downwards."""

    def __init__(
        self,
        journal: Journal,
        definitions: DefinitionRegistry,
        actors: ActorRegistry,
        scheduler: Scheduler,
        executor: Executor,
        limit: ConcurrencyLimit,
        planner: Planner,
        four_eyes: FourEyes,
        hub: Hub,
        timers: Timers,
        clock: Clock,
        faults: FaultPoints | None,
        background: BackgroundTasks,
        drives: Drives | None,
    ) -> None:
        self._journal = journal
        self._definitions = definitions
        self._actors = actors
        self._scheduler = scheduler
        self._executor = executor
        self._limit = limit
        self._planner = planner
        self._tells_of_tasks = planner.hears_of_tasks
        self._four_eyes = four_eyes
        self._hub = hub
        self._timers = timers
        self._clock = clock
        self._faults = faults
        self.background = background
        self.drives = drives
        self.learns: Callable[[PlanState, PlanState, Sequence[Written]], None] | None = None
        self.closing = False

    async def find(self, run_id: str) -> Actor:
        """The run's only actor; one that was loaded in doubt takes a turn to be refreshed."""
        actor = await self._actors.find(run_id)
        if run_id in self._actors.doubtful:
            self._actors.doubtful.discard(run_id)
            actor.retry = asyncio.get_running_loop().call_soon(self.retry, actor)
        return actor

    async def current(self, run_id: str) -> Actor:
        """As `find`; where others append to the journal too, the next turn is decided on what is
        on disk by now."""
        actor, _ = await self._compared(run_id)
        return actor

    async def read(self, run_id: str) -> RunState:
        """The run as it is on disk."""
        actor, on_disk = await self._compared(run_id)
        if self.drives is None or (on_disk and not actor.stale):
            return actor.committed
        reader = actor.awaited()
        if actor.stale:
            self.retry(actor)
        return await reader

    async def _compared(self, run_id: str) -> tuple[Actor, bool]:
        """The run's actor, which is stale if another process has appended something, and whether it
        is as on disk: an append of ours may be there whose acknowledgement is on its way."""
        compared = self.drives is not None and self._actors.knows(run_id)
        actor = await self.find(run_id)
        if not compared:
            return actor, True
        version = await self._journal.version(run_id)
        if version == actor.committed.version or not actor.committed.version:
            return actor, True
        if not version or version != actor.appending:
            actor.stale = True
        return actor, False

    def renew(self, actor: Actor) -> None:
        """Have a run brought up to what others have appended."""
        actor.stale = True
        self.retry(actor)

    def put(self, actor: Actor, envelope: Envelope) -> None:
        """Have an envelope decided by a task of the engine's own."""
        actor.mailbox.append(envelope)
        self._actors.wake(actor)
        if not actor.draining:
            actor.draining = True
            self.background.spawn(self.carry(actor))

    async def post(self, run_id: str, envelope: Envelope) -> None:
        """Have an envelope of the engine's own decided, however long the journal is down."""
        while True:
            try:
                actor = await self.find(run_id)
                break
            except JournalUnavailable as error:
                if self.closing:
                    return
                log.warning(
                    "run %s waits for the journal: %s", run_id, error, extra={"run": run_id}
                )
                await asyncio.sleep(RETRY_JOURNAL)
        actor.mailbox.append(envelope)
        self._actors.wake(actor)
        if not actor.draining:
            await self.carry(actor)

    async def deliver(self, message: OutboxMessage) -> None:
        await self.post(message.target_id, self.delivered(message))

    @staticmethod
    def delivered(message: OutboxMessage) -> Envelope:
        return Envelope(projections.heard(message), notice=(message.source_id, message.seq))

    async def wake(self, run_id: str) -> None:
        await self.post(run_id, Envelope(c.Tick(), lazy=True))

    def retry(self, actor: Actor) -> None:
        actor.retry = None
        self._actors.wake(actor)
        if not actor.draining and not self.closing:
            actor.draining = True
            self.background.spawn(self.carry(actor))

    async def abandon(self, actor: Actor) -> None:
        """Cancel what this run has in flight."""
        flying = tuple(actor.in_flight.values())
        actor.in_flight.clear()
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)

    async def carry(self, actor: Actor, call: Performed | None = None) -> None:
        """Turn after turn, and in between the call that a turn leaves, all in one task.

        Another task goes on where a call has left context variables behind, or a cancellation that
        this one has yet to hear of.
        """
        carried = Carried()  # the context is the same for all calls: setting a variable is dear
        CARRIED.set(carried)
        task, context = asyncio.current_task(), copy_context()
        assert task is not None
        cancelling, limit, drives = task.cancelling, self._limit, self.drives
        while True:
            if call is not None:
                carried.work = call.work
                try:
                    envelope = await self._executor.perform(actor, call, task, self)
                except GeneratorExit as error:
                    # A coroutine that a future closes closes those that wait for it, up to here.
                    if ends_from_without(error, task):
                        raise
                    envelope = self._executor.failed(call, error)
                finally:
                    if limit.waiting:
                        self.grant()
                # While it had this in flight the run was not evicted: the actor is still its own.
                actor.mailbox.append(envelope)
                if actor.draining:
                    return
                try:
                    clean = not cancelling() and copy_context() == context
                except Exception:  # a value that was left there cannot be compared
                    clean = False
                if not clean:
                    actor.draining = True
                    self.background.spawn(self.carry(actor), context.copy())
                    return
            actor.draining = True
            try:
                if actor.stale:
                    await self._refresh(actor)
                if actor.wanted:
                    await self._definitions.recall(actor.wanted)
                    actor.wanted = ""
                if self._four_eyes.enabled:
                    await self._four_eyes.read(actor.builder.state.root_id)
                starts = not self.closing and (drives is None or actor.drive is not None)
                turn = self._scheduler.decide(actor, starts=starts)
                if turn.postponed:
                    self._postpone(actor, turn.postponed)
                if not turn.waits or (actor.drive and drives and drives.has_ended(actor)):
                    await self._record(actor, turn)
                elif actor.unsaved and actor.flush_timer is None:
                    loop = asyncio.get_running_loop()
                    actor.flush_timer = loop.call_later(LAZY_SECONDS, self._flush, actor)
            except OperatorError as error:
                self._scheduler.give_up(actor)
                self._stall(actor, error)
                return
            except NotFound as error:
                self._lose(actor, error)
                return
            finally:
                actor.draining = False
                if limit.waiting:
                    self.grant()
            call = self._follow(actor, turn)
            if actor.mailbox or actor.stale:
                if call is not None:
                    self.dispatch(actor, call)
                    call = None
            elif call is None:
                self._actors.rest(actor)
                return

    def grant(self) -> None:
        """Wake the runs that have waited longest for a permit, while some are free."""
        while (actor := self._limit.granted()) is not None:
            if self._actors.holds(actor):
                self.put(actor, Envelope(c.Tick()))
            else:
                self._scheduler.give_up(actor)

    async def _refresh(self, actor: Actor) -> None:
        """Bring the run up to the disk, and take up what was decided but never dispatched."""
        before, parent = actor.committed, actor.committed.parent
        unmoved, actor.stale, actor.unmoved = actor.unmoved, False, False
        unheard: list[OutboxMessage] = []
        try:
            state = before if unmoved else await self._actors.catch_up(actor)
            if parent is not None and state.version != before.version:
                unheard = await self._journal.notices(parent.run_id)
        except BaseException:
            actor.stale = True
            raise
        actor.committed = state
        actor.forget()
        if state.timers:
            self._timers.note(min(state.timers.values()))
        if before.version != state.version:
            # What was refused has happened after all, or another process has appended it.
            self._inform(before, state)
            self._hub.publish(before, state)
            for message in unheard:
                self._tell(message)
        actor.answer_readers()
        if self.drives is not None and (actor.drive is None or self.drives.recovers(actor)):
            return
        if any(isinstance(envelope.command, c.Recover) for envelope in actor.mailbox):
            return
        known = set(reported(actor))
        for effect in actor.machine.effects_in_flight(state):
            if (
                isinstance(effect, f.Diagnose)
                and diagnosing(effect.case_id, effect.number) in known
            ):
                continue
            if not isinstance(effect, PERFORMED):
                self.dispatch(actor, effect)
            elif (effect.work.step_id, effect.work.claim) not in actor.in_flight:
                # Behind what is in the mailbox: a result that was obtained counts before this.
                found = report(effect.work, c.NotSent())
                actor.mailbox.append(Envelope(found, drive=actor.drive))

    async def _record(self, actor: Actor, turn: Turn) -> None:
        """One append in which all that was decided becomes true; then it is published."""
        try:
            for _, child in actor.child_appends:
                # The definition that a child run is pinned to is stored before the run is.
                await self._definitions.keep(definition_of(child.state), self._clock.now())
            along = self._hub.along(actor.run_id) if actor.pulled else ()
            append = append_of(actor, turn.envelopes, along)
            if self.drives is not None:
                append = self.drives.marked(actor, append, turn.effects)
                actor.appending = append.expected + len(append.records)
            if self._faults is not None:
                self._faults.reach("append.before")
            await self._journal.append(append)
        except Exception as error:
            if self.drives is not None and isinstance(error, Superseded):
                self.drives.superseded(actor, append.drive)
            self._undo(actor, turn, error)
            return
        finally:
            actor.appending = 0
        if self._faults is not None:
            self._faults.reach("append.after")
        children, before, state = actor.child_appends, actor.committed, actor.builder.state
        actor.committed = state
        actor.unsaved.clear()
        if children or actor.attached or actor.flush_timer is not None:
            actor.settle()
        if self._four_eyes.enabled or self._tells_of_tasks:
            self._inform(before, state)
        self._hub.publish(before, state, append.records)
        if type(state) is PlanState and (state.retried or state.repair is not NO_REPAIRS):
            self._learn(cast(PlanState, before), state, append.records)
        if self.drives is not None:
            actor.answer_readers()
            self.drives.committed(actor, append, turned=state.status is not before.status)
        for _, child in children:
            self._take_up(child)
        if append.row is not None and append.row.wake_at is not None:
            self._timers.note(append.row.wake_at)
        for message in append.notices:
            self._tell(message)
        if actor.bytes_since >= SNAPSHOT_BYTES and actor.bytes_since >= 4 * actor.snapshot_size:
            actor.bytes_since = 0
            self.background.spawn(self._actors.save_snapshot(actor))

    def _learn(self, before: PlanState, state: PlanState, records: Sequence[Written]) -> None:
        """What is on disk goes on, whatever becomes of what it teaches."""
        assert self.learns is not None
        try:
            self.learns(before, state, records)
        except Exception:
            log.exception("nothing is learned of run %s", state.run_id)

    def _tell(self, message: OutboxMessage) -> None:
        """Deliver a message to a run that is carried here; others hear of it from the journal."""
        if self.drives is None or message.target_id in self.drives.driven:
            self.background.spawn(self.deliver(message))

    def _take_up(self, child: Actor) -> None:
        """A child run is on disk: it may have been loaded since, and a run has one actor."""
        self._four_eyes.note(child.committed)
        if self.drives is not None and child.drive is None:
            return
        actor = self._actors.by_id.setdefault(child.run_id, child)
        self._actors.doubtful.discard(child.run_id)
        self.put(actor, Envelope(c.Tick(), lazy=True))

    def _inform(self, before: RunState, state: RunState) -> None:
        """Tell the engine's own listeners, before subscribers."""
        if self._four_eyes.enabled:
            self._four_eyes.note(state)
        if self._tells_of_tasks and isinstance(state, PlanState):
            self._planner.tasks_changed(cast(PlanState, before), state)

    def _undo(self, actor: Actor, turn: Turn, error: Exception) -> None:
        """What was decided could not be recorded: it has not happened, or that is unknown."""
        self._limit.free += sum(isinstance(effect, f.CallTool) for effect in turn.effects)
        for _, child in actor.child_appends:
            if self.drives is None:
                self._doubt(child.run_id)
            else:
                self.drives.end(child)
        actor.forget()
        envelopes, turn.effects = turn.envelopes, ()
        if isinstance(error, VersionConflict | Superseded):
            actor.mailbox.extendleft(reversed(envelopes or [Envelope(c.Tick(), lazy=True)]))
            actor.drop_of_drives()
            actor.stale, turn.replies = True, ()
        elif isinstance(error, OperatorError):
            actor.mailbox.extendleft(reversed(envelopes))
            raise error
        elif not refuse_late(actor, turn, error):
            log.error(
                "run %s could not be recorded", actor.run_id, exc_info=error, extra=actor.logged
            )
            turn.replies = [(one, internal(error)) for one in envelopes]
            if actor.committed.version:
                # It may be on disk all the same, and what was ready has yet to be started.
                actor.stale = True
                kept = [one for one in envelopes if one.reply is None]
                self._postpone(actor, kept or [Envelope(c.Tick())])

    def _follow(self, actor: Actor, turn: Turn) -> Performed | None:
        """Reply to the callers, and dispatch the effects; the first call is left to this task,
        unless there is a caller, who may want to subscribe before it is made."""
        for envelope, refusal in turn.replies:
            envelope.answer(actor.committed, refusal)
        first: Performed | None = None
        if self.drives is not None and actor.drive is None:
            return None  # its driver finds in the state what is to be done
        for effect in turn.effects:
            if self.drives is not None and isinstance(effect, f.CancelChild | f.ResumeChild):
                continue  # said in the append
            if first is None and not turn.replies and isinstance(effect, PERFORMED):
                first = effect
            else:
                self.dispatch(actor, effect)
        return first

    def dispatch(self, actor: Actor, effect: f.Effect) -> None:
        """Carry out an effect whose start is on disk, in a task of its own."""
        spawn = self.background.spawn
        match effect:
            case effect if isinstance(effect, Performed):
                key = (effect.work.step_id, effect.work.claim)
                actor.in_flight[key] = spawn(self.carry(actor, effect))
            case f.ConsultPlanner():
                key = consulting(effect)
                if key not in actor.in_flight:
                    actor.in_flight[key] = spawn(self._consult(actor, effect))
            case f.Diagnose():
                key = diagnosing(effect.case_id, effect.number)
                if key not in actor.in_flight:
                    actor.in_flight[key] = spawn(self._diagnose(actor, effect))
            case f.ResumeChild(child_id=child_id, by=by):
                spawn(self.post(child_id, Envelope(c.Resume(by))))
            case f.CancelChild(child_id=child_id, by=by, reason=reason):
                spawn(self.post(child_id, Envelope(c.Cancel(by, reason))))
            case f.StopModel(work=work):
                spawn(self._stop_model(actor, work))
            case f.StartChild() | f.StartAgent():
                raise AssertionError("a child run is prepared with its parent's start")
            case _:
                assert_never(effect)

    async def _consult(self, actor: Actor, effect: f.ConsultPlanner) -> None:
        await self.post(actor.run_id, await self._executor.consult(actor, effect))

    async def _diagnose(self, actor: Actor, effect: f.Diagnose) -> None:
        """A look reads the journal, however long it is down."""
        while True:
            try:
                envelope = await self._executor.diagnose(actor, effect)
                break
            except JournalUnavailable as error:
                if self.closing:
                    return
                log.warning("a case waits for the journal: %s", error, extra=actor.logged)
                await asyncio.sleep(RETRY_JOURNAL)
        actor.in_flight.pop(diagnosing(effect.case_id, effect.number), None)
        await self.post(actor.run_id, envelope)

    async def _stop_model(self, actor: Actor, work: f.Work) -> None:
        """Cancel a request whose reply is not wanted any more; asking changed nothing."""
        asking = actor.in_flight.pop((work.step_id, work.claim), None)
        if asking is not None and asking.cancel():
            await asyncio.gather(asking, return_exceptions=True)
            await self.post(actor.run_id, Envelope(report(work, c.NotSent())))

    def wants(self, actor: Actor, work: f.Work) -> bool:
        state = actor.committed
        step = state.steps.get(work.step_id)
        waits = step is not None and step.status is StepStatus.RUNNING and step.claim == work.claim
        return waits and not self.closing and state.status is not _CANCELLING

    def late(self, work: f.Work, outcome: c.Outcome) -> None:
        if isinstance(outcome, c.NotSent):
            outcome = c.Failed(
                Failure(FailureKind.TRANSIENT, msg("no thread was free for it in time"))
            )
        if not self.closing:
            envelope = self._executor.reported(work, outcome)
            self.background.spawn(self.post(work.run_id, envelope))

    def live(self, work: f.Work, text: str | None) -> None:
        self._hub.speak(work.run_id, work.claim, text)
        if self.drives is not None:
            self.drives.outbox.said(work.run_id, work.claim, text)

    def _flush(self, actor: Actor) -> None:
        actor.flush_timer = None
        if actor.unsaved and not actor.draining:
            self.put(actor, Envelope(c.Tick()))

    def _stall(self, actor: Actor, error: OperatorError) -> None:
        """Tell the callers; keep what was obtained, and try again later."""
        actor.refuse_callers(error)
        if actor.committed.version == 0:
            self._actors.drop(actor)
            if self.drives is None:
                self._doubt(actor.run_id)
            else:
                self.drives.end(actor)
            return
        actor.stale = True
        if actor.retry is None:
            log.warning("run %s waits for the journal: %s", actor.run_id, error, extra=actor.logged)
            loop = asyncio.get_running_loop()
            actor.retry = loop.call_later(RETRY_JOURNAL, self.retry, actor)

    def _lose(self, actor: Actor, error: NotFound) -> None:
        """The run was removed, by another process: there is nothing to go on with."""
        actor.refuse_callers(error)
        actor.mailbox.clear()
        if self.drives is not None:
            self.drives.end(actor)
        self._scheduler.give_up(actor)
        self._actors.drop(actor)

    def _postpone(self, actor: Actor, envelopes: Sequence[Envelope]) -> None:
        """A mistake of ours keeps these from the journal: they are tried again, ever more rarely,
        and one after another, for each may spoil it for the others. A result is lost at the second
        time, and the run must know that."""
        loop = asyncio.get_running_loop()
        for number, envelope in enumerate(envelopes):
            key, command = ("", id(envelope)), envelope.command
            if isinstance(command, c.ReportOutcome):
                key = (command.step_id, command.claim)
                if envelope.attempts:
                    lost = c.Lost(msg("its result could not be recorded"))
                    envelope = Envelope(replace(command, outcome=lost), attempts=envelope.attempts)
            tried = 2.0 ** min(envelope.attempts, 20)
            delay = min(RETRY_JOURNAL * (tried + number), LONGEST_RETRY)
            envelope.attempts += 1
            actor.in_flight[key] = loop.create_future()  # it is still on its way
            loop.call_later(delay, self._put_again, actor, key, envelope)

    def _put_again(self, actor: Actor, key: tuple[str, int], envelope: Envelope) -> None:
        if not self.closing and actor.in_flight.pop(key, None) is not None:
            self.put(actor, envelope)

    def _doubt(self, run_id: str) -> None:
        """A run whose first append was refused may be on disk, and then needs an owner."""
        self._actors.doubtful.add(run_id)
        asyncio.get_running_loop().call_later(RETRY_JOURNAL, self._adopt, run_id)

    def _adopt(self, run_id: str) -> None:
        if not self.closing and run_id in self._actors.doubtful:
            self.background.spawn(self._wake_if_there(run_id))

    async def _wake_if_there(self, run_id: str) -> None:
        try:
            await self.wake(run_id)
        except NotFound:
            self._actors.doubtful.discard(run_id)
