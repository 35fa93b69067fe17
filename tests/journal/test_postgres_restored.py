"""A copy of a database in another server, whose transactions have other numbers.

What the copy holds of them, the horizon of sealing and the numbers of rows that are yet to be
sealed, is another server's. What is copied here is what `pg_dump` takes:
all rows, and how far sequences are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from holdfast.journal.port import Attached, verify
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.postgres_condition import examine
from holdfast.testing.journal_keeping import assert_gapless
from holdfast.testing.journal_samples import audit_record, birth, step
from holdfast.views.condition import problems
from postgresql_server import Server, migrated
from stores import TABLES

DEEDS = 120
AHEAD = 20_000
BURN = """
DO $$ BEGIN
    WHILE pg_current_xact_id() < '{}'::xid8 LOOP COMMIT; END LOOP;
END $$
"""
SEQUENCES = "SELECT sequencename::text, last_value FROM pg_sequences WHERE last_value IS NOT NULL"


def get_ahead(url: str, other: str) -> None:
    """Use numbers of transactions up, until they are far beyond those of the other server."""
    with psycopg.connect(other) as connection:
        row = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
    assert row is not None
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(BURN.format(row[0] + AHEAD).encode())


def copy(source: str, target: str) -> None:
    with psycopg.connect(source) as old, psycopg.connect(target) as new:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        new.execute("SET LOCAL session_replication_role = replica")
        for (table,) in old.execute(TABLES).fetchall():
            new.execute(f"DELETE FROM {table}".encode())
            taken = f"COPY {table} TO STDOUT".encode()
            put = f"COPY {table} FROM STDIN".encode()
            with old.cursor().copy(taken) as rows, new.cursor().copy(put) as given:
                for one in rows:
                    given.write(one)
        for name, last in old.execute(SEQUENCES).fetchall():
            new.execute("SELECT setval(%s, %s)", [name, last])


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresJournal]:
    journal = PostgresJournal(url)
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


async def work(journal: PostgresJournal, first: int, count: int) -> None:
    """Each with a deed."""
    for number in range(first, first + count):
        await journal.append(birth(f"inst_{number:06d}", active=False))
        await journal.attach(Attached([audit_record(f"deed {number}")]))
        await journal.append(step(f"inst_{number:06d}", 1))


@pytest.mark.parametrize("numbers", ["lower", "higher"])
@pytest.mark.parametrize("sealed", [DEEDS // 2, DEEDS])
async def test_order_and_chain_go_on_in_another_server(
    numbers: str, sealed: int, database: str
) -> None:
    """Whether all, some or none of it had been sealed when it was copied."""
    with Server(fsync=False) as server:
        restored = server.create_database(migrated)
        get_ahead(*((database, restored) if numbers == "lower" else (restored, database)))
        async with opened(database) as journal:
            await work(journal, 1, sealed)
            head = (await journal.audit(limit=1000))[-1:]
            await work(journal, sealed + 1, DEEDS - sealed)
            copy(database, restored)
        found = [one.what for one in problems(await examine(restored))]
        assert found == (["sealing"] if sealed < DEEDS else [])
        async with opened(restored) as journal:
            await journal.seal(wait=False)
            assert problems(await examine(restored)) == []
            assert (await journal.figures()).unsealed == 0
            assert_gapless(await journal.commits(limit=1000), 2 * DEEDS)
            await work(journal, DEEDS + 1, 10)
            assert_gapless(await journal.commits(limit=1000), 2 * (DEEDS + 10))
            chain = await journal.audit(limit=1000)
            assert len(chain) == DEEDS + 10
            assert verify(chain) is None
            assert all(one in chain for one in head)
            assert [one.record.action for one in chain] == [
                f"deed {number}" for number in range(1, DEEDS + 11)
            ]
