"""Time, as the runtime sees it: a clock that can be replaced by one that tests turn."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

LONGEST_NAP = 60.0


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        """Return when `until` has come (None: never), when `nudge` is set, or a little early."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        # A nap at most: the wall clock may be set while we wait.
        timeout = None if until is None else min(max(0.0, until - self.now()), LONGEST_NAP)
        try:
            async with asyncio.timeout(timeout):
                await nudge.wait()
        except TimeoutError:
            return
