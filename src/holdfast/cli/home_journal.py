"""The journal of a home, for commands that only look, and for those that change what no run has."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from holdfast.cli.shell import Settings
from holdfast.errors import CallerError, JournalTooNew, NotFound, OperatorError
from holdfast.journal.database import (
    APPLICATION,
    CHECKSUMS,
    SCHEMA,
    Connection,
    explain,
    open_reader,
)
from holdfast.journal.home import DATABASE, default_home
from holdfast.journal.port import ExpiringValue, Journal
from holdfast.journal.sqlite import OLD_SQL, SqliteJournal

LOOK_AGAIN = 0.25
"""Seconds between two looks at a journal that another process writes."""

PATIENCE = 8
"""How many such looks in vain it takes to believe that nobody is at work."""

_LONGEST_NUMBER = 18


class ReadingJournal(SqliteJournal):
    """The committed events of a home, which may be in use by another process."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, connect=_connect_to_read)
        self._keeps = True

    async def open(self) -> None:
        refuse_empty(self.path)
        try:
            self._reader = open_reader(self.path, self._connect)
            if _schema_of(self._reader, self.path) < CHECKSUMS:
                self._sql = OLD_SQL
            self._keeps = _schema_of(self._reader, self.path) > 1
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        """The first schema kept nothing."""
        return await super().all_kept(kind, now) if self._keeps else []

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def refuse_empty(database: Path) -> None:
    """Looking for a run, or going on with one, makes no home."""
    if not database.is_file():
        raise NotFound(f"{database.parent} holds no runs yet: start one with `holdfast run PLAN`")


def _connect_to_read(path: Path) -> Connection:
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=1.0, isolation_level=None)


def _schema_of(connection: Connection, path: Path) -> int:
    [[application]] = connection.execute("PRAGMA application_id").fetchall()
    [[version]] = connection.execute("PRAGMA user_version").fetchall()
    if application != APPLICATION:
        raise OperatorError(f"{path} belongs to another program. Choose another home.")
    if version > SCHEMA:
        raise JournalTooNew(f"{path} was written by a newer Holdfast. Upgrade this one.")
    return int(version)


@asynccontextmanager
async def reading_journal(settings: Settings) -> AsyncIterator[ReadingJournal]:
    journal = ReadingJournal(_database(settings))
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


@asynccontextmanager
async def writing_journal(settings: Settings) -> AsyncIterator[Journal]:
    """The journal of a home that is taken for this alone: no run of it moves."""
    journal = SqliteJournal(_database(settings))
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


def _database(settings: Settings) -> Path:
    if settings.app_name is None or (settings.home is not None and settings.app is None):
        return (settings.home or default_home()) / DATABASE
    from holdfast.cli.opening import named_app

    journal = named_app(settings).journal
    if not isinstance(journal, SqliteJournal):
        raise CallerError(f"{settings.app_name} keeps no journal that another process could read")
    return journal.path


def is_driven(home: Path) -> bool:
    """Whether a process on this machine seems to hold the home.

    Taking the lock for a moment would tell for certain, and could turn away a
    process that is just starting; so its word about itself must do.
    """
    try:
        holder = json.loads((home / f"{DATABASE}.lock").read_text(encoding="utf-8"))
        os.kill(int(holder["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return True


def full_run_id(name: str, series: str = "inst") -> str:
    """`7` is short for `inst_000007`."""
    number = name.isascii() and name.isdecimal() and len(name) <= _LONGEST_NUMBER
    return f"{series}_{int(name):06d}" if number else name
