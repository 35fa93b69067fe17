"""From the first request to the last: what the server holds open, and when it lets go.

An application that is already open is used and left open. Served by itself, the server's
lifespan opens and closes the rest. Mounted into another application it hears nothing of that
one's lifespan, unless that one is `Holdfast.lifespan`. Else the first request opens it, in a
task that ends with the event loop, and the log says what is missing: until that request,
nothing that a process left behind has gone on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from typing import Final

from fastapi import FastAPI

from holdfast.i18n import catalogue
from holdfast.language.conditions import parse
from holdfast.runtime.offload import aside
from holdfast.server.services import Services
from holdfast.views.published import prepare

log = logging.getLogger("holdfast")

UNTOLD: Final = (
    "opened by its first request: until now no run has gone on. Start it with the application "
    "that it is mounted into, as FastAPI(lifespan=app.lifespan)"
)


class Lifetime:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._ready: asyncio.Future[None] | None = None
        self._holder: asyncio.Task[None] | None = None
        self.opened = False

    @asynccontextmanager
    async def around(self, server: FastAPI) -> AsyncIterator[None]:
        """The server's lifespan; harmless for one that a request has opened."""
        if self.opened:
            yield
            return
        async with self._open():
            yield

    async def begin(self) -> None:
        """Open what is not open, for a request that comes without a lifespan."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._holder = asyncio.create_task(self._hold(self._ready), context=Context())
        await asyncio.shield(self._ready)

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        try:
            was_open = self._services.app.is_open
            async with self._open():
                if not was_open:
                    log.warning(UNTOLD)
                ready.set_result(None)
                await asyncio.Event().wait()
        except Exception as error:
            self._ready = None
            if ready.done():
                raise
            ready.set_exception(error)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if not self._services.app.is_open:
                await stack.enter_async_context(self._services.app)
            await self._services.open(stack)
            await aside(_prepare)
            self.opened = True
            try:
                yield
            finally:
                self.opened = False


def _prepare() -> None:
    """What a program loads when it first needs it, a server has from the start: no run waits."""
    catalogue.prepare()
    prepare()
    parse("Done")
