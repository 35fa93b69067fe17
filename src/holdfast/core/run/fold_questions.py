"""What the events of a question to a person do to the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rpds import HashTrieMap

from holdfast.core.forms.lost_results import told_result
from holdfast.core.run import moves, wanting
from holdfast.core.run.state import EMPTY, QuestionState, RunState, S, StepState, changed
from holdfast.core.run.tables import Signal, StepMove, StepStatus, close_question
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.interaction import (
    RUN_AGAIN,
    InteractionAction,
    InteractionRequest,
    InteractionStatus,
)

_GOING_ON = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)


def deadline_timer(question_id: str) -> str:
    return f"question:{question_id}"


def reminder_timer(question_id: str) -> str:
    return f"remind:{question_id}"


def escalation_timer(question_id: str) -> str:
    return f"escalate:{question_id}"


def deadline_of(request: InteractionRequest, now: float) -> float | None:
    return None if request.timeout_seconds is None else now + request.timeout_seconds


def opened(state: S, event: e.QuestionOpened, at: float) -> S:
    question_id = event.request.request_id
    question = QuestionState(
        request=event.request,
        step_id=event.step_id,
        firing=event.firing,
        purpose=event.purpose,
        opened_at=at,
        opened_seq=state.version,
        deadline=event.deadline,
        args=event.args,
        consent=event.consent,
        role=event.request.role,
        wanted_by=event.wanted_by,
    )
    state = changed(
        state,
        questions=state.questions.insert(question_id, question),
        open_questions=state.open_questions.insert(question_id),
        timers=_with_timers(state.timers, question),
    )
    changes = {"question_id": question_id, **_asked_by_the_work(state, event)}
    state = moves.move_step(state, event.step_id, StepMove.ASK, **changes)
    return moves.signal(state, Signal.ASK)


def _with_timers(
    timers: HashTrieMap[str, float], question: QuestionState
) -> HashTrieMap[str, float]:
    for name, at in _timers_of(question):
        timers = timers.insert(name, at)
    return timers


def _timers_of(question: QuestionState) -> Iterator[tuple[str, float]]:
    request = question.request
    if question.deadline is not None:
        yield deadline_timer(request.request_id), question.deadline
    if question.reminded < len(request.reminders):
        due = question.opened_at + request.reminders[question.reminded]
        yield reminder_timer(request.request_id), due
    if request.escalate_after is not None and question.role != request.escalate_to:
        yield escalation_timer(request.request_id), question.opened_at + request.escalate_after


def _asked_by_the_work(state: RunState, event: e.QuestionOpened) -> dict[str, Any]:
    """The work itself said what it lacks: it failed at nothing, and will send other bytes."""
    step = state.steps[event.step_id]
    if event.purpose != "missing" or step.status is not StepStatus.RUNNING:
        return {}
    return {"attempt": 0, "generation": step.generation + 1}


def answered(state: S, event: e.QuestionAnswered, at: float) -> S:
    question = state.questions[event.question_id]
    state = _closed(
        state,
        event.question_id,
        InteractionStatus.ANSWERED,
        at,
        by=event.by,
        option_id=event.option_id,
        data=event.data,
        feedback=event.feedback,
        wish=event.wish,
        **_changed_call(event),
    )
    state = changed(state, provided_params=event.values, continued_at=at)
    state = wanting.answered(state, question, event)
    state = moves.signal(state, Signal.ANSWER)
    said = None if _goes_on(question, event) else event.values.get("feedback") or event.feedback
    state = moves.move_step(state, question.step_id, None, feedback=said)
    return _answer_taken(state, question, event)


def _changed_call(event: e.QuestionAnswered) -> dict[str, Any]:
    """The question remembers what was consented to, where that is not what was shown."""
    if event.args is None or event.wish:
        return {}
    return {"args": event.args, "consent": event.consent}


def expired(state: S, event: e.QuestionExpired, at: float) -> S:
    question = state.questions[event.question_id]
    state = _closed(
        state, event.question_id, InteractionStatus.EXPIRED, at, option_id=event.option_id
    )
    state = _unasked(state)
    return state if event.option_id is None else _answer_taken(state, question, event)


def withdrawn(state: S, event: e.QuestionWithdrawn, at: float) -> S:
    return _unasked(_closed(state, event.question_id, InteractionStatus.WITHDRAWN, at))


def reminded(state: S, event: e.QuestionReminded) -> S:
    return _changed_while_open(state, event.question_id, reminded=event.count)


def escalated(state: S, event: e.QuestionEscalated) -> S:
    return _changed_while_open(state, event.question_id, role=event.role)


def draft_kept(state: S, event: e.DraftKept) -> S:
    question = state.questions[event.question_id]
    drafts = {**question.drafts, event.by: event.data}
    return _put(state, replace(question, drafts=drafts))


def _changed_while_open(state: S, question_id: str, **changes: Any) -> S:
    """The timer that brought this is over; the question's next one is set."""
    question = replace(state.questions[question_id], **changes)
    timers = _without_timers(state.timers, question_id)
    return _put(changed(state, timers=_with_timers(timers, question)), question)


def _put(state: S, question: QuestionState) -> S:
    questions = state.questions.insert(question.request.request_id, question)
    return changed(state, questions=questions)


def _without_timers(timers: HashTrieMap[str, float], question_id: str) -> HashTrieMap[str, float]:
    for name in (deadline_timer, reminder_timer, escalation_timer):
        timers = timers.discard(name(question_id))
    return timers


def _unasked(state: S) -> S:
    return state if moves.asks(state) else moves.signal(state, Signal.GO_ON)


def _answer_taken(
    state: S, question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> S:
    """The step learns the answer; what follows from it stands in the next events."""
    changes = _learnt(state, question, event) if _goes_on(question, event) else {}
    return moves.move_step(state, question.step_id, StepMove.GO_ON, **changes)


def _learnt(
    state: RunState, question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> dict[str, Any]:
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
    """The changed call is asked again; nobody has consented to it yet."""
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
    options = question.request.options
    return any(one.option_id == event.option_id and one.action in _GOING_ON for one in options)


def _closed(state: S, question_id: str, closed: InteractionStatus, at: float, **answer: Any) -> S:
    question = state.questions[question_id]
    status = close_question(question.status, closed)
    question = replace(question, status=status, closed_at=at, drafts={}, **answer)
    state = changed(
        _put(state, question),
        open_questions=state.open_questions.remove(question_id),
        timers=_without_timers(state.timers, question_id),
    )
    return moves.move_step(state, question.step_id, None, question_id=None)
