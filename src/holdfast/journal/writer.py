"""Adaptive commit: where a write is committed depends on who else is writing.

A lone write with an idle writer commits right here on the event loop: at a few
hundred microseconds per commit a hop to a thread and back would cost a quarter
more. As soon as writes come in company they are gathered for one turn of the loop
and handed to a thread, which takes everything that is queued into one transaction
and answers the loop once per batch.

The loop never waits for the thread: while the thread has anything in hand
(`_pending`), writes queue behind it, in order. After a lone commit the writer
yields once, and whoever writes before it is resumed is company. So is everyone
while batches hold more than one write, and while the disk is slow: blocking the
loop is worth it only where a commit is quick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from holdfast.errors import JournalUnavailable
from holdfast.journal.committer import Committer, Outcome
from holdfast.journal.database import Connection

BATCH = 256
SLOW_SECONDS = 0.005

T = TypeVar("T")
_Entry: TypeAlias = tuple[Callable[[Connection], Any], asyncio.Future[Any]]


class Writer:
    """Takes writes on the event loop; everything but `_serve` runs there."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[list[_Entry]] = SimpleQueue()
        self._gathered: list[_Entry] = []
        self._pending = 0
        self._crowded = False
        self._committing_here = False
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = Thread(target=self._serve, name="holdfast-journal", daemon=True)
        self._thread.start()

    async def write(self, job: Callable[[Connection], T], *, may_block: bool = True) -> T:
        """Commit a job durably; what it returned. `may_block` permits the loop itself."""
        if self._stopping:
            raise JournalUnavailable("the journal is closed: nothing was written")
        if (refusal := self._committer.refusal()) is not None:
            raise refusal
        if may_block and self._alone():
            return await self._write_here(job)
        return await self._write_in_company(job)

    async def stop(self) -> None:
        """Finish what was accepted and end the thread."""
        self._stopping = True
        await self._idle.wait()
        self._queue.put([])
        await asyncio.to_thread(self._thread.join)

    def _alone(self) -> bool:
        return not (
            self._pending
            or self._crowded
            or self._committing_here
            or self._committer.suspended
            or self._committer.commit_seconds > SLOW_SECONDS
        )

    async def _write_here(self, job: Callable[[Connection], T]) -> T:
        self._committing_here = True
        try:
            [outcome] = self._committer.commit([job])
            await asyncio.sleep(0)
        finally:
            self._committing_here = False
        result: T = _reveal(outcome)
        return result

    async def _write_in_company(self, job: Callable[[Connection], T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((job, future))
        self._pending += 1
        self._idle.clear()
        return await future

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        for start in range(0, len(gathered), BATCH):
            self._queue.put(gathered[start : start + BATCH])

    def _serve(self) -> None:
        while entries := self._next_batch():
            outcomes = self._commit(entries)
            try:
                self._loop.call_soon_threadsafe(self._settle, entries, outcomes)
            except RuntimeError:  # the loop was closed before the journal: nobody waits
                return

    def _next_batch(self) -> list[_Entry]:
        entries = self._queue.get()
        while entries and len(entries) < BATCH:
            try:
                more = self._queue.get_nowait()
            except Empty:
                break
            entries += more
        return entries

    def _commit(self, entries: list[_Entry]) -> list[Outcome]:
        try:
            return self._committer.commit([job for job, _ in entries])
        except Exception as error:
            return [(None, error)] * len(entries)

    def _settle(self, entries: list[_Entry], outcomes: list[Outcome]) -> None:
        self._crowded = len(entries) > 1
        self._pending -= len(entries)
        if not self._pending:
            self._idle.set()
        for (_, future), (result, error) in zip(entries, outcomes, strict=True):
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


def _reveal(outcome: Outcome) -> Any:
    result, error = outcome
    if error is not None:
        raise error
    return result
