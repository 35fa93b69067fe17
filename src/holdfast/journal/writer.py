"""Group commit: which writes share a transaction, where it is committed, and what a failure means.

Where: a lone write with an idle writer commits on the event loop, since a hop to a thread and back
would cost a quarter more than the few hundred microseconds of the commit. Writes that come
together are gathered for one turn of the loop and share one transaction, which is committed first
in the next turn, in which their callers go on: a step of many runs takes one turn, and whatever
else the loop does holds them up once. After a lone commit its caller yields once, and what is
written before it is resumed is gathered; so is every write while batches hold more than one.

On a quick disk that transaction too is committed on the loop. On a slow one a thread waits for the
disk, and does nothing else: the statements run on the loop, for a thread needs the interpreter
after each of them, and beside a busy loop every such hand-over takes the interpreter's switch
interval (a batch of fifty runs took seconds). Only what may take long by itself
(`may_block=False`: a snapshot, a count of everything) runs in the thread as a whole, each alone,
and so does the batch that follows a failed commit, with its probe. The loop never waits for the
thread: while the thread has anything in hand (`_away`), writes gather behind it, in order.

A commit that was slow on the loop was slow. One that was slow in the thread may have waited for
the interpreter, and one that was quick there was quick: so commits return to the loop after a
quick one, and else after a number of batches that doubles each time the loop finds the disk slow
again.

A job that fails, fails alone. Nearly always it is a conflict, found before the job has changed a
row, and nothing needs undoing; if one does fail half-way, the batch starts again with a savepoint
for every job, which costs a tenth more. So a job may run twice and must only execute statements.

An error of the store fails the whole batch, for it is not known what reached the disk: after a
crash the refused rows may still appear in the log. From then on the committer is *suspended*: it
refuses everything at once until a probe commit has succeeded. The probe goes through the same
connection on purpose. That connection remembers where the last good commit ended, so the probe
overwrites what the failed one left; a fresh connection would believe the log, including pages that
a failed sync has left in the page cache only.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import coroutine
from typing import Any, Final, TypeAlias, TypeVar, cast

from holdfast.errors import HoldfastError, JournalUnavailable
from holdfast.journal.append_writer import AppendWriter
from holdfast.journal.database import Connection, Transaction, explain
from holdfast.journal.rows import load_queries
from holdfast.model.record import constructor

BATCH = 256
SLOW_SECONDS = 0.005
SLOW_WRITE_SECONDS = 0.0002
FIRST_AWAY = 4
LONGEST_AWAY = 256
"""A commit was slow when it took longer than `SLOW_SECONDS`, or than `SLOW_WRITE_SECONDS` for
each of its writes, whichever is more. Then so many batches are left to the thread."""

Job: TypeAlias = Callable[[Transaction, Any], Any]
Write: TypeAlias = tuple[Job, Any]
"""A job, and what it is to write."""
Outcome: TypeAlias = tuple[Any, Exception | None]

PROBE_SECONDS = 0.2
"""How long a failed commit is left alone before the next probe."""

_PROBE = load_queries("sqlite_queries.sql")["probe"]

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
        """The others have a turn before it: what they write then is company."""
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
            broken = JournalUnavailable("the write was interrupted: it may have happened or not")
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
        with suppress(RuntimeError):  # the loop was closed before the journal: no reader waits
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


class Committer:
    """Owns the writing connection. Any thread may call, one at a time: the writer sees to that."""

    def __init__(self, connection: Connection, path: Path, appends: AppendWriter) -> None:
        self._connection = connection
        self._transaction = Transaction(connection)
        self._path = path
        self._appends = appends
        self._flush = appends.finish
        self.trouble: sqlite3.Error | None = None
        """Why it is suspended; None while it is not."""
        self._failed_at = 0.0
        self.epoch = 0
        self.commit_seconds = 0.0

    def refusal(self) -> HoldfastError | None:
        """Why nothing is accepted now; None when it is, or when a probe is due."""
        trouble = self.trouble  # the writing thread may clear it at any moment
        if trouble is None or self._probe_is_due():
            return None
        return explain(trouble, self._path)

    def commit(self, writes: Sequence[Write]) -> list[Outcome]:
        """Commit all writes together; one outcome each, in order."""
        if self.trouble is not None and not self._probe():
            return self._refuse(writes, self.trouble)
        began = time.perf_counter()
        try:
            outcomes = self._run_each(writes, self._flush)
            if self._transaction.begun:
                self._transaction.commit()
        except sqlite3.Error as error:
            return self._fail(writes, error)
        except BaseException:
            self._roll_back()
            raise
        if self._appends.moves:
            self._appends.committed()
        self.commit_seconds = time.perf_counter() - began
        return outcomes

    def prepare(self, writes: Sequence[Write]) -> list[Outcome]:
        """As much of it as does not wait for the disk; `finish` is the rest."""
        try:
            return self._run_each(writes, self._appends.prepare)
        except sqlite3.Error as error:
            return self._fail(writes, error)
        except BaseException:
            self._roll_back()
            raise

    def finish(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Commit what was prepared with these outcomes."""
        began = time.perf_counter()
        try:
            if self._transaction.begun:
                self._transaction.commit()
        except sqlite3.Error as error:
            return self._fail(outcomes, error)
        except BaseException:
            self._roll_back()
            raise
        self._appends.committed()
        self.commit_seconds = time.perf_counter() - began
        return outcomes

    def close(self) -> None:
        """Leave an empty log behind, if the disk lets us."""
        self._roll_back()
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()

    def _run_each(
        self, writes: Sequence[Write], flush: Callable[[Transaction], None]
    ) -> list[Outcome]:
        """Without savepoints while every job that fails has failed before it changed a row."""
        connection, transaction, appends = self._connection, self._transaction, self._appends
        outcomes: list[Outcome] = []
        for job, given in writes:
            changes, values = connection.total_changes, len(appends.gathered)
            try:
                outcomes.append((job(transaction, given), None))
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                if connection.total_changes != changes or len(appends.gathered) != values:
                    return self._run_each_apart(writes)
                outcomes.append((None, self._told(error)))
        try:
            flush(transaction)
        except sqlite3.OperationalError:
            raise
        except Exception:
            return self._run_each_apart(writes)
        return outcomes

    def _run_each_apart(self, writes: Sequence[Write]) -> list[Outcome]:
        """From the beginning, with a savepoint for every job."""
        transaction, appends = self._transaction, self._appends
        self._roll_back()
        outcomes: list[Outcome] = []
        for job, given in writes:
            transaction.execute("SAVEPOINT job")
            try:
                outcome: Outcome = job(transaction, given), None
                appends.flush(transaction)
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                transaction.execute("ROLLBACK TO job")
                appends.forget()
                outcome = None, self._told(error)
            transaction.execute("RELEASE job")
            outcomes.append(outcome)
        appends.prepare(transaction)
        return outcomes

    def _told(self, error: Exception) -> Exception:
        return explain(error, self._path) if isinstance(error, sqlite3.Error) else error

    def _probe_is_due(self) -> bool:
        return time.monotonic() >= self._failed_at + PROBE_SECONDS

    def _probe(self) -> bool:
        """Ends the trouble with a commit, if it is time to try one."""
        if not self._probe_is_due():
            return False
        try:
            self._roll_back()
            self._transaction.execute(_PROBE)
            self._transaction.commit()
        except sqlite3.Error as error:
            self._suspend(error)
        else:
            self.trouble = None
        return self.trouble is None

    def _suspend(self, error: sqlite3.Error) -> None:
        self._roll_back()
        self.trouble = error
        self._failed_at = time.monotonic()

    def _fail(self, writes: Sequence[Any], error: sqlite3.Error) -> list[Outcome]:
        self._suspend(error)
        self.epoch += 1
        return self._refuse(writes, error)

    def _refuse(self, writes: Sequence[Any], error: sqlite3.Error) -> list[Outcome]:
        return [(None, explain(error, self._path)) for _ in writes]

    def _roll_back(self) -> None:
        self._appends.forget()
        self._transaction.roll_back()
