"""What the events that every run has do to its state, whichever machine it is."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.run import question_reducers as fold_questions
from holdfast.core.run import step_reducers as fold_steps
from holdfast.core.run.builder import Fold
from holdfast.model import events as e

SHARED: Mapping[type, Fold] = {
    e.AttemptFailed: fold_steps.attempt_failed,
    e.StepWoken: fold_steps.woken,
    e.StepReleased: fold_steps.released,
    e.OutcomeLost: fold_steps.outcome_lost,
    e.LateResultKept: lambda state, event, at: state,
    e.QuestionOpened: fold_questions.opened,
    e.QuestionAnswered: fold_questions.answered,
    e.QuestionExpired: fold_questions.expired,
    e.QuestionWithdrawn: fold_questions.withdrawn,
    e.QuestionReminded: fold_questions.reminded,
    e.QuestionEscalated: fold_questions.escalated,
    e.DraftKept: fold_questions.draft_kept,
    e.ChildHeard: fold_steps.child_heard,
    e.RunRecovered: fold_steps.recovered,
    e.CancelRequested: fold_steps.cancel_requested,
    e.RunCancelled: fold_steps.cancelled,
}
