"""The limit of every system here: durable single-row commits, one after another."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

ROW = '{"type":"effect_finished","task":"t0001","result":{"n":1}}'


@dataclass(frozen=True, slots=True)
class RawSample:
    commits_per_second: float
    bytes_per_row: float
    commit_ms: float


def measure(directory: Path, seconds: float) -> RawSample:
    """Commit rows for `seconds` into a new database in `directory`, then remove it."""
    path = directory / "raw.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _prepare(connection)
        empty = path.stat().st_size
        rows, elapsed = _commit_for(connection, seconds)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        growth = path.stat().st_size - empty
    path.unlink()
    return RawSample(rows / elapsed, growth / rows, elapsed / rows * 1e3)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE event (run TEXT, seq INTEGER, body TEXT)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _commit_for(connection: sqlite3.Connection, seconds: float) -> tuple[int, float]:
    rows, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        connection.execute("INSERT INTO event VALUES ('run-1', ?, ?)", (rows, ROW))
        rows += 1
    return rows, elapsed
