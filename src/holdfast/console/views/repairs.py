"""What a run's page shows of repairs: diagnoses, also of the sub-runs that failed below it, and how
the run's plan was changed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from holdfast.console.views.facts import Fact
from holdfast.console.views.repair_card import Change, Said, changes, said, short_facts, source_of
from holdfast.errors import NotFound
from holdfast.model.repair import CaseStatus, Evidence
from holdfast.model.run import RunKind
from holdfast.server.auth.authentication import Caller
from holdfast.server.services import Services
from holdfast.views import repairs
from holdfast.views.failures import Failures, failures
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.records import CaseView, PatchView
from holdfast.views.stories.repairs import CAUSES

MOST_BELOW: Final = 10
"""Sub-runs that are looked into."""

_AT_ONCE: Final = 500
_PATCHED: Final = "PlanPatched"
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
    def over(self) -> bool:
        return self.case.status in _OVER


@dataclass(frozen=True, slots=True)
class Applied:
    """A change of the run's plan, by the event `seq`; `outcome` is what came of it, once known."""

    patch: PatchView
    seq: int
    at: float
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
    lines = list(_lines(run, found))
    async for child, below in _failed_below(served, caller, found):
        lines += _lines(child, below)
    return Repairs(
        run_id=run.run_id,
        cases=tuple(one for one in lines if not one.over),
        over=tuple(one for one in lines if one.over),
        applied=await _applied(served.reader, run),
        again=found.again if found else (),
    )


def _lines(run: RunVersion, found: Failures | None) -> Iterator[CaseLine]:
    """The newest first."""
    names = {one.step_id: one.name for one in found.rows} if found else {}
    for case in reversed(_cases(run)):
        name, found_out = names.get(case.listener_id, case.listener_id), case.diagnosis
        summary = said(found_out.summary, found_out.source) if found_out else said("", "")
        cited = found_out.evidence if found_out else ()
        yield CaseLine(run.run_id, name, case, summary, tuple(map(clue_of, cited)))


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


def clue_of(one: Evidence) -> Clue:
    """Our lines are JSON; another planner's may be anything."""
    try:
        told: Any = json.loads(one.text)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return Clue(one.seq, "", one.text)
    event, message = str(told.pop("event", "")), str(told.pop("message", ""))
    return Clue(one.seq, event, message, tuple(short_facts(told)))


async def _applied(reader: RunReader, run: RunVersion) -> tuple[Applied, ...]:
    """The newest first."""
    cases = {one.case_id: one for one in _cases(run)}
    patches = await run.beside(repairs.patches, run) if cases else ()
    if not patches:
        return ()
    since = min(one.opened_seq for one in cases.values())
    moments = await _moments(reader, run, since, len(patches))
    return tuple(
        Applied(
            patch=patch,
            seq=seq,
            at=at,
            outcome=_outcome(patch, cases[patch.case_id]),
            changes=tuple(changes(patch.words, patch.operations)),
        )
        for patch, (seq, at) in zip(reversed(patches), reversed(moments), strict=True)
    )


async def _moments(
    reader: RunReader, run: RunVersion, since: int, wanted: int
) -> list[tuple[int, float]]:
    """When the run's plan was changed, in order; the first case was opened by event `since`."""
    found: list[tuple[int, float]] = []
    while len(found) < wanted:
        records = await reader.records(run.run_id, since, min(_AT_ONCE, run.version - since))
        found += [(one.seq, one.at) for one in records if one.type.startswith(_PATCHED)]
        since = records[-1].seq
    return found


def _outcome(patch: PatchView, case: CaseView) -> str:
    """What came of it, as `words.OUTCOMES` has it."""
    if case.patch_id == patch.patch_id and case.status is CaseStatus.APPLIED:
        return ""
    helped = case.patch_id == patch.patch_id and case.status is CaseStatus.PROVEN
    return "helped" if helped else "in_vain"
