"""A database in PostgreSQL as where a copy is from or goes to (see `transfer`).

Neither may be in use: what would go on meanwhile is named. All that is read of a source is of one
moment, for it is read in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Any, Final

from holdfast.errors import NotAllowed, OperatorError
from holdfast.i18n.message import msg
from holdfast.journal import postgres_batches as batches
from holdfast.journal.database import row_crc
from holdfast.journal.postgres_batches import name_crc, record_crc, snapshot_crc
from holdfast.journal.postgres_database import (
    Connection,
    DatabaseError,
    connect,
    execute,
    explain,
    load_statements,
    place_of,
)
from holdfast.journal.postgres_migrations import check_schema, check_server
from holdfast.journal.transfer import Key, Part, Row, Standing, damaged

_SQL: Final = load_statements("postgres_transfer.sql")
_CHECKED: Final = frozenset({"definitions", "questions", "kept"})

STALLED_SECONDS: Final = 10.0
"""A worker that was heard of within this time is alive."""

STRETCH: Final = 64
"""At most so many records are one stretch of the order of commits."""

_LEAVING: Final = 20
"""How often it is looked whether a process that has ended is gone."""


class _Database:
    """What both ends have: one connection, and its rows."""

    def __init__(self, place: str, connection: Connection) -> None:
        self.place = place
        self._connection = connection

    async def rows(self, part: Part, after: Key) -> AsyncGenerator[Row, None]:
        if part.name == "events" and after[0] <= 0:
            async for row in self._rows("old_events", "events", after):
                yield row
            after = (0,)
        async for row in self._rows(part.name, part.name, after):
            yield row

    async def _rows(self, query: str, part: str, after: Key) -> AsyncGenerator[Row, None]:
        with self._explained():
            cursor = self._connection.cursor()
            async for row in cursor.stream(_SQL[query], list(after)):
                told = self._told(part, row)
                if told is not None:
                    yield told

    async def _select(self, name: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._explained():
            return await execute(self._connection, _SQL[name], parameters)

    def _told(self, part: str, row: Row) -> Row | None:
        """A row as every store has it; None for a snapshot that is damaged."""
        if part == "events":
            *values, crc = row
            _, _, seq, run_id, at, kind, payload = values
            if crc != record_crc(name_crc(run_id), seq, at, (kind + payload).encode()):
                raise damaged(f"record {seq} of run {run_id}", self.place)
            return tuple(values)
        if part == "snapshots":
            *values, crc = row
            return tuple(values) if crc == snapshot_crc(*values[1:]) else None
        if part not in _CHECKED:
            return row
        *values, crc = row
        if crc != row_crc(values[1:] if part == "questions" else values):
            raise damaged(f"a row of {part}, {row[0]},", self.place)
        return tuple(values)

    @contextmanager
    def _explained(self) -> Any:
        try:
            yield
        except DatabaseError as error:
            raise explain(error, self.place) from error


class PostgresSource(_Database):
    def __init__(self, url: str, connection: Connection) -> None:
        super().__init__(place_of(url), connection)
        self._url = url

    async def confirm(self, standing: Standing) -> None:
        own = [self._connection.info.backend_pid]
        async with _connected(self._url, self.place) as connection:
            await refuse_used(connection, self.place, own)
            if await PostgresSource(self._url, connection).look() != (standing, False):
                raise NotAllowed(
                    msg(
                        "{place} has moved on while it was copied: remove the copy, then copy "
                        "again",
                        place=self.place,
                    )
                )

    async def standing(self) -> Standing:
        standing, unsealed = await self.look()
        if unsealed:
            raise OperatorError(
                msg(
                    "{place} has a transaction open that may still write, so that the order of "
                    "its commits is not known yet: end it (pg_stat_activity has it), then copy",
                    place=self.place,
                )
            )
        return standing

    async def look(self) -> tuple[Standing, bool]:
        """How it stands, and whether anything is not sealed yet."""
        [(*values, unsealed)] = await self._select("standing")
        return Standing(*values), unsealed


class PostgresTarget(_Database):
    async def mark(self) -> tuple[str, str] | None:
        if await self._select("has_mark") == [(False,)]:
            return None
        [mark] = await self._select("mark")
        return mark[0], mark[1]

    async def begin(self, source: str, standing: str) -> None:
        if await self._select("is_used") != [(False,)]:
            raise NotAllowed(
                msg(
                    "{target} holds runs already, and a copy goes into an empty database only: "
                    "make another with `createdb`",
                    target=self.place,
                )
            )
        with self._explained():
            async with self._connection.transaction():
                await self._select("make_mark")
                await self._select("set_mark", [source, standing])

    async def last(self, part: Part) -> Key:
        rows = await self._select(f"last_{part.name}")
        return rows[0] if rows else part.start

    async def put(self, part: Part, rows: Sequence[Row]) -> None:
        if part.name == "events":
            values = batches.columns(map(_stored_record, rows), 6)
            values += batches.columns(_stretches(rows), 4)
        else:
            stored = [_stored(part.name, row) for row in rows]
            values = batches.columns(stored, len(stored[0]))
        await self._select(f"put_{part.name}", values)

    async def finish(self, standing: Standing) -> None:
        with self._explained():
            async with self._connection.transaction():
                sealed = [standing.last_commit, standing.forgotten, standing.audit_head]
                await self._select("note_positions", sealed)
                await self._select("note_numbers", [standing.last_run])
                await self._select("remove_mark")
        await self._select("gather_statistics")


async def refuse_use(url: str) -> None:
    """NotAllowed where a process has this database open."""
    place = place_of(url)
    async with _connected(url, place) as connection:
        await check_server(connection, place)
        await check_schema(connection, place)
        await refuse_used(connection, place)


@asynccontextmanager
async def opened_source(url: str) -> AsyncIterator[PostgresSource]:
    place = place_of(url)
    async with _connected(url, place) as connection:
        await refuse_used(connection, place)
        await connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield PostgresSource(url, connection)


@asynccontextmanager
async def opened_target(url: str) -> AsyncIterator[PostgresTarget]:
    """The database has the schema already."""
    place = place_of(url)
    async with _connected(url, place) as connection:
        await check_server(connection, place)
        await check_schema(connection, place, unfinished=True)
        await refuse_used(connection, place)
        yield PostgresTarget(place, connection)


@asynccontextmanager
async def _connected(url: str, place: str) -> AsyncIterator[Connection]:
    try:
        async with await connect(url) as connection:
            yield connection
    except DatabaseError as error:
        raise explain(error, place) from error


async def refuse_used(connection: Connection, place: str, own: Sequence[int] = ()) -> None:
    """Processes that ended just now may take a moment to leave; `own` are connections of ours."""
    ours = [*own, connection.info.backend_pid]
    for turn in count():
        found = await _users(connection, ours)
        if not found:
            return
        if turn == _LEAVING:
            raise NotAllowed(
                msg(
                    "{place} is in use by {users}. Stop every server and worker there, then copy; "
                    "a worker that was killed counts as gone after {seconds} seconds",
                    place=place,
                    users="; ".join(found),
                    seconds=f"{STALLED_SECONDS:g}",
                )
            )
        await asyncio.sleep(0.05)


async def _users(connection: Connection, own: Sequence[int]) -> list[str]:
    found = [
        f"{number} connections of Holdfast from {host} (since {since[:19]})"
        for host, number, since in await execute(connection, _SQL["connected"], [list(own)])
    ]
    alive = await execute(connection, _SQL["working"], [STALLED_SECONDS])
    return found + [
        f"worker {worker}, heard of {ago:.0f} s ago, with {jobs} runs"
        for worker, ago, jobs in alive
    ]


def _stored_record(row: Row) -> Row:
    _, run, seq, run_id, at, kind, payload = row
    crc = record_crc(name_crc(run_id), seq, at, (kind + payload).encode())
    return run, seq, at, kind, payload, crc


def _stretches(rows: Sequence[Row]) -> list[Row]:
    """Records that one run committed in a row; of those whose position is not known there is
    none."""
    found: list[list[int]] = []
    for position, run, seq, *_ in rows:
        if position <= 0:
            continue
        last = found[-1] if found else []
        goes_on = last[:2] == [position - 1, run] and last[3] == seq - 1
        if goes_on and seq - last[2] < STRETCH:
            last[0], last[3] = position, seq
        else:
            found.append([position, run, seq, seq])
    return [tuple(one) for one in found]


def _stored(part: str, row: Row) -> Row:
    """A row as this store has it."""
    match part:
        case "definitions" | "kept":
            return *row, row_crc(row)
        case "questions":
            return *row, row_crc(row[1:])
        case "snapshots":
            run, run_id, version, schema, payload = row
            crc = snapshot_crc(run_id, version, schema, payload)
            return run, version, schema, payload, crc
    return row
