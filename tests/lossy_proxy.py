"""A way to a database on which answers are lost.

A `LossyProxy` passes everything on between PostgreSQL and whoever connects to it. Once `every` is
set, it loses one in so many, by chance, of the answers that say that a statement has been carried
out, with the connection that it would have come by: whoever asked knows no more whether it was.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Final, Self

from psycopg.conninfo import conninfo_to_dict

READY: Final = b"Z"
"""The message by which PostgreSQL says that it is done, and in what transaction."""

AT_REST: Final = b"I"
UNASKED: Final = (b"R", b"A", b"E", b"N")
"""Messages after which nothing more may come: questions for the password, notices, errors."""


TURNS: Final = 5
"""How many turns of the loop a connection takes at most to come, once accepted, or to go."""


class LossyProxy:
    """In front of the database at `url`, which is one by TCP."""

    def __init__(self, url: str) -> None:
        self._parts = conninfo_to_dict(url)
        self.every = 0
        self.lost = 0
        self._chance = Random(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for _ in range(TURNS):
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

    @property
    def url(self) -> str:
        assert self._server is not None
        parts, port = self._parts, self._server.sockets[0].getsockname()[1]
        who = f"{parts['user']}:{parts['password']}@127.0.0.1:{port}"
        return f"postgresql://{who}/{parts['dbname']}?sslmode=disable&gssencmode=disable"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = str(self._parts["host"]), int(str(self._parts["port"]))
        with suppress(OSError, asyncio.IncompleteReadError):
            back, forth = await asyncio.open_connection(host, port)
            ways = [
                asyncio.ensure_future(_copy(reader, forth)),
                asyncio.ensure_future(self._answer(back, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                forth.transport.abort()

    async def _answer(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what the database says, answer by answer, up to one that is lost."""
        held = bytearray()
        while True:
            head = await back.readexactly(5)
            body = await back.readexactly(int.from_bytes(head[1:], "big") - 4)
            held += head + body
            if head[:1] == READY and body == AT_REST and self._loses():
                return
            if head[:1] in (READY, *UNASKED):
                writer.write(held)
                held.clear()
                await writer.drain()

    def _loses(self) -> bool:
        if not self.every or self._chance.randrange(self.every):
            return False
        self.lost += 1
        return True


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
