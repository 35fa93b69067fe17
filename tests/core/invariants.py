"""What is true of every state, whatever happened: checked from scratch, without the counts."""

from __future__ import annotations

from holdfast.core.plan.state import PlanState
from holdfast.core.run.tables import ACTIVE_STEPS, StepStatus
from holdfast.model.interaction import REPAIR, InteractionStatus
from holdfast.model.plan import PlanInstanceStatus as Status
from holdfast.model.plan import TaskStatus
from holdfast.model.repair import CaseStatus

OPEN = (Status.RUNNING, Status.PAUSE, Status.CONTINUE)
ENDED = (Status.DONE, Status.CANCELLED)


def check_event(state: PlanState) -> None:
    """Holds after every single event."""
    _check_counts(state)
    _check_questions(state)
    _check_timers(state)
    _check_status(state)


def check_decision(state: PlanState) -> None:
    """Holds once a decision is complete."""
    for step_id, step in state.steps.items():
        waiting = step.status is StepStatus.WAITING
        timed = f"wait:{step_id}" in state.timers
        assert waiting == ((step.question_id is not None) != timed)
        assert (step.calling is None) or step.status in (StepStatus.RUNNING, *_ASKABLE)
    asked = [one for one in state.open_questions if state.questions[one].purpose == REPAIR]
    assert len(asked) == len(list(state.repair.in_status(CaseStatus.PROPOSED)))
    if state.status in OPEN:
        assert state.active > 0, "nothing is left to do, and nobody was told"
    if state.status is Status.CANCELLING:
        assert state.in_flight > 0, "nothing holds the cancellation up"


_ASKABLE = (StepStatus.WAITING, StepStatus.READY, StepStatus.STOPPED, StepStatus.SKIPPED)


def _check_counts(state: PlanState) -> None:
    steps = list(state.steps.values())
    running = [step for step in steps if step.status is StepStatus.RUNNING]
    by_child = [one for one in running if one.child_id and not one.carried and not one.resuming]
    asleep = [one for one in steps if one.status in (StepStatus.WAITING, StepStatus.BACKOFF)]
    assert state.active == sum(step.status in ACTIVE_STEPS for step in steps)
    assert state.in_flight == len(running)
    assert state.resting == len(by_child) + len(asleep)
    assert state.paused_children == sum(step.child_status == "pause" for step in steps)
    done = [task for task in state.tasks.values() if task.status is TaskStatus.DONE]
    assert state.done_tasks == len(done)
    failed = {one for one, step in state.steps.items() if step.status is StepStatus.FAILED}
    assert set(state.failed) == failed
    assert len(state.failed) == len(failed)


def _check_cases(state: PlanState, opened: set[str]) -> None:
    """Each proposal is asked about once; a patched run keeps the plan that it began with."""
    about = [state.questions[one] for one in opened if state.questions[one].purpose == REPAIR]
    proposed = [one for one in state.repair.in_status(CaseStatus.PROPOSED) if one.proposal]
    asked = sorted(str(one.request.context["case_id"]) for one in about)
    assert set(asked) <= {one.case_id for one in proposed}
    assert len(set(asked)) == len(asked)
    assert (state.origin is None) == (not state.repair.patches)


def _check_questions(state: PlanState) -> None:
    opened = {
        question_id
        for question_id, question in state.questions.items()
        if question.status is InteractionStatus.OPEN
    }
    assert set(state.open_questions) == opened
    _check_cases(state, opened)
    of_steps = {one for one in opened if state.questions[one].purpose != REPAIR}
    for question_id in of_steps:
        step = state.steps[state.questions[question_id].step_id]
        assert step.status is StepStatus.WAITING
        assert step.question_id == question_id
    asked = {step.question_id for step in state.steps.values()} - {None}
    assert asked == of_steps


def _check_timers(state: PlanState) -> None:
    retries = {
        f"retry:{listener_id}"
        for listener_id, step in state.steps.items()
        if step.status is StepStatus.BACKOFF
    }
    deadlines = {
        f"question:{one}"
        for one in state.open_questions
        if state.questions[one].deadline is not None
    }
    waits = {name for name in state.timers if name.startswith("wait:")}
    for name in waits:
        assert state.steps[name.removeprefix("wait:")].status is StepStatus.WAITING
    cancel = {"cancel"} if state.status is Status.CANCELLING else set()
    assert set(state.timers) == retries | deadlines | waits | cancel


def _check_status(state: PlanState) -> None:
    asks = bool(state.open_questions) or state.paused_children > 0
    match state.status:
        case Status.RUNNING:
            assert not asks
        case Status.PAUSE:
            assert asks
        case Status.DONE:
            assert state.active == 0
            assert state.main_task.status in (TaskStatus.DONE, TaskStatus.SKIPPED)
        case Status.CANCELLED:
            assert state.active == 0
            assert state.cancelled_by is not None
        case Status.CANCELLING:
            assert not state.open_questions
    if state.status not in OPEN:
        statuses = {step.status for step in state.steps.values()}
        assert StepStatus.CONSULTING not in statuses
