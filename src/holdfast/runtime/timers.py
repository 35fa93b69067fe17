"""Durable timers: the journal knows when a run must be woken, this only waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from holdfast.errors import OperatorError
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
        woken: list[str] = []
        while True:
            try:
                self._nudge.clear()
                self._until = await self._journal.next_wake()
                if self._until is None or self._until > self._clock.now():
                    woken = []
                    await self._clock.wait(self._until, self._nudge)
                    continue
                due = await self._journal.due_runs(self._clock.now())
                if due == woken:
                    # Waking them changed nothing on disk: the journal is down, so be patient.
                    await asyncio.sleep(_RETRY_AFTER)
                woken = due
                for run_id in due:
                    await self._wake(run_id)
            except OperatorError as error:
                log.warning("timers wait for the journal: %s", error)
                await asyncio.sleep(_RETRY_AFTER)
