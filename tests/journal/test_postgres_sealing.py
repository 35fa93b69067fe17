"""Sealing: the order of all commits, given afterwards.

Transactions that are held open here stand for writers that are slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import psycopg
import pytest

from holdfast.journal import postgres_database, postgres_sealing
from holdfast.journal.port import verify
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.postgres_sealing import horizon_of
from holdfast.testing.journal_keeping import assert_gapless, did, places
from holdfast.testing.journal_samples import birth, step

_APPEND = """
WITH moved AS (UPDATE runs SET version = version + 1 WHERE run_id = 'slow' RETURNING id, version)
, written AS (
    INSERT INTO events SELECT id, version, 0, 't', 'p', 0 FROM moved
)
INSERT INTO unsealed (place, run, first, last) SELECT 0, id, version, version FROM moved
"""


@pytest.fixture
async def journal(database: str) -> AsyncIterator[PostgresJournal]:
    journal = PostgresJournal(database)
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
async def writer(database: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """A connection whose transactions end when a test says so."""
    async with await psycopg.AsyncConnection.connect(database) as connection:
        yield connection


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_sealing, "PATIENCE", 0.0)


async def told(journal: PostgresJournal) -> list[tuple[int, str, int]]:
    return places(await journal.commits())


async def test_a_process_that_stops_while_it_seals_stops_nobody_else(
    journal: PostgresJournal, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "IDLE_SECONDS", 0.2)
    stopped = await postgres_database.connect(database)
    await stopped.execute(b"BEGIN")
    await stopped.execute(b"SELECT FROM seal FOR UPDATE")
    await journal.append(birth("one"))
    async with asyncio.timeout(60):
        assert await told(journal) == [(1, "one", 1)]
    with pytest.raises(psycopg.Error, match="idle-in-transaction"):
        await stopped.execute(b"COMMIT")
    await stopped.close()


async def test_what_a_slow_writer_wrote_is_not_passed_by(
    journal: PostgresJournal, writer: psycopg.AsyncConnection
) -> None:
    await journal.append(birth("slow"))
    await journal.append(birth("quick"))
    assert len(await told(journal)) == 2
    await writer.execute(_APPEND)
    await journal.append(step("quick", 1))
    await journal.attach(did("looked"))
    assert len(await told(journal)) == 2
    assert await journal.audit() == []
    await writer.commit()
    await journal.append(step("quick", 2))
    assert (await told(journal))[2:] == [(3, "slow", 2), (4, "quick", 2), (5, "quick", 3)]
    assert verify(await journal.audit()) is None
    assert len(await journal.audit()) == 1


async def test_what_is_committed_between_the_look_and_the_taking_is_not_lost(
    journal: PostgresJournal, writer: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journal.append(birth("slow"))
    await journal.append(birth("quick"))
    await writer.execute(_APPEND)
    await journal.append(step("quick", 1))
    looked = postgres_sealing.horizon_of
    found = []

    def horizon(next_one: int, running: Iterable[int]) -> int:
        found.append(looked(next_one, running))
        return found[-1]

    monkeypatch.setattr(postgres_sealing, "horizon_of", horizon)
    await journal.commits()
    await writer.commit()
    assert_gapless(await journal.commits(), 4)
    assert found[0] < found[-1]


async def test_what_is_committed_once_a_sealing_has_begun_is_not_lost(
    database: str, writer: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where the database's transactions are to see what was there as they began."""
    name = psycopg.sql.Identifier(writer.info.dbname)
    how = psycopg.sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'")
    await writer.execute(how.format(name))
    await writer.commit()
    journal, executed = PostgresJournal(database), postgres_sealing.execute

    async def execute(connection: Any, statement: bytes, parameters: Sequence[Any] = ()) -> Any:
        rows = await executed(connection, statement, parameters)
        if b"FOR UPDATE" in statement:
            await writer.commit()
        return rows

    await journal.open()
    await journal.append(birth("slow"))
    await writer.execute(_APPEND)
    monkeypatch.setattr(postgres_sealing, "execute", execute)
    assert len(await told(journal)) == 2
    await journal.close()


async def test_a_writer_of_another_database_holds_nothing_up(
    journal: PostgresJournal, empty_database: Callable[..., str]
) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database()) as elsewhere:
        await elsewhere.execute("SELECT pg_current_xact_id()")
        await journal.append(birth())
        assert_gapless(await journal.commits(), 1)


async def test_a_prepared_transaction_is_waited_for(
    journal: PostgresJournal, writer: psycopg.AsyncConnection
) -> None:
    await journal.append(birth("slow"))
    await writer.execute(_APPEND)
    await writer.execute("PREPARE TRANSACTION 'held'")
    await writer.commit()
    await journal.append(birth("quick"))
    assert await told(journal) == [(1, "slow", 1)]
    await writer.set_autocommit(True)
    await writer.execute("COMMIT PREPARED 'held'")
    assert await told(journal) == [(1, "slow", 1), (2, "slow", 2), (3, "quick", 1)]


async def test_one_who_does_not_wait_leaves_it_to_the_one_that_seals(
    journal: PostgresJournal, writer: psycopg.AsyncConnection
) -> None:
    await journal.append(birth())
    await writer.execute("SELECT * FROM seal FOR UPDATE")
    await journal.seal(wait=False)
    reading = asyncio.create_task(journal.commits())
    await writer.rollback()
    assert_gapless(await reading, 1)
    await journal.append(step("inst_000001", 1))
    await journal.seal(wait=False)
    [(position,)] = await journal._connections.select(b"SELECT position FROM seal")
    assert position == 2


async def test_readers_who_come_together_share_a_sealing_and_none_begins_in_vain(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = 0
    seal = postgres_sealing._seal

    async def counted(*given: object) -> object:
        nonlocal sealed
        sealed += 1
        return await seal(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(postgres_sealing, "_seal", counted)
    await journal.append(birth())
    found = await asyncio.gather(*(journal.commits() for _ in range(20)))
    assert all(places(one) == [(1, "inst_000001", 1)] for one in found)
    assert sealed == 1
    await journal.commits()
    await journal.seal(wait=False)
    assert sealed == 1


async def test_rows_that_came_with_a_copy_are_sealed_first(
    journal: PostgresJournal, writer: psycopg.AsyncConnection
) -> None:
    """The numbers of the server that they came from may be far ahead of this one's."""
    await journal.append(birth("old", count=2))
    await journal.commits()
    await journal.append(step("old", 2, count=2))
    await journal.attach(did("before"))
    for table in ("unsealed", "deeds"):
        await writer.execute(f"UPDATE {table} SET xid = (xid::text::bigint + 10^12)::text::xid8")
    await writer.execute("UPDATE seal SET horizon = (horizon::text::bigint + 10^12)::text::xid8")
    await writer.commit()
    await journal.append(step("old", 4))
    await journal.attach(did("after"))
    assert await told(journal) == [(n, "old", n) for n in range(1, 6)]
    assert [entry.record.action for entry in await journal.audit()] == ["before", "after"]
    assert verify(await journal.audit()) is None
    await journal.append(step("old", 5))
    assert await journal.last_commit() == 6


@pytest.mark.parametrize(
    ("next_one", "running", "oldest"),
    [
        (1000, [], 1000),
        (1000, [990, 995], 990),
        (1000, [1003], 1000),
        (2**32 + 5, [2**32 - 3], 2**32 - 3),
        (3 * 2**32 + 5, [2**32 - 3, 2], 3 * 2**32 - 3),
        (2**32 - 2, [2**32 + 1], 2**32 - 2),
    ],
    ids=["none", "older", "newer", "begun again", "long begun again", "newer, begun again"],
)
def test_numbers_of_32_bits_are_told_by_their_distance(
    next_one: int, running: list[int], oldest: int
) -> None:
    assert horizon_of(next_one, [xid % 2**32 for xid in running]) == oldest


async def test_what_was_sealed_and_not_vacuumed_is_not_looked_through(
    journal: PostgresJournal, writer: psycopg.AsyncConnection
) -> None:
    await writer.execute("ALTER TABLE unsealed SET (autovacuum_enabled = false)")
    rows = "SELECT '5', 0, 1, 1, 1 FROM generate_series(1, 50000)"
    await writer.execute(f"INSERT INTO unsealed {rows}".encode())
    await writer.execute("ANALYZE unsealed")
    await writer.execute("DELETE FROM unsealed")
    await writer.commit()
    await journal.append(birth())
    await journal.commits()
    await writer.execute("SET plan_cache_mode = force_generic_plan")
    for name in ("state", "place_stretches"):
        await writer.execute(b"PREPARE " + name.encode() + b" AS " + postgres_sealing._SQL[name])
    for statement in ("state", "place_stretches('100', '200', 1)"):
        cursor = await writer.execute(f"EXPLAIN EXECUTE {statement}".encode())
        plan = "\n".join([line async for (line,) in cursor])
        assert "unsealed_order" in plan
        assert "Seq Scan on unsealed" not in plan
