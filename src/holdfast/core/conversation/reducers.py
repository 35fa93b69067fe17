"""`apply`: the one place where an event changes a conversation's state. It decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.conversation import restored_reducers as fold_kept
from holdfast.core.conversation import turn_reducers as fold
from holdfast.core.run.builder import Fold
from holdfast.core.run.reducers import SHARED
from holdfast.model import conversation_events as v
from holdfast.model import events as e

REDUCERS: Mapping[type, Fold] = {
    **SHARED,
    v.ConversationOpened: fold.opened,
    v.InputReceived: fold.input_received,
    v.PhaseChanged: fold.phase_changed,
    v.WorkStarted: fold.work_started,
    v.ContextReceived: fold.context_received,
    v.DecompositionRefused: fold.decomposition_refused,
    v.GoalDecomposed: fold.goal_decomposed,
    v.TaskScheduled: fold.task_scheduled,
    v.TaskChosen: fold.task_chosen,
    v.TaskStarted: fold.task_started,
    v.ArgumentsWanted: fold.arguments_wanted,
    v.ArgumentsFilled: fold.arguments_filled,
    v.AnswerWritten: fold.answer_written,
    v.TaskFinished: fold.task_finished,
    v.TaskBroke: fold.task_broke,
    v.TaskCompleted: fold.task_completed,
    v.EngineFailed: fold.failed,
    v.TaskFailed: fold.task_failed,
    v.TasksConfirmed: fold.tasks_confirmed,
    v.TasksRefused: fold.tasks_refused,
    v.PauseWished: fold.pause_wished,
    v.EnginePaused: fold.paused,
    v.EngineResumed: fold.unpaused,
    v.EngineCompleted: lambda state, event, at: state,
    v.ConversationResumed: fold_kept.turn_resumed,
    v.ConversationStopped: fold_kept.turn_stopped,
    v.StartedOver: fold.started_over,
    v.SnapshotRestored: fold_kept.restored,
    e.LateResultKept: fold_kept.late_result,
    e.ChildHeard: fold.child_heard,
}
