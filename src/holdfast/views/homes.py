"""Homes, for surfaces that open one without its application: to read it, or to change what
belongs to no run (tokens). Loads the journal alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.journal.home import DATABASE, announce, default_home
from holdfast.journal.port import Journal
from holdfast.journal.reading import ReadingJournal, is_driven, refuse_empty
from holdfast.journal.sqlite import SqliteJournal

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = [
    "announced",
    "database_of",
    "is_driven",
    "journal_path",
    "keeps_runs",
    "reading",
    "refuse_unused",
    "writing",
]


def database_of(home: Path | None) -> Path:
    """The journal of a home, by default of the usual one."""
    return (home or default_home()) / DATABASE


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
async def reading(path: Path) -> AsyncIterator[ReadingJournal]:
    journal = ReadingJournal(path)
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


@asynccontextmanager
async def writing(path: Path) -> AsyncIterator[Journal]:
    """The journal of a home that is taken for this alone: no run of it moves."""
    journal = SqliteJournal(path)
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()
