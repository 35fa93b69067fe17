"""Tokens and links: of the home itself while no process holds it, else of its server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from holdfast.cli.home_backend import os_user
from holdfast.cli.home_reader import journal_path
from holdfast.cli.shell import Settings
from holdfast.client import Client
from holdfast.runtime.clock import SystemClock
from holdfast.server.auth.credentials import Credential, listed
from holdfast.server.auth.principal import Kind
from holdfast.server.auth.tokens import Tokens
from holdfast.views import homes

DAY = 86_400.0

Shown = dict[str, Any]
"""A credential: `id`, `form`, `name`, `kind`, `roles`, `grants` and its times."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whom a credential is for, and what it allows."""

    name: str
    roles: Sequence[str]
    grants: Mapping[str, Sequence[str]]
    kind: Kind = "person"


class TokenStore(Protocol):
    async def create(self, wanted: Wanted, seconds: float | None) -> Shown:
        """What was made, with `token`, the secret itself."""

    async def link(self, wanted: Wanted) -> Shown:
        """What was made, with `link`, the address that signs in."""

    async def all(self) -> list[Shown]: ...

    async def revoke(self, token_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HomeTokens:
    tokens: Tokens
    clock: SystemClock

    async def create(self, wanted: Wanted, seconds: float | None) -> Shown:
        until = None if seconds is None else self.clock.now() + seconds
        name, roles, grants = wanted.name, wanted.roles, wanted.grants
        made, secret = await self.tokens.issue(
            name, wanted.kind, roles, grants, until, by=os_user(), origin="cli"
        )
        return {**shown(made), "token": secret}

    async def link(self, wanted: Wanted) -> Shown:
        name, roles, grants = wanted.name, wanted.roles, wanted.grants
        made, secret = await self.tokens.new_link(name, roles, grants, os_user(), "cli")
        return {**shown(made), "link": f"/login?token={secret}"}

    async def all(self) -> list[Shown]:
        return [shown(one) for one in await self.tokens.list()]

    async def revoke(self, token_id: str) -> None:
        await self.tokens.revoke(token_id, by=os_user(), origin="cli")


@dataclass(frozen=True, slots=True)
class ServerTokens:
    """That of a server, for one of its admins."""

    client: Client

    async def create(self, wanted: Wanted, seconds: float | None) -> Shown:
        days = None if seconds is None else seconds / DAY
        return await self.client.tokens.issue(**asdict(wanted), expires_in_days=days)

    async def link(self, wanted: Wanted) -> Shown:
        roles, grants = wanted.roles, wanted.grants
        made = await self.client.tokens.issue_link(wanted.name, roles=roles, grants=grants)
        del made["token"]
        return {**made, "link": made.pop("url")}

    async def all(self) -> list[Shown]:
        found: list[Shown] = (await self.client.tokens.list())["tokens"]
        return found

    async def revoke(self, token_id: str) -> None:
        await self.client.tokens.revoke(token_id)


def shown(one: Credential) -> Shown:
    return {
        "id": one.id,
        "form": one.form,
        "name": one.name,
        "kind": one.kind,
        "roles": sorted(one.roles),
        "grants": listed(one.grants),
        "created_at": one.created_at,
        "created_by": one.created_by,
        "expires_at": one.expires_at,
        "last_used_at": one.last_used_at,
    }


@asynccontextmanager
async def token_store(settings: Settings, *, to_write: bool = False) -> AsyncIterator[TokenStore]:
    if settings.server is not None:
        from holdfast.cli.server_backend import connected

        async with connected(settings.server) as client:
            yield ServerTokens(client)
        return
    clock = SystemClock()
    opening = (homes.writing if to_write else homes.reading)(journal_path(settings))
    async with opening as journal:
        yield HomeTokens(Tokens(journal, clock), clock)
