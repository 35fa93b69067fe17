"""Who wants what a tree of runs does: what each of its runs knows, taken together.

Read from the journal when a tree is first spoken to, and kept up with every commit after that. Of
a shared journal it is read anew where any run of the tree has moved on elsewhere.
Nothing is read or kept where four eyes are not asked for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from holdfast.core.run.four_eyes import refusal as refusal
from holdfast.core.run.four_eyes import wanting_now as wanting_now
from holdfast.core.run.state import RunState
from holdfast.journal.port import Journal, RunQuery
from holdfast.journal.shared import SharedJournal
from holdfast.runtime.actor import Actor
from holdfast.runtime.registry import ActorRegistry

MOST_TREES: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Tree:
    """Who wants what its runs do, and the version up to which each of them is known."""

    wanting: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)

    def note(self, state: RunState) -> None:
        self.wanting.update(state.wanting)
        self.versions[state.run_id] = max(state.version, self.versions.get(state.run_id, 0))


_UNKNOWN: Final = _Tree()


class FourEyes:
    def __init__(self, journal: Journal, actors: ActorRegistry, *, four_eyes: bool) -> None:
        self.enabled = four_eyes
        self._journal = journal
        self._shared = cast(SharedJournal, journal) if journal.shared else None
        self._actors = actors
        self._trees: OrderedDict[str, _Tree] = OrderedDict()
        self._reading: dict[str, _Tree] = {}
        self._one_at_a_time = asyncio.Lock()

    async def read(self, root_id: str) -> None:
        """Afterwards `of` knows the tree, until the next await."""
        if not self.enabled or not root_id:
            return
        if not await self._is_known(root_id):
            async with self._one_at_a_time:
                if not await self._is_known(root_id):
                    self._trees[root_id] = await self._found(root_id)
        self._trees.move_to_end(root_id)
        while len(self._trees) > MOST_TREES:
            self._trees.popitem(last=False)

    async def _is_known(self, root_id: str) -> bool:
        tree = self._trees.get(root_id)
        if tree is None or self._shared is None:
            return tree is not None
        stand = await self._shared.versions(list(tree.versions))
        unmoved = all(at <= tree.versions[run_id] for run_id, at in stand.items())
        return unmoved and self._trees.get(root_id) is tree

    async def _found(self, root_id: str) -> _Tree:
        """What the run and all runs below it know."""
        found = self._reading[root_id] = _Tree()
        run_ids = [root_id]
        try:
            for run_id in run_ids:
                found.note((await self._actor(run_id)).committed)
                query = RunQuery(parent_id=run_id)
                while rows := await self._journal.runs(query):
                    run_ids += [row.run_id for row in rows]
                    query = replace(query, before=rows[-1].run_id)
        finally:
            del self._reading[root_id]
        return found

    async def _actor(self, run_id: str) -> Actor:
        """One in memory may be behind a shared journal."""
        actor = self._actors.by_id.get(run_id)
        if actor is not None and self._shared is not None:
            stand = await self._shared.versions([run_id])
            if actor.committed.version < stand.get(run_id, 0):
                actor = None
        return actor or await self._actors.read(run_id)

    async def known(self, root_id: str) -> Mapping[str, str]:
        """Who wants what the tree does, for people to read."""
        await self.read(root_id)
        return self._trees.get(root_id, _UNKNOWN).wanting

    def note(self, state: RunState) -> None:
        """A run of the tree has gone on; a tree that is being read is told as well."""
        for trees in (self._trees, self._reading):
            if (tree := trees.get(state.root_id)) is not None:
                tree.note(state)

    def of(self, state: RunState) -> Mapping[str, str] | None:
        """None where four eyes are not asked for."""
        return self._trees.get(state.root_id, _UNKNOWN).wanting if self.enabled else None
