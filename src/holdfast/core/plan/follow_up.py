"""From events to effects: what must be done once the events are on disk.

An effect is worked out from the state, not remembered: after a crash the same
function gives the same effect for what was in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from holdfast.core.plan.state import PlanState
from holdfast.core.run.moves import asks
from holdfast.core.run.state import EMPTY, StepState
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
    WhilePaused,
)
from holdfast.model.retry import Failure, FailureKind

_RUNNING: Final = StepStatus.RUNNING


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
    match state.status:
        case PlanInstanceStatus.DONE | PlanInstanceStatus.CANCELLED:
            return False
        case PlanInstanceStatus.CANCELLING:
            return state.in_flight > 0
        case PlanInstanceStatus.ERROR:
            return _under_way(state)
        case _:
            held = state.plan.plan.while_paused is WhilePaused.HOLD and asks(state)
            return _under_way(state) if held else state.active > state.resting


def _under_way(state: PlanState) -> bool:
    """While everything else is held back, only what has already started goes on."""
    return any(
        step.status is StepStatus.CONSULTING
        or (step.status is StepStatus.RUNNING and (step.resuming or not step.awaits_child))
        for step in state.steps.values()
    )


def effects_of(state: PlanState, event: e.PlanEvent) -> Iterable[f.Effect]:
    """The effects of an event that has just been decided; `state` is the one after them all."""
    match event:
        case e.ListenerSucceeded():
            return ()
        case e.ListenerStarted() | e.FunctionCalled() | e.FunctionReturned():
            step = state.steps[event.listener_id]
            if step.status is _RUNNING:
                return (_work(state, event.listener_id, step),)
        case e.ListenerFailed():
            step = state.steps[event.listener_id]
            if step.status is StepStatus.CONSULTING:
                return (_consultation(state, event.listener_id, step),)
        case e.RunResumed(children=children, by=by):
            return [f.ResumeChild(str(state.steps[one].child_id), by) for one in children]
        case e.ListenerSkipped(listener_id=listener_id, by=by, reason=reason):
            return _abandoned(state, (listener_id,), by, reason)
        case e.TasksEdited(closed=closed, by=by, reason=reason):
            return _abandoned(state, closed, by, reason)
        case e.CancelRequested(by=by, reason=reason):
            return _abandoned(state, sorted(state.steps), by, reason)
    return ()


def _abandoned(
    state: PlanState, listener_ids: Iterable[str], by: str, reason: str
) -> Iterator[f.Effect]:
    """Child runs that nobody waits for any more; one in error would wait for ever."""
    for listener_id in listener_ids:
        step = state.steps[listener_id]
        over = step.child_status in (PlanInstanceStatus.DONE, PlanInstanceStatus.CANCELLED)
        if step.awaits_child and step.status in _LEFT_BEHIND and not over:
            yield f.CancelChild(str(step.child_id), by, reason)


_LEFT_BEHIND = (StepStatus.RUNNING, StepStatus.SKIPPED, StepStatus.STOPPED)


def _work(state: PlanState, listener_id: str, step: StepState) -> f.Effect:
    """The generation in its key rises only after a failure that the tool itself answered."""
    listener = state.plan.listeners[listener_id]
    run_id, firing, timeout = state.run_id, step.firing, listener.listener.timeout
    key = f"{run_id}:{listener_id}:{firing}:{step.generation}"
    work = f.Work(run_id, listener_id, firing, step.attempt, step.claim, key, timeout)
    if step.carried is not None:
        return f.Conclude(work, step.carried[0])
    if step.calling is not None:
        function, args, idempotent = step.calling
        return f.CallFunction(work, len(step.calls), function, args, idempotent)
    match listener.action:
        case ToolAction(tool=tool):
            args = step.args or EMPTY
            return f.CallTool(work, tool, args, step.idempotent, step.consent)
        case CodeAction(code_snippet=snippet, functions=functions):
            return f.RunSnippet(work, snippet, functions, step.calls, step.provided, step.clock)
        case PlanAction(plan_id=plan_id):
            values = step.args or EMPTY
            return f.StartChild(work, str(step.child_id), plan_id, values, state.root_id)
        case AgentAction(agent_id=agent_id):
            prompt = str((step.args or EMPTY).get("prompt", ""))
            child_id, only = str(step.child_id), listener.verifies
            return f.StartAgent(work, child_id, agent_id, prompt, state.root_id, only)
        case HumanAction():
            raise AssertionError(f"{listener_id} has no work to do outside")
        case _:
            assert_never(listener.action)


def _consultation(state: PlanState, listener_id: str, step: StepState) -> f.ConsultPlanner:
    task_id = state.plan.listener(listener_id).target or state.plan.main
    failure = step.failure or Failure(FailureKind.TRANSIENT, "")
    return f.ConsultPlanner(state.run_id, listener_id, step.firing, task_id, failure, step.retries)
