"""Adaptive commit: where a write is committed depends on who else is writing, and on the disk.

A lone write with an idle writer commits right here on the event loop: at a few
hundred microseconds per commit a hop to a thread and back would cost a quarter
more. As soon as writes come in company they are gathered for one turn of the loop
and share one transaction. It is committed first in the next turn, in which those who
wrote go on: a step of many runs takes one turn, and whatever else the loop does holds
them up once.

Where the disk is quick that transaction too is committed on the loop. Where it is slow a
thread waits for the disk, and does nothing else: the statements run on the loop. A thread
needs the interpreter after every statement, and beside a loop that always has something
to do each of these hand-overs takes as long as the interpreter's switch interval: a batch
of fifty runs took seconds. Only what may take long by itself (`may_block=False`: a
snapshot, a count of everything) runs in the thread as a whole, each alone, and so does
the batch that follows a failed commit, with its probe.

A commit that was slow on the loop was slow. One that was slow in the thread may have
waited for the interpreter, and one that was quick there was quick: so commits return to
the loop after a quick one, and else after a number of batches that doubles each time the
loop finds the disk slow again.

The loop never waits for the thread: while the thread has anything in hand (`_away`),
writes gather behind it, in order. After a lone commit the writer yields once, and
whoever writes before it is resumed is company. So is everyone while batches hold more
than one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import coroutine
from typing import Any, Final, TypeAlias, TypeVar, cast

from holdfast.errors import HoldfastError, JournalUnavailable
from holdfast.journal.committer import Committer, Outcome, Write
from holdfast.journal.database import Transaction
from holdfast.model.record import constructor

BATCH = 256
SLOW_SECONDS = 0.005
SLOW_WRITE_SECONDS = 0.0002
FIRST_AWAY = 4
LONGEST_AWAY = 256
"""A commit was slow when it took longer than `SLOW_SECONDS`, or than `SLOW_WRITE_SECONDS` for
each of its writes, whichever is more. Then so many batches are left to the thread."""

T = TypeVar("T")
Given = TypeVar("Given")


@dataclass(slots=True)
class Entry:
    """A write that is gathered, what came of it, and who waits for it longer than a turn."""

    write: Write
    may_block: bool
    outcome: Outcome | None = None
    waiting: asyncio.Future[None] | None = None


_entry: Final = constructor(Entry)
_Work: TypeAlias = Callable[[], list[Outcome]]


def _guarded(entries: list[Entry], work: _Work) -> list[Outcome]:
    try:
        return work()
    except Exception as error:
        return [(None, error)] * len(entries)


class Writer:
    """Takes writes on the event loop; everything but `_serve` runs there."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[list[Entry], _Work] | None] = SimpleQueue()
        self._gathered: list[Entry] = []
        self._away = False
        self._batches_away = 0
        self._next_away = FIRST_AWAY
        self._crowded = False
        self._committing_here = False
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = Thread(target=self._serve, name="holdfast-journal", daemon=True)
        self._thread.start()

    def write(
        self, job: Callable[[Transaction, Given], T], given: Given, *, may_block: bool = True
    ) -> Awaitable[T]:
        """Commit a job durably; what it returned. `may_block` permits the loop itself."""
        if may_block and not (
            self._crowded
            or self._gathered
            or self._committing_here
            or self._away
            or self._batches_away
            or self._stopping
            or self._committer.trouble
        ):
            self._committing_here = True
            [outcome] = self._committer.commit(((job, given),))
            if self._committer.commit_seconds > SLOW_SECONDS or self._next_away != FIRST_AWAY:
                self._note_pace_here(1)
            return self._answer(outcome)
        if (self._stopping or self._committer.trouble) and (refusal := self._refusal()):
            return self._answer((None, refusal))
        entry = _entry((job, given), may_block)
        if not self._gathered:
            self._loop.call_soon(self._commit_gathered)
            self._idle.clear()
        self._gathered.append(entry)
        return self._wait(entry)

    def _refusal(self) -> HoldfastError | None:
        if self._stopping:
            return JournalUnavailable("the journal is closed: nothing was written")
        return self._committer.refusal()

    async def stop(self) -> None:
        """Finish what was accepted, and end the thread; the committer is closed by it.

        Another loop may ask for it than the one that wrote. The thread that waits is no thread of
        the loop's own, in which tools may hang.
        """
        self._stopping = True
        await self._idle.wait()
        self._queue.put(None)
        with ThreadPoolExecutor(1) as waiting:
            await asyncio.get_running_loop().run_in_executor(waiting, self._thread.join)

    @coroutine
    def _answer(self, outcome: Outcome) -> Generator[Any, None, Any]:
        """The others have a turn before it: whoever writes then is company."""
        yield
        self._committing_here = False
        result, error = outcome
        if error is not None:
            raise error
        return result

    @coroutine
    def _wait(self, entry: Entry) -> Generator[Any, None, Any]:
        """What was gathered is committed before the next turn of those who wrote it, unless the
        thread does it."""
        yield
        if entry.outcome is None:
            entry.waiting = self._loop.create_future()
            yield from entry.waiting
        result, error = cast(Outcome, entry.outcome)
        if error is not None:
            raise error
        return result

    def _commit_gathered(self) -> None:
        try:
            while self._gathered and not self._away:
                self._commit_batch(self._next_batch())
        finally:
            if self._gathered and not self._away:  # it was interrupted
                self._loop.call_soon(self._commit_gathered)
            self._note_idle()

    def _commit_batch(self, entries: list[Entry]) -> None:
        committer, writes = self._committer, [entry.write for entry in entries]
        try:
            if committer.trouble or not entries[0].may_block:
                self._hand_over(entries, partial(committer.commit, writes))
            elif self._batches_away:
                outcomes = _guarded(entries, partial(committer.prepare, writes))
                self._hand_over(entries, partial(committer.finish, outcomes))
            else:
                outcomes = _guarded(entries, partial(committer.commit, writes))
                self._note_pace_here(len(entries))
                self._settle(entries, outcomes)
        except BaseException:  # at the terminal
            broken = JournalUnavailable("the write was interrupted: nobody knows what became of it")
            self._settle(entries, [(None, broken)] * len(entries))
            raise

    def _next_batch(self) -> list[Entry]:
        """What may be committed together; what must not block goes alone."""
        gathered = self._gathered
        most = min(len(gathered), BATCH)
        count = next((n for n in range(most) if not gathered[n].may_block), most) or 1
        self._gathered = gathered[count:]
        return gathered[:count]

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

    def _hand_over(self, entries: list[Entry], work: _Work) -> None:
        self._away = True
        self._queue.put((entries, work))

    def _serve(self) -> None:
        with suppress(RuntimeError):  # the loop was closed before the journal: nobody waits
            while (taken := self._queue.get()) is not None:
                entries, work = taken
                self._loop.call_soon_threadsafe(self._return, entries, _guarded(entries, work))
        self._committer.close()

    def _return(self, entries: list[Entry], outcomes: list[Outcome]) -> None:
        self._away = False
        self._note_pace_away(len(entries))
        self._settle(entries, outcomes)
        self._commit_gathered()

    def _note_idle(self) -> None:
        if not (self._away or self._gathered):
            self._idle.set()

    def _settle(self, entries: list[Entry], outcomes: list[Outcome]) -> None:
        self._crowded = len(entries) > 1
        self._committing_here = False
        for entry, outcome in zip(entries, outcomes, strict=True):
            entry.outcome = outcome
            if entry.waiting is not None and not entry.waiting.done():
                entry.waiting.set_result(None)
