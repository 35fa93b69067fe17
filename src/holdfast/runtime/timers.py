"""Durable timers: the journal knows when a run must be woken, this only waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.journal.port import Journal
from holdfast.runtime.clock import Clock

log = logging.getLogger("holdfast")

_RETRY_AFTER = 0.5


class Timers:
    def __init__(
        self, journal: Journal, clock: Clock, wake: Callable[[str], Awaitable[None]]
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._wake = wake
        self._nudge = asyncio.Event()
        self._until: float | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def note(self, wake_at: float | None) -> None:
        """A run wants to be woken at `wake_at`, perhaps sooner than any other."""
        if wake_at is not None and (self._until is None or wake_at < self._until):
            self._nudge.set()

    async def _run(self) -> None:
        while True:
            try:
                self._nudge.clear()
                self._until = await self._journal.next_wake()
                if self._until is None or self._until > self._clock.now():
                    await self._clock.wait(self._until, self._nudge)
                    continue
                await self._wake_due(await self._journal.due_runs(self._clock.now()))
            except Exception as error:
                log.warning("timers try again in %g s: %s", _RETRY_AFTER, error)
                await asyncio.sleep(_RETRY_AFTER)

    async def _wake_due(self, run_ids: list[str]) -> None:
        """All at once, so that they share commits; one that cannot be woken holds nobody up."""
        wakes = (self._wake(run_id) for run_id in run_ids)
        for outcome in await asyncio.gather(*wakes, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
