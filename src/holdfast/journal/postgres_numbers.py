"""Numbers for run ids, from the store: many processes count on in one series.

Those that ask together are given theirs by one statement, which waits for no disk: what a run that
has such a number commits is written behind it. A series begins behind the highest run
that exists, and where it meets a run that was named by hand it begins again behind that.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress

from holdfast.journal.port import LONGEST_NUMBER, SHORTEST_NUMBER, split_run_id
from holdfast.journal.postgres_appends import SQL
from holdfast.journal.postgres_database import Connections


class SharedNumbers:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._waiting: dict[str, list[asyncio.Future[int]]] = defaultdict(list)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def next(self, series: str) -> int:
        mine: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[series].append(mine)
        if series not in self._tasks:
            self._tasks[series] = asyncio.create_task(self._give(series))
        return await mine

    async def stop(self) -> None:
        for task in list(self._tasks.values()):
            with suppress(Exception):
                await task

    async def _give(self, series: str) -> None:
        try:
            while waiting := self._waiting.pop(series, None):
                await self._give_to(series, waiting)
        finally:
            del self._tasks[series]

    async def _give_to(self, series: str, waiting: list[asyncio.Future[int]]) -> None:
        try:
            last = await self._count(series, len(waiting))
        except Exception as error:
            for one in waiting:
                if not one.done():
                    one.set_exception(error)
            return
        for number, one in enumerate(waiting, last - len(waiting) + 1):
            if not one.done():
                one.set_result(number)

    async def _count(self, series: str, count: int) -> int:
        select = self._connections.select
        rows = await select(SQL["count_on"], [series, count])
        if rows:
            last = int(rows[0][0])
            names = [f"{series}_{n:0{SHORTEST_NUMBER}}" for n in range(last - count + 1, last + 1)]
            if not await select(SQL["in_use"], [names]):
                return last
        highest = await self._highest(series)
        [(last,)] = await select(SQL["count_behind"], [series, count, highest])
        return int(last)

    async def _highest(self, series: str) -> int:
        highest = 0
        for digits in range(SHORTEST_NUMBER, LONGEST_NUMBER + 1):
            bounds = (f"{series}_{'0' * digits}", f"{series}_{'9' * digits}")
            length = len(series) + 1 + digits
            rows = await self._connections.select(
                SQL["highest_number"], [length, *bounds, len(series) + 2]
            )
            for (run_id,) in rows:
                highest = max(highest, split_run_id(run_id)[1] or 0)
        return highest
