"""Reads everything in a SQLite journal and tells what is damaged, down to the record.

It reads what is committed and changes nothing, so a server may go on meanwhile. It blocks: it is
for a command line. What cannot be read any more is told, and the rest is read all the same.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.journal import chain, checksums
from holdfast.journal.codec import decode
from holdfast.journal.database import CHECKSUMS
from holdfast.journal.port import AuditEntry, Deed
from holdfast.journal.statements import load_queries

_SQL = load_queries("sqlite_integrity.sql")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is damaged: a record, an audit entry, a row of some table, or the file itself."""

    what: str
    name: str
    problem: str
    seq: int | None = None


@dataclass(slots=True)
class Report:
    """`counts` is how much of each was read; records of old have no checksum."""

    counts: dict[str, int] = field(default_factory=dict)
    without_checksum: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def found(self, what: str, name: str, problem: str, seq: int | None = None) -> None:
        self.findings.append(Finding(what, name, problem, seq))


def examine(path: Path, progress: Progress = lambda done, total: None) -> Report:
    """`progress` hears how many runs of how many have been read."""
    report = Report()
    address = f"file:{path.resolve().as_posix()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
        connection.text_factory = bytes
        for part in (_file, _definitions, _questions, _notices, _kept, _snapshots, _audit):
            _guarded(report, part, connection)
        _guarded(report, _runs, connection, progress)
    return report


def _guarded(report: Report, part: Callable[..., None], *given: Any) -> None:
    try:
        part(report, *given)
    except sqlite3.Error as error:
        report.found("file", part.__name__.strip("_"), str(error))


def _file(report: Report, connection: sqlite3.Connection) -> None:
    for (text,) in connection.execute("PRAGMA integrity_check"):
        if text != b"ok":
            report.found("file", "pages", text.decode(errors="replace"))


def _runs(report: Report, connection: sqlite3.Connection, progress: Progress) -> None:
    [[schema]] = connection.execute("PRAGMA user_version").fetchall()
    [[total]] = connection.execute(_SQL["count_runs"]).fetchall()
    events = _SQL["events"] if schema >= CHECKSUMS else _SQL["old_events"]
    for done, (run, run_id, definition, summary) in enumerate(connection.execute(_SQL["runs"])):
        progress(done, total)
        report.count("runs")
        name = run_id.decode(errors="replace")
        if not connection.execute(_SQL["has_definition"], (definition,)).fetchall():
            report.found("run", name, "its definition is not in the journal")
        _check_json(report, "run", name, summary)
        try:
            _records(report, name, connection.execute(events, (run << 32, (run + 1) << 32)))
        except sqlite3.Error as error:
            report.found("run", name, f"its records cannot be read: {error}")
    for place, count in connection.execute(_SQL["orphans"]):
        report.found("record", f"number {place}", f"{count} records belong to no run")
    progress(total, total)


def _records(report: Report, run_id: str, rows: Iterator[tuple[Any, ...]]) -> None:
    seq = 0
    for row in rows:
        seq += 1
        report.count("records")
        report.without_checksum += row[-1] is None
        here = row[0] & 0xFFFFFFFF
        if here != seq:
            report.found("record", run_id, f"records from {seq} to {here - 1} are missing", seq)
            seq = here
        problem = _record_problem(row)
        if problem is not None:
            report.found("record", run_id, problem, seq)
    if not seq:
        report.found("run", run_id, "it has no records")


def _record_problem(row: tuple[Any, ...]) -> str | None:
    record = checksums.record_of(row)
    if record is None:
        return "has changed since it was written"
    try:
        decode(record)
    except (JournalDamaged, JournalTooNew) as error:
        return str(error)
    return None


def _definitions(report: Report, connection: sqlite3.Connection) -> None:
    for digest, body in connection.execute(_SQL["definitions"]):
        report.count("definitions")
        if sha256(body).hexdigest().encode() != digest:
            name = digest.decode(errors="replace")
            report.found("definition", name, "has changed since it was written")


def _questions(report: Report, connection: sqlite3.Connection) -> None:
    _check_rows(report, "question", connection.execute(_SQL["questions"]))


def _notices(report: Report, connection: sqlite3.Connection) -> None:
    _check_rows(report, "notice", connection.execute(_SQL["notices"]))


def _kept(report: Report, connection: sqlite3.Connection) -> None:
    _check_rows(report, "kept", connection.execute(_SQL["kept"]))


def _check_rows(report: Report, what: str, rows: Iterator[tuple[Any, ...]]) -> None:
    for name, body in rows:
        report.count(f"{what}s")
        _check_json(report, what, name.decode(errors="replace"), body)


def _check_json(report: Report, what: str, name: str, body: bytes) -> None:
    try:
        json.loads(body)
    except ValueError:
        report.found(what, name, "its row is not JSON any more")


def _snapshots(report: Report, connection: sqlite3.Connection) -> None:
    """A damaged one is left out when its run is loaded, and written anew in time."""
    [[schema]] = connection.execute("PRAGMA user_version").fetchall()
    for run_id, version, shape, payload, crc in connection.execute(
        _SQL["snapshots"] if schema >= CHECKSUMS else _SQL["old_snapshots"]
    ):
        report.count("snapshots")
        if crc is not None and crc != checksums.of_snapshot(version, shape, payload):
            name = run_id.decode(errors="replace")
            report.found("snapshot", name, "is damaged; it is not used, and nothing is lost")


def _audit(report: Report, connection: sqlite3.Connection) -> None:
    last: AuditEntry | None = None
    for row in connection.execute(_SQL["audit"]):
        report.count("audit entries")
        entry = _entry(row)
        problem = chain.verify([entry], last)
        if problem is not None:
            report.found("audit", str(entry.number), problem)
            return
        last = entry


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    number, at, *texts = row
    *told, previous, digest = (one.decode(errors="replace") for one in texts)
    return AuditEntry(number, Deed(at, *told), previous, digest)


def to_json(report: Report) -> Mapping[str, Any]:
    found = [
        {"what": one.what, "name": one.name, "seq": one.seq, "problem": one.problem}
        for one in report.findings
    ]
    return {
        "ok": not found,
        "read": report.counts,
        "without_checksum": report.without_checksum,
        "problems": found,
    }
