"""The runs in memory: one actor each, loaded when first spoken to, evicted when idle.

Between looking an actor up and using it there must be no await: it may be evicted
there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from holdfast.errors import JournalDamaged, NotFound
from holdfast.i18n.message import msg, term
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal
from holdfast.journal.snapshots import SCHEMA, load_state
from holdfast.model import commands as c
from holdfast.runtime.actor import Actor, Envelope
from holdfast.runtime.machines import blank, replay
from holdfast.runtime.registry import DefinitionRegistry

KEPT_IDLE = 256
"""How many idle runs stay in memory."""


class ActorRegistry:
    """`orphans` had another owner before; of the `doubtful` nobody knows what reached the
    disk, so they are loaded to be refreshed; the `damaged` could not be read."""

    def __init__(
        self, journal: Journal, library: DefinitionRegistry, refresh: Callable[[Actor], None]
    ) -> None:
        self._journal = journal
        self._library = library
        self._refresh = refresh
        self.by_id: dict[str, Actor] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()
        self._loading: dict[str, asyncio.Future[None]] = {}
        self.orphans: set[str] = set()
        self.doubtful: set[str] = set()
        self.damaged: set[str] = set()

    def holds(self, actor: Actor) -> bool:
        """Whether this is still the run's actor."""
        return self.by_id.get(actor.run_id) is actor

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
            raise NotFound(msg("there is no {kind} {name}", kind=term("run"), name=run_id))
        try:
            state = blank(run_id, await self._library.by_digest(row.definition))
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
        loading = self._loading.get(run_id)
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
        """Whatever else is said to a run, it first hears that its former owner is gone."""
        self.by_id[actor.run_id] = actor
        if actor.run_id in self.orphans:
            self.orphans.discard(actor.run_id)
            actor.mailbox.append(Envelope(c.Recover()))
        if actor.run_id in self.doubtful:
            self.doubtful.discard(actor.run_id)
            actor.stale = True
            loop = asyncio.get_running_loop()
            actor.retry = loop.call_soon(self._refresh, actor)
        self.rest(actor)
