"""A plan's decision in the making.

Moves of tasks are worked out here, because a move decides which listeners it fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.core.plan.compiled import CompiledListener, CompiledPlan
from holdfast.core.plan.reducers import REDUCERS, moved
from holdfast.core.plan.state import NEW_TASK, PlanState
from holdfast.core.plan.tables import SETTABLE
from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.state import successor
from holdfast.errors import OutputRefused
from holdfast.i18n.message import msg
from holdfast.language.conditions import holds
from holdfast.model.events import Move, PlanEvent, TaskUpdate
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.record import constructor

_CANCELLING: Final = PlanInstanceStatus.CANCELLING
_move: Final = constructor(Move)


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
