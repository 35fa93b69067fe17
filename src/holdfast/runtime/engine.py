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
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.decide import blank, decide, replay
from holdfast.core.plan.follow_up import effects_in_flight
from holdfast.core.plan.state import PlanState
from holdfast.core.plan.tables import StepStatus
from holdfast.errors import (
    CallerError,
    HoldfastError,
    InternalError,
    JournalUnavailable,
    NotFound,
    OperatorError,
    VersionConflict,
)
from holdfast.journal.codec import decode, encode_all
from holdfast.journal.port import Append, Journal, Notice, Snapshot
from holdfast.journal.snapshots import SCHEMA, dump_state, load_state
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.plan import PlanInstanceStatus, ToolAction, WhilePaused
from holdfast.model.retry import Failure, FailureKind
from holdfast.runtime import views
from holdfast.runtime.actor import Actor, Letter, frees_all, touched
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.faults import FaultPoints, NoFaults
from holdfast.runtime.hub import Hub
from holdfast.runtime.library import PlanLibrary
from holdfast.runtime.permits import Permits
from holdfast.runtime.ports import Planner, Worker
from holdfast.runtime.timers import Timers

log = logging.getLogger("holdfast")

LAZY_EVENTS = 128
LAZY_SECONDS = 0.05
ROW_LAG = 1.0
KEPT_IDLE = 256
RETRY_JOURNAL = 0.25
SNAPSHOT_BYTES = 64 * 1024
"""Tuning: how far pure work may run ahead, how old a list's progress may be, how many
idle runs stay in memory, how soon a journal that was down is tried again."""

_STARTING = (PlanInstanceStatus.RUNNING, PlanInstanceStatus.PAUSE, PlanInstanceStatus.CONTINUE)


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
    ) -> None:
        self.journal = journal
        self.library = PlanLibrary(journal)
        self.hub = Hub(journal)
        self.clock = clock or SystemClock()
        self._worker = worker
        self._planner = planner
        self._permits = Permits(max_effects)
        self._faults = faults or NoFaults()
        self._actors: dict[str, Actor] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        self._loading: dict[str, asyncio.Future[None]] = {}
        self._orphans: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timers = Timers(journal, self.clock, self._tick)
        self._secret = os.urandom(32)
        self._closing = False
        self._doubtful: set[str] = set()

    async def open(self) -> None:
        """Take up what a former owner left: notices unheard, runs with work in flight."""
        notices = await self.journal.notices()
        self._orphans = set(await self.journal.active_runs())
        for run_id in sorted(self._orphans):
            self._spawn(self._wake(run_id))
        for notice in notices:
            self._spawn(self._deliver(notice))
        self._timers.start()

    async def close(self, grace: float = 10.0) -> None:
        """Start nothing more, let what is in flight end, and keep the rest for later."""
        self._closing = True
        await self._timers.stop()
        await self._finish_tasks(grace)
        await self._worker.close()
        for actor in tuple(self._actors.values()):
            if actor.unsaved or actor.mailbox:
                await self._drain(actor)
        self.hub.close()

    async def _finish_tasks(self, grace: float) -> None:
        """Let what is in flight end; what never ends must not hold us, and stays in doubt."""
        give_up_at = asyncio.get_running_loop().time() + grace
        while self._tasks:
            left = give_up_at - asyncio.get_running_loop().time()
            if left <= 0:
                for task in self._tasks:
                    task.cancel()
            await asyncio.wait(tuple(self._tasks), timeout=max(left, 0.1))

    async def create(self, plan: CompiledPlan, command: c.StartRun) -> PlanState:
        """A new run; its first events are on disk when this returns."""
        await self.library.keep(plan, self.clock.now())
        number = await self.journal.next_number("inst")
        run_id = f"inst_{number:06d}"
        return await self._begin(run_id, plan, command)

    async def submit(self, run_id: str, command: c.Command) -> PlanState:
        """The run's state after `command`, committed; a refusal raises."""
        reply: asyncio.Future[PlanState] = asyncio.get_running_loop().create_future()
        actor = await self._resident(run_id)
        self._hand_in(actor, Letter(command, reply))
        return await reply

    async def state(self, run_id: str) -> PlanState:
        """The run as it is on disk."""
        return (await self._resident(run_id)).committed

    async def wait_for(
        self,
        run_id: str,
        settled: Callable[[PlanState], bool],
        timeout: float | None = None,
    ) -> PlanState:
        """The first committed state that satisfies `settled`, or the last before the time-out."""
        done: asyncio.Future[PlanState] = asyncio.get_running_loop().create_future()

        def watch(state: PlanState) -> None:
            if settled(state) and not done.done():
                done.set_result(state)

        unwatch = self.hub.watch(run_id, watch)
        try:
            state = await self.state(run_id)
            if settled(state):
                return state
            async with asyncio.timeout(timeout):
                return await done
        except TimeoutError:
            return await self.state(run_id)
        finally:
            unwatch()

    async def _begin(self, run_id: str, plan: CompiledPlan, command: c.StartRun) -> PlanState:
        state = blank(run_id, plan)
        actor = Actor(run_id, state, state)
        self._actors[run_id] = actor
        reply: asyncio.Future[PlanState] = asyncio.get_running_loop().create_future()
        self._hand_in(actor, Letter(command, reply))
        return await reply

    def _hand_in(self, actor: Actor, letter: Letter) -> None:
        """Have a letter decided in a task of the engine's own: its sender may be cancelled,
        and that must not tear the others' turn apart."""
        actor.mailbox.append(letter)
        self._idle.pop(actor.run_id, None)
        if not actor.draining:
            actor.draining = True
            self._spawn(self._drain(actor))

    async def _post(self, run_id: str, letter: Letter) -> None:
        """Have a letter of the engine's own decided, however long the journal is down."""
        actor = await self._resident_at_last(run_id)
        if actor is None:
            return
        actor.mailbox.append(letter)
        self._idle.pop(run_id, None)
        if not actor.draining:
            await self._drain(actor)

    async def _resident_at_last(self, run_id: str) -> Actor | None:
        while True:
            try:
                return await self._resident(run_id)
            except JournalUnavailable as error:
                if self._closing:
                    return None
                log.warning("run %s waits for the journal: %s", run_id, error)
                await asyncio.sleep(RETRY_JOURNAL)

    async def _resident(self, run_id: str) -> Actor:
        """The run's only actor. It must be used before the next await: it may be evicted there."""
        while (actor := self._actors.get(run_id)) is None:
            await self._load(run_id)
        return actor

    async def _load(self, run_id: str) -> None:
        loading = self._loading.get(run_id)
        if loading is not None:
            await asyncio.wait((loading,))
            return
        self._loading[run_id] = loading = asyncio.get_running_loop().create_future()
        try:
            actor = await self._read_actor(run_id)
            if run_id not in self._actors:
                self._admit(actor)
        finally:
            del self._loading[run_id]
            loading.set_result(None)

    def _admit(self, actor: Actor) -> None:
        """Whatever else is said to a run, it first hears that its former owner is gone."""
        self._actors[actor.run_id] = actor
        if actor.run_id in self._orphans:
            self._orphans.discard(actor.run_id)
            actor.mailbox.append(Letter(c.Recover()))
        if actor.run_id in self._doubtful:
            self._doubtful.discard(actor.run_id)
            actor.stale = True
            actor.retry = asyncio.get_running_loop().call_soon(self._retry, actor)
        self._keep_idle(actor)

    async def _read_actor(self, run_id: str) -> Actor:
        """Replay the journal, from the newest snapshot on if there is one."""
        row = await self.journal.run(run_id)
        if row is None:
            raise NotFound(f"there is no run {run_id}")
        plan = await self.library.by_digest(row.definition)
        snapshot = await self.journal.snapshot(run_id, SCHEMA)
        state = blank(run_id, plan) if snapshot is None else load_state(snapshot.payload, plan)
        records = await self.journal.read(run_id, state.version)
        state = replay(state, ((record.at, decode(record)) for record in records))
        actor = Actor(run_id, state, state)
        actor.snapshot_size = len(snapshot.payload) if snapshot is not None else 0
        actor.bytes_since = sum(len(record.payload) for record in records)
        actor.rebuild_heap()
        return actor

    def _keep_idle(self, actor: Actor) -> None:
        """Idle runs cost memory only while they are among the last few used."""
        if self._actors.get(actor.run_id) is not actor or not actor.idle:
            return
        if actor.committed.version == 0:
            del self._actors[actor.run_id]
            return
        self._idle[actor.run_id] = None
        self._idle.move_to_end(actor.run_id)
        while len(self._idle) > KEPT_IDLE:
            run_id, _ = self._idle.popitem(last=False)
            idle = self._actors.get(run_id)
            if idle is not None and idle.idle:
                del self._actors[run_id]

    async def _drain(self, actor: Actor) -> None:
        actor.draining = True
        try:
            while True:
                if actor.stale:
                    await self._refresh(actor)
                letters = list(actor.mailbox)
                actor.mailbox.clear()
                await self._turn(actor, letters)
                if not actor.mailbox:
                    break
        except OperatorError as error:
            self._stall(actor, error)
        finally:
            actor.draining = False
        self._keep_idle(actor)

    async def _turn(self, actor: Actor, letters: Sequence[Letter]) -> None:
        """Decide, start what may start, commit, and only then let anybody know."""
        replies: list[tuple[Letter, HoldfastError | None]] = []
        effects: list[f.Effect] = []
        before = len(actor.unsaved)
        for letter in letters:
            try:
                effects += self._decide_letter(actor, letter)
                replies.append((letter, None))
            except CallerError as error:
                replies.append((letter, error))
            except Exception as error:
                log.exception("run %s could not decide %s", actor.run_id, letter.command)
                replies.append((letter, InternalError(f"{type(error).__name__}: {error}")))
        effects += self._start_ready(actor)
        if self._may_wait(actor, letters, effects, before):
            self._set_flush_timer(actor)
        else:
            try:
                await self._commit(actor, letters)
            except VersionConflict:
                self._forget(actor, effects)
                actor.mailbox.extendleft(reversed(letters))
                actor.stale = True
                return
            except OperatorError:
                self._forget(actor, effects)
                actor.mailbox.extendleft(reversed(letters))
                raise
            except Exception as error:
                log.exception("run %s could not be recorded", actor.run_id)
                self._forget(actor, effects)
                ours = InternalError(f"{type(error).__name__}: {error}")
                replies, effects = [(letter, ours) for letter in letters], []
        for letter, refusal in replies:
            self._answer(actor, letter, refusal)
        for effect in effects:
            self._dispatch(actor, effect)

    def _decide_letter(self, actor: Actor, letter: Letter) -> Sequence[f.Effect]:
        """What was in flight before us is in flight again, whether or not a permit is free."""
        effects = self._decide(actor, letter.command)
        self._permits.charge(sum(isinstance(effect, f.CallTool) for effect in effects))
        return effects

    def _decide(self, actor: Actor, command: c.Command) -> Sequence[f.Effect]:
        moment = c.Moment(self.clock.now(), self._secret)
        decision = decide(actor.state, command, moment)
        actor.state = decision.state
        for event in decision.events:
            actor.unsaved.append((moment.now, event))
            if frees_all(event):
                actor.rebuild_heap()
            else:
                actor.push_ready(one for one in touched(event) if self._is_ready(actor, one))
        return decision.effects

    @staticmethod
    def _is_ready(actor: Actor, listener_id: str) -> bool:
        step = actor.state.steps.get(listener_id)
        return step is not None and step.status is StepStatus.READY

    def _start_ready(self, actor: Actor) -> list[f.Effect]:
        """Start what is ready, the most urgent first, while permits last."""
        effects: list[f.Effect] = []
        held: list[str] = []
        while self._may_start(actor) and (listener_id := actor.pop_ready()) is not None:
            tool = self._tool_of(actor, listener_id)
            if tool is not None and not self._take_permit(actor):
                held.append(listener_id)
                self._wait_for_permit(actor)
                break
            facts = self._worker.tool_facts(tool) if tool is not None else None
            started = self._decide(actor, c.StartListener(listener_id, facts))
            if tool is not None and not any(isinstance(one, f.CallTool) for one in started):
                self._permits.give_back()
            if self._is_ready(actor, listener_id):
                held.append(listener_id)
            effects += self._bear_children(actor, started)
        actor.push_ready(held)
        self._pass_on_permits(actor)
        return effects

    def _may_start(self, actor: Actor) -> bool:
        """Nobody may take a permit who cannot use it: others wait for it."""
        state = actor.state
        held = state.plan.plan.while_paused is WhilePaused.HOLD and state.open_questions
        return not self._closing and not held and state.status in _STARTING

    @staticmethod
    def _tool_of(actor: Actor, listener_id: str) -> str | None:
        """The tool that starting this listener would call."""
        action = actor.state.plan.listener(listener_id).action
        carried = actor.state.steps[listener_id].carried is not None
        return action.tool if isinstance(action, ToolAction) and not carried else None

    def _bear_children(self, actor: Actor, started: Sequence[f.Effect]) -> Sequence[f.Effect]:
        """Prepare the child runs of this turn; one that cannot be born fails its listener."""
        effects: list[f.Effect] = []
        for effect in started:
            if not isinstance(effect, f.StartChild):
                effects.append(effect)
                continue
            try:
                actor.births.append(self._birth(actor, effect))
            except CallerError as error:
                failure = Failure(FailureKind.PERMANENT, f"plan {effect.plan_id}: {error}")
                work = effect.work
                report = c.ReportOutcome(
                    work.listener_id, work.firing, work.claim, c.Failed(failure)
                )
                effects += self._decide(actor, report)
        return effects

    def _take_permit(self, actor: Actor) -> bool:
        if actor.permits:
            actor.permits -= 1
            return True
        return self._permits.take()

    def _pass_on_permits(self, actor: Actor) -> None:
        while actor.permits:
            actor.permits -= 1
            self._permits.give_back()

    def _wait_for_permit(self, actor: Actor) -> None:
        if actor.hungry:
            return
        actor.hungry = True

        def fed() -> None:
            actor.hungry = False
            if self._actors.get(actor.run_id) is not actor:
                self._permits.give_back()
                return
            actor.permits += 1
            self._hand_in(actor, Letter(c.Tick()))

        self._permits.when_free(fed)

    @staticmethod
    def _may_wait(
        actor: Actor, letters: Sequence[Letter], effects: Sequence[f.Effect], before: int
    ) -> bool:
        """Only pure work is under way, and nobody waits for what has happened so far."""
        if len(actor.unsaved) == before:
            return not actor.unsaved and not any(letter.notice for letter in letters)
        if len(actor.unsaved) >= LAZY_EVENTS or not effects:
            return False
        if actor.births or not all(letter.lazy for letter in letters):
            return False
        return all(isinstance(effect, f.RunSnippet | f.Conclude) for effect in effects) and all(
            actor.state.steps[effect.work.listener_id].pure  # type: ignore[union-attr]
            for effect in effects
        )

    def _set_flush_timer(self, actor: Actor) -> None:
        if actor.unsaved and actor.flush_timer is None:
            loop = asyncio.get_running_loop()
            actor.flush_timer = loop.call_later(LAZY_SECONDS, self._flush, actor)

    def _flush(self, actor: Actor) -> None:
        actor.flush_timer = None
        if actor.unsaved and not actor.draining:
            self._hand_in(actor, Letter(c.Tick()))

    async def _commit(self, actor: Actor, letters: Sequence[Letter]) -> None:
        births = list(actor.births)
        for _, child in births:
            await self.library.keep(child.state.plan, self.clock.now())
        heard = [letter.notice for letter in letters if letter.notice is not None]
        append = self._append_of(actor, [append for append, _ in births], heard)
        if append.records or append.heard:
            self._faults.reach("append.before")
            await self.journal.append(append)
            self._faults.reach("append.after")
        if actor.flush_timer is not None:
            actor.flush_timer.cancel()
            actor.flush_timer = None
        actor.unsaved.clear()
        actor.births.clear()
        before, actor.committed = actor.committed, actor.state
        self._planner.tasks_changed(before, actor.committed)
        for _, child in births:
            self._actors[child.run_id] = child
            self._doubtful.discard(child.run_id)
            self._hand_in(child, Letter(c.Tick(), lazy=True))
        self._after_commit(actor, append)

    def _after_commit(self, actor: Actor, append: Append) -> None:
        self.hub.publish(actor.committed)
        if append.row is not None:
            self._timers.note(append.row.wake_at)
        for notice in append.notices:
            self._spawn(self._deliver(notice))
        actor.bytes_since += sum(len(record.payload) for record in append.records)
        if actor.bytes_since >= max(SNAPSHOT_BYTES, 4 * actor.snapshot_size):
            actor.bytes_since = 0
            self._spawn(self._snapshot(actor))

    def _append_of(
        self, actor: Actor, births: Sequence[Append], heard: Sequence[tuple[str, int]]
    ) -> Append:
        state, committed = actor.state, actor.committed
        events = [event for _, event in actor.unsaved]
        at = actor.unsaved[-1][0] if actor.unsaved else 0.0
        lagging = at - actor.row_at >= ROW_LAG
        moved = views.standing(state) != views.standing(committed)
        row = views.run_row(state) if moved or lagging or committed.version == 0 else None
        if row is not None:
            actor.row_at = at
        return Append(
            run_id=actor.run_id,
            expected=committed.version,
            records=encode_all(actor.unsaved, committed.version + 1),
            row=row,
            questions=views.question_rows(state, events),
            births=births,
            notices=views.notices(committed.status, state),
            heard=heard,
        )

    def _birth(self, actor: Actor, effect: f.StartChild) -> tuple[Append, Actor]:
        """The child run's first append, which commits with its parent's start."""
        plan = self.library.current(effect.plan_id)
        child = Actor(effect.child_id, *(blank(effect.child_id, plan),) * 2)
        parent = e.Parent(actor.run_id, effect.work.listener_id, effect.work.firing)
        command = c.StartRun(
            plan_id=effect.plan_id,
            prompt=actor.state.prompt,
            values=effect.values,
            root_id=effect.root_id,
            parent=parent,
            by=actor.state.started_by,
        )
        self._decide(child, command)
        append = self._append_of(child, (), ())
        child.unsaved.clear()
        child.committed = child.state
        return append, child

    def _forget(self, actor: Actor, effects: Sequence[f.Effect]) -> None:
        """What was decided did not happen; the permits of what never started go back."""
        for effect in effects:
            if isinstance(effect, f.CallTool):
                self._permits.give_back()
        for _, child in actor.births:
            self._doubt(child.run_id)
        actor.unsaved.clear()
        actor.births.clear()
        actor.state = actor.committed

    def _stall(self, actor: Actor, error: OperatorError) -> None:
        """Tell the callers; keep what was obtained, and try again by and by."""
        kept = [letter for letter in actor.mailbox if letter.reply is None]
        for letter in actor.mailbox:
            if letter.reply is not None and not letter.reply.done():
                letter.reply.set_exception(error)
        actor.mailbox.clear()
        actor.mailbox.extend(kept)
        if actor.committed.version == 0:
            self._actors.pop(actor.run_id, None)
            self._doubt(actor.run_id)
            return
        actor.stale = True
        if actor.retry is None:
            log.warning("run %s waits for the journal: %s", actor.run_id, error)
            loop = asyncio.get_running_loop()
            actor.retry = loop.call_later(RETRY_JOURNAL, self._retry, actor)

    def _retry(self, actor: Actor) -> None:
        actor.retry = None
        if not actor.draining and not self._closing:
            actor.draining = True
            self._spawn(self._drain(actor))

    def _doubt(self, run_id: str) -> None:
        """A run whose birth was refused may be on disk all the same: somebody must own it."""
        self._doubtful.add(run_id)
        asyncio.get_running_loop().call_later(RETRY_JOURNAL, self._adopt, run_id)

    def _adopt(self, run_id: str) -> None:
        if not self._closing and run_id in self._doubtful:
            self._spawn(self._wake_if_born(run_id))

    async def _wake_if_born(self, run_id: str) -> None:
        try:
            await self._wake(run_id)
        except NotFound:
            self._doubtful.discard(run_id)

    async def _refresh(self, actor: Actor) -> None:
        """Load the run anew, and take up what was decided on disk but never handed over."""
        fresh = await self._read_actor(actor.run_id)
        parent = fresh.state.parent
        unheard = await self.journal.notices(parent.run_id) if parent is not None else []
        before = actor.committed
        actor.state = actor.committed = fresh.state
        actor.heap = fresh.heap
        actor.unsaved.clear()
        actor.stale = False
        self._timers.note(min(actor.state.timers.values(), default=None))
        if before.version != actor.committed.version:
            self._tell_all(before, actor.committed, unheard)
        if any(isinstance(letter.command, c.Recover) for letter in actor.mailbox):
            return
        for effect in effects_in_flight(actor.state):
            match effect:
                case f.CallTool() | f.RunSnippet() | f.CallFunction() | f.Conclude():
                    self._release(actor, effect.work)
                case _:
                    self._dispatch(actor, effect)

    def _tell_all(self, before: PlanState, state: PlanState, unheard: Sequence[Notice]) -> None:
        """What was refused has happened after all, and nobody has been told."""
        self._planner.tasks_changed(before, state)
        self.hub.publish(state)
        for notice in unheard:
            self._spawn(self._deliver(notice))

    def _release(self, actor: Actor, work: f.Work) -> None:
        """Behind what is in the mailbox: a result that was obtained counts before this."""
        if (work.listener_id, work.claim) not in actor.flying:
            outcome = c.NotSent()
            report = c.ReportOutcome(work.listener_id, work.firing, work.claim, outcome)
            actor.mailbox.append(Letter(report))

    @staticmethod
    def _answer(actor: Actor, letter: Letter, refusal: HoldfastError | None) -> None:
        if letter.reply is None or letter.reply.done():
            return
        if refusal is None:
            letter.reply.set_result(actor.committed)
        else:
            letter.reply.set_exception(refusal)

    def _dispatch(self, actor: Actor, effect: f.Effect) -> None:
        match effect:
            case f.StartChild():
                raise AssertionError("a child run is born with its parent's start")
            case f.ConsultPlanner():
                place = (f"consult:{effect.listener_id}", effect.firing)
                if place not in actor.flying:
                    actor.flying[place] = None
                    actor.flying[place] = self._spawn(self._consult(actor, effect))
            case f.ResumeChild(child_id=child_id, by=by):
                self._spawn(self._quietly(child_id, c.Resume(by)))
            case f.CancelChild(child_id=child_id, by=by, reason=reason):
                self._spawn(self._quietly(child_id, c.Cancel(by, reason)))
            case _:
                place = (effect.work.listener_id, effect.work.claim)
                actor.flying[place] = None
                actor.flying[place] = self._spawn(self._perform(actor, effect))

    async def _perform(
        self, actor: Actor, effect: f.CallTool | f.RunSnippet | f.CallFunction | f.Conclude
    ) -> None:
        work = effect.work
        outcome: c.Outcome = c.NotSent()
        try:
            # The last look before the call: a run that is cancelled sends nothing more.
            if not self._closing and actor.state.status is not PlanInstanceStatus.CANCELLING:
                self._faults.reach("effect.before")
                listener = actor.state.plan.listener(work.listener_id)
                now = self.clock.now()
                late = partial(self._report_late, actor.run_id, work)
                outcome = await self._worker.perform(effect, listener, actor.state, now, late)
                self._faults.reach("effect.after")
        finally:
            if isinstance(effect, f.CallTool):
                self._permits.give_back()
        # Not in `finally`: what was cut off may have happened, and is never taken for unsent.
        actor.flying.pop((work.listener_id, work.claim), None)
        await self._report(actor.run_id, work, outcome, lazy=_is_pure(effect))

    async def _report(
        self, run_id: str, work: f.Work, outcome: c.Outcome, *, lazy: bool = False
    ) -> None:
        report = c.ReportOutcome(work.listener_id, work.firing, work.claim, outcome)
        await self._post(run_id, Letter(report, lazy=lazy))

    def _report_late(self, run_id: str, work: f.Work, outcome: c.Outcome) -> None:
        if not self._closing:
            self._spawn(self._report(run_id, work, outcome))

    async def _consult(self, actor: Actor, effect: f.ConsultPlanner) -> None:
        granted = await self._planner.retries_granted(effect, actor.committed)
        verdict = c.DecideRetry(effect.listener_id, effect.firing, granted)
        actor.flying.pop((f"consult:{effect.listener_id}", effect.firing), None)
        await self._post(actor.run_id, Letter(verdict))

    async def _quietly(self, run_id: str, command: c.Command) -> None:
        """A word to a child run that may come too late, which is no mistake."""
        while not self._closing:
            try:
                await self.submit(run_id, command)
                return
            except CallerError as error:
                log.info("%s to %s: %s", type(command).__name__, run_id, error)
                return
            except JournalUnavailable:
                await asyncio.sleep(RETRY_JOURNAL)

    async def _deliver(self, notice: Notice) -> None:
        body = json.loads(notice.payload)
        command = c.HearChild(child_id=notice.source_id, seq=notice.seq, **body)
        await self._post(notice.target_id, Letter(command, notice=(notice.source_id, notice.seq)))

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

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)


def _is_pure(effect: f.Effect) -> bool:
    """Work that touches nothing outside: what came of it can be found out again at no cost."""
    match effect:
        case f.RunSnippet(functions=functions):
            return not functions
        case _:
            return isinstance(effect, f.Conclude)
