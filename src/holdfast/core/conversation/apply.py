"""`apply`: the one place where an event changes a conversation's state. It decides nothing."""

from __future__ import annotations

from holdfast.core.conversation import fold, fold_kept
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.apply import apply_shared, replayed
from holdfast.core.run.moves import CONTINUE, settle
from holdfast.core.run.state import changed
from holdfast.core.run.wanting import CHANGED, RESUMED, wants
from holdfast.model import conversation_events as v
from holdfast.model import events as e


def apply(state: ConversationState, event: v.ConversationEvent, at: float) -> ConversationState:
    """The state after `event`, which is the next record of this run."""
    return replayed(state, ((at, event),), write)


def write(state: ConversationState, event: v.ConversationEvent, at: float) -> None:
    """Write `event` into a state that nobody else holds yet."""
    fields = state.__dict__
    fields["version"] += 1
    fields["updated_at"] = at
    match event:
        case v.ConversationOpened():
            fold.opened(state, event, at)
        case v.InputReceived():
            fold.input_received(state, event)
        case v.PhaseChanged():
            fold.phase_changed(state, event)
        case v.WorkStarted():
            fold.work_started(state, event)
        case v.ContextReceived():
            fold.context_received(state, event)
        case v.DecompositionRefused():
            fold.decomposition_refused(state, event)
        case v.GoalDecomposed():
            fold.goal_decomposed(state, event)
        case v.TaskScheduled():
            fold.task_scheduled(state, event)
        case v.TaskChosen():
            fold.task_chosen(state, event)
        case v.TaskStarted():
            fold.task_started(state, event)
        case v.ArgumentsWanted():
            fold.arguments_wanted(state, event)
        case v.ArgumentsFilled():
            fold.arguments_filled(state, event)
        case v.AnswerWritten():
            fold.answer_written(state, event)
        case v.TaskFinished():
            fold.task_finished(state, event)
        case v.TaskBroke():
            fold.task_broke(state, event)
        case v.TaskCompleted():
            fold.task_completed(state, event)
        case v.EngineFailed():
            wants(fold.failed(state, event), event.by, CHANGED)
        case v.TaskFailed():
            fold.task_failed(state, event)
        case v.TasksConfirmed():
            fold.tasks_confirmed(state)
        case v.TasksRefused():
            fold.tasks_refused(state, event)
        case v.PauseWished(wished=wished):
            how = CHANGED if wished else RESUMED
            wants(changed(state, pausing=wished), event.by, how)
        case v.EnginePaused():
            wants(state, event.by, CHANGED)
        case v.EngineResumed():
            wants(state, event.by, RESUMED)
        case v.EngineCompleted():
            pass
        case v.ConversationResumed():
            wants(fold_kept.turn_resumed(state, event), event.by, RESUMED)
        case v.ConversationStopped():
            wants(fold_kept.turn_stopped(state), event.by, CHANGED)
        case e.LateResultKept():
            fold_kept.late_result(state, event)
        case v.StartedOver():
            wants(fold.started_over(state), event.by, CHANGED)
        case v.SnapshotRestored():
            wants(fold_kept.restored(state, event), event.by, CHANGED)
        case e.ChildHeard():
            fold.child_heard(state, event)
        case _:
            apply_shared(state, event, at)
    if state.status is CONTINUE:
        settle(state, event)
