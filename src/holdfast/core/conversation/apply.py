"""`apply`: the one place where an event changes a conversation's state. It decides nothing."""

from __future__ import annotations

from holdfast.core.conversation import fold, fold_kept
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.apply import apply_shared
from holdfast.core.run.moves import settled
from holdfast.core.run.state import changed, successor
from holdfast.core.run.wanting import CHANGED, RESUMED, wants
from holdfast.model import conversation_events as v
from holdfast.model import events as e


def apply(state: ConversationState, event: v.ConversationEvent, at: float) -> ConversationState:
    """The state after `event`, which is the next record of this run."""
    return settled(_apply(successor(state, at), event, at), event)


def _apply(state: ConversationState, event: v.ConversationEvent, at: float) -> ConversationState:
    match event:
        case v.ConversationOpened():
            return fold.opened(state, event, at)
        case v.InputReceived():
            return fold.input_received(state, event)
        case v.PhaseChanged():
            return fold.phase_changed(state, event)
        case v.WorkStarted():
            return fold.work_started(state, event)
        case v.ContextReceived():
            return fold.context_received(state, event)
        case v.DecompositionRefused():
            return fold.decomposition_refused(state, event)
        case v.GoalDecomposed():
            return fold.goal_decomposed(state, event)
        case v.TaskScheduled():
            return fold.task_scheduled(state, event)
        case v.TaskChosen():
            return fold.task_chosen(state, event)
        case v.TaskStarted():
            return fold.task_started(state, event)
        case v.ArgumentsWanted():
            return fold.arguments_wanted(state, event)
        case v.ArgumentsFilled():
            return fold.arguments_filled(state, event)
        case v.AnswerWritten():
            return fold.answer_written(state, event)
        case v.TaskFinished():
            return fold.task_finished(state, event)
        case v.TaskBroke():
            return fold.task_broke(state, event)
        case v.TaskCompleted():
            return fold.task_completed(state, event)
        case v.EngineFailed():
            return wants(fold.failed(state, event), event.by, CHANGED)
        case v.TaskFailed():
            return fold.task_failed(state, event)
        case v.TasksConfirmed():
            return fold.tasks_confirmed(state)
        case v.TasksRefused():
            return fold.tasks_refused(state, event)
        case v.PauseWished(wished=wished):
            how = CHANGED if wished else RESUMED
            return wants(changed(state, pausing=wished), event.by, how)
        case v.EnginePaused():
            return wants(state, event.by, CHANGED)
        case v.EngineResumed():
            return wants(state, event.by, RESUMED)
        case v.EngineCompleted():
            return state
        case v.ConversationResumed():
            return wants(fold_kept.turn_resumed(state, event), event.by, RESUMED)
        case v.ConversationStopped():
            return wants(fold_kept.turn_stopped(state), event.by, CHANGED)
        case e.LateResultKept():
            return fold_kept.late_result(state, event)
        case v.StartedOver():
            return wants(fold.started_over(state), event.by, CHANGED)
        case v.SnapshotRestored():
            return wants(fold_kept.restored(state, event), event.by, CHANGED)
        case e.ChildHeard():
            return fold.child_heard(state, event)
        case _:
            return apply_shared(state, event, at)
