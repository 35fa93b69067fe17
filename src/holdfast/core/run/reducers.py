"""What each event that all machines share does to a run's state (`REDUCERS`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from immutables import Map

from holdfast.core.run import four_eyes as wanting
from holdfast.core.run.builder import Reducer
from holdfast.core.run.state import (
    CANCEL_TIMER,
    CHANGED,
    EMPTY,
    STARTED,
    QuestionState,
    S,
    StepState,
    asks,
    changed,
    ended,
    move_step,
    progressed,
    retry_timer,
    signal,
    unfail,
    wants,
    without,
)
from holdfast.core.run.tables import HELD_UP, Signal, StepMove, StepStatus, close_question
from holdfast.forms.lost_results import told_result
from holdfast.model import events as e
from holdfast.model.agent_events import CallStarted, SessionStarted
from holdfast.model.conversation_events import ConversationOpened, TaskStarted
from holdfast.model.effects import RecordedCall
from holdfast.model.interaction import (
    REPAIR,
    RUN_AGAIN,
    InteractionRequest,
    InteractionStatus,
)
from holdfast.model.record import replacing
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus


def call_started(state: S, event: CallStarted | TaskStarted, **more: Any) -> S:
    return move_step(
        state,
        event.step_id,
        StepMove.START,
        attempt=event.attempt,
        generation=event.generation,
        claim=state.version,
        args=event.args,
        consent=event.consent,
        idempotent=event.idempotent,
        child_id=event.child_id or state.steps[event.step_id].child_id,
        failure=None,
        **more,
    )


def begun(
    state: S,
    event: e.RunStarted | e.RunForked | SessionStarted | ConversationOpened,
    at: float,
    **more: Any,
) -> S:
    """The person who starts a run wants what it does."""
    known = {"root_id": event.root_id, "started_by": event.by, "created_at": at, **more}
    return signal(wants(changed(state, **known), event.by, STARTED), Signal.START)


def attempt_failed(state: S, event: e.AttemptFailed, at: float) -> S:
    """Only a failure that the tool itself answered calls for a new key."""
    answered = event.failure.kind is not FailureKind.UNKNOWN
    timers = state.timers.set(retry_timer(event.step_id), event.retry_at)
    return move_step(
        progressed(changed(state, timers=timers, retried=state.retried + 1)),
        event.step_id,
        StepMove.BACK_OFF,
        failure=event.failure,
        failing_since=_first_failure(state.steps[event.step_id], at),
        why=event.why,
        generation=state.steps[event.step_id].generation + answered,
        calling=None,
    )


def _first_failure(step: StepState, at: float) -> float:
    return at if step.failing_since is None else step.failing_since


def step_woken(state: S, event: e.StepWoken, at: float) -> S:
    timers = without(state.timers, retry_timer(event.step_id))
    return move_step(changed(state, timers=timers), event.step_id, StepMove.WAKE, why="")


def step_released(state: S, event: e.StepReleased, at: float) -> S:
    """As if it had not started; a run that is being cancelled will not start it again."""
    cancelling = state.status is RunStatus.CANCELLING
    attempt = state.steps[event.step_id].attempt - 1
    move = StepMove.STOP if cancelling else StepMove.RELEASE
    state = progressed(state)
    return move_step(state, event.step_id, move, attempt=attempt, calling=None)


def outcome_lost(state: S, event: e.OutcomeLost, at: float) -> S:
    """A run that is being cancelled does not ask: the step ends here, its outcome unknown."""
    if state.status is not RunStatus.CANCELLING:
        return state
    paused = state.steps[event.step_id].child_status == RunStatus.PAUSE
    state = changed(state, paused_children=state.paused_children - paused)
    changes = {"child_status": None, "waits_for": None}
    return move_step(state, event.step_id, StepMove.STOP, **changes)


def child_heard(state: S, event: e.ChildHeard, at: float) -> S:
    state = changed(state, heard=state.heard.set(event.child_id, event.seq))
    step = state.steps[event.step_id]
    revivable = step.status is StepStatus.FAILED and state.status is not RunStatus.CANCELLING
    if step.status is not StepStatus.RUNNING and not revivable:
        return state
    was, now = (one == RunStatus.PAUSE for one in (step.child_status, event.status))
    state = changed(state, paused_children=state.paused_children + now - was)
    state = _child_moved(_told_of_answer(state, event), step, event)
    return _child_pause_signal(state, was=was, now=now)


def _told_of_answer(state: S, event: e.ChildHeard) -> S:
    """A person's answer to a child run is one to this run as well; the last one counts."""
    if event.continued_at is None or event.continued_at <= (state.continued_at or 0.0):
        return state
    return changed(state, provided_params=event.provided, continued_at=event.continued_at)


def _child_moved(state: S, step: StepState, event: e.ChildHeard) -> S:
    """A child that goes on after its error takes its parent's step along."""
    changes: dict[str, Any] = {
        "child_status": event.status,
        "waits_for": event.waits_for,
        "resuming": False,
    }
    if event.status == RunStatus.DONE:
        changes["carried"] = (event.result,)
    move = _child_move(state, step, event.status)
    state = move_step(state, event.step_id, move, **changes)
    return unfail(state, event.step_id) if move is not None else state


def _child_move(state: S, step: StepState, child_status: str) -> StepMove | None:
    if state.status is RunStatus.CANCELLING:
        return None
    if child_status == RunStatus.DONE:
        return StepMove.GO_ON
    revived = step.status is StepStatus.FAILED and child_status in _ALIVE
    return StepMove.START if revived else None


_ALIVE = (RunStatus.RUNNING, RunStatus.PAUSE)


def _child_pause_signal(state: S, *, was: bool, now: bool) -> S:
    if state.status is RunStatus.CANCELLING or was == now:
        return state
    if now:
        return signal(state, Signal.ASK)
    return state if asks(state) else signal(state, Signal.GO_ON)


def children_resumed(state: S, step_ids: tuple[str, ...]) -> S:
    """Child runs that failed are told to go on; until they say so, their steps wait."""
    for step_id in step_ids:
        changes = {"child_status": None, "waits_for": None, "resuming": True}
        state = move_step(state, step_id, StepMove.START, **changes)
    return state


def run_recovered(state: S, event: e.RunRecovered, at: float) -> S:
    return changed(state, recoveries=event.count)


def cancel_requested(state: S, event: e.CancelRequested, at: float) -> S:
    """A parent that waits for the run goes on without it, as the person who ended it wants."""
    state = wants(state, event.by, CHANGED)
    for step_id, step in list(state.steps.items()):
        if step.status in HELD_UP:
            state = move_step(state, step_id, StepMove.STOP, pending=0)
    timers: Map[str, float] = Map({CANCEL_TIMER: event.grace_until})
    ended_by = event.by if event.everything else ""
    state = changed(state, timers=timers, cancelled_by=event.by, ended_by=ended_by, failed=())
    return signal(state, Signal.CANCEL)


def run_cancelled(state: S, event: e.RunCancelled, at: float) -> S:
    return ended(state, Signal.STOPPED)


_GOING_ON: Final = wanting.LEADS_TO_THE_CALL
_ANSWERED: Final = InteractionStatus.ANSWERED
_RUNNING: Final = StepStatus.RUNNING
_ASK: Final = StepMove.ASK
_GO_ON: Final = StepMove.GO_ON
_SIGNAL_ASK: Final = Signal.ASK
_SIGNAL_ANSWER: Final = Signal.ANSWER

_with = replacing(QuestionState)


def deadline_of(request: InteractionRequest, now: float) -> float | None:
    return None if request.timeout_seconds is None else now + request.timeout_seconds


def question_opened(state: S, event: e.QuestionOpened, at: float) -> S:
    question_id = event.request.request_id
    question = QuestionState(
        event.request,
        event.step_id,
        event.firing,
        event.purpose,
        at,
        state.version,
        event.deadline,
        event.args,
        event.consent,
        role=event.request.role,
        wanted_by=event.wanted_by,
    )
    state = changed(
        state,
        questions=state.questions.set(question_id, question),
        open_questions=state.open_questions.insert(question_id),
        timers=_with_timers(state.timers, question),
    )
    if event.purpose != REPAIR:  # the step of a repair has failed, and stays as it is
        asked = _asked_by_the_work(state.steps[event.step_id], event)
        state = move_step(state, event.step_id, _ASK, question_id=question_id, **asked)
    return signal(state, _SIGNAL_ASK)


def _with_timers(timers: Map[str, float], question: QuestionState) -> Map[str, float]:
    for name, at in _timers_of(question):
        timers = timers.set(name, at)
    return timers


def _timers_of(question: QuestionState) -> Iterator[tuple[str, float]]:
    request = question.request
    if question.deadline is not None:
        yield f"question:{request.request_id}", question.deadline
    if question.reminded < len(request.reminders):
        due = question.opened_at + request.reminders[question.reminded]
        yield f"remind:{request.request_id}", due
    if request.escalate_after is not None and question.role != request.escalate_to:
        due = question.opened_at + request.escalate_after
        yield f"escalate:{request.request_id}", due


def _asked_by_the_work(step: StepState, event: e.QuestionOpened) -> dict[str, Any]:
    """The work itself said what it lacks: it failed at nothing, and will send other bytes."""
    if event.purpose != "missing" or step.status is not _RUNNING:
        return {}
    return {"attempt": 0, "generation": step.generation + 1}


def question_answered(state: S, event: e.QuestionAnswered, at: float) -> S:
    question = state.questions[event.question_id]
    state = _closed(
        state,
        question,
        _ANSWERED,
        at,
        by=event.by,
        option_id=event.option_id,
        data=event.data,
        feedback=event.feedback,
        wish=event.wish,
        **_changed_call(event),
    )
    if question.purpose == REPAIR:
        return signal(wanting.answered(state, question, event), _SIGNAL_ANSWER)
    state = changed(state, provided_params=event.values, continued_at=at)
    state = wanting.answered(state, question, event)
    state = signal(state, _SIGNAL_ANSWER)
    said = event.values.get("feedback") or event.feedback
    learnt = _learnt(state, question, event) if _goes_on(question, event) else {"feedback": said}
    changes = {"question_id": None, "feedback": None, **learnt}
    return move_step(state, question.step_id, _GO_ON, **changes)


def _changed_call(event: e.QuestionAnswered) -> dict[str, Any]:
    """The question remembers what was consented to, where that is not what was shown."""
    if event.args is None or event.wish:
        return {}
    return {"args": event.args, "consent": event.consent}


def question_expired(state: S, event: e.QuestionExpired, at: float) -> S:
    question = state.questions[event.question_id]
    closed = _closed(state, question, InteractionStatus.EXPIRED, at, option_id=event.option_id)
    state = _unasked(closed)
    learnt = _learnt(state, question, event) if _goes_on(question, event) else {}
    move = None if event.option_id is None else _GO_ON
    return move_step(state, question.step_id, move, question_id=None, **learnt)


def question_withdrawn(state: S, event: e.QuestionWithdrawn, at: float) -> S:
    question = state.questions[event.question_id]
    state = _unasked(_closed(state, question, InteractionStatus.WITHDRAWN, at))
    if question.purpose == REPAIR:
        return state
    return move_step(state, question.step_id, None, question_id=None)


def question_reminded(state: S, event: e.QuestionReminded, at: float) -> S:
    return _changed_while_open(state, event.question_id, reminded=event.count)


def question_escalated(state: S, event: e.QuestionEscalated, at: float) -> S:
    return _changed_while_open(state, event.question_id, role=event.role)


def draft_kept(state: S, event: e.DraftKept, at: float) -> S:
    question = state.questions[event.question_id]
    drafts = {**question.drafts, event.by: event.data}
    return _put(state, _with(question, drafts=drafts))


def _changed_while_open(state: S, question_id: str, **changes: Any) -> S:
    """The timer that brought this is over; the question's next one is set."""
    question = _with(state.questions[question_id], **changes)
    timers = _without_timers(state.timers, question_id)
    return _put(changed(state, timers=_with_timers(timers, question)), question)


def _put(state: S, question: QuestionState) -> S:
    questions = state.questions.set(question.request.request_id, question)
    return changed(state, questions=questions)


def _without_timers(timers: Map[str, float], question_id: str) -> Map[str, float]:
    if len(timers):
        for name in ("question", "remind", "escalate"):
            timers = without(timers, f"{name}:{question_id}")
    return timers


def _unasked(state: S) -> S:
    return state if asks(state) else signal(state, Signal.GO_ON)


def _learnt(
    state: S, question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> dict[str, Any]:
    """What the step takes from the answer; what follows from it stands in the next events."""
    step = state.steps[question.step_id]
    match question.purpose:
        case "missing":
            # Other arguments than those that were consented to need a new consent.
            provided = {**step.provided, **event.values}
            sent = None if step.args is None else {**step.args, **event.values}
            former = step.consent or step.former_consent
            return {"provided": provided, "args": sent, "consent": None, "former_consent": former}
        case "approval" if isinstance(event, e.QuestionAnswered) and event.wish:
            return _wished(step, question, event)
        case "approval":
            return _consented(question, event)
        case "failed":
            return {"attempt": 0}
        case "secret":
            return {}
        case "unknown" if event.option_id == RUN_AGAIN:
            return {} if question.wanted_by is None else _asked_anew(step)
        case "unknown" if step.calling is not None:
            function, args, _ = step.calling
            call = RecordedCall(function, args, event.values.get("result"))
            return {"calls": (*step.calls, call), "calling": None}
        case "unknown":
            return {"carried": (told_result(question.request.form, event.values),)}
        case _:
            return {"carried": (dict(event.values),)}


def _consented(
    question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> dict[str, Any]:
    """What the person has seen, or changed it to."""
    if isinstance(event, e.QuestionAnswered) and event.args is not None:
        return {"consent": event.consent, "args": event.args, "grant_id": None}
    return {"consent": question.consent, "args": question.args, "grant_id": None}


def _wished(step: StepState, question: QuestionState, event: e.QuestionAnswered) -> dict[str, Any]:
    """The changed call is asked again; there is no consent to it yet."""
    args = event.args or EMPTY
    changes = {"provided": {**step.provided, **args}, "args": args, "grant_id": None}
    return {**changes, "consent": None, "former_consent": question.consent}


def _asked_anew(step: StepState) -> dict[str, Any]:
    """Under four eyes a further call is a further wish, also of what was consented to before."""
    former = step.consent or step.former_consent
    return {"consent": None, "former_consent": former, "grant_id": None}


def _goes_on(question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired) -> bool:
    if isinstance(event, e.QuestionAnswered) and event.action is not None:
        return event.action in _GOING_ON
    return wanting.action_of(question, event.option_id) in _GOING_ON


def _closed(
    state: S, question: QuestionState, closed: InteractionStatus, at: float, **answer: Any
) -> S:
    """The step that asked it is still to be told."""
    question_id = question.request.request_id
    status = close_question(question.status, closed)
    question = _with(question, status=status, closed_at=at, drafts={}, **answer)
    return changed(
        state,
        questions=state.questions.set(question_id, question),
        open_questions=state.open_questions.remove(question_id),
        timers=_without_timers(state.timers, question_id),
    )


REDUCERS: Mapping[type, Reducer] = {
    e.AttemptFailed: attempt_failed,
    e.StepWoken: step_woken,
    e.StepReleased: step_released,
    e.OutcomeLost: outcome_lost,
    e.LateResultKept: lambda state, event, at: state,
    e.QuestionOpened: question_opened,
    e.QuestionAnswered: question_answered,
    e.QuestionExpired: question_expired,
    e.QuestionWithdrawn: question_withdrawn,
    e.QuestionReminded: question_reminded,
    e.QuestionEscalated: question_escalated,
    e.DraftKept: draft_kept,
    e.ChildHeard: child_heard,
    e.RunRecovered: run_recovered,
    e.CancelRequested: cancel_requested,
    e.RunCancelled: run_cancelled,
}
