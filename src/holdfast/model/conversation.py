"""Conversations: a goal that is decomposed into tasks, scheduled and executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.model.retry import RetryPolicy
from holdfast.model.values import Json


class EngineState(StrEnum):
    IDLE = "idle"
    RECEIVING = "receiving"
    CONTEXT_FETCHING = "context_fetching"
    DECOMPOSING = "decomposing"
    SCHEDULING = "scheduling"
    EXECUTING = "executing"
    PAUSED = "paused"
    COMPLETED = "completed"
    ERROR = "error"


class EngineEventType(StrEnum):
    """What a consumer sees; the last four are ours."""

    STATE_CHANGED = "state_changed"
    CONTEXT_RECEIVED = "context_received"
    TASK_DECOMPOSED = "task_decomposed"
    TASK_SCHEDULED = "task_scheduled"
    TASK_STARTED = "task_started"
    TASK_COMPLETED = "task_completed"
    ENGINE_PAUSED = "engine_paused"
    ENGINE_RESUMED = "engine_resumed"
    ENGINE_COMPLETED = "engine_completed"
    ENGINE_ERROR = "engine_error"
    TASK_FAILED = "task_failed"
    TASK_RETRYING = "task_retrying"
    INTERACTION = "interaction"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """`seq` is its place in the conversation's journal."""

    event_type: EngineEventType
    data: Mapping[str, Json] = field(default_factory=dict)
    seq: int | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class SubTask:
    """One task of a goal; the smallest `priority` goes first.

    `route` says what its type names here: a tool, an agent, a plan, a callable of one's
    own, or nothing, which goes to the default executor. `skipped` says why it is left out.
    """

    id: str
    description: str = ""
    type: str = ""
    priority: int = 0
    dependencies: tuple[str, ...] = ()
    args: Mapping[str, Json] = field(default_factory=dict)
    route: str = "default"
    status: str = "pending"
    result: Json = None
    skipped: str = ""


class OnFailure(StrEnum):
    """What a task that failed for good does to its conversation."""

    ERROR = "error"
    ASK = "ask"


class AfterFailure(StrEnum):
    """How a turn that failed goes on: with what failed, without it, or not at all."""

    RETRY = "retry"
    SKIP = "skip"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class ConversationSettings:
    """How a conversation runs; it is pinned to these."""

    max_parallel: int = 1
    retry: RetryPolicy = RetryPolicy()
    on_failure: OnFailure = OnFailure.ERROR
    confirm_tasks: bool = False
