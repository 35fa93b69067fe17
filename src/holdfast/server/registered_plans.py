"""Plans that were registered over HTTP: kept with their source, and there again after a restart.

A plan may also come from the application's own files. Of two with the same id the newer one
counts: a registration says which plan of the application it took the place of, and when the
application brings another one, that file was changed since and wins.

Where other servers share the store, each registration leaves a mark there, and who finds another
mark than before reads the plans again (`refresh`): when told that plans have changed, each second,
before a plan is started, and where one is not found.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from holdfast.app import Holdfast
from holdfast.core.storing import plan_digest
from holdfast.errors import PlanRejected
from holdfast.language.strict import canonical_json
from holdfast.model.plan import Plan
from holdfast.model.rows import Attached, AuditRecord
from holdfast.plans.registering import KIND, MARK, kept_plan, new_mark
from holdfast.runtime.audit import attach_claimed
from holdfast.runtime.identity import Identity, current
from holdfast.runtime.offload import aside
from holdfast.runtime.registry import CompiledPlan, compiled
from holdfast.server.auth.principal import agent, plan
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan

log = logging.getLogger("holdfast")

FILE: Final = "<registered>"

Sight: TypeAlias = Callable[[str], bool]
"""Whether a caller may see a plan or agent, by its subject."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the plan that new runs use has come from."""

    registered: bool = False
    digest: str = ""
    by: str | None = None
    at: float | None = None
    source: str | None = None


FROM_APPLICATION: Final = Origin()


class RegisteredPlans:
    def __init__(self, app: Holdfast) -> None:
        self._app = app
        self._own: dict[str, str] = {}
        self._origins: dict[str, Origin] = {}
        self._read: dict[str, tuple[str, float]] = {}
        """What was read of each plan: its digest, and when it was registered."""
        self._mark: str | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self.changes = 0
        """How often something was taken over from the store."""
        self._registering = asyncio.Lock()
        self._checking = asyncio.Lock()

    async def open(self) -> None:
        """Bring back what was registered; what no longer checks is said and left out."""
        library = self._app.engine.definitions
        self._own = {one: library.current(one).digest for one in library.plan_ids()}
        self._mark = await self._marked()
        await self._read_all()
        follower = self._app.engine.follower
        if follower is not None and self.refresh not in follower.sweeps:
            follower.when_plans_change.append(self._refresh_soon)
            follower.sweeps.append(self.refresh)

    async def refresh(self) -> None:
        """Take over what other servers have registered. It costs one look at the store, and nothing
        where that is not shared."""
        if not self._app.engine.store.shared:
            return
        async with self._registering:
            mark = await self._marked()
            if mark != self._mark:
                await self._read_all()
                self._mark = mark

    async def _marked(self) -> str | None:
        store, now = self._app.engine.store, self._app.engine.clock.now()
        kept = await store.kept(*MARK, now) if store.shared else None
        return None if kept is None else kept.body

    def _refresh_soon(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self.refresh(), context=Context())
            self._refreshing.add_done_callback(_heard)

    async def _read_all(self) -> None:
        waiting = await self._app.engine.store.all_kept(KIND, self._app.engine.clock.now())
        bodies = {kept.key: json.loads(kept.body) for kept in waiting}
        for plan_id, body in bodies.items():
            told = body["digest"], body["at"]
            if self._read.get(plan_id) != told:
                # One plan may run another: the first must find the names of the rest.
                await self._bring_back(plan_id, body, list(bodies))
                self._read[plan_id] = told
                self.changes += 1

    async def _bring_back(self, plan_id: str, body: dict[str, Any], names: list[str]) -> None:
        if self._own.get(plan_id) != body["instead_of"]:
            log.info("plan %s: the application's own is newer than the registered one", plan_id)
            return
        try:
            plan = await aside(load_plan, body["source"], FILE, self._app.catalog(also=names))
        except PlanRejected as rejected:
            log.warning("the registered plan %s is left out: %s", plan_id, rejected)
            return
        self._app.add_plan(plan)
        origin = Origin(True, plan_digest(plan), body["by"], body["at"], body["source"])
        self._app.engine.definitions.credit(origin.digest, body.get("authors", [body["by"]]))
        self._origins[plan_id] = origin

    async def check(self, source: str, sees: Sight) -> Plan:
        """The plan, or PlanRejected with every mistake; nothing changes.

        Plans and agents that its author does not see are none, also where a name is nearly
        theirs. A long one takes its time: one at once, and beside the event loop.
        """
        async with self._checking:
            catalog = _seen(self._app.catalog(), sees)
            return await aside(load_plan, source, FILE, catalog)

    async def register(self, source: str, sees: Sight, *, by: str) -> Plan:
        """New runs of its id use this plan from now on."""
        await self.refresh()
        async with self._registering:
            plan = await self.check(source, sees)
            made = await aside(compiled, plan)
            now = self._app.engine.clock.now()
            origin = Origin(True, made.digest, by, now, source)
            await self._commit(made, origin, by)
            self._app.engine.definitions.adopt(made)
            self._origins[plan.plan_id] = origin
            self._read[plan.plan_id] = made.digest, now
        if self._app.engine.outbox is not None:
            self._app.engine.outbox.plans_changed()
        return plan

    async def _commit(self, made: CompiledPlan, origin: Origin, by: str) -> None:
        assert origin.at is not None
        await self._app.engine.definitions.keep(made, origin.at)
        plan_id = made.plan.plan_id
        kept = [
            kept_plan(
                plan_id,
                made.digest,
                origin.source or "",
                by=by,
                authors=self._app.engine.definitions.credit(made.digest, [by]),
                at=origin.at,
                instead_of=self._own.get(plan_id),
            )
        ]
        if self._app.engine.store.shared:
            kept.append(new_mark())
        acting = current()
        audit = () if acting is None else (_record(acting, made, origin.at),)
        await attach_claimed(self._app.engine.store, Attached(audit, kept), origin.at)

    def origin(self, plan_id: str) -> Origin:
        """An application may bring another plan of that id at any time."""
        origin = self._origins.get(plan_id, FROM_APPLICATION)
        current = self._app.engine.definitions.current(plan_id).digest
        return origin if origin.digest == current else FROM_APPLICATION


def _heard(refreshing: asyncio.Task[None]) -> None:
    if not refreshing.cancelled() and (error := refreshing.exception()) is not None:
        log.info("registered plans are read again in a moment: %s", error)


def _seen(catalog: Catalog, sees: Sight) -> Catalog:
    agents, plans = catalog.agents or (), catalog.plans or ()
    return replace(
        catalog,
        agents=frozenset(one for one in agents if sees(agent(one))),
        plans=frozenset(one for one in plans if sees(plan(one))),
    )


def _record(acting: Identity, plan: CompiledPlan, now: float) -> AuditRecord:
    detail = canonical_json({"digest": plan.digest, "via": acting.via})
    return AuditRecord(
        now, acting.who, "registered", plan.plan.plan_id, origin=acting.origin, detail=detail
    )
