"""The clock, which tests replace by their own, and the timers of runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.errors import JournalUnavailable

log = logging.getLogger("holdfast")

LONGEST_NAP = 60.0


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        """Return when `until` has come (None: never), when `nudge` is set, or a little early."""


class SystemClock:
    now = staticmethod(time.time)

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        # A nap at most: the wall clock may be set while we wait.
        timeout = None if until is None else min(max(0.0, until - self.now()), LONGEST_NAP)
        try:
            async with asyncio.timeout(timeout):
                await nudge.wait()
        except TimeoutError:
            return


class ClockWatch:
    """Notices that the clock of this machine is set, by the one that nobody sets."""

    def __init__(self) -> None:
        self._apart = self._now()

    @staticmethod
    def _now() -> float:
        return time.time() - time.monotonic()

    @property
    def moved(self) -> float:
        """By how many seconds, since it was last taken as it is."""
        return abs(self._now() - self._apart)

    def accept(self) -> None:
        self._apart = self._now()


_RETRY_AFTER = 0.5
_LONGEST_RETRY = 600.0
_AT_ONCE = 100


class Wakes(Protocol):
    """Where the moments are found at which runs want to be woken."""

    async def due_runs(self, now: float, limit: int = 100) -> list[str]: ...

    async def next_wake(self, after: float | None = None) -> float | None: ...


class Timers:
    def __init__(
        self, journal: Wakes, clock: Clock, wake: Callable[[str], Awaitable[object]]
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._wake = wake
        self._nudge = asyncio.Event()
        self._until: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._failures: dict[str, int] = {}
        self._set_aside: set[str] = set()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def note(self, wake_at: float) -> None:
        """A run wants to be woken at `wake_at`, perhaps sooner than any other."""
        if self._until is None or wake_at < self._until:
            self._nudge.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except Exception as error:
                log.warning("timers try again in %g s: %s", _RETRY_AFTER, error)
                await asyncio.sleep(_RETRY_AFTER)

    async def _turn(self) -> None:
        self._nudge.clear()
        self._until, now = None, self._clock.now()
        found = await self._journal.due_runs(now, _AT_ONCE + len(self._set_aside))
        due = [run_id for run_id in found if run_id not in self._set_aside]
        if due:
            await self._wake_due(due)
            return
        self._until = await self._journal.next_wake(now)
        await self._clock.wait(self._until, self._nudge)

    async def _wake_due(self, run_ids: list[str]) -> None:
        """All at once, so that they share commits; one that cannot be woken holds no other up."""
        wakes = (self._wake(run_id) for run_id in run_ids)
        outcomes = await asyncio.gather(*wakes, return_exceptions=True)
        for run_id, outcome in zip(run_ids, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                self._failures.pop(run_id, None)
            elif not isinstance(outcome, JournalUnavailable):
                self._put_aside(run_id, outcome)
        for outcome in outcomes:
            if isinstance(outcome, JournalUnavailable):
                raise outcome

    def _put_aside(self, run_id: str, error: Exception) -> None:
        tries = self._failures.get(run_id, 0)
        if not tries:
            log.error("run %s is due and cannot be woken: %s", run_id, error, extra={"run": run_id})
        self._failures[run_id] = tries + 1
        self._set_aside.add(run_id)
        delay = min(_RETRY_AFTER * 2.0 ** min(tries, 20), _LONGEST_RETRY)
        asyncio.get_running_loop().call_later(delay, self._try_again, run_id)

    def _try_again(self, run_id: str) -> None:
        self._set_aside.discard(run_id)
        self._nudge.set()
