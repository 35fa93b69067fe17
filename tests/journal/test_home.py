"""A home belongs to one process, which may be killed at any moment."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

import warm
from holdfast.errors import HomeBusy
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import records

APPENDER = Path(__file__).with_name("appender.py")


def start_appender(path: Path) -> subprocess.Popen[str]:
    """A process that appends for ever and prints what was acknowledged."""
    return warm.Popen([sys.executable, str(APPENDER), str(path)], stdout=subprocess.PIPE, text=True)


def kill_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """Read that many acknowledgements, kill -9, then read what was still printed."""
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    rest, _ = process.communicate()
    return [line for line in [*told, *rest.splitlines(keepends=True)] if line.endswith("\n")]


async def test_a_second_opener_learns_who_holds_the_home(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    holder = SqliteJournal(path)
    await holder.open()
    with pytest.raises(HomeBusy, match=r"process \d+ \(.+\) on .+ since 20.+holdfast watch"):
        await SqliteJournal(path).open()
    await holder.close()
    successor = SqliteJournal(path)
    await successor.open()
    await successor.close()


async def test_another_process_is_named_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    process = start_appender(path)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(HomeBusy) as refusal:
        await SqliteJournal(path).open()
    assert f"process {process.pid} " in str(refusal.value)
    assert "appender.py" in str(refusal.value)
    kill_after(process, 0)
    journal = SqliteJournal(path)
    await journal.open()
    await journal.close()


async def test_an_unreadable_lock_file_still_locks(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    holder = SqliteJournal(path)
    await holder.open()
    (tmp_path / "journal.db.lock").write_text("")
    with pytest.raises(HomeBusy, match="only just started"):
        await SqliteJournal(path).open()
    await holder.close()


def test_no_kill_loses_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    chance = random.Random(9)
    versions: dict[str, int] = {}
    for _ in range(10):
        for line in kill_after(start_appender(path), chance.randrange(1, 300)):
            run_id, version = line.split()
            versions[run_id] = max(versions.get(run_id, 0), int(version))
        asyncio.run(verify(path, versions))


async def verify(path: Path, versions: dict[str, int]) -> None:
    journal = SqliteJournal(path)
    await journal.open()
    assert await journal.check() == []
    for run_id, version in versions.items():
        found = await journal.read(run_id)
        assert len(found) >= version
        assert found == records(0, len(found))
        assert len(found) == await journal.version(run_id)
    await journal.close()
