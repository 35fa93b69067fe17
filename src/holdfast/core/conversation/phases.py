"""From phase to phase: what the next event is when the consumer asks for it."""

from __future__ import annotations

from holdfast.core.conversation import questions
from holdfast.core.conversation.builder import Draft
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


def go_ahead(draft: Draft) -> None:
    """All that follows; a task, which may change the world, begins only when it is asked for."""
    for _ in range(MOST_AHEAD):
        before = draft.state.version
        if not may_choose(draft.state):
            advance(draft)
        if draft.state.version == before:
            return


def advance(draft: Draft) -> None:
    state = draft.state
    match state.phase:
        case EngineState.IDLE:
            if state.pending:
                draft.enter(EngineState.RECEIVING)
        case EngineState.RECEIVING:
            draft.enter(EngineState.CONTEXT_FETCHING)
        case EngineState.CONTEXT_FETCHING:
            _work_or_go_on(draft, CONTEXT, EngineState.DECOMPOSING)
        case EngineState.DECOMPOSING:
            _decompose(draft)
        case EngineState.SCHEDULING:
            _schedule(draft)
        case EngineState.EXECUTING:
            _execute(draft)
        case _:
            return


def _work_or_go_on(draft: Draft, step_id: str, after: EngineState) -> None:
    step = draft.state.steps.get(step_id)
    if step is None or step.status is StepStatus.READY:
        draft.emit(WorkStarted(step_id, draft.state.turn))
    elif step.status is StepStatus.DONE:
        draft.enter(after)


def _decompose(draft: Draft) -> None:
    """A person may have to see the tasks first; a pause that was wished takes hold after that."""
    confirm = draft.state.steps.get(CONFIRM)
    if confirm is not None and confirm.status is not StepStatus.DONE:
        if confirm.status is StepStatus.READY:
            questions.ask_to_confirm(draft)
        return
    _work_or_go_on(draft, DECOMPOSE, EngineState.SCHEDULING)
    if draft.state.phase is EngineState.SCHEDULING and draft.state.pausing:
        hold(draft)


def _schedule(draft: Draft) -> None:
    state = draft.state
    if state.scheduled < len(state.order):
        draft.emit(v.TaskScheduled(state.order[state.scheduled]))
    else:
        draft.enter(EngineState.EXECUTING)


def _execute(draft: Draft) -> None:
    """What has come of tasks is told before another one starts."""
    state = draft.state
    if state.untold:
        _tell(draft, state.untold[0])
    elif state.all_told:
        _complete(draft)
    elif may_choose(state):
        assert state.queue is not None
        _, number = state.queue[1]
        draft.emit(v.TaskChosen(f"t{number}"))


def may_choose(state: ConversationState) -> bool:
    """Whether the next event that the consumer asks for is the start of another task."""
    executing = state.phase is EngineState.EXECUTING and not state.untold
    return executing and state.queue is not None and state.places > 0


def rests(state: ConversationState) -> bool:
    """Nothing follows before word comes of the work that is under way."""
    working = state.in_flight > 0 and state.phase in _WORKING
    return working and not state.untold and not may_choose(state)


def _complete(draft: Draft) -> None:
    """The last word comes first, where there is a model to say it."""
    if draft.state.by_model and not draft.state.answer:
        _work_or_go_on(draft, ANSWER, EngineState.COMPLETED)
    else:
        draft.enter(EngineState.COMPLETED)
    if draft.state.phase is EngineState.COMPLETED:
        draft.emit(v.EngineCompleted())


def _tell(draft: Draft, step_id: str) -> None:
    step = draft.step(step_id)
    if step.status is StepStatus.DONE:
        draft.emit(v.TaskCompleted(step_id))
        return
    assert step.failure is not None
    if draft.state.settings.on_failure is OnFailure.ASK and step.failure.kind in _WORTH_ASKING:
        draft.emit(v.TaskFailed(step_id, step.failure.message))
        questions.ask_about_failure(draft, step_id, step.failure)
    else:
        draft.fail(step.failure.message, step_id)


def decomposed(draft: Draft, outcome: c.Decomposed) -> None:
    try:
        tasks = with_dependencies(outcome.tasks)
    except TemplateError as error:
        undecomposed(draft, str(error))
        return
    problem = problem_with(tasks)
    if problem is None:
        draft.emit(v.GoalDecomposed(tasks, outcome.by_model))
    else:
        undecomposed(draft, problem)


def undecomposed(draft: Draft, reason: str) -> None:
    """The model may mend it once."""
    if draft.state.complaint:
        draft.fail(f"the goal could not be decomposed: {reason}")
    else:
        draft.emit(v.DecompositionRefused(reason))


def hold(draft: Draft, by: str = "") -> None:
    draft.enter(EngineState.PAUSED)
    draft.emit(v.EnginePaused(by))


def unhold(draft: Draft, by: str) -> None:
    draft.enter(draft.state.left)
    draft.emit(v.EngineResumed(by))


def abort(draft: Draft, reason: str, by: str = "") -> None:
    """A paused one passes the phase it was paused in: the table knows no other way."""
    if draft.state.phase is EngineState.PAUSED:
        draft.enter(draft.state.left)
    draft.fail(reason, by=by)
