"""A plan's decision in the making: what a listener's result means for the tasks.

Moves of tasks are worked out here, because a move decides which listeners it fires. What comes of a
result is the default of `TaskDriver.determine_task_updates`: a snippet's own `target_task`,
`target_status` and `context` override the listener's output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holdfast.core.plan.case_reducers import CASE_REDUCERS
from holdfast.core.plan.compiled import INPUTS, CompiledListener, CompiledPlan
from holdfast.core.plan.fork_reducers import FORK_REDUCERS
from holdfast.core.plan.reducers import LISTENER_REDUCERS, moved
from holdfast.core.plan.state import NEW_TASK, PlanState, TaskFacts
from holdfast.core.plan.tables import SETTABLE
from holdfast.core.run.builder import DecisionBuilder, Reducer
from holdfast.core.run.state import successor
from holdfast.core.run.steps import succeeded
from holdfast.errors import OutputRefused, TemplateError
from holdfast.i18n.message import msg
from holdfast.language.conditions import holds
from holdfast.model.events import Move, PlanEvent, TaskUpdate
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.record import constructor
from holdfast.model.values import Json

_CANCELLING: Final = PlanInstanceStatus.CANCELLING
_move: Final = constructor(Move)

REDUCERS: Final[Mapping[type, Reducer]] = {
    **LISTENER_REDUCERS,
    **CASE_REDUCERS,
    **FORK_REDUCERS,
}
"""What each event does to a plan's state: nothing else changes it."""


class Builder(DecisionBuilder[PlanState, PlanEvent]):
    REDUCERS = REDUCERS

    def listener(self, listener_id: str) -> CompiledListener:
        return self.state.plan.listener(listener_id)

    def moves(self, updates: Iterable[TaskUpdate]) -> tuple[Move, ...]:
        """The moves that these updates are, each with the listeners that it fires."""
        plan = self.state.plan
        made: list[Move] = []
        for update in updates:
            task_id, status = update.task_id, update.status
            before = _last_status(made, task_id) if made else None
            before = before or self.state.tasks.get(task_id, NEW_TASK).status
            if task_id not in plan.task_ids or status not in SETTABLE[before]:
                raise OutputRefused(_why_refused(plan, before, update))
            watching = plan.watching[status].get(task_id)
            fired = self._fired(watching, update, made) if watching else ()
            made.append(_move(task_id, status, update.reason, update.context, (), fired))
        return tuple(made)

    def _fired(
        self, watching: Iterable[CompiledListener], update: TaskUpdate, made: Sequence[Move]
    ) -> tuple[str, ...]:
        """Most conditions only name the status that their one trigger has just got."""
        state = self.state
        if state.status is _CANCELLING:
            return ()
        fired = []
        for one in watching:
            if one.id in state.steps and not self.may_fire(one):
                continue
            if made and any(one.id in move.fired for move in made):
                continue
            if one.wanted is not None or self._holds(one, update, made):
                fired.append(one.id)
        return tuple(fired)

    def _holds(self, listener: CompiledListener, update: TaskUpdate, made: Sequence[Move]) -> bool:
        last = Move(update.task_id, update.status, update.reason, update.context)
        after = moved(successor(self.state, []), (*made, last), self.now)
        return holds(listener.condition, listener.listener.trigger_task_id, after)

    def unrepeated(self, move: Move) -> Move:
        """The same move where it fires nothing that has fired before, not even what repeats."""
        fresh = tuple(one for one in move.fired if one not in self.state.steps)
        return Move(move.task_id, move.status, move.reason, move.context, move.drop, fresh)

    def may_fire(self, listener: CompiledListener) -> bool:
        """Once per instance, unless the listener repeats or was reset."""
        step = self.state.steps.get(listener.id)
        return step is None or listener.listener.repeat or step.forgotten


def _last_status(made: Sequence[Move], task_id: str) -> TaskStatus | None:
    return next((move.status for move in reversed(made) if move.task_id == task_id), None)


def _why_refused(plan: CompiledPlan, before: TaskStatus, update: TaskUpdate) -> str:
    task_id, status = update.task_id, update.status
    if task_id not in plan.task_ids:
        return msg("there is no task {id} to set {status}", id=task_id, status=status)
    if status is TaskStatus.CANCELLED:
        return msg("task {id} is cancelled only with the whole run", id=task_id)
    return msg(
        "task {id} cannot go from {before} to {after}", id=task_id, before=before, after=status
    )


def quiet(task_id: str, status: TaskStatus, reason: str, **context: object) -> Move:
    """A move of the engine's own, which fires nothing."""
    return Move(task_id, status, reason, context)


def updates_for(
    listener: CompiledListener, success: bool, result: Json, facts: PlanState | TaskFacts
) -> tuple[TaskUpdate, ...]:
    """The updates of a finished listener; TemplateError when its output does not render."""
    named = TaskFacts(facts.tasks, {"result": result})
    return tuple(TaskUpdate(**one) for one in told_updates(listener, success, result, named))


def told_updates(
    listener: CompiledListener, success: bool, result: Json, facts: TaskFacts
) -> list[dict[str, Any]]:
    """The same in the words of a driver; the facts know the result by its name."""
    if listener.is_code and (own := _own_output(listener, result)):
        return [own]
    output = listener.listener.success_output if success else listener.listener.failure_output
    if output is None:
        return []
    reason = listener.id
    if reason == INPUTS:
        context, reason = dict(result or {}), "start"
    else:
        context = (listener.success if success else listener.failure).fill(facts)
    return [
        {"task_id": output.task_id, "status": output.status, "context": context, "reason": reason}
    ]


def _own_output(listener: CompiledListener, result: Json) -> dict[str, Any] | None:
    """The update that a snippet names itself; a part it leaves out comes from the listener."""
    if not isinstance(result, Mapping):
        return None
    if not result.keys() & {"target_task", "target_status", "context"}:
        return None
    output = (
        listener.listener.success_output if succeeded(result) else listener.listener.failure_output
    )
    task_id = result.get("target_task", output.task_id if output else None)
    if task_id is None:
        return None
    fallback = output.status if output else TaskStatus.DONE
    status = _status(result.get("target_status", fallback))
    named = {"task_id": str(task_id), "status": status}
    return {**named, "context": _context(result), "reason": listener.id}


def _status(value: Json) -> TaskStatus:
    try:
        return TaskStatus(value)
    except ValueError:
        names = ", ".join(status.value for status in TaskStatus)
        raise TemplateError(
            msg("target_status {value!r} is not one of {names}", value=value, names=names)
        ) from None


def _context(result: Mapping[str, Json]) -> dict[str, Json]:
    context = result.get("context", {})
    if not isinstance(context, Mapping):
        raise TemplateError(msg("the snippet's context must be a dict"))
    return dict(context)
