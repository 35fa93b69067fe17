"""The journals that ship with the package pass the suite that ships with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.journal import database
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.sqlite import SqliteJournal
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


class TestPostgres(JournalSuite):
    @pytest.fixture
    def connect(self, database: str) -> Callable[[], Journal]:
        return lambda: PostgresJournal(database)
