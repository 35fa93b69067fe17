"""A conversation's decision in the making."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.conversation import restored_reducers as restored
from holdfast.core.conversation import turn_reducers as turns
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run import reducers as shared
from holdfast.core.run.builder import DecisionBuilder, Reducer
from holdfast.i18n.message import msg
from holdfast.model import conversation_events as v
from holdfast.model import events as e
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.conversation_events import ConversationEvent, EngineFailed, PhaseChanged
from holdfast.model.events import QuestionWithdrawn

REDUCERS: Mapping[type, Reducer] = {
    **shared.REDUCERS,
    v.ConversationOpened: turns.opened,
    v.InputReceived: turns.input_received,
    v.PhaseChanged: turns.phase_changed,
    v.WorkStarted: turns.work_started,
    v.ContextReceived: turns.context_received,
    v.DecompositionRefused: turns.decomposition_refused,
    v.GoalDecomposed: turns.goal_decomposed,
    v.TaskScheduled: turns.task_scheduled,
    v.TaskChosen: turns.task_chosen,
    v.TaskStarted: turns.task_started,
    v.ArgumentsWanted: turns.arguments_wanted,
    v.ArgumentsFilled: turns.arguments_filled,
    v.AnswerWritten: turns.answer_written,
    v.TaskFinished: turns.task_finished,
    v.TaskBroke: turns.task_broke,
    v.TaskCompleted: turns.task_completed,
    v.EngineFailed: turns.failed,
    v.TaskFailed: turns.task_failed,
    v.TasksConfirmed: turns.tasks_confirmed,
    v.TasksRefused: turns.tasks_refused,
    v.PauseWished: turns.pause_wished,
    v.EnginePaused: turns.paused,
    v.EngineResumed: turns.unpaused,
    v.EngineCompleted: lambda state, event, at: state,
    v.ConversationResumed: restored.turn_resumed,
    v.ConversationStopped: restored.turn_stopped,
    v.StartedOver: turns.started_over,
    v.SnapshotRestored: restored.restored,
    e.LateResultKept: restored.late_result,
    e.ChildHeard: turns.child_heard,
}


class Builder(DecisionBuilder[ConversationState, ConversationEvent]):
    REDUCERS = REDUCERS

    def task(self, step_id: str) -> SubTask:
        return self.state.tasks[step_id]

    def enter(self, phase: EngineState) -> None:
        self.emit(PhaseChanged(self.state.phase, phase))

    def fail(self, error: str, step_id: str = "", by: str = "") -> None:
        """The turn ends here, and says in which phase."""
        phase = self.state.phase
        self.withdraw_all(msg("the conversation failed: {reason}", reason=error))
        self.enter(EngineState.ERROR)
        self.emit(EngineFailed(error, phase, step_id, by))

    def withdraw_all(self, reason: str) -> None:
        for question_id in sorted(self.state.open_questions):
            self.emit(QuestionWithdrawn(question_id, reason))
