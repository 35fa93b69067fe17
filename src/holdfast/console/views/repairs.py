"""What a run's page shows of repairs: diagnoses, also of the sub-runs that failed below it, and how
the run's plan was changed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.console.repair_words import KINDS_OF_FAILURE
from holdfast.console.views.facts import Fact
from holdfast.console.views.repair_card import (
    LONGEST_VALUE,
    Change,
    Said,
    changes,
    said,
    short_facts,
    source_of,
)
from holdfast.errors import NotFound
from holdfast.language.display import clip, visible
from holdfast.model.repair import CaseStatus, Evidence
from holdfast.model.retry import Cause
from holdfast.model.run import RunKind
from holdfast.model.values import Json
from holdfast.server.auth.authentication import Caller
from holdfast.server.services import Services
from holdfast.views import repairs
from holdfast.views.failures import Failures, failures
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.records import CaseView, PatchView
from holdfast.views.stories.repairs import CAUSES

MOST_BELOW: Final = 10
"""Sub-runs that are looked into."""

_CUT: Final = "…"
_CAUSES: Final = frozenset(one.value for one in Cause)
_PERSON: Final = "person"
_OVER: Final = (CaseStatus.PROVEN, CaseStatus.CLOSED)


@dataclass(frozen=True, slots=True)
class Clue:
    """A line of evidence: an event of the run, and what it says."""

    seq: int
    event: str
    message: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseLine:
    """A failure, of the run of the page or of one below it; `name` is the step's."""

    run_id: str
    name: str
    case: CaseView
    summary: Said
    clues: tuple[Clue, ...]

    @property
    def id(self) -> str:
        return f"{self.run_id}-{self.case.case_id}"

    @property
    def cause(self) -> str:
        return CAUSES[self.case.cause] if self.case.cause else ""

    @property
    def source(self) -> str:
        return source_of(self.case.diagnosis.source) if self.case.diagnosis else ""

    @property
    def refusal(self) -> Said:
        return Said(self.case.reason, _PERSON)

    @property
    def over(self) -> bool:
        return self.case.status in _OVER


@dataclass(frozen=True, slots=True)
class Applied:
    """A change of the run's plan; `outcome` is what came of it, once known."""

    patch: PatchView
    outcome: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Repairs:
    """`again` are the steps that a resume alone would run."""

    run_id: str
    cases: tuple[CaseLine, ...]
    over: tuple[CaseLine, ...]
    applied: tuple[Applied, ...]
    again: tuple[str, ...]

    @property
    def told(self) -> bool:
        return bool(self.cases or self.over or self.applied)


async def repairs_of(
    served: Services, caller: Caller, run: RunVersion, found: Failures | None
) -> Repairs:
    lines = [one async for one in _lines(served.reader, run, found)]
    async for child, below in _failed_below(served, caller, found):
        lines += [one async for one in _lines(served.reader, child, below)]
    return Repairs(
        run_id=run.run_id,
        cases=tuple(one for one in lines if not one.over),
        over=tuple(one for one in lines if one.over),
        applied=await _applied(run),
        again=found.again if found else (),
    )


async def _lines(
    reader: RunReader, run: RunVersion, found: Failures | None
) -> AsyncIterator[CaseLine]:
    """The newest first."""
    names = {one.step_id: one.name for one in found.rows} if found else {}
    for case in reversed(_cases(run)):
        name, found_out = names.get(case.listener_id, case.listener_id), case.diagnosis
        summary = said(found_out.summary, found_out.source) if found_out else said("", "")
        cited = found_out.evidence if found_out else ()
        clues = [clue_of(one, await repairs.cited(reader, run, one)) for one in cited]
        yield CaseLine(run.run_id, name, case, summary, tuple(clues))


def _cases(run: RunVersion) -> tuple[CaseView, ...]:
    return repairs.cases(run) if run.kind is RunKind.PLAN else ()


async def _failed_below(
    served: Services, caller: Caller, found: Failures | None
) -> AsyncIterator[tuple[RunVersion, Failures | None]]:
    """The sub-runs that have failed steps of this run, and those below them."""
    waiting, left = _children(found), MOST_BELOW
    while waiting and left:
        child_id, left = waiting.pop(0), left - 1
        with suppress(NotFound):
            await caller.subject_of(served, child_id)
            child = await served.reader.at(child_id)
            below = await failures(served.reader, child, "", operates=False)
            waiting += _children(below)
            yield child, below


def _children(found: Failures | None) -> list[str]:
    return [one.child_id for one in found.rows if one.child_id] if found else []


def clue_of(one: Evidence, cited: str = "") -> Clue:
    """Our lines are JSON; another planner's may be anything. What is `cited` is in the event's own
    words, which evidence may have cut."""
    try:
        told: Any = json.loads(one.text)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return Clue(one.seq, "", one.text)
    event, message = str(told.pop("event", "")), str(told.pop("message", ""))
    same = message and visible(cited).startswith(message.removesuffix(_CUT))
    return Clue(one.seq, event, cited if same else message, tuple(_facts(told)))


def _facts(told: Mapping[str, Json]) -> Iterator[Fact]:
    """Each in words where it is one of ours."""
    for fact in short_facts(told):
        value = told[fact.name]
        match fact.name, value:
            case "cause", str() if value in _CAUSES:
                yield replace(fact, text=CAUSES[Cause(value)])
            case "kind", str():
                yield replace(fact, text=KINDS_OF_FAILURE.get(value, value))
            case "listeners", list():
                yield replace(fact, text=clip(", ".join(map(str, value)), LONGEST_VALUE))
            case _:
                yield fact


async def _applied(run: RunVersion) -> tuple[Applied, ...]:
    """The newest first."""
    cases = {one.case_id: one for one in _cases(run)}
    patches = await run.beside(repairs.patches, run) if cases else ()
    return tuple(
        Applied(
            patch=patch,
            outcome=_outcome(patch, cases[patch.case_id]),
            changes=tuple(changes(patch.words, patch.operations)),
        )
        for patch in reversed(patches)
    )


def _outcome(patch: PatchView, case: CaseView) -> str:
    """What came of it, as `repair_words.OUTCOMES` has it."""
    if case.patch_id == patch.patch_id and case.status is CaseStatus.APPLIED:
        return ""
    helped = case.patch_id == patch.patch_id and case.status is CaseStatus.PROVEN
    return "helped" if helped else "in_vain"
