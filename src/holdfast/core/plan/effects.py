"""From events to effects: what must be done once the events are on disk.

An effect is worked out from the state, not remembered: after a crash the same
function gives the same effect for what was in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, assert_never

from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import EMPTY, StepState, asks
from holdfast.core.run.tables import StepStatus
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.plan import (
    AgentAction,
    CodeAction,
    HumanAction,
    PlanAction,
    PlanInstanceStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.record import constructor
from holdfast.model.retry import Failure, FailureKind

_RUNNING: Final = StepStatus.RUNNING
_ERROR: Final = PlanInstanceStatus.ERROR
_CANCELLING: Final = PlanInstanceStatus.CANCELLING
_OVER: Final = (PlanInstanceStatus.DONE, PlanInstanceStatus.CANCELLED)
_claimed: Final = constructor(f.Work)
_call_tool: Final = constructor(f.CallTool)


def effects_in_flight(state: PlanState) -> tuple[f.Effect, ...]:
    """What a new owner of the run must take up again."""
    found: list[f.Effect] = []
    for listener_id, step in sorted(state.steps.items()):
        if step.status is StepStatus.CONSULTING:
            found.append(_consultation(state, listener_id, step))
        elif step.status is StepStatus.RUNNING and not step.awaits_child:
            found.append(_work(state, listener_id, step))
        elif step.status is StepStatus.RUNNING:
            found.extend(_word_to_child(state, str(step.child_id), step))
    return tuple(found)


def _word_to_child(state: PlanState, child_id: str, step: StepState) -> Iterator[f.Effect]:
    """A child run goes on by itself, but may not have heard what its parent wants."""
    if state.cancelled_by is not None:
        yield f.CancelChild(child_id, state.cancelled_by, "cancelled")
    elif step.resuming:
        yield f.ResumeChild(child_id, state.started_by)


def goes_on_by_itself(state: PlanState) -> bool:
    """Something is under way or ready to start, so a new owner has work to take up."""
    status = state.status
    if status in _OVER:
        return False
    if status is _CANCELLING:
        return state.in_flight > 0
    if status is _ERROR or (state.plan.holds and asks(state)):
        return _under_way(state)
    return state.active > state.resting


def _under_way(state: PlanState) -> bool:
    """While everything else is held back, only what has already started goes on."""
    return any(
        step.status is StepStatus.CONSULTING
        or (step.status is StepStatus.RUNNING and (step.resuming or not step.awaits_child))
        for step in state.steps.values()
    )


def _started(
    state: PlanState, event: e.ListenerStarted | e.FunctionCalled | e.FunctionReturned
) -> Iterable[f.Effect]:
    step_id = event.listener_id
    step = state.steps[step_id]
    return (_work(state, step_id, step),) if step.status is _RUNNING else ()


def _failed(state: PlanState, event: e.ListenerFailed) -> Iterable[f.Effect]:
    step = state.steps[event.listener_id]
    if step.status is StepStatus.CONSULTING:
        yield _consultation(state, event.listener_id, step)


def _resumed(state: PlanState, event: e.RunResumed) -> Iterable[f.Effect]:
    return [f.ResumeChild(str(state.steps[one].child_id), event.by) for one in event.children]


def _skipped(state: PlanState, event: e.ListenerSkipped) -> Iterable[f.Effect]:
    return _abandoned(state, (event.listener_id,), event.by, event.reason)


def _edited(state: PlanState, event: e.TasksEdited) -> Iterable[f.Effect]:
    return _abandoned(state, event.closed, event.by, event.reason)


def _cancelled(state: PlanState, event: e.CancelRequested) -> Iterable[f.Effect]:
    return _abandoned(state, sorted(state.steps), event.by, event.reason)


EFFECTS: Final[Mapping[type, Callable[[PlanState, Any], Iterable[f.Effect]]]] = {
    e.ListenerStarted: _started,
    e.FunctionCalled: _started,
    e.FunctionReturned: _started,
    e.ListenerFailed: _failed,
    e.RunResumed: _resumed,
    e.ListenerSkipped: _skipped,
    e.TasksEdited: _edited,
    e.CancelRequested: _cancelled,
}
"""The effects of events that have just been decided; the state is the one after them all."""


def _abandoned(
    state: PlanState, listener_ids: Iterable[str], by: str, reason: str
) -> Iterator[f.Effect]:
    """Child runs that nobody waits for any more; one in error would wait for ever."""
    for listener_id in listener_ids:
        step = state.steps[listener_id]
        over = step.child_status in _OVER
        if step.awaits_child and step.status in _LEFT_BEHIND and not over:
            yield f.CancelChild(str(step.child_id), by, reason)


_LEFT_BEHIND = (StepStatus.RUNNING, StepStatus.SKIPPED, StepStatus.STOPPED)


def _work(state: PlanState, listener_id: str, step: StepState) -> f.Effect:
    """The generation in its key rises only after a failure that the tool itself answered."""
    listener = state.plan.listeners[listener_id]
    run_id, firing, timeout = state.run_id, step.firing, listener.listener.timeout
    key = f"{run_id}:{listener_id}:{firing}:{step.generation}"
    work = _claimed(run_id, listener_id, firing, step.attempt, step.claim, key, timeout)
    if step.carried is not None:
        return f.Conclude(work, step.carried[0])
    if step.calling is not None:
        function, args, idempotent = step.calling
        return f.CallFunction(work, len(step.calls), function, args, idempotent)
    if listener.tool is not None:
        return _call_tool(work, listener.tool, step.args or EMPTY, step.idempotent, step.consent)
    match listener.action:
        case CodeAction(code_snippet=snippet, functions=functions):
            return f.RunSnippet(work, snippet, functions, step.calls, step.provided, step.clock)
        case PlanAction(plan_id=plan_id):
            values = step.args or EMPTY
            return f.StartChild(work, str(step.child_id), plan_id, values, state.root_id)
        case AgentAction(agent_id=agent_id):
            prompt = str((step.args or EMPTY).get("prompt", ""))
            child_id, only = str(step.child_id), listener.verifies
            return f.StartAgent(work, child_id, agent_id, prompt, state.root_id, only)
        case HumanAction() | ToolAction() | WaitAction():
            raise AssertionError(f"{listener_id} has no work to do outside")
        case _:
            assert_never(listener.action)


def _consultation(state: PlanState, listener_id: str, step: StepState) -> f.ConsultPlanner:
    task_id = state.plan.listener(listener_id).target or state.plan.main
    failure = step.failure or Failure(FailureKind.TRANSIENT, "")
    return f.ConsultPlanner(state.run_id, listener_id, step.firing, task_id, failure, step.retries)
