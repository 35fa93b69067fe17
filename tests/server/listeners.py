"""Listening to event streams byte by byte, as well-behaved clients and as bad ones."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from holdfast.client.event_stream import ServerEvent


@dataclass(frozen=True, slots=True)
class Heard:
    """A block of a stream: an event, or what is not one (`fields` has every line)."""

    fields: dict[str, str]

    @property
    def id(self) -> str | None:
        return self.fields.get("id")

    @property
    def event(self) -> str | None:
        return self.fields.get("event")

    @property
    def data(self) -> Any:
        return json.loads(self.fields["data"])

    @classmethod
    def parse(cls, block: str) -> Self:
        return cls({name: text for name, _, text in (one.partition(": ") for one in _lines(block))})


def _lines(block: str) -> list[str]:
    return block.split("\n")


class Listener:
    """One response, block by block."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._chunks = response.aiter_bytes()
        self._rest = b""

    async def block(self) -> Heard:
        """The next block; StopAsyncIteration when the response is at its end."""
        while b"\n\n" not in self._rest:
            self._rest += await anext(self._chunks)
        block, _, self._rest = self._rest.partition(b"\n\n")
        return Heard.parse(block.decode())

    async def event(self) -> Heard:
        """The next block that is an event."""
        while True:
            heard = await self.block()
            if "data" in heard.fields:
                return heard

    async def until(self, event: str) -> list[Heard]:
        """All events up to the next of that type, and that one."""
        found = [await self.event()]
        while found[-1].event != event:
            found.append(await self.event())
        return found

    async def rest(self) -> list[Heard]:
        """All events to the response's end."""
        found = []
        try:
            while True:
                found.append(await self.event())
        except StopAsyncIteration:
            return found


@asynccontextmanager
async def listening_to(
    client: httpx.AsyncClient, path: str, last: str | int | None = None, **parameters: Any
) -> AsyncIterator[Listener]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with client.stream("GET", path, headers=headers, params=parameters) as response:
        yield Listener(response)


async def all_of(
    client: httpx.AsyncClient, path: str, last: str | int | None = None, **parameters: Any
) -> list[Heard]:
    """Every event of a stream that ends."""
    async with asyncio.timeout(30), listening_to(client, path, last, **parameters) as listener:
        assert listener.response.status_code == 200, await listener.response.aread()
        return await listener.rest()


def recorded(events: list[Heard] | list[ServerEvent]) -> list[tuple[str, int]]:
    """Which records were told: run and place."""
    return [(one.data["run_id"], one.data["seq"]) for one in events if one.id is not None]


class Deaf:
    """A client that asks and takes nothing: the smallest buffer, and never read."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    @classmethod
    async def at(cls, url: str, path: str, token: str | None = None) -> Self:
        place = urlsplit(url)
        connected = socket.socket()
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connected.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connected, (place.hostname, place.port))
        lines = [f"GET {path} HTTP/1.1", f"Host: {place.netloc}"]
        lines += [] if token is None else [f"Authorization: Bearer {token}"]
        await loop.sock_sendall(connected, ("\r\n".join(lines) + "\r\n\r\n").encode())
        return cls(connected)

    def close(self) -> None:
        self.socket.close()


async def seen(condition: Any, patience: float = 30.0) -> None:
    """Wait until it holds; a test that waits that long has failed."""
    async with asyncio.timeout(patience):
        while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)
