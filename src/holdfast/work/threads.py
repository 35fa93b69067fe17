"""Threads for calls that block.

asyncio's own pool has six of them on two cores, shared by all of a program: six calls that hang
would hold up every other, snapshots included. Python also waits for them before the process ends.
These are made when no other is idle, up to `most`, and are daemons: a process ends although one
hangs, and what it was at is in doubt, as after a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Condition, Thread
from typing import Any, Final

MOST: Final = 256
IDLE_SECONDS: Final = 10.0


class Threads:
    def __init__(self, most: int = MOST, idle_seconds: float = IDLE_SECONDS) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = Condition()
        self._made = 0
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Have a thread do it, as soon as there is one; it must not raise."""
        with self._changed:
            if self._idle <= len(self._jobs) and self._made < self._most:
                Thread(target=self._serve, name="holdfast-call", daemon=True).start()
                self._made += 1
            self._jobs.append(job)
            self._changed.notify()

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            job()
            del job  # or it would be kept until the next one comes

    def _next(self) -> Callable[[], None] | None:
        """None when there has been nothing to do for a while."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._jobs, self._idle_seconds)
            self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._made -= 1
            return None


POOL = Threads()


async def in_own_thread(function: Callable[..., Any], /, *given: Any, **taken: Any) -> Any:
    """As `asyncio.to_thread`, with these threads: one that is not waited for any more does not
    begin, or goes on by itself."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    work = partial(copy_context().run, function, *given, **taken)
    POOL.submit(partial(_work, work, future, loop))
    return await future


def _work(
    work: Callable[[], Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop
) -> None:
    if future.cancelled():
        return
    settle: Callable[[], None]
    try:
        settle = partial(future.set_result, work())
    except BaseException as error:
        settle = partial(future.set_exception, error)
    with suppress(RuntimeError):  # the loop is closed: nothing waits
        loop.call_soon_threadsafe(_unless_done, future, settle)


def _unless_done(future: asyncio.Future[Any], settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
