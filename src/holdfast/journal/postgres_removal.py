"""Removes runs from PostgreSQL: their rows in one transaction, their records in bounded ones.

The rows are locked before they are judged, so that nothing is appended meanwhile; an append that
waits for such a lock finds that there is no such run. What is deleted is given back by
(auto)vacuum, as anything in PostgreSQL is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from holdfast.journal.port import Attached, Removal, split_run_id
from holdfast.journal.postgres_appends import Irregular, attach
from holdfast.journal.postgres_database import (
    Connection,
    Connections,
    execute,
    load_statements,
    roll_back,
)
from holdfast.model.run import FINISHED

_SQL: Final = load_statements("postgres_removal.sql")

RECORDS: Final = 1000
RUNS: Final = 50
"""How many records, and of how many runs, go in one transaction."""


async def remove(
    connections: Connections, removals: Sequence[Removal], attached: Attached
) -> list[str]:
    """The roots of the trees that may not go; nothing is changed where there are any."""
    async with connections.one() as connection:
        await connection.execute(b"BEGIN")
        try:
            refused = await _remove(connection, removals, attached)
        except Irregular as error:
            await roll_back(connection)
            raise error.reason from None
        except BaseException:
            await roll_back(connection)
            raise
        await connection.execute(b"ROLLBACK" if refused else b"COMMIT")
        return refused


async def reclaim(connections: Connections) -> bool:
    """Some of what is left to do; whether there is more."""
    async with connections.one() as connection:
        await connection.execute(b"BEGIN")
        try:
            more = await _reclaim(connection)
        except BaseException:
            await roll_back(connection)
            raise
        await connection.execute(b"COMMIT")
        return more


async def _remove(
    connection: Connection, removals: Sequence[Removal], attached: Attached
) -> list[str]:
    roots = [_root(one) for one in removals]
    names = sorted({run_id for one in removals for run_id in one.versions})
    rows = {row[0]: row for row in await execute(connection, _SQL["lock_runs"], [names])}
    kept = {root_id for (root_id,) in await execute(connection, _SQL["asking"], [roots])}
    children = await execute(connection, _SQL["children"], [names])
    told = {name for row in await execute(connection, _SQL["told"], [names]) for name in row}
    refused = [
        _root(one)
        for one in removals
        if _root(one) in kept or told & one.versions.keys() or not _may_go(one, rows, children)
    ]
    if refused:
        return refused
    runs = [rows[name][1] for name in names]
    await execute(connection, _SQL["remove_questions"], [roots])
    for statement in ("remove_snapshots", "remove_runs", "note_removed"):
        await execute(connection, _SQL[statement], [runs])
    for root_id in sorted(roots):
        series, number = split_run_id(root_id)
        if number is not None:
            await execute(connection, _SQL["note_number"], [series, number])
    dropped = [name for one in removals for name in one.dropped]
    await attach(connection, [attached, Attached(dropped=dropped)])
    return []


def _may_go(
    removal: Removal, rows: dict[str, tuple[Any, ...]], children: Sequence[tuple[Any, ...]]
) -> bool:
    names = removal.versions.keys()
    if not names <= rows.keys():
        return False
    if any(parent in names and child not in names for parent, child in children):
        return False
    for run_id, expected in removal.versions.items():
        _, _, version, parent_id, status, active, wake_at = rows[run_id]
        is_root = run_id == _root(removal)
        if version != expected or (parent_id is None) != is_root:
            return False
        if active or wake_at is not None or status not in FINISHED:
            return False
    return True


def _root(removal: Removal) -> str:
    return next(iter(removal.versions))


async def _reclaim(connection: Connection) -> bool:
    runs = [run for (run,) in await execute(connection, _SQL["doomed"], [RUNS])]
    if not runs:
        return False
    cursor = await connection.execute(_SQL["remove_events"], [runs, RECORDS])
    if cursor.rowcount == RECORDS:
        return True
    for statement in ("remove_commits", "end_removed"):
        await execute(connection, _SQL[statement], [runs])
    [(more,)] = await execute(connection, _SQL["is_more"])
    return bool(more)
