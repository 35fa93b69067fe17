"""A SQLite database as the journal's home: how it is opened, and what its failures mean.

WAL with `synchronous=FULL` makes COMMIT return only after the log has reached the
disk; with NORMAL a power cut loses commits that were acknowledged. `fullfsync`
asks the same of disks under macOS and means nothing elsewhere.

The log is copied into the database at 4 MB, then written anew from its beginning: a
commit that makes the file grow takes half as long again as one that overwrites, so
the log is brought to that length when it is opened.

A database of an older schema is brought up to date when it is opened, one version and
one transaction at a time.

Opening ends with a checkpoint. A process that died after a failed sync may have
left commits that the page cache shows but the disk does not have; copying the log
into the database and syncing that leaves nothing that depends on it.

Rows have checksums (CRC-32, as a signed integer: four bytes and under two microseconds a record),
so that a bit that has flipped on its way to the disk or back is noticed when it is read. A record's
covers its place as well. Rows that people are shown or let in by (questions, definitions, what is
kept) have one, too.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from zlib import crc32

from holdfast.errors import (
    HoldfastError,
    InternalError,
    JournalDamaged,
    JournalTooNew,
    JournalUnavailable,
    OperatorError,
)
from holdfast.journal.port import Record, Written
from holdfast.journal.rows import NoText, load_queries, load_script

APPLICATION = int.from_bytes(b"Hold", "big")
UNFINISHED = int.from_bytes(b"Copy", "big")
"""What a database says it is while a copy into it is not finished."""

SCHEMA = 7
CHECKSUMS = 4
PLACES = 6
REMOVED = 7
"""The first schemas with checksums, with a table of places, and where runs are removed."""

_SCRIPTS = ("sqlite_schema.sql", *(f"sqlite_schema_{n}.sql" for n in range(2, SCHEMA + 1)))
"""The script at `n` brings a database from schema `n` to the next."""

_SQL = load_queries("sqlite_queries.sql")
_CHECKED = load_queries("sqlite_checksums.sql")
_BUSY_SECONDS = 0.05
_STATEMENTS = 128
MOST_UNPLACED = 256
"""After how many records it is written down where they lie."""

MOST_COMPACTED = 16_384
"""How many pages of 4 kB are written anew when a database is opened that cannot shrink yet."""

_LOG_PAGES = 1000
_PAGE_BYTES = 4096
_SPILLING_CACHE = 10
_CACHE = -2000

_head = struct.Struct("<qd").pack
_SIGN = 1 << 31
_RANGE = 1 << 32
_CHECKSUM = re.compile(r"\b(\w+\.)?crc(_after)?\b")

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Cursor(Protocol):
    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class Executor(Protocol):
    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor: ...


class Connection(Executor, Protocol):
    """As much of `sqlite3.Connection` as the journal uses."""

    text_factory: Any

    @property
    def in_transaction(self) -> bool: ...

    @property
    def total_changes(self) -> int: ...

    def cursor(self) -> Executor: ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Cursor: ...

    def executescript(self, sql_script: str, /) -> Cursor: ...

    def close(self) -> None: ...


Connect: TypeAlias = Callable[[Path], Connection]


class Transaction:
    """Begins with its first statement, and takes none after SQLite has ended it by itself."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.execute_alone = connection.cursor().execute
        """Executes a statement that is a transaction by itself, with a cursor that is kept."""
        self.begun = False

    def execute(self, sql: str, parameters: Parameters = ()) -> Cursor:
        if not (self.begun and self.connection.in_transaction):
            self._begin()
        return self.connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        if not (self.begun and self.connection.in_transaction):
            self._begin()
        return self.connection.executemany(sql, parameters)

    def commit(self) -> None:
        self.connection.execute("COMMIT")
        self.begun = False

    def roll_back(self) -> None:
        self.begun = False
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def _begin(self) -> None:
        if self.begun:
            lost = sqlite3.OperationalError("it was rolled back half-way")
            lost.sqlite_errorcode = sqlite3.SQLITE_ABORT
            raise lost
        self.connection.execute("BEGIN IMMEDIATE")
        self.begun = True


def connect(path: Path) -> Connection:
    """A connection without Python's implicit transactions, for one thread at a time."""
    return sqlite3.connect(
        path,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )


def open_writer(path: Path, connect: Connect, *, unfinished: bool = False) -> Connection:
    """The one connection that writes, on a database that is ready to be written to; one that a
    copy is yet to be finished of only where that is said."""
    return _opened(path, connect, partial(_prepare, path=path, unfinished=unfinished))


def open_reader(path: Path, connect: Connect) -> Connection:
    """A connection that reads what is committed, without waiting for the writer."""
    return _opened(path, connect, _make_reader)


def read_as_indexed(connection: Connection) -> None:
    """A database of before `PLACES`, where an index finds the records, read like those of today."""
    connection.execute("CREATE TEMP VIEW places AS SELECT place, rowid AS position FROM events")
    connection.execute("CREATE TEMP VIEW tail AS SELECT * FROM events WHERE FALSE")


def explain(error: sqlite3.Error, path: Path) -> HoldfastError:
    """What a failure of SQLite means to the operator."""
    if str(error).startswith(_NO_TEXT):
        # SQLite's own words would quote what it found.
        return JournalDamaged(f"{path} holds text that is none. {_AFTER_DAMAGE}")
    match _code(error):
        case sqlite3.SQLITE_NOTADB:
            return JournalDamaged(
                f"{path} is not a SQLite database. If it should be Holdfast's journal, its "
                "beginning is damaged: restore it from a backup. Otherwise choose another home."
            )
        case sqlite3.SQLITE_CORRUPT:
            return JournalDamaged(f"{path} is damaged ({error}). {_AFTER_DAMAGE}")
        case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISUSE | sqlite3.SQLITE_TOOBIG:
            return InternalError(f"{path} refused a statement of ours: {error}")
        case code:
            remedy = _REMEDIES.get(code, "It goes on by itself once the disk works again.")
            return JournalUnavailable(f"{path} did not acknowledge ({error}). {remedy}")


_NO_TEXT = "Could not decode to UTF-8"
_AFTER_DAMAGE = (
    "Stop Holdfast, keep a copy of the file and of its -wal, then restore a backup or recover what "
    "is readable with sqlite3's .recover. `holdfast doctor --integrity` tells what is damaged."
)
_REMEDIES = {
    sqlite3.SQLITE_FULL: "Free some disk space; it goes on by itself.",
    sqlite3.SQLITE_IOERR: "Look at the disk; it goes on by itself once the disk works again.",
    sqlite3.SQLITE_BUSY: "Close the other program that has this database open for writing.",
    sqlite3.SQLITE_READONLY: "Make the file and its directory writable for this user.",
    sqlite3.SQLITE_CANTOPEN: "Make the file and its directory readable and writable for this user.",
}


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; errors of Python's own module have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF


def _opened(path: Path, connect: Connect, prepare: Callable[[Connection], None]) -> Connection:
    try:
        connection = connect(path)
        with ExitStack() as undo:
            undo.callback(connection.close)
            prepare(connection)
            undo.pop_all()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return connection


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return NoText(raw.decode(errors="replace"))


def _make_reader(connection: Connection) -> None:
    connection.text_factory = _text
    [[schema]] = connection.execute("PRAGMA user_version").fetchall()
    if schema < PLACES:
        read_as_indexed(connection)
    connection.execute("PRAGMA query_only = ON").fetchall()


def _prepare(connection: Connection, path: Path, unfinished: bool) -> None:
    version = _check_owner(connection, path, unfinished)
    if not version:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
    [[mode]] = connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if mode != "wal":
        raise OperatorError(f"{path} cannot keep a write-ahead log. Put the home on a local disk.")
    connection.execute("PRAGMA synchronous = FULL").fetchall()
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}").fetchall()
    connection.execute("PRAGMA fullfsync = ON").fetchall()
    connection.execute("PRAGMA checkpoint_fullfsync = ON").fetchall()
    for number, script in enumerate(_SCRIPTS[version:], version + 1):
        connection.executescript(load_script(script))
        if number == CHECKSUMS:
            _add_checksums(connection)
            connection.execute("END")
    _make_shrinkable(connection)
    _place_newest(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    _make_room(connection)


def _make_shrinkable(connection: Connection) -> None:
    """A database of before runs were removed is written anew, while that takes a moment."""
    [[mode]] = connection.execute("PRAGMA auto_vacuum").fetchall()
    [[pages]] = connection.execute("PRAGMA page_count").fetchall()
    [[free]] = connection.execute("PRAGMA freelist_count").fetchall()
    if mode == 0 and pages - free <= MOST_COMPACTED:
        compact(connection)


def compact(connection: Connection) -> None:
    """Write the whole database anew; from then on it shrinks when runs are removed."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
    connection.execute("VACUUM")


def _place_newest(connection: Connection) -> None:
    """Nothing is left to be looked through, and no wrong word about that hides a record.

    Damaged records are told of when their run is read: others go on.
    """
    try:
        connection.execute(_SQL["place_newest"], (MOST_UNPLACED,))
        [[position]] = connection.execute(_SQL["last_commit"]).fetchall()
        connection.execute(_SQL["note_placed"], {"position": position})
    except sqlite3.DatabaseError as error:
        if _code(error) != sqlite3.SQLITE_CORRUPT:
            raise


def _add_checksums(connection: Connection) -> None:
    """To the rows that are there, as they are by now."""
    for table in ("questions", "kept", "definitions"):
        for key, *values in connection.execute(_CHECKED[table]):
            crc = row_crc(values)
            connection.execute(_CHECKED[f"check_{table}"], (crc, key))


def _make_room(connection: Connection) -> None:
    """Let the log have its full length from the start: a transaction too large for the
    page cache spills into it, and is then rolled back."""
    connection.execute(f"PRAGMA cache_size = {_SPILLING_CACHE}").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE room (filler BLOB)")
    connection.execute("INSERT INTO room VALUES (zeroblob(?))", (_LOG_PAGES * _PAGE_BYTES,))
    connection.execute("ROLLBACK")
    connection.execute(f"PRAGMA cache_size = {_CACHE}").fetchall()


def _check_owner(connection: Connection, path: Path, unfinished: bool) -> int:
    """Which schema is there, 0 for none; looks without changing anything."""
    [[tables]] = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return schema_of(connection, path, unfinished=unfinished) if tables else 0


def schema_of(connection: Connection, path: Path, *, unfinished: bool = False) -> int:
    """Which schema a database has, which must be ours, known here, and whole."""
    [[version]] = connection.execute("PRAGMA user_version").fetchall()
    [[application]] = connection.execute("PRAGMA application_id").fetchall()
    if application == UNFINISHED and not unfinished:
        raise OperatorError(
            f"{path.parent} is an unfinished copy: run the same `holdfast copy` again, which goes "
            "on with it, or remove that directory."
        )
    if application not in (APPLICATION, UNFINISHED):
        raise OperatorError(f"{path} belongs to another program. Choose another home.")
    if version > SCHEMA:
        raise JournalTooNew(
            f"{path} was written by a newer Holdfast (schema {version}, this one knows {SCHEMA}). "
            "Upgrade Holdfast, or use the home that belongs to this version."
        )
    return int(version)


def without_checksums(queries: Mapping[str, str]) -> Mapping[str, str]:
    """The same for a database of a schema that has no checksums yet: they are NULL."""
    return {name: _CHECKSUM.sub("NULL", text) for name, text in queries.items()}


def record_crc(place: int, at: float, text: bytes) -> int:
    """`text` is the record's type and payload."""
    return (crc32(_head(place, at) + text) ^ _SIGN) - _SIGN


def add_values(values: list[Any], records: Sequence[Written], position: int, place: int) -> None:
    """Records as they are stored behind a position and a place, each with its checksum."""
    for _, at, kind, payload in records:
        position += 1
        place += 1
        crc = crc32(_head(place, at) + (kind + payload).encode())
        if crc >= _SIGN:
            crc -= _RANGE
        values += (position, place, at, kind, payload, crc)


def record_of(row: tuple[Any, ...], crc_after: int | None) -> Record | None:
    """None where the checksum tells of a change. Records of old, up to the one that has
    `crc_after`, have no checksum; with None nothing there has."""
    place, at, kind, payload, crc = row
    try:
        of_old = crc is None and (crc_after is None or place & 0xFFFFFFFF <= crc_after)
        if not of_old and crc != record_crc(place, at, kind + payload):
            return None
        return Record(place & 0xFFFFFFFF, at, kind.decode(), payload.decode())
    except (UnicodeDecodeError, AttributeError, TypeError, struct.error):
        return None


def snapshot_crc(version: int, schema: int, payload: bytes) -> int:
    return record_crc(version, schema, payload)


def row_crc(values: Iterable[Any]) -> int:
    """Of a row's columns, text as str or as bytes."""
    return (crc32(b"\x1f".join(map(_bytes, values))) ^ _SIGN) - _SIGN


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    return b"\0" if value is None else repr(float(value)).encode()
