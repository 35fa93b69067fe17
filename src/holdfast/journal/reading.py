"""A SQLite journal for commands that only look: another process may hold the home and write."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from holdfast.errors import NotFound
from holdfast.journal.database import (
    CHECKSUMS,
    SCHEMA,
    Connection,
    explain,
    open_reader,
    schema_of,
)
from holdfast.journal.port import ExpiringValue
from holdfast.journal.sqlite import OLD_SQL, SqliteJournal


class ReadingJournal(SqliteJournal):
    """The committed events of a home; it takes no lock and writes nothing."""

    def __init__(self, path: Path, *, unfinished: bool = False) -> None:
        """`unfinished`: also what a copy is yet to be finished of."""
        super().__init__(path, connect=_connect_to_read)
        self.schema = SCHEMA
        self._unfinished = unfinished

    async def open(self) -> None:
        refuse_empty(self.path)
        try:
            self._reader = open_reader(self.path, self._connect)
            self.schema = schema_of(self._reader, self.path, unfinished=self._unfinished)
            if self.schema < CHECKSUMS:
                self._sql = OLD_SQL
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        """The first schema kept nothing."""
        return await super().all_kept(kind, now) if self.schema > 1 else []

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def refuse_empty(database: Path) -> None:
    """NotFound where there is no journal: reading a home does not make one."""
    if not database.is_file():
        raise NotFound(f"{database.parent} holds no runs yet: start one with `holdfast run PLAN`")


def is_driven(database: Path) -> bool:
    """Whether a process on this machine seems to hold the journal.

    Taking the lock for a moment would tell for certain, and could turn away a
    process that is just starting; so the holder's note about itself is read.
    """
    try:
        lock = database.with_name(f"{database.name}.lock")
        os.kill(int(json.loads(lock.read_text(encoding="utf-8"))["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return True


def _connect_to_read(path: Path) -> Connection:
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=1.0, isolation_level=None)
