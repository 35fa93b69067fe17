"""A disk that remembers every write and can break: SQLite runs on it through apsw.

`Disk` is a SQLite VFS over real files. It logs each write, truncation, sync and
deletion, so that `power_cuts` can tell what a disk would hold if the power had gone
at any of those moments: what was synced is there; of the rest each 512-byte sector
is there or not, by chance. A sync that failed has lost its pages for good: a later
sync does not bring them back, as on Linux.

`ApswConnection` gives an apsw connection the shape of sqlite3's, so that the journal
executes its very own SQL here.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

SECTOR = 512
_names = itertools.count(1)

GROWING_LOG = {"INSERT INTO room VALUES (zeroblob(?))": "INSERT INTO room VALUES (zeroblob(? * 0))"}
"""To be replaced where a commit must need room on the disk: the log starts with none."""


@dataclass(frozen=True, slots=True)
class Write:
    file: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    file: str
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Delete:
    file: str


Operation = Write | Truncate | Sync | Delete


class Disk(apsw.VFS):
    """A breakable disk; `connect` is what a `SqliteJournal` takes.

    `replacing` swaps whole statements, to see what the journal would be without them.
    """

    def __init__(self, replacing: Mapping[str, str] | None = None) -> None:
        self.name = f"disk-{next(_names)}"
        self.log: list[Operation] = []
        self.sound_syncs = 0
        self.failing_syncs = 0
        self.room: int | None = None
        self.replacing = dict(replacing or {})
        self.replaced: set[str] = set()
        super().__init__(self.name, "unix")

    def __enter__(self) -> Disk:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unregister()

    def connect(self, path: Path) -> ApswConnection:
        return ApswConnection(apsw.Connection(str(path), vfs=self.name), self)

    def replacement(self, sql: str) -> str:
        """What is executed in place of a statement, mostly the statement itself."""
        if sql in self.replacing:
            self.replaced.add(sql)
        return self.replacing.get(sql, sql)

    def sync_fails(self) -> bool:
        """Counts off the syncs that go well, then those that do not."""
        if self.sound_syncs:
            self.sound_syncs -= 1
            return False
        if self.failing_syncs:
            self.failing_syncs -= 1
            return True
        return False

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.log.append(Delete(Path(filename).name))
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk
        self._name = Path(path).name if path else ""

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        room = self._disk.room
        if room is not None and offset + len(data) > self.xFileSize():
            if len(data) > room:
                raise apsw.FullError("no room left on the test's disk")
            self._disk.room = room - len(data)
        super().xWrite(data, offset)
        self._disk.log.append(Write(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.log.append(Truncate(self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.sync_fails():
            self._disk.log.append(Sync(self._name, False))
            raise apsw.IOError("the test's disk did not sync")
        self._disk.log.append(Sync(self._name, True))


@dataclass(slots=True)
class _Platter:
    """What the disk has of one file for certain, and what it may lose.

    `durable` is None while the file's name may not be on disk. A deletion is
    pending until its directory is synced, and until then the old file may return.
    """

    durable: bytearray | None = None
    deleted: bool = False
    pending: list[Write | Truncate] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        return self.durable is None or self.deleted

    def sync(self) -> None:
        content = bytearray() if self.is_new else self.durable
        assert content is not None
        for change in self.pending:
            _apply(content, change)
        self.durable, self.deleted = content, False
        self.pending.clear()

    def sync_name(self) -> None:
        if self.deleted:
            self.durable, self.deleted = None, False

    def after_cut(self, chance: random.Random) -> bytes | None:
        if self.is_new and chance.random() < 0.5:
            return None if self.durable is None else bytes(self.durable)
        content = bytearray() if self.is_new else bytearray(self.durable or b"")
        keep = chance.choice([0.0, 0.5, 1.0])
        for change in self.pending:
            for part in _parts(change):
                if chance.random() < keep:
                    _apply(content, part)
        return None if self.is_new and not self.pending else bytes(content)


class _Platters:
    """All files of the directory; the first sync of a new file syncs the directory too."""

    def __init__(self) -> None:
        self._files: dict[str, _Platter] = {}

    def take(self, operation: Operation) -> None:
        file = self._files.setdefault(operation.file, _Platter())
        match operation:
            case Delete():
                file.deleted = True
                file.pending.clear()
            case Sync(succeeded=False):
                file.pending.clear()
            case Sync():
                if file.is_new:
                    for other in self._files.values():
                        if other is not file:
                            other.sync_name()
                file.sync()
            case change:
                file.pending.append(change)

    def after_cut(self, chance: random.Random) -> dict[str, bytes]:
        left = {name: file.after_cut(chance) for name, file in self._files.items()}
        return {name: content for name, content in left.items() if content is not None}


def power_cuts(
    log: Sequence[Operation], positions: Iterable[int], chance: random.Random
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """For each position, in order, the files that a power cut there leaves behind."""
    platters = _Platters()
    done = 0
    for position in sorted(positions):
        for operation in log[done:position]:
            if operation.file:
                platters.take(operation)
        done = position
        yield position, platters.after_cut(chance)


def _parts(change: Write | Truncate) -> Iterator[Write | Truncate]:
    """The pieces that a disk may keep or lose on their own."""
    if isinstance(change, Truncate):
        yield change
        return
    start = 0
    while start < len(change.data):
        end = start + SECTOR - (change.offset + start) % SECTOR
        yield Write(change.file, change.offset + start, change.data[start:end])
        start = end


def _apply(content: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        del content[change.size :]
        return
    end = change.offset + len(change.data)
    content.extend(bytes(max(0, end - len(content))))
    content[change.offset : end] = change.data


class _Rows:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def fetchall(self) -> list[Any]:
        return self._rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def close(self) -> None:
        self._rows = []


class ApswConnection:
    """An apsw connection in the shape of sqlite3's."""

    def __init__(self, connection: apsw.Connection, disk: Disk) -> None:
        self._connection = connection
        self._disk = disk

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes()

    def execute(self, sql: str, parameters: Any = (), /) -> _Rows:
        try:
            cursor = self._connection.execute(self._disk.replacement(sql), parameters or None)
            return _Rows(list(cursor))
        except apsw.Error as error:
            raise _translated(error) from error

    def cursor(self) -> ApswConnection:
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> _Rows:
        for each in parameters:
            self.execute(sql, each)
        return _Rows([])

    def executescript(self, sql_script: str, /) -> _Rows:
        return self.execute(sql_script)

    def close(self) -> None:
        self._connection.close()


_TRANSLATIONS: dict[type[apsw.Error], tuple[type[sqlite3.Error], int]] = {
    apsw.IOError: (sqlite3.OperationalError, sqlite3.SQLITE_IOERR),
    apsw.FullError: (sqlite3.OperationalError, sqlite3.SQLITE_FULL),
    apsw.BusyError: (sqlite3.OperationalError, sqlite3.SQLITE_BUSY),
    apsw.ConstraintError: (sqlite3.IntegrityError, sqlite3.SQLITE_CONSTRAINT),
    apsw.CorruptError: (sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT),
}


def _translated(error: apsw.Error) -> sqlite3.Error:
    kind, code = _TRANSLATIONS[type(error)]
    translated = kind(str(error))
    translated.sqlite_errorcode = code
    return translated
