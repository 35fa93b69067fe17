"""`apply`: the one place where an event changes a session's state. It decides nothing."""

from __future__ import annotations

from holdfast.core.react import fold
from holdfast.core.react.state import ReactState
from holdfast.core.run import fold_questions, fold_steps
from holdfast.core.run.apply import apply_shared
from holdfast.core.run.moves import settled
from holdfast.core.run.state import changed, successor
from holdfast.model import events as e
from holdfast.model import react_events as r


def apply(state: ReactState, event: r.ReactEvent, at: float) -> ReactState:
    """The state after `event`, which is the next record of this run."""
    return settled(_apply(successor(state, at), event, at), event)


def _apply(state: ReactState, event: r.ReactEvent, at: float) -> ReactState:
    match event:
        case r.SessionStarted():
            return fold.session_started(state, event, at)
        case r.TurnStarted():
            return fold.turn_started(state, event)
        case r.CallProposed():
            return fold.call_proposed(state, event)
        case r.ThinkingStarted():
            return fold.thinking_started(state, event)
        case r.ModelReplied():
            return fold.model_replied(state, event)
        case r.CallStarted():
            return fold.call_started(state, event)
        case r.StepEnded():
            return fold.step_ended(state, event)
        case r.StepAbandoned():
            return fold.abandoned(state, event)
        case r.TurnCompleted():
            return fold.turn_completed(state, event)
        case r.TurnFailed():
            return fold.turn_failed(state, event)
        case r.TurnResumed():
            return fold.turn_resumed(state, event)
        case r.ApprovalRemembered():
            return fold.remembered(state, event)
        case r.ApprovalRevoked():
            return fold.revoked(state, event)
        case e.StepReleased():
            return fold_steps.released(fold.not_asked(state, event), event)
        case e.QuestionOpened():
            return fold_questions.opened(fold.asked(state, event), event, at)
        case e.CancelRequested():
            return fold_steps.cancel_requested(changed(state, open=False), event)
        case _:
            return apply_shared(state, event, at)
