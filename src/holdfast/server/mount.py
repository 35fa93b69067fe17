"""Where this server lives: what stands before every address of ours.

At the root of a host that is nothing. Mounted into another application, or behind a proxy that
takes a prefix away (`uvicorn --root-path /holdfast`), it is what ASGI calls the root path.
Whatever leads a browser somewhere, a link, a redirect, a cookie's path, begins with it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.requests import Request

CONSOLE: Final = "/console"


def root_of(request: Request) -> str:
    """As it stands in an address, without a slash at its end."""
    return _written(request.scope.get("root_path", ""))


def root_of_console(request: Request) -> str:
    """The same, for a request that the console serves: it is mounted itself."""
    return _written(request.scope.get("root_path", "").removesuffix(CONSOLE))


def address_of(request: Request) -> str:
    """The server's own address as the browser has it."""
    return f"{request.url.scheme}://{request.url.netloc}{root_of(request)}"


def has_console(request: Request) -> bool:
    return any(getattr(route, "path", "") == CONSOLE for route in request.app.routes)


def cookie_path(root: str) -> str:
    """A neighbour on the same host neither gets our cookies nor has to know of them."""
    return root or "/"


def _written(path: str) -> str:
    return quote(path.rstrip("/"))
