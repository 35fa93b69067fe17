"""An application's own hooks on failures: what they are given, and what becomes of their answers.

They are methods of a `PlannerAgent` that an application overrides. A hook is asked where a case
comes before a model or a person, ahead of both, and once for each look at the failure. The request
is in the journal before it is made, like one to a model, and counts like one: a process that goes
down in a hook again and again calls it no more often than the budgets allow.

What a hook returns is judged like anything else. It is code of the installation, so that its values
are no model's own; but it is no person, and may itself have asked a model: what only a person may
do it may not, and a person consents to what it proposes. One that is broken or slow changes
nothing: rules and models go on as without it, and the case says why.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from holdfast.errors import AuthorError, InvalidValue
from holdfast.i18n.message import joined, msg
from holdfast.language.strict import strict_json
from holdfast.model.plan import Plan
from holdfast.model.record import record
from holdfast.model.repair import Diagnosis, Evidence, Proposal, Thought
from holdfast.model.retry import Cause, Failure
from holdfast.model.values import Json, JsonObject
from holdfast.work.failed_attempts import sound
from holdfast.work.hooks import asked

HEARD: Final = msg("the application's own hooks were asked")
"""A complaint that begins so has the next request go to a model."""

HOOK: Final = "hook:"
"""How the sources of their diagnoses and patches begin."""

LONGEST_SUMMARY: Final = 500
_TOO_SHORT: Final = 0.001
"""Seconds in which no hook could answer."""

Operations: TypeAlias = Sequence[Mapping[str, Any]]
"""Those of a patch, as people write them."""

Judge: TypeAlias = Callable[[tuple[JsonObject, ...], str], Awaitable["Proposal | tuple[str, ...]"]]
"""What becomes of operations and their reason: a judged proposal, or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One failure of an instance, as hooks are given it; secrets are references in all of it.

    `listener_id` is empty where the plan as a whole leads no further. `diagnosis` is that of rules
    and lessons, `candidates` are their repairs, judged and rehearsed, the best first. `context` is
    that of the instance, `plan` its plan as it is now.
    """

    plan_instance_id: str
    case_id: str
    listener_id: str
    failure: Failure
    diagnosis: Diagnosis
    evidence: tuple[Evidence, ...]
    candidates: tuple[Proposal, ...]
    plan: Plan
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CaseHooks:
    """Both hooks of a planner; `source` names it, and together they may take `limit` seconds."""

    diagnose: Callable[..., Any]
    propose: Callable[..., Any]
    source: str
    limit: float


@record
class Heard:
    """What hooks made of a case; `why` says what was wrong with their answers."""

    diagnosis: Diagnosis | None = None
    proposal: Proposal | None = None
    why: str = ""


async def heard(hooks: CaseHooks, case: Case, judge: Judge) -> Heard:
    diagnosis, wrong = None, list[str]()
    ends = time.monotonic() + hooks.limit
    try:
        said = await asked(hooks.diagnose, case, limit=hooks.limit)
        diagnosis = read_diagnosis(said, case, hooks.source)
    except AuthorError as error:
        wrong.append(str(error))
    known, left = diagnosis or case.diagnosis, ends - time.monotonic()
    proposal = None
    try:
        if left > _TOO_SHORT:
            wanted = await asked(hooks.propose, case, known, limit=left)
            proposal = await _proposed(wanted, case, known.summary, judge)
    except AuthorError as error:
        wrong.append(str(error))
    return Heard(diagnosis, proposal, joined("; ", wrong) if wrong else "")


def concluded(told: Heard, usual: Diagnosis, *, goes_on: bool) -> Thought:
    """What comes of the request; that hooks had nothing to say is no failure. Where it `goes_on` a
    model is asked next, in a request of its own."""
    diagnosis = told.diagnosis or (usual if told.proposal or not told.why else None)
    complaint = joined("; ", (HEARD, told.why)) if told.why else HEARD
    return Thought(
        diagnosis,
        told.proposal,
        told.why,
        again=goes_on,
        complaint=complaint if goes_on else "",
    )


def of_model(complaint: str) -> str:
    """What was wrong with the last reply of a model's: nothing where hooks were asked before."""
    return "" if complaint.startswith(HEARD) else complaint


def after_hooks(thought: Thought, complaint: str) -> Thought:
    """A model's thought; what was wrong with hooks is told with it."""
    if not complaint.startswith(HEARD):
        return thought
    reasons = (complaint.removeprefix(HEARD).removeprefix("; "), thought.reason)
    told = [one for one in reasons if one]
    return replace(thought, reason=joined("; ", told) if told else "")


def read_diagnosis(returned: object, case: Case, source: str) -> Diagnosis | None:
    """As rules' and models' are: evidence must be the case's, and without any nothing is known."""
    if returned is None:
        return None
    if not isinstance(returned, Diagnosis):
        kind = type(returned).__name__
        raise AuthorError(msg("diagnose must return a Diagnosis or None, not {kind}", kind=kind))
    if any(one not in case.evidence for one in returned.evidence):
        raise AuthorError(msg("diagnose cites what is no evidence of the case"))
    try:
        cause = Cause(returned.cause)
    except ValueError:
        raise AuthorError(msg("diagnose names a cause that there is not")) from None
    summary = sound(str(returned.summary))[:LONGEST_SUMMARY]
    return Diagnosis(
        cause if returned.evidence else Cause.UNKNOWN, summary, tuple(returned.evidence), source
    )


async def _proposed(wanted: object, case: Case, reason: str, judge: Judge) -> Proposal | None:
    if wanted is None or wanted in case.candidates:
        return wanted if isinstance(wanted, Proposal) else None
    judged = await judge(_operations(wanted), reason)
    if isinstance(judged, Proposal):
        return judged
    problems = joined("; ", judged)
    raise AuthorError(
        msg("propose returned what cannot be proposed: {problems}", problems=problems)
    )


def _operations(wanted: object) -> tuple[JsonObject, ...]:
    """Those of a patch, as people write them."""
    told = msg("propose must return one of the candidates, a list of operations, or None")
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise AuthorError(told)
    try:
        return tuple(_operation(strict_json(one), told) for one in wanted)
    except InvalidValue as error:
        raise AuthorError(told) from error


def _operation(one: Json, told: str) -> JsonObject:
    if not isinstance(one, dict):
        raise AuthorError(told)
    return one
