"""What the shared journal does about runs that are to go: one transaction for some trees.

Their rows are locked first, so that whoever would move one waits, and finds that it is gone. Space
is given back by the database's own autovacuum. Stretches in the order of all commits stay, and lead
to no run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.journal import postgres_batches as batches
from holdfast.journal.port import NOTHING, Attached, Removal, split_run_id
from holdfast.journal.postgres_appends import SQL as APPENDS
from holdfast.journal.postgres_appends import deed_values
from holdfast.journal.postgres_database import Connection, Connections, execute, load_statements
from holdfast.model.run import FINISHED

_SQL = load_statements("postgres_removal.sql")


class PostgresHousekeeping:
    """A part of `PostgresJournal`."""

    _connections: Connections

    async def remove(self, removals: Sequence[Removal], attached: Attached = NOTHING) -> list[str]:
        async with self._connections.one() as connection, connection.transaction():
            return await _remove(connection, removals, attached)

    async def reclaim(self) -> bool:
        """Autovacuum does it."""
        return False


async def _remove(
    connection: Connection, removals: Sequence[Removal], attached: Attached
) -> list[str]:
    named = sorted({run_id for one in removals for run_id in one.versions})
    rows = await execute(connection, _SQL["lock"], [named])
    refused = await _refused(connection, removals, {row[1]: row for row in rows}, named)
    if refused:
        return refused
    roots = [next(iter(one.versions)) for one in removals]
    runs = [row[0] for row in rows]
    for name in ("remove_events", "remove_snapshots"):
        await execute(connection, _SQL[name], [runs])
    await execute(connection, _SQL["remove_questions"], [roots])
    await execute(connection, _SQL["remove_runs"], [runs])
    numbers = _highest(roots)
    if numbers:
        await execute(connection, _SQL["note_numbers"], [[*numbers], [*numbers.values()]])
    dropped = [*attached.dropped, *(name for one in removals for name in one.dropped)]
    if dropped:
        await execute(connection, APPENDS["drop_kept"], batches.columns(dropped, 2))
    if attached.audit:
        deeds = ((place, *deed_values(one)) for place, one in enumerate(attached.audit))
        await execute(connection, APPENDS["add_deeds"], batches.columns(deeds, 9))
    return []


async def _refused(
    connection: Connection,
    removals: Sequence[Removal],
    rows: dict[str, tuple[Any, ...]],
    named: list[str],
) -> list[str]:
    """The roots of the trees that may not go."""
    roots = [next(iter(one.versions)) for one in removals]
    stay = {name for (name,) in await execute(connection, _SQL["parents"], [named])}
    stay |= {name for (name,) in await execute(connection, _SQL["asking"], [roots])}
    stay |= {name for (name,) in await execute(connection, _SQL["told"], [named])}
    return [
        root
        for root, one in zip(roots, removals, strict=True)
        if stay & one.versions.keys()
        or not all(
            run_id in rows and _is_finished(rows[run_id], version, is_root=run_id == root)
            for run_id, version in one.versions.items()
        )
    ]


def _is_finished(row: tuple[Any, ...], version: int, *, is_root: bool) -> bool:
    _, _, stands, status, active, wake_at, parent_id = row
    rests = not active and wake_at is None and status in FINISHED
    return rests and stands == version and (parent_id is None) == is_root


def _highest(roots: Iterable[str]) -> dict[str, int]:
    """The highest number of each series among these runs."""
    found: dict[str, int] = {}
    for series, number in map(split_run_id, roots):
        if number is not None:
            found[series] = max(number, found.get(series, 0))
    return found
