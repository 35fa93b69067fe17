"""Adaptive commit: where a write is committed depends on who else is writing, and on the disk.

A lone write with an idle writer commits right here on the event loop: at a few
hundred microseconds per commit a hop to a thread and back would cost a quarter
more. As soon as writes come in company they are gathered for one turn of the loop
and share one transaction.

Where the disk is quick that transaction too is committed on the loop. A thread needs
the interpreter after every statement, and beside a loop that always has something to do
each of these hand-overs takes as long as the interpreter's switch interval. Where the
disk is slow the thread is worth its price: it takes everything that is queued into one
transaction and answers the loop once per batch.

A commit that was slow on the loop was slow. One that was slow in the thread may have
waited for the interpreter, and one that was quick there was quick: so commits return to
the loop after a quick one, and else after a number of batches that doubles each time the
loop finds the disk slow again.

The loop never waits for the thread: while the thread has anything in hand (`_away`),
writes queue behind it, in order. After a lone commit the writer yields once, and
whoever writes before it is resumed is company. So is everyone while batches hold more
than one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

from holdfast.errors import HoldfastError, JournalUnavailable
from holdfast.journal.committer import Committer, Outcome
from holdfast.journal.database import Connection

BATCH = 256
SLOW_SECONDS = 0.005
SLOW_WRITE_SECONDS = 0.0002
FIRST_AWAY = 4
LONGEST_AWAY = 256
"""A commit was slow when it took longer than `SLOW_SECONDS`, or than `SLOW_WRITE_SECONDS` for
each of its writes, whichever is more. Then so many batches are left to the thread."""

T = TypeVar("T")
_Entry: TypeAlias = tuple[Callable[[Connection], Any], asyncio.Future[Any]]


class Writer:
    """Takes writes on the event loop; everything but `_serve` runs there."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[list[_Entry]] = SimpleQueue()
        self._gathered: list[_Entry] = []
        self._must_not_block = False
        self._away = 0
        self._batches_away = 0
        self._next_away = FIRST_AWAY
        self._crowded = False
        self._committing_here = False
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = Thread(target=self._serve, name="holdfast-journal", daemon=True)
        self._thread.start()

    def write(self, job: Callable[[Connection], T], *, may_block: bool = True) -> Awaitable[T]:
        """Commit a job durably; what it returned. `may_block` permits the loop itself."""
        refusal = self._refusal() if self._stopping or self._committer.trouble else None
        if refusal is None and may_block and not self._crowded and self._alone():
            return self._write_here(job)
        future: asyncio.Future[T] = self._loop.create_future()
        if refusal is not None:
            future.set_exception(refusal)
            return future
        self._must_not_block |= not may_block
        if not self._gathered:
            self._loop.call_soon(self._commit_gathered)
            self._idle.clear()
        self._gathered.append((job, future))
        return future

    def _refusal(self) -> HoldfastError | None:
        if self._stopping:
            return JournalUnavailable("the journal is closed: nothing was written")
        return self._committer.refusal()

    async def stop(self) -> None:
        """Finish what was accepted and end the thread."""
        self._stopping = True
        await self._idle.wait()
        self._queue.put([])
        await asyncio.to_thread(self._thread.join)

    def _alone(self) -> bool:
        return self._may_block() and not (self._gathered or self._committing_here)

    def _may_block(self) -> bool:
        return not (self._away or self._batches_away or self._committer.trouble)

    def _write_here(self, job: Callable[[Connection], T]) -> Awaitable[T]:
        """The others have a turn before the answer: whoever writes then is company."""
        self._committing_here = True
        [outcome] = self._committer.commit([job])
        self._note_pace_here(1)
        return _Answer(self, outcome)

    def answered(self) -> None:
        self._committing_here = False

    def _commit_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        must_not_block, self._must_not_block = self._must_not_block, False
        for start in range(0, len(gathered), BATCH):
            entries = gathered[start : start + BATCH]
            if must_not_block or not self._may_block():
                self._hand_over(entries)
            else:
                self._settle(entries, self._commit(entries))
                self._note_pace_here(len(entries))

    def _note_pace_here(self, writes: int) -> None:
        if self._was_quick(writes):
            self._next_away = FIRST_AWAY
        else:
            self._batches_away = self._next_away
            self._next_away = min(2 * self._next_away, LONGEST_AWAY)

    def _note_pace_away(self, writes: int) -> None:
        quick = self._was_quick(writes)
        self._batches_away = 0 if quick else max(self._batches_away - 1, 0)

    def _was_quick(self, writes: int) -> bool:
        return self._committer.commit_seconds <= max(SLOW_SECONDS, writes * SLOW_WRITE_SECONDS)

    def _hand_over(self, entries: list[_Entry]) -> None:
        self._away += len(entries)
        self._queue.put(entries)

    def _serve(self) -> None:
        while entries := self._next_batch():
            outcomes = self._commit(entries)
            try:
                self._loop.call_soon_threadsafe(self._return, entries, outcomes)
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

    def _return(self, entries: list[_Entry], outcomes: list[Outcome]) -> None:
        self._away -= len(entries)
        self._note_pace_away(len(entries))
        self._settle(entries, outcomes)

    def _settle(self, entries: list[_Entry], outcomes: list[Outcome]) -> None:
        self._crowded = len(entries) > 1
        self._committing_here = False
        if not (self._away or self._gathered):
            self._idle.set()
        for (_, future), (result, error) in zip(entries, outcomes, strict=True):
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)


class _Answer(Awaitable[T]):
    """What came of a write that was committed on the loop, one turn of the loop later."""

    __slots__ = ("_outcome", "_writer")

    def __init__(self, writer: Writer, outcome: Outcome) -> None:
        self._writer = writer
        self._outcome = outcome

    def __await__(self) -> Generator[None, None, T]:
        yield
        self._writer.answered()
        result, error = self._outcome
        if error is not None:
            raise error
        answer: T = result
        return answer
