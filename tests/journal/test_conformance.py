"""The journals that ship with the package pass the suite that ships with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
import pytest

from holdfast.journal import database
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal, PrunedJournal
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.shared import SharedJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_removal import RemovalSuite
from holdfast.testing.journal_shared import Job, Jobs, SharedSuite
from holdfast.testing.journal_suite import JournalSuite


class TestMemory(JournalSuite):
    @pytest.fixture
    def connect(self) -> Callable[[], Journal]:
        journal = MemoryJournal()
        return lambda: journal


class TestSqlite(JournalSuite):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Callable[[], Journal]:
        return lambda: SqliteJournal(tmp_path / "home" / "journal.db")


class TestSqliteWhosePlacesAreWrittenOften(TestSqlite):
    @pytest.fixture(autouse=True)
    def often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", 3)


class TestRemovalFromMemory(RemovalSuite):
    @pytest.fixture
    def connect(self) -> Callable[[], PrunedJournal]:
        journal = MemoryJournal()
        return lambda: journal


class TestRemovalFromSqlite(RemovalSuite):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Callable[[], PrunedJournal]:
        return lambda: SqliteJournal(tmp_path / "home" / "journal.db")


class TestRemovalFromSqliteWhosePlacesAreWrittenOften(TestRemovalFromSqlite):
    @pytest.fixture(autouse=True)
    def often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", 3)


class TestPostgres(JournalSuite):
    @pytest.fixture
    def connect(self, database: str) -> Callable[[], Journal]:
        return lambda: PostgresJournal(database)


class TestRemovalFromPostgres(RemovalSuite):
    @pytest.fixture
    def connect(self, database: str) -> Callable[[], PrunedJournal]:
        return lambda: PostgresJournal(database)


class TestPostgresShared(SharedSuite):
    @pytest.fixture
    def connect(self, database: str) -> Callable[[], SharedJournal]:
        with psycopg.connect(database) as connection:
            [worker_id] = connection.execute(
                "SELECT worker_id FROM procrastinate_register_worker_v1()"
            ).fetchone() or [None]

        def connected() -> SharedJournal:
            journal = PostgresJournal(database)
            journal.worker_id = worker_id
            return journal

        return connected

    @pytest.fixture
    def jobs(self, database: str) -> Jobs:
        async def told() -> list[Job]:
            async with await psycopg.AsyncConnection.connect(database) as connection:
                rows = await connection.execute(
                    "SELECT id, lock, status::text, attempts FROM procrastinate_jobs ORDER BY id"
                )
                return [Job(*row) async for row in rows]

        return told

    @pytest.fixture
    def lose_jobs(self, database: str) -> Callable[[], Awaitable[None]]:
        async def lost() -> None:
            async with await psycopg.AsyncConnection.connect(database) as connection:
                await connection.execute("DELETE FROM procrastinate_jobs")

        return lost
