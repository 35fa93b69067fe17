"""Event streams that come back by themselves.

The cursor is the id of the last event that was handed on, so a stream that is taken up again
misses and repeats nothing, whether the connection broke, the server was restarted, or nothing
was heard for so long that the connection must be dead (a server says something at least
every heartbeat). What has no id is shown and moves nothing; a question that is shown again when
a stream is taken up again is handed on once.
"""

from __future__ import annotations

import json
import random
from asyncio import sleep
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from holdfast.client.problems import refusal_of, seconds_to_wait
from holdfast.client.transport import Backoff, Transport
from holdfast.errors import HoldfastError

INTERACTION: Final = "INTERACTION"
_BYE: Final = "bye"
_END: Final = "end"
_MOST_SHOWN: Final = 10_000


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """What a server told; without an id it is not in any journal."""

    type: str
    data: Any
    id: str | None = None


@dataclass(slots=True)
class _Parser:
    """Lines to events, as the specification of server-sent events has it."""

    retry: float = 1.0
    last_id: str | None = None
    _id: str | None = None
    _type: str = ""
    _data: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """A new connection: what the last one did not finish was not told."""
        self._id, self._type, self._data = None, "", []

    def take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                self._id = value
            case "event":
                self._type = value
            case "data":
                self._data.append(value)
            case "retry" if value.isascii() and value.isdigit():
                self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> ServerEvent | None:
        told, kind, data = self._id, self._type, self._data
        self.begin()
        if told is not None:
            self.last_id = told
        if not data:
            return None
        return ServerEvent(kind or "message", json.loads("\n".join(data)), told)


class _NotNow(Exception):
    """The server cannot serve the stream at this moment."""

    def __init__(self, reason: HoldfastError, seconds: float | None = None) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.seconds = seconds


class EventStream:
    """One stream, however many connections it takes."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        parameters: Mapping[str, Any],
        silence: float,
        patience: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._transport = transport
        self._headers = headers or {}
        self._path = path
        self._parameters = parameters
        self._silence = silence
        self._patience = patience
        self._parser = _Parser()
        self._shown: dict[str, None] = {}
        self._over = False

    async def events(self) -> AsyncGenerator[ServerEvent, None]:
        """Until the run is over or the server refuses; taken up again unseen."""
        pauses = Backoff(self._patience)
        while not self._over:
            try:
                async with aclosing(self._connection()) as heard:
                    async for event in heard:
                        pauses = Backoff(self._patience)
                        yield event
            except _NotNow as refused:
                await pauses.rest(refused.reason, refused.seconds)
            if not self._over:
                await sleep(self._parser.retry * random.uniform(0.1, 1.0))  # noqa: S311

    async def _connection(self) -> AsyncGenerator[ServerEvent, None]:
        self._parser.begin()
        last = self._parser.last_id
        named = {} if last is None else {"last-event-id": last}
        begun = {} if last is None else {"after": None}
        try:
            async with self._transport.stream(
                self._path, {**self._headers, **named}, {**self._parameters, **begun}, self._silence
            ) as response:
                await self._judge(response)
                async for line in _lines(response.aiter_bytes()):
                    event = self._parser.take(line)
                    if event is not None and event.type in (_BYE, _END):
                        self._over = event.type == _END
                        return
                    if event is not None and self._is_news(event):
                        yield event
        except httpx.TransportError as error:
            raise _NotNow(self._transport.unreachable(error)) from None

    async def _judge(self, response: httpx.Response) -> None:
        self._over = response.status_code == 204
        if response.status_code < 400:
            return
        await response.aread()
        refusal = refusal_of(response)
        if response.status_code == 503:
            raise _NotNow(refusal, seconds_to_wait(response))
        raise refusal

    def _is_news(self, event: ServerEvent) -> bool:
        if event.type != INTERACTION:
            return True
        question = str(event.data.get("requestId"))
        known = question in self._shown
        self._shown[question] = None
        if len(self._shown) > _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
        return not known


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Only line feeds end a line: JSON may contain what Python takes for other line ends."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode().removesuffix("\r")
