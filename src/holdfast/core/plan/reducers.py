"""`apply`: the one place where an event changes a plan's state.

It decides nothing: every choice stands in the event. The moves come from the
tables, so an event that does not fit the state raises instead of bending it.
`FOLDS` names what each event does; it is told in `fold_steps` and `fold_runs`, and for what
every run has in `core.run`; `fold` has the small changes that they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.plan import run_reducers as fold_runs
from holdfast.core.plan import step_reducers as fold_steps
from holdfast.core.plan.state import PlanState
from holdfast.core.plan.task_changes import moved
from holdfast.core.run import question_reducers as fold_questions
from holdfast.core.run.builder import Fold
from holdfast.core.run.reducers import SHARED
from holdfast.model import events as e


def _question_opened(state: PlanState, event: e.QuestionOpened, at: float) -> None:
    moved(fold_questions.opened(state, event, at), event.moves, at)


REDUCERS: Mapping[type, Fold] = {
    **SHARED,
    e.RunStarted: fold_runs.started,
    e.ListenerStarted: fold_steps.started,
    e.ListenerSucceeded: fold_steps.succeeded,
    e.ListenerFailed: fold_steps.failed,
    e.ListenerSkipped: fold_steps.skipped,
    e.FunctionCalled: fold_steps.function_called,
    e.FunctionReturned: fold_steps.function_returned,
    e.QuestionOpened: _question_opened,
    e.PlannerRetried: fold_runs.planner_retried,
    e.PlannerGaveUp: fold_runs.planner_gave_up,
    e.RunResumed: fold_runs.resumed,
    e.VerificationStarted: fold_runs.verification_started,
    e.CheckConcluded: fold_steps.check_concluded,
    e.RunCompleted: fold_runs.completed,
    e.TasksEdited: fold_runs.tasks_edited,
    e.ListenersReset: fold_runs.listeners_reset,
    e.RunCancelled: fold_runs.cancelled,
}
