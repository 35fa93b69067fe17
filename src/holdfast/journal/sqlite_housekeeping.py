"""What the embedded journal does about runs that are to go, and about numbers of those gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.journal import removal
from holdfast.journal.append_writer import AppendWriter
from holdfast.journal.database import Parameters
from holdfast.journal.port import (
    LONGEST_NUMBER,
    NOTHING,
    SHORTEST_NUMBER,
    Attached,
    Removal,
    split_run_id,
)
from holdfast.journal.writer import Writer


class SqliteHousekeeping:
    """A part of `SqliteJournal`. Its transactions are small, and are committed like any other: in a
    thread of its own each of their statements would wait for the interpreter."""

    _appends: AppendWriter

    def _open_writer(self) -> Writer:
        raise NotImplementedError

    def _select(self, name: str, parameters: Parameters = ()) -> list[Any]:
        raise NotImplementedError

    async def remove(self, removals: Sequence[Removal], attached: Attached = NOTHING) -> list[str]:
        given = (self._appends, removals, attached)
        return await self._open_writer().write(removal.remove, given)

    async def reclaim(self) -> bool:
        return await self._open_writer().write(removal.reclaim, self._appends)

    async def compact(self) -> None:
        """Write the whole file anew; nothing else is written meanwhile."""
        await self._open_writer().write(removal.compact, self._appends, may_block=False)

    def _highest_number(self, series: str) -> int:
        """Of the runs that exist, and of those that are gone."""
        highest = max((last for (last,) in self._select("last_removed", (series,))), default=0)
        for digits in range(SHORTEST_NUMBER, LONGEST_NUMBER + 1):
            for (run_id,) in self._select(
                "highest_number",
                {
                    "length": len(series) + 1 + digits,
                    "lowest": f"{series}_{'0' * digits}",
                    "highest": f"{series}_{'9' * digits}",
                    "digits_from": len(series) + 2,
                },
            ):
                highest = max(highest, split_run_id(run_id)[1] or 0)
        return highest
