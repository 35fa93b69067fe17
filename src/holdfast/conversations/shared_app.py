"""The application behind conversations that were opened on a journal.

There is one for each journal, however many engines are opened on it: an engine that only reads must
not close the journal under another, and two consumers of one conversation must be found out.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

from holdfast.app import Holdfast
from holdfast.conversations.consumer import to_the_end
from holdfast.journal.port import Journal


class _OpenedApp:
    def __init__(self, journal: Journal) -> None:
        self.loop = asyncio.get_running_loop()
        self.journal = journal
        self.users = 0
        self._app: Holdfast | None = None
        self._lock = asyncio.Lock()

    async def enter(self) -> Holdfast:
        async with self._lock:
            if self._app is None:
                # The collector stays as it is: a consumer that was forgotten must be found.
                app = Holdfast(journal=self.journal, tune_collector=False)
                self._app = await app.__aenter__()
            return self._app

    async def leave(self) -> None:
        async with self._lock:
            if not self.users and self._app is not None:
                app, self._app = self._app, None
                await app.__aexit__(None, None, None)


_OPENED: Final[dict[int, _OpenedApp]] = {}


class SharedApp:
    """Open while an engine uses it. Not a generator: see `consumer`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def __aenter__(self) -> Holdfast:
        self._opened = _opened_of(self._journal)
        self._opened.users += 1
        try:
            return await self._opened.enter()
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
        opened = self._opened
        opened.users -= 1
        await to_the_end(opened.leave())
        if not opened.users and _OPENED.get(id(self._journal)) is opened:
            del _OPENED[id(self._journal)]


def _opened_of(journal: Journal) -> _OpenedApp:
    """Another one, where the event loop of the former has ended: it cannot be closed any more."""
    opened = _OPENED.get(id(journal))
    if opened is None or opened.loop.is_closed():
        opened = _OPENED[id(journal)] = _OpenedApp(journal)
    return opened
