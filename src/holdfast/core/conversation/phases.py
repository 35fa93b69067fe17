"""From phase to phase: what the next event is when the consumer asks for it."""

from __future__ import annotations

from holdfast.core.conversation import questions
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.references import with_dependencies
from holdfast.core.conversation.schedule import problem_with
from holdfast.core.conversation.state import (
    ANSWER,
    CONFIRM,
    CONTEXT,
    DECOMPOSE,
    ConversationState,
)
from holdfast.core.run.tables import StepStatus
from holdfast.errors import TemplateError
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState, OnFailure
from holdfast.model.conversation_events import WorkStarted
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
        builder.emit(WorkStarted(step_id, builder.state.turn))
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
    problem = problem_with(tasks)
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
