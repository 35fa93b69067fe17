"""Schemas of the PostgreSQL journal: `migrate` goes forward, and opening only looks.

Servers and workers start at any time and in any number, so none of them changes the schema: the
operator does, once, with `holdfast migrate`. Each step is a transaction under a lock that all
migrations share.
"""

from __future__ import annotations

import time
from typing import Final

from holdfast.errors import JournalTooNew, OperatorError
from holdfast.journal.condition import MOST_SKEW
from holdfast.journal.postgres_database import (
    AT_START,
    Connection,
    DatabaseError,
    connect,
    execute,
    explain,
    load_statements,
    place_of,
)
from holdfast.journal.rows import load_script

SCHEMA: Final = 1
OLDEST_SERVER: Final = 130_000

_SQL: Final = load_statements("postgres_opening.sql")
_SCRIPTS: Final = ("postgres_schema.sql",)
"""The script at `n` brings a database from schema `n` to the next."""

_MIGRATE: Final = "run `holdfast migrate`"


async def migrate(url: str) -> int:
    """Bring a database to this program's schema; how many steps it took."""
    place = place_of(url)
    try:
        async with await connect(url) as connection:
            await check_server(connection, place)
            steps = 0
            while await _step(connection, place):
                steps += 1
            return steps
    except DatabaseError as error:
        raise explain(error, place, AT_START) from error


async def _step(connection: Connection, place: str) -> bool:
    async with connection.transaction():
        await execute(connection, _SQL["lock_schema"])
        schema = await _known_schema(connection, place, unfinished=True)
        if schema == SCHEMA:
            return False
        if schema == 0:
            await _refuse_strangers(connection, place)
            await connection.execute(_procrastinate_schema().encode(), prepare=False)
        await connection.execute(load_script(_SCRIPTS[schema]).encode(), prepare=False)
        await execute(connection, _SQL["note_schema"], [schema + 1])
        return True


def _procrastinate_schema() -> str:
    from procrastinate.schema import SchemaManager

    return SchemaManager.get_schema()


async def check_server(connection: Connection, place: str) -> None:
    """Refuse a server on which the journal would not be what it promises."""
    if connection.info.server_version < OLDEST_SERVER:
        raise OperatorError(f"{place} is older than PostgreSQL 13. Upgrade the server.")
    [(encoding,)] = await execute(connection, _SQL["encoding"])
    if encoding != "UTF8":
        raise OperatorError(
            f"{place} keeps its text in {encoding}, which cannot hold every text. Make another "
            "database with `createdb --encoding=UTF8 --template=template0`."
        )


async def check_schema(connection: Connection, place: str, *, unfinished: bool = False) -> None:
    """Refuse a database that this program's schema is not in, and one that a copy is yet to be
    finished of, unless that is what is wanted."""
    schema = await _known_schema(connection, place, unfinished=unfinished)
    if schema == 0:
        await _refuse_strangers(connection, place)
        raise OperatorError(f"{place} is empty: {_MIGRATE}")
    if schema < SCHEMA:
        raise OperatorError(
            f"{place} has the schema of an earlier Holdfast ({schema}, this one needs {SCHEMA}): "
            f"back it up, stop the servers and workers of that release, and {_MIGRATE}"
        )


async def skew_of(connection: Connection) -> float:
    """By how many seconds the clocks of the database and of this machine differ, at least."""
    before = time.time()
    [(there,)] = await execute(connection, _SQL["clock"])
    after = time.time()
    return max(before - float(there), float(there) - after, 0.0)


async def check_clock(connection: Connection, place: str) -> None:
    """Deadlines are judged by the clocks of servers and workers, which must agree."""
    ahead = await skew_of(connection)
    if ahead > MOST_SKEW:
        raise OperatorError(
            f"the clock of this machine and that of {place} are {ahead:.1f} s apart; more than "
            f"{MOST_SKEW:g} s is not permitted. Set both by NTP, and start again."
        )


async def schema_of(connection: Connection, place: str, *, unfinished: bool = False) -> int:
    """Which schema is there, 0 where none is; `unfinished`: also of what a copy is yet to be
    finished of."""
    [(program, copying)] = await execute(connection, _SQL["program"])
    if program is None:
        return 0
    if copying and not unfinished:
        raise OperatorError(
            f"{place} is an unfinished copy: run the same `holdfast copy` again, which goes on "
            "with it, or remove it with `dropdb`."
        )
    if program != "holdfast":
        raise _stranger(place)
    [(schema,)] = await execute(connection, _SQL["schema"])
    return int(schema)


async def _known_schema(connection: Connection, place: str, *, unfinished: bool) -> int:
    schema = await schema_of(connection, place, unfinished=unfinished)
    if schema > SCHEMA:
        raise JournalTooNew(
            f"{place} was written by a newer Holdfast (schema {schema}, this one knows {SCHEMA}). "
            "Upgrade Holdfast."
        )
    return schema


async def _refuse_strangers(connection: Connection, place: str) -> None:
    """Refuse a database of another program, and one that would get a second journal because
    `search_path` has changed: it would look empty."""
    for (schema,) in await execute(connection, _SQL["elsewhere"]):
        raise OperatorError(
            f"{place} has its journal in the schema {schema}, which this user does not look into: "
            "name it in search_path (ALTER ROLE … SET search_path), or grant USAGE on it"
        )
    [(tables,)] = await execute(connection, _SQL["tables"])
    if tables:
        raise _stranger(place)


def _stranger(place: str) -> OperatorError:
    return OperatorError(
        f"{place} holds the tables of another program. Make a database of its own for Holdfast, "
        "with `createdb`."
    )
