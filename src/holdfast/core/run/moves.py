"""The small changes to steps and statuses of which every event's fold is made.

Each takes a state and gives the next one. Statuses come from the tables, and the
counts that summarise all steps are kept here and nowhere else.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.run.state import RunState, S, StepState, changed, evolve
from holdfast.core.run.tables import (
    ACTIVE_STEPS,
    Signal,
    StepMove,
    StepStatus,
    next_instance,
    next_step,
)
from holdfast.model.events import QuestionAnswered
from holdfast.model.run import RunStatus

CANCEL_TIMER = "cancel"


def retry_timer(step_id: str) -> str:
    return f"retry:{step_id}"


def signal(state: S, given: Signal) -> S:
    status = next_instance(state.status, given, state.LIFECYCLE)
    return state if status is state.status else changed(state, status=status)


def asks(state: RunState) -> bool:
    """It waits for a person: this run or a child run asks something, or somebody holds it."""
    return bool(state.open_questions) or state.paused_children > 0 or state.held


def settled(state: S, event: object) -> S:
    """`continue` lasts from the answer until the run takes its next step."""
    if state.status is not RunStatus.CONTINUE or isinstance(event, QuestionAnswered):
        return state
    return signal(state, Signal.ASK if asks(state) else Signal.GO_ON)


def move_step(state: S, step_id: str, move: StepMove | None, **changes: Any) -> S:
    """Move one step by the table."""
    step = state.steps[step_id]
    status = step.status if move is None else next_step(step.status, move)
    return put_step(state, step_id, step, evolve(step, status=status, **changes))


def put_step(state: S, step_id: str, before: StepState | None, after: StepState) -> S:
    """Store a step, and keep the counts that summarise all steps."""
    steps = state.steps.insert(step_id, after)
    was, now = _NOT_COUNTED if before is None else _counts(before), _counts(after)
    if was == now:
        return changed(state, steps=steps)
    return changed(
        state,
        steps=steps,
        active=state.active + now[0] - was[0],
        in_flight=state.in_flight + now[1] - was[1],
        resting=state.resting + now[2] - was[2],
    )


_NOT_COUNTED = (0, 0, 0)
_RESTING = (StepStatus.WAITING, StepStatus.BACKOFF)


def _counts(step: StepState) -> tuple[int, int, int]:
    status = step.status
    if status not in ACTIVE_STEPS:
        return _NOT_COUNTED
    if status is StepStatus.RUNNING:
        return 1, 1, int(step.awaits_child and not step.resuming)
    return 1, 0, int(status in _RESTING)


def progressed(state: S) -> S:
    """Something came of the work: crashes before it no longer count."""
    return changed(state, recoveries=0) if state.recoveries else state


def add_failed(state: S, step_id: str) -> S:
    if step_id in state.failed:
        return state
    return changed(state, failed=(*state.failed, step_id))


def unfail(state: S, step_id: str) -> S:
    if step_id not in state.failed:
        return state
    return changed(state, failed=tuple(one for one in state.failed if one != step_id))
