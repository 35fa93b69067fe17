"""How the dispatcher of a worker reaches its database."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.journal.postgres import PostgresJournal

LISTENING = (
    "SELECT DISTINCT application_name FROM pg_stat_activity "
    "WHERE datname = current_database() AND query LIKE 'LISTEN%procrastinate%'"
)


async def test_it_listens_past_the_pooler(database: str) -> None:
    """PgBouncer in transaction mode passes no notification on: jobs would wait."""
    direct = f"{database}&application_name=past_the_pooler"
    async with (
        Holdfast(journal=PostgresJournal(database, direct=direct)) as app,
        await psycopg.AsyncConnection.connect(database, autocommit=True) as prompt,
    ):
        assert app.dispatcher is not None
        await app.dispatcher.ready.wait()
        async with asyncio.timeout(60):
            while True:
                found = await (await prompt.execute(LISTENING)).fetchall()
                if found:
                    break
                await asyncio.sleep(0.01)
    assert found == [("past_the_pooler",)]


@pytest.mark.parametrize("direct", [None, "other"])
def test_without_an_address_of_its_own_it_is_the_usual_one(direct: str | None) -> None:
    url = "postgresql://will@db/holdfast"
    given = None if direct is None else f"postgresql://will@{direct}/holdfast"
    assert PostgresJournal(url, direct=given).direct == (given or url)
