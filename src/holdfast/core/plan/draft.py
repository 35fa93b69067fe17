"""A plan's decision in the making.

Moves of tasks are worked out here, because a move decides which listeners it fires.
"""

from __future__ import annotations

from collections.abc import Iterable

from rpds import HashTrieMap

from holdfast.core.language.conditions import holds
from holdfast.core.plan.apply import apply
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.fold import moved_task
from holdfast.core.plan.state import NEW_TASK, PlanState, TaskFacts, TaskState
from holdfast.core.plan.tables import TASK
from holdfast.core.run.draft import RunDraft
from holdfast.errors import OutputRefused
from holdfast.model.events import Move, PlanEvent
from holdfast.model.plan import PlanInstanceStatus, TaskStatus, TaskUpdate


class Draft(RunDraft[PlanState, PlanEvent]):
    def apply(self, event: PlanEvent) -> PlanState:
        return apply(self.state, event, self.moment.now)

    def listener(self, listener_id: str) -> CompiledListener:
        return self.state.plan.listener(listener_id)

    def facts(self) -> TaskFacts:
        return TaskFacts(self.state.tasks)

    def moves(self, updates: Iterable[TaskUpdate]) -> tuple[Move, ...]:
        """The moves that these updates are, each with the listeners that it fires."""
        made: list[Move] = []
        for update in updates:
            before = self._status_after(made, update.task_id)
            self._refuse_illegal(before, update)
            fired = self._fired_by(update, made)
            move = Move(update.task_id, update.status, update.reason, update.context, (), fired)
            made.append(move)
        return tuple(made)

    def _status_after(self, made: list[Move], task_id: str) -> TaskStatus:
        for move in reversed(made):
            if move.task_id == task_id:
                return move.status
        return self.state.task(task_id).status

    def _refuse_illegal(self, before: TaskStatus, update: TaskUpdate) -> None:
        if update.task_id not in self.state.plan.task_ids:
            raise OutputRefused(f"there is no task {update.task_id} to set {update.status}")
        if update.status is TaskStatus.CANCELLED:
            raise OutputRefused(f"task {update.task_id} is cancelled only with the whole run")
        if update.status not in TASK[before]:
            raise OutputRefused(f"task {update.task_id} cannot go from {before} to {update.status}")

    def _fired_by(self, update: TaskUpdate, made: list[Move]) -> tuple[str, ...]:
        triggered = self.state.plan.by_trigger.get(update.task_id)
        if triggered is None or self.state.status is PlanInstanceStatus.CANCELLING:
            return ()
        fired = [one.id for one in triggered if self._fires(one, update, made)]
        return tuple(fired) if fired else ()

    def _fires(self, listener: CompiledListener, update: TaskUpdate, made: list[Move]) -> bool:
        """Most conditions only name the status that their one trigger has just got."""
        wanted = listener.wanted
        if wanted is not None and wanted is not update.status:
            return False
        if not self.may_fire(listener) or any(listener.id in move.fired for move in made):
            return False
        if wanted is not None:
            return True
        facts = TaskFacts(self._tasks_after(update, made))
        return holds(listener.condition, listener.listener.trigger_task_id, facts)

    def _tasks_after(self, update: TaskUpdate, made: list[Move]) -> HashTrieMap[str, TaskState]:
        tasks = self.state.tasks
        last = Move(update.task_id, update.status, update.reason, update.context)
        for move in (*made, last):
            before = tasks.get(move.task_id, NEW_TASK)
            tasks = tasks.insert(move.task_id, moved_task(before, move, self.now))
        return tasks

    def unrepeated(self, move: Move) -> Move:
        """The same move where it fires nothing that has fired before, not even what repeats."""
        fresh = tuple(one for one in move.fired if one not in self.state.steps)
        return Move(move.task_id, move.status, move.reason, move.context, move.drop, fresh)

    def may_fire(self, listener: CompiledListener) -> bool:
        """Once per instance, unless the listener repeats or was reset."""
        step = self.state.steps.get(listener.id)
        return step is None or listener.listener.repeat or step.forgotten


def quiet(task_id: str, status: TaskStatus, reason: str, **context: object) -> Move:
    """A move of the engine's own, which fires nothing."""
    return Move(task_id, status, reason, context)
