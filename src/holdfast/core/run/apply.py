"""What the events that every run has do to its state, whichever machine it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, assert_never

from holdfast.core.run import fold_questions, fold_steps
from holdfast.core.run.state import S, changed, successor
from holdfast.core.run.tables import Signal
from holdfast.model import events as e


def replayed(
    state: S, records: Iterable[tuple[float, Any]], write: Callable[[S, Any, float], None]
) -> S:
    """The state after `(at, event)` records, all written into one successor."""
    after = successor(state)
    for at, event in records:
        write(after, event, at)
    return after


def apply_shared(state: S, event: e.RunEvent, at: float) -> S:
    match event:
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
            return fold_steps.child_heard(state, event)
        case e.RunRecovered():
            return changed(state, recoveries=event.count)
        case e.CancelRequested():
            return fold_steps.cancel_requested(state, event)
        case e.RunCancelled():
            return fold_steps.ended(state, Signal.STOPPED)
        case _:
            assert_never(event)
