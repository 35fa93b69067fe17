"""The engine: takes commands for runs, and gives their committed states.

It wires the parts of the runtime together; `runtime/turns.py` carries the runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.run.state import CLOCK, RunState
from holdfast.errors import (
    InvalidValue,
    JournalUnavailable,
    NotAllowed,
    NotFound,
    VersionConflict,
)
from holdfast.i18n.message import msg
from holdfast.journal.port import NOTHING, Attached, Drive, Journal
from holdfast.journal.shared import SharedJournal
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.run import RunStatus
from holdfast.runtime.actor import Actor, Envelope
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.clock import Clock, SystemClock, Timers
from holdfast.runtime.drives import Drives, HandedBack
from holdfast.runtime.executor import ConcurrencyLimit, Executor, FaultPoints, Planner, Worker
from holdfast.runtime.following import Follower
from holdfast.runtime.four_eyes import FourEyes
from holdfast.runtime.hints import Outbox
from holdfast.runtime.housekeeping import Housekeeper
from holdfast.runtime.hub import Hub, Watcher
from holdfast.runtime.identity import LOCAL, current
from holdfast.runtime.learning import Learning
from holdfast.runtime.machines import Definition, blank
from holdfast.runtime.registry import ActorRegistry, DefinitionRegistry
from holdfast.runtime.scheduler import Scheduler
from holdfast.runtime.slots import SharedLimit
from holdfast.runtime.store import Store
from holdfast.runtime.turns import TurnLoop

CONCURRENCY = 100
"""How many runs of a shared journal one process drives at a time."""

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
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.journal = journal
        self.definitions = DefinitionRegistry(journal)
        self.hub = Hub(journal)
        self.clock = clock or SystemClock()
        self.worker = worker
        self._actors = ActorRegistry(journal, self.definitions)
        self.four_eyes = FourEyes(journal, self._actors, four_eyes=four_eyes)
        self._limit = limit = (SharedLimit if journal.shared else ConcurrencyLimit)(max_effects)
        background = BackgroundTasks()
        shared = cast(SharedJournal, journal) if journal.shared else None
        self.outbox = Outbox(shared) if shared is not None else None
        self.drives: Drives | None = None
        self._births: dict[str, Drive] = {}
        if shared is not None and self.outbox is not None:
            self.drives = Drives(shared, background, self.outbox, concurrency)
        self._timers = Timers(self.drives or journal, self.clock, self._ring)
        executor = Executor(worker, planner, limit, self.clock, faults)
        self._turns = TurnLoop(
            journal,
            self.definitions,
            self._actors,
            Scheduler(worker, self.definitions, limit, self.four_eyes, self.clock),
            executor,
            limit,
            planner,
            self.four_eyes,
            self.hub,
            self._timers,
            self.clock,
            faults,
            background,
            self.drives,
        )
        self.learning = Learning(journal, self.clock, background, self._wake_early)
        self._turns.learns = self.learning.note
        loads = self.learning.keeper.loads
        executor.strained, executor.earns = loads.strained, loads.succeeded
        self.follower: Follower | None = None
        if shared is not None and self.drives is not None and self.outbox is not None:
            self.follower = Follower(
                shared, self._actors, self._turns, self.drives, self.hub, self.outbox.sender
            )
            self.follower.sweeps.append(self.learning.look)

    def _wake_early(self, run_id: str, step_id: str) -> None:
        """Another run has found that what this one waits for is there again."""
        self._turns.background.spawn(self._turns.post(run_id, Envelope(c.WakeEarly(step_id))))

    @property
    def housekeeper(self) -> Housekeeper:
        """Removes what is finished, of the runs that this engine has."""
        return Housekeeper(self.journal, self.clock, self._actors)

    @property
    def store(self) -> Store:
        """Where the application's parts keep values of their own."""
        return self.journal

    async def open(self) -> None:
        """Take up what a former owner left: notices unheard, runs with work in flight.

        Of a shared journal nothing is taken up: its runs are driven as jobs (`drive`).
        """
        if self.follower is not None:
            journal = cast(SharedJournal, self.journal)
            if isinstance(self._limit, SharedLimit):
                self._limit.start(journal.slots, lambda: journal.worker_id, self._turns.grant)
            self.follower.start()
            self._timers.start()
            return
        notices = await self.journal.notices()
        orphans = await self.journal.active_runs()
        self._actors.orphans.update(orphans)
        spawn = self._turns.background.spawn
        for run_id in sorted(orphans):
            spawn(self._turns.wake(run_id))
        for notice in notices:
            spawn(self._turns.deliver(notice))
        self._timers.start()

    async def close(self, grace: float = 10.0) -> None:
        """Start nothing more, let what is in flight end, and keep the rest for later."""
        self._turns.closing = True
        await self.stop_looking()
        self._hang_up()
        await self._turns.background.finish(grace)
        await self.learning.close()
        await self.worker.close()
        for actor in tuple(self._actors.by_id.values()):
            if actor.unsaved or actor.mailbox:
                await self._turns.carry(actor)
            actor.answer_readers(JournalUnavailable("the application is closed: start it again"))
        if self.drives is not None:
            self.drives.hand_back()
            await self.drives.outbox.close()
        self.hub.close()

    async def stop_looking(self) -> None:
        """No timer rings any more, and nothing is heard of others. Where nothing was driven yet the
        engine may be opened again."""
        await self._timers.stop()
        if self.follower is not None:
            await self.follower.stop()
        if isinstance(self._limit, SharedLimit):
            await self._limit.stop()

    def holds(self, job: int) -> bool:
        """Whether a run is driven here under this job of the dispatcher's."""
        return self.drives is not None and self.drives.holds(job)

    def hand_back(self, run_id: str, reason: str, delay: float) -> None:
        """Have a run that is driven here driven elsewhere."""
        if self.drives is not None and (actor := self.drives.driven.get(run_id)) is not None:
            self.drives.end(actor, HandedBack(run_id, reason, delay))

    async def attend(self, run_id: str) -> None:
        """A consumer in this process is about to move a conversation."""
        if self.drives is None or (drive := await self.drives.consume(run_id)) is None:
            return
        try:
            actor = await self._turns.find(run_id)
        except NotFound:
            self._births[run_id] = drive
        except BaseException:
            self.drives.leave(run_id)
            raise
        else:
            self.drives.begin(actor, drive)

    async def leave(self, run_id: str) -> None:
        """The consumer of a conversation has left. A worker drives one that goes on without."""
        self._births.pop(run_id, None)
        if self.drives is not None and (wake := self.drives.leave(run_id)) is not None:
            with suppress(VersionConflict):  # who has moved it on has it driven
                await self.journal.append(wake)

    async def drive(
        self, run_id: str, drive: Drive, begun: Callable[[], None] = lambda: None
    ) -> None:
        """Drive a run of a shared journal until nothing of it goes on by itself.

        HandedBack where it is to be driven elsewhere. Cancelled, it is driven on for as long as no
        other driver takes it over.
        """
        assert self.drives is not None
        if self._turns.closing:
            raise HandedBack(run_id, "this process ends")
        version = await cast(SharedJournal, self.journal).take(run_id, drive)
        if not version:
            return
        notices = await self.journal.notices(run_id)
        actor = await self._turns.find(run_id)
        if self._turns.closing:  # by now: what begins later would never be let go of
            raise HandedBack(run_id, "this process ends")
        done = self.drives.begin(actor, drive, version)
        begun()
        for message in notices:
            self._turns.put(actor, self._turns.delivered(message))
        self._turns.put(actor, Envelope(c.Tick()))
        await asyncio.shield(done)

    def _hang_up(self) -> None:
        """Asking a model changes nothing: a reply need not be waited for, it is asked for again."""
        for actor in [one for one in self._actors.by_id.values() if one.in_flight]:
            for effect in actor.machine.effects_in_flight(actor.committed):
                if isinstance(effect, f.AskModel):
                    self._turns.dispatch(actor, f.StopModel(effect.work))

    async def _ring(self, run_id: str) -> None:
        await self.submit(run_id, c.Tick())

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
        """A new run under an id of its own; NotAllowed where the id is in use. `further` commands
        are decided with the first."""
        command = self._signed(command)
        await self.definitions.keep(definition, self.clock.now())
        if isinstance(command, c.StartRun):
            command = replace(command, authors=self.definitions.authors(definition.digest))
        if run_id in self._actors.by_id:
            raise NotAllowed(msg("there already is a run {id}", id=run_id))
        self._actors.by_id[run_id] = actor = Actor.of(blank(run_id, definition))
        if self.drives is not None:
            self.drives.adopt(actor, self._births.pop(run_id, None))
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
        actor = await self._turns.current(run_id)
        return await self._hand_in(actor, command, attached)

    async def state(self, run_id: str) -> RunState:
        """The run as it is on disk."""
        return await self._turns.read(run_id)

    async def state_since(self, run_id: str, version: int) -> RunState:
        """As `state`, at `version` or later: a reader of the disk may be ahead of the engine, which
        learns a moment later that an event is there."""
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
            # Let other tasks have a turn: a caller that polls must not keep the loop to itself.
            await asyncio.sleep(0)
            driven = self.drives.driven.get(run_id) if self.drives is not None else None
            # What happens to a run that is driven here is heard of here: the disk is not asked.
            if driven is None or settled(driven.committed):
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
        actor = await self._turns.find(run_id)
        await self._turns.abandon(actor)
        await self.submit(run_id, c.Recover(crashed=False))

    def _hand_in(
        self, actor: Actor, command: c.Command, attached: Attached
    ) -> asyncio.Future[RunState]:
        """The reply to a caller's command. It is decided in a task of the engine's own: the
        caller may be cancelled, and that must not tear the others' turn apart."""
        reply: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()
        self._turns.put(actor, Envelope(command, reply, acting=current(), attached=attached))
        return reply

    def _signed(self, command: c.Command) -> c.Command:
        """With the name under which the caller acts, where the command was given without one."""
        by = getattr(command, "by", None)
        if by == "" and (self.four_eyes.enabled or isinstance(command, _UNSIGNED)):
            acts, otherwise = current(), LOCAL if self.four_eyes.enabled else ""
            by = otherwise if acts is None else acts.who
            command = cast(c.Command, replace(cast(c.StartOver, command), by=by))
        if by == CLOCK:
            message = msg("{name} is a name of ours: give that of a person or a service", name=by)
            raise InvalidValue(message, "by")
        return command
