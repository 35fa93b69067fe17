"""Reads everything in a SQLite journal and tells what is damaged, down to the record.

It reads what is committed and changes nothing, so a server may go on meanwhile. It blocks: it is
for a command line. What cannot be read any more is told, and the rest is read all the same.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.journal.codec import decode
from holdfast.journal.database import (
    CHECKSUMS,
    PLACES,
    REMOVED,
    read_as_indexed,
    record_of,
    row_crc,
    snapshot_crc,
    without_checksums,
)
from holdfast.journal.port import AuditEntry, AuditRecord, verify
from holdfast.journal.rows import load_queries

_SQL = load_queries("sqlite_integrity.sql")
_OLD_SQL = without_checksums(_SQL)

Progress = Callable[[int, int], None]
Sql = Mapping[str, str]

CHANGED = "has changed since it was written"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is damaged: a record, an audit entry, a row of some table, or the file itself."""

    what: str
    name: str
    problem: str
    seq: int | None = None
    remedy: str = ""
    harmless: bool = False
    """It is worth knowing, and does not make the store unsound."""


@dataclass(slots=True)
class Report:
    """`counts` is how much of each was read; records of old have no checksum."""

    counts: dict[str, int] = field(default_factory=dict)
    without_checksum: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return all(one.harmless for one in self.findings)

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
        [[schema]] = connection.execute("PRAGMA user_version").fetchall()
        sql = _SQL if schema >= CHECKSUMS else _OLD_SQL
        if schema < PLACES:
            read_as_indexed(connection)
        for part, since in _PARTS.items():
            if schema >= since:
                _guarded(report, part, connection, sql)
        _guarded(report, _runs, connection, sql, progress)
    return report


def _guarded(report: Report, part: Callable[..., None], *given: Any) -> None:
    try:
        part(report, *given)
    except sqlite3.Error as error:
        report.found("file", part.__name__.strip("_"), str(error))


def _file(report: Report, connection: sqlite3.Connection, _: Sql) -> None:
    for (text,) in connection.execute("PRAGMA integrity_check"):
        if text != b"ok":
            report.found("file", "pages", text.decode(errors="replace"))


def _runs(report: Report, connection: sqlite3.Connection, sql: Sql, progress: Progress) -> None:
    [[total]] = connection.execute(_SQL["count_runs"]).fetchall()
    for done, row in enumerate(connection.execute(sql["runs"])):
        run, run_id, definition, summary, crc_after = row
        progress(done, total)
        report.count("runs")
        name = run_id.decode(errors="replace")
        if not connection.execute(_SQL["has_definition"], (definition,)).fetchall():
            report.found("run", name, "its definition is not in the journal")
        _check_json(report, "run", name, summary)
        try:
            stretch = {"after": run << 32, "last": run << 32 | 0xFFFFFFFF}
            _records(report, name, crc_after, connection.execute(sql["events"], stretch))
        except sqlite3.Error as error:
            report.found("run", name, f"its records cannot be read: {error}")
    leaving = _leaving(connection)
    for place, count in connection.execute(_SQL["orphans"]):
        if place in leaving:
            continue
        report.found("record", f"number {place}", f"{count} records belong to no run")
    progress(total, total)


def _leaving(connection: sqlite3.Connection) -> set[int]:
    """The numbers of runs that were removed a moment ago."""
    [[schema]] = connection.execute("PRAGMA user_version").fetchall()
    if schema < REMOVED:
        return set()
    return {run for (run,) in connection.execute(_SQL["records_left"])}


def _records(
    report: Report, run_id: str, crc_after: int | None, rows: Iterator[tuple[Any, ...]]
) -> None:
    seq = 0
    for row in rows:
        seq += 1
        report.count("records")
        report.without_checksum += row[-1] is None
        here = row[0] & 0xFFFFFFFF
        if here != seq:
            report.found("record", run_id, f"records from {seq} to {here - 1} are missing", seq)
            seq = here
        problem = _record_problem(row, crc_after)
        if problem is not None:
            report.found("record", run_id, problem, seq)
    if not seq:
        report.found("run", run_id, "it has no records")


def _record_problem(row: tuple[Any, ...], crc_after: int | None) -> str | None:
    record = record_of(row, crc_after)
    if record is None:
        return CHANGED
    try:
        decode(record)
    except (JournalDamaged, JournalTooNew) as error:
        return str(error)
    return None


def _definitions(report: Report, connection: sqlite3.Connection, sql: Sql) -> None:
    for row in connection.execute(sql["definitions"]):
        report.count("definitions")
        digest, body = row[0], row[3]
        if not _is_sound(row, sql) or sha256(_unpacked(body)).hexdigest().encode() != digest:
            report.found("definition", digest.decode(errors="replace"), CHANGED)


def _unpacked(body: bytes) -> bytes:
    """The text of a definition, which is JSON, from as it is stored."""
    if body.startswith(b"{"):
        return body
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body


def _questions(report: Report, connection: sqlite3.Connection, sql: Sql) -> None:
    for row in connection.execute(sql["questions"]):
        report.count("questions")
        if not _is_sound(row, sql):
            report.found("question", row[0].decode(errors="replace"), CHANGED)


def _notices(report: Report, connection: sqlite3.Connection, _: Sql) -> None:
    for name, body in connection.execute(_SQL["notices"]):
        report.count("notices")
        _check_json(report, "notice", name.decode(errors="replace"), body)


def _kept(report: Report, connection: sqlite3.Connection, sql: Sql) -> None:
    for row in connection.execute(sql["kept"]):
        report.count("kept")
        if not _is_sound(row, sql):
            kind, key = (one.decode(errors="replace") for one in row[:2])
            report.found("kept", f"{kind} {key}", CHANGED)


def _is_sound(row: tuple[Any, ...], sql: Sql) -> bool:
    *values, crc = row
    return sql is _OLD_SQL or crc == row_crc(values)


def _check_json(report: Report, what: str, name: str, body: bytes) -> None:
    try:
        json.loads(body)
    except ValueError:
        report.found(what, name, "its row is not JSON any more")


def _snapshots(report: Report, connection: sqlite3.Connection, sql: Sql) -> None:
    """A damaged one is left out when its run is loaded, and written anew in time."""
    for run_id, version, shape, payload, crc in connection.execute(sql["snapshots"]):
        report.count("snapshots")
        if sql is _SQL and crc != snapshot_crc(version, shape, payload):
            name = run_id.decode(errors="replace")
            report.found("snapshot", name, "is damaged; it is not used, and nothing is lost")


def _order(report: Report, connection: sqlite3.Connection, _: Sql) -> None:
    """The order of all commits is that of every run's records."""
    for position, run_id, seq in connection.execute(_SQL["unordered"]):
        name = run_id.decode(errors="replace")
        report.found("record", name, f"its position {position} is before that of the last", seq)


def _places(report: Report, connection: sqlite3.Connection, _: Sql) -> None:
    for run_id, seq in connection.execute(_SQL["misplaced"]):
        name = run_id.decode(errors="replace")
        report.found("record", name, "it is not where its run looks for it", seq)


def _audit(report: Report, connection: sqlite3.Connection, _: Sql) -> None:
    last: AuditEntry | None = None
    for row in connection.execute(_SQL["audit"]):
        report.count("audit entries")
        entry = _entry(row)
        problem = verify([entry], last)
        if problem is not None:
            report.found("audit", str(entry.number), problem)
            return
        last = entry


_PARTS: Mapping[Callable[..., None], int] = {
    _file: 1,
    _definitions: 1,
    _questions: 1,
    _notices: 1,
    _snapshots: 1,
    _kept: 2,
    _audit: 2,
    _order: 5,
    _places: PLACES,
}
"""What is read, and since which schema it is there."""


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    number, at, *texts = row
    *told, previous, digest = (one.decode(errors="replace") for one in texts)
    return AuditEntry(number, AuditRecord(at, *told), previous, digest)


def to_json(report: Report) -> Mapping[str, Any]:
    return {
        "ok": report.is_sound,
        "read": report.counts,
        "without_checksum": report.without_checksum,
        "problems": [asdict(one) for one in report.findings],
    }
