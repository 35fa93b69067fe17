"""`apply`: the one place where an event changes a session's state. It decides nothing."""

from __future__ import annotations

from holdfast.core.react import fold
from holdfast.core.react.state import ReactState
from holdfast.core.run import fold_questions, fold_steps
from holdfast.core.run.apply import apply_shared, replayed
from holdfast.core.run.moves import CONTINUE, settle
from holdfast.core.run.state import changed
from holdfast.model import events as e
from holdfast.model import react_events as r


def apply(state: ReactState, event: r.ReactEvent, at: float) -> ReactState:
    """The state after `event`, which is the next record of this run."""
    return replayed(state, ((at, event),), write)


def write(state: ReactState, event: r.ReactEvent, at: float) -> None:
    """Write `event` into a state that nobody else holds yet."""
    fields = state.__dict__
    fields["version"] += 1
    fields["updated_at"] = at
    match event:
        case r.SessionStarted():
            fold.session_started(state, event, at)
        case r.TurnStarted():
            fold.turn_started(state, event)
        case r.CallProposed():
            fold.call_proposed(state, event)
        case r.ThinkingStarted():
            fold.thinking_started(state, event)
        case r.ModelReplied():
            fold.model_replied(state, event)
        case r.CallStarted():
            fold.call_started(state, event)
        case r.StepEnded():
            fold.step_ended(state, event)
        case r.StepAbandoned():
            fold.abandoned(state, event)
        case r.TurnCompleted():
            fold.turn_completed(state, event)
        case r.TurnFailed():
            fold.turn_failed(state, event)
        case r.TurnResumed():
            fold.turn_resumed(state, event)
        case r.ApprovalRemembered():
            fold.remembered(state, event)
        case r.ApprovalRevoked():
            fold.revoked(state, event)
        case e.StepReleased():
            fold_steps.released(fold.not_asked(state, event), event)
        case e.QuestionOpened():
            fold_questions.opened(fold.asked(state, event), event, at)
        case e.CancelRequested():
            fold_steps.cancel_requested(changed(state, open=False), event)
        case _:
            apply_shared(state, event, at)
    if state.status is CONTINUE:
        settle(state, event)
