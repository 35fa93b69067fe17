"""The plans that this process knows: by id for new runs, by digest for old ones.

A run is pinned to the digest in its first event, and bodies are stored by
content, so editing a plan affects new runs only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from holdfast.core.language.strict import canonical_json
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.source.planjson import plan_digest, plan_from_json, plan_to_json
from holdfast.errors import JournalDamaged, NotFound
from holdfast.journal.port import Journal, StoredDefinition
from holdfast.model.plan import Plan


class PlanLibrary:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._current: dict[str, CompiledPlan] = {}
        self._by_digest: dict[str, CompiledPlan] = {}
        self._stored: set[str] = set()

    def add(self, plan: Plan) -> CompiledPlan:
        """Make `plan` the one that new runs of its id use."""
        compiled = CompiledPlan(plan, plan_digest(plan))
        compiled = self._by_digest.setdefault(compiled.digest, compiled)
        compiled.prepare()
        self._current[plan.plan_id] = compiled
        return compiled

    def plan_ids(self) -> Iterable[str]:
        return self._current.keys()

    def current(self, plan_id: str) -> CompiledPlan:
        try:
            return self._current[plan_id]
        except KeyError:
            known = ", ".join(sorted(self._current)) or "none is loaded"
            raise NotFound(f"there is no plan {plan_id!r} (known: {known})") from None

    async def keep(self, plan: CompiledPlan, now: float) -> None:
        """Store the body before the first run names its digest."""
        if plan.digest in self._stored:
            return
        body = canonical_json(plan_to_json(plan.plan))
        definition = StoredDefinition(plan.digest, "plan", plan.plan.plan_id, body, now)
        await self._journal.store_definition(definition)
        self._stored.add(plan.digest)

    async def by_digest(self, digest: str) -> CompiledPlan:
        known = self._by_digest.get(digest)
        if known is None:
            stored = await self._journal.definition(digest)
            if stored is None:
                raise JournalDamaged(f"the plan with digest {digest} is not in the journal")
            known = CompiledPlan(plan_from_json(json.loads(stored.body)), digest)
            self._by_digest[digest] = known
        return known
