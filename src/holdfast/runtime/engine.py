"""The engine: feeds commands to runs, one actor per active run, and does as they say.

A turn takes what is in the mailbox, decides it, starts what is ready and has a
permit, appends everything in one transaction, and only then publishes, replies
and dispatches. So a step's result and the next step's start share one commit.

Pure work needs no barrier: while a turn brings only that, its events ride with the
next append, at the latest after `LAZY_EVENTS` events or `LAZY_SECONDS`. Nobody
sees them before.

`runtime/delivery.py` tells what happens when the journal cannot acknowledge.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import cast

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.run.four_eyes import CLOCK
from holdfast.core.run.state import RunState
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
from holdfast.i18n.message import msg
from holdfast.journal.port import NOTHING, Attached, Journal, Snapshot
from holdfast.journal.snapshots import SCHEMA, dump_state
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.run import RunStatus
from holdfast.runtime.actor import Actor, Envelope, report
from holdfast.runtime.actors import ActorRegistry
from holdfast.runtime.appends import append_of
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.concurrency import ConcurrencyLimit
from holdfast.runtime.delivery import Delivery
from holdfast.runtime.executor import Executor, is_pure
from holdfast.runtime.four_eyes import FourEyes
from holdfast.runtime.hub import Hub, Watcher
from holdfast.runtime.identity import LOCAL, current
from holdfast.runtime.machines import Definition, blank, definition_of
from holdfast.runtime.ports import PERFORMED, FaultPoints, Performed, Planner
from holdfast.runtime.registry import DefinitionRegistry
from holdfast.runtime.scheduler import Scheduler
from holdfast.runtime.timers import Timers
from holdfast.runtime.worker import Worker
from holdfast.work.ending import ends_from_without

log = logging.getLogger("holdfast")

LAZY_EVENTS = 128
LAZY_SECONDS = 0.05
SNAPSHOT_BYTES = 128 * 1024
"""Tuning: how far pure work may run ahead, and after how many bytes of events a snapshot
may pay."""

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

MOST_ENVELOPES = 64
"""Letters that one turn decides, so that it does not hold the loop for long."""


class Turn:
    """What one turn takes, decides and leaves to be done once it is on disk."""

    __slots__ = ("effects", "envelopes", "replies", "waits")
    envelopes: Sequence[Envelope]
    replies: Sequence[tuple[Envelope, HoldfastError | None]]
    effects: Sequence[f.Effect]
    waits: bool


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
        self.definitions = DefinitionRegistry(journal)
        self.hub = Hub(journal)
        self.clock = clock or SystemClock()
        self.worker = worker
        self._planner = planner
        self._tells_of_tasks = planner.hears_of_tasks
        self._faults = faults
        self._secret = os.urandom(32)
        self._background = BackgroundTasks()
        self._actors = ActorRegistry(
            journal, self.definitions, lambda actor: self._delivery.retry(actor)
        )
        self.four_eyes = FourEyes(journal, self._actors, four_eyes=four_eyes)
        self._concurrency = ConcurrencyLimit(max_effects)
        self._delivery = delivery = Delivery(self._actors, self._background, self._carry)
        self._scheduler = Scheduler(
            worker, self.definitions, self._concurrency, self._actors, delivery
        )
        self._executor = Executor(
            worker,
            planner,
            self._concurrency,
            self.clock,
            faults,
            delivery,
            self._background,
            self.hub,
        )
        self._timers = Timers(journal, self.clock, lambda run_id: self.submit(run_id, c.Tick()))

    async def open(self) -> None:
        """Take up what a former owner left: notices unheard, runs with work in flight."""
        notices = await self.journal.notices()
        orphans = await self.journal.active_runs()
        self._actors.orphans.update(orphans)
        for run_id in sorted(orphans):
            self._background.spawn(self._delivery.wake(run_id))
        for notice in notices:
            self._background.spawn(self._delivery.deliver(notice))
        self._timers.start()

    async def close(self, grace: float = 10.0) -> None:
        """Start nothing more, let what is in flight end, and keep the rest for later."""
        self._delivery.closing = True
        await self._timers.stop()
        self._hang_up()
        await self._background.finish(grace)
        await self.worker.close()
        for actor in tuple(self._actors.by_id.values()):
            if actor.unsaved or actor.mailbox:
                await self._carry(actor)
        self.hub.close()

    def _hang_up(self) -> None:
        """Asking a model changes nothing: a reply need not be waited for, it is asked for again."""
        for actor in [one for one in self._actors.by_id.values() if one.flying]:
            for effect in actor.machine.effects_in_flight(actor.committed):
                if isinstance(effect, f.AskModel):
                    self._executor.dispatch(actor, f.StopModel(effect.work))

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
        further: Sequence[c.Command] = (),
    ) -> RunState:
        """A new run under an id that nobody has used yet; NotAllowed if somebody has.
        `further` commands are decided with the first."""
        command = self._signed(command)
        await self.definitions.keep(definition, self.clock.now())
        if isinstance(command, c.StartRun):
            command = replace(command, authors=self.definitions.authors(definition.digest))
        if run_id in self._actors.by_id:
            raise NotAllowed(msg("there already is a run {id}", id=run_id))
        self._actors.by_id[run_id] = actor = Actor.of(blank(run_id, definition))
        reply = self._hand_in(actor, command, attached)
        if not further:
            return await reply
        others = [self._hand_in(actor, self._signed(one), NOTHING) for one in further]
        return (await asyncio.gather(reply, *others))[-1]

    async def submit(
        self, run_id: str, command: c.Command, attached: Attached = NOTHING
    ) -> RunState:
        """The run's state after `command`, committed together with `attached`; a refusal raises."""
        command = self._signed(command)
        actor = await self._actors.find(run_id)
        return await self._hand_in(actor, command, attached)

    async def state(self, run_id: str) -> RunState:
        """The run as it is on disk."""
        return (await self._actors.find(run_id)).committed

    async def state_since(self, run_id: str, version: int) -> RunState:
        """As `state`, for one who has read up to `version` from the disk himself: the engine
        may learn a moment later than the disk that an event is there."""
        return await self.wait_for(run_id, lambda state: state.version >= version)

    @property
    def damaged(self) -> Collection[str]:
        """The runs that could not be read."""
        return self._actors.damaged

    async def wait_for(
        self,
        run_id: str,
        settled: Callable[[RunState], bool],
        timeout: float | None = None,
        watch: Callable[[str, Watcher], Callable[[], None]] | None = None,
    ) -> RunState:
        """The first committed state that satisfies `settled`, or the last before the time-out.
        `watch` says with which states it is asked."""
        done: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()

        def look(state: RunState) -> None:
            if settled(state) and not done.done():
                done.set_result(state)

        unwatch = (watch or self.hub.watch)(run_id, look)
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

    async def wait_for_status(
        self, run_id: str, statuses: Collection[RunStatus], timeout: float | None = None
    ) -> RunState:
        """As `wait_for`, for one of these statuses."""
        settled, watch = lambda state: state.status in statuses, self.hub.watch_status
        return await self.wait_for(run_id, settled, timeout, watch)

    async def abandon(self, run_id: str) -> None:
        """Break off what a run has in flight, as if its owner had gone."""
        actor = await self._actors.find(run_id)
        await self._executor.abandon(actor)
        await self.submit(run_id, c.Recover(crashed=False))

    def _hand_in(
        self, actor: Actor, command: c.Command, attached: Attached
    ) -> asyncio.Future[RunState]:
        """The reply to a caller's command. It is decided in a task of the engine's own: the
        caller may be cancelled, and that must not tear the others' turn apart."""
        reply: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()
        self._delivery.put(actor, Envelope(command, reply, acting=current(), attached=attached))
        return reply

    def _signed(self, command: c.Command) -> c.Command:
        """With the name of whoever acts, where the command was given without one."""
        by = getattr(command, "by", None)
        if by == "" and (self.four_eyes.enabled or isinstance(command, _UNSIGNED)):
            acts, nobody = current(), LOCAL if self.four_eyes.enabled else ""
            by = nobody if acts is None else acts.who
            command = cast(c.Command, replace(cast(c.StartOver, command), by=by))
        if by == CLOCK:
            message = msg("{name} is a name of ours: give that of a person or a service", name=by)
            raise InvalidValue(message, "by")
        return command

    async def _carry(self, actor: Actor, call: Performed | None = None) -> None:
        """Turn after turn, and in between the call that a turn leaves, all in one task.

        Another task goes on where a call has left context variables behind, or a cancellation that
        this one has yet to hear of.
        """
        task, context = asyncio.current_task(), copy_context()
        assert task is not None
        cancelling = task.cancelling
        while True:
            if call is not None:
                try:
                    envelope = await self._executor.perform(actor, call, task)
                except GeneratorExit as error:
                    # One that a future carries closes whatever waits for it, up to here.
                    if ends_from_without(error, task):
                        raise
                    envelope = self._executor.failed(call, error)
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
                    self._background.spawn(self._carry(actor), context.copy())
                    return
            actor.draining = True
            try:
                if actor.stale:
                    await self._refresh(actor)
                if self.four_eyes.enabled:
                    await self.four_eyes.read(actor.builder.state.root_id)
                turn = self._decide(actor)
                if not turn.waits:
                    await self._record(actor, turn)
                elif actor.unsaved and actor.flush_timer is None:
                    loop = asyncio.get_running_loop()
                    actor.flush_timer = loop.call_later(LAZY_SECONDS, self._flush, actor)
            except OperatorError as error:
                self._scheduler.give_up(actor)
                self._delivery.stall(actor, error)
                return
            finally:
                actor.draining = False
            call = self._follow(actor, turn)
            if actor.mailbox:
                if call is not None:
                    self._executor.dispatch(actor, call)
                    call = None
            elif call is None:
                self._actors.rest(actor)
                return

    async def _refresh(self, actor: Actor) -> None:
        """Load the run anew, and take up what was decided on disk but never handed over."""
        fresh = await self._actors.read(actor.run_id)
        parent = fresh.state.parent
        unheard = await self.journal.notices(parent.run_id) if parent is not None else []
        before, state = actor.committed, fresh.committed
        actor.committed = state
        actor.forget()
        actor.stale = False
        self._timers.note(min(state.timers.values(), default=None))
        if before.version != state.version:
            # What was refused has happened after all, and nobody has been told.
            self._inform(before, state)
            self.hub.publish(before, state)
            for notice in unheard:
                self._background.spawn(self._delivery.deliver(notice))
        if any(isinstance(envelope.command, c.Recover) for envelope in actor.mailbox):
            return
        for effect in actor.machine.effects_in_flight(state):
            if not isinstance(effect, PERFORMED):
                self._executor.dispatch(actor, effect)
            elif (effect.work.step_id, effect.work.claim) not in actor.flying:
                # Behind what is in the mailbox: a result that was obtained counts before this.
                actor.mailbox.append(Envelope(report(effect.work, c.NotSent())))

    def _decide(self, actor: Actor) -> Turn:
        """What the letters come to, and what may start; nobody is told before it is on disk."""
        before = len(actor.unsaved)
        turn, builder, mailbox = Turn(), actor.builder, actor.mailbox
        if len(mailbox) <= MOST_ENVELOPES:
            envelopes = list(mailbox)
            mailbox.clear()
        else:
            envelopes = [mailbox.popleft() for _ in range(MOST_ENVELOPES)]
        turn.envelopes = envelopes
        effects: list[f.Effect] = []
        carry_out, replies = actor.carry_out, []
        builder.shared, builder.now, builder.entropy = True, self.clock.now(), self._secret
        builder.wanted_by = self.four_eyes.of(builder.state) if self.four_eyes.enabled else None
        for envelope in envelopes:
            # Each letter by itself: a refusal, or a mistake of ours, concerns nobody else.
            refusal: HoldfastError | None = None
            mark = len(builder.events), len(builder.readied)
            try:
                if envelope.acting is None and envelope.attached is NOTHING:
                    decided = carry_out(builder, envelope.command)
                else:
                    decided = actor.take(envelope)
                if decided:
                    # What was in flight before us is so again, whether or not a permit is free.
                    self._concurrency.free -= sum(isinstance(one, f.CallTool) for one in decided)
                    effects += decided
            except Exception as error:
                builder.rewind(actor.committed, mark)
                refusal = error if isinstance(error, CallerError) else _ours(error)
                if refusal is not error:
                    log.exception("run %s could not decide %s", actor.run_id, envelope.command)
                    if envelope.reply is None:
                        turn.envelopes = [one for one in turn.envelopes if one is not envelope]
                        self._delivery.put_off(actor, [envelope])
            if envelope.reply is not None:
                replies.append((envelope, refusal))
        if not self._delivery.closing:
            self._scheduler.start_ready(actor, effects)
        turn.effects, turn.replies = effects, replies
        lazy = not envelopes or envelopes[0].lazy or len(actor.unsaved) == before
        turn.waits = lazy and self._may_wait(actor, turn, before)
        return turn

    def _follow(self, actor: Actor, turn: Turn) -> Performed | None:
        """Tell the callers, and hand the effects over; the first call is left to this task, unless
        there is a caller, who may want to listen before it is made."""
        for envelope, refusal in turn.replies:
            envelope.answer(actor.committed, refusal)
        first: Performed | None = None
        for effect in turn.effects:
            if first is None and not turn.replies and isinstance(effect, PERFORMED):
                first = effect
            else:
                self._executor.dispatch(actor, effect)
        return first

    @staticmethod
    def _may_wait(actor: Actor, turn: Turn, before: int) -> bool:
        """Only pure work is under way, and nobody waits for what has happened so far."""
        if actor.attached:
            return False
        if len(actor.unsaved) == before:
            return not actor.unsaved and not any(envelope.notice for envelope in turn.envelopes)
        if not turn.effects or actor.child_appends or len(actor.unsaved) >= LAZY_EVENTS:
            return False
        return all(envelope.lazy for envelope in turn.envelopes) and all(map(is_pure, turn.effects))

    def _flush(self, actor: Actor) -> None:
        actor.flush_timer = None
        if actor.unsaved and not actor.draining:
            self._delivery.put(actor, Envelope(c.Tick()))

    async def _record(self, actor: Actor, turn: Turn) -> None:
        """One append in which all that was decided becomes true; then everybody may know."""
        try:
            for _, child in actor.child_appends:
                # Whatever a child run is pinned to is stored before the run is.
                await self.definitions.keep(definition_of(child.state), self.clock.now())
            along = self.hub.along(actor.run_id) if actor.pulled else ()
            append = append_of(actor, turn.envelopes, along)
            if self._faults is not None:
                self._faults.reach("append.before")
            await self.journal.append(append)
        except Exception as error:
            self._undo(actor, turn, error)
            return
        if self._faults is not None:
            self._faults.reach("append.after")
        children, before, state = actor.child_appends, actor.committed, actor.builder.state
        actor.committed = state
        actor.unsaved.clear()
        if children or actor.attached or actor.flush_timer is not None:
            actor.settle()
        if self.four_eyes.enabled or self._tells_of_tasks:
            self._inform(before, state)
        self.hub.publish(before, state, append.records)
        for _, born in children:
            self.four_eyes.note(born.committed)
            # Somebody may have loaded it since it is on disk, and a run has one actor.
            child = self._actors.by_id.setdefault(born.run_id, born)
            self._actors.doubtful.discard(child.run_id)
            self._delivery.put(child, Envelope(c.Tick(), lazy=True))
        if append.row is not None:
            self._timers.note(append.row.wake_at)
        for notice in append.notices:
            self._background.spawn(self._delivery.deliver(notice))
        if actor.bytes_since >= SNAPSHOT_BYTES and actor.bytes_since >= 4 * actor.snapshot_size:
            actor.bytes_since = 0
            self._background.spawn(self._snapshot(actor))

    def _inform(self, before: RunState, state: RunState) -> None:
        """Those of the engine itself, before its followers."""
        if self.four_eyes.enabled:
            self.four_eyes.note(state)
        if self._tells_of_tasks and isinstance(state, PlanState):
            self._planner.tasks_changed(cast(PlanState, before), state)

    def _undo(self, actor: Actor, turn: Turn, error: Exception) -> None:
        """What was decided could not be recorded: it has not happened, or nobody knows."""
        for effect in turn.effects:
            if isinstance(effect, f.CallTool):
                self._concurrency.give_back()
        for _, child in actor.child_appends:
            self._delivery.doubt(child.run_id)
        actor.forget()
        envelopes, turn.effects = turn.envelopes, ()
        if isinstance(error, VersionConflict):
            actor.mailbox.extendleft(reversed(envelopes or [Envelope(c.Tick(), lazy=True)]))
            actor.stale, turn.replies = True, ()
        elif isinstance(error, OperatorError):
            actor.mailbox.extendleft(reversed(envelopes))
            raise error
        else:
            log.error("run %s could not be recorded", actor.run_id, exc_info=error)
            turn.replies = [(one, _ours(error)) for one in envelopes]
            if actor.committed.version:
                # It may be on disk all the same, and what was ready has yet to be started.
                actor.stale = True
                kept = [one for one in envelopes if one.reply is None]
                self._delivery.put_off(actor, kept or [Envelope(c.Tick())])

    async def _snapshot(self, actor: Actor) -> None:
        state = actor.committed
        payload = await asyncio.to_thread(dump_state, state)
        actor.snapshot_size = len(payload)
        try:
            await self.journal.save_snapshot(Snapshot(actor.run_id, state.version, SCHEMA, payload))
        except JournalUnavailable as error:
            log.info("no snapshot of %s: %s", actor.run_id, error)


def _ours(error: Exception) -> InternalError:
    return InternalError(f"{type(error).__name__}: {error}")
