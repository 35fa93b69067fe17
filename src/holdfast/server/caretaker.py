"""The caretaker: gives back the space of removed runs, and removes old ones every day.

Both go on a little at a time beside the runs. What an earlier process left half done is gone on
with at the start.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from holdfast.app import Holdfast
from holdfast.errors import HoldfastError
from holdfast.runtime.identity import Identity, acting
from holdfast.server.settings import ServerSettings
from holdfast.views.housekeeping import DAY, RETENTION, Finished, Why, roots_of, sweep

log = logging.getLogger("holdfast")

WHO = "retention"
"""Under which name the audit has what is removed every day."""


class Caretaker:
    def __init__(self, app: Holdfast, settings: ServerSettings) -> None:
        self._app = app
        self._days = settings.keep_finished_days
        self._export = settings.keep_finished_export
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if hasattr(self._app.journal, "reclaim"):
            self._task = asyncio.create_task(self._serve(), context=Context())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def nudge(self) -> None:
        """Runs were removed."""
        self._wanted.set()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        next_sweep = loop.time() if self._days else float("inf")
        self._wanted.set()
        while True:
            try:
                if loop.time() >= next_sweep:
                    next_sweep = loop.time() + DAY
                    await self.sweep()
                await self._app.engine.housekeeper.reclaim()
            except (HoldfastError, OSError) as error:
                log.warning("old runs stay for now: %s", error)
            except Exception:
                log.exception("the caretaker could not look after old runs")
            self._wanted.clear()
            wait = None if next_sweep == float("inf") else max(next_sweep - loop.time(), 0.0)
            try:
                async with asyncio.timeout(wait):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def sweep(self) -> None:
        """Remove what ended longer ago than it is kept."""
        keeper, now = self._app.engine.housekeeper, self._app.engine.clock.now()
        found = await roots_of(keeper, Finished(now - self._days * DAY))
        if not found:
            return
        why = Why(RETENTION, detail={"older_than_days": self._days})
        with acting(Identity(WHO, "server")):
            if self._export is None:
                swept = await sweep(keeper, found, why)
            else:
                with await asyncio.to_thread(_opened, self._export) as export:
                    swept = await sweep(keeper, found, why, export)
        log.info("retention has removed %d runs", swept.runs)


def _opened(directory: Path) -> IO[str]:
    """A file of this day, which is added to."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = directory / f"removed-{datetime.now(UTC):%Y-%m-%d}.jsonl"
    made = file.open("a", encoding="utf-8", newline="\n")
    file.chmod(0o600)
    return made
