"""Where runs are kept, for surfaces that open that without its application: to read it, or to
change what belongs to no run (tokens). Loads the journal alone.

It is a home, whose journal is a file that one process holds, or a PostgreSQL database, named by its
URL, that any number of processes have open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from holdfast.errors import OperatorError
from holdfast.journal.home import DATABASE, announce, database_url, default_home
from holdfast.journal.port import Journal
from holdfast.journal.reading import ReadingJournal, refuse_empty
from holdfast.journal.reading import is_driven as is_held
from holdfast.journal.sqlite import SqliteJournal

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = [
    "Place",
    "announced",
    "is_driven",
    "journal_path",
    "keeps_runs",
    "migrated",
    "place_name",
    "place_of",
    "place_of_app",
    "reading",
    "refuse_unused",
    "writing",
]


Place: TypeAlias = Path | str
"""The file of a home's journal, or the URL of a database."""


def place_of(home: Path | None) -> Place:
    """The journal of a home; where none is named the database of the environment, or else that of
    the usual home."""
    return (home and home / DATABASE) or database_url() or default_home() / DATABASE


def place_of_app(app: Holdfast) -> Place | None:
    """Where an application's runs are kept; None where that is in its memory."""
    url: str | None = getattr(app.journal, "url", None)
    return url or journal_path(app)


def place_name(place: Place) -> str:
    """Where a journal is, for people: of a database without its password."""
    if isinstance(place, Path):
        return str(place)
    from holdfast.journal.postgres_database import place_of as place_of_url

    return place_of_url(place)


def is_driven(place: Place) -> bool:
    """Whether other processes may move its runs."""
    return isinstance(place, str) or is_held(place)


def journal_path(app: Holdfast) -> Path | None:
    """Where an application's journal lies; None where it is no file."""
    return app.journal.path if isinstance(app.journal, SqliteJournal) else None


def keeps_runs(app: Holdfast) -> bool:
    """Whether its runs outlive the process."""
    from holdfast.journal.memory import MemoryJournal

    return not isinstance(app.journal, MemoryJournal)


@contextmanager
def announced(app: Holdfast, url: str) -> Iterator[None]:
    """While this lasts, a process that finds the home taken is told of this server."""
    path = journal_path(app)
    if path is None:
        yield
        return
    file = announce(path, url)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def refuse_unused(app: Holdfast) -> None:
    """NotFound where the application's home holds no runs: going on with one makes no home."""
    path = journal_path(app)
    if path is not None:
        refuse_empty(path)


@asynccontextmanager
async def reading(place: Place, *, unfinished: bool = False) -> AsyncIterator[ReadingJournal]:
    """`unfinished`: also what a copy is yet to be finished of."""
    journal = (
        _shared(place, unfinished=unfinished)
        if isinstance(place, str)
        else ReadingJournal(place, unfinished=unfinished)
    )
    async with _opened(journal) as one:
        yield cast(ReadingJournal, one)


@asynccontextmanager
async def writing(place: Place) -> AsyncIterator[Journal]:
    """A journal in which nothing but what belongs to no run is changed: a home is taken for this
    alone."""
    async with _opened(_shared(place) if isinstance(place, str) else SqliteJournal(place)) as one:
        yield one


async def migrated(url: str | None) -> tuple[str, int, int]:
    """Bring a database to this version's schema: where it is, how many steps that took, and the
    schema by now."""
    wanted = url or database_url()
    if not wanted:
        raise OperatorError(
            "no database is named: set HOLDFAST_DATABASE, or give --database "
            "postgresql://user@host/holdfast. A home needs no migration."
        )
    from holdfast.journal.postgres_database import place_of as place_of_url
    from holdfast.journal.postgres_migrations import SCHEMA, migrate

    return place_of_url(wanted), await migrate(wanted), SCHEMA


def _shared(url: str, *, unfinished: bool = False) -> Journal:
    from holdfast.journal.postgres import PostgresJournal

    return PostgresJournal(url, unfinished=unfinished)


@asynccontextmanager
async def _opened(journal: Journal) -> AsyncIterator[Journal]:
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()
