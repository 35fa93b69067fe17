"""Group commit for PostgreSQL: which appends share a statement or a transaction.

A lane is a task with a connection. An append that finds one idle goes directly; those that come
while all are busy are gathered, and go out together: plain ones of several runs as one statement,
anything more as one transaction (see postgres_appends.py). Of one run, and of one name, one is
under way at a time, and their order stays.

What fails alone, fails alone. Where a batch cannot be committed as it is (a deadlock, a value that
the database does not take, a name that is taken), every append has a transaction of its own. Where
it is not known what became of it, because the connection broke or the server gave up, the whole
batch is not acknowledged, `epoch` rises, and nothing is repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.errors import HoldfastError, JournalUnavailable
from holdfast.journal.port import Append, conflict
from holdfast.journal.postgres_appends import (
    MOST_ALONE,
    Irregular,
    Transaction,
    Work,
    append_alone,
    append_plain,
    told_apart,
    version_after,
)
from holdfast.journal.postgres_batches import Given, is_plain, keys_of
from holdfast.journal.postgres_database import (
    Connection,
    Connections,
    DatabaseError,
    explain,
    is_passing,
    roll_back,
)

log = logging.getLogger("holdfast")

BATCH: Final = 256
LANES: Final = 2
TRIES: Final = 5
"""Writes that go out together at most; batches under way; how often one is tried that others
deadlock with."""

_INTERRUPTED: Final = "the write was interrupted: it may have happened or not, look and try again"


@dataclass(slots=True)
class Entry:
    given: Given
    keys: tuple[Any, ...]
    done: asyncio.Future[int]


class Writer:
    """Takes appends on the event loop; `deferred` hears of a job that waits after a commit."""

    def __init__(self, url: str, deferred: Callable[[int], None]) -> None:
        self._connections = Connections(url, LANES)
        self._connections.open()
        self._deferred = deferred
        self._loop = asyncio.get_running_loop()
        self._gathered: list[Entry] = []
        self._idle: list[asyncio.Future[None]] = []
        self._roused = False
        self._under_way: set[Any] = set()
        self._stopping = False
        self.epoch = 0
        self.worker_id: int | None = None
        self._lanes = [
            self._loop.create_task(self._serve(), name=f"holdfast-journal-{n}")
            for n in range(LANES)
        ]

    def write(self, given: Given) -> Awaitable[int]:
        """Commit durably; the run's new version."""
        if self._stopping:
            raise JournalUnavailable("the journal is closed: nothing was written")
        done = self._loop.create_future()
        self._gathered.append(Entry(given, tuple(keys_of(given)), done))
        self._rouse()
        return done

    async def stop(self) -> None:
        """Finish what was accepted."""
        self._stopping = True
        for idle in self._idle:
            idle.set_result(None)
        self._idle.clear()
        try:
            await asyncio.gather(*self._lanes)
        finally:
            await self._connections.close()

    async def _serve(self) -> None:
        while True:
            batch = self._next_batch()
            if batch:
                if self._gathered:
                    self._rouse()
                await self._commit(batch)
                for entry in batch:
                    self._under_way.difference_update(entry.keys)
            elif self._stopping:
                return
            else:
                idle = self._loop.create_future()
                self._idle.append(idle)
                await idle
                self._roused = False

    def _rouse(self) -> None:
        """One lane takes whatever is gathered until it runs."""
        if self._idle and not self._roused:
            self._roused = True
            self._idle.pop().set_result(None)

    def _next_batch(self) -> list[Entry]:
        taken: list[Entry] = []
        left: list[Entry] = []
        keys = set(self._under_way)
        for entry in self._gathered:
            fits = len(taken) < BATCH and keys.isdisjoint(entry.keys)
            (taken if fits else left).append(entry)
            keys.update(entry.keys)
            if fits:
                self._under_way.update(entry.keys)
        self._gathered = left
        return taken

    async def _commit(self, entries: list[Entry]) -> None:
        try:
            async with self._connections.one() as connection:
                work = await self._write(connection, [entry.given for entry in entries])
        except HoldfastError as error:
            self.epoch += 1
            self._settle(entries, [error] * len(entries))
        except Exception:
            log.exception("a batch of %d writes could not be carried out", len(entries))
            self.epoch += 1
            self._settle(entries, [JournalUnavailable(_INTERRUPTED)] * len(entries))
        except BaseException:
            self._settle(entries, [JournalUnavailable(_INTERRUPTED)] * len(entries))
            raise
        else:
            if work.deferred is not None:
                self._deferred(work.deferred)
            self._settle(entries, work.outcomes)

    async def _write(self, connection: Connection, given: Sequence[Given]) -> Work:
        try:
            work = await self._together(connection, given)
        except Irregular as error:
            await roll_back(connection)
            work = Work([error.reason])
            if len(given) > 1:
                work = await self._each(connection, given)
        except (DatabaseError, UnicodeError) as error:
            told = explain(error, self._connections.place)
            if isinstance(told, JournalUnavailable) and not is_passing(error):
                raise
            await roll_back(connection)
            if len(given) == 1 and not is_passing(error):
                return Work([told])
            work = await self._each(connection, given)
        await told_apart(connection, given, work)
        return work

    async def _each(self, connection: Connection, given: Sequence[Given]) -> Work:
        """Every append by itself."""
        work = Work([])
        for one in given:
            found = await self._alone(connection, one)
            work.outcomes += found.outcomes
            work.deferred = found.deferred or work.deferred
        return work

    async def _alone(self, connection: Connection, given: Given) -> Work:
        for _ in range(TRIES):
            try:
                return await self._together(connection, [given])
            except Irregular as error:
                await roll_back(connection)
                return Work([error.reason])
            except (DatabaseError, UnicodeError) as error:
                told = explain(error, self._connections.place)
                if isinstance(told, JournalUnavailable) and not is_passing(error):
                    raise
                await roll_back(connection)
                if not is_passing(error):
                    break
        return Work([told])

    async def _together(self, connection: Connection, given: Sequence[Given]) -> Work:
        plain = [one for one in given if isinstance(one, Append) and is_plain(one)]
        if len(plain) < len(given):
            return await Transaction(connection, given, self.worker_id).run()
        if len(plain) == 1 and len(plain[0].records) <= MOST_ALONE:
            happened = {0} if await append_alone(connection, plain[0]) else set()
        elif any(one.ends_drive for one in plain):
            return await Transaction(connection, given, self.worker_id).run()
        else:
            happened = await append_plain(connection, plain)
        return Work(
            [
                version_after(one) if place in happened else conflict(one)
                for place, one in enumerate(plain)
            ]
        )

    def _settle(self, entries: list[Entry], outcomes: Sequence[int | HoldfastError | None]) -> None:
        for entry, outcome in zip(entries, outcomes, strict=True):
            if entry.done.done():
                continue
            if isinstance(outcome, HoldfastError):
                entry.done.set_exception(outcome)
                entry.done.exception()  # its caller may have gone
            else:
                entry.done.set_result(outcome or 0)
