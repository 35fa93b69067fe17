"""Admission of reads: they leave runs their share of the event loop.

Reads and runs have one thread. Sixteen clients that ask again as soon as they are answered would
have sixteen reads between any two turns of a run. So reads queue and are admitted in order, a few
at once: as many as are likely to take `SLICE_SECONDS`. While runs are at work reads are admitted on
credit: it grows by `SHARE` of the time that passes, and what they take of the loop is taken off
it. Where no run has committed for `QUIET_SECONDS`, they follow each other at once.

What reads take is measured from their admission until they are answered or wait for something
else. A stream of events is admitted once. What changes something is never held up here, nor is
the question whether the server lives.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from holdfast.runtime.hub import Hub

SHARE: Final = 0.25
"""Of the loop's time, for reads while runs are at work."""

QUIET_SECONDS: Final = 0.05
SLICE_SECONDS: Final = 0.004
TICK_SECONDS: Final = 0.001
FIRST_GUESS: Final = 0.001


class Credit:
    """What reads may take of the loop, in seconds; never more than a slice, but any debt."""

    def __init__(self, now: float) -> None:
        self._left = SLICE_SECONDS
        self._at = now

    def missing(self, now: float) -> float:
        """How many seconds must pass before there is credit again."""
        self._left = min(SLICE_SECONDS, self._left + (now - self._at) * SHARE)
        self._at = now
        return max(-self._left / SHARE, 0.0)

    def spend(self, seconds: float) -> None:
        self._left -= seconds


class Admission:
    """The queue of reads; `clock` is one that only goes forward."""

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.perf_counter) -> None:
        self._hub = hub
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._credit = Credit(clock())
        self._mean = FIRST_GUESS
        self._admitting = False
        self._unwatch: Callable[[], None] | None = None
        self._committed_at = -QUIET_SECONDS

    async def turn(self) -> None:
        """Wait for one's turn to read."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._admitting:
            self._admitting = True
            loop.call_soon(self._admit)
        await turn

    def _admit(self) -> None:
        if not self._waiting:
            self._admitting = False
            return
        loop = asyncio.get_running_loop()
        now = self._clock()
        missing = self._credit.missing(now)
        if missing and self._runs_at_work(now):
            loop.call_later(min(max(missing, TICK_SECONDS), QUIET_SECONDS), self._admit)
            return
        self._watch_runs()
        group = [self._waiting.popleft() for _ in range(self._group_size())]
        # These follow each other within one turn of the loop, with nothing in between.
        loop.call_soon(self._begin)
        for one in group:
            if not one.done():
                one.set_result(None)
        loop.call_soon(self._charge, len(group))

    def _group_size(self) -> int:
        return max(1, min(len(self._waiting), int(SLICE_SECONDS / self._mean)))

    def _begin(self) -> None:
        self._began = self._clock()

    def _charge(self, count: int) -> None:
        now = self._clock()
        spent = now - self._began
        self._mean += (spent / count - self._mean) / 8
        if self._runs_at_work(now):
            self._credit.spend(spent)
        self._admit()

    def _runs_at_work(self, now: float) -> bool:
        return now - self._committed_at < QUIET_SECONDS

    def _watch_runs(self) -> None:
        """Until the next commit of any run, which is all that is asked."""
        if self._unwatch is None:
            self._unwatch = self._hub.watch_all(self._committed)

    def _committed(self) -> None:
        self._committed_at = self._clock()
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
