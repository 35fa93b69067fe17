"""What the events of one listener's firing do to the state."""

from __future__ import annotations

from typing import Any, Final

from holdfast.core.plan import task_changes as fold
from holdfast.core.plan.state import PlanState
from holdfast.core.run import moves
from holdfast.core.run.four_eyes import CHANGED, wants
from holdfast.core.run.state import StepState, changed, new, set_step_fields, without
from holdfast.core.run.tables import STEP, StepMove, StepStatus, next_step
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall

_START: Final = StepMove.START
_SUCCEED: Final = StepMove.SUCCEED


def started(state: PlanState, event: e.ListenerStarted, at: float) -> None:
    step_id = event.listener_id
    step = state.steps[step_id]
    after, fields = new(StepState), {**step.__dict__}
    set_step_fields(after, fields)
    fields["status"] = STEP[step.status].get(_START) or next_step(step.status, _START)
    fields["attempt"] = event.attempt
    fields["generation"] = event.generation
    fields["claim"] = state.version
    fields["clock"] = step.clock if step.calls else at
    fields["args"] = event.args
    fields["consent"] = event.consent
    fields["idempotent"] = event.idempotent
    fields["pure"] = event.pure
    fields["child_id"] = event.child_id or step.child_id
    fields["failure"] = None
    moves.put_step(state, step_id, step, after)
    if event.moves:
        fold.moved(state, event.moves, at)


def succeeded(state: PlanState, event: e.ListenerSucceeded, at: float) -> None:
    """What the firing needed is forgotten; how often it was tried is not."""
    step_id = event.listener_id
    step = state.steps[step_id]
    if _SUCCEED not in STEP[step.status]:
        next_step(step.status, _SUCCEED)  # which raises
    tried = (step.firing, step.attempt, step.generation, step.retries, step.pending, step.repeats)
    plain = tried == _AT_ONCE and step.child_id is None
    after = _DONE_AT_ONCE if plain else _finished(*tried, step.child_id)
    moves.put_step(state, step_id, step, after)
    if state.recoveries:
        moves.progressed(state)
    if step.pending:
        fold.follow_pending(state, step_id)
    if event.moves:
        fold.moved(state, event.moves, at)


def _finished(
    firing: int,
    attempt: int,
    generation: int,
    retries: int,
    pending: int,
    repeats: int,
    child_id: str | None,
) -> StepState:
    return StepState(
        firing=firing,
        status=StepStatus.DONE,
        attempt=attempt,
        generation=generation,
        retries=retries,
        pending=pending,
        repeats=repeats,
        child_id=child_id,
    )


_AT_ONCE: Final = (1, 1, 0, 0, 0, 0)
_DONE_AT_ONCE: Final = _finished(*_AT_ONCE, None)
"""Most steps end alike, and share one record."""


def failed(state: PlanState, event: e.ListenerFailed, at: float) -> None:
    fold.moved(_failed(state, event), event.moves, at)


def _failed(state: PlanState, event: e.ListenerFailed) -> PlanState:
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


def skipped(state: PlanState, event: e.ListenerSkipped, at: float) -> None:
    """Only this firing is passed over: a repeating listener still follows its other triggers."""
    closed(wants(state, event.by, CHANGED), event.listener_id)
    fold.moved(fold.follow_pending(state, event.listener_id), event.moves, at)


def closed(state: PlanState, listener_id: str) -> PlanState:
    timers = without(state.timers, moves.retry_timer(listener_id))
    state = moves.unfail(changed(state, timers=timers), listener_id)
    return moves.move_step(state, listener_id, StepMove.SKIP)


def function_called(state: PlanState, event: e.FunctionCalled, at: float) -> PlanState:
    calling = (event.function, event.args, event.idempotent)
    return moves.move_step(state, event.listener_id, None, calling=calling, claim=state.version)


def function_returned(state: PlanState, event: e.FunctionReturned, at: float) -> PlanState:
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


def check_concluded(state: PlanState, event: e.CheckConcluded, at: float) -> PlanState:
    verification = {**state.verification, event.listener_id: event.verdict}
    state = moves.progressed(changed(state, verification=verification))
    if event.verdict != "failed":
        return moves.move_step(state, event.listener_id, StepMove.SUCCEED)
    # A later look must be a new one: an agent's verdict, once heard, is not heard again.
    state = moves.move_step(state, event.listener_id, StepMove.GIVE_UP, carried=None)
    return moves.add_failed(state, event.listener_id)
