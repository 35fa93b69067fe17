"""Counting requests: a plain ASGI middleware that neither reads nor holds anything.

A request is counted by the template of the route that served it, never by its path: how many
labels there are is bounded by the program, not by its use.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNROUTED: Final = "(none)"
BROKE_OFF: Final = 0

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


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


class Counting:
    """ASGI middleware: counts each request by the route that served it and by its status."""

    def __init__(self, app: ASGIApp, counts: Counts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = BROKE_OFF

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            status = status or 500
            raise
        finally:
            self._counts.requests[_method(scope), _route(scope), status] += 1


def _route(scope: MutableMapping[str, Any]) -> str:
    """The template, not the path: a path may be anything."""
    return str(getattr(scope.get("route"), "path", UNROUTED))


def _method(scope: MutableMapping[str, Any]) -> str:
    method = str(scope["method"])
    return method if method in _METHODS else "other"
