"""Which cases have come to what by a commit, for monitoring: causes and outcomes, and no ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from holdfast.core.plan.state import PlanState
from holdfast.journal.codec import decode
from holdfast.journal.port import Record, Written
from holdfast.model import events as e
from holdfast.model.interaction import REPAIR
from holdfast.model.recorded import Event
from holdfast.model.retry import Cause


class Outcome(StrEnum):
    OPENED = "opened"
    PROPOSED = "proposed"
    REFUSED = "refused"
    APPLIED = "applied"
    PROVEN = "proven"
    DISPROVEN = "disproven"
    CLOSED = "closed"


_OUTCOMES: Final[Mapping[str, Outcome]] = {
    e.CaseOpened.__name__: Outcome.OPENED,
    e.PatchProposed.__name__: Outcome.PROPOSED,
    e.PatchRefused.__name__: Outcome.REFUSED,
    e.PlanPatched.__name__: Outcome.APPLIED,
    e.RepairProven.__name__: Outcome.PROVEN,
    e.RepairDisproven.__name__: Outcome.DISPROVEN,
    e.CaseClosed.__name__: Outcome.CLOSED,
    e.QuestionWithdrawn.__name__: Outcome.CLOSED,
}


def outcomes(after: PlanState, records: Sequence[Written]) -> Iterator[tuple[Cause, Outcome]]:
    """Of what was committed, with the state that it led to; the cause is what is known by then."""
    for seq, at, name, body in records:
        if (outcome := _OUTCOMES.get(name)) is not None:
            case_id = _case_of(after, decode(Record(seq, at, name, body)))
            if case_id is not None:
                yield _cause(after, case_id), outcome


def _case_of(after: PlanState, event: Event) -> str | None:
    """None of a question that is about no repair."""
    if not isinstance(event, e.QuestionWithdrawn):
        return str(getattr(event, "case_id"))  # noqa: B009 - each event of the table has one
    question = after.questions[event.question_id]
    return str(question.request.context["case_id"]) if question.purpose == REPAIR else None


def _cause(after: PlanState, case_id: str) -> Cause:
    case = after.repair.cases[case_id]
    if case.diagnosis is not None:
        return case.diagnosis.cause
    return (case.failure.cause if case.failure else None) or Cause.UNKNOWN
