"""`apply`: the one place where an event changes a plan's state.

It decides nothing: every choice stands in the event. The moves come from the
tables, so an event that does not fit the state raises instead of bending it.
What each event does is told in `fold_steps` and `fold_runs`, and for what every run has
in `core.run`; `fold` has the small changes that they are made of.
"""

from __future__ import annotations

from holdfast.core.plan import fold_runs, fold_steps
from holdfast.core.plan.fold import fire, moved
from holdfast.core.plan.state import PlanState
from holdfast.core.run import fold_questions
from holdfast.core.run import fold_steps as steps
from holdfast.core.run.apply import apply_shared, replayed
from holdfast.core.run.moves import CONTINUE, settle
from holdfast.core.run.state import changed
from holdfast.core.run.tables import Signal
from holdfast.core.run.wanting import CHANGED, wants
from holdfast.model import events as e


def apply(state: PlanState, event: e.PlanEvent, at: float) -> PlanState:
    """The state after `event`, which is the next record of this run."""
    return replayed(state, ((at, event),), write)


def write(state: PlanState, event: e.PlanEvent, at: float) -> None:
    """Write `event` into a state that nobody else holds yet."""
    fields = state.__dict__
    fields["version"] += 1
    fields["updated_at"] = at
    match event:
        case e.ListenerSucceeded():
            moved(fold_steps.succeeded(state, event), event.moves, at)
        case e.ListenerStarted():
            moved(fold_steps.started(state, event), event.moves, at)
        case e.RunStarted():
            moved(fold_runs.started(state, event, at), event.moves, at)
        case e.ListenerFailed():
            moved(fold_steps.failed(state, event), event.moves, at)
        case e.ListenerSkipped():
            state = fold_steps.skipped(wants(state, event.by, CHANGED), event.listener_id)
            moved(state, event.moves, at)
        case e.FunctionCalled():
            fold_steps.function_called(state, event)
        case e.FunctionReturned():
            fold_steps.function_returned(state, event)
        case e.QuestionOpened():
            moved(fold_questions.opened(state, event, at), event.moves, at)
        case e.PlannerRetried():
            moved(fold_runs.planner_retried(state, event, at), event.moves, at)
        case e.PlannerGaveUp():
            moved(fold_runs.planner_gave_up(state, event), event.moves, at)
        case e.RunResumed():
            moved(fold_runs.resumed(state, event), event.moves, at)
        case e.VerificationStarted():
            fire(changed(state, verifying=True), event.fired)
        case e.CheckConcluded():
            fold_steps.check_concluded(state, event)
        case e.RunCompleted():
            steps.ended(moved(state, event.moves, at), Signal.FINISH)
        case e.TasksEdited():
            state = fold_runs.closed_by_hand(wants(state, event.by, CHANGED), event.closed)
            moved(state, event.moves, at)
        case e.ListenersReset():
            state = fold_runs.listeners_reset(wants(state, event.by, CHANGED), event)
            moved(state, event.moves, at)
        case e.RunCancelled():
            steps.ended(moved(state, event.moves, at), Signal.STOPPED)
        case _:
            apply_shared(state, event, at)
    if state.status is CONTINUE:
        settle(state, event)
