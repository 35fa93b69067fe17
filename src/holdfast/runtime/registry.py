"""What this process knows: definitions by id and by digest, and the actors of its runs.

A run is pinned to the digest in its first event, and bodies are stored by content, so editing a
plan or an agent affects new runs only.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import TypeVar

from holdfast.core.agent.state import AgentDefinition as AgentDefinition
from holdfast.core.plan.compiled import CompiledPlan as CompiledPlan
from holdfast.core.run.state import RunState
from holdfast.core.storing import agent_digest, plan_digest
from holdfast.errors import JournalDamaged, JournalUnavailable, NotFound
from holdfast.i18n.message import msg, term
from holdfast.journal import codec
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Snapshot, StoredDefinition
from holdfast.journal.snapshots import SCHEMA, dump_state, load_state
from holdfast.language.spelling import nearest
from holdfast.language.strict import canonical_json
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.agent import Agent
from holdfast.model.plan import Plan
from holdfast.runtime.actor import Actor, Envelope
from holdfast.runtime.collector import COLLECTOR
from holdfast.runtime.machines import Definition, blank, definition_from, kind_and_body, replay

D = TypeVar("D", bound=Definition)
_OF_MOST_PLANS = (
    e.RunStarted,
    e.ListenerStarted,
    e.ListenerSucceeded,
    e.QuestionOpened,
    e.QuestionAnswered,
    e.RunCompleted,
)


class NotRead(Exception):
    """A version that has to be read from the journal first (`DefinitionRegistry.recall`)."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(digest)


class DefinitionRegistry:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._plans: dict[str, CompiledPlan] = {}
        self._agents: dict[str, AgentDefinition] = {}
        self._by_digest: dict[str, Definition] = {}
        self._stored: set[str] = set()
        self._absent: set[str] = set()
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

    def version(self, plan_id: str, digest: str) -> CompiledPlan:
        """A version of a plan, be it today's or not; NotRead before `recall` has looked for it."""
        known = self._by_digest.get(digest)
        if known is None and digest not in self._absent:
            raise NotRead(digest)
        if isinstance(known, CompiledPlan) and known.plan.plan_id == plan_id:
            return known
        self._absent.discard(digest)
        raise NotFound(msg("there is no version {version} of {plan}", version=digest, plan=plan_id))

    async def recall(self, digest: str) -> None:
        """Read a version, if it is there."""
        try:
            await self.by_digest(digest)
        except JournalDamaged:
            self._absent.add(digest)

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


def _no_run(run_id: str) -> NotFound:
    return NotFound(msg("there is no {kind} {name}", kind=term("run"), name=run_id))


log = logging.getLogger("holdfast")

KEPT_IDLE = 256
"""How many idle runs stay in memory."""


class ActorRegistry:
    """The runs in memory: one actor each, loaded at first use, evicted when idle.

    Between looking an actor up and using it there must be no await: it may be evicted there.
    `orphans` had another owner before. What reached the disk of the `doubtful` is unknown, so they
    are refreshed when they are loaded. The `damaged` could not be read.
    """

    def __init__(self, journal: Journal, definitions: DefinitionRegistry) -> None:
        self._journal = journal
        self._definitions = definitions
        self.by_id: dict[str, Actor] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        self._loading: dict[str, asyncio.Future[None]] = {}
        self.orphans: set[str] = set()
        self.doubtful: set[str] = set()
        self.damaged: set[str] = set()
        self._leaving: dict[str, asyncio.Future[None]] = {}

    @contextmanager
    def set_aside(self, run_ids: Collection[str]) -> Iterator[set[str]]:
        """Those of these runs that are in use. The others are in no memory meanwhile: who wants one
        waits until this ends, and finds then what is there."""
        busy = {one for one in run_ids if self._is_in_use(one)}
        aside = [one for one in run_ids if one not in busy]
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for run_id in aside:
            self.by_id.pop(run_id, None)
            self._idle.pop(run_id, None)
            self._leaving[run_id] = over
        try:
            yield busy
        finally:
            for run_id in aside:
                del self._leaving[run_id]
            over.set_result(None)

    def _is_in_use(self, run_id: str) -> bool:
        actor = self.by_id.get(run_id)
        elsewhere = (self._loading, self._leaving, self.orphans, self.doubtful)
        return (actor is not None and not actor.idle) or any(run_id in one for one in elsewhere)

    def holds(self, actor: Actor) -> bool:
        """Whether this is still the run's actor."""
        return self.by_id.get(actor.run_id) is actor

    def knows(self, run_id: str) -> bool:
        """Whether it is in memory, or about to be: what is found then may be older than this."""
        return run_id in self.by_id or run_id in self._loading

    def drop(self, actor: Actor) -> None:
        if self.holds(actor):
            del self.by_id[actor.run_id]

    def wake(self, actor: Actor) -> None:
        """It has something to do, and is not idle."""
        self._idle.pop(actor.run_id, None)

    async def find(self, run_id: str) -> Actor:
        """The run's only actor."""
        while (actor := self.by_id.get(run_id)) is None:
            await self._load(run_id)
        return actor

    async def read(self, run_id: str) -> Actor:
        """Replay the journal, from the newest snapshot on if there is one."""
        row = await self._journal.run(run_id)
        if row is None:
            raise _no_run(run_id)
        try:
            state = blank(run_id, await self._definitions.by_digest(row.definition))
            snapshot = await self._journal.snapshot(run_id, SCHEMA)
            if snapshot is not None:
                state = load_state(snapshot.payload, state)
            records = await self._journal.read(run_id, state.version)
            state = replay(state, ((record.at, decode(record)) for record in records))
        except JournalDamaged:
            self.damaged.add(run_id)
            raise
        self.damaged.discard(run_id)
        actor = Actor.of(state)
        actor.snapshot_size = len(snapshot.payload) if snapshot is not None else 0
        actor.bytes_since = sum(len(record.payload) for record in records)
        return actor

    async def catch_up(self, actor: Actor) -> RunState:
        """The run's state on disk, read from where it was last known to stand."""
        known = actor.committed
        if not known.version:
            return (await self.read(actor.run_id)).committed
        records = await self._journal.read(actor.run_id, known.version)
        if not records and self._journal.shared and not await self._journal.version(actor.run_id):
            raise _no_run(actor.run_id)  # it was removed
        actor.bytes_since += sum(len(record.payload) for record in records)
        return replay(known, ((record.at, decode(record)) for record in records))

    def rest(self, actor: Actor) -> None:
        """Evict what is idle beyond `KEPT_IDLE`."""
        if not actor.idle or not self.holds(actor):
            return
        if actor.committed.version == 0:
            self.drop(actor)
            return
        self._idle[actor.run_id] = None
        self._idle.move_to_end(actor.run_id)
        while len(self._idle) > KEPT_IDLE:
            run_id, _ = self._idle.popitem(last=False)
            idle = self.by_id.get(run_id)
            if idle is not None and idle.idle:
                del self.by_id[run_id]

    async def _load(self, run_id: str) -> None:
        loading = self._loading.get(run_id) or self._leaving.get(run_id)
        if loading is not None:
            await asyncio.wait((loading,))
            return
        self._loading[run_id] = loading = asyncio.get_running_loop().create_future()
        try:
            actor = await self.read(run_id)
            if run_id not in self.by_id:
                self._admit(actor)
        finally:
            del self._loading[run_id]
            loading.set_result(None)

    def _admit(self, actor: Actor) -> None:
        """An orphan's first command is `Recover`."""
        self.by_id[actor.run_id] = actor
        if actor.run_id in self.orphans:
            self.orphans.discard(actor.run_id)
            actor.mailbox.append(Envelope(c.Recover()))
        if actor.run_id in self.doubtful:
            actor.stale = True
        self.rest(actor)

    async def save_snapshot(self, actor: Actor) -> None:
        """Write the committed state, so that loading the run reads only its newer records."""
        state = actor.committed
        payload = await asyncio.to_thread(dump_state, state)
        actor.snapshot_size = len(payload)
        snapshot = Snapshot(actor.run_id, state.version, SCHEMA, payload)
        try:
            await self._journal.save_snapshot(snapshot)
        except JournalUnavailable as error:
            log.info("no snapshot of %s: %s", actor.run_id, error, extra=actor.logged)
