"""The plans and agents that this process knows: by id for new runs, by digest for old ones.

A run is pinned to the digest in its first event, and bodies are stored by
content, so editing a plan or an agent affects new runs only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TypeVar

from holdfast.core.agent.state import AgentDefinition as AgentDefinition
from holdfast.core.plan.compiled import CompiledPlan as CompiledPlan
from holdfast.errors import JournalDamaged, NotFound
from holdfast.i18n.message import msg, term
from holdfast.journal import codec
from holdfast.journal.port import Journal, StoredDefinition
from holdfast.language.spelling import nearest
from holdfast.language.strict import canonical_json
from holdfast.model import events as e
from holdfast.model.agent import Agent
from holdfast.model.plan import Plan
from holdfast.runtime.collector import COLLECTOR
from holdfast.runtime.machines import Definition, definition_from, kind_and_body
from holdfast.source.agentjson import agent_digest
from holdfast.source.planjson import plan_digest

D = TypeVar("D", bound=Definition)
_OF_MOST_PLANS = (
    e.RunStarted,
    e.ListenerStarted,
    e.ListenerSucceeded,
    e.QuestionOpened,
    e.QuestionAnswered,
    e.RunCompleted,
)


class DefinitionRegistry:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._plans: dict[str, CompiledPlan] = {}
        self._agents: dict[str, AgentDefinition] = {}
        self._by_digest: dict[str, Definition] = {}
        self._stored: set[str] = set()
        self._authors: dict[str, tuple[str, ...]] = {}

    def add(self, plan: Plan) -> CompiledPlan:
        """Make `plan` the one that new runs of its id use."""
        return self.adopt(compiled(plan))

    def adopt(self, plan: CompiledPlan) -> CompiledPlan:
        """As `add`, for a plan that was compiled beside the loop."""
        known = self._by_digest.setdefault(plan.digest, plan)
        assert isinstance(known, CompiledPlan)
        known.prepare()
        codec.prepare(_OF_MOST_PLANS)
        self._plans[plan.plan.plan_id] = known
        return known

    def credit(self, digest: str, people: Iterable[str]) -> tuple[str, ...]:
        """These people, too, registered the plan of that digest; all who did."""
        known = dict.fromkeys((*self._authors.get(digest, ()), *people))
        self._authors[digest] = tuple(known)
        return self._authors[digest]

    def authors(self, digest: str) -> tuple[str, ...]:
        return self._authors.get(digest, ())

    def add_agent(self, agent: Agent) -> AgentDefinition:
        """Make `agent` the one that new sessions of its id use."""
        definition = AgentDefinition(agent, agent_digest(agent))
        self._by_digest[definition.digest] = definition
        self._agents[agent.agent_id] = definition
        return definition

    def plan_ids(self) -> Iterable[str]:
        return self._plans.keys()

    def agent_ids(self) -> Iterable[str]:
        return self._agents.keys()

    def current(self, plan_id: str) -> CompiledPlan:
        return _named("plan", plan_id, self._plans)

    def agent(self, agent_id: str) -> AgentDefinition:
        return _named("agent", agent_id, self._agents)

    async def keep(self, definition: Definition, now: float) -> None:
        """Store the body before the first run names its digest."""
        if definition.digest in self._stored:
            return
        kind, name, body = kind_and_body(definition)
        stored = StoredDefinition(definition.digest, kind, name, canonical_json(body), now)
        await self._journal.store_definition(stored)
        self._stored.add(definition.digest)

    async def by_digest(self, digest: str) -> Definition:
        known = self._by_digest.get(digest)
        if known is None:
            stored = await self._journal.definition(digest)
            if stored is None:
                raise JournalDamaged(f"the definition with digest {digest} is not in the journal")
            if sha256(stored.body.encode()).hexdigest() != digest:
                raise JournalDamaged(f"the definition with digest {digest} has changed")
            known = definition_from(stored.kind, json.loads(stored.body), digest)
            self._by_digest[digest] = known
        return known


def compiled(plan: Plan) -> CompiledPlan:
    """A plan with all that can be known of it beforehand."""
    with COLLECTOR.paused():
        made = CompiledPlan(plan, plan_digest(plan))
        made.prepare()
    return made


def _named(kind: str, name: str, known: Mapping[str, D]) -> D:
    if name in known:
        return known[name]
    near = nearest(name, known)
    listed = (
        msg("did you mean {meant!r}?", meant=near)
        if near
        else msg("known: {names}", names=", ".join(sorted(known)) or "none")
    )
    raise NotFound(
        msg("there is no {kind} {name!r} ({hint})", kind=term(kind), name=name, hint=listed)
    )
