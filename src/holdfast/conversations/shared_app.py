"""The application of one's own that conversations on a journal live in.

There is one for a journal, however many engines are opened on it: whoever only looks must
not close the journal under another, and two consumers of one conversation must meet.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

from holdfast.app import Holdfast
from holdfast.conversations.consumer import to_the_end
from holdfast.journal.port import Journal


class _Opened:
    def __init__(self, journal: Journal) -> None:
        self.loop = asyncio.get_running_loop()
        self.journal = journal
        self.guests = 0
        self._app: Holdfast | None = None
        self._door = asyncio.Lock()

    async def enter(self) -> Holdfast:
        async with self._door:
            if self._app is None:
                # The collector stays as it is: a consumer that was forgotten must be found.
                app = Holdfast(journal=self.journal, tune_collector=False)
                self._app = await app.__aenter__()
            return self._app

    async def leave(self) -> None:
        async with self._door:
            if not self.guests and self._app is not None:
                app, self._app = self._app, None
                await app.__aexit__(None, None, None)


_HOUSES: Final[dict[int, _Opened]] = {}


class SharedApp:
    """Open while somebody is inside. Not a generator: see `attendance`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def __aenter__(self) -> Holdfast:
        self._house = _opened_of(self._journal)
        self._house.guests += 1
        try:
            return await self._house.enter()
        except BaseException:
            await self._leave()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        house = self._house
        house.guests -= 1
        await to_the_end(house.leave())
        if not house.guests and _HOUSES.get(id(self._journal)) is house:
            del _HOUSES[id(self._journal)]


def _opened_of(journal: Journal) -> _Opened:
    """One whose event loop has ended is a ruin: nobody can leave it any more."""
    house = _HOUSES.get(id(journal))
    if house is None or house.loop.is_closed():
        house = _HOUSES[id(journal)] = _Opened(journal)
    return house
