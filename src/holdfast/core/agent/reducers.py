"""`apply`: the one place where an event changes a session's state. It decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.agent import session_reducers as fold
from holdfast.core.run.builder import Fold
from holdfast.core.run.reducers import SHARED
from holdfast.model import agent_events as r
from holdfast.model import events as e

REDUCERS: Mapping[type, Fold] = {
    **SHARED,
    r.SessionStarted: fold.session_started,
    r.TurnStarted: fold.turn_started,
    r.CallProposed: fold.call_proposed,
    r.ThinkingStarted: fold.thinking_started,
    r.ModelReplied: fold.model_replied,
    r.CallStarted: fold.call_started,
    r.StepEnded: fold.step_ended,
    r.StepAbandoned: fold.abandoned,
    r.TurnCompleted: fold.turn_completed,
    r.TurnFailed: fold.turn_failed,
    r.TurnResumed: fold.turn_resumed,
    r.ApprovalRemembered: fold.remembered,
    r.ApprovalRevoked: fold.revoked,
    e.StepReleased: fold.released,
    e.QuestionOpened: fold.question_opened,
    e.CancelRequested: fold.cancel_requested,
}
