"""Handing effects over to the world, and bringing what came of them back to the run.

An effect of work is performed by the task that carries its run; further ones of the same turn
have tasks of their own.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, assert_never

from holdfast.core.plan.state import PlanState
from holdfast.core.run.tables import StepStatus
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.runtime.actor import Actor, Envelope, envelope, report, report_outcome
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.clock import Clock
from holdfast.runtime.concurrency import ConcurrencyLimit
from holdfast.runtime.delivery import Delivery
from holdfast.runtime.hub import Hub
from holdfast.runtime.ports import FaultPoints, Performed, Planner
from holdfast.runtime.tracebacks import noted
from holdfast.runtime.worker import Worker
from holdfast.work.ending import ends_from_without
from holdfast.work.failing import failed

log = logging.getLogger("holdfast")

_NOT_SENT: Final = c.NotSent()
_CANCELLING: Final = RunStatus.CANCELLING
_RUNNING: Final = StepStatus.RUNNING
_FAILURES: Final = (c.Failed, c.Lost)


class Executor:
    """Performs effects; the worker tells it what comes back besides their outcomes."""

    def __init__(
        self,
        worker: Worker,
        planner: Planner,
        concurrency: ConcurrencyLimit,
        clock: Clock,
        faults: FaultPoints | None,
        delivery: Delivery,
        background: BackgroundTasks,
        hub: Hub,
    ) -> None:
        self._worker = worker
        self._planner = planner
        self._concurrency = concurrency
        self._clock = clock
        self._faults = faults
        self._delivery = delivery
        self._spawn = background.spawn
        self._hub = hub

    def dispatch(self, actor: Actor, effect: f.Effect) -> None:
        """Carry out an effect whose start is on disk."""
        match effect:
            case effect if isinstance(effect, Performed):
                place = (effect.work.step_id, effect.work.claim)
                actor.flying[place] = self._spawn(self._delivery.carry(actor, effect))
            case f.ConsultPlanner():
                place = (f"consult:{effect.listener_id}", effect.firing)
                if place not in actor.flying:
                    actor.flying[place] = self._spawn(self._consult(actor, effect, place))
            case f.ResumeChild(child_id=child_id, by=by):
                self._spawn(self._delivery.post(child_id, Envelope(c.Resume(by))))
            case f.CancelChild(child_id=child_id, by=by, reason=reason):
                self._spawn(self._delivery.post(child_id, Envelope(c.Cancel(by, reason))))
            case f.StopModel(work=work):
                self._spawn(self._stop_model(actor, work))
            case f.StartChild() | f.StartAgent():
                raise AssertionError("a child run is born with its parent's start")
            case _:
                assert_never(effect)

    async def perform(self, actor: Actor, effect: Performed, task: asyncio.Task[Any]) -> Envelope:
        """One attempt, made by `task`, and what came of it as a letter to the run."""
        work = effect.work
        place = (work.step_id, work.claim)
        actor.flying[place] = task
        called = isinstance(effect, f.CallTool)
        faults = self._faults
        outcome: c.Outcome = _NOT_SENT
        # The last look before the call: a run that is cancelled sends nothing more.
        sends = not self._delivery.closing and actor.builder.state.status is not _CANCELLING
        try:
            if sends:
                if faults is not None:
                    faults.reach("effect.before")
                outcome = await self._worker.perform(effect, actor, self)
        except BaseException as error:
            if ends_from_without(error, task):
                raise
            outcome = failed(error)
        finally:
            if called:
                if self._concurrency.hungry:
                    self._concurrency.give_back()
                else:
                    self._concurrency.free += 1
        if sends and faults is not None:
            faults.reach("effect.after")
        # Not in `finally`: what was cut off may have happened, and is never taken for unsent.
        actor.flying.pop(place, None)
        if called and type(outcome) not in _FAILURES:
            return envelope(report_outcome(work.step_id, work.firing, work.claim, outcome))
        return self._envelope(work, outcome, lazy=is_pure(effect))

    def wants(self, actor: Actor, work: f.Work) -> bool:
        state = actor.committed
        step = state.steps.get(work.step_id)
        waits = step is not None and step.status is _RUNNING and step.claim == work.claim
        return waits and not self._delivery.closing and state.status is not _CANCELLING

    def failed(self, effect: Performed, error: BaseException) -> Envelope:
        """That an attempt ended with `error`."""
        return self._envelope(effect.work, failed(error))

    async def _stop_model(self, actor: Actor, work: f.Work) -> None:
        """A reply that nobody waits for need not be waited for; asking changed nothing."""
        asking = actor.flying.pop((work.step_id, work.claim), None)
        if asking is not None and asking.cancel():
            await asyncio.gather(asking, return_exceptions=True)
            await self._delivery.post(actor.run_id, Envelope(report(work, c.NotSent())))

    async def abandon(self, actor: Actor) -> None:
        """Break off whatever this run has in flight; nobody waits for it any more."""
        flying = tuple(actor.flying.values())
        actor.flying.clear()
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)

    def late(self, work: f.Work, outcome: c.Outcome) -> None:
        if isinstance(outcome, c.NotSent):
            outcome = c.Failed(
                Failure(FailureKind.TRANSIENT, msg("no thread was free for it in time"))
            )
        if not self._delivery.closing:
            self._spawn(self._delivery.post(work.run_id, self._envelope(work, outcome)))

    def live(self, work: f.Work, text: str | None) -> None:
        self._hub.speak(work.run_id, work.claim, text)

    def _envelope(self, work: f.Work, outcome: c.Outcome, *, lazy: bool = False) -> Envelope:
        attached = noted(work, outcome, self._clock.now())
        return Envelope(report(work, outcome), lazy=lazy, attached=attached)

    async def _consult(
        self, actor: Actor, effect: f.ConsultPlanner, place: tuple[str, int]
    ) -> None:
        committed = actor.committed
        assert isinstance(committed, PlanState)
        advice = await self._planner.advise(effect, committed)
        actor.flying.pop(place, None)
        advised = Envelope(c.Advise(effect.listener_id, effect.firing, advice))
        await self._delivery.post(actor.run_id, advised)


def is_pure(effect: f.Effect) -> bool:
    """Work that touches nothing outside: what came of it can be found out again at no cost."""
    if isinstance(effect, f.RunSnippet):
        return not effect.functions
    return isinstance(effect, f.Conclude)
