"""The state of a plan run: a fold of its events, kept in persistent maps.

Changing one task of ten thousand costs one small node, and the state before
stays valid: rolling back, or encoding a snapshot on another thread, needs no copy.
What has never been touched is not stored: a task without an entry is NotStarted.

`PlanState` and `StepState` have many fields and change at every event, so they
keep a `__dict__`: copying it is ten times faster than `dataclasses.replace`, which
calls the constructor. `apply` makes one successor per event and the folds write into
it; the state before is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rpds import HashTrieMap, HashTrieSet, List

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.tables import StepStatus
from holdfast.model.effects import RecordedCall
from holdfast.model.events import Parent
from holdfast.model.interaction import InteractionRequest, InteractionStatus
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.record import record
from holdfast.model.retry import Failure
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
class StepState:
    """One listener's current firing.

    `clock` is the time that a snippet sees, the same at every pass over its recorded
    calls. `claim` is the sequence number of the start that is in flight; an outcome
    under another claim is late. `carried` holds a result (in a tuple, so that
    None is a result too) that only waits to be concluded. `pending` counts the
    triggers that a repeating listener has yet to follow; a `forgotten` one may
    fire again although it has fired. `resuming` lasts until the child run has
    said that it goes on.
    """

    firing: int = 1
    status: StepStatus = StepStatus.READY
    attempt: int = 0
    generation: int = 0
    claim: int = 0
    idempotent: bool = False
    pure: bool = False
    args: Mapping[str, Json] | None = None
    provided: Mapping[str, Json] = field(default_factory=dict)
    carried: tuple[Json] | None = None
    calls: tuple[RecordedCall, ...] = ()
    clock: float = 0.0
    calling: tuple[str, Mapping[str, Json], bool] | None = None
    consent: str | None = None
    feedback: str | None = None
    question_id: str | None = None
    child_id: str | None = None
    child_status: str | None = None
    failure: Failure | None = None
    retries: int = 0
    retry_times: tuple[float, ...] = ()
    pending: int = 0
    forgotten: bool = False
    resuming: bool = False

    @property
    def awaits_child(self) -> bool:
        """A child run does the work, and has not finished it yet."""
        return self.child_id is not None and self.carried is None


@record
class QuestionState:
    request: InteractionRequest
    listener_id: str
    firing: int
    purpose: str
    opened_at: float
    opened_seq: int
    deadline: float | None = None
    args: Mapping[str, Json] | None = None
    consent: str | None = None
    status: InteractionStatus = InteractionStatus.OPEN
    closed_at: float | None = None
    by: str | None = None
    option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None


@dataclass(frozen=True)
class PlanState:
    """Everything a decision may depend on.

    `active` counts steps that will move by themselves or by an answer, `in_flight`
    those that are out in the world, `resting` those that wait for a person, a
    timer or a child run. `paused_children` counts child runs that wait for a person.
    """

    run_id: str
    plan: CompiledPlan
    version: int = 0
    status: PlanInstanceStatus = PlanInstanceStatus.NOT_STARTED
    plan_id: str = ""
    prompt: str = ""
    root_id: str = ""
    parent: Parent | None = None
    started_by: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    tasks: HashTrieMap[str, TaskState] = HashTrieMap()
    steps: HashTrieMap[str, StepState] = HashTrieMap()
    questions: HashTrieMap[str, QuestionState] = HashTrieMap()
    open_questions: HashTrieSet[str] = HashTrieSet()
    timers: HashTrieMap[str, float] = HashTrieMap()
    failed: tuple[str, ...] = ()
    heard: HashTrieMap[str, int] = HashTrieMap()
    active: int = 0
    in_flight: int = 0
    resting: int = 0
    paused_children: int = 0
    done_tasks: int = 0
    verifying: bool = False
    verification: Mapping[str, str] = field(default_factory=dict)
    provided_params: Mapping[str, Json] = field(default_factory=dict)
    continued_at: float | None = None
    recoveries: int = 0
    cancelled_by: str | None = None

    @property
    def main_task(self) -> TaskState:
        return self.tasks.get(self.plan.main, NEW_TASK)

    def task(self, task_id: str) -> TaskState:
        return self.tasks.get(task_id, NEW_TASK)


NEW_TASK = TaskState()

EMPTY: Mapping[str, Any] = {}

NEW_STEP = StepState()


def evolve(before: StepState, **changes: Any) -> StepState:
    """A copy of a step with some fields changed."""
    after = object.__new__(StepState)
    fields = after.__dict__
    fields.update(before.__dict__)
    fields.update(changes)
    return after


def successor(before: PlanState, at: float) -> PlanState:
    """A copy for the next event to be written into; nobody else has seen it yet."""
    after = object.__new__(PlanState)
    fields = after.__dict__
    fields.update(before.__dict__)
    fields["version"] = before.version + 1
    fields["updated_at"] = at
    return after


def changed(state: PlanState, **changes: Any) -> PlanState:
    """Write into the successor that `apply` is making: one copy serves the whole event."""
    state.__dict__.update(changes)
    return state


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
