"""`apply`: the one place where an event changes a plan's state.

It decides nothing: every choice stands in the event. The moves come from the
tables, so an event that does not fit the state raises instead of bending it.
What each event does is told in `fold_steps`, `fold_questions` and `fold_runs`;
`fold` has the small changes that they are made of.
"""

from __future__ import annotations

from typing import assert_never

from holdfast.core.plan import fold_questions, fold_runs, fold_steps
from holdfast.core.plan.fold import asks, fire, moved, signal
from holdfast.core.plan.state import PlanState, changed, successor
from holdfast.core.plan.tables import Signal
from holdfast.model import events as e
from holdfast.model.plan import PlanInstanceStatus


def apply(state: PlanState, event: e.Event, at: float) -> PlanState:
    """The state after `event`, which is the next record of this run."""
    after = _apply(successor(state, at), event, at)
    return _settle_continue(after, event)


def _settle_continue(state: PlanState, event: e.Event) -> PlanState:
    """`continue` lasts from the answer until the run takes its next step."""
    if state.status is not PlanInstanceStatus.CONTINUE or isinstance(event, e.QuestionAnswered):
        return state
    return signal(state, Signal.ASK if asks(state) else Signal.GO_ON)


def _apply(state: PlanState, event: e.Event, at: float) -> PlanState:
    match event:
        case e.ListenerSucceeded():
            return moved(fold_steps.succeeded(state, event), event.moves, at)
        case e.ListenerStarted():
            return moved(fold_steps.started(state, event), event.moves, at)
        case e.RunStarted():
            return moved(fold_runs.started(state, event, at), event.moves, at)
        case e.AttemptFailed():
            return fold_steps.attempt_failed(state, event)
        case e.ListenerFailed():
            return moved(fold_steps.failed(state, event), event.moves, at)
        case e.ListenerWoken():
            return fold_steps.woken(state, event)
        case e.ListenerReleased():
            return fold_steps.released(state, event)
        case e.ListenerSkipped():
            return moved(fold_steps.skipped(state, event.listener_id), event.moves, at)
        case e.OutcomeLost():
            return fold_steps.outcome_lost(state, event)
        case e.LateResultKept():
            return state
        case e.FunctionCalled():
            return fold_steps.function_called(state, event)
        case e.FunctionReturned():
            return fold_steps.function_returned(state, event)
        case e.QuestionOpened():
            return moved(fold_questions.opened(state, event, at), event.moves, at)
        case e.QuestionAnswered():
            return fold_questions.answered(state, event, at)
        case e.QuestionExpired():
            return fold_questions.expired(state, event, at)
        case e.QuestionWithdrawn():
            return fold_questions.withdrawn(state, event, at)
        case e.PlannerRetried():
            return moved(fold_runs.planner_retried(state, event, at), event.moves, at)
        case e.PlannerGaveUp():
            return moved(fold_runs.planner_gave_up(state, event), event.moves, at)
        case e.RunResumed():
            return moved(fold_runs.resumed(state, event), event.moves, at)
        case e.VerificationStarted():
            return fire(changed(state, verifying=True), event.fired)
        case e.CheckConcluded():
            return fold_steps.check_concluded(state, event)
        case e.RunCompleted():
            return fold_runs.ended(moved(state, event.moves, at), Signal.FINISH)
        case e.TasksEdited():
            return moved(fold_runs.closed_by_hand(state, event.closed), event.moves, at)
        case e.ListenersReset():
            return moved(fold_runs.listeners_reset(state, event), event.moves, at)
        case e.ChildHeard():
            return fold_runs.child_heard(state, event)
        case e.RunRecovered():
            return changed(state, recoveries=event.count)
        case e.CancelRequested():
            return fold_runs.cancel_requested(state, event)
        case e.RunCancelled():
            return fold_runs.ended(moved(state, event.moves, at), Signal.STOPPED)
        case _:
            assert_never(event)
