"""A conversation's story: what was wanted, which tasks came of it, and what came of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.cli.screen import visible
from holdfast.cli.telling import Sentence, Teller, reason
from holdfast.core.conversation.state import CONTEXT, DECOMPOSE, ConversationState
from holdfast.core.language.strict import canonical_json
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState
from holdfast.model.interaction import InteractionRequest
from holdfast.model.recorded import Event
from holdfast.model.values import Json

_Work: TypeAlias = (
    v.WorkStarted | v.ContextReceived | v.DecompositionRefused | v.GoalDecomposed | v.PhaseChanged
)
_Task: TypeAlias = (
    v.TaskScheduled
    | v.TaskChosen
    | v.TaskStarted
    | v.TaskFinished
    | v.TaskBroke
    | v.TaskCompleted
    | v.TaskFailed
)
_Turn: TypeAlias = (
    v.ConversationOpened
    | v.InputReceived
    | v.EnginePaused
    | v.EngineResumed
    | v.EngineCompleted
    | v.EngineFailed
    | v.StartedOver
    | v.SnapshotRestored
)

PHASES: Mapping[EngineState, str] = {
    EngineState.IDLE: "is idle",
    EngineState.RECEIVING: "receives the goal",
    EngineState.CONTEXT_FETCHING: "fetches the context",
    EngineState.DECOMPOSING: "makes tasks of the goal",
    EngineState.SCHEDULING: "schedules the tasks",
    EngineState.EXECUTING: "executes the tasks",
    EngineState.PAUSED: "is paused",
    EngineState.COMPLETED: "is completed",
    EngineState.ERROR: "has failed",
}
_WORK = {CONTEXT: "asks for the context", DECOMPOSE: "asks for tasks"}


class ConversationStory(Teller):
    """Remembers the tasks: later events name a task by its step only."""

    engine: ClassVar[str] = "engine"

    def __init__(self, state: ConversationState, asked: Iterable[InteractionRequest] = ()) -> None:
        super().__init__(asked)
        self._tasks = {step_id: task.id for step_id, task in state.tasks.items()}

    def step(self, step_id: str) -> str:
        return visible(_WORK.get(step_id) or f"task {self._tasks.get(step_id, step_id)}")

    def sentence(self, event: Event) -> Sentence:
        # The journal of a conversation holds a conversation's events only.
        return self._sentence(cast(v.ConversationEvent, event))

    def _sentence(self, event: v.ConversationEvent) -> Sentence:
        match event:
            case (
                v.WorkStarted()
                | v.ContextReceived()
                | v.DecompositionRefused()
                | v.GoalDecomposed()
                | v.PhaseChanged()
            ):
                return self.engine, self._work(event)
            case (
                v.TaskScheduled()
                | v.TaskChosen()
                | v.TaskStarted()
                | v.TaskFinished()
                | v.TaskBroke()
                | v.TaskCompleted()
                | v.TaskFailed()
            ):
                return self.engine, f"{self.step(event.step_id)} {_fate(event)}"
            case (
                v.ConversationOpened()
                | v.InputReceived()
                | v.EnginePaused()
                | v.EngineResumed()
                | v.EngineCompleted()
                | v.EngineFailed()
                | v.StartedOver()
                | v.SnapshotRestored()
            ):
                return self._turn(event)
            case _:
                return self.shared(event)

    def _turn(self, event: _Turn) -> Sentence:
        match event:
            case v.ConversationOpened():
                return event.by or self.engine, "began a conversation"
            case v.InputReceived():
                return event.by or self.engine, f"wants: {visible(event.text)}"
            case v.EnginePaused():
                return self.engine, "starts nothing more until it is resumed"
            case v.EngineResumed():
                return self.engine, "was resumed"
            case v.EngineCompleted():
                return self.engine, "all tasks are done"
            case v.EngineFailed():
                place = self.step(event.step_id) if event.step_id else event.phase.value
                return self.engine, f"failed at {place}{reason(event.error)}"
            case v.StartedOver():
                return event.by or self.engine, "started over"
            case v.SnapshotRestored():
                self._remember(event.snapshot["tasks"])
                return self.engine, "took a snapshot's place"
            case _:
                assert_never(event)

    def _work(self, event: _Work) -> str:
        match event:
            case v.WorkStarted():
                return self.step(event.step_id)
            case v.ContextReceived(rules=rules, knowledge=knowledge, tools=tools):
                counts = f"rules {len(rules)}, passages {len(knowledge)}, tools {len(tools)}"
                return f"has the context: {counts}"
            case v.DecompositionRefused():
                return f"asks for other tasks{reason(event.reason)}"
            case v.GoalDecomposed(tasks=tasks):
                self._tasks = {f"t{n}": task.id for n, task in enumerate(tasks, start=1)}
                named = (f"{one.id} ({one.description})" for one in tasks)
                return f"has {counted(len(tasks))}: {visible(', '.join(named))}"
            case v.PhaseChanged(after=after):
                return PHASES[after]
            case _:
                assert_never(event)

    def _remember(self, tasks: Iterable[Mapping[str, Json]]) -> None:
        self._tasks = {f"t{n}": str(task["id"]) for n, task in enumerate(tasks, start=1)}


def counted(tasks: int) -> str:
    return f"{tasks} task{'s' if tasks != 1 else ''}"


def spelled_result(result: Json) -> str:
    """A task's result as a person reads it."""
    return result if isinstance(result, str) else canonical_json(result)


def _fate(event: _Task) -> str:
    match event:
        case v.TaskScheduled():
            return "is scheduled"
        case v.TaskChosen():
            return "is next"
        case v.TaskStarted():
            attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
            child = f" as {event.child_id}" if event.child_id else ""
            return f"started{attempt}{visible(child)}"
        case v.TaskFinished():
            return f"returned: {visible(spelled_result(event.result))}"
        case v.TaskBroke():
            return f"failed{reason(event.failure.message)}"
        case v.TaskCompleted():
            return "is completed"
        case v.TaskFailed():
            return "waits for a person to decide"
        case _:
            assert_never(event)
