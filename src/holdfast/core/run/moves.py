"""The small changes to steps and statuses of which every event's fold is made.

Each takes a state and gives the next one. Statuses come from the tables, and the
counts that summarise all steps are kept here and nowhere else.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.core.run.state import NEW_STEP, RunState, S, StepState, changed
from holdfast.core.run.tables import (
    COUNTED,
    STEP,
    Signal,
    StepMove,
    StepStatus,
    next_instance,
    next_step,
)
from holdfast.model.events import QuestionAnswered
from holdfast.model.run import RunStatus

CANCEL_TIMER = "cancel"
CONTINUE: Final = RunStatus.CONTINUE


def retry_timer(step_id: str) -> str:
    return f"retry:{step_id}"


def signal(state: S, given: Signal) -> S:
    status = next_instance(state.status, given, state.LIFECYCLE)
    return state if status is state.status else changed(state, status=status)


def asks(state: RunState) -> bool:
    """It waits for a person: this run or a child run asks something, or somebody holds it."""
    return bool(state.open_questions) or state.paused_children > 0 or state.held


def settle(state: RunState, event: object) -> None:
    """`continue` lasts from the answer until the run takes its next step."""
    if not isinstance(event, QuestionAnswered):
        signal(state, Signal.ASK if asks(state) else Signal.GO_ON)


def add_step(state: S, step_id: str, step: StepState = NEW_STEP) -> S:
    """Store a step that there has not been, and count it."""
    active, in_flight, resting = _counts(step) if step.child_id else COUNTED[step.status]
    fields = state.__dict__
    fields["steps"] = state.steps.insert(step_id, step)
    fields["active"] += active
    fields["in_flight"] += in_flight
    fields["resting"] += resting
    return state


def move_step(
    state: S,
    step_id: str,
    move: StepMove | None,
    known: StepState | None = None,
    /,
    **changes: Any,
) -> S:
    """Move one step by the table, and keep the counts that summarise all steps.

    The step stays as it was but for its `changes`, or becomes what is `known` instead.
    """
    before = state.steps[step_id]
    if move is not None:
        status = before.status
        changes["status"] = STEP[status].get(move) or next_step(status, move)
    after = object.__new__(StepState)
    object.__setattr__(after, "__dict__", (known or before).__dict__ | changes)
    fields = state.__dict__
    fields["steps"] = state.steps.insert(step_id, after)
    was = _counts(before) if before.child_id else COUNTED[before.status]
    now = _counts(after) if after.child_id else COUNTED[after.status]
    if was is not now:
        fields["active"] += now[0] - was[0]
        fields["in_flight"] += now[1] - was[1]
        fields["resting"] += now[2] - was[2]
    return state


def _counts(step: StepState) -> tuple[int, int, int]:
    """A step that has a child run rests while that works."""
    rests = step.status is StepStatus.RUNNING and step.awaits_child and not step.resuming
    return (1, 1, 1) if rests else COUNTED[step.status]


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
