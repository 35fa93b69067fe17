"""Slots: how many calls the whole installation may have in flight, as rows that workers hold."""

from __future__ import annotations

from typing import Final

from holdfast.journal.postgres_database import Connections, load_statements

GONE_SECONDS: Final = 8.0
"""A worker that was not heard of for so long holds nothing any more."""

_SQL: Final = load_statements("postgres_slots.sql")


class Slots:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._made = 0

    async def take(self, worker: int, count: int, limit: int) -> int:
        """Take up to `count` of the first `limit` slots; how many there were."""
        if limit > self._made:
            await self._connections.select(_SQL["make_slots"], [limit])
            self._made = limit
        parameters = [worker, count, limit, GONE_SECONDS]
        return len(await self._connections.select(_SQL["take_slots"], parameters))

    async def give_back(self, worker: int, count: int) -> None:
        await self._connections.select(_SQL["return_slots"], [worker, count])

    async def held(self, worker: int) -> tuple[int, int]:
        """How many the worker holds, and how many workers are alive."""
        [(held, workers)] = await self._connections.select(
            _SQL["count_slots"], [worker, GONE_SECONDS]
        )
        return int(held), int(workers)
