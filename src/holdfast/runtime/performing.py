"""Handing effects over to the world, and bringing what came of them back to the run.

An effect of work is performed by the task that carries its run; further ones of the same turn
have tasks of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.errors import CallerError, JournalUnavailable
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.run import RunStatus
from holdfast.runtime.actor import Actor, Letter, report
from holdfast.runtime.clock import Clock
from holdfast.runtime.failing import failed
from holdfast.runtime.faults import FaultPoints
from holdfast.runtime.permits import Permits
from holdfast.runtime.ports import Performed, Planner, Words, Worker
from holdfast.runtime.tracebacks import noted
from holdfast.work.ending import ends_from_without

log = logging.getLogger("holdfast")

_NOT_SENT = c.NotSent()
_CANCELLING = RunStatus.CANCELLING

RETRY_JOURNAL = 0.25
"""Seconds until a child run is told again what a journal that was down kept from it."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """How words reach runs: `post` finds the run, `take` has its actor at hand; `live` ones
    reach only those who listen now. `carry` performs an effect and goes on with its run."""

    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    carry: Callable[[Actor, Performed], Coroutine[Any, Any, None]]
    post: Callable[[str, Letter], Awaitable[None]]
    take: Callable[[Actor, Letter], Awaitable[None]]
    submit: Callable[[str, c.Command], Awaitable[RunState]]
    live: Callable[[str, int, str | None], None]


class Performer:
    def __init__(
        self,
        worker: Worker,
        planner: Planner,
        permits: Permits,
        clock: Clock,
        faults: FaultPoints | None,
        deliveries: Deliveries,
    ) -> None:
        self._worker = worker
        self._planner = planner
        self._permits = permits
        self._clock = clock
        self._faults = faults
        self._to = deliveries
        self.closing = False

    async def close(self) -> None:
        await self._worker.close()

    def dispatch(self, actor: Actor, effect: f.Effect) -> None:
        """Carry out an effect whose start is on disk."""
        match effect:
            case effect if isinstance(effect, Performed):
                place = (effect.work.step_id, effect.work.claim)
                actor.flying[place] = self._to.spawn(self._to.carry(actor, effect))
            case f.ConsultPlanner():
                place = (f"consult:{effect.listener_id}", effect.firing)
                if place not in actor.flying:
                    actor.flying[place] = self._to.spawn(self._consult(actor, effect, place))
            case f.ResumeChild(child_id=child_id, by=by):
                self._to.spawn(self._tell_child(child_id, c.Resume(by)))
            case f.CancelChild(child_id=child_id, by=by, reason=reason):
                self._to.spawn(self._tell_child(child_id, c.Cancel(by, reason)))
            case f.StopModel(work=work):
                self._to.spawn(self._stop_model(actor, work))
            case f.StartChild() | f.StartAgent():
                raise AssertionError("a child run is born with its parent's start")
            case _:
                assert_never(effect)

    async def perform(self, actor: Actor, effect: Performed, task: asyncio.Task[Any]) -> Letter:
        """One attempt, made by `task`, and what came of it as a letter to the run."""
        work = effect.work
        place = (work.step_id, work.claim)
        actor.flying[place] = task
        outcome: c.Outcome = _NOT_SENT
        # The last look before the call: a run that is cancelled sends nothing more.
        sends = not self.closing and actor.state.status is not _CANCELLING
        try:
            if sends:
                if self._faults is not None:
                    self._faults.reach("effect.before")
                words = Words(
                    partial(self._report_late, actor.run_id, work),
                    partial(self._to.live, actor.run_id, work.claim),
                )
                outcome = await self._worker.perform(effect, actor.state, self._clock.now(), words)
        except BaseException as error:
            if ends_from_without(error, task):
                raise
            outcome = failed(error)
        finally:
            if isinstance(effect, f.CallTool):
                self._permits.give_back()
        if sends and self._faults is not None:
            self._faults.reach("effect.after")
        # Not in `finally`: what was cut off may have happened, and is never taken for unsent.
        actor.flying.pop(place, None)
        if isinstance(effect, f.CallTool) and not isinstance(outcome, c.Failed | c.Lost):
            return Letter(c.ReportOutcome(work.step_id, work.firing, work.claim, outcome))
        return self._letter(work, outcome, lazy=is_pure(effect))

    def failed(self, effect: Performed, error: BaseException) -> Letter:
        """That an attempt ended with `error`."""
        return self._letter(effect.work, failed(error))

    async def _stop_model(self, actor: Actor, work: f.Work) -> None:
        """A reply that nobody waits for need not be waited for; asking changed nothing."""
        asking = actor.flying.pop((work.step_id, work.claim), None)
        if asking is not None and asking.cancel():
            await asyncio.gather(asking, return_exceptions=True)
            await self._to.take(actor, Letter(report(work, c.NotSent())))

    async def abandon(self, actor: Actor) -> None:
        """Break off whatever this run has in flight; nobody waits for it any more."""
        flying = tuple(actor.flying.values())
        actor.flying.clear()
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)

    def _report_late(self, run_id: str, work: f.Work, outcome: c.Outcome) -> None:
        if not self.closing:
            self._to.spawn(self._post(run_id, self._letter(work, outcome)))

    def _letter(self, work: f.Work, outcome: c.Outcome, *, lazy: bool = False) -> Letter:
        attached = noted(work, outcome, self._clock.now())
        return Letter(report(work, outcome), lazy=lazy, attached=attached)

    async def _post(self, run_id: str, letter: Letter) -> None:
        await self._to.post(run_id, letter)

    async def _consult(
        self, actor: Actor, effect: f.ConsultPlanner, place: tuple[str, int]
    ) -> None:
        committed = actor.committed
        assert isinstance(committed, PlanState)
        advice = await self._planner.advise(effect, committed)
        actor.flying.pop(place, None)
        await self._to.take(actor, Letter(c.Advise(effect.listener_id, effect.firing, advice)))

    async def _tell_child(self, run_id: str, command: c.Command) -> None:
        """A word to a child run that may come too late, which is no mistake."""
        while not self.closing:
            try:
                await self._to.submit(run_id, command)
                return
            except CallerError as error:
                log.info("%s to %s: %s", type(command).__name__, run_id, error)
                return
            except JournalUnavailable:
                await asyncio.sleep(RETRY_JOURNAL)


def is_pure(effect: f.Effect) -> bool:
    """Work that touches nothing outside: what came of it can be found out again at no cost."""
    match effect:
        case f.RunSnippet(functions=functions):
            return not functions
        case _:
            return isinstance(effect, f.Conclude)
