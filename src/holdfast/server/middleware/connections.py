"""Connections: what may be sent and held open before a client is authenticated.

httptools takes a head of any length, and uvicorn waits for the rest of it for ever. So each
connection counts the bytes of a head before they are parsed, its headers and its address, and
has a time for it; and all of them together are counted, in all and for each client. What is
beyond the settings is answered in short and closed, and what is still sent meanwhile is thrown
away. The body that follows is checked in `requests`; what stands around its parts, such as the
extensions of chunks and the headers after the last, is counted here, for it is not seen there.
Requests that came whole before are answered first.

Behind a proxy all connections come from one address: then its own limits are the ones that
count, and there is none for the address of a trusted proxy. Nor is there with
`connections_per_address` 0; `max_connections` 0 means the same for all of them.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import Any, ClassVar, Final, Protocol
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from holdfast.i18n.catalogue import preferred
from holdfast.i18n.message import msg
from holdfast.server.auth.authentication import neighbourhood
from holdfast.server.middleware.proxies import TrustedProxies
from holdfast.server.middleware.requests import HEADERS, REQUEST_ID
from holdfast.server.problems import RETRY_AFTER, problem, problem_response

LINGER_SECONDS: Final = 1.0
LINGER_BYTES: Final = 256 * 1024
"""How long, and for how much, a client is listened to that is refused while it still sends:
closed at once, it would not see why."""

PIPELINED: Final = 16
"""How many requests may be sent ahead on one connection."""

AROUND_A_BYTE: Final = 8
"""How many bytes may stand around each of a body's: chunks may be as short as one byte."""

OWN_FILES: Final = 64
"""Files that a server has open besides its connections."""


class Bounds(Protocol):
    """The settings a connection lives by."""

    @property
    def header_bytes(self) -> int: ...
    @property
    def header_count(self) -> int: ...
    @property
    def url_bytes(self) -> int: ...
    @property
    def header_seconds(self) -> float: ...
    @property
    def max_connections(self) -> int: ...
    @property
    def connections_per_address(self) -> int: ...
    @property
    def trusted_proxies(self) -> tuple[str, ...]: ...


class Gate:
    """How many connections there are, in all and from each address."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.proxies = TrustedProxies(bounds.trusted_proxies)
        self._most = _within_the_machine(bounds.max_connections)
        self._from: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._from.total()

    def admit(self, address: str, *, is_proxy: bool = False) -> bool:
        most_each = 0 if is_proxy else self.bounds.connections_per_address
        if self._most and len(self) >= self._most:
            return False
        if most_each and self._from[address] >= most_each:
            return False
        self._from[address] += 1
        return True

    def leave(self, address: str) -> None:
        self._from[address] -= 1
        if not self._from[address]:
            del self._from[address]


def _within_the_machine(wanted: int) -> int:
    """A connection is an open file, and of those a process has only so many."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(wanted, max(most - OWN_FILES, 1)) if most != resource.RLIM_INFINITY else wanted


class Refused(Exception):
    """Raised within the parser, which then stops."""


class Bounded(HttpToolsProtocol):
    """A connection to a server; `bounded` makes the class for one."""

    gate: ClassVar[Gate]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._admitted = False
        self._in_head = True
        self._head_bytes = 0
        self._around_body = 0
        self._unanswered = 0
        self._why = (400, msg("this is no HTTP request that can be read"))
        self._refused = False
        self._unread = LINGER_BYTES
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = self.client[0] if self.client else ""
        self._address = neighbourhood(peer)
        self._admitted = self.gate.admit(self._address, is_proxy=self.gate.proxies.trusts(peer))
        if self._admitted:
            self._await_head()
        else:
            self._refused = True
            self.transport.write(self._answer(503, msg("there are too many: come back later")))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._admitted:
            self.gate.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self._refused and not self.transport.is_closing():
            data = self._took(data)
        if self._refused:
            self._throw_away(data)

    def _took(self, data: bytes) -> bytes:
        """What is left once as much of it was parsed as a head may have."""
        most = self.gate.bounds.header_bytes
        if not self._in_head:
            self._took_body(data, most)
            return b""
        piece = data[: most - self._head_bytes]
        if not piece:
            self._refuse(431, msg("the headers are larger than {n:,} bytes", n=most))
            return data
        self._head_bytes += len(piece)
        self._await_head()
        super().data_received(piece)
        return data[len(piece) :]

    def _took_body(self, data: bytes, most: int) -> None:
        self._around_body += len(data)
        super().data_received(data)
        if self._around_body > most and not self._refused:
            self._refuse(
                413, msg("more than {n:,} bytes stand around the parts of the body", n=most)
            )

    def _throw_away(self, data: bytes) -> None:
        self._unread -= len(data)
        if self._unread < 0:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = max(self._head_bytes, 1)  # what came with the end of another
        self._await_head()

    def on_url(self, url: bytes) -> None:
        most = self.gate.bounds.url_bytes
        if len(self.url) + len(url) > most:
            self._stop_parsing(414, msg("the address is longer than {n:,} bytes", n=most))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        most = self.gate.bounds.header_count
        if len(self.headers) >= most:
            self._stop_parsing(431, msg("there are more than {n} headers", n=most))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        before = self.cycle
        super().on_headers_complete()
        self._next_part(in_head=False)
        self._unanswered += self.cycle is not before
        if len(self.pipeline) > PIPELINED:
            self._stop_parsing(400, msg("more than {n} requests were sent ahead", n=PIPELINED))

    def on_body(self, body: bytes) -> None:
        self._around_body -= (1 + AROUND_A_BYTE) * len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._next_part(in_head=True)
        super().on_message_complete()

    def _next_part(self, *, in_head: bool) -> None:
        self._in_head, self._head_bytes, self._around_body = in_head, 0, 0
        self._stop_timer()

    def _stop_parsing(self, status: int, detail: str) -> None:
        self._why = (status, detail)
        raise Refused(detail)

    def send_400_response(self, msg: str) -> None:
        """What the parser did not take, or was not to take any more of."""
        self._refuse(*self._why)

    def _await_head(self) -> None:
        if self._timer is None:
            seconds = self.gate.bounds.header_seconds
            self._timer = self.loop.call_later(seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        seconds = self.gate.bounds.header_seconds
        if self._head_bytes:
            self._refuse(408, msg("the headers did not arrive within {n:g} seconds", n=seconds))
        else:
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, detail: str) -> None:
        self._refused = True
        self._why = (status, detail)
        self._stop_timer()
        self._unset_keepalive_if_required()
        cycle = None if self._in_head else self.cycle
        if cycle is not None and cycle.response_started:
            self.transport.close()  # nothing is put into an answer that is on its way
            return
        if cycle is not None:
            self._drop(cycle)
        if not self._unanswered:
            self._say_why()

    def _drop(self, cycle: RequestResponseCycle) -> None:
        """A request of which not all has come; those before it are answered."""
        cycle.disconnected = True
        cycle.message_event.set()
        self._unanswered -= 1
        if self.pipeline:
            self.pipeline.popleft()  # the newest stands first

    def on_response_complete(self) -> None:
        self._unanswered -= 1
        super().on_response_complete()
        if self._refused and not self._unanswered and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._say_why()

    def _say_why(self) -> None:
        self.transport.write(self._answer(*self._why))
        self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _answer(self, status: int, detail: str) -> bytes:
        accepted = dict(self.headers or ()).get(b"accept-language", b"").decode("latin-1")
        request_id = uuid4().hex
        full = status == 503
        title = msg("Too many connections") if full else None
        members = problem(status, detail, title=title, request_id=request_id)
        more = {**HEADERS, REQUEST_ID: request_id, "Connection": "close"}
        more |= {"Retry-After": str(RETRY_AFTER)} if full else {}
        response = problem_response(members, preferred(accepted), more)
        lines = [b"%b: %b\r\n" % one for one in response.raw_headers]
        return b"".join([STATUS_LINE[status], *lines, b"\r\n", bytes(response.body)])


def bounded(bounds: Bounds) -> type[Bounded]:
    """What `uvicorn.Config(http=…)` takes: the connections of one server."""
    return type("Bounded", (Bounded,), {"gate": Gate(bounds)})
