"""PostgreSQL for the journal's tests: one server for a session, one database for a test.

Databases are copied from one that is migrated already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from postgres_server import PostgresServer

from holdfast.journal.postgres_migrations import migrate


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
        server.stop("immediate")
    finally:
        server.remove()


@pytest.fixture(scope="session")
def migrated_database(postgres_server: PostgresServer) -> str:
    url = postgres_server.create_database()
    asyncio.run(migrate(url))
    return url


@pytest.fixture
def database(postgres_server: PostgresServer, migrated_database: str) -> Iterator[str]:
    url = postgres_server.copy_database(migrated_database)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[Callable[..., str]]:
    """Makes databases with nothing in them."""
    made: list[str] = []

    def create(options: str = "") -> str:
        made.append(postgres_server.create_database(options))
        return made[-1]

    yield create
    for url in made:
        postgres_server.drop_database(url)
