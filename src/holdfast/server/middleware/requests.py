"""What every request and every answer must be, before and after any route, in one middleware.

What trusted proxies say of a request comes first (`proxies`): all that follows, its host, the
address that is noted and counted, the scheme of links and cookies, is then the client's.

A request is served only under a host name that is allowed. Its body arrives whole, within a
size and a time, before a route reads it, and is text; JSON within it is no deeper and holds
no more values than the settings say. So no route can be held up or filled up by what it reads.
Requests are never endless; answers may be, and pass through piece by piece.

Reads wait for their turn (`admission`), and a request that comes before the application is open
has it opened (`lifetime`). Requests are counted by the template of the route that served them,
never by their paths: how many labels there are is bounded by the program, not by its use.

Every answer, a refusal too, carries the headers that keep browsers from doing with it what
is not meant, and the name of the request, as does its log line.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import HoldfastError
from holdfast.i18n.catalogue import preferred
from holdfast.i18n.message import msg
from holdfast.language.strict import Extent, extent
from holdfast.runtime.log_context import REQUEST
from holdfast.server.middleware.admission import Admission
from holdfast.server.middleware.proxies import TrustedProxies
from holdfast.server.problems import problem, problem_response, refusal
from holdfast.server.settings import ServerSettings

if TYPE_CHECKING:
    from holdfast.server.lifetime import Lifetime

REQUEST_ID: Final = "X-Request-ID"

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer a browser would call our own forms' origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Cache-Control": "no-store",
}
"""A route that knows better sets its own."""

FOR_TLS: Final[Mapping[str, str]] = {"Strict-Transport-Security": "max-age=31536000"}

LINGER_SECONDS: Final = 2.0

TRANSPORT: Final = "holdfast.transport"
"""Where the scope has the request's connection, for a stream that must abort it: ASGI has no word
for that, and uvicorn's `receive` belongs to what holds the transport."""

UNROUTED: Final = "(none)"
BROKE_OFF: Final = 0
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_READS: Final = frozenset({"GET", "HEAD"})
_AT_ONCE: Final = frozenset({"/healthz", "/readyz"})

_NO_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUEST_ID: Final = REQUEST_ID.lower().encode()
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^:\[\]/@\s]{1,254})(?::(\d{1,5}))?")
"""No longer than the DNS has names: each of its labels is looked at with all that follow."""


class Refused(Exception):
    """A request that no route sees; `unread` when there may be more of it."""

    def __init__(self, status: int, detail: str, *, unread: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.unread = unread


class Gone(Exception):
    """The client left before its request was complete."""


class Counts:
    """Requests by method, route and status, since the server was made."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._began = time.monotonic()

    @property
    def uptime(self) -> float:
        return time.monotonic() - self._began

    @property
    def refused_logins(self) -> int:
        return sum(count for (_, _, status), count in self.requests.items() if status == 401)


class RequestMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        counts: Counts | None = None,
        admission: Admission | None = None,
        lifetime: Lifetime | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._counts = counts or Counts()
        self._admission = admission
        self._lifetime = lifetime
        proxies = settings.trusted_proxies
        self._proxies = TrustedProxies(proxies) if proxies else None
        hosts = frozenset(_normal(one) for one in settings.hosts)
        self._allows = lru_cache(partial(allows, hosts))
        headers = {**HEADERS, **(FOR_TLS if settings.secure_cookies else {})}
        self._headers = [(n.lower().encode(), value.encode()) for n, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._count(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})
            case _:
                await self._app(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._proxies is not None:
            self._proxies.apply(scope)
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        REQUEST.set(scope["state"])
        transport = getattr(getattr(receive, "__self__", None), "transport", None)
        if transport is not None:
            scope.setdefault(TRANSPORT, transport)
        status = BROKE_OFF

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.get("headers", ())
                names = {name for name, _ in given}
                ours = [one for one in self._headers if one[0] not in names]
                message["headers"] = [*given, *ours, (_REQUEST_ID, request_id.encode())]
            await send(message)

        try:
            await self._serve(scope, headers, receive, answer)
        except Exception:
            status = status or 500
            raise
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = str(getattr(scope.get("route"), "path", UNROUTED))
            self._counts.requests[method, route, status] += 1

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, answer: Send) -> None:
        try:
            self._check_host(headers)
            replayed = await self._body_first(scope, headers, receive)
        except Refused as refused:
            await _refuse(refused, scope, receive, answer)
            return
        except Gone:
            return
        if self._admission and scope["method"] in _READS and scope["path"] not in _AT_ONCE:
            await self._admission.turn()
        if self._lifetime and not self._lifetime.opened:
            try:
                await self._lifetime.begin()
            except HoldfastError as error:
                await refusal(Request(scope), error)(scope, replayed, answer)
                return
        await self._app(scope, replayed, answer)

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        if len(given) != 1 or not self._allows(given[0]):
            raise Refused(
                400,
                msg("this host is not allowed: serve with --allow-host to be reached by this name"),
                unread=True,
            )

    async def _body_first(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        declared = "content-length" in headers or "transfer-encoding" in headers
        if scope["method"] in _NO_BODY and not declared:
            return receive
        _check_length(headers, self._settings.body_limit)
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                body = await _read(receive, self._settings.body_limit)
        except TimeoutError:
            raise Refused(
                408,
                msg("the body did not arrive within {n:g} seconds", n=self._settings.body_seconds),
            ) from None
        _check_text(body, headers, self._settings)
        return _replay(body, receive)


def allows(hosts: Iterable[str], given: str) -> bool:
    """Whether a Host header names one of `hosts`, on any port or on the one it names."""
    match = _HOST.fullmatch(given.lower())
    if match is None:
        return False
    name = match[1].rstrip(".")
    candidates = {"*", name, *_wider(name)}
    if match[2]:
        candidates |= {f"{one}:{match[2]}" for one in candidates}
    return not candidates.isdisjoint(hosts)


def _wider(name: str) -> Sequence[str]:
    labels = name.split(".")
    return [f"*.{'.'.join(labels[at:])}" for at in range(1, len(labels))]


def _normal(host: str) -> str:
    """As `allows` compares it; an IPv6 address may be given without its brackets."""
    bare = host.lower().rstrip(".")
    return f"[{bare}]" if bare.count(":") > 1 and not bare.startswith("[") else bare


def _request_id(headers: Headers) -> str:
    given = headers.get(REQUEST_ID, "")
    return given if _NAME.fullmatch(given) else uuid4().hex


def _check_length(headers: Headers, limit: int) -> None:
    declared = headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdigit()):
        raise Refused(400, msg("Content-Length is not a number"))
    if len(declared) > 18 or int(declared) > limit:
        raise _too_large(limit)


async def _read(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(limit: int) -> Refused:
    return Refused(413, msg("the body is larger than {n:,} bytes", n=limit), unread=True)


def _check_text(body: bytes, headers: Headers, settings: ServerSettings) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Refused(400, msg("the body is not UTF-8, at byte {n}", n=error.start)) from None
    form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    found = Extent(0, body.count(b"&")) if form else extent(body, settings.json_values)
    if found.depth > settings.json_depth:
        raise Refused(400, msg("the body is nested deeper than {n} levels", n=settings.json_depth))
    if found.values > settings.json_values:
        raise Refused(413, msg("the body holds more than {n:,} values", n=settings.json_values))


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _refuse(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    request_id = scope["state"]["request_id"]
    members = problem(refused.status, refused.detail, instance=scope["path"], request_id=request_id)
    language = preferred(Headers(scope=scope).get("accept-language", ""))
    response = problem_response(members, language, {"Connection": "close"})
    await response(scope, receive, _lingering(receive, send) if refused.unread else send)


def _lingering(receive: Receive, send: Send) -> Send:
    """Closing on a client that still sends would cost it our answer: what it sends meanwhile is
    thrown away, for a little while."""

    async def answer(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({**message, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b""})

    return answer
