"""What an operator reads in a terminal when a database cannot be used: one line with the remedy."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable

import psycopg
import pytest
from cli_scene import Command, Ending
from psycopg.conninfo import conninfo_to_dict

from holdfast import Holdfast
from holdfast.journal import postgres_migrations
from installation import SECRET_KEY
from postgresql_server import Server

OPENING = (("serve", "--port", "0"), ("worker",))
READING = (("runs",), ("inbox",), ("token", "list"), ("audit", "verify"))
ALL = (*OPENING, *READING, ("migrate",))
EVERY = (*ALL, ("doctor",))
"""A doctor says itself what it finds in a database that it can read."""

Refused = Callable[..., None]


@pytest.fixture
def refused(holdfast: Command, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """Checks that each of the commands refuses a database in one line with these words."""

    def check(url: str, commands: tuple[tuple[str, ...], ...], *words: str) -> None:
        monkeypatch.setenv("HOLDFAST_DATABASE", url)
        for command in commands:
            for language in ("en_GB.UTF-8", "zh_CN.UTF-8"):
                monkeypatch.setenv("LANG", language)
                assert_readable(holdfast(*command), *words)
            told = holdfast(*command, "--json")
            assert told.code == 1
            assert all(word in told.json["error"]["message"] for word in words), told

    return check


def assert_readable(told: Ending, *words: str) -> None:
    assert told.code == 1, told
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert told.err.count("\n") == 1, told.err
    for word in words:
        assert word in told.err
    for hidden in ("Traceback", "hush-hush", "psycopg", SECRET_KEY):
        assert hidden not in told.err


@pytest.fixture
def begun(database: str) -> str:
    """A database that an application has opened."""

    async def begin() -> None:
        async with Holdfast(database=database, drives=False):
            pass

    asyncio.run(begin())
    return database


def changed(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def kept(url: str) -> list[object]:
    """Everything of a database that a start might change."""
    with psycopg.connect(url) as connection:
        found: list[object] = list(connection.execute("SELECT * FROM installation").fetchall())
        for table in (b"runs", b"events", b"kept", b"procrastinate_workers", b"audit"):
            found += connection.execute(b"SELECT count(*) FROM " + table).fetchall()
        return found


def test_without_the_key_nothing_starts(
    begun: str, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_SECRET_KEY")
    before = kept(begun)
    refused(begun, OPENING, "HOLDFAST_SECRET_KEY", "openssl rand -base64 32")
    assert kept(begun) == before


def test_with_another_key_nothing_starts(
    begun: str, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", b64encode(bytes(32)).decode())
    before = kept(begun)
    refused(begun, OPENING, "begun with another HOLDFAST_SECRET_KEY", "every server and worker")
    assert kept(begun) == before


def test_an_empty_database_is_to_be_migrated(
    refused: Refused, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    refused(empty_database(), (*OPENING, *READING), "is empty: run `holdfast migrate`")


def test_an_older_schema_is_to_be_migrated(
    begun: str, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_migrations, "SCHEMA", postgres_migrations.SCHEMA + 1)
    before = kept(begun)
    refused(begun, (*OPENING, *READING), "an earlier Holdfast", "back it up", "`holdfast migrate`")
    assert kept(begun) == before


def test_a_newer_schema_needs_a_newer_program(begun: str, refused: Refused) -> None:
    changed(begun, "UPDATE installation SET schema = schema + 1")
    before = kept(begun)
    refused(begun, ALL, "written by a newer Holdfast", "Upgrade Holdfast")
    assert kept(begun) == before


def test_another_encoding_is_refused(
    refused: Refused, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    url = empty_database("ENCODING 'LATIN1' LOCALE 'C'")
    refused(url, EVERY, "keeps its text in LATIN1", "createdb --encoding=UTF8")


@pytest.mark.parametrize("ahead", [-3.0, 3.0])
def test_a_clock_that_is_off_is_to_be_set(
    begun: str, refused: Refused, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    now = time.time
    monkeypatch.setattr(postgres_migrations.time, "time", lambda: now() + ahead)
    before = kept(begun)
    refused(begun, OPENING, "the clock of this machine", "s apart", "NTP")
    assert kept(begun) == before


@pytest.mark.parametrize("url", ["postgresql://me:hush-hush@[::1/x", "mysql://x/y"])
def test_an_address_that_cannot_be_read_is_shown_how_to_write_it(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    refused(url, EVERY, "postgresql://")


def test_a_server_that_is_not_there_is_named(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    url = "postgresql://me:hush-hush@127.0.0.1:1/journal"
    refused(url, EVERY, "the database journal at 127.0.0.1:1", "refused", "and start again")


def test_a_database_that_is_not_there_is_to_be_made(refused: Refused, database: str) -> None:
    name = database.split("/")[3].partition("?")[0]
    refused(database.replace(f"/{name}?", "/nowhere?"), EVERY, "nowhere", "createdb")


def test_a_wrong_password_is_to_be_put_right(
    refused: Refused, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    parts = conninfo_to_dict(postgres_server.url(tcp=True))
    url = f"postgresql://{parts['user']}:hush-hush@127.0.0.1:{parts['port']}/postgres"
    refused(url, EVERY, "Give the right password")
