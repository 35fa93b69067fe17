"""Time, as the runtime sees it: a clock that can be replaced by one that tests turn."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        """Return when `until` has come (None: never) or when `nudge` is set."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        timeout = None if until is None else max(0.0, until - self.now())
        try:
            async with asyncio.timeout(timeout):
                await nudge.wait()
        except TimeoutError:
            return
