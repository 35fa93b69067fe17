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

from holdfast.errors import WrongSetting
from holdfast.server.auth.jwt import Oidc
from holdfast.settings.sources import Sources

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
    `trusted_proxies` are the networks of proxies whose word on a request's client, scheme and host
    is believed.
    `default_agent` answers a chat that names no agent. Runs that are done or cancelled are removed
    every day once that is longer ago than `keep_finished_days` (0: they are kept for ever), each
    written to a file in `keep_finished_export` before, if that is given.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
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


SAME: Final = (
    "port",
    "trusted_proxies",
    "four_eyes",
    "header_bytes",
    "header_count",
    "url_bytes",
    "header_seconds",
    "idle_seconds",
    "max_connections",
    "connections_per_address",
    "body_limit",
    "body_seconds",
    "json_depth",
    "json_values",
    "heartbeat",
    "stall_seconds",
    "session_hours",
    "secure_cookies",
    "default_agent",
    "keep_finished_days",
    "keep_finished_export",
)
"""What is called the same here and in the table of settings."""


def chosen(sources: Sources) -> ServerSettings:
    """As flags, the environment and the configuration file say; WrongSetting says what does not
    fit."""
    return ServerSettings(
        host=str(sources.value("host")).strip("[]"),
        allowed_hosts=sources.value("allow_host"),
        oidc=_oidc(sources),
        **{name: sources.value(name) for name in SAME},
    )


def _oidc(sources: Sources) -> Oidc | None:
    issuer, audience = sources.find("oidc_issuer"), sources.find("oidc_audience")
    if issuer.value is None and audience.value is None:
        return None
    if issuer.value is None or audience.value is None:
        given = audience if issuer.value is None else issuer
        raise WrongSetting("--oidc-issuer and --oidc-audience go together", given.source)
    try:
        return Oidc(
            issuer.value,
            audience.value,
            roles_claim=sources.value("oidc_roles_claim"),
            person_claim=sources.value("oidc_person_claim"),
        )
    except ValueError as error:
        raise WrongSetting(f"{issuer.source}: {error}", issuer.source) from None


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
