"""Removing finished runs, for surfaces: by retention, and where one person's data is erased.

A `Keeper` finds and removes; it stands for a home or for a server. `sweep` removes many, a few at
a time, and writes each down before it goes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, Protocol

from holdfast.errors import NotAllowed
from holdfast.i18n.message import msg
from holdfast.journal.reading import refuse_empty
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model.rows import RunRow
from holdfast.model.run import FINISHED as FINISHED
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.housekeeping import AT_ONCE as AT_ONCE
from holdfast.runtime.housekeeping import REST, digest_of
from holdfast.runtime.housekeeping import SETTLED as SETTLED
from holdfast.runtime.housekeeping import Finished as Finished
from holdfast.runtime.housekeeping import Housekeeper as Housekeeper
from holdfast.runtime.housekeeping import Removed as Removed
from holdfast.runtime.housekeeping import Why as Why
from holdfast.views.homes import Place, reading, writing

DAY: Final = 24 * 3600.0
RETENTION: Final = "removed_runs"
ERASURE: Final = "erased_person"


class Keeper(Protocol):
    async def finished(
        self, wanted: Finished, before: str | None = None
    ) -> tuple[list[RunRow], str | None]: ...

    async def naming(
        self, name: str, before: str | None = None
    ) -> tuple[list[tuple[RunRow, bool]], str | None]: ...

    def lines_of(self, root_id: str) -> AsyncIterator[str]: ...

    async def remove(
        self, root_ids: Sequence[str], why: Why, digest: str | None = None
    ) -> Removed: ...

    async def reclaim(self) -> None: ...


@dataclass(slots=True)
class Swept:
    """What came of a sweep."""

    trees: int = 0
    runs: int = 0
    records: int = 0
    left: tuple[str, ...] = ()

    def add(self, removed: Removed) -> None:
        self.trees += len(removed.roots)
        self.runs += removed.runs
        self.records += removed.records
        self.left += removed.left


async def all_finished(keeper: Keeper, wanted: Finished) -> list[RunRow]:
    """The oldest first."""
    found, before = await keeper.finished(wanted)
    while before is not None:
        more, before = await keeper.finished(wanted, before)
        found += more
    return found[::-1]


async def roots_of(keeper: Keeper, wanted: Finished) -> list[str]:
    """As `all_finished`, by their ids alone, which take less room."""
    page, before = await keeper.finished(wanted)
    found = [row.run_id for row in page]
    while before is not None:
        page, before = await keeper.finished(wanted, before)
        found += [row.run_id for row in page]
    return found[::-1]


async def all_naming(
    keeper: Keeper, name: str, looked: Callable[[int], None] = lambda count: None
) -> list[tuple[RunRow, bool]]:
    found, before = await keeper.naming(name)
    pages = 1
    while before is not None:
        looked(pages)
        more, before = await keeper.naming(name, before)
        found += more
        pages += 1
    return found[::-1]


async def sweep(
    keeper: Keeper,
    root_ids: Sequence[str],
    why: Why,
    export: IO[str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Swept:
    """Remove these trees, each written to `export` before; those in use again are left."""
    swept = Swept()
    for start in range(0, len(root_ids), AT_ONCE):
        batch = root_ids[start : start + AT_ONCE]
        digest = None if export is None else await _written(keeper, batch, export)
        try:
            swept.add(await keeper.remove(batch, why, digest))
        except NotAllowed:  # one of them has moved on since it was written
            for root_id in batch:
                swept.add(await _alone(keeper, root_id, why, export))
        await asyncio.sleep(REST)
        progress(min(start + AT_ONCE, len(root_ids)), len(root_ids))
    await keeper.reclaim()
    return swept


async def _alone(keeper: Keeper, root_id: str, why: Why, export: IO[str] | None) -> Removed:
    digest = None if export is None else await _written(keeper, [root_id], export)
    try:
        return await keeper.remove([root_id], why, digest)
    except NotAllowed:
        return Removed((), 0, 0, (root_id,))


async def _written(keeper: Keeper, root_ids: Sequence[str], export: IO[str]) -> str:
    """Write trees down, durably; the digest of what was written."""
    digests = []
    for root_id in root_ids:
        made = sha256()
        async for line in keeper.lines_of(root_id):
            export.write(line)
            made.update(line.encode())
        digests.append(made.hexdigest())
    await asyncio.to_thread(_sync, export)
    return digest_of(digests)


def _sync(export: IO[str]) -> None:
    export.flush()
    os.fsync(export.fileno())


def for_owner(file: Path) -> IO[str]:
    """A new file for an export, which must not be there yet."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise NotAllowed(msg("{file} is there already: name another", file=str(file))) from None
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")


@asynccontextmanager
async def home_keeper(place: Place, *, to_write: bool) -> AsyncIterator[Housekeeper]:
    """Of a home; to write, it is taken for this alone."""
    if isinstance(place, Path):
        refuse_empty(place)
    opened = writing(place) if to_write else reading(place)
    async with opened as journal:
        yield Housekeeper(journal, SystemClock())


async def compacted(place: Path) -> None:
    """Write a home's whole file anew: space is given back, and will be from then on."""
    refuse_empty(place)
    journal = SqliteJournal(place)
    await journal.open()
    try:
        await journal.compact()
    finally:
        await journal.close()
