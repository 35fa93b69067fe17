"""A port that refuses connections until it is opened; then it leads to the office.

It is bound from the start, so that no other process takes it meanwhile, and listens from the
opening on.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class Door:
    def __init__(self, office_url: str) -> None:
        self._office = urlsplit(office_url)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))
        self._server: asyncio.Server | None = None
        self._visits: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for one in self._visits:
            one.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        self._socket.close()

    async def open(self) -> None:
        """From now on it leads to the office; a second time is harmless."""
        if self._server is None:
            self._server = await asyncio.start_server(self._enter, sock=self._socket)

    def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.create_task(self._visit(reader, writer))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_office, to_office = await asyncio.open_connection(
            self._office.hostname, self._office.port
        )
        try:
            await asyncio.gather(_pass_on(reader, to_office), _pass_on(from_office, writer))
        finally:
            for one in (to_office, writer):
                one.close()
                with suppress(ConnectionError):
                    await one.wait_closed()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while content := await source.read(65_536):
            target.write(content)
            await target.drain()
    target.close()
