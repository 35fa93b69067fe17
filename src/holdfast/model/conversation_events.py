"""Events of a conversation. Its steps are `context`, `decompose` and one per task (`t1`, …).

What happens to steps, questions and child runs in every machine stands in `events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from holdfast.model import events as e
from holdfast.model.conversation import AfterFailure, EngineState, SubTask
from holdfast.model.record import record
from holdfast.model.retry import Failure
from holdfast.model.values import Json


@record
class ConversationOpened:
    """An `unattended` one goes on without a consumer of its own."""

    digest: str
    root_id: str
    by: str = ""
    unattended: bool = False


@record
class InputReceived:
    """What the user wants this turn."""

    turn: int
    text: str
    by: str = ""


@record
class PhaseChanged:
    before: EngineState
    after: EngineState


@record
class WorkStarted:
    """The coordinator is asked for the context, or the model for tasks."""

    step_id: str
    firing: int


@record
class ContextReceived:
    rules: tuple[Json, ...] = ()
    knowledge: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()


@record
class DecompositionRefused:
    """What the model made of the goal cannot be run; it is asked once more."""

    reason: str


@record
class GoalDecomposed:
    tasks: tuple[SubTask, ...]
    by_model: bool = False


@record
class TaskScheduled:
    step_id: str


@record
class TaskChosen:
    """Nothing stands in its way any more: it starts when a permit is free."""

    step_id: str


@record
class TaskStarted:
    """A permit is held and the work may now reach the outside world.

    It `resumes` a child run that failed, which keeps what it had done.
    """

    step_id: str
    firing: int = 1
    attempt: int = 1
    generation: int = 0
    args: Mapping[str, Json] | None = None
    idempotent: bool = False
    consent: str | None = None
    child_id: str | None = None
    resumes: bool = False


@record
class ArgumentsWanted:
    """The model is asked for arguments that a task lacks, before a person is."""

    step_id: str
    parameters: Mapping[str, Json]


@record
class ArgumentsFilled:
    """What the model could fill in; for the rest a person is asked."""

    step_id: str
    values: Mapping[str, Json] = field(default_factory=dict)


@record
class AnswerWritten:
    """The turn's last word."""

    text: str


@record
class TaskFinished:
    """Its result is kept; it counts when the consumer is told. `skipped`: why it is left out."""

    step_id: str
    result: Json = None
    skipped: str = ""


@record
class TaskBroke:
    """It failed for good; the consumer has yet to be told."""

    step_id: str
    failure: Failure


@record
class TaskCompleted:
    """The consumer is told that it is done, or skipped."""

    step_id: str


@record
class TaskFailed:
    """The consumer is told of a failure that a person will be asked about."""

    step_id: str
    error: str


@record
class TasksConfirmed:
    """A person has seen the tasks and wants them run."""

    by: str = ""


@record
class TasksRefused:
    """A person wants other tasks; the model is asked again with what was said."""

    reason: str
    by: str = ""


@record
class PauseWished:
    """It is to pause before its first task, or no longer."""

    wished: bool = True
    by: str = ""


@record
class EnginePaused:
    """`by` is empty where it was wished before."""

    by: str = ""


@record
class EngineResumed:
    by: str = ""


@record
class EngineCompleted:
    pass


@record
class EngineFailed:
    """`by` is set where a person has ended the turn."""

    error: str
    phase: EngineState
    step_id: str = ""
    by: str = ""


@record
class ConversationResumed:
    """A turn that failed goes on: what was completed is kept, and `skipped` is left out."""

    failed: AfterFailure
    by: str = ""
    skipped: tuple[str, ...] = ()


@record
class ConversationStopped:
    """A turn that failed is over: the next one is told what was done in it."""

    by: str = ""


@record
class StartedOver:
    by: str = ""


@record
class SnapshotRestored:
    snapshot: Mapping[str, Json] = field(default_factory=dict)
    by: str = ""


ConversationEvent: TypeAlias = (
    e.RunEvent
    | ConversationOpened
    | InputReceived
    | PhaseChanged
    | WorkStarted
    | ContextReceived
    | DecompositionRefused
    | GoalDecomposed
    | TaskScheduled
    | TaskChosen
    | TaskStarted
    | ArgumentsWanted
    | ArgumentsFilled
    | AnswerWritten
    | TaskFinished
    | TaskBroke
    | TaskCompleted
    | TaskFailed
    | TasksConfirmed
    | TasksRefused
    | PauseWished
    | EnginePaused
    | EngineResumed
    | EngineCompleted
    | EngineFailed
    | ConversationResumed
    | ConversationStopped
    | StartedOver
    | SnapshotRestored
)
