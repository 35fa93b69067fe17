"""How a server is set up: everything an operator may choose, with defaults that are safe.

`allowed_hosts` are the names by which the server may be addressed: `localhost`, `[::1]`,
`holdfast.example`, `*.example.com`, each with `:port` when only that port is meant. Left
empty they are the loopback names and the address that is bound, which is what keeps a
foreign page from reaching a local server under a name of its own (DNS rebinding).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from holdfast.server.auth.jwt import Oidc

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`four_eyes`: who wants a call does not approve it, and no call is approved beforehand; also
    asked for by `Holdfast(four_eyes=True)`.

    `header_bytes`, `header_count`, `url_bytes` and `header_seconds` are for a request's head,
    `idle_seconds` for a connection between two; of connections there are `max_connections`, and
    `connections_per_address` from one client (0: as many as come).
    `body_seconds` is for a request's whole body, `json_depth` for its nesting, `json_values` for
    how many values it holds: a megabyte of text is soon read, one of empty lists is not.
    `secure_cookies` says that people reach the server over TLS, its own or a proxy's.
    `default_agent` answers a chat that names no agent. Runs that are done or cancelled are removed
    every day once that is longer ago than `keep_finished_days` (0: they are kept for ever), each
    written to a file in `keep_finished_export` before, if that is given.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    allowed_hosts: tuple[str, ...] = ()
    four_eyes: bool = False
    oidc: Oidc | None = None
    header_bytes: int = 64 * 1024
    header_count: int = 100
    url_bytes: int = 8 * 1024
    header_seconds: float = 10.0
    idle_seconds: float = 5.0
    max_connections: int = 1000
    connections_per_address: int = 500
    body_limit: int = MEBIBYTE
    body_seconds: float = 30.0
    json_depth: int = 64
    json_values: int = 10_000
    heartbeat: float = 15.0
    stall_seconds: float = 30.0
    session_hours: float = 12.0
    secure_cookies: bool = False
    default_agent: str | None = None
    keep_finished_days: float = 0.0
    keep_finished_export: Path | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that are allowed, in the end."""
        return self.allowed_hosts or tuple(dict.fromkeys((*LOOPBACK, *_named(self.host))))

    @property
    def local_only(self) -> bool:
        """Only this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    bare = host.strip("[]").lower()
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost"


def _named(host: str) -> tuple[str, ...]:
    """An address that means "all of them" is no name for the server."""
    bare = host.strip("[]").lower()
    try:
        return () if ip_address(bare).is_unspecified else (bare,)
    except ValueError:
        return (bare,) if bare else ()
