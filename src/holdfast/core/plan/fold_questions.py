"""What the events of a question to a person do to the state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.core.plan import fold
from holdfast.core.plan.state import PlanState, QuestionState, changed
from holdfast.core.plan.tables import Signal, StepMove, StepStatus, close_question
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.interaction import InteractionAction, InteractionStatus

RUN_AGAIN = "run_again"

_GOING_ON = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)


def opened(state: PlanState, event: e.QuestionOpened, at: float) -> PlanState:
    question_id = event.request.request_id
    question = QuestionState(
        request=event.request,
        listener_id=event.listener_id,
        firing=event.firing,
        purpose=event.purpose,
        opened_at=at,
        opened_seq=state.version,
        deadline=event.deadline,
        args=event.args,
        consent=event.consent,
    )
    timers = state.timers
    if event.deadline is not None:
        timers = timers.insert(fold.question_timer(question_id), event.deadline)
    state = changed(
        state,
        questions=state.questions.insert(question_id, question),
        open_questions=state.open_questions.insert(question_id),
        timers=timers,
    )
    changes = {"question_id": question_id, **_asked_by_the_work(state, event)}
    state = fold.move_step(state, event.listener_id, StepMove.ASK, **changes)
    return fold.signal(state, Signal.ASK)


def _asked_by_the_work(state: PlanState, event: e.QuestionOpened) -> dict[str, Any]:
    """The work itself said what it lacks: it failed at nothing, and will send other bytes."""
    step = state.steps[event.listener_id]
    if event.purpose != "missing" or step.status is not StepStatus.RUNNING:
        return {}
    return {"attempt": 0, "generation": step.generation + 1}


def answered(state: PlanState, event: e.QuestionAnswered, at: float) -> PlanState:
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
    )
    state = fold.signal(state, Signal.ANSWER)
    state = changed(state, provided_params=event.values, continued_at=at)
    state = fold.move_step(state, question.listener_id, None, feedback=event.feedback)
    return _answer_taken(state, question, event)


def expired(state: PlanState, event: e.QuestionExpired, at: float) -> PlanState:
    question = state.questions[event.question_id]
    state = _closed(
        state, event.question_id, InteractionStatus.EXPIRED, at, option_id=event.option_id
    )
    state = _unasked(state)
    return state if event.option_id is None else _answer_taken(state, question, event)


def withdrawn(state: PlanState, event: e.QuestionWithdrawn, at: float) -> PlanState:
    return _unasked(_closed(state, event.question_id, InteractionStatus.WITHDRAWN, at))


def _unasked(state: PlanState) -> PlanState:
    return state if fold.asks(state) else fold.signal(state, Signal.GO_ON)


def _answer_taken(
    state: PlanState, question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> PlanState:
    """The step learns the answer; what follows from it stands in the next events."""
    changes = _learnt(state, question, event) if _goes_on(question, event.option_id) else {}
    return fold.move_step(state, question.listener_id, StepMove.GO_ON, **changes)


def _learnt(
    state: PlanState, question: QuestionState, event: e.QuestionAnswered | e.QuestionExpired
) -> dict[str, Any]:
    step = state.steps[question.listener_id]
    match question.purpose:
        case "missing":
            # Other arguments than those that were consented to need a new consent.
            return {"provided": {**step.provided, **event.values}, "consent": None}
        case "approval":
            return {"consent": question.consent, "args": question.args}
        case "unknown" if event.option_id == RUN_AGAIN:
            return {}
        case "unknown" if step.calling is not None:
            function, args, _ = step.calling
            call = RecordedCall(function, args, event.values.get("result"))
            return {"calls": (*step.calls, call), "calling": None}
        case _:
            return {"carried": (dict(event.values),)}


def _goes_on(question: QuestionState, option_id: str | None) -> bool:
    options = question.request.options
    return any(one.option_id == option_id and one.action in _GOING_ON for one in options)


def _closed(
    state: PlanState, question_id: str, closed: InteractionStatus, at: float, **answer: Any
) -> PlanState:
    question = state.questions[question_id]
    status = close_question(question.status, closed)
    question = replace(question, status=status, closed_at=at, **answer)
    state = changed(
        state,
        questions=state.questions.insert(question_id, question),
        open_questions=state.open_questions.remove(question_id),
        timers=state.timers.discard(fold.question_timer(question_id)),
    )
    return fold.move_step(state, question.listener_id, None, question_id=None)
