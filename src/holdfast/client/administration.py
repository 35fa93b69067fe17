"""What the installation has: agents, tools, tokens and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.client.resource import Answer, Resource, answered
from holdfast.client.transport import path_of


class Agents(Resource):
    async def list(self) -> Answer:
        return answered(await self._transport.get("/agents"))

    async def get(self, agent_id: str) -> Answer:
        return answered(await self._transport.get(path_of("agents", agent_id)))


class Tools(Resource):
    async def list(self) -> Answer:
        return answered(await self._transport.get("/tools"))

    async def get(self, name: str) -> Answer:
        return answered(await self._transport.get(path_of("tools", name)))


class Tokens(Resource):
    async def list(self) -> Answer:
        return answered(await self._transport.get("/tokens"))

    async def issue(
        self,
        name: str,
        *,
        roles: Sequence[str] = (),
        grants: Mapping[str, Sequence[str]] | None = None,
        kind: str = "person",
        expires_in_days: float | None = 90.0,
    ) -> Answer:
        """A new token; its secret is in this answer and never again. None never expires."""
        body = _wanted(name, roles, grants)
        body |= {"kind": kind, "expires_in_days": expires_in_days}
        return answered(await self._transport.post("/tokens", body))

    async def issue_link(
        self,
        name: str,
        *,
        roles: Sequence[str] = (),
        grants: Mapping[str, Sequence[str]] | None = None,
    ) -> Answer:
        """A link that signs one person in, once."""
        return answered(await self._transport.post("/tokens/link", _wanted(name, roles, grants)))

    async def revoke(self, token_id: str) -> None:
        await self._transport.delete(path_of("tokens", token_id))


class Audit(Resource):
    async def list(self, *, after: int | None = None, limit: int | None = None) -> Answer:
        return answered(await self._transport.get("/audit", after=after, limit=limit))

    async def verify(self) -> Answer:
        return answered(await self._transport.get("/audit/verify"))


class Housekeeping(Resource):
    async def finished(
        self,
        older_than_days: float,
        *,
        name: str | None = None,
        status: Sequence[str] = (),
        before: str | None = None,
    ) -> Answer:
        """A page of root runs that ended so long ago."""
        found = await self._transport.get(
            "/housekeeping/finished",
            older_than_days=older_than_days,
            name=name,
            status=[*status] or None,
            before=before,
        )
        return answered(found)

    async def of_person(self, name: str, *, before: str | None = None) -> Answer:
        """A page of root runs in which a person acted."""
        path = "/housekeeping/of-person"
        return answered(await self._transport.get(path, name=name, before=before))

    async def export(self, run_id: str) -> str:
        """A root run and all below it, as JSON Lines."""
        return await self._transport.text(path_of("housekeeping", "export", run_id))

    async def remove(
        self, roots: Sequence[str], *, digest: str | None = None, person: str | None = None
    ) -> Answer:
        """Remove finished runs for ever, at most 20 at once."""
        body = {"roots": [*roots], "digest": digest, "person": person}
        return answered(await self._transport.post("/housekeeping/removals", body))


def _wanted(name: str, roles: Sequence[str], grants: Mapping[str, Sequence[str]] | None) -> Answer:
    granted = {key: [*held] for key, held in (grants or {}).items()}
    return {"name": name, "roles": [*roles], "grants": granted}
