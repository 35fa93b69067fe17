"""Reads everything in a journal through its port, whichever store it is, and tells what is damaged.

What only a store itself can see (pages of a file, rows that no list shows any more) is not looked
at here; `integrity` does so for SQLite. Runs may go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.journal.codec import decode
from holdfast.journal.integrity import Progress, Report
from holdfast.journal.port import AuditEntry, Journal, RunQuery, RunRow, verify

STRETCH: Final = 500


async def walk(journal: Journal, progress: Progress = lambda done, total: None) -> Report:
    """Records and definitions against their checksums, that no record is missing, the audit's
    chain, and the order of all commits."""
    report = Report()
    total = sum((await journal.run_counts()).values())
    definitions: dict[str, bool] = {}
    async for row in _runs(journal):
        report.count("runs")
        progress(min(report.counts["runs"], total), total)
        if row.definition not in definitions:
            definitions[row.definition] = await _has_definition(journal, row.definition, report)
        if not definitions[row.definition]:
            report.found("run", row.run_id, "its definition is not in the journal")
        try:
            await _records(journal, row.run_id, report)
        except JournalDamaged as error:
            report.found("record", row.run_id, str(error))
    await _audit(journal, report)
    await _commits(journal, report)
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


async def _records(journal: Journal, run_id: str, report: Report) -> None:
    version = await journal.version(run_id)
    if not version:
        report.found("run", run_id, "it has no records")
    for after in range(0, version, STRETCH):
        found = await journal.read(run_id, after, min(STRETCH, version - after))
        for seq, record in enumerate(found, after + 1):
            report.count("records")
            if record.seq != seq:
                report.found("record", run_id, f"record {seq} is missing", seq)
                return
            try:
                decode(record)
            except (JournalDamaged, JournalTooNew) as error:
                report.found("record", run_id, str(error), seq)
        await asyncio.sleep(0)


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


async def _commits(journal: Journal, report: Report) -> None:
    """Every run's records stand in the order of all commits, each once."""
    position = await journal.forgotten()
    begins = position == 0
    ends: dict[str, int] = {}
    while page := await journal.commits(position, STRETCH):
        for one in page:
            expected = ends.get(one.run_id, 0 if begins else one.first - 1) + 1
            if one.first != expected or one.position - (one.last - one.first) <= position:
                place = f"its position {one.position} is not that of record {expected}"
                report.found("record", one.run_id, place, one.first)
            ends[one.run_id], position = one.last, one.position
        report.counts["commits"] = report.counts.get("commits", 0) + len(page)
