"""Nothing that was acknowledged is lost when the power goes, wherever it goes.

The journal works on a disk that logs every operation; then the disk is imagined as
it would be after a cut at 200 places in that log, and opened again with plain
SQLite. The same trial with `synchronous=NORMAL` must lose something: that shows the
trial can tell.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_disk import GROWING_LOG, Disk, Sync, Write, power_cuts

from holdfast.errors import JournalUnavailable
from holdfast.journal import database, writer
from holdfast.journal.port import Append, OutboxMessage, Record, Snapshot
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import run_row

SMALL_LOG = {"PRAGMA wal_autocheckpoint = 1000": "PRAGMA wal_autocheckpoint = 40"}
CUTS = 200
"""`make campaign` makes them by the thousand."""

UNSAFE = {"PRAGMA synchronous = FULL": "PRAGMA synchronous = NORMAL"}


@pytest.fixture(autouse=True)
def places_are_written_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOST_UNPLACED", 12)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    position: int
    run_id: str
    version: int


def payload(run_id: str, seq: int) -> str:
    """Some records fit a sector, some a page, some neither."""
    return f"{run_id}/{seq}/" + "x" * (seq * 37 % 600 if seq % 11 else 6000)


def step(run_id: str, expected: int, **company: object) -> Append:
    new = [
        Record(seq, 1.0, "happened", payload(run_id, seq)) for seq in (expected + 1, expected + 2)
    ]
    return Append(run_id, expected, new, **company)  # type: ignore[arg-type]


class Witness:
    """Appends, and notes how far the disk's log had come when it was acknowledged."""

    def __init__(self, journal: SqliteJournal, disk: Disk) -> None:
        self.journal = journal
        self.told: list[Acknowledged] = []
        self._disk = disk

    async def append(self, append: Append) -> int:
        version = await self.journal.append(append)
        self.told.append(Acknowledged(len(self._disk.log), append.run_id, version))
        return version

    async def live(self, run_id: str, steps: int) -> None:
        """A run that every fifth step bears a child, which leaves it a notice."""
        version = await self.append(step(run_id, 0, row=run_row(run_id)))
        for number in range(steps):
            child = f"{run_id}_{version}"
            notice = OutboxMessage("nobody", child, 2, "{}")
            birth = step(child, 0, row=run_row(child, parent_id=run_id), notices=[notice])
            bears = number % 5 == 0
            version = await self.append(
                step(run_id, version, child_appends=[birth] if bears else ())
            )
            if number % 7 == 0:
                await self.journal.save_snapshot(Snapshot(run_id, version, 1, "{}"))


async def work(path: Path, disk: Disk) -> Witness:
    """Lone appends, then a crowd, then lone ones again after reopening."""
    journal = SqliteJournal(path, connect=disk.connect)
    witness = Witness(journal, disk)
    await journal.open()
    await witness.live("first", 30)
    await asyncio.gather(*(witness.live(f"crowd{n}", 12) for n in range(8)))
    await journal.close()
    await journal.open()
    await witness.live("last", 20)
    await journal.close()
    return witness


def lay_out(place: Path, files: Mapping[str, bytes]) -> None:
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)


def pick_up(place: Path, *names: str) -> dict[str, bytes]:
    return {name: (place / name).read_bytes() for name in names}


async def losses(place: Path, files: Mapping[str, bytes], told: list[Acknowledged]) -> list[str]:
    """What is missing or wrong in the disk that a cut left."""
    lay_out(place, files)
    journal = SqliteJournal(place / "journal.db")
    await journal.open()
    found = await journal.check()
    for word in told:
        if await journal.version(word.run_id) < word.version:
            found.append(f"{word.run_id} lost {word.version}")
    found += await oddities(journal)
    await journal.close()
    return found


async def oddities(journal: SqliteJournal) -> list[str]:
    """Runs that are not a gapless prefix, or that tore apart what belongs together."""
    found = []
    notices = {notice.source_id for notice in await journal.notices()}
    for row in await journal.runs():
        records = await journal.read(row.run_id)
        wanted = [payload(row.run_id, seq) for seq in range(1, len(records) + 1)]
        if [record.payload for record in records] != wanted or len(records) % 2:
            found.append(f"{row.run_id} is not a prefix")
        parent, _, version = row.run_id.rpartition("_")
        if row.parent_id is not None and await journal.version(parent) < int(version) + 2:
            found.append(f"{row.run_id} was born without its parent's append")
        if (row.run_id in notices) != (row.parent_id is not None):
            found.append(f"{row.run_id} was parted from its notice")
    return found


async def lossy_cuts(
    tmp_path: Path, cuts: int, replacing: Mapping[str, str], chance: random.Random
) -> list[list[str]]:
    """Of so many cuts over one working life, those that lost or broke something."""
    with Disk({**SMALL_LOG, **replacing}) as disk:
        witness = await work(tmp_path / "journal.db", disk)
        assert disk.replaced == set(disk.replacing)
    anywhere = [chance.randrange(len(disk.log) + 1) for _ in range(cuts // 2)]
    told = [chance.choice(witness.told).position for _ in range(cuts - len(anywhere))]
    positions = anywhere + [min(one + chance.randrange(20), len(disk.log)) for one in told]
    found = []
    for number, (position, files) in enumerate(power_cuts(disk.log, positions, chance)):
        told = [word for word in witness.told if word.position <= position]
        found.append(await losses(tmp_path / f"cut{number}", files, told))
    return [lost for lost in found if lost]


async def test_no_power_cut_loses_what_was_acknowledged(tmp_path: Path) -> None:
    assert await lossy_cuts(tmp_path, CUTS, {}, random.Random(20)) == []


async def test_the_trial_notices_a_commit_that_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    lossy = await lossy_cuts(tmp_path, CUTS, UNSAFE, random.Random(20))
    assert len(lossy) > 50
    assert any("lost" in complaint for complaint in lossy[0])


async def test_a_checkpoint_takes_part_in_the_trial(tmp_path: Path) -> None:
    with Disk(SMALL_LOG) as disk:
        witness = await work(tmp_path / "journal.db", disk)
    meanwhile = disk.log[witness.told[0].position : witness.told[25].position]
    assert any(isinstance(op, Write) and op.file == "journal.db" for op in meanwhile)


class TestAfterAFailedCommit:
    @pytest.fixture
    def no_probe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer, "PROBE_SECONDS", 3600.0)

    async def test_everything_is_refused_at_once_until_a_probe(
        self, tmp_path: Path, no_probe: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Disk() as disk:
            journal = SqliteJournal(tmp_path / "journal.db", connect=disk.connect)
            await journal.open()
            await journal.append(step("a", 0, row=run_row("a")))
            disk.failing_syncs = 1
            with pytest.raises(JournalUnavailable, match="Look at the disk"):
                await journal.append(step("a", 2))
            assert journal.epoch == 1
            written = len(disk.log)
            for _ in range(5):
                with pytest.raises(JournalUnavailable):
                    await journal.append(step("a", 2))
            crowd = [journal.append(step(f"b{n}", 0, row=run_row(f"b{n}"))) for n in range(5)]
            refused = await asyncio.gather(*crowd, return_exceptions=True)
            assert all(isinstance(word, JournalUnavailable) for word in refused)
            assert len(disk.log) == written
            assert await journal.version("a") == 2
            monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)
            assert await journal.append(step("a", 2)) == 4
            assert journal.epoch == 1
            assert await journal.version("b0") == 0
            await journal.close()

    async def test_a_probe_that_fails_keeps_the_journal_shut(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)
        with Disk() as disk:
            journal = SqliteJournal(tmp_path / "journal.db", connect=disk.connect)
            await journal.open()
            await journal.append(step("a", 0, row=run_row("a")))
            disk.failing_syncs = 4
            for _ in range(4):
                with pytest.raises(JournalUnavailable):
                    await journal.append(step("a", 2))
            assert await journal.append(step("a", 2)) == 4
            await journal.close()

    async def test_a_whole_batch_is_refused_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with Disk() as disk:
            journal = SqliteJournal(tmp_path / "journal.db", connect=disk.connect)
            await journal.open()
            names = [f"a{n}" for n in range(20)]
            child_appends = [journal.append(step(name, 0, row=run_row(name))) for name in names]
            assert await asyncio.gather(*child_appends) == [2] * 20
            disk.failing_syncs = 1
            steps = [journal.append(step(name, 2)) for name in names]
            told = await asyncio.gather(*steps, return_exceptions=True)
            assert all(isinstance(word, JournalUnavailable) for word in told)
            assert len({id(word) for word in told}) == 20
            monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)
            steps = [journal.append(step(name, 2)) for name in names]
            assert await asyncio.gather(*steps) == [4] * 20
            await journal.close()

    @pytest.mark.parametrize("moment", range(0, 66, 3))
    async def test_what_is_acknowledged_later_survives_a_cut(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
    ) -> None:
        monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)
        chance = random.Random(moment)
        with Disk(SMALL_LOG) as disk:
            journal = SqliteJournal(tmp_path / "journal.db", connect=disk.connect)
            witness = Witness(journal, disk)
            await journal.open()
            version = await witness.append(step("a", 0, row=run_row("a")))
            disk.sound_syncs, disk.failing_syncs = moment, 1
            for _ in range(60):
                try:
                    version = await witness.append(step("a", version))
                except JournalUnavailable:
                    version = await journal.version("a")
            await journal.close()
        assert Sync("journal.db-wal", False) in disk.log or Sync("journal.db", False) in disk.log
        positions = [chance.randrange(len(disk.log) + 1) for _ in range(12)] + [len(disk.log)]
        for number, (position, files) in enumerate(power_cuts(disk.log, positions, chance)):
            told = [word for word in witness.told if word.position <= position]
            assert await losses(tmp_path / f"cut{number}", files, told) == []

    async def test_a_successor_does_not_build_on_what_was_never_synced(
        self, tmp_path: Path
    ) -> None:
        """The process dies after a failed sync: the page cache shows the next one pages
        that the disk does not have."""
        with Disk() as disk:
            journal = SqliteJournal(tmp_path / "journal.db", connect=disk.connect)
            await journal.open()
            await journal.append(step("a", 0, row=run_row("a")))
            disk.failing_syncs = 1
            with pytest.raises(JournalUnavailable):
                await journal.append(step("a", 2))
            past = list(disk.log)
            left = pick_up(tmp_path, "journal.db", "journal.db-wal")
            await journal.close()
        lay_out(tmp_path / "successor", left)
        with Disk() as disk:
            disk.log += past
            journal = SqliteJournal(tmp_path / "successor" / "journal.db", connect=disk.connect)
            witness = Witness(journal, disk)
            await journal.open()
            version = await journal.version("a")
            for _ in range(5):
                version = await witness.append(step("a", version))
            positions = [word.position for word in witness.told]
            cuts = list(power_cuts(disk.log, positions, random.Random(1)))
            await journal.close()
        for number, (position, files) in enumerate(cuts):
            told = [word for word in witness.told if word.position <= position]
            assert await losses(tmp_path / f"cut{number}", files, told) == []

    async def test_a_full_disk_refuses_and_goes_on_when_there_is_room(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)
        with Disk(GROWING_LOG) as disk:
            journal = SqliteJournal(tmp_path / "journal.db", connect=disk.connect)
            await journal.open()
            version = await journal.append(step("a", 0, row=run_row("a")))
            disk.room = 50_000
            told: list[int | BaseException] = [version]
            while isinstance(told[-1], int):
                version = told[-1]
                told += await asyncio.gather(
                    journal.append(step("a", version)), return_exceptions=True
                )
            assert isinstance(told[-1], JournalUnavailable)
            assert "Free some disk space" in str(told[-1])
            assert journal.epoch == 1
            assert await journal.version("a") == version
            with pytest.raises(JournalUnavailable):
                await journal.append(step("a", version))
            disk.room = None
            assert await journal.append(step("a", version)) == version + 2
            await journal.close()
        again = SqliteJournal(tmp_path / "journal.db")
        await again.open()
        assert await oddities(again) == []
        assert await again.version("a") == version + 2
        await again.close()
