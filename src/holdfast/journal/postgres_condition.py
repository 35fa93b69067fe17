"""Reads how an installation on PostgreSQL is.

A process that has the database open for long shows in PostgreSQL's own list of connections: the one
on which it listens has its role, its version, its machine and its number in `application_name`
(`postgres_hints.process_label`), and says something every few seconds. So there is no list of
processes to keep, and one that has ended leaves nothing behind.
"""

from __future__ import annotations

import re
from typing import Final

from holdfast.journal.condition import (
    Condition,
    Figures,
    OpenTransaction,
    Process,
    RetriedDrive,
    StalledDrive,
)
from holdfast.journal.postgres_appends import SQL as APPENDS
from holdfast.journal.postgres_database import (
    AT_START,
    Connection,
    Connections,
    DatabaseError,
    connect,
    execute,
    explain,
    load_statements,
    place_of,
)
from holdfast.journal.postgres_migrations import SCHEMA, check_server, schema_of, skew_of
from holdfast.journal.postgres_slots import GONE_SECONDS

MOST_COUNTED: Final = 10_000
MOST_NAMED: Final = 100
NEWEST_COMMITS: Final = 20_000
"""Among so many the late results are looked for: records have no index by type."""

OVERDUE_SECONDS: Final = 10.0
"""A timer that came so long ago should have been taken: workers look every second."""

RETRIED_SECONDS: Final = 20.0
"""A run that waits for longer until it is driven again has failed, or nobody can pursue it: one
that a worker has refused is offered again sooner."""

MANY_ATTEMPTS: Final = 50
"""Where a drive fails for want of the database it is tried again at once."""

_LABEL: Final = re.compile(r"holdfast (?P<role>\S+) (?P<version>\S+) (?P<name>\S+/\d+)")

_SQL: Final = load_statements("postgres_condition.sql")


async def figures(connections: Connections) -> Figures:
    async with connections.one() as connection:
        return await _figures(connection)


async def _figures(connection: Connection) -> Figures:
    [row] = await execute(connection, _SQL["figures"], [MOST_COUNTED, GONE_SECONDS])
    return Figures(*row)


async def examine(url: str) -> Condition:
    """Everything, over one connection; it changes nothing, and asks for no schema of ours."""
    place = place_of(url)
    try:
        async with await connect(url) as connection:
            await check_server(connection, place)
            return await _examined(connection, place)
    except DatabaseError as error:
        raise explain(error, place, AT_START) from error


async def _examined(connection: Connection, place: str) -> Condition:
    schema = await schema_of(connection, place)
    skew = await skew_of(connection)
    [(used, allowed, hidden)] = await execute(connection, _SQL["connections"])
    open_ones = await execute(connection, _SQL["transactions"], [1.0, MOST_NAMED])
    transactions = tuple(OpenTransaction(*row) for row in open_ones)
    if schema != SCHEMA:
        return Condition(schema, SCHEMA, skew, used, allowed, hidden, transactions)
    stalled = await execute(connection, _SQL["stalled"], [GONE_SECONDS, MOST_NAMED])
    retried = await execute(
        connection, _SQL["retried"], [RETRIED_SECONDS, MANY_ATTEMPTS, MOST_NAMED]
    )
    overdue = await execute(connection, _SQL["overdue"], [OVERDUE_SECONDS, MOST_NAMED])
    return Condition(
        schema,
        SCHEMA,
        skew,
        used,
        allowed,
        hidden,
        transactions,
        figures=await _figures(connection),
        processes=await _processes(connection),
        stalled=tuple(StalledDrive(*row) for row in stalled),
        retried=tuple(RetriedDrive(*row) for row in retried),
        forgotten=await _runs(connection, APPENDS["forgotten_runs"], MOST_NAMED),
        overdue=tuple((run_id, late) for run_id, late in overdue),
        quarantined=await _runs(connection, _SQL["quarantined"], MOST_NAMED),
        late=await _runs(connection, _SQL["late"], NEWEST_COMMITS),
    )


async def _processes(connection: Connection) -> tuple[Process, ...]:
    rows = await execute(connection, _SQL["processes"])
    labels = ((_LABEL.fullmatch(label), silent) for label, silent in rows)
    return tuple(
        Process(found["role"], found["version"], found["name"], silent)
        for found, silent in labels
        if found
    )


async def _runs(connection: Connection, statement: bytes, limit: int) -> tuple[str, ...]:
    return tuple(run_id for (run_id,) in await execute(connection, statement, [limit]))
