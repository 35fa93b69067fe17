"""The embedded journal: one SQLite file, one writing connection, one reading one.

`writer` says when and on which thread is committed, `append_writer` has the statements of an
append. Reads run here on the event loop through a connection of their own: in WAL mode they see
every acknowledged append and never wait. Each is a short, indexed look-up; long histories are read
in stretches, letting others in between.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sized
from contextlib import ExitStack, closing, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any

from holdfast.errors import JournalDamaged, JournalUnavailable, NotFound
from holdfast.journal import append_writer, database
from holdfast.journal.append_writer import AppendWriter, Pair, Tally
from holdfast.journal.database import (
    Connect,
    Connection,
    Cursor,
    Parameters,
    connect,
    explain,
    open_reader,
    open_writer,
    row_crc,
    snapshot_crc,
    without_checksums,
)
from holdfast.journal.home import HomeLock, make_directory, make_file, sync_directory
from holdfast.journal.port import (
    ANY_QUESTION,
    ANY_RUN,
    NOT_OPEN,
    Append,
    Attached,
    AuditEntry,
    Committed,
    ExpiringValue,
    Numbers,
    OutboxMessage,
    QuestionQuery,
    QuestionRow,
    Record,
    RunQuery,
    RunRow,
    Snapshot,
    StoredDefinition,
    check,
)
from holdfast.journal.rows import definition_of, entry_of, load_queries, run_row, stretches_of
from holdfast.journal.sqlite_housekeeping import SqliteHousekeeping
from holdfast.journal.writer import Committer, Writer

log = logging.getLogger("holdfast")

_SQL = dict(load_queries("sqlite_queries.sql"))
_SQL |= {
    f"newest_{name}": statement.replace("id > :after", "id < :after").replace(
        "ORDER BY id", "ORDER BY id DESC"
    )
    for name, statement in _SQL.items()
    if name.startswith("questions_") and "id > :after" in statement
}
"""The lists of questions, each also from its other end."""

OLD_SQL = without_checksums(_SQL)
"""For a database that was not brought up to date yet."""

_STRETCH = 1000
_LAST = 2**62


class SqliteJournal(SqliteHousekeeping):
    """A journal in the file at `path`; `connect` is there for tests that break disks."""

    def __init__(self, path: str | Path, *, connect: Connect = connect) -> None:
        self.path = Path(path)
        self._connect = connect
        self._lock = HomeLock(self.path)
        self._numbers = Numbers()
        self._appends = AppendWriter()
        self._committer: Committer | None = None
        self._writer: Writer | None = None
        self._reader: Connection | None = None
        self._sql: Mapping[str, str] = _SQL

    shared = False

    @property
    def epoch(self) -> int:
        return self._committer.epoch if self._committer else 0

    async def open(self) -> None:
        make_directory(self.path.parent)
        with ExitStack() as undo:
            self._lock.acquire()
            undo.callback(self._lock.release)
            make_file(self.path)
            connection = open_writer(self.path, self._connect)
            undo.callback(connection.close)
            sync_directory(self.path.parent)
            self._reader = open_reader(self.path, self._connect)
            undo.pop_all()
        self._appends = AppendWriter()
        self._committer = Committer(connection, self.path, self._appends)
        self._writer = Writer(self._committer)
        self._numbers = Numbers()

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None or self._committer is None:
            return
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        await writer.stop()
        self._lock.release()

    def append(self, append: Append) -> Awaitable[int]:
        check(append)
        if append.expected == 0:
            self._numbers.note(append)
        return (self._writer or self._open_writer()).write(self._appends.write, append)

    async def read(
        self,
        run_id: str,
        after: int = 0,
        limit: int | None = None,
        most_text: int | None = None,
    ) -> list[Record]:
        rows = self._select("locate_run", (run_id,))
        if not rows:
            return []
        [[run, version, crc_after]] = rows
        last = version if limit is None else min(version, after + limit)
        if most_text is not None:
            return self._read_within(run_id, run, crc_after, after, last, most_text)
        records: list[Record] = []
        for start in range(after, last, _STRETCH):
            if records:
                await asyncio.sleep(0)
            end = min(start + _STRETCH, last)
            records += self._read_stretch(run_id, run, crc_after, start, end)
        return records

    def _read_within(
        self, run_id: str, run: int, crc_after: int | None, after: int, last: int, most_text: int
    ) -> list[Record]:
        records: list[Record] = []
        with self._rows("read_events", _between(run, after, last)) as rows:
            for row in rows:
                records.append(self._record(run_id, row, crc_after))
                most_text -= len(records[-1].payload)
                if most_text <= 0:
                    break
        end = records[-1].seq if records and most_text <= 0 else last
        self._refuse_gaps(run_id, records, after, end)
        return records

    async def version(self, run_id: str) -> int:
        rows = self._select("locate_run", (run_id,))
        return int(rows[0][1]) if rows else 0

    async def run(self, run_id: str) -> RunRow | None:
        rows = self._select("run", (run_id,))
        return run_row(rows[0]) if rows else None

    async def runs(self, query: RunQuery = ANY_RUN) -> list[RunRow]:
        parameters = {
            "before": self._number_of("run", query.before, _LAST),
            "name": query.name,
            "kind": query.kind,
            "parent_id": query.parent_id,
            "roots_only": query.roots_only,
            "statuses": _as_json(query.status),
            "limit": query.limit,
        }
        if query.parent_id is not None:
            rows = self._select("runs_of_parent", parameters)
        elif query.status is None:
            rows = self._select(_runs_by(query) or "runs_newest", parameters)
        else:
            by = _runs_by(query)
            name = f"{by}_and_status" if by else "runs_of_status"
            found = self._select_each(name, query.status, parameters)
            rows = sorted(found, key=_number, reverse=True)[: query.limit]
        return [run_row(row[:-1]) for row in rows]

    async def active_runs(self) -> list[str]:
        return [run_id for (run_id,) in self._select("active_runs")]

    async def due_runs(self, now: float, limit: int = 100) -> list[str]:
        return [run_id for (run_id,) in self._select("due_runs", (now, limit))]

    async def run_counts(self) -> Mapping[tuple[str, str], int]:
        return await self._counted(self._appends.runs, "run_counts")

    async def question_counts(self) -> Mapping[tuple[str, str], int]:
        return await self._counted(self._appends.questions, "question_counts")

    async def _counted(self, tally: Tally, query: str) -> Mapping[Pair, int]:
        """Counted in the writing thread, once; here where nothing can be written, or where a
        damaged row is told only to readers."""
        if tally.known is None and self._writer is not None:
            with suppress(JournalUnavailable, JournalDamaged):
                await self._writer.write(self._appends.count, tally, may_block=False)
        if tally.known is not None:
            return tally.known
        return {(one, other): count for one, other, count in self._select(query)}

    async def next_wake(self, after: float | None = None) -> float | None:
        [[earliest]] = self._select("next_wake", (-inf if after is None else after,))
        return None if earliest is None else float(earliest)

    async def question(self, question_id: str) -> QuestionRow | None:
        rows = self._select("question", (question_id,))
        return QuestionRow(*self._sound("question", rows[0])) if rows else None

    async def questions(self, query: QuestionQuery = ANY_QUESTION) -> list[QuestionRow]:
        """Damaged ones are left out, and the page is filled with those that follow."""
        after = self._number_of("question", query.after, _LAST if query.newest else 0)
        sound: list[QuestionRow] = []
        while len(sound) < query.limit:
            rows = self._question_rows(query, after)
            sound += [
                QuestionRow(*row)
                for row in self._sound_ones("question", (row[:-1] for row in rows))
            ]
            if len(rows) < query.limit:
                break
            after = _number(rows[-1])
        return sound[: query.limit]

    def _question_rows(self, query: QuestionQuery, after: int) -> list[tuple[Any, ...]]:
        parameters = {
            "run_id": query.run_id,
            "root_id": query.root_id,
            "role": query.role,
            "statuses": _as_json(query.status),
            "due_before": query.due_before,
            "after": after,
            "limit": query.limit,
        }
        way = "newest_" if query.newest else ""
        if query.run_id is not None:
            return self._select(f"{way}questions_of_run", parameters)
        if query.root_id is not None:
            return self._select(f"{way}questions_of_root", parameters)
        if query.status is None:
            return self._select(f"{way}questions_of_all", parameters)
        name = "questions_of_status" if query.role is None else "questions_for_role"
        found = self._select_each(way + name, query.status, parameters)
        return sorted(found, key=_number, reverse=query.newest)[: query.limit]

    async def notices(self, target_id: str | None = None) -> list[OutboxMessage]:
        if target_id is None:
            return [OutboxMessage(*row) for row in self._select("notices")]
        return [OutboxMessage(*row) for row in self._select("notices_for", (target_id,))]

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        writer = self._open_writer()
        await writer.write(self._appends.write_snapshot, snapshot, may_block=False)

    async def snapshot(self, run_id: str, schema: int) -> Snapshot | None:
        """One that has changed since it was written is none: the journal has everything."""
        for version, _, payload, crc in self._select("snapshot", (run_id, schema)):
            if crc == snapshot_crc(version, schema, payload):
                return Snapshot(run_id, version, schema, payload.decode())
            log.warning(
                "the snapshot of run %s is damaged and left out", run_id, extra={"run": run_id}
            )
        return None

    async def store_definition(self, definition: StoredDefinition) -> None:
        await self._open_writer().write(append_writer.write_definition, definition)

    async def definition(self, digest: str) -> StoredDefinition | None:
        rows = self._select("definition", (digest,))
        return definition_of(self._sound("definition", rows[0])) if rows else None

    async def definitions(self, kind: str, name: str) -> list[StoredDefinition]:
        rows = self._select("definitions", (kind, name))
        return [definition_of(row) for row in self._sound_ones("definition", rows)]

    async def attach(self, attached: Attached) -> None:
        await self._open_writer().write(append_writer.attach, attached)

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        rows = self._select("kept", (kind, key, now))
        return ExpiringValue(*self._sound("entry", rows[0])) if rows else None

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        rows = self._select("all_kept", (kind, now))
        return [ExpiringValue(*row) for row in self._sound_ones("entry", rows)]

    async def audit(self, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        return [entry_of(row) for row in self._select("audit", (after, limit))]

    async def commits(self, after: int = 0, limit: int = 1000) -> list[Committed]:
        return stretches_of(self._select("commits", {"after": after, "limit": limit}))

    async def last_commit(self) -> int:
        [[position]] = self._select("last_commit")
        return int(position)

    async def forgotten(self) -> int:
        [[position]] = self._select("forgotten")
        return int(position)

    async def next_number(self, series: str) -> int:
        if not self._numbers.knows(series):
            self._numbers.begin(series, self._highest_number(series))
        return self._numbers.next(series)

    async def check(self) -> list[str]:
        """What is wrong with the file, by SQLite's own thorough check; empty when sound."""
        return await asyncio.to_thread(self._check)

    def _read_stretch(
        self, run_id: str, run: int, crc_after: int | None, start: int, end: int
    ) -> list[Record]:
        rows = self._select("read_events", _between(run, start, end))
        self._refuse_gaps(run_id, rows, start, end)
        return [self._record(run_id, row, crc_after) for row in rows]

    def _record(self, run_id: str, row: tuple[Any, ...], crc_after: int | None) -> Record:
        record = database.record_of(row, crc_after)
        if record is None:
            raise JournalDamaged(
                f"record {row[0] & 0xFFFFFFFF} of run {run_id} in {self.path} has changed since it "
                "was written. Other runs go on; restore a backup to get this one back. "
                "`holdfast doctor --integrity` tells what else is damaged."
            )
        return record

    def _sound(self, what: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The row without its checksum, which must be its own."""
        *values, crc = row
        if self._sql is not OLD_SQL and crc != row_crc(values):
            raise JournalDamaged(
                f"the row of {what} {values[0]} in {self.path} has changed since it was written, "
                "and is not used. Restore a backup to get it back. "
                "`holdfast doctor --integrity` tells what else is damaged."
            )
        return tuple(values)

    def _sound_ones(self, what: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """One that is damaged must not take the others with it."""
        for row in rows:
            try:
                yield self._sound(what, row)
            except JournalDamaged as error:
                log.warning("%s", error)

    def _refuse_gaps(self, run_id: str, found: Sized, start: int, end: int) -> None:
        if len(found) != max(end - start, 0):
            raise JournalDamaged(
                f"{self.path} lacks records of run {run_id} between {start + 1} and {end}. "
                "Stop Holdfast, keep a copy of the file, and restore a backup."
            )

    def _check(self) -> list[str]:
        try:
            with closing(open_reader(self.path, self._connect)) as connection:
                found = connection.execute("PRAGMA integrity_check").fetchall()
        except sqlite3.Error as error:
            return [str(explain(error, self.path))]
        return [text for (text,) in found if text != "ok"]

    def _number_of(self, what: str, name: str | None, otherwise: int) -> int:
        """By which lists are ordered: that of the run or question that a page goes on from."""
        if name is None:
            return otherwise
        rows = self._select(f"locate_{what}", (name,))
        if not rows:
            raise NotFound(f"there is no {what} {name} to go on from")
        return int(rows[0][0])

    def _select_each(
        self, name: str, statuses: Iterable[str], parameters: dict[str, Any]
    ) -> list[Any]:
        return [
            row
            for status in statuses
            for row in self._select(name, {**parameters, "status": status})
        ]

    def _select(self, name: str, parameters: Parameters = ()) -> list[Any]:
        with self._rows(name, parameters) as rows:
            return rows.fetchall()

    @contextmanager
    def _rows(self, name: str, parameters: Parameters) -> Iterator[Cursor]:
        if self._reader is None:
            raise JournalUnavailable(f"the journal at {self.path} {NOT_OPEN}")
        try:
            # Rows that are not taken would hold on to the file as it was.
            with closing(self._reader.execute(self._sql[name], parameters)) as rows:
                yield rows
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise JournalUnavailable(f"the journal at {self.path} {NOT_OPEN}")
        return self._writer


def _runs_by(query: RunQuery) -> str:
    """What narrows runs down most, beside their status."""
    if query.name is not None:
        return "runs_of_name"
    return "" if query.kind is None else "runs_of_kind"


def _between(run: int, after: int, last: int) -> Mapping[str, int]:
    return {"after": append_writer.place(run, after), "last": append_writer.place(run, last)}


def _number(row: tuple[Any, ...]) -> int:
    return int(row[-1])


def _as_json(statuses: frozenset[str] | None) -> str | None:
    return None if statuses is None else json.dumps(sorted(statuses))
