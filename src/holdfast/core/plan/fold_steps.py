"""What the events of one listener's firing do to the state."""

from __future__ import annotations

from typing import Any, Final

from holdfast.core.plan import fold
from holdfast.core.plan.state import PlanState
from holdfast.core.run import moves
from holdfast.core.run.state import NEW_STEP, changed
from holdfast.core.run.tables import StepMove, StepStatus
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall

_START: Final = StepMove.START
_SUCCEED: Final = StepMove.SUCCEED


def started(state: PlanState, event: e.ListenerStarted) -> PlanState:
    step = state.steps[event.listener_id]
    return moves.move_step(
        state,
        event.listener_id,
        _START,
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
    """What the firing needed is forgotten; how often it was tried is not."""
    step = state.steps[event.listener_id]
    moves.move_step(
        state,
        event.listener_id,
        _SUCCEED,
        NEW_STEP,
        firing=step.firing,
        attempt=step.attempt,
        generation=step.generation,
        retries=step.retries,
        pending=step.pending,
        repeats=step.repeats,
        child_id=step.child_id,
    )
    if state.recoveries:
        moves.progressed(state)
    return fold.follow_pending(state, event.listener_id) if step.pending else state


def failed(state: PlanState, event: e.ListenerFailed) -> PlanState:
    state = moves.progressed(state)
    carried = (event.result,) if event.kept else None
    changes = {"failure": event.failure, "carried": carried, "calling": None}
    if event.handled:
        return _handled(state, event.listener_id, changes)
    move = StepMove.GIVE_UP if event.final else StepMove.FAIL
    state = moves.move_step(state, event.listener_id, move, **changes)
    return moves.add_failed(state, event.listener_id) if event.final else state


def _handled(state: PlanState, listener_id: str, changes: dict[str, Any]) -> PlanState:
    state = moves.move_step(state, listener_id, StepMove.SUCCEED, **changes)
    return fold.follow_pending(state, listener_id)


def skipped(state: PlanState, listener_id: str) -> PlanState:
    """Only this firing is passed over: a repeating listener still follows its other triggers."""
    return fold.follow_pending(closed(state, listener_id), listener_id)


def closed(state: PlanState, listener_id: str) -> PlanState:
    timers = state.timers.discard(moves.retry_timer(listener_id))
    state = moves.unfail(changed(state, timers=timers), listener_id)
    return moves.move_step(state, listener_id, StepMove.SKIP)


def function_called(state: PlanState, event: e.FunctionCalled) -> PlanState:
    calling = (event.function, event.args, event.idempotent)
    return moves.move_step(state, event.listener_id, None, calling=calling, claim=state.version)


def function_returned(state: PlanState, event: e.FunctionReturned) -> PlanState:
    step = state.steps[event.listener_id]
    assert step.calling is not None
    function, args, _ = step.calling
    calls = (*step.calls, RecordedCall(function, args, event.result))
    late = step.status is StepStatus.WAITING
    return moves.move_step(
        moves.progressed(state),
        event.listener_id,
        StepMove.GO_ON if late else None,
        calls=calls,
        calling=None,
        claim=state.version,
    )


def check_concluded(state: PlanState, event: e.CheckConcluded) -> PlanState:
    verification = {**state.verification, event.listener_id: event.verdict}
    state = moves.progressed(changed(state, verification=verification))
    if event.verdict != "failed":
        return moves.move_step(state, event.listener_id, StepMove.SUCCEED)
    # A later look must be a new one: an agent's verdict, once heard, is not heard again.
    state = moves.move_step(state, event.listener_id, StepMove.GIVE_UP, carried=None)
    return moves.add_failed(state, event.listener_id)
