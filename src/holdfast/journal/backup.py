"""A copy of a SQLite journal as it is at one moment, while its process goes on writing.

The whole copy is one read transaction: the writer appends to its log meanwhile, which is not
written anew before the copy is done. Copying the files would lose what is only in the log.

The copy keeps no log of its own: it is one file, and is read without anything being made beside it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from holdfast.errors import JournalUnavailable, OperatorError
from holdfast.journal.database import explain
from holdfast.journal.home import make_file

PAGES = 256
"""How many pages of 4 kB are copied at once."""

CHUNK = 1024 * 1024
_PATIENCE = 5.0

Progress = Callable[[int, int], None]


def copy(source: Path, target: Path, progress: Progress = lambda done, total: None) -> None:
    """Into a file that is readable by its owner only; `progress` hears how many pages of how many
    are copied. It blocks, and may run in any thread."""
    make_file(target)
    address = f"file:{quote(str(source.resolve()))}?mode=ro"

    def copied(status: int, left: int, total: int) -> None:
        if status not in (sqlite3.SQLITE_OK, sqlite3.SQLITE_DONE):
            raise JournalUnavailable(f"{source} is locked by another program: {_FREE}")
        progress(total - left, total)

    try:
        with (
            closing(sqlite3.connect(address, uri=True, isolation_level=None)) as reader,
            closing(sqlite3.connect(target, isolation_level=None)) as writer,
        ):
            reader.execute(f"PRAGMA busy_timeout = {int(_PATIENCE * 1000)}").fetchall()
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
            writer.execute("PRAGMA fullfsync = ON").fetchall()
            reader.backup(writer, pages=PAGES, progress=copied, sleep=0.05)
            writer.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        raise explain(error, source) from error


_FREE = "close it, then back up again"


def sha256_of(file: Path) -> str:
    made = hashlib.sha256()
    with file.open("rb") as read:
        while chunk := read.read(CHUNK):
            made.update(chunk)
    return made.hexdigest()


def copy_file(source: Path, target: Path, progress: Progress) -> str:
    """A file that is closed, made durable; the digest of what was copied."""
    made, done, total = hashlib.sha256(), 0, source.stat().st_size
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with source.open("rb") as read, os.fdopen(descriptor, "wb") as write:
            while chunk := read.read(CHUNK):
                made.update(chunk)
                write.write(chunk)
                done += len(chunk)
                progress(done, total)
            write.flush()
            os.fsync(write.fileno())
    except OSError as error:
        raise OperatorError(f"{error.filename or target}: {error.strerror}") from error
    return made.hexdigest()
