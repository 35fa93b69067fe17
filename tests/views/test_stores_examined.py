"""Whether a journal is sound is told by the same check of every store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from holdfast.journal import examination
from holdfast.journal.examination import walk
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, Attached, Journal, StoredDefinition
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_samples import audit_record, birth, records, run_row

WOKEN = '{"step_id": "L001", "firing": 1}'


async def fill(journal: Journal) -> None:
    await journal.store_definition(StoredDefinition("sha256:plan", "plan", "p", "{}", 1.0))
    for run_id in ("a", "b"):
        woken = [one._replace(type="StepWoken@2") for one in records(0, 3, WOKEN)]
        await journal.append(Append(run_id, 0, woken, run_row(run_id)))
    for word in ("one", "two", "three"):
        await journal.attach(Attached([audit_record(word)]))


async def problems(journal: Journal) -> list[str]:
    return [f"{one.what} {one.name}: {one.problem}" for one in (await walk(journal)).findings]


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_a_sound_journal_has_no_findings(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    journal: Journal = MemoryJournal()
    if store == "sqlite":
        journal = SqliteJournal(tmp_path / "holdfast.db")
    elif store == "postgres":
        journal = PostgresJournal(request.getfixturevalue("database"))
    await journal.open()
    await fill(journal)
    report = await walk(journal)
    assert report.findings == []
    assert report.counts == {
        "runs": 2,
        "definitions": 1,
        "records": 6,
        "audit entries": 3,
        "commits": 2,
    }
    await journal.append(birth("c", definition="nowhere"))
    assert "run c: its definition is not in the journal" in await problems(journal)
    await journal.close()


DAMAGE = {
    "a record that changed": (
        "UPDATE events SET payload = replace(payload, 'L001', 'L002')",
        "record b: ",
    ),
    "an entry that changed": ("UPDATE audit SET who = 'eva' WHERE number = 2", "audit 2: "),
    "an entry that is gone": ("DELETE FROM audit WHERE number = 2", "audit 3: "),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_in_postgresql_is_named(damage: str, database: str) -> None:
    journal = PostgresJournal(database)
    await journal.open()
    await fill(journal)
    await journal.audit()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(DAMAGE[damage][0].encode())
    assert any(one.startswith(DAMAGE[damage][1]) for one in await problems(journal))
    await journal.close()


async def test_a_gap_in_postgresql_is_named(database: str) -> None:
    journal = PostgresJournal(database)
    await journal.open()
    await fill(journal)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(b"DELETE FROM events WHERE seq = 2 AND run = 1")
    assert any(one.startswith("record a: ") for one in await problems(journal))
    await journal.close()


@pytest.mark.parametrize("lost", ["the last stretch", "a whole run"])
async def test_records_without_a_place_are_named(lost: str, database: str) -> None:
    """What follows in the order tells that something is missing; here nothing follows."""
    journal = PostgresJournal(database)
    await journal.open()
    await fill(journal)
    if lost == "the last stretch":
        more = [one._replace(type="StepWoken@2") for one in records(3, 2, WOKEN)]
        await journal.append(Append("b", 3, more, run_row("b")))
    assert await problems(journal) == []
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "DELETE FROM commits WHERE position = (SELECT max(position) FROM commits)"
        )
    seq = 4 if lost == "the last stretch" else 1
    assert await problems(journal) == [
        f"record b: from record {seq} on it has no place among all commits"
    ]
    await journal.close()


async def test_records_that_an_older_transaction_keeps_from_their_place_are_no_damage(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "LOOK_SECONDS", 0.01)
    journal = PostgresJournal(database)
    await journal.open()
    with psycopg.connect(database) as writer:
        writer.execute("CREATE TABLE other (id int)")
        await fill(journal)
        report = await walk(journal)
        assert report.findings == []
        assert "commits" not in report.counts
        writer.rollback()
    assert (await walk(journal)).counts["commits"] == 2
    await journal.close()


@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_in_sqlite_is_named(damage: str, tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "holdfast.db")
    await journal.open()
    await fill(journal)
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as connection, connection:
        connection.execute(DAMAGE[damage][0])
    assert any(one.startswith(DAMAGE[damage][1]) for one in await problems(journal))
    await journal.close()
