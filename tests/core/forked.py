"""Forks in the simulator: a machine that goes on from an event of another one's life."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from machine import Machine
from promises import Auditor, Firing
from small_plans import WILL

from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.decide import blank
from holdfast.core.plan.fitting import refused_in
from holdfast.core.plan.forking import Origin, fork_of, origin_at, refuse_alive
from holdfast.core.plan.spent import spent_calls
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.fork import Fork
from holdfast.model.interaction import RUN_AGAIN
from holdfast.model.retry import FailureKind

FORK = "inst_000002"


def history(machine: Machine) -> list[tuple[float, e.PlanEvent]]:
    return [(record.at, cast(e.PlanEvent, decode(record))) for record in machine.records]


def origin_of(machine: Machine, seq: int | None = None) -> Origin:
    """As it stood after that event, or after its last one."""
    records = history(machine)
    return origin_at(blank(machine.run_id, machine.plan), records, seq or len(records))


def over(machine: Machine) -> Machine:
    """A person cancels it, and those below it; what it has in flight was never sent."""
    machine.submit(c.Cancel(WILL))
    for child_id, child in machine.children.items():
        if child.status == "cancelling":
            machine.hear(child_id, "cancelled")
    for effect in list(machine.flying.values()):
        machine.report(effect, c.NotSent())
    refuse_alive(machine.state)
    return machine


def forked(
    machine: Machine,
    seq: int | None = None,
    *,
    run_id: str = FORK,
    by: str = WILL,
    untouched: Collection[str] = (),
) -> Machine:
    """A fork that has begun, under an auditor who knows what its origin has done."""
    refuse_alive(machine.state)
    origin, now = origin_of(machine, seq), machine.state
    called = {*spent_calls(now), *(now.forked.called if now.forked else ())}
    fork = fork_of(origin, untouched, refused=refused_in(now), called=called)
    made = Machine(origin.state.plan, run_id=run_id, now=machine.now + 60, tools=machine.tools)
    made.auditor = ForkAuditor(machine, origin, fork, untouched)
    made.submit(c.StartFork(fork, by))
    return made


class ForkAuditor(Auditor):
    """What the origin's journal says is done by the fork's event never runs again, nor what was in
    flight then and succeeded later; of what else was in flight, and may not be repeated, a person
    is asked first."""

    def __init__(
        self, machine: Machine, origin: Origin, fork: Fork, untouched: Collection[str]
    ) -> None:
        super().__init__(machine.tools)
        told = [event for _, event in history(machine)]
        stood = len(told) - len(origin.later)
        by_then = told[: fork.seq]
        started = {_place(one) for one in by_then if isinstance(one, e.ListenerStarted)}
        self.done = started & set(_successes(by_then))
        self.calls_done = set(_calls(told[:stood]))
        flying = _flying(origin.state)
        self.done |= flying.keys() & set(_successes(origin.later))
        settled = set(_settled(origin.later))
        unrepeatable = {one for one, step in flying.items() if not _may_repeat(step)}
        anew = {one for one, step in flying.items() if step.child_id in untouched}
        self.doubtful = unrepeatable - self.done - settled - anew
        self.known_elsewhere = flying.keys() - unrepeatable - self.done - settled
        for step in fork.steps:
            self.returned[step.listener_id] = [one.result for one in step.calls]
            if step.carried is not None:
                self.in_hand.add(step.listener_id)

    def _judge_work(self, state: PlanState, effect: Any) -> None:
        super()._judge_work(state, effect)
        place = (effect.work.step_id, effect.work.firing)
        if isinstance(effect, f.Conclude):
            return
        assert place not in self.done, "what had been done was done again"
        if isinstance(effect, f.CallFunction):
            assert (*place, effect.index) not in self.calls_done, "a call was made again"
        if place in self.known_elsewhere:
            self.known_elsewhere.discard(place)
            assert not effect.work.key.startswith(effect.work.run_id), "another key, another effect"
        told = isinstance(effect, f.RunSnippet)  # whose call in flight is told as its result
        if place in self.doubtful and not told:
            assert _had_run_again(state, place), "nobody knows whether it happened, and it ran"


def _successes(events: Collection[e.PlanEvent]) -> list[Firing]:
    """Also of what came too late to count."""
    return [
        place
        for event in events
        if (place := _place(event)) is not None
        and (
            isinstance(event, e.ListenerSucceeded | e.LateResultKept)
            or (isinstance(event, e.ListenerFailed) and event.kept)
            or (isinstance(event, e.ChildHeard) and event.status == "done")
        )
    ]


def _calls(events: Collection[e.PlanEvent]) -> list[tuple[str, int, int]]:
    returned = [one for one in events if isinstance(one, e.FunctionReturned)]
    return [(one.listener_id, one.firing, one.index) for one in returned]


def _settled(events: Collection[e.PlanEvent]) -> list[Firing]:
    """Where the work itself has said that nothing came of it."""
    return [
        place
        for event in events
        if (place := _place(event)) is not None
        and (
            (
                isinstance(event, e.AttemptFailed | e.ListenerFailed)
                and event.failure.kind is not FailureKind.UNKNOWN
            )
            or isinstance(event, e.StepReleased | e.FunctionCalled | e.FunctionReturned)
            or (isinstance(event, e.QuestionOpened) and event.purpose == "missing")
        )
    ]


def _place(event: e.PlanEvent) -> Firing | None:
    """The listener's firing that it is about; the checks of the outcome are made anew."""
    step_id = getattr(event, "step_id", None) or getattr(event, "listener_id", None)
    firing = getattr(event, "firing", None)
    if step_id is None or firing is None or step_id.startswith(VERIFY):
        return None
    return step_id, firing


def _flying(state: PlanState) -> dict[Firing, StepState]:
    return {
        (listener_id, step.firing): step
        for listener_id, step in state.steps.items()
        if step.status is StepStatus.RUNNING and not step.pure
        if not listener_id.startswith(VERIFY)
    }


def _may_repeat(step: StepState) -> bool:
    if step.child_id is not None:
        return False
    return step.calling[2] if step.calling else step.idempotent


def _had_run_again(state: PlanState, place: Firing) -> bool:
    asked = (one for one in state.questions.values() if (one.step_id, one.firing) == place)
    return any(one.purpose == "unknown" and one.option_id == RUN_AGAIN for one in asked)
