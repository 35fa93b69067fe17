"""The small changes to tasks and firings of which a plan's folds are made.

Each writes into a state and gives it back; moves come from the tables.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.core.plan.state import NEW_TASK, PlanState, TaskState
from holdfast.core.plan.tables import TASK, next_task
from holdfast.core.run.moves import move_step
from holdfast.core.run.state import NEW_STEP, StepState
from holdfast.core.run.tables import ACTIVE_STEPS, StepMove, StepStatus
from holdfast.model.events import Move
from holdfast.model.plan import PlanInstanceStatus, TaskStatus

_DONE: Final = TaskStatus.DONE
_new: Final = tuple.__new__
"""Makes a named tuple without a call of its constructor."""


def moved(state: PlanState, moves: tuple[Move, ...], at: float) -> PlanState:
    fields = state.__dict__
    for move in moves:
        tasks, task_id, status = fields["tasks"], move.task_id, move.status
        task = tasks.get(task_id, NEW_TASK)
        before, context, trace = task[0], task[1], task[2]
        if status not in TASK[before]:
            next_task(before, status)  # which raises
        if more := move.context:
            context = {**context, **more} if context else more
        if move.drop:
            context = {name: one for name, one in context.items() if name not in move.drop}
        reason = move.reason
        if reason or status is not before:
            trace = trace.push_front((status, reason, at))
        fields["tasks"] = tasks.set(task_id, _new(TaskState, (status, context, trace)))
        if status is _DONE or before is _DONE:
            fields["done_tasks"] += (status is _DONE) - (before is _DONE)
        if move.fired:
            fire(state, move.fired)
    return state


def fire(state: PlanState, listener_ids: tuple[str, ...]) -> PlanState:
    """A listener that is still busy with an earlier firing remembers that it was triggered."""
    fields = state.__dict__
    for listener_id in listener_ids:
        steps = fields["steps"]
        step = steps.get(listener_id)
        if step is None:
            fields["steps"] = steps.set(listener_id, NEW_STEP)
            fields["active"] += 1
            fields["readied"].append(listener_id)
        elif step.status in ACTIVE_STEPS or step.status is StepStatus.FAILED:
            move_step(state, listener_id, None, pending=step.pending + 1)
        else:
            refire(state, listener_id, repeats=_repeats(step))
    return state


def _repeats(step: StepState) -> int:
    """How often a listener has fired again by itself; what a person runs again counts anew."""
    return 0 if step.forgotten else step.repeats + 1


def refire(
    state: PlanState, listener_id: str, move: StepMove = StepMove.FIRE, **kept: Any
) -> PlanState:
    step = state.steps[listener_id]
    again = {"firing": step.firing + 1, "pending": step.pending, **kept}
    return move_step(state, listener_id, move, NEW_STEP, **again)


def follow_pending(state: PlanState, listener_id: str) -> PlanState:
    """A repeating listener that was triggered while it worked fires once more."""
    step = state.steps[listener_id]
    if not step.pending or state.status is PlanInstanceStatus.CANCELLING:
        return state
    move_step(state, listener_id, None, pending=step.pending - 1)
    return refire(state, listener_id, repeats=_repeats(step))
