"""What the events of one listener's firing do to the state."""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import fold
from holdfast.core.plan.state import NEW_STEP, PlanState, changed, evolve
from holdfast.core.plan.tables import StepMove, StepStatus, next_step
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.plan import PlanInstanceStatus
from holdfast.model.retry import FailureKind


def started(state: PlanState, event: e.ListenerStarted) -> PlanState:
    step = state.steps[event.listener_id]
    return fold.move_step(
        state,
        event.listener_id,
        StepMove.START,
        attempt=event.attempt,
        generation=event.generation,
        claim=state.version,
        clock=step.clock if step.calls else state.updated_at,
        args=event.args,
        consent=event.consent,
        idempotent=event.idempotent,
        pure=event.pure,
        child_id=event.child_id or step.child_id,
        failure=None,
    )


def succeeded(state: PlanState, event: e.ListenerSucceeded) -> PlanState:
    step = state.steps[event.listener_id]
    done = evolve(
        NEW_STEP,
        firing=step.firing,
        status=next_step(step.status, StepMove.SUCCEED),
        attempt=step.attempt,
        generation=step.generation,
        retries=step.retries,
        pending=step.pending,
        child_id=step.child_id,
    )
    state = fold.put_step(fold.progressed(state), event.listener_id, step, done)
    return fold.follow_pending(state, event.listener_id)


def attempt_failed(state: PlanState, event: e.AttemptFailed) -> PlanState:
    """Only a failure that the tool itself answered calls for a new key."""
    answered = event.failure.kind is not FailureKind.UNKNOWN
    timers = state.timers.insert(fold.retry_timer(event.listener_id), event.retry_at)
    return fold.move_step(
        fold.progressed(changed(state, timers=timers)),
        event.listener_id,
        StepMove.BACK_OFF,
        failure=event.failure,
        generation=state.steps[event.listener_id].generation + answered,
        calling=None,
    )


def failed(state: PlanState, event: e.ListenerFailed) -> PlanState:
    state = fold.progressed(state)
    carried = (event.result,) if event.kept else None
    changes = {"failure": event.failure, "carried": carried, "calling": None}
    if event.handled:
        return _handled(state, event.listener_id, changes)
    move = StepMove.GIVE_UP if event.final else StepMove.FAIL
    state = fold.move_step(state, event.listener_id, move, **changes)
    return fold.add_failed(state, event.listener_id) if event.final else state


def _handled(state: PlanState, listener_id: str, changes: dict[str, Any]) -> PlanState:
    state = fold.move_step(state, listener_id, StepMove.SUCCEED, **changes)
    return fold.follow_pending(state, listener_id)


def woken(state: PlanState, event: e.ListenerWoken) -> PlanState:
    timers = state.timers.discard(fold.retry_timer(event.listener_id))
    return fold.move_step(changed(state, timers=timers), event.listener_id, StepMove.WAKE)


def released(state: PlanState, event: e.ListenerReleased) -> PlanState:
    """As if it had not started; a run that is being cancelled will not start it again."""
    cancelling = state.status is PlanInstanceStatus.CANCELLING
    attempt = state.steps[event.listener_id].attempt - 1
    move = StepMove.STOP if cancelling else StepMove.RELEASE
    state = fold.progressed(state)
    return fold.move_step(state, event.listener_id, move, attempt=attempt, calling=None)


def skipped(state: PlanState, listener_id: str) -> PlanState:
    """Only this firing is passed over: a repeating listener still follows its other triggers."""
    return fold.follow_pending(closed(state, listener_id), listener_id)


def closed(state: PlanState, listener_id: str) -> PlanState:
    timers = state.timers.discard(fold.retry_timer(listener_id))
    state = fold.unfail(changed(state, timers=timers), listener_id)
    return fold.move_step(state, listener_id, StepMove.SKIP)


def outcome_lost(state: PlanState, event: e.OutcomeLost) -> PlanState:
    """A run that is being cancelled asks nobody: the step ends here, its outcome unknown."""
    if state.status is not PlanInstanceStatus.CANCELLING:
        return state
    paused = state.steps[event.listener_id].child_status == PlanInstanceStatus.PAUSE
    state = changed(state, paused_children=state.paused_children - paused)
    return fold.move_step(state, event.listener_id, StepMove.STOP, child_status=None)


def function_called(state: PlanState, event: e.FunctionCalled) -> PlanState:
    calling = (event.function, event.args, event.idempotent)
    return fold.move_step(state, event.listener_id, None, calling=calling, claim=state.version)


def function_returned(state: PlanState, event: e.FunctionReturned) -> PlanState:
    step = state.steps[event.listener_id]
    assert step.calling is not None
    function, args, _ = step.calling
    calls = (*step.calls, RecordedCall(function, args, event.result))
    late = step.status is StepStatus.WAITING
    return fold.move_step(
        fold.progressed(state),
        event.listener_id,
        StepMove.GO_ON if late else None,
        calls=calls,
        calling=None,
        claim=state.version,
    )


def check_concluded(state: PlanState, event: e.CheckConcluded) -> PlanState:
    verification = {**state.verification, event.listener_id: event.verdict}
    state = fold.progressed(changed(state, verification=verification))
    if event.verdict != "failed":
        return fold.move_step(state, event.listener_id, StepMove.SUCCEED)
    state = fold.move_step(state, event.listener_id, StepMove.GIVE_UP)
    return fold.add_failed(state, event.listener_id)
