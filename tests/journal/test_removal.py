"""Runs that are removed from a file: space comes back, in steps, and a crash between them is no
matter."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.journal import database, removal
from holdfast.journal.integrity import examine
from holdfast.journal.port import Append, Removal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_removal import finished
from holdfast.testing.journal_samples import birth, records, step

OLD_HOME = Path(__file__).parent.parent / "replay" / "home_schema_1.db.gz"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def opened(path: Path) -> SqliteJournal:
    journal = SqliteJournal(path)
    await journal.open()
    return journal


async def filled(journal: SqliteJournal, runs: int, records: int = 20) -> list[Removal]:
    appends = [finished(f"old_{n:06d}", records) for n in range(runs)]
    await asyncio.gather(*map(journal.append, appends))
    return [Removal({f"old_{n:06d}": records}) for n in range(runs)]


def unpack(path: Path) -> None:
    path.write_bytes(gzip.decompress(OLD_HOME.read_bytes()))


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def sizes(path: Path) -> tuple[int, int]:
    """How many pages the file has, and how many of them are free."""
    with closing(sqlite3.connect(path)) as connection:
        [[pages]] = connection.execute("PRAGMA page_count").fetchall()
        [[free]] = connection.execute("PRAGMA freelist_count").fetchall()
    return pages, free


def sound(path: Path) -> bool:
    """But for what these runs never had: definitions, and events that mean something."""
    made_up = ("its definition is not in the journal", "'happened'")
    return not [
        one for one in examine(path).findings if not any(word in one.problem for word in made_up)
    ]


async def test_the_file_shrinks_while_it_is_in_use(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "KEPT_PAGES", 16)
    journal = await opened(path)
    removals = await filled(journal, 1000)
    await journal.append(birth("living"))
    full, _ = sizes(path)
    for start in range(0, len(removals), 100):
        assert await journal.remove(removals[start : start + 100]) == []
        await journal.append(step("living", await journal.version("living")))
    version = await journal.version("living")
    while await journal.reclaim():
        version = await journal.append(step("living", version))
    pages, free = sizes(path)
    assert pages < full / 3
    assert free <= removal.KEPT_PAGES
    assert len(await journal.read("living")) == version
    await journal.close()
    assert len(content_of(path)) == pages * 4096
    assert sound(path)


async def test_a_crash_between_the_steps_leaves_a_sound_file_and_the_rest_to_do(
    path: Path,
) -> None:
    journal = await opened(path)
    removals = await filled(journal, 10, records=500)
    assert await journal.remove(removals[:9]) == []
    assert await journal.reclaim()
    await journal.close()
    assert sound(path)
    again = await opened(path)
    steps = 0
    while await again.reclaim():
        steps += 1
    assert steps > 3
    await again.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchall() == [(500,)]
        assert connection.execute("SELECT count(*) FROM places").fetchall() == [(500,)]
        assert connection.execute("SELECT count(*) FROM removed").fetchall() == [(0,)]
    assert sound(path)


async def test_one_step_is_bounded_however_large_a_run_is(path: Path) -> None:
    journal = await opened(path)
    [large] = await filled(journal, 1, records=5_000)
    await journal.remove([large])
    left = [5_000]
    while await journal.reclaim():
        with closing(sqlite3.connect(path)) as connection:
            left += connection.execute("SELECT count(*) FROM events").fetchone()
    await journal.close()
    steps = [before - after for before, after in pairwise(left)]
    # The newest records have no place yet, and go at once.
    assert max(steps) <= removal.RECORDS + database.MOST_UNPLACED
    assert left[-1] == 0


async def test_what_was_removed_is_overwritten(path: Path) -> None:
    journal = await opened(path)
    text = json.dumps({"by": "canary-name", "filler": "x" * 500})
    await journal.append(finished("a", title="canary-title"))
    for seq in range(50):
        await journal.append(Append("a", seq + 1, records(seq + 1, 1, text)))
    for n in range(50):
        await journal.append(birth(f"b_{n}", 3))
    assert await journal.remove([Removal({"a": 51})]) == []
    while await journal.reclaim():
        pass
    await journal.close()
    content = content_of(path)
    assert b"canary-name" not in content
    assert b"canary-title" not in content


async def test_a_file_of_old_is_made_to_shrink_when_it_is_opened(path: Path) -> None:
    unpack(path)
    await (await opened(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchall() == [(2,)]
    assert examine(path).findings == []


async def test_a_large_file_of_old_is_left_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "MOST_COMPACTED", 3)
    unpack(path)
    journal = await opened(path)
    assert not await journal.reclaim()
    await journal.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchall() == [(0,)]
