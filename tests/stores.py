"""Applications of tests, kept elsewhere than the tests say.

A test says `Holdfast.in_memory()` or `Holdfast(home)`, and is about what every store does. With
HOLDFAST_TESTS_ON=sqlite the first is kept in a file, with postgresql both are kept in a database,
the same home always in the same one. `make test` goes through them once with each.

What brings a store of its own, or is about one, is marked `own_store` and left out there; so are
the files of ONE_STORE_IS_ENOUGH.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import Holdfast, app
from holdfast.journal.home import DATABASE, database_url
from holdfast.journal.port import Journal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.runtime.dispatch import Dispatcher
from holdfast.runtime.slots import SharedLimit
from postgresql_server import Server, migrated

ELSEWHERE = os.environ.get("HOLDFAST_TESTS_ON")
ONE_STORE_IS_ENOUGH = {
    "tests/server": [
        # The forms of requests, documents and pages, before anything is asked of a store.
        *("test_attacks_pages", "test_attacks_wire", "test_catalogue", "test_contract"),
        *("test_openapi", "test_problems", "test_security"),
        # Who somebody is, and what they may do.
        *("test_jwt", "test_principal"),
        # What a process bears: connections, refusals, memory, the event loop.
        *("test_admission", "test_bounds", "test_connections", "test_large_runs", "test_limits"),
        *("test_proxies", "test_soak"),
        # What a client makes of what it is sent.
        "test_client",
        # Secrets are looked for in the files of a home.
        "test_canary",
        # They bring stores of their own.
        *("test_disk_trouble", "test_tokens"),
    ],
}
"""Files, by their folder, that need not be gone through with every store."""

USES = 40
"""How often a database is given out: what is deleted from it stays until it goes."""


def kept_in_files(patch: pytest.MonkeyPatch, new_home: Callable[[], Path]) -> Iterator[None]:
    def in_memory(cls: type[Holdfast], **options: Any) -> Holdfast:
        return cls(journal=SqliteJournal(new_home() / DATABASE), **options)

    patch.setattr(Holdfast, "in_memory", classmethod(in_memory))
    yield


def kept_in_databases(patch: pytest.MonkeyPatch, databases: Databases) -> Iterator[None]:
    taken: list[str] = []
    journal_of = app._journal

    def take() -> str:
        taken.append(databases.take())
        return taken[-1]

    def in_memory(cls: type[Holdfast], **options: Any) -> Holdfast:
        return cls(database=take(), **options)

    def journal(home: Path, database: str | None) -> Journal:
        said = database or database_url()
        if not said:
            said = _HOMES[home] = _HOMES.get(home) or take()
        return journal_of(home, said)

    dispatching = Holdfast._dispatching

    async def dispatching_soon(self: Holdfast) -> Dispatcher | None:
        """What is begun here is driven here from its birth on: there are jobs in reserve, and
        permits."""
        dispatcher = await dispatching(self)
        if dispatcher is not None and self.engine.drives is not None:
            await dispatcher.ready.wait()
            await self.engine.drives._reserve()
            limit = self.engine._limit
            assert isinstance(limit, SharedLimit)
            while limit.free <= 0:
                limit._moved.set()
                await asyncio.sleep(0.001)
        return dispatcher

    patch.setattr(Holdfast, "in_memory", classmethod(in_memory))
    patch.setattr(Holdfast, "_dispatching", dispatching_soon)
    patch.setattr(app, "_journal", journal)
    yield
    _HOMES.clear()
    for url in taken:
        databases.give_back(url)


_HOMES: dict[Path, str] = {}


def rows_of(home: Path) -> list[bytes]:
    """All that is in the database in which a home is kept, as text; nothing if there is none."""
    if home not in _HOMES:
        return []
    with psycopg.connect(_HOMES[home]) as connection:
        tables = [table for (table,) in connection.execute(TABLES).fetchall()]
        texts = (f"SELECT {table}::text FROM {table}".encode() for table in tables)
        return [row.encode() for text in texts for (row,) in connection.execute(text).fetchall()]


class Databases:
    """Of one server, with Holdfast's schema. Making one takes ten times as long as emptying it, so
    they are given out again, except where somebody stays connected."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._uses: Counter[str] = Counter()
        self._returned: list[str] = []
        self._first_rows: dict[str, list[tuple[Any, ...]]] = {}

    def take(self) -> str:
        while self._returned:
            url = self._returned.pop()
            if self._uses[url] < USES and self._emptied(url):
                break
            self._server.drop_database(url)
        else:
            url = self._new()
        self._uses[url] += 1
        return url

    def give_back(self, url: str) -> None:
        self._returned.append(url)

    def _new(self) -> str:
        url = self._server.create_database(migrated)
        if not self._first_rows:
            with psycopg.connect(url) as connection:
                tables = connection.execute(TABLES).fetchall()
                for (table,) in tables:
                    rows = connection.execute(f"SELECT * FROM {table}".encode()).fetchall()
                    self._first_rows[table] = rows
        return url

    def _emptied(self, url: str) -> bool:
        """As it was when it was made; not while others are connected, who may have yet to go."""
        with psycopg.connect(url, autocommit=True) as connection:
            limit = time.monotonic() + PATIENCE
            while connection.execute(OTHERS).fetchone() is not None:
                if time.monotonic() > limit:
                    return False
                time.sleep(0.002)
            tables = [table for (table,) in connection.execute(TABLES).fetchall()]
            if tables != list(self._first_rows):
                return False
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")  # in any order
                cursor.execute("; ".join(f"DELETE FROM {table}" for table in tables).encode())
                cursor.execute(SEQUENCES)
                for table, rows in self._first_rows.items():
                    for row in rows:
                        places = ", ".join(["%s"] * len(row))
                        cursor.execute(f"INSERT INTO {table} VALUES ({places})".encode(), row)
        return True


PATIENCE = 2.0
OTHERS = """
SELECT FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
TABLES = """
SELECT relname::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname
"""
SEQUENCES = "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"
