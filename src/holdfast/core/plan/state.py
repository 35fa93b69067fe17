"""The state of a plan run: its tasks, beside what every run has.

What has never been touched is not stored: a task without an entry is NotStarted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rpds import HashTrieMap, List

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.run.state import EMPTY, RunState
from holdfast.model.plan import TaskStatus
from holdfast.model.record import record
from holdfast.model.values import Json


@record
class TraceEntry:
    status: TaskStatus
    reason: str
    at: float


@record
class TaskState:
    status: TaskStatus = TaskStatus.NOT_STARTED
    context: Mapping[str, Json] = field(default_factory=dict)
    trace: List[TraceEntry] = List()


@dataclass(frozen=True)
class PlanState(RunState):
    plan: CompiledPlan = field(kw_only=True)
    plan_id: str = ""
    prompt: str = ""
    tasks: HashTrieMap[str, TaskState] = HashTrieMap()
    done_tasks: int = 0
    verifying: bool = False
    verification: Mapping[str, str] = field(default_factory=dict)

    @property
    def main_task(self) -> TaskState:
        return self.tasks.get(self.plan.main, NEW_TASK)

    def task(self, task_id: str) -> TaskState:
        return self.tasks.get(task_id, NEW_TASK)


NEW_TASK = TaskState()


class TaskFacts:
    """The tasks as conditions and templates see them."""

    __slots__ = ("_tasks", "names")

    def __init__(
        self, tasks: HashTrieMap[str, TaskState], names: Mapping[str, Json] = EMPTY
    ) -> None:
        self._tasks = tasks
        self.names = names

    def with_names(self, names: Mapping[str, Json]) -> TaskFacts:
        return TaskFacts(self._tasks, names)

    def status(self, task_id: str) -> str:
        return self._tasks.get(task_id, NEW_TASK).status

    def context(self, task_id: str) -> Mapping[str, Json]:
        return self._tasks.get(task_id, NEW_TASK).context
