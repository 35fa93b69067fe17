"""`apply`: the one place where an event changes a conversation's state. It decides nothing."""

from __future__ import annotations

from typing import assert_never

from holdfast.core.conversation import fold
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run import fold_questions, fold_steps
from holdfast.core.run.moves import settled
from holdfast.core.run.state import successor
from holdfast.core.run.tables import Signal
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
        case v.TaskFinished():
            return fold.task_finished(state, event)
        case v.TaskBroke():
            return fold.task_broke(state, event)
        case v.TaskCompleted():
            return fold.task_completed(state, event)
        case v.EngineFailed():
            return fold.failed(state, event)
        case v.TaskFailed():
            return fold.task_failed(state, event)
        case v.EnginePaused() | v.EngineResumed() | v.EngineCompleted():
            return state
        case v.StartedOver():
            return fold.started_over(state)
        case v.SnapshotRestored():
            return fold.restored(state, event)
        case e.AttemptFailed():
            return fold_steps.attempt_failed(state, event)
        case e.StepWoken():
            return fold_steps.woken(state, event)
        case e.StepReleased():
            return fold_steps.released(state, event)
        case e.OutcomeLost():
            return fold_steps.outcome_lost(state, event)
        case e.LateResultKept():
            return state
        case e.QuestionOpened():
            return fold_questions.opened(state, event, at)
        case e.QuestionAnswered():
            return fold_questions.answered(state, event, at)
        case e.QuestionExpired():
            return fold_questions.expired(state, event, at)
        case e.QuestionWithdrawn():
            return fold_questions.withdrawn(state, event, at)
        case e.QuestionReminded():
            return fold_questions.reminded(state, event)
        case e.QuestionEscalated():
            return fold_questions.escalated(state, event)
        case e.DraftKept():
            return fold_questions.draft_kept(state, event)
        case e.ChildHeard():
            return fold.child_heard(state, event)
        case e.CancelRequested():
            return fold_steps.cancel_requested(state, event)
        case e.RunCancelled():
            return fold_steps.ended(state, Signal.STOPPED)
        case _:
            assert_never(event)
