"""Positions among all commits: they rise, may have holes, and none is given twice.

Nothing removes runs yet. What would is played here by plain SQL, as by a person with a SQL
prompt, because the layout of the file must allow for it.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from faulty_disk import GROWING_LOG, Disk, Sync, Write, power_cuts

from holdfast.errors import JournalDamaged, JournalUnavailable
from holdfast.journal import append_writer, database, memory, writer
from holdfast.journal.integrity import examine
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Committed, Record, Snapshot
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import birth, records, step

RECORDED = Path(__file__).parent.parent / "replay"
OF_RUN = "place BETWEEN (:run << 32) AND ((:run << 32) | 0xFFFFFFFF)"
REMOVE = f"""
DELETE FROM events WHERE position IN (
    SELECT position FROM places WHERE {OF_RUN} UNION ALL SELECT position FROM tail WHERE {OF_RUN}
)"""

Place = tuple[int, str, int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@asynccontextmanager
async def opened(
    path: Path, connect: database.Connect = database.connect
) -> AsyncIterator[SqliteJournal]:
    journal = SqliteJournal(path, connect=connect)
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


@contextmanager
def sql_prompt(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def remove(path: Path, *runs: int) -> None:
    with sql_prompt(path) as connection:
        for run in runs:
            connection.execute(REMOVE, {"run": run})
            connection.execute("DELETE FROM runs WHERE id = ?", (run,))


async def places(journal: SqliteJournal, after: int = 0) -> list[Place]:
    return [
        (one.position - (one.last - seq), one.run_id, seq)
        for one in await journal.commits(after, 10_000)
        for seq in range(one.first, one.last + 1)
    ]


async def take_turns(journal: SqliteJournal, *run_ids: str, turns: int = 3) -> None:
    for version in range(turns):
        for run_id in run_ids:
            await journal.append(step(run_id, version) if version else birth(run_id))


class TestRemovedRuns:
    @pytest.mark.parametrize("removed", [(3,), (2, 3), (3, 2), (1, 2, 3)])
    async def test_positions_of_the_newest_are_not_given_again(
        self, path: Path, removed: tuple[int, ...]
    ) -> None:
        async with opened(path) as journal:
            await take_turns(journal, "a", "b", "c")
        remove(path, *removed)
        for position in (10, 11):
            async with opened(path) as journal:
                assert await journal.last_commit() == position - 1
                await journal.append(birth(f"new{position}"))
                assert await journal.last_commit() == position
                assert (await places(journal))[-1] == (position, f"new{position}", 1)
                assert await journal.commits(position) == []

    async def test_a_hole_parts_what_lies_before_and_behind_it(self, path: Path) -> None:
        async with opened(path) as journal:
            await take_turns(journal, "a", "b")
            await journal.append(step("a", 3, count=2))
        remove(path, 2)
        async with opened(path) as journal:
            found = [Committed(1, "a", 1, 1), Committed(3, "a", 2, 2), Committed(5, "a", 3, 3)]
            assert await journal.commits() == [*found, Committed(8, "a", 4, 5)]
            for after in range(9):
                assert await places(journal, after) == [
                    one for one in await places(journal) if one[0] > after
                ]
            assert await journal.read("a") == [*records(0, 3), *records(3, 2)]
        assert [one for one in examine(path).findings if "position" in one.problem] == []


class TestWhereRunsStand:
    async def test_a_run_may_append_twice_in_a_batch_however_many_others_do(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where a run stands must not be looked up while its records are only gathered."""
        monkeypatch.setattr(append_writer, "MOST_PLACES", 2)
        async with opened(path) as journal:
            runs = [f"r{n}" for n in range(10)]
            for batch in range(3):
                given = [birth(one) for one in runs] if not batch else []
                given += [step(one, batch * 2 + n) for n in (1, 2) for one in runs]
                told = await asyncio.gather(*map(journal.append, given), return_exceptions=True)
                assert [one for one in told if not isinstance(one, int)] == []
            assert {await journal.version(one) for one in runs} == {7}
            assert [one[0] for one in await places(journal)] == list(range(1, 71))

    async def test_a_snapshot_sees_the_records_of_its_batch(self, path: Path) -> None:
        async with opened(path) as journal:
            await take_turns(journal, "a", "b", turns=1)
            kept = Snapshot("a", 2, 1, "{}")
            first, *batch = (journal.append(step(one, 1)) for one in ("b", "a"))
            await asyncio.gather(first, *batch, journal.save_snapshot(kept))
            assert await journal.snapshot("a", 1) == kept

    async def test_text_that_no_database_takes_fails_alone(self, path: Path) -> None:
        async with opened(path) as journal:
            await take_turns(journal, "a", "b", turns=1)
            spoiled = step("a", 1, count=2)
            spoiled.records[1:] = [Record(3, 1.0, "happened", "\ud800")]  # type: ignore[index]
            told = await asyncio.gather(
                *map(journal.append, [step("b", 1), spoiled, step("b", 2)]), return_exceptions=True
            )
            assert [type(one).__name__ for one in told] == ["int", "UnicodeEncodeError", "int"]
            assert await journal.append(step("a", 1)) == 2
            assert (await places(journal))[2:] == [(3, "b", 2), (4, "b", 3), (5, "a", 2)]


async def test_what_the_memory_forgets_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STRETCHES_KEPT", 4)
    journal = MemoryJournal()
    await journal.open()
    for version in range(6):
        for run_id in ("a", "b"):
            await journal.append(step(run_id, version) if version else birth(run_id))
        oldest = (await journal.commits())[0]
        assert await journal.forgotten() == oldest.position - 1
    assert await journal.forgotten() == 5


class Meter:
    """Counts the instructions of SQLite's virtual machine."""

    def __init__(self) -> None:
        self.count = 0

    def connect(self, path: Path) -> sqlite3.Connection:
        connection = database.connect(path)
        assert isinstance(connection, sqlite3.Connection)
        connection.set_progress_handler(self._tick, 1)
        return connection

    def _tick(self) -> int:
        self.count += 1
        return 0


def in_tail(path: Path) -> int:
    with sql_prompt(path) as connection:
        return int(connection.execute("SELECT count(*) FROM tail").fetchone()[0])


def misplaced(path: Path) -> list[str]:
    problems = (one.problem for one in examine(path).findings)
    return [one for one in problems if "looks for it" in one or "missing" in one]


def as_if_killed(path: Path) -> Path:
    """The same home as it is on disk now."""
    other = path.parent / "killed"
    other.mkdir()
    for suffix in ("", "-wal"):
        (other / f"{path.name}{suffix}").write_bytes(
            path.with_name(path.name + suffix).read_bytes()
        )
    return other / path.name


class TestPlaces:
    """Where records lie is written down for many of them at once."""

    @pytest.mark.parametrize("most", [1, 2, 5, 7, 64])
    async def test_a_run_is_read_whole_wherever_the_tail_begins(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, most: int
    ) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", most)
        tails = set()
        async with opened(path) as journal:
            for version in range(20):
                for run_id in ("a", "b"):
                    given = step(run_id, version) if version else birth(run_id)
                    assert await journal.append(given) == version + 1
                    assert await journal.version(run_id) == version + 1
                    assert await journal.read(run_id) == records(0, version + 1)
                    assert await journal.read(run_id, version) == records(version, 1)
                    tails.add(in_tail(path))
        assert tails - {0} == set(range(1, min(most, 41)))
        async with opened(path) as journal:
            assert in_tail(path) == 0
            assert await journal.append(step("a", 20, count=30)) == 50
            assert await journal.read("a", 10, 25) == records(10, 25)
        assert misplaced(path) == []

    async def test_what_was_rolled_back_has_no_place(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", 6)
        async with opened(path) as journal:
            await take_turns(journal, "a", "b", turns=2)
            spoiled = step("a", 2, count=2)
            spoiled.records[1:] = [Record(4, 1.0, "happened", "\ud800")]  # type: ignore[index]
            await asyncio.gather(
                *map(journal.append, [step("b", 2), spoiled, step("b", 3)]), return_exceptions=True
            )
            await take_turns(journal, *"cdefgh")
            assert await journal.read("a") == records(0, 2)
            assert await journal.read("b") == records(0, 4)
        assert misplaced(path) == []

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM places WHERE place = (1 << 32 | 2)",
            "UPDATE places SET position = position + 1 WHERE place = (1 << 32 | 2)",
            "UPDATE places SET position = 1000 WHERE place = (1 << 32 | 2)",
        ],
    )
    async def test_a_wrong_place_is_noticed(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
    ) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", 4)
        async with opened(path) as journal:
            await take_turns(journal, "a", "b")
            assert in_tail(path) == 2
            with sql_prompt(path) as connection:
                assert connection.execute(damage).rowcount == 1
            assert await journal.read("b") == records(0, 3)
            with pytest.raises(JournalDamaged):
                await journal.read("a")
        assert misplaced(path) != []

    @pytest.mark.parametrize("spoiled_at", [0, 1, 2])
    async def test_a_batch_that_began_again_hides_nothing_from_the_next_process(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, spoiled_at: int
    ) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", 4)
        async with opened(path) as journal:
            await take_turns(journal, "a", "b", "c", "alone", turns=1)
            batch = [step(one, 1, count=10) for one in ("a", "b")]
            spoiled = step("c", 1, count=2)
            spoiled.records[1:] = [Record(3, 1.0, "happened", "\ud800")]  # type: ignore[index]
            batch.insert(spoiled_at, spoiled)
            batch.insert(0, step("alone", 1))
            told = await asyncio.gather(*map(journal.append, batch), return_exceptions=True)
            assert told.count(11) == 2
            killed = as_if_killed(path)
        async with opened(killed) as journal:
            for run_id in ("a", "b"):
                assert await journal.read(run_id) == [*records(0, 1), *records(1, 10)]
        assert misplaced(killed) == []

    @pytest.mark.parametrize("said", [0, 2, 5, 9, 1000])
    async def test_a_wrong_word_about_what_has_its_place_is_mended(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, said: int
    ) -> None:
        monkeypatch.setattr(database, "MOST_UNPLACED", 4)
        async with opened(path) as journal:
            await take_turns(journal, "a", "b")
            with sql_prompt(path) as connection:
                connection.execute("UPDATE positions SET placed = ?", (said,))
        async with opened(path) as journal:
            for run_id in ("a", "b"):
                assert await journal.append(step(run_id, 3)) == 4
                assert await journal.read(run_id) == records(0, 4)
        assert misplaced(path) == []


class TestWhatItCosts:
    @staticmethod
    async def costs(path: Path, others: int) -> dict[str, int]:
        """Of a run of six records, one by one among those of so many others."""
        meter, spent = Meter(), {}
        async with opened(path, meter.connect) as journal:
            await take_turns(journal, "mine", *(f"r{n}" for n in range(others)), turns=6)
            await journal.append(birth("last", count=database.MOST_UNPLACED))
            assert in_tail(path) == 0
            for name, work in {
                "read": lambda: journal.read("mine"),
                "version": lambda: journal.version("mine"),
                "commits": lambda: journal.commits(3 * others, 10),
                "last": journal.last_commit,
                "append": lambda: journal.append(step("mine", 6)),
            }.items():
                meter.count = 0
                await work()
                spent[name] = meter.count
        with closing(meter.connect(path)) as connection:
            meter.count = 0
            connection.execute(REMOVE, {"run": 1})
            spent["remove"] = meter.count
        return spent

    async def test_one_run_costs_what_it_holds_however_many_others_there_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer, "SLOW_SECONDS", 60.0)  # a slow disk has batches prepared apart
        few, many = await self.costs(tmp_path / "few", 5), await self.costs(tmp_path / "many", 400)
        assert many == few
        assert few["append"] < 40

    async def test_looking_through_the_newest_records_costs_little(self, path: Path) -> None:
        meter = Meter()
        async with opened(path, meter.connect) as journal:
            await take_turns(journal, "mine", "other", turns=100)
            await journal.append(birth("last", count=database.MOST_UNPLACED))
            spent = []
            for tail in (0, database.MOST_UNPLACED - 1):
                assert in_tail(path) == tail
                meter.count = 0
                await journal.version("mine")
                spent.append(meter.count)
                await journal.append(birth(f"after{tail}", count=database.MOST_UNPLACED - 1))
        assert 0 < spent[1] - spent[0] < 8 * database.MOST_UNPLACED

    async def test_a_batch_of_many_runs_dirties_the_end_of_the_table_only(
        self, tmp_path: Path
    ) -> None:
        """Clustered by run it was a page for each of them."""
        with Disk() as disk:
            async with opened(tmp_path / "journal.db", disk.connect) as journal:
                runs = [f"r{n:03}" for n in range(200)]
                await asyncio.gather(*(journal.append(birth(one, count=40)) for one in runs))
                before = len(disk.log)
                await asyncio.gather(*(journal.append(step(one, 40)) for one in runs))
                written = [one for one in disk.log[before:] if isinstance(one, Write)]
                pages = {one.offset for one in written if len(one.data) == 4096}
        assert 0 < len(pages) < 60


def lay_out(path: Path, schema: int = 4) -> bytes:
    """The recorded home, byte for byte."""
    content = gzip.decompress((RECORDED / f"home_schema_{schema}.db.gz").read_bytes())
    path.write_bytes(content)
    return content


class TestOlderHomes:
    """Three runs that committed in turns, sixteen records."""

    @pytest.fixture
    def home(self, path: Path) -> Path:
        lay_out(path)
        return path

    @staticmethod
    async def whole(journal: SqliteJournal) -> dict[str, list[Record]]:
        return {row.run_id: await journal.read(row.run_id) for row in await journal.runs()}

    async def test_what_was_forgotten_stays_forgotten(self, home: Path) -> None:
        async with opened(home) as journal:
            known = await places(journal)
            assert (len(known), await journal.forgotten()) == (16, 0)
        lay_out(home)
        with sql_prompt(home) as connection:
            connection.execute("DELETE FROM commits WHERE position <= 5")
        async with opened(home) as journal:
            assert await journal.forgotten() == 6
            assert await places(journal, 6) == [one for one in known if one[0] > 6]
            assert sum(map(len, (await self.whole(journal)).values())) == 16
        assert examine(home).findings == []

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE commits SET first = first + 1 WHERE position = 5",
            "UPDATE commits SET first = first - 1 WHERE run > 0",
            "UPDATE commits SET run = 1",
            "DELETE FROM commits",
        ],
    )
    async def test_a_damaged_list_of_commits_costs_no_record(self, home: Path, damage: str) -> None:
        with sql_prompt(home) as connection:
            connection.execute(damage)
        async with opened(home) as journal:
            found = await self.whole(journal)
            assert sorted(len(one) for one in found.values()) == [4, 4, 8]
            last = await journal.last_commit()
            await journal.append(birth("new"))
            assert (await places(journal))[-1] == (last + 1, "new", 1)

    async def test_a_full_disk_leaves_the_home_as_it_was(self, home: Path) -> None:
        with Disk() as disk:
            disk.room = 10_000
            with pytest.raises(JournalUnavailable, match="Free some disk space"):
                async with opened(home, disk.connect):
                    pass
        with sql_prompt(home) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        async with opened(home) as journal:
            assert len(await places(journal)) == 16

    @pytest.mark.parametrize("schema", [4, 5])
    async def test_no_power_cut_during_the_change_loses_anything(
        self, home: Path, tmp_path: Path, schema: int
    ) -> None:
        recorded = lay_out(home, schema)
        with Disk(GROWING_LOG) as disk:
            disk.log += [Write("journal.db", 0, recorded), Sync("journal.db", True)]
            async with opened(home, disk.connect) as journal:
                expected = await self.whole(journal), await places(journal)
        cuts = range(2, len(disk.log) + 1)
        assert 25 < len(cuts) < 200
        for position, files in power_cuts(disk.log, cuts, random.Random(31)):
            place = tmp_path / f"cut{position}"
            place.mkdir()
            for name, content in files.items():
                (place / name).write_bytes(content)
            async with opened(place / "journal.db") as journal:
                assert await journal.check() == []
                assert (await self.whole(journal), await places(journal)) == expected
