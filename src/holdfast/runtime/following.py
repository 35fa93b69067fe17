"""Follows what other processes append to a shared journal.

A hint says which runs have moved on; those that are followed or driven here are read anew. Every
second the journal is asked where they stand, so that a hint may be lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import aclosing
from typing import Final

from holdfast.errors import HoldfastError
from holdfast.journal.shared import SharedJournal
from holdfast.runtime.drives import Drives
from holdfast.runtime.hints import Hint, read_hint
from holdfast.runtime.hub import Hub
from holdfast.runtime.registry import ActorRegistry
from holdfast.runtime.turns import TurnLoop

log = logging.getLogger("holdfast")

SWEEP_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.5

Sweep = Callable[[], Awaitable[object]]


class Follower:
    def __init__(
        self,
        journal: SharedJournal,
        actors: ActorRegistry,
        turns: TurnLoop,
        drives: Drives,
        hub: Hub,
        ourselves: str,
    ) -> None:
        self._journal = journal
        self._actors = actors
        self._turns = turns
        self._drives = drives
        self._hub = hub
        self._ourselves = ourselves
        self._tasks: list[asyncio.Task[None]] = []
        self._seen: dict[str, int] = {}
        """Up to where the followers of runs that are not driven here have been told."""
        self.sweeps: list[Sweep] = []
        """What else is to be done each second."""
        self.when_plans_change: list[Callable[[], None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._listen()), loop.create_task(self._sweep_often())]

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            try:
                async with aclosing(self._journal.hints()) as hints:
                    async for text in hints:
                        hint = read_hint(text, self._ourselves)
                        if hint is not None:
                            await self.heed(hint)
            except Exception as error:
                log.warning("hints are listened for again in %g s: %s", RETRY_SECONDS, error)
            await asyncio.sleep(RETRY_SECONDS)

    async def heed(self, hint: Hint) -> None:
        """Read anew what the hint is about, as far as it matters here."""
        if hint.missed:
            await self.sweep()
            return
        for run_id, began, text in hint.said:
            self._hub.speak(run_id, began, text)
        if hint.plans:
            for changed in self.when_plans_change:
                changed()
        await self._hear_notices([one for one in hint.runs if "." in one])
        for run_id, version in hint.runs.items():
            if run_id in self._drives.driven or self._hub.follows(run_id, run_id in hint.turned):
                await self._look(run_id, version)
        self._hub.rouse()

    async def _look(self, run_id: str, version: int) -> None:
        actor = self._actors.by_id.get(run_id)
        if actor is not None and version > actor.committed.version:
            self._turns.renew(actor)
            return
        # One that is driven here tells its followers itself. Any other may have been read anew for
        # another reason, of which they have not heard.
        if run_id in self._drives.driven or self._seen.get(run_id, 0) >= version:
            return
        try:
            self._hub.renew((await self._turns.find(run_id)).committed)
        except HoldfastError as error:
            log.info("run %s is not read anew: %s", run_id, error, extra={"run": run_id})
            return
        self._seen[run_id] = version

    async def _hear_notices(self, below: Iterable[str]) -> None:
        """Runs below have moved on: what they have told those that are driven here."""
        parents = {one.rpartition(".")[0].rpartition(".")[0] for one in below}
        await self._deliver({one for one in parents if one in self._drives.driven})

    async def _deliver(self, run_ids: Collection[str]) -> None:
        if not run_ids:
            return
        for message in await self._journal.notices_for(list(run_ids)):
            self._turns.background.spawn(self._turns.deliver(message))

    async def _sweep_often(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for sweep in (self.sweep, *self.sweeps):
                try:
                    await sweep()
                except HoldfastError as error:
                    log.info("%s", error)
                except Exception:
                    log.exception("a sweep failed")

    async def seal(self) -> None:
        """A sweep for servers: who reads the order of commits or the audit finds little to seal."""
        await self._journal.seal(wait=False)

    async def sweep(self) -> None:
        """Ask where everything stands that matters here."""
        driven = self._drives.driven
        watched = {*driven, *self._hub.followed()}
        self._seen = {one: at for one, at in self._seen.items() if one in watched}
        if watched:
            for run_id, version in (await self._journal.versions(list(watched))).items():
                await self._look(run_id, version)
        await self._deliver(driven)
        self._hub.rouse()
