"""A conversation's story: what was wanted, which tasks came of it, and what came of those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeAlias, assert_never, cast

from holdfast.core.conversation.briefing import spelled_result
from holdfast.core.conversation.state import ANSWER, CONFIRM, CONTEXT, DECOMPOSE, ConversationState
from holdfast.i18n.message import joined, msg, nmsg, pmsg
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.views.stories.calls import Asked
from holdfast.views.stories.lines import Sentence, Teller, as_child, said_so
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
    EngineState.IDLE: msg("is idle"),
    EngineState.RECEIVING: msg("receives the goal"),
    EngineState.CONTEXT_FETCHING: msg("fetches the context"),
    EngineState.DECOMPOSING: msg("makes tasks of the goal"),
    EngineState.SCHEDULING: msg("schedules the tasks"),
    EngineState.EXECUTING: msg("executes the tasks"),
    EngineState.PAUSED: msg("is paused"),
    EngineState.COMPLETED: msg("is completed"),
    EngineState.ERROR: msg("has failed"),
}
_PLACES: Mapping[EngineState, str] = {
    EngineState.IDLE: msg("idle"),
    EngineState.RECEIVING: pmsg("phase", "receiving"),
    EngineState.CONTEXT_FETCHING: pmsg("phase", "context_fetching"),
    EngineState.DECOMPOSING: pmsg("phase", "decomposing"),
    EngineState.SCHEDULING: pmsg("phase", "scheduling"),
    EngineState.EXECUTING: pmsg("phase", "executing"),
    EngineState.PAUSED: msg("paused"),
    EngineState.COMPLETED: msg("completed"),
    EngineState.ERROR: pmsg("phase", "error"),
}
_WORK = {
    CONTEXT: msg("asks for the context"),
    DECOMPOSE: msg("asks for tasks"),
    CONFIRM: msg("shows the tasks"),
    ANSWER: msg("asks for the answer"),
}


class ConversationStory(Teller):
    """Remembers the tasks: later events name a task by its step only."""

    itself: ClassVar[str] = msg("engine")

    def __init__(self, state: ConversationState, asked: Iterable[Asked] = ()) -> None:
        super().__init__(asked)
        self._tasks = {step_id: task.id for step_id, task in state.tasks.items()}
        self._skipped = {step_id for step_id, task in state.tasks.items() if task.skipped}
        self._most = state.settings.retry.attempts

    def step(self, step_id: str) -> str:
        if step_id in _WORK:
            return _WORK[step_id]
        return msg("task {id}", id=visible(self._tasks.get(step_id, step_id)))

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
                return event.by or self.itself, msg("began a conversation")
            case v.InputReceived():
                wanted = msg("wants: {text}", text=visible(event.text))
                return event.by or self.itself, wanted
            case v.TasksConfirmed():
                return event.by or self.itself, msg("wants these tasks run")
            case v.TasksRefused():
                return event.by or self.itself, msg("wants other tasks")
            case v.PauseWished() | v.EnginePaused() | v.EngineResumed():
                return self._pause(event)
            case v.EngineCompleted():
                return self.itself, self._completed()
            case v.EngineFailed():
                place = self.step(event.step_id) if event.step_id else _PLACES[event.phase]
                ended = msg("ended the turn at {place}", place=place)
                told = ended if event.by else msg("failed at {place}", place=place)
                return event.by or self.itself, self.because(told, event.error)
            case v.ConversationResumed():
                return event.by or self.itself, self._resumed(event)
            case v.ConversationStopped():
                return event.by or self.itself, msg("ended the turn that failed")
            case v.StartedOver():
                return event.by or self.itself, msg("started over")
            case v.SnapshotRestored():
                self._remember(event.snapshot["tasks"])
                told = msg("restored a snapshot") if event.by else msg("took a snapshot's place")
                return event.by or self.itself, told
            case _:
                assert_never(event)

    def _pause(self, event: v.PauseWished | v.EnginePaused | v.EngineResumed) -> Sentence:
        """Who did it, where the journal knows."""
        match event:
            case v.PauseWished(wished=True):
                told = (
                    msg("wants a pause before the first task")
                    if event.by
                    else msg("will pause before the first task")
                )
            case v.PauseWished():
                told = msg("no longer wants a pause") if event.by else msg("will not pause")
            case v.EnginePaused():
                told = (
                    msg("paused it; nothing more starts until it is resumed")
                    if event.by
                    else msg("starts nothing more until it is resumed")
                )
            case v.EngineResumed():
                told = msg("resumed it") if event.by else msg("was resumed")
            case _:
                assert_never(event)
        return event.by or self.itself, told

    def _completed(self) -> str:
        if not self._skipped:
            return msg("all tasks are done")
        done, skipped = len(self._tasks) - len(self._skipped), len(self._skipped)
        told = msg("tasks done: {done}, skipped: {skipped}", done=done, skipped=skipped)
        named = self._named(one for one in self._tasks if one in self._skipped)
        return joined("", (told, self.aside(named)))

    def _named(self, steps: Iterable[str]) -> str:
        return ", ".join(self._tasks.get(one, one) for one in steps)

    def _resumed(self, event: v.ConversationResumed) -> str:
        self._skipped |= {*event.skipped}
        if not event.skipped:
            return msg("has what failed tried again; what is done stays done")
        return msg("goes on without: {tasks}", tasks=visible(self._named(event.skipped)))

    def _work(self, event: _Work) -> str:
        match event:
            case v.WorkStarted():
                return self.step(event.step_id)
            case v.ContextReceived(rules=rules, knowledge=knowledge, tools=tools):
                return msg(
                    "has the context: rules {rules}, passages {passages}, tools {tools}",
                    rules=len(rules),
                    passages=len(knowledge),
                    tools=len(tools),
                )
            case v.DecompositionRefused():
                return self.because(msg("asks for other tasks"), event.reason)
            case v.GoalDecomposed(tasks=tasks):
                self._tasks = {f"t{n}": task.id for n, task in enumerate(tasks, start=1)}
                self._skipped = set()
                named = (f"{one.id} ({one.description})" for one in tasks)
                told = nmsg("has {n} task", "has {n} tasks", len(tasks))
                return self.because(told, ", ".join(named))
            case v.PhaseChanged(after=after):
                return PHASES[after]
            case v.AnswerWritten(text=text):
                if not text:
                    return msg("the model has nothing to say")
                return msg("answers: {text}", text=visible(text))
            case _:
                assert_never(event)

    def _task(self, event: _Task, step: str) -> str:
        match event:
            case v.TaskScheduled():
                return msg("{step} is scheduled", step=step)
            case v.TaskChosen():
                return msg("{step} is next", step=step)
            case v.TaskStarted():
                return self._started(event, step)
            case v.ArgumentsWanted():
                return msg("{step} lacks arguments; the model is asked first", step=step)
            case v.ArgumentsFilled(values=values):
                names = visible(", ".join(values)) or "–"
                return msg("{step} has from the model: {names}", step=step, names=names)
            case v.TaskFinished(skipped=why) if why:
                self._skipped.add(event.step_id)
                return self.because(msg("{step} is left out", step=step), why)
            case v.TaskFinished():
                return self._finished(event, step)
            case v.TaskBroke():
                return self.because(msg("{step} failed", step=step), event.failure.message)
            case v.TaskCompleted():
                if event.step_id in self._skipped:
                    return msg("{step} is skipped", step=step)
                return msg("{step} is completed", step=step)
            case v.TaskFailed():
                return msg("{step} waits for a person to decide", step=step)
            case _:
                assert_never(event)

    def _finished(self, event: v.TaskFinished, step: str) -> str:
        result = visible(spelled_result(event.result))
        if by := self.calls.confirmed_by(event.step_id):
            return self.because(said_so(step, by), result)
        return msg("{step} returned: {result}", step=step, result=result)

    def _started(self, event: v.TaskStarted, step: str) -> str:
        nth = self.nth_try(event.attempt, self._most)
        return joined("", (msg("{step} started", step=step), nth, as_child(event.child_id)))

    def _remember(self, tasks: Iterable[Mapping[str, Json]]) -> None:
        named = {f"t{n}": task for n, task in enumerate(tasks, start=1)}
        self._tasks = {step_id: str(task["id"]) for step_id, task in named.items()}
        self._skipped = {step_id for step_id, task in named.items() if task.get("skipped")}


def counted(tasks: int) -> str:
    return f"{tasks} task{'s' if tasks != 1 else ''}"
