"""What `doctor` finds: a store's own state, that of an installation that shares one, and what a
deploy of an application would break."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.app import Holdfast
from holdfast.i18n.catalogue import worded
from holdfast.journal.condition import Condition
from holdfast.journal.port import Journal
from holdfast.plans.registering import KIND
from holdfast.views import condition as conditions
from holdfast.views import deployment, homes
from holdfast.views.integrity import Progress, Report, examined, looked_at


@dataclass(frozen=True, slots=True)
class Diagnosis:
    report: Report
    state: Condition | None = None

    @property
    def condition(self) -> Mapping[str, Any] | None:
        return None if self.state is None else conditions.described(self.state)

    def in_words(self, language: str) -> list[str]:
        if self.state is None:
            return []
        return [worded(one, language) for one in conditions.figures_in_words(self.state)]


async def diagnose(
    place: homes.Place, app: Holdfast | None = None, read: Progress | None = None
) -> Diagnosis:
    """`read` has everything read, and hears how far that is; with an application the runs that are
    under way are compared with what it has."""
    state, found = None, []
    if isinstance(place, str):
        from holdfast.journal.postgres_condition import examine

        state = await examine(place)
        found = conditions.problems(state)
        if not conditions.is_readable(state):
            return Diagnosis(Report(findings=found), state)
    async with homes.reading(place) as journal:
        report = await (looked_at(journal) if read is None else examined(journal, read))
        report.findings[:0] = found
        if app is not None:
            plans = await _registered(journal)
            async for lack in deployment.lacking(journal, app, plans):
                report.findings.append(deployment.problem(lack))
    return Diagnosis(report, state)


async def _registered(journal: Journal) -> Collection[str]:
    return {one.key for one in await journal.all_kept(KIND, time.time())}
