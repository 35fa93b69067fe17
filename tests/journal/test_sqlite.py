"""The embedded journal: where it commits, what fails alone, and what it says at the door."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import (
    InternalError,
    JournalDamaged,
    JournalTooNew,
    JournalUnavailable,
    OperatorError,
    VersionConflict,
)
from holdfast.journal import append_writer, database, writer
from holdfast.journal.port import (
    Append,
    Attached,
    Committed,
    ExpiringValue,
    Journal,
    Record,
    Snapshot,
    StoredDefinition,
    verify,
)
from holdfast.journal.rows import load_queries, load_script
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import (
    audit_record,
    birth,
    outcomes,
    question_row,
    records,
    run_row,
    step,
)


class Spy:
    """A connection that notes which thread executed which statement.

    A statement outside of a transaction commits what it has changed, which is noted too.
    """

    def __init__(self, path: Path, seen: list[tuple[str, int]]) -> None:
        self._connection = database.connect(path)
        self._seen = seen

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes

    def execute(self, sql: str, parameters: Any = (), /) -> database.Cursor:
        self._seen.append((sql, threading.get_ident()))
        inside, changes = self.in_transaction, self.total_changes
        rows = self._connection.execute(sql, parameters)
        if not inside and self.total_changes != changes:
            self._seen.append(("COMMIT", threading.get_ident()))
        return rows

    def cursor(self) -> database.Executor:
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> database.Cursor:
        return self._connection.executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> database.Cursor:
        return self._connection.executescript(sql_script)

    def close(self) -> None:
        self._connection.close()


class OutOfMemory(Spy):
    """Fails once, at one run of a batch, and rolls the batch back as SQLite does."""

    failed = False

    def execute(self, sql: str, parameters: Any = (), /) -> database.Cursor:
        if "inst_000002" in parameters and not self.failed:
            self.failed = True
            super().execute("ROLLBACK")
            raise MemoryError
        return super().execute(sql, parameters)


class SlowToCommit(Spy):
    def execute(self, sql: str, parameters: Any = (), /) -> database.Cursor:
        if sql == "COMMIT":
            time.sleep(0.02)
        return super().execute(sql, parameters)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def seen() -> list[tuple[str, int]]:
    return []


@pytest.fixture
async def journal(path: Path, seen: list[tuple[str, int]]) -> AsyncIterator[SqliteJournal]:
    journal = SqliteJournal(path, connect=lambda path: Spy(path, seen))
    await journal.open()
    yield journal
    await journal.close()


def commits(seen: list[tuple[str, int]]) -> list[int]:
    return [thread for sql, thread in seen if sql == "COMMIT"]


def open_once(path: Path) -> None:
    async def scenario() -> None:
        journal = SqliteJournal(path)
        await journal.open()
        await journal.close()

    asyncio.run(scenario())


def damage(path: Path) -> None:
    """The last pages of the file become nonsense."""
    path.write_bytes(path.read_bytes()[:-8192] + b"\x99" * 8192)


def make_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every commit counts as slow."""
    monkeypatch.setattr(writer, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(writer, "SLOW_WRITE_SECONDS", 0.0)


def test_sqlite_journal_fits_the_port(path: Path) -> None:
    journal: Journal = SqliteJournal(path)
    assert journal.epoch == 0


class TestWhereItCommits:
    @pytest.fixture(autouse=True)
    def patient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The machine's mood must not decide what counts as a slow disk."""
        monkeypatch.setattr(writer, "SLOW_SECONDS", 3600.0)

    async def test_a_lone_append_commits_on_the_loop(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        await journal.append(birth())
        for version in range(1, 20):
            await journal.append(step("inst_000001", version))
        assert commits(seen) == [threading.get_ident()] * 20

    async def test_records_alone_take_one_statement(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        await journal.append(birth())
        seen.clear()
        await journal.append(step("inst_000001", 1, count=3))
        assert [sql for sql, _ in seen[1:]] == ["COMMIT"]

    @pytest.mark.parametrize("count", [1, 15, 16, 17, 32, 33, 100])
    async def test_any_number_of_records_is_one_commit(
        self, journal: SqliteJournal, seen: list[tuple[str, int]], count: int
    ) -> None:
        await journal.append(birth())
        seen.clear()
        assert await journal.append(step("inst_000001", 1, count=count)) == 1 + count
        assert len(commits(seen)) == 1
        assert await journal.read("inst_000001") == records(0, 1) + records(1, count)

    async def test_a_crowd_shares_a_commit_on_the_loop(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        """Beside a busy loop a thread would wait for the interpreter at every statement."""
        names = [f"inst_{n:06d}" for n in range(200)]
        await outcomes(journal, [birth(name) for name in names])
        assert commits(seen) == [threading.get_ident()] * 2
        seen.clear()
        await outcomes(journal, [step(name, 1) for name in names])
        assert commits(seen) == [threading.get_ident()]

    async def test_a_crowd_shares_commits_on_the_thread_where_the_disk_is_slow(
        self,
        journal: SqliteJournal,
        seen: list[tuple[str, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        names = [f"inst_{n:06d}" for n in range(50)]
        await outcomes(journal, [birth(name) for name in names])
        make_slow(monkeypatch)
        await journal.append(birth("later"))
        seen.clear()
        await outcomes(journal, [step(name, 1) for name in names])
        assert len(commits(seen)) == 1
        assert threading.get_ident() not in commits(seen)

    async def test_the_loop_tries_a_slow_disk_again_ever_more_rarely(
        self,
        journal: SqliteJournal,
        seen: list[tuple[str, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        make_slow(monkeypatch)
        await journal.append(birth())
        for version in range(1, 2 + 3 * writer.FIRST_AWAY):
            await journal.append(step("inst_000001", version))
        here = [one == threading.get_ident() for one in commits(seen)]
        away = [False] * writer.FIRST_AWAY
        assert here == [True, *away, True, *away, *away]

    async def test_the_loop_commits_again_once_the_thread_was_quick(
        self,
        journal: SqliteJournal,
        seen: list[tuple[str, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        with monkeypatch.context() as slowly:
            make_slow(slowly)
            await journal.append(birth())
        for version in range(1, 4):
            await journal.append(step("inst_000001", version))
        here = [one == threading.get_ident() for one in commits(seen)]
        assert here == [True, False, True, True]

    async def test_a_disk_that_is_quick_again_is_soon_tried_again_when_it_is_not(
        self,
        journal: SqliteJournal,
        seen: list[tuple[str, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        with monkeypatch.context() as slowly:
            make_slow(slowly)
            await journal.append(birth())
            for version in range(1, 2 + 2 * writer.FIRST_AWAY):
                await journal.append(step("inst_000001", version))
        for _ in range(3):
            await journal.append(step("inst_000001", version := version + 1))
        seen.clear()
        make_slow(monkeypatch)
        for _ in range(2 + writer.FIRST_AWAY):
            await journal.append(step("inst_000001", version := version + 1))
        here = [one == threading.get_ident() for one in commits(seen)]
        assert here == [True, *[False] * writer.FIRST_AWAY, True]

    async def test_batches_are_bounded(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        names = [f"inst_{n:06d}" for n in range(3 * writer.BATCH)]
        assert await outcomes(journal, [birth(name) for name in names]) == [1] * len(names)
        assert len(commits(seen)) >= 4

    @pytest.mark.parametrize("turns", [0, 1], ids=["gathering", "handed over"])
    async def test_a_close_waits_for_all_that_was_accepted_before_a_disk_turned_slow(
        self,
        path: Path,
        seen: list[tuple[str, int]],
        turns: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The first batch is committed on the loop, and the rest is left to the thread."""
        monkeypatch.setattr(writer, "BATCH", 4)
        journal = SqliteJournal(path, connect=lambda path: SlowToCommit(path, seen))
        await journal.open()
        await outcomes(journal, [birth(f"first_{n}") for n in range(3)])
        make_slow(monkeypatch)
        waiting = [asyncio.ensure_future(journal.append(birth(f"inst_{n}"))) for n in range(10)]
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await journal.close()
        assert await asyncio.gather(*waiting) == [1] * 10

    async def test_a_snapshot_never_blocks_the_loop(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        await journal.append(birth())
        seen.clear()
        await journal.save_snapshot(Snapshot("inst_000001", 1, 1, "{}"))
        assert len(commits(seen)) == 1
        assert threading.get_ident() not in commits(seen)

    async def test_a_slow_disk_is_left_to_the_thread(
        self,
        journal: SqliteJournal,
        seen: list[tuple[str, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        make_slow(monkeypatch)
        await journal.append(birth())
        seen.clear()
        await journal.append(step("inst_000001", 1))
        assert threading.get_ident() not in commits(seen)

    async def test_a_lone_writer_lets_others_in(self, journal: SqliteJournal) -> None:
        await journal.append(birth())
        turns = 0

        async def bystander() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(bystander())
        for version in range(1, 31):
            await journal.append(step("inst_000001", version))
        task.cancel()
        assert turns >= 30

    async def test_a_cancelled_append_disturbs_nobody(self, journal: SqliteJournal) -> None:
        tasks = [asyncio.ensure_future(journal.append(birth(f"inst_{n:06d}"))) for n in range(10)]
        tasks[3].cancel()
        told = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(told[3], asyncio.CancelledError)
        assert [word for n, word in enumerate(told) if n != 3] == [1] * 9
        assert await journal.append(birth("later")) == 1


class TestItsCounts:
    COUNTING = ("run_counts", "question_counts")

    def counted(self, seen: list[tuple[str, int]]) -> list[int]:
        """By which threads all rows were looked at."""
        queries = {TestItsSql.QUERIES[name] for name in self.COUNTING}
        return [thread for sql, thread in seen if sql in queries]

    async def test_all_rows_are_looked_at_once_and_not_on_the_loop(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        await journal.append(birth())
        for version in range(1, 10):
            row = run_row("inst_000001", status="pause" if version % 2 else "running")
            asked = [question_row(f"q{version}", "inst_000001")]
            await journal.append(step("inst_000001", version, row=row, questions=asked))
            assert await journal.run_counts() == {("plan", row.status): 1}
            assert await journal.question_counts() == {("open", "missing_info"): version}
        looks = self.counted(seen)
        assert len(looks) == 2
        assert threading.get_ident() not in looks

    async def test_appends_that_nobody_counts_take_no_further_statement(
        self, journal: SqliteJournal, seen: list[tuple[str, int]]
    ) -> None:
        asked = [question_row("q1", "inst_000001")]
        await journal.append(birth())
        await journal.append(step("inst_000001", 1, questions=asked))
        assert TestItsSql.QUERIES["question_pair"] not in [sql for sql, _ in seen]

    async def test_what_was_taken_back_is_not_counted(self, journal: SqliteJournal) -> None:
        await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(5)])
        assert await journal.run_counts() == {("plan", "running"): 5}
        done = [
            step(f"inst_{n:06d}", 1, row=run_row(f"inst_{n:06d}", status="done")) for n in range(5)
        ]
        broken = [Record(2, 1.0, "happened", TestWhatFailsAlone.UNWRITABLE)]
        done[2] = Append("inst_000002", 1, broken, row=run_row("inst_000002", status="done"))
        await outcomes(journal, done)
        assert await journal.run_counts() == {("plan", "running"): 1, ("plan", "done"): 4}
        await outcomes(journal, [done[2]])
        assert await journal.run_counts() == {("plan", "running"): 1, ("plan", "done"): 4}

    async def test_counting_in_company_sees_what_the_company_wrote(
        self, journal: SqliteJournal
    ) -> None:
        first = [journal.append(birth(f"inst_{n:06d}")) for n in range(3)]
        later = [journal.append(birth(f"inst_{n:06d}")) for n in range(3, 6)]
        await asyncio.gather(*first, journal.run_counts(), *later)
        assert await journal.run_counts() == {("plan", "running"): 6}

    async def test_a_journal_that_takes_nothing_still_counts(
        self, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await journal.append(birth())

        def refuse(*given: Any, **named: Any) -> None:
            raise JournalUnavailable("no disk")

        monkeypatch.setattr(writer.Writer, "write", refuse)
        assert await journal.run_counts() == {("plan", "running"): 1}


class TestWhatFailsAlone:
    UNWRITABLE = "\ud800"

    async def test_an_append_that_breaks_half_way_leaves_its_company_whole(
        self, journal: SqliteJournal
    ) -> None:
        await outcomes(journal, [birth(f"inst_{n:06d}") for n in range(9)])
        appends = [step(f"inst_{n:06d}", 1) for n in range(9)]
        broken = [*records(1, 1), Record(3, 1.0, "happened", self.UNWRITABLE)]
        appends[4] = Append("inst_000004", 1, broken, row=run_row("inst_000004", status="done"))
        appends[6] = step("inst_000006", 5)
        told = await outcomes(journal, appends)
        assert isinstance(told[4], UnicodeEncodeError)
        assert isinstance(told[6], VersionConflict)
        assert [word for n, word in enumerate(told) if n not in (4, 6)] == [2] * 7
        assert await journal.read("inst_000004") == records(0, 1)
        assert await journal.run("inst_000004") == run_row("inst_000004")
        assert await journal.read("inst_000005") == records(0, 2)
        assert journal.epoch == 0

    async def test_a_lone_append_that_breaks_half_way_leaves_nothing(
        self, journal: SqliteJournal
    ) -> None:
        await journal.append(birth())
        broken = [*records(1, 1), Record(3, 1.0, "happened", self.UNWRITABLE)]
        with pytest.raises(UnicodeEncodeError):
            await journal.append(Append("inst_000001", 1, broken))
        assert await journal.append(step("inst_000001", 1)) == 2
        assert await journal.read("inst_000001") == records(0, 2)

    @pytest.mark.parametrize("count", [3, 4, 30])
    async def test_nothing_is_written_once_sqlite_has_taken_the_beginning_back(
        self, path: Path, seen: list[tuple[str, int]], count: int
    ) -> None:
        """Where it runs out of memory it rolls back all that the others have written."""
        journal = SqliteJournal(path, connect=lambda path: OutOfMemory(path, seen))
        await journal.open()
        names = ["first", *(f"inst_{n:06d}" for n in range(count))]
        told = await outcomes(journal, [birth(name) for name in names])
        assert told[0] == 1
        assert all(isinstance(one, JournalUnavailable) for one in told[1:])
        assert [row.run_id for row in await journal.runs()] == ["first"]
        assert await journal.last_commit() == 1
        await journal.close()

    async def test_a_value_that_sqlite_does_not_know_is_our_mistake(
        self, journal: SqliteJournal
    ) -> None:
        odd: Any = object()
        with pytest.raises(InternalError):
            await journal.append(
                Append(
                    "inst_000001",
                    0,
                    [Record(1, 1.0, "happened", "{}")],
                    replace(run_row(), title=odd),
                )
            )
        assert await journal.append(birth()) == 1
        assert journal.epoch == 0

    async def test_a_write_lock_held_elsewhere_is_unavailable_not_lost(
        self, journal: SqliteJournal, path: Path
    ) -> None:
        await journal.append(birth())
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalUnavailable, match="other program"):
            await journal.append(step("inst_000001", 1))
        assert await journal.read("inst_000001") == records(0, 1)
        other.execute("ROLLBACK")
        other.close()
        while await journal.version("inst_000001") == 1:
            await outcomes(journal, [step("inst_000001", 1)])
            await asyncio.sleep(0.01)
        assert await journal.read("inst_000001") == records(0, 2)

    async def test_whether_the_disk_works_again_is_not_tried_on_the_loop(
        self,
        journal: SqliteJournal,
        path: Path,
        seen: list[tuple[str, int]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)
        monkeypatch.setattr(writer, "SLOW_SECONDS", 3600.0)
        await journal.append(birth())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalUnavailable):
                await journal.append(step("inst_000001", 1))
        seen.clear()
        assert await journal.append(step("inst_000001", 1)) == 2
        assert len(commits(seen)) == 2
        assert threading.get_ident() not in [thread for _, thread in seen]


class TestAtTheDoor:
    def test_the_home_is_created_private_to_its_owner(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "home" / "journal.db"
        open_once(path)
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0

    def test_closing_leaves_one_complete_file(self, path: Path) -> None:
        open_once(path)
        assert sorted(file.name for file in path.parent.iterdir()) == [
            "journal.db",
            "journal.db.lock",
        ]

    def test_a_file_that_is_no_database_is_left_alone(self, path: Path) -> None:
        path.write_text("Dear diary, nothing was lost today. " * 50)
        with pytest.raises(JournalDamaged, match=r"journal\.db is not a SQLite database"):
            open_once(path)
        assert path.read_text().startswith("Dear diary")

    def test_a_damaged_database_names_its_remedy(self, path: Path) -> None:
        open_once(path)
        content = bytearray(path.read_bytes())
        content[100:4096] = b"\x99" * 3996
        path.write_bytes(content)
        with pytest.raises(JournalDamaged, match=r"journal\.db is damaged.*backup"):
            open_once(path)

    def test_a_newer_schema_is_not_touched(self, path: Path) -> None:
        open_once(path)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(JournalTooNew, match=r"schema 99.*Upgrade"):
            open_once(path)

    def test_a_database_of_another_program_is_not_touched(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
        connection.close()
        with pytest.raises(OperatorError, match="belongs to another program"):
            open_once(path)

    def test_a_directory_is_no_database(self, path: Path) -> None:
        path.mkdir()
        with pytest.raises(OperatorError, match="Give the path of a file"):
            open_once(path)

    def test_a_home_below_a_file_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(OperatorError, match="cannot be used as a home"):
            open_once(tmp_path / "file" / "journal.db")

    @pytest.mark.parametrize(
        ("code", "remedy"),
        [
            (sqlite3.SQLITE_READONLY, "writable for this user"),
            (sqlite3.SQLITE_CANTOPEN, "readable and writable"),
            (sqlite3.SQLITE_IOERR_READ, "Look at the disk"),
            (sqlite3.SQLITE_PROTOCOL, "goes on by itself"),
        ],
    )
    def test_every_failure_says_what_to_do(self, path: Path, code: int, remedy: str) -> None:
        error = sqlite3.OperationalError("it failed")
        error.sqlite_errorcode = code
        told = database.explain(error, path)
        assert isinstance(told, JournalUnavailable)
        assert str(path) in str(told)
        assert remedy in str(told)

    def test_a_failed_opening_lets_go_of_the_home(self, path: Path) -> None:
        path.write_text("not a database at all, but long enough to be looked at " * 20)
        with pytest.raises(JournalDamaged):
            open_once(path)
        path.unlink()
        open_once(path)

    async def test_damage_met_while_reading_is_reported(self, path: Path) -> None:
        journal = SqliteJournal(path)
        await journal.open()
        await journal.append(birth(count=2000))
        await journal.close()
        damage(path)
        await journal.open()
        assert await journal.check() != []
        with pytest.raises(JournalDamaged):
            await journal.read("inst_000001")
        await journal.close()

    async def test_a_gap_is_never_passed_over(self, journal: SqliteJournal, path: Path) -> None:
        await journal.append(birth(count=5))
        vandal = sqlite3.connect(path, isolation_level=None)
        vandal.execute("DELETE FROM events WHERE place & 0xFFFFFFFF = 3")
        vandal.close()
        assert await journal.read("inst_000001", limit=2) == records(0, 2)
        with pytest.raises(JournalDamaged, match="inst_000001 between 1 and 5"):
            await journal.read("inst_000001")

    async def test_a_sound_database_passes_its_check(self, journal: SqliteJournal) -> None:
        await journal.append(birth())
        assert await journal.check() == []


class TestOlderDatabases:
    def test_a_database_of_the_first_schema_gains_what_is_new(self, path: Path) -> None:
        self.create_first(path)
        open_once(path)
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA user_version").fetchone() == (database.SCHEMA,)
        connection.close()

    async def test_its_runs_go_on_and_only_what_is_new_has_a_position(self, path: Path) -> None:
        self.create_first(path)
        journal = SqliteJournal(path)
        await journal.open()
        assert await journal.read("inst_000001") == records(0, 2)
        assert await journal.last_commit() == 0
        assert await journal.commits() == []
        await journal.append(step("inst_000001", 2, attached=Attached([audit_record()])))
        assert await journal.commits() == [Committed(1, "inst_000001", 3, 3)]
        assert len(await journal.audit()) == 1
        await journal.close()

    async def test_an_opening_that_was_cut_short_is_made_good(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(load_script("sqlite_schema.sql"))
        connection.close()
        for commits in ([], [Committed(1, "inst_000001", 1, 1)]):
            journal = SqliteJournal(path)
            await journal.open()
            assert await journal.commits() == commits
            if not commits:
                await journal.append(replace(birth(), attached=Attached([audit_record()])))
            assert len(await journal.audit()) == 1
            await journal.close()

    @staticmethod
    def create_first(path: Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript(load_script("sqlite_schema.sql"))
        row = astuple(run_row())
        columns = ", ".join(one.name for one in fields(run_row()))
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO runs ({columns}) VALUES ({marks})", row)
        add = "INSERT INTO events (place, at, type, payload) VALUES (?, ?, ?, ?)"
        for one in records(0, 2):
            connection.execute(
                add, (append_writer.place(1, one.seq), one.at, one.type, one.payload)
            )
        connection.close()


class TestDefinitions:
    @pytest.mark.parametrize("length", [10, 1_000, 1_001, 100_000])
    async def test_a_body_of_any_length_comes_back_as_it_was(
        self, journal: SqliteJournal, length: int
    ) -> None:
        body = ('{"名": 1}' * length)[:length]
        stored = StoredDefinition("d", "plan", "n", body, 1.0)
        await journal.store_definition(stored)
        assert await journal.definition("d") == stored
        assert await journal.definitions("plan", "n") == [stored]

    async def test_a_long_body_takes_a_fraction_of_its_size(self, journal: SqliteJournal) -> None:
        body = json.dumps([{"task_id": f"{n:04d}"} for n in range(2_000)])
        await journal.store_definition(StoredDefinition("d", "plan", "n", body, 1.0))
        with closing(sqlite3.connect(journal.path)) as other:
            [[size]] = other.execute("SELECT length(body) FROM definitions").fetchall()
        assert size < len(body) / 4


class TestTheOrderOfCommits:
    async def test_every_position_stays_and_goes_on_after_reopening(
        self, journal: SqliteJournal
    ) -> None:
        for version in range(20):
            for run_id in ("a", "b"):
                await journal.append(step(run_id, version) if version else birth(run_id))
        await journal.close()
        await journal.open()
        assert await journal.last_commit() == 40
        await journal.append(step("a", 20))
        all_of_them = [Committed(n, "ba"[n % 2], (n + 1) // 2, (n + 1) // 2) for n in range(1, 42)]
        assert await journal.commits() == all_of_them
        assert await journal.commits(39) == all_of_them[39:]

    async def test_what_one_run_appended_in_a_row_is_one_stretch(
        self, journal: SqliteJournal
    ) -> None:
        await journal.append(birth("a"))
        for version in range(1, 100):
            await journal.append(step("a", version))
        assert await journal.commits() == [Committed(100, "a", 1, 100)]
        assert await journal.commits(40, 10) == [Committed(50, "a", 41, 50)]

    async def test_a_refused_append_takes_no_position(self, journal: SqliteJournal) -> None:
        await journal.append(birth("a"))
        given = [step("a", 1), step("a", 7), birth("a"), birth("b"), step("a", 2)]
        told = await asyncio.gather(*map(journal.append, given), return_exceptions=True)
        assert [type(one).__name__ for one in told] == [
            *("int", "VersionConflict", "VersionConflict", "int", "int"),
        ]
        found = [(one.position, one.run_id, one.last) for one in await journal.commits()]
        assert found == [(2, "a", 2), (3, "b", 1), (4, "a", 3)]

    async def test_an_append_that_fails_half_way_takes_none_either(
        self, journal: SqliteJournal
    ) -> None:
        """Its records were gathered before its child turned out to exist."""
        await journal.append(birth("a"))
        await journal.append(birth("child"))
        spoiled = replace(step("a", 1), child_appends=[birth("child")])
        told = await asyncio.gather(
            *map(journal.append, [birth("b"), spoiled, step("a", 1)]), return_exceptions=True
        )
        assert [type(one).__name__ for one in told] == ["int", "VersionConflict", "int"]
        found = [(one.position, one.run_id, one.last) for one in await journal.commits(2)]
        assert found == [(3, "b", 1), (4, "a", 2)]
        assert await journal.version("a") == 2


class TestWhatIsAttached:
    async def test_what_has_expired_goes_a_little_at_a_time(
        self, journal: SqliteJournal, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(append_writer, "EXPIRED_AT_ONCE", 4)
        old = [ExpiringValue("request", f"{n}", "{}", 100.0) for n in range(10)]
        await journal.attach(Attached(kept=old))
        left = []
        for _ in range(3):
            await journal.attach(Attached([audit_record(at=200.0)]))
            left.append(len(await journal.all_kept("request", 0.0)))
        assert left == [6, 2, 0]

    async def test_an_edit_of_the_table_is_found(self, journal: SqliteJournal, path: Path) -> None:
        await journal.attach(
            Attached([audit_record("one"), audit_record("two"), audit_record("three")])
        )
        assert verify(await journal.audit()) is None
        vandal = sqlite3.connect(path, isolation_level=None)
        vandal.execute("UPDATE audit SET who = 'nobody' WHERE number = 2")
        assert verify(await journal.audit()) == "entry 2 has been changed since it was written"
        vandal.execute("DELETE FROM audit WHERE number = 2")
        assert "entry 2 is missing" in str(verify(await journal.audit()))
        vandal.close()


class TestItsSql:
    QUERIES = load_queries("sqlite_queries.sql")

    def test_the_schema_carries_the_numbers_that_the_code_expects(self, path: Path) -> None:
        open_once(path)
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA user_version").fetchone() == (database.SCHEMA,)
        assert connection.execute("PRAGMA application_id").fetchone() == (database.APPLICATION,)
        connection.close()

    @pytest.mark.parametrize("name", sorted(QUERIES))
    def test_no_query_reads_a_whole_table_or_sorts(self, path: Path, name: str) -> None:
        """So 100,000 waiting runs cost a start-up and a page nothing."""
        open_once(path)
        connection = sqlite3.connect(path)
        steps = self.plan(connection, self.QUERIES[name])
        connection.close()
        whole = {
            "notices": ["SCAN notices"],
            "probe": ["SCAN probes"],
            "run_counts": ["SCAN runs USING COVERING INDEX runs_kind_status"],
            "question_counts": ["SCAN questions USING COVERING INDEX questions_status_type"],
            # These take one row, from the end.
            "last_audited": ["SCAN audit"],
        }
        scans = [line for line in steps if line.startswith("SCAN") and "json_each" not in line]
        assert scans in ([], whole.get(name))
        sorts = [line for line in steps if "TEMP B-TREE" in line]
        assert sorts == [] or name in ("notices_for", "read_events")

    @staticmethod
    def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
        count = sql.count("?")
        names = {word.strip(":,()") for word in sql.split() if ":" in word}
        values: Any = [1] * count if count else dict.fromkeys(names, 1)
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

    async def test_people_can_read_the_history_with_any_sql_tool(
        self, journal: SqliteJournal, path: Path
    ) -> None:
        await journal.append(birth("inst_000001", count=2))
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT run_id, seq, type FROM history").fetchall()
        connection.close()
        assert rows == [("inst_000001", 1, "happened"), ("inst_000001", 2, "happened")]
