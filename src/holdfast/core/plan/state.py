"""The state of a plan run: its tasks, beside what every run has.

What has never been touched is not stored: a task without an entry is NotStarted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import ClassVar, NamedTuple

from immutables import Map
from rpds import List

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.repair.state import NO_REPAIRS, Repairs
from holdfast.core.run.state import EMPTY, RunState, StepState
from holdfast.i18n.message import msg
from holdfast.language.display import clip
from holdfast.model.plan import TaskStatus
from holdfast.model.record import record, state
from holdfast.model.retry import FailureKind
from holdfast.model.values import Json


class TraceEntry(NamedTuple):
    status: TaskStatus
    reason: str
    at: float


class TaskState(NamedTuple):
    status: TaskStatus = TaskStatus.NOT_STARTED
    context: Mapping[str, Json] = EMPTY
    moves: List[tuple[TaskStatus, str, float]] = List()
    """The newest first; `trace` has them by name."""

    @property
    def trace(self) -> list[TraceEntry]:
        return [TraceEntry(*one) for one in self.moves]


@record
class Forked:
    """Of which run this is a fork, and at which event. `keys` are those under which the outside
    world may know calls of that run, by listener, firing and generation; `secrets` names the
    references that only that run could open. `refused` and `called` are what people refused there,
    and the tools that its tree has called."""

    origin: str
    seq: int
    keys: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    called: tuple[str, ...] = ()


@state
class PlanState(RunState):
    """Conditions and templates read it as it is (`Facts`). `plan` is the run's plan as it is now,
    `origin` the one of its birth where that was another."""

    names: ClassVar[Mapping[str, Json]] = EMPTY

    plan: CompiledPlan = field(kw_only=True)
    plan_id: str = ""
    prompt: str = ""
    tasks: Map[str, TaskState] = Map()
    done_tasks: int = 0
    verifying: bool = False
    verification: Mapping[str, str] = field(default_factory=dict)
    origin: CompiledPlan | None = None
    repair: Repairs = NO_REPAIRS
    forked: Forked | None = None

    @property
    def main_task(self) -> TaskState:
        return self.tasks.get(self.plan.main, NEW_TASK)

    def task(self, task_id: str) -> TaskState:
        return self.tasks.get(task_id, NEW_TASK)

    def status_of(self, task_id: str) -> str:
        return self.tasks.get(task_id, NEW_TASK).status

    def context_of(self, task_id: str) -> Mapping[str, Json]:
        try:
            return self.tasks[task_id].context
        except KeyError:
            return EMPTY


NEW_TASK = TaskState()


class TaskFacts:
    """The tasks as conditions and templates see them, with values by name: as a plan's state,
    which knows none."""

    __slots__ = ("names", "tasks")

    def __init__(self, tasks: Map[str, TaskState], names: Mapping[str, Json] = EMPTY) -> None:
        self.tasks = tasks
        self.names = names

    status_of = PlanState.status_of
    context_of = PlanState.context_of


_LONGEST_REASON = 300


def refused(step: StepState) -> tuple[str, ...]:
    """The names of what a person gave, where the work has refused it."""
    failure = step.failure
    if failure is None or failure.kind is not FailureKind.PERMANENT or not step.attempt:
        return ()
    return () if step.calls or step.carried is not None else tuple(step.provided)


def reason(step: StepState) -> str:
    """What a person who is asked again should know."""
    return clip(step.failure.message, _LONGEST_REASON) if step.failure else ""


def remedy(names: Iterable[str]) -> str:
    return msg("resume the run: it asks again for {names}", names=", ".join(names))


def key_of(state: PlanState, listener_id: str, firing: int, generation: int) -> str:
    """The key under which the outside world knows a call: in a fork it may be its origin's."""
    call = f"{listener_id}:{firing}:{generation}"
    own = f"{state.run_id}:{call}"
    return own if state.forked is None else state.forked.keys.get(call, own)


def is_taken_over(state: PlanState, listener_id: str, step: StepState) -> bool:
    """Whether a call may have been made by the run of which this is a fork."""
    key = key_of(state, listener_id, step.firing, step.generation)
    return not key.startswith(f"{state.run_id}:")
