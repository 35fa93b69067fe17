"""A clock that only moves when a test turns it."""

from __future__ import annotations

import asyncio


class ManualClock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._turned = asyncio.Event()

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Turn the clock on, or back with a negative number."""
        self._now += seconds
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        while not nudge.is_set() and (until is None or self._now < until):
            waits = [
                asyncio.ensure_future(nudge.wait()),
                asyncio.ensure_future(self._turned.wait()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()
                await asyncio.gather(*waits, return_exceptions=True)
