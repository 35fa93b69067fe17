"""From phase to phase: what the next event is when the consumer asks for it.

When a turn fails its steps are put aside (see `former`). To go on, it passes the seed's phases once
more, from idle to scheduling, with its context and its tasks at hand: what was done is kept, and
only what is left runs.
"""

from __future__ import annotations

from holdfast.core.conversation import questions, schedule
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.former import is_doubtful
from holdfast.core.conversation.references import with_dependencies
from holdfast.core.conversation.state import (
    ANSWER,
    CONFIRM,
    CONTEXT,
    DECOMPOSE,
    ConversationState,
)
from holdfast.core.run.steps import heard, is_news
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed, TemplateError
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import AfterFailure, EngineState, OnFailure
from holdfast.model.events import LateResultKept
from holdfast.model.retry import FailureKind

_WORTH_ASKING = (FailureKind.TRANSIENT, FailureKind.PERMANENT, FailureKind.UNKNOWN)
"""Failures about which a person is asked; what a person has refused is not asked again."""

_WORKING = (EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING, EngineState.EXECUTING)

MOST_AHEAD = 64
"""Events that are recorded before the consumer asks for them, so that a turn ends."""


def go_ahead(builder: Builder) -> None:
    """All that follows; a task, which may change the world, begins only when it is asked for."""
    for _ in range(MOST_AHEAD):
        before = builder.state.version
        if not may_choose(builder.state):
            advance(builder)
        if builder.state.version == before:
            return


def advance(builder: Builder) -> None:
    state = builder.state
    match state.phase:
        case EngineState.IDLE:
            if state.pending:
                builder.enter(EngineState.RECEIVING)
        case EngineState.RECEIVING:
            builder.enter(EngineState.CONTEXT_FETCHING)
        case EngineState.CONTEXT_FETCHING:
            _work_or_go_on(builder, CONTEXT, EngineState.DECOMPOSING)
        case EngineState.DECOMPOSING:
            _decompose(builder)
        case EngineState.SCHEDULING:
            _schedule(builder)
        case EngineState.EXECUTING:
            _execute(builder)
        case _:
            return


def _work_or_go_on(builder: Builder, step_id: str, after: EngineState) -> None:
    step = builder.state.steps.get(step_id)
    if step is None or step.status is StepStatus.READY:
        builder.emit(v.WorkStarted(step_id, builder.state.turn))
    elif step.status is StepStatus.DONE:
        builder.enter(after)


def _decompose(builder: Builder) -> None:
    """A person may have to see the tasks first; a pause that was wished takes hold after that."""
    confirm = builder.state.steps.get(CONFIRM)
    if confirm is not None and confirm.status is not StepStatus.DONE:
        if confirm.status is StepStatus.READY:
            questions.ask_to_confirm(builder)
        return
    _work_or_go_on(builder, DECOMPOSE, EngineState.SCHEDULING)
    if builder.state.phase is EngineState.SCHEDULING and builder.state.pausing:
        hold(builder)


def _schedule(builder: Builder) -> None:
    state = builder.state
    if state.scheduled < len(state.order):
        builder.emit(v.TaskScheduled(state.order[state.scheduled]))
    else:
        builder.enter(EngineState.EXECUTING)


def _execute(builder: Builder) -> None:
    """What has come of tasks is told before another one starts."""
    state = builder.state
    if state.untold:
        _tell(builder, state.untold[0])
    elif state.all_told:
        _complete(builder)
    elif may_choose(state):
        assert state.queue is not None
        _, number = state.queue[1]
        builder.emit(v.TaskChosen(f"t{number}"))


def may_choose(state: ConversationState) -> bool:
    """Whether the next event that the consumer asks for is the start of another task."""
    executing = state.phase is EngineState.EXECUTING and not state.untold
    return executing and state.queue is not None and state.places > 0


def rests(state: ConversationState) -> bool:
    """Nothing follows before word comes of the work that is under way."""
    working = state.in_flight > 0 and state.phase in _WORKING
    return working and not state.untold and not may_choose(state)


def _complete(builder: Builder) -> None:
    """The last word comes first, where there is a model to say it."""
    if builder.state.by_model and not builder.state.answer:
        _work_or_go_on(builder, ANSWER, EngineState.COMPLETED)
    else:
        builder.enter(EngineState.COMPLETED)
    if builder.state.phase is EngineState.COMPLETED:
        builder.emit(v.EngineCompleted())


def _tell(builder: Builder, step_id: str) -> None:
    step = builder.step(step_id)
    if step.status is StepStatus.DONE:
        builder.emit(v.TaskCompleted(step_id))
        return
    assert step.failure is not None
    if builder.state.settings.on_failure is OnFailure.ASK and step.failure.kind in _WORTH_ASKING:
        builder.emit(v.TaskFailed(step_id, step.failure.message))
        questions.ask_about_failure(builder, step_id, step.failure)
    else:
        builder.fail(step.failure.message, step_id)


def decomposed(builder: Builder, outcome: c.Decomposed) -> None:
    try:
        tasks = with_dependencies(outcome.tasks)
    except TemplateError as error:
        undecomposed(builder, str(error))
        return
    problem = schedule.problem_with(tasks)
    if problem is None:
        builder.emit(v.GoalDecomposed(tasks, outcome.by_model))
    else:
        undecomposed(builder, problem)


def undecomposed(builder: Builder, reason: str) -> None:
    """The model may mend it once."""
    if builder.state.complaint:
        builder.fail(msg("the goal could not be decomposed: {reason}", reason=reason))
    else:
        builder.emit(v.DecompositionRefused(reason))


def hold(builder: Builder, by: str = "") -> None:
    builder.enter(EngineState.PAUSED)
    builder.emit(v.EnginePaused(by))


def unhold(builder: Builder, by: str) -> None:
    builder.enter(builder.state.left)
    builder.emit(v.EngineResumed(by))


def abort(builder: Builder, reason: str, by: str = "") -> None:
    """A paused one passes the phase it was paused in: the table knows no other way."""
    if builder.state.phase is EngineState.PAUSED:
        builder.enter(builder.state.left)
    builder.fail(reason, by=by)


def go_on(builder: Builder, command: c.GoOn) -> None:
    if command.failed is AfterFailure.STOP:
        builder.enter(EngineState.IDLE)
        builder.emit(v.ConversationStopped(command.by))
        return
    skipped = tuple(to_skip(builder.state)) if command.failed is AfterFailure.SKIP else ()
    if command.failed is AfterFailure.SKIP and not skipped:
        raise NotAllowed(
            msg(
                "no task of {id} has failed, so there is none to skip: retry or stop",
                id=builder.state.run_id,
            )
        )
    builder.enter(EngineState.IDLE)
    builder.emit(v.ConversationResumed(command.failed, command.by, skipped))
    builder.enter(EngineState.RECEIVING)
    for step_id in doubtful(builder.state):
        questions.ask_unknown(builder, step_id, msg("it was under way when the turn failed"))


def choices(state: ConversationState) -> list[AfterFailure]:
    """What a person may choose; there is nothing to skip where no task has failed."""
    return [one for one in AfterFailure if one is not AfterFailure.SKIP or failed(state)]


def failed(state: ConversationState) -> list[str]:
    """The steps of the tasks that failed."""
    return [one for one in state.order if state.tasks[one].status == "failed"]


def to_skip(state: ConversationState) -> list[str]:
    """What failed, and whatever depends on that, however far away, and is not skipped already."""
    found = schedule.with_dependents(state.frees, failed(state))
    return [one for one in found if not state.tasks[one].skipped]


def doubtful(state: ConversationState) -> list[str]:
    """Tasks of which it is not known whether they took effect."""
    return [one for one in state.order if is_doubtful(state, one)]


def report_late(builder: Builder, command: c.ReportOutcome) -> None:
    """Word of work that was under way when its turn failed: what it says is kept for going on."""
    former = builder.state.former.get(command.step_id)
    stale = former is None or former.claim != command.claim
    match command.outcome:
        case c.Succeeded(result=result):
            builder.emit(LateResultKept(command.step_id, command.firing, result, stale))
        case c.Failed(failure=failure) if not stale and failure.kind is not FailureKind.UNKNOWN:
            builder.emit(v.TaskBroke(command.step_id, failure))
        case _:
            pass


def hear_late(builder: Builder, command: c.HearChild) -> None:
    """Word of a child run that failed with its task and may have been mended since."""
    former = builder.state.former.get(command.step_id)
    if former is not None and former.child_id == command.child_id and is_news(builder, command):
        builder.emit(heard(command))
