"""Reads everything in a journal through its port, whichever store it is, and tells what is damaged.

What only a store itself can see (pages of a file, rows that no list shows any more) is not looked
at here; `integrity` does so for SQLite. Runs may go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Final, cast

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.journal.codec import decode
from holdfast.journal.condition import MOST_SKEW
from holdfast.journal.integrity import Progress, Report
from holdfast.journal.port import AuditEntry, Journal, RunQuery, RunRow, verify
from holdfast.journal.shared import SharedJournal

STRETCH: Final = 500

LOOK_SECONDS: Final = 0.25
LOOKS: Final = 20
"""How often it is looked whether all that was read has been sealed, before it counts as kept by an
older transaction."""


@dataclass(slots=True)
class _Order:
    """How far the order of all commits was read, and up to where it has the records of each run;
    where it begins later, only of those that it tells of."""

    position: int
    is_whole: bool
    ends: dict[str, int] = field(default_factory=dict)

    def lacks(self, run_id: str, version: int) -> bool:
        return self.ends.get(run_id, 0 if self.is_whole else version) < version


async def walk(journal: Journal, progress: Progress = lambda done, total: None) -> Report:
    """Records and definitions against their checksums, that no record is missing, the audit's
    chain, and the order of all commits."""
    report = Report()
    total = sum((await journal.run_counts()).values())
    definitions: dict[str, bool] = {}
    versions: dict[str, int] = {}
    async for row in _runs(journal):
        report.count("runs")
        progress(min(report.counts["runs"], total), total)
        if row.definition not in definitions:
            definitions[row.definition] = await _has_definition(journal, row.definition, report)
        if not definitions[row.definition]:
            report.found("run", row.run_id, "its definition is not in the journal")
        try:
            versions[row.run_id] = await _records(journal, row.run_id, report)
        except JournalDamaged as error:
            report.found("record", row.run_id, str(error))
    read_at = asyncio.get_running_loop().time()
    await _audit(journal, report)
    forgotten = await journal.forgotten()
    order = _Order(forgotten, forgotten == 0)
    await _commits(journal, report, order)
    await _placeless(journal, report, order, versions, read_at)
    return report


async def _runs(journal: Journal) -> AsyncIterator[RunRow]:
    query = RunQuery(limit=STRETCH)
    while rows := await journal.runs(query):
        for row in rows:
            yield row
        query = replace(query, before=rows[-1].run_id)


async def _has_definition(journal: Journal, digest: str, report: Report) -> bool:
    try:
        found = await journal.definition(digest)
    except JournalDamaged as error:
        report.found("definition", digest, str(error))
        return True
    report.counts["definitions"] = report.counts.get("definitions", 0) + (found is not None)
    return found is not None


async def _records(journal: Journal, run_id: str, report: Report) -> int:
    """How many they are."""
    version = await journal.version(run_id)
    if not version:
        report.found("run", run_id, "it has no records")
    for after in range(0, version, STRETCH):
        found = await journal.read(run_id, after, min(STRETCH, version - after))
        for seq, record in enumerate(found, after + 1):
            report.count("records")
            if record.seq != seq:
                report.found("record", run_id, f"record {seq} is missing", seq)
                return version
            try:
                decode(record)
            except (JournalDamaged, JournalTooNew) as error:
                report.found("record", run_id, str(error), seq)
        await asyncio.sleep(0)
    return version


async def _audit(journal: Journal, report: Report) -> None:
    last: AuditEntry | None = None
    while page := await journal.audit(last.number if last is not None else 0, STRETCH):
        for entry in page:
            report.count("audit entries")
            problem = verify([entry], last)
            if problem is not None:
                report.found("audit", str(entry.number), problem)
                return
            last = entry


async def _commits(journal: Journal, report: Report, order: _Order) -> None:
    """Every run's records stand in the order of all commits, each once."""
    while page := await journal.commits(order.position, STRETCH):
        for one in page:
            begins = 0 if order.is_whole else one.first - 1
            expected = order.ends.get(one.run_id, begins) + 1
            if one.first != expected or one.position - (one.last - one.first) <= order.position:
                place = f"its position {one.position} is not that of record {expected}"
                report.found("record", one.run_id, place, one.first)
            order.ends[one.run_id], order.position = one.last, one.position
        report.counts["commits"] = report.counts.get("commits", 0) + len(page)


async def _placeless(
    journal: Journal, report: Report, order: _Order, versions: dict[str, int], read_at: float
) -> None:
    """Records that are in no order, though all has been sealed that was read."""

    def lacking() -> list[str]:
        return [run_id for run_id, version in versions.items() if order.lacks(run_id, version)]

    if not lacking() or await _keeps_back(journal, read_at):
        return
    await _commits(journal, report, order)
    for run_id in lacking():
        if await journal.version(run_id):  # it was not removed meanwhile
            seq = order.ends.get(run_id, 0) + 1
            problem = f"from record {seq} on it has no place among all commits"
            report.found("record", run_id, problem, seq)


async def _keeps_back(journal: Journal, read_at: float) -> bool:
    """Whether an older transaction keeps records from being sealed that were there at a moment."""
    if not journal.shared:
        return False
    for _ in range(LOOKS):
        figures = await cast(SharedJournal, journal).figures()
        passed = asyncio.get_running_loop().time() - read_at
        if not figures.unsealed or figures.sealing_lag < passed - MOST_SKEW:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True
