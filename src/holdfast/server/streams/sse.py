"""Server-sent events: one response from an async iterator of frames, to a client that keeps up.

The iterator is pulled only after the socket has taken the last frame, so what waits for a
slow client is what the transport holds and not more. A client that takes nothing for
`stall_seconds` is dropped: the connection is aborted, because a polite close would wait
for exactly that client. It comes back with `Last-Event-ID` and has missed nothing.

A stream ends in one of five ways, and none leaves a task behind: the iterator is at its
end; the client has gone; it stalled; what proves who listens was revoked or has expired; or
the server closes. In the last two `event: bye` is the last thing said. uvicorn waits for open
connections before anything else, so `Streams.close()` must be called before the server's own
shutdown. Where the application is mounted into another one that is not done: uvicorn tells
applications that it stops only when the last connection is closed. So as long as streams are
open the server that takes the process's signals is asked whether it was told to stop. One that
takes none (in a thread) needs `timeout_graceful_shutdown`.

Frames may be given encoded (`bytes`), several at once: what goes to many is encoded once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.errors import HoldfastError, OperatorError, Unauthenticated
from holdfast.i18n.message import msg
from holdfast.model.values import Json
from holdfast.server.auth.authentication import identify, identify_again
from holdfast.server.middleware.requests import TRANSPORT

if TYPE_CHECKING:
    from holdfast.server.services import Services

log = logging.getLogger("holdfast")

RETRY_MS = 1_000
"""How long a client waits before it comes back."""

CHECK_SECONDS = 5.0
"""How often a listener is identified again where heartbeats are rarer."""

FAREWELL_SECONDS = 2.0
"""How long a closing server waits for a client to take its last frame."""

SOCKET_BYTES = 128 * 1024
"""What the kernel may hold for one client; unasked it would be megabytes."""

LOOK_SECONDS = 0.25
"""How often the server is asked whether it was told to stop."""

_UNICODE_BREAKS = re.compile("[\x85\u2028\u2029]")

_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True)
class Frame:
    """One event; without an id it is shown and moves no cursor."""

    data: Json
    event: str | None = None
    id: str | int | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A line that no client sees as an event."""

    text: str


Frames = AsyncGenerator[Frame | Comment | bytes, None]


async def _forever() -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class Listener:
    """Who listens: `via` is the credential that proves it, `check` raises when it proves nothing
    any more, and `expired` returns when its time is over.
    """

    check: Callable[[], Awaitable[object]]
    via: str = ""
    expired: Callable[[], Awaitable[None]] = _forever


def encoded(frame: Frame | Comment | bytes) -> bytes:
    match frame:
        case bytes():
            return frame
        case Comment(text=text):
            return f": {_line(text)}\n\n".encode()
        case Frame():
            return _event(frame, json.dumps(frame.data, ensure_ascii=False, allow_nan=False))


def spliced(event: str, cursor: str | int | None, data: str) -> bytes:
    """A frame around JSON that is text already."""
    return _event(Frame(None, event, cursor), data)


def _event(frame: Frame, data: str) -> bytes:
    lines = [] if frame.id is None else [f"id: {_line(str(frame.id))}"]
    lines += [] if frame.event is None else [f"event: {_line(frame.event)}"]
    # JSON has no raw newline within; between its parts one is only white space.
    return "\n".join([*lines, f"data: {_line(data)}", "", ""]).encode("utf-8", "replace")


def _line(text: str) -> str:
    """One line for every client: some break lines where only Unicode does."""
    if not text.isascii():
        text = _UNICODE_BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.replace("\r", " ").replace("\n", " ") if "\n" in text or "\r" in text else text


RETRY = f"retry: {RETRY_MS}\n\n".encode()
BEAT = encoded(Comment("beat"))
BYE = encoded(Frame({"reason": "the server is closing: connect again"}, "bye"))
SIGNED_OUT = encoded(Frame({"reason": msg("you are signed out: sign in again")}, "bye"))
LOST = encoded(Frame({"reason": "the stream broke off: connect again"}, "bye"))


class Patience(Protocol):
    """The settings a stream lives by."""

    @property
    def heartbeat(self) -> float: ...

    @property
    def stall_seconds(self) -> float: ...


@dataclass(eq=False)
class Streams:
    """All open streams of a server: how many there are, and the word to end them."""

    patience: Patience
    dropped: int = 0
    served: int = 0
    closed: bool = False
    _open: dict[asyncio.Future[bytes], str] = field(default_factory=dict)
    _next_look: asyncio.TimerHandle | None = None

    @property
    def clients(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """End every stream, and each that is still asked for."""
        self.closed = True
        for ended in self._open:
            _end_with(ended, BYE)

    def sign_out(self, credentials: Collection[str]) -> None:
        """End the streams of those who came with one of these."""
        for ended, via in self._open.items():
            if via in credentials:
                _end_with(ended, SIGNED_OUT)

    def enter(self, via: str) -> asyncio.Future[bytes]:
        """What a stream ends with, when it is told to end."""
        ended: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if self.closed:
            ended.set_result(BYE)
        self._open[ended] = via
        self.served += 1
        if self._next_look is None:
            self._look()
        return ended

    def leave(self, ended: asyncio.Future[bytes]) -> None:
        del self._open[ended]
        ended.cancel()
        if not self._open and self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look(self) -> None:
        """Again and again, while there are streams."""
        if told_to_stop():
            self.close()
        self._next_look = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)


def _end_with(ended: asyncio.Future[bytes], last: bytes) -> None:
    if not ended.done():
        ended.set_result(last)


def told_to_stop() -> bool:
    """Whether uvicorn, if it is what takes this process's signals, has had one."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True


async def sse(services: Services, frames: Frames, request: Request) -> EventStream:
    """The response that carries `frames`, an async generator of frames, to who sent `request`.

    They are identified again every few seconds: a key of an issuer may be withdrawn, and a token
    revoked at another server. One that is revoked here or expires, and a session that is over, end
    their streams at once.
    """
    who = (await identify(request)).principal

    async def expired() -> None:
        never = asyncio.Event()
        while who.until is None or services.now() < who.until:
            await services.app.engine.clock.wait(who.until, never)

    listener = Listener(lambda: identify_again(request), who.via, expired)
    return EventStream(services.streams, frames, listener)


class _Stalled(Exception):
    """The client has taken nothing for too long."""


class EventStream(Response):
    media_type = "text/event-stream"

    def __init__(self, streams: Streams, frames: Frames, listener: Listener) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(_HEADERS)
        self._streams = streams
        self._frames = frames
        self._listener = listener
        self._turn = asyncio.Lock()
        self._last = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = scope.get(TRANSPORT)
        closing = self._streams.enter(self._listener.via)
        gone = asyncio.create_task(_gone(receive))
        try:
            _narrow(transport)
            await self._converse(send, gone, closing)
        except _Stalled:
            self._streams.dropped += 1
            await _abort(transport, gone)
        finally:
            self._streams.leave(closing)
            await _end(gone)
            await self._frames.aclose()

    async def _converse(
        self, send: Send, gone: asyncio.Task[None], closing: asyncio.Future[bytes]
    ) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await self._within(self._streams.patience.stall_seconds, send(start))
        tasks = [
            asyncio.create_task(self._pump(send, closing)),
            asyncio.create_task(self._beat(send)),
            asyncio.create_task(self._check_often()),
            asyncio.create_task(self._expire(closing)),
        ]
        ends: list[asyncio.Future[Any]] = [*tasks, gone, closing]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in tasks:
                await _end(one)
        if not gone.done():
            await self._finish(send, _last_word(tasks, closing))

    async def _finish(self, send: Send, last: bytes) -> None:
        body = {"type": "http.response.body", "body": last, "more_body": False}
        await self._within(FAREWELL_SECONDS, send(body))

    async def _expire(self, closing: asyncio.Future[bytes]) -> None:
        await self._listener.expired()
        _end_with(closing, SIGNED_OUT)

    async def _pump(self, send: Send, closing: asyncio.Future[bytes]) -> None:
        await self._put(send, RETRY)
        async for frame in self._frames:
            if closing.done():
                return
            await self._put(send, encoded(frame))
            # Neither a journal nor a socket need ever make us wait, and others want a turn.
            await asyncio.sleep(0)

    async def _beat(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        heartbeat = self._streams.patience.heartbeat
        while True:
            await self._listener.check()
            silence = clock() - self._last
            if silence < heartbeat or self._turn.locked():
                await asyncio.sleep(max(heartbeat - silence, heartbeat / 4))
            else:
                await self._put(send, BEAT)

    async def _check_often(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            with suppress(OperatorError):  # the next heartbeat tells of it, if it lasts
                await self._listener.check()

    async def _put(self, send: Send, body: bytes) -> None:
        message = {"type": "http.response.body", "body": body, "more_body": True}
        async with self._turn:
            await self._within(self._streams.patience.stall_seconds, send(message))
            self._last = asyncio.get_running_loop().time()

    async def _within(self, seconds: float, sending: Any) -> None:
        try:
            async with asyncio.timeout(seconds):
                await sending
        except TimeoutError:
            raise _Stalled from None


def _last_word(tasks: Sequence[asyncio.Task[None]], closing: asyncio.Future[bytes]) -> bytes:
    """How the stream ends: at its end, because it is told to, or because something broke."""
    for task in tasks:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, _Stalled):
            raise error
        if isinstance(error, Unauthenticated):
            return SIGNED_OUT
        if error is not None:
            log.log(
                logging.WARNING if isinstance(error, HoldfastError) else logging.ERROR,
                "an event stream broke off: %s",
                error,
                exc_info=None if isinstance(error, HoldfastError) else error,
            )
            return LOST
    return closing.result() if closing.done() else b""


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel it and see it end; what it ended with is asked for elsewhere."""
    task.cancel()
    await asyncio.wait({task})


async def _abort(transport: Any, gone: asyncio.Task[None]) -> None:
    if transport is None:
        return
    transport.abort()
    await asyncio.wait({gone}, timeout=FAREWELL_SECONDS)


def _narrow(transport: Any) -> None:
    connected = None if transport is None else transport.get_extra_info("socket")
    if connected is not None and connected.family != socket.AF_UNIX:
        with suppress(OSError, ValueError):  # the client has left before its stream begins
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
