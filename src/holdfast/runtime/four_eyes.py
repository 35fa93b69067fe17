"""Who wants what a tree of runs does: what each of its runs knows, taken together.

Read from the journal when a tree is first spoken to, and kept up with every commit after that.
Nothing is read or kept where four eyes are not asked for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from holdfast.core.run.four_eyes import refusal as refusal
from holdfast.core.run.four_eyes import wanting_now as wanting_now
from holdfast.core.run.state import RunState
from holdfast.journal.port import Journal, RunQuery
from holdfast.runtime.registry import ActorRegistry

MOST_TREES: Final = 1_000


class FourEyes:
    def __init__(self, journal: Journal, actors: ActorRegistry, *, four_eyes: bool) -> None:
        self.enabled = four_eyes
        self._journal = journal
        self._actors = actors
        self._trees: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._reading: dict[str, dict[str, str]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def read(self, root_id: str) -> None:
        """Afterwards `of` knows the tree, until the next await."""
        if not self.enabled or not root_id:
            return
        if root_id not in self._trees:
            async with self._one_at_a_time:
                if root_id not in self._trees:
                    self._trees[root_id] = await self._found(root_id)
        self._trees.move_to_end(root_id)
        while len(self._trees) > MOST_TREES:
            self._trees.popitem(last=False)

    async def _found(self, root_id: str) -> dict[str, str]:
        """What the run and all runs below it know."""
        found = self._reading[root_id] = {}
        run_ids = [root_id]
        try:
            for run_id in run_ids:
                resident = self._actors.by_id.get(run_id)
                actor = resident or await self._actors.read(run_id)
                found.update(actor.committed.wanting)
                query = RunQuery(parent_id=run_id)
                while rows := await self._journal.runs(query):
                    run_ids += [row.run_id for row in rows]
                    query = replace(query, before=rows[-1].run_id)
        finally:
            del self._reading[root_id]
        return found

    async def known(self, root_id: str) -> Mapping[str, str]:
        """Who wants what the tree does, for people to read."""
        await self.read(root_id)
        return self._trees.get(root_id, {})

    def note(self, state: RunState) -> None:
        """A run of the tree has gone on; a tree that is being read is told as well."""
        for trees in (self._trees, self._reading):
            if (known := trees.get(state.root_id)) is not None:
                known.update(state.wanting)

    def of(self, state: RunState) -> Mapping[str, str] | None:
        """None where four eyes are not asked for."""
        return self._trees.get(state.root_id, {}) if self.enabled else None
