"""The order of all commits and the audit chain are sealed afterwards, not kept while committing.

A counter without gaps, or a chain that every append goes on from, would have all appends wait for
each other, on a slow disk at an eighth of the speed. So an append only leaves behind which records
it wrote, and what was done, under the number of its transaction (`unsealed`, `deeds`). A reader of
the order first *seals*: it takes everything older than the oldest transaction that may still
write, in order of transactions, and gives out gapless positions and the links of the chain. One
process at a time does it, for it holds the row of `seal`.

Why nothing is missed: let `next` be the first number that no finished transaction had when a
statement began, which is when its snapshot was taken. A transaction below it had its number by
then, for numbers are given in order; so it either shows in the list of backends, which is read
afterwards, or has finished before its backend was looked at. The horizon is the oldest that shows,
or else `next`. Thus whatever is below the horizon has finished, and a *later* statement, with a
snapshot of its own, sees all of it. To take the rows in the same statement would lose what was
committed in between. Transactions that are prepared leave the list of backends, so theirs is read
behind it. Only this database counts: PostgreSQL's own horizon (`pg_snapshot_xmin`) would have it
wait for writers of every other.

The order is that of the numbers, which need not be that of the commits; of one run, and of any two
appends of which one began when the other was acknowledged, it is. The lists of backends have
numbers of 32 bits, which begin again: they are told by their distance from `next`.

To seal needs no disk to be waited for. What is sealed has reached the disk before, and where the
server loses a sealing the next one comes to the same: the same rows, the same order, the same
links. A copy of the database in another server has numbers of that one from then on. A row that
came with the copy shows in that its `xmin` is not its number, and is sealed first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from holdfast.journal import postgres_batches as batches
from holdfast.journal.port import AuditRecord, link
from holdfast.journal.postgres_database import (
    Connection,
    Connections,
    execute,
    load_statements,
    roll_back,
)

_SQL: Final = load_statements("postgres_sealing.sql")

PATIENCE: Final = 0.25
"""How long a reader waits for older transactions to end; what they wrote comes later, then."""

_PAUSE: Final = 0.002

_ALL: Final = 1 << 32
_HALF: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Sealed:
    """Up to which transaction all is sealed, which one was next, and whether more is there."""

    horizon: int
    next: int
    more: bool


class Sealer:
    """Seals for all readers of one process: those that come together share a sealing."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._running: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    async def seal(self, wait: bool = True) -> None:
        """Seal what was acknowledged before; without `wait` what can be, unless another does."""
        if not wait:
            if self._running is None and await self._is_more():
                await self._seal_once(b"try_lock")
            return
        await asyncio.shield(self._join())

    async def stop(self) -> None:
        for task in (self._running, self._following):
            if task is not None:
                with suppress(Exception):
                    await task

    async def state(self) -> tuple[int, int, bool]:
        """The newest position, the one up to which all is forgotten, and whether more is there."""
        [(position, forgotten, more)] = await self._connections.select(_SQL["state"])
        return position, forgotten, more

    def _join(self) -> asyncio.Task[None]:
        """The next sealing: one that runs may have looked before we were acknowledged."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow(self._running))
            self._following.add_done_callback(_heard)
        return self._following

    async def _follow(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._running, self._following = self._following, None
        try:
            await self._seal_all()
        finally:
            self._running = None

    async def _is_more(self) -> bool:
        _, _, more = await self.state()
        return more

    async def _seal_all(self) -> None:
        if not await self._is_more():
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        sealed = await self._seal_once(b"lock")
        target = sealed.next if sealed else 0
        while sealed and sealed.more and sealed.horizon < target and loop.time() < until:
            await asyncio.sleep(_PAUSE)
            sealed = await self._seal_once(b"lock")

    async def _seal_once(self, lock: bytes) -> Sealed | None:
        async with self._connections.one() as connection:
            await connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED")
            try:
                sealed = await _seal(connection, _SQL[lock.decode()])
            except BaseException:
                await roll_back(connection)
                raise
            await connection.execute(b"COMMIT")
            return sealed


def _heard(task: asyncio.Task[None]) -> None:
    """Those who waited were told; they may have gone."""
    if not task.cancelled():
        task.exception()


async def _seal(connection: Connection, lock: bytes) -> Sealed | None:
    rows = await execute(connection, lock)
    if not rows:
        return None
    [(low_text, position, number, digest)] = rows
    [(next_one, running, prepared)] = await execute(connection, _SQL["horizon"])
    horizon = horizon_of(next_one, [*(running or ()), *(prepared or ())])
    # In another server than the one where it was last sealed, numbers may be lower.
    low = int(low_text) if int(low_text) <= next_one else 0
    bounds = [str(low), str(horizon)]
    [(last, more)] = await execute(connection, _SQL["place_stretches"], [*bounds, position])
    [(deeds,)] = await execute(connection, _SQL["has_deeds"], bounds[:1])
    if deeds:
        rows = await execute(connection, _SQL["take_deeds"], bounds)
        number, digest = await _link(connection, sorted(rows, key=lambda r: r[:3]), number, digest)
        [(left,)] = await execute(connection, _SQL["has_deeds"], bounds[1:])
        more = more or left
    await execute(connection, _SQL["note"], [str(max(low, horizon)), last, number, digest])
    return Sealed(horizon, next_one, more)


def horizon_of(next_one: int, running: Iterable[int]) -> int:
    """The oldest transaction that may still write; of those that run the lower 32 bits are known,
    and that they are less than half of all numbers away."""
    ages = [(next_one - xid + _HALF) % _ALL - _HALF for xid in running]
    return next_one - max([0, *ages])


async def _link(
    connection: Connection, rows: list[tuple[Any, ...]], number: int, digest: str
) -> tuple[int, str]:
    entries: list[tuple[Any, ...]] = []
    for _, _, _, *values in rows:
        number, previous = number + 1, digest
        digest = link(previous, number, AuditRecord(*values))
        entries.append((number, *values, previous, digest))
    if entries:
        await execute(connection, _SQL["add_entries"], batches.columns(entries, 11))
    return number, digest
