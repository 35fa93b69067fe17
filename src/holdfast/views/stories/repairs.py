"""What is told of cases and patches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, assert_never

from holdfast.i18n.message import msg
from holdfast.model import events as e
from holdfast.model.repair import Diagnosis
from holdfast.model.retry import Cause
from holdfast.views.stories.lines import Sentence
from holdfast.views.stories.text import visible

CaseEvent: TypeAlias = (
    e.CaseOpened
    | e.CaseDiagnosed
    | e.DiagnosisRequested
    | e.DiagnosisReceived
    | e.PatchProposed
    | e.PatchRefused
    | e.PlanPatched
    | e.RepairProven
    | e.RepairDisproven
    | e.CaseClosed
)
PLANNER: Final = msg("planner")
CAUSES: Final[Mapping[Cause, str]] = {
    Cause.OUTAGE: msg("a service is down"),
    Cause.RATE_LIMIT: msg("a service wants to be left alone for a while"),
    Cause.CREDENTIALS: msg("the credentials are not accepted"),
    Cause.RIGHTS: msg("a right is missing"),
    Cause.ARGUMENT: msg("an argument is wrong"),
    Cause.PRECONDITION: msg("something else has to be done first"),
    Cause.CONFLICT: msg("it conflicts with what is there"),
    Cause.RESULT_SHAPE: msg("the result has another shape than the plan reads"),
    Cause.WRONG_RESULT: msg("the outcome is not what was wanted"),
    Cause.DOUBT: msg("it is not known whether it happened"),
    Cause.REFUSED: msg("a person said no"),
    Cause.PLAN: msg("the plan leads no further"),
    Cause.UNKNOWN: msg("it is not known what is wrong"),
}
"""Causes of failures in words."""
_LONGEST: Final = 300


def told(event: CaseEvent, steps: Callable[[Sequence[str]], str]) -> Sentence:
    """`steps` names listeners as the rest of the story does."""
    match event:
        case e.CaseOpened(listener_id=""):
            return PLANNER, msg("looks for what is wrong with the plan")
        case e.CaseOpened():
            what = steps((event.listener_id,))
            return PLANNER, msg("looks for what is wrong with {steps}", steps=what)
        case e.CaseDiagnosed() if event.diagnosis.source == "person":
            return PLANNER, msg("takes up what a person proposes")
        case e.CaseDiagnosed():
            return PLANNER, _diagnosed(event.diagnosis)
        case e.DiagnosisRequested():
            return PLANNER, _asks(event.number)
        case e.DiagnosisReceived():
            return PLANNER, _received(event)
        case e.PatchProposed():
            patch = event.proposal.patch
            return patch.by or PLANNER, _because(msg("proposes a repair"), patch.reason)
        case e.PatchRefused():
            return event.by, _because(msg("left the plan as it is"), event.reason)
        case e.PlanPatched():
            return _patched(event, steps)
        case e.RepairProven():
            return PLANNER, msg("the repair has helped")
        case e.RepairDisproven():
            what = steps((event.listener_id,))
            return PLANNER, msg("the repair has not helped: {steps} failed", steps=what)
        case e.CaseClosed():
            return PLANNER, msg("looks no further: {reason}", reason=event.reason)
        case _:
            assert_never(event)


def _received(event: e.DiagnosisReceived) -> str:
    if event.diagnosis is None:
        return msg("has no diagnosis: {reason}", reason=_said(event.reason))
    return _diagnosed(event.diagnosis)


def _asks(number: int) -> str:
    return msg("asks the application's hooks or a model what is wrong (request {n})", n=number)


def _diagnosed(diagnosis: Diagnosis) -> str:
    return _because(CAUSES[diagnosis.cause], diagnosis.summary)


def _because(told: str, reason: str) -> str:
    return msg("{told}: {reason}", told=told, reason=_said(reason)) if reason else told


def _patched(event: e.PlanPatched, steps: Callable[[Sequence[str]], str]) -> Sentence:
    who = event.by or PLANNER
    if event.fired:
        what = steps(event.fired)
        return who, msg("repaired the plan of this run; runs first: {steps}", steps=what)
    return who, msg("repaired the plan of this run")


def _said(text: str) -> str:
    return visible(text, _LONGEST)
