"""The small changes to tasks and firings of which a plan's folds are made.

Each takes a state and gives the next one; moves come from the tables.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.plan.state import PlanState, TaskState, TraceEntry
from holdfast.core.plan.tables import next_task
from holdfast.core.run.moves import move_step, put_step
from holdfast.core.run.state import NEW_STEP, StepState, changed, evolve
from holdfast.core.run.tables import ACTIVE_STEPS, StepMove, StepStatus, next_step
from holdfast.model.events import Move
from holdfast.model.plan import PlanInstanceStatus, TaskStatus


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
            state = refire(state, listener_id, repeats=_repeats(step))
    return state


def _repeats(step: StepState) -> int:
    """How often a listener has fired again by itself; what a person runs again counts anew."""
    return 0 if step.forgotten else step.repeats + 1


def refire(
    state: PlanState, listener_id: str, move: StepMove = StepMove.FIRE, **kept: Any
) -> PlanState:
    step = state.steps[listener_id]
    status = next_step(step.status, move)
    again = {"firing": step.firing + 1, "status": status, "pending": step.pending, **kept}
    return put_step(state, listener_id, step, evolve(NEW_STEP, **again))


def follow_pending(state: PlanState, listener_id: str) -> PlanState:
    """A repeating listener that was triggered while it worked fires once more."""
    step = state.steps[listener_id]
    if not step.pending or state.status is PlanInstanceStatus.CANCELLING:
        return state
    state = move_step(state, listener_id, None, pending=step.pending - 1)
    return refire(state, listener_id, repeats=_repeats(step))
