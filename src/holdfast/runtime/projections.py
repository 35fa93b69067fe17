"""What a run tells others: its questions as inboxes list them, and its outbox for its parent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from holdfast.core.run.state import QuestionState, RunState, waits_for
from holdfast.i18n.journaled import MESSAGES, beside, place_messages
from holdfast.journal.port import OutboxMessage, QuestionRow
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.commands import Cancel, HearChild, Resume
from holdfast.model.interaction import Waiting
from holdfast.model.record import adapter
from holdfast.model.recorded import Event
from holdfast.model.rows import question_body
from holdfast.model.rows import request_of as request_of  # where programs import it from
from holdfast.model.run import RunStatus
from holdfast.runtime.machines import machine_of, to_json

_TOLD = frozenset(
    {
        RunStatus.RUNNING,
        RunStatus.PAUSE,
        RunStatus.ERROR,
        RunStatus.DONE,
        RunStatus.CANCELLED,
    }
)


_named = attrgetter("question_id")
_QUESTION_OF: Mapping[type[Event], Callable[[Any], str]] = {
    e.QuestionOpened: attrgetter("request.request_id"),
    e.QuestionAnswered: _named,
    e.QuestionExpired: _named,
    e.QuestionWithdrawn: _named,
    e.QuestionEscalated: _named,
}
"""The question whose row an event changes."""


def question_rows(state: RunState, timed: Sequence[tuple[float, Event]]) -> Sequence[QuestionRow]:
    """The rows of the questions that these events opened or closed."""
    ids: dict[str, None] = {}
    for _, event in timed:
        if (named := _QUESTION_OF.get(type(event))) is not None:
            ids[named(event)] = None
    return [question_row(state, state.questions[one]) for one in ids] if ids else ()


def question_row(state: RunState, question: QuestionState) -> QuestionRow:
    request = question.request
    return QuestionRow(
        request.request_id,
        state.run_id,
        state.root_id,
        question.status.value,
        request.type.value,
        request.title,
        question.role,
        question.opened_at,
        question.deadline,
        question.closed_at,
        question_body(request, four_eyes=question.wanted_by is not None),
    )


def notices(before: RunState, state: RunState) -> tuple[OutboxMessage, ...]:
    """The message of a child run to its parent when its status or its question has changed, or it
    was answered."""
    parent = state.parent
    if parent is None or state.status not in _TOLD or _word(before) == _word(state):
        return ()
    if before.status is RunStatus.NOT_STARTED and state.status is RunStatus.RUNNING:
        return ()  # the parent's own start has just said so
    machine = machine_of(state)
    payload = {
        "step_id": parent.step_id,
        "firing": parent.firing,
        "status": state.status.value,
        "message": machine.error(state) if state.status is RunStatus.ERROR else "",
        "result": machine.result(state) if state.status is RunStatus.DONE else None,
        "ended_by": state.ended_by if state.status is RunStatus.CANCELLED else "",
        "waits_for": adapter(Waiting | None).dump_python(
            _asked(state), mode="json", exclude_defaults=True
        ),
        "provided": dict(state.provided_params),
        "continued_at": state.continued_at,
    }
    written = beside(to_json(payload), {"message": payload["message"]})
    return (OutboxMessage(parent.run_id, state.run_id, state.version, written),)


def word(effect: f.CancelChild | f.ResumeChild) -> str:
    """What a parent says to a child run, as the payload of a message."""
    match effect:
        case f.CancelChild(by=by, reason=reason):
            return to_json({"word": "cancel", "by": by, "reason": reason})
        case f.ResumeChild(by=by):
            return to_json({"word": "resume", "by": by})


def heard(notice: OutboxMessage) -> HearChild | Cancel | Resume:
    body = json.loads(notice.payload)
    match body.get("word"):
        case "cancel":
            return Cancel(body["by"], body["reason"])
        case "resume":
            return Resume(body["by"])
    found = body.pop(MESSAGES, ())
    asked = adapter(Waiting | None).validate_python(body.pop("waits_for", None))
    more = place_messages(body, found)
    return HearChild(notice.source_id, notice.seq, waits_for=asked, **more)


def _word(state: RunState) -> tuple[RunStatus, Waiting | None, float | None]:
    return state.status, _asked(state), state.continued_at


def _asked(state: RunState) -> Waiting | None:
    found = waits_for(state) if state.status is RunStatus.PAUSE else None
    return None if found is None else found[1]
