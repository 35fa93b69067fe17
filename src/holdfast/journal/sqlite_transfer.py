"""A home's journal as where a copy is from or goes to (see `transfer`).

Both hold the home meanwhile, as any process that writes to it does. The database of an unfinished
copy is marked as another kind of file, which no other process opens.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from holdfast.errors import NotAllowed
from holdfast.i18n.message import msg
from holdfast.journal import database
from holdfast.journal.append_writer import place as place_of_record
from holdfast.journal.database import (
    APPLICATION,
    UNFINISHED,
    Connection,
    connect,
    explain,
    open_reader,
    open_writer,
    record_of,
    row_crc,
    snapshot_crc,
)
from holdfast.journal.home import HomeLock, make_directory, make_file, sync_directory
from holdfast.journal.rows import NoText, definition_of, load_queries, packed
from holdfast.journal.transfer import Key, Part, Row, Standing, damaged

_SQL: Final = load_queries("sqlite_transfer.sql")
_CHECKED: Final = frozenset({"definitions", "questions", "kept"})


class _Database:
    """What both ends have: one connection, and its rows."""

    def __init__(self, path: Path, connection: Connection) -> None:
        self.path = path
        self.place = str(path.parent.resolve())
        self._connection = connection

    async def rows(self, part: Part, after: Key) -> AsyncGenerator[Row, None]:
        with self._explained(), closing(self._select(part.name, after)) as found:
            for row in found:
                told = self._told(part.name, row)
                if told is not None:
                    yield told

    def _select(self, name: str, parameters: Any = ()) -> Any:
        return self._connection.execute(_SQL[name], parameters)

    def _told(self, part: str, row: Row) -> Row | None:
        """A row as every store has it; None for a snapshot that is damaged."""
        match part:
            case "events":
                return self._record(row)
            case "snapshots":
                *head, version, schema, payload, crc = row
                sound = crc == snapshot_crc(version, schema, payload)
                return (*head, version, schema, payload.decode()) if sound else None
            case "runs":
                if any(isinstance(value, NoText) for value in row):
                    raise damaged(f"the row of run {row[1]}", self.place)
                return *row[:7], bool(row[7]), *row[8:]
        if part not in _CHECKED:
            return row
        *values, crc = row
        checked = values[1:] if part == "questions" else values
        if crc != row_crc(checked):
            raise damaged(f"a row of {part}, {row[0]},", self.place)
        return _unpacked(values) if part == "definitions" else tuple(values)

    def _record(self, row: Row) -> Row:
        position, place, run_id, at, kind, payload, crc, crc_after = row
        record = record_of((place, at, kind, payload, crc), crc_after)
        if record is None:
            raise damaged(f"record {place & 0xFFFFFFFF} of run {run_id}", self.place)
        return (
            position,
            place >> 32,
            record.seq,
            run_id,
            record.at,
            record.type,
            record.payload,
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise explain(error, self.path) from error


class SqliteSource(_Database):
    async def standing(self) -> Standing:
        with self._explained():
            [row] = self._select("standing").fetchall()
        return Standing(*row)

    async def confirm(self, standing: Standing) -> None:
        """The home is held."""


class SqliteTarget(_Database):
    async def mark(self) -> tuple[str, str] | None:
        with self._explained():
            [[application]] = self._connection.execute("PRAGMA application_id").fetchall()
            if application != UNFINISHED:
                return None
            [mark] = self._select("mark").fetchall()
            return mark[0], mark[1]

    async def begin(self, source: str, standing: str) -> None:
        with self._explained():
            if self._select("is_used").fetchall() != [(0,)]:
                raise NotAllowed(
                    msg(
                        "{target} holds runs already, and a copy goes into an empty home only: "
                        "name another, or move it away first",
                        target=self.place,
                    )
                )
        with self._transaction():
            self._select("make_mark")
            self._select("set_mark", (source, standing))
            self._connection.execute(f"PRAGMA application_id = {UNFINISHED}")

    async def last(self, part: Part) -> Key:
        with self._explained():
            rows = self._select(f"last_{part.name}").fetchall()
        return rows[0] if rows else part.start

    async def put(self, part: Part, rows: Sequence[Row]) -> None:
        with self._transaction():
            if part.name == "events":
                self._put("put_events", map(_stored_record, rows))
                places = ((place_of_record(run, seq), one) for one, run, seq, *_ in rows)
                self._put("put_places", places)
                self._select("note_placed", (max(rows[-1][0], 0),))
            else:
                self._put(f"put_{part.name}", (_stored(part.name, row) for row in rows))

    async def finish(self, standing: Standing) -> None:
        with self._transaction():
            self._select("remove_mark")
            self._select(
                "note_positions",
                {
                    "given": standing.last_commit,
                    "forgotten": standing.forgotten,
                    "run": standing.last_run,
                },
            )
            self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
        with self._explained():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _put(self, name: str, rows: Iterator[Row] | Any) -> None:
        self._connection.executemany(_SQL[name], rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        transaction = database.Transaction(self._connection)
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                transaction.roll_back()
                raise


@asynccontextmanager
async def opened_source(path: Path) -> AsyncIterator[SqliteSource]:
    """Of a home that is held already."""
    with closing(open_reader(path, connect)) as connection:
        yield SqliteSource(path, connection)


@asynccontextmanager
async def opened_target(path: Path) -> AsyncIterator[SqliteTarget]:
    """The home is made where there is none, and held."""
    make_directory(path.parent)
    with ExitStack() as undo:
        lock = HomeLock(path)
        lock.acquire()
        undo.callback(lock.release)
        make_file(path)
        connection = open_writer(path, connect, unfinished=True)
        undo.callback(connection.close)
        sync_directory(path.parent)
        yield SqliteTarget(path, connection)


def _unpacked(values: Sequence[Any]) -> Row:
    one = definition_of(tuple(values))
    return one.digest, one.kind, one.name, one.body, one.stored_at, values[5]


def _stored_record(row: Row) -> Row:
    position, run, seq, _, at, kind, payload = row
    place = place_of_record(run, seq)
    crc = database.record_crc(place, at, (kind + payload).encode())
    return position, place, at, kind, payload, crc


def _stored(part: str, row: Row) -> Row:
    """A row as this store has it."""
    match part:
        case "definitions":
            digest, kind, name, body, stored_at, meta = row
            values = (digest, kind, name, packed(body), stored_at, meta)
            return *values, row_crc(values)
        case "runs":
            return *row[:2], *row[3:]
        case "questions":
            return *row, row_crc(row[1:])
        case "kept":
            return *row, row_crc(row)
        case "snapshots":
            run, _, version, schema, payload = row
            crc = snapshot_crc(version, schema, payload.encode())
            return run, version, schema, payload, crc
    return row
