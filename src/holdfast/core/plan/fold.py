"""The small changes of which every event's fold is made.

Each takes a state and gives the next one. Statuses come from the tables, and the
counts that summarise all steps are kept here and nowhere else.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.plan.state import (
    NEW_STEP,
    PlanState,
    StepState,
    TaskState,
    TraceEntry,
    changed,
    evolve,
)
from holdfast.core.plan.tables import (
    ACTIVE_STEPS,
    Signal,
    StepMove,
    StepStatus,
    next_instance,
    next_step,
    next_task,
)
from holdfast.model.events import Move
from holdfast.model.plan import PlanInstanceStatus, TaskStatus

CANCEL_TIMER = "cancel"


def retry_timer(listener_id: str) -> str:
    return f"retry:{listener_id}"


def question_timer(question_id: str) -> str:
    return f"question:{question_id}"


def signal(state: PlanState, given: Signal) -> PlanState:
    status = next_instance(state.status, given)
    return state if status is state.status else changed(state, status=status)


def asks(state: PlanState) -> bool:
    """A person is asked something, by this run or by a child run."""
    return bool(state.open_questions) or state.paused_children > 0


def moved(state: PlanState, moves: tuple[Move, ...], at: float) -> PlanState:
    for move in moves:
        state = fire(_task_moved(state, move, at), move.fired)
    return state


def _task_moved(state: PlanState, move: Move, at: float) -> PlanState:
    before = state.task(move.task_id)
    tasks = state.tasks.insert(move.task_id, moved_task(before, move, at))
    done = (move.status is TaskStatus.DONE) - (before.status is TaskStatus.DONE)
    if done:
        return changed(state, tasks=tasks, done_tasks=state.done_tasks + done)
    return changed(state, tasks=tasks)


def moved_task(task: TaskState, move: Move, at: float) -> TaskState:
    status = next_task(task.status, move.status)
    context = {**task.context, **move.context} if move.context else task.context
    if move.drop:
        context = {name: value for name, value in context.items() if name not in move.drop}
    if status is task.status and not move.reason:
        return TaskState(status, context, task.trace)
    trace = task.trace.push_front(TraceEntry(status, move.reason, at))
    return TaskState(status, context, trace)


def fire(state: PlanState, listener_ids: tuple[str, ...]) -> PlanState:
    """A listener that is still busy with an earlier firing remembers that it was triggered."""
    for listener_id in listener_ids:
        step = state.steps.get(listener_id)
        if step is None:
            state = put_step(state, listener_id, None, NEW_STEP)
        elif step.status in ACTIVE_STEPS or step.status is StepStatus.FAILED:
            state = move_step(state, listener_id, None, pending=step.pending + 1)
        else:
            state = refire(state, listener_id)
    return state


def refire(state: PlanState, listener_id: str, **kept: Any) -> PlanState:
    step = state.steps[listener_id]
    status = next_step(step.status, StepMove.FIRE)
    again = {"firing": step.firing + 1, "status": status, "pending": step.pending, **kept}
    return put_step(state, listener_id, step, evolve(NEW_STEP, **again))


def follow_pending(state: PlanState, listener_id: str) -> PlanState:
    """A repeating listener that was triggered while it worked fires once more."""
    step = state.steps[listener_id]
    if not step.pending or state.status is PlanInstanceStatus.CANCELLING:
        return state
    state = move_step(state, listener_id, None, pending=step.pending - 1)
    return refire(state, listener_id)


def move_step(
    state: PlanState, listener_id: str, move: StepMove | None, **changes: Any
) -> PlanState:
    """Move one step by the table."""
    step = state.steps[listener_id]
    status = step.status if move is None else next_step(step.status, move)
    return put_step(state, listener_id, step, evolve(step, status=status, **changes))


def put_step(
    state: PlanState, listener_id: str, before: StepState | None, after: StepState
) -> PlanState:
    """Store a step, and keep the counts that summarise all steps."""
    steps = state.steps.insert(listener_id, after)
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


def progressed(state: PlanState) -> PlanState:
    """Something came of the work: crashes before it no longer count."""
    return changed(state, recoveries=0) if state.recoveries else state


def add_failed(state: PlanState, listener_id: str) -> PlanState:
    if listener_id in state.failed:
        return state
    return changed(state, failed=(*state.failed, listener_id))


def unfail(state: PlanState, listener_id: str) -> PlanState:
    if listener_id not in state.failed:
        return state
    return changed(state, failed=tuple(one for one in state.failed if one != listener_id))
