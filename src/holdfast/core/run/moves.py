"""The small changes to steps and statuses of which every event's fold is made.

Each takes a state and gives the next one. Statuses come from the tables, and the
counts that summarise all steps are kept here and nowhere else.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.core.run.state import NEW_STEP, RunState, S, StepState, changed, evolve
from holdfast.core.run.tables import (
    COUNTED,
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
    return put_step(state, step_id, _ABSENT, step)


def move_step(
    state: S,
    step_id: str,
    move: StepMove | None,
    known: StepState | None = None,
    /,
    **changes: Any,
) -> S:
    """Move one step by the table.

    The step stays as it was but for its `changes`, or becomes what is `known` instead.
    """
    before = state.steps[step_id]
    if move is not None:
        changes["status"] = next_step(before.status, move)
    return put_step(state, step_id, before, evolve(known or before, **changes))


def put_step(state: S, step_id: str, before: StepState, after: StepState) -> S:
    """Store a step, and keep the counts that summarise all steps."""
    fields, was, now = state.__dict__, before.status, after.status
    fields["steps"] = fields["steps"].set(step_id, after)
    if before.child_id or after.child_id:
        counted, counts = _counts(before), _counts(after)
        for place, name in enumerate(_COUNTERS):
            fields[name] += counts[place] - counted[place]
    elif now is not was:
        for name, more in _SHIFTS[was][now]:
            fields[name] += more
    if now is _READY is not was:
        fields["readied"].append(step_id)
    return state


_COUNTERS: Final = ("active", "in_flight", "resting")
_SHIFTS: Final = {
    was: {
        now: tuple(
            (name, after - before)
            for name, before, after in zip(_COUNTERS, COUNTED[was], COUNTED[now], strict=True)
            if before != after
        )
        for now in StepStatus
    }
    for was in StepStatus
}
"""What a step's move from one status to another adds to the counts."""

_READY: Final = StepStatus.READY
_ABSENT: Final = evolve(NEW_STEP, status=StepStatus.STOPPED)
"""What counts for nothing, in place of a step that there is not yet."""


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
