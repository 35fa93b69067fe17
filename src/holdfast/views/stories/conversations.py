"""A conversation's story: what was wanted, which tasks came of it, and what came of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.core.conversation.briefing import spelled_result
from holdfast.core.conversation.state import ANSWER, CONFIRM, CONTEXT, DECOMPOSE, ConversationState
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState
from holdfast.model.interaction import InteractionRequest
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.views.stories.lines import Sentence, Teller
from holdfast.views.stories.phrases import ENGLISH, Voice
from holdfast.views.stories.text import visible

_Work: TypeAlias = (
    v.WorkStarted
    | v.ContextReceived
    | v.DecompositionRefused
    | v.GoalDecomposed
    | v.PhaseChanged
    | v.AnswerWritten
)
_Task: TypeAlias = (
    v.TaskScheduled
    | v.TaskChosen
    | v.TaskStarted
    | v.ArgumentsWanted
    | v.ArgumentsFilled
    | v.TaskFinished
    | v.TaskBroke
    | v.TaskCompleted
    | v.TaskFailed
)
_Turn: TypeAlias = (
    v.ConversationOpened
    | v.InputReceived
    | v.TasksConfirmed
    | v.TasksRefused
    | v.PauseWished
    | v.EnginePaused
    | v.EngineResumed
    | v.EngineCompleted
    | v.EngineFailed
    | v.ConversationResumed
    | v.ConversationStopped
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
_WORK = {
    CONTEXT: "asks for the context",
    DECOMPOSE: "asks for tasks",
    CONFIRM: "shows the tasks",
    ANSWER: "asks for the answer",
}


class ConversationStory(Teller):
    """Remembers the tasks: later events name a task by its step only."""

    engine: ClassVar[str] = "engine"

    def __init__(
        self,
        state: ConversationState,
        asked: Iterable[InteractionRequest] = (),
        say: Voice = ENGLISH,
    ) -> None:
        super().__init__(asked, say)
        self._tasks = {step_id: task.id for step_id, task in state.tasks.items()}
        self._skipped = {step_id for step_id, task in state.tasks.items() if task.skipped}
        self._most = state.settings.retry.attempts

    def step(self, step_id: str) -> str:
        if step_id in _WORK:
            return self.say(_WORK[step_id])
        return self.say("task {id}", id=visible(self._tasks.get(step_id, step_id)))

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
                | v.AnswerWritten()
            ):
                return self.itself, self._work(event)
            case (
                v.TaskScheduled()
                | v.TaskChosen()
                | v.TaskStarted()
                | v.ArgumentsWanted()
                | v.ArgumentsFilled()
                | v.TaskFinished()
                | v.TaskBroke()
                | v.TaskCompleted()
                | v.TaskFailed()
            ):
                return self.itself, self._task(event, self.step(event.step_id))
            case (
                v.ConversationOpened()
                | v.InputReceived()
                | v.TasksConfirmed()
                | v.TasksRefused()
                | v.PauseWished()
                | v.EnginePaused()
                | v.EngineResumed()
                | v.EngineCompleted()
                | v.EngineFailed()
                | v.ConversationResumed()
                | v.ConversationStopped()
                | v.StartedOver()
                | v.SnapshotRestored()
            ):
                return self._turn(event)
            case _:
                return self.shared(event)

    def _turn(self, event: _Turn) -> Sentence:
        match event:
            case v.ConversationOpened():
                return event.by or self.itself, self.say("began a conversation")
            case v.InputReceived():
                wanted = self.say("wants: {text}", text=visible(event.text))
                return event.by or self.itself, wanted
            case v.TasksConfirmed():
                return event.by or self.itself, self.say("wants these tasks run")
            case v.TasksRefused():
                return event.by or self.itself, self.say("wants other tasks")
            case v.PauseWished() | v.EnginePaused() | v.EngineResumed():
                return self._pause(event)
            case v.EngineCompleted():
                return self.itself, self._completed()
            case v.EngineFailed():
                place = self.step(event.step_id) if event.step_id else self.say(event.phase.value)
                told = self.say(
                    "ended the turn at {place}" if event.by else "failed at {place}", place=place
                )
                return event.by or self.itself, self.because(told, event.error)
            case v.ConversationResumed():
                return event.by or self.itself, self._resumed(event)
            case v.ConversationStopped():
                return event.by or self.itself, self.say("ended the turn that failed")
            case v.StartedOver():
                return event.by or self.itself, self.say("started over")
            case v.SnapshotRestored():
                self._remember(event.snapshot["tasks"])
                told = self.say("restored a snapshot" if event.by else "took a snapshot's place")
                return event.by or self.itself, told
            case _:
                assert_never(event)

    def _pause(self, event: v.PauseWished | v.EnginePaused | v.EngineResumed) -> Sentence:
        """Who did it, where the journal knows."""
        match event:
            case v.PauseWished(wished=True):
                told = self.say(
                    "wants a pause before the first task"
                    if event.by
                    else "will pause before the first task"
                )
            case v.PauseWished():
                told = self.say("no longer wants a pause" if event.by else "will not pause")
            case v.EnginePaused():
                told = self.say(
                    "paused it; nothing more starts until it is resumed"
                    if event.by
                    else "starts nothing more until it is resumed"
                )
            case v.EngineResumed():
                told = self.say("resumed it" if event.by else "was resumed")
            case _:
                assert_never(event)
        return event.by or self.itself, told

    def _completed(self) -> str:
        if not self._skipped:
            return self.say("all tasks are done")
        done, skipped = len(self._tasks) - len(self._skipped), len(self._skipped)
        told = self.say("tasks done: {done}, skipped: {skipped}", done=done, skipped=skipped)
        return told + self.aside(self._named(one for one in self._tasks if one in self._skipped))

    def _named(self, steps: Iterable[str]) -> str:
        return ", ".join(self._tasks.get(one, one) for one in steps)

    def _resumed(self, event: v.ConversationResumed) -> str:
        self._skipped |= {*event.skipped}
        if not event.skipped:
            return self.say("has what failed tried again; what is done stays done")
        return self.say("goes on without: {tasks}", tasks=visible(self._named(event.skipped)))

    def _work(self, event: _Work) -> str:
        match event:
            case v.WorkStarted():
                return self.step(event.step_id)
            case v.ContextReceived(rules=rules, knowledge=knowledge, tools=tools):
                return self.say(
                    "has the context: rules {rules}, passages {passages}, tools {tools}",
                    rules=len(rules),
                    passages=len(knowledge),
                    tools=len(tools),
                )
            case v.DecompositionRefused():
                return self.because(self.say("asks for other tasks"), event.reason)
            case v.GoalDecomposed(tasks=tasks):
                self._tasks = {f"t{n}": task.id for n, task in enumerate(tasks, start=1)}
                self._skipped = set()
                named = (f"{one.id} ({one.description})" for one in tasks)
                told = self.say("has 1 task") if len(tasks) == 1 else self._many(len(tasks))
                return self.because(told, ", ".join(named))
            case v.PhaseChanged(after=after):
                return self.say(PHASES[after])
            case v.AnswerWritten(text=text):
                if not text:
                    return self.say("the model has nothing to say")
                return self.say("answers: {text}", text=visible(text))
            case _:
                assert_never(event)

    def _many(self, tasks: int) -> str:
        return self.say("has {n} tasks", n=tasks)

    def _task(self, event: _Task, step: str) -> str:
        match event:
            case v.TaskScheduled():
                return self.say("{step} is scheduled", step=step)
            case v.TaskChosen():
                return self.say("{step} is next", step=step)
            case v.TaskStarted():
                return self._started(event, step)
            case v.ArgumentsWanted():
                return self.say("{step} lacks arguments; the model is asked first", step=step)
            case v.ArgumentsFilled(values=values):
                names = visible(", ".join(values)) or "–"
                told = "{step} has from the model: {names}"
                return self.say(told, step=step, names=names)
            case v.TaskFinished(skipped=why) if why:
                self._skipped.add(event.step_id)
                return self.because(self.say("{step} is left out", step=step), why)
            case v.TaskFinished():
                result = visible(spelled_result(event.result))
                return self.say("{step} returned: {result}", step=step, result=result)
            case v.TaskBroke():
                return self.because(self.say("{step} failed", step=step), event.failure.message)
            case v.TaskCompleted():
                skipped = event.step_id in self._skipped
                words = "{step} is skipped" if skipped else "{step} is completed"
                return self.say(words, step=step)
            case v.TaskFailed():
                return self.say("{step} waits for a person to decide", step=step)
            case _:
                assert_never(event)

    def _started(self, event: v.TaskStarted, step: str) -> str:
        told = self.say("{step} started", step=step) + self.nth_try(event.attempt, self._most)
        child = visible(event.child_id or "")
        return told + self.say(" as {child}", child=child) if child else told

    def _remember(self, tasks: Iterable[Mapping[str, Json]]) -> None:
        named = {f"t{n}": task for n, task in enumerate(tasks, start=1)}
        self._tasks = {step_id: str(task["id"]) for step_id, task in named.items()}
        self._skipped = {step_id for step_id, task in named.items() if task.get("skipped")}


def counted(tasks: int) -> str:
    return f"{tasks} task{'s' if tasks != 1 else ''}"
