"""The PostgreSQL that tests start: theirs alone, as hard to lose as a real one, gone with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from postgresql_server import PORTS, Server, Unstartable

TESTS = Path(__file__).parents[1]
OWNER = """
import sys
sys.path.insert(0, sys.argv[1])
from postgresql_server import Server
server = Server(fsync=False).open()
print(server._process.pid, server._watchdog.pid, server.directory, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """One that these tests may stop and kill."""
    with Server() as server:
        yield server


def keep(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('word')")


def kept(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [word for (word,) in connection.execute("SELECT word FROM kept").fetchall()]


def setting(url: str, name: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
        assert row is not None
        return str(row[0])


def test_it_speaks_through_its_socket_and_its_port(own: Server) -> None:
    for url in (own.url(), own.url(tcp=True)):
        assert setting(url, "server_encoding") == "UTF8"
    assert own.port in PORTS, "beside a server of the machine, which has 5432"


def test_its_port_asks_for_the_password(own: Server) -> None:
    without = f"postgresql://holdfast@127.0.0.1:{own.port}/postgres"
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(without)


def test_a_commit_waits_for_the_disk_unless_told_otherwise(
    own: Server, postgres_server: Server
) -> None:
    assert setting(own.url(), "fsync") == "on"
    assert setting(postgres_server.url(), "fsync") == "off"


def test_each_database_is_new(postgres_server: Server) -> None:
    one, other = (postgres_server.create_database(keep) for _ in range(2))
    with psycopg.connect(one) as connection:
        connection.execute("INSERT INTO kept VALUES ('mine')")
    assert kept(one) == ["word", "mine"]
    assert kept(other) == ["word"]


def test_a_database_goes_with_its_connections(postgres_server: Server) -> None:
    url = postgres_server.create_database()
    with psycopg.connect(url) as connection:
        postgres_server.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT relname FROM pg_stat_user_tables").fetchall()
    return {name for (name,) in rows}


def test_a_test_has_a_database_of_its_own(
    database: str, empty_database: Callable[..., str]
) -> None:
    assert {"runs", "events", "procrastinate_jobs"} <= tables(database)
    assert tables(empty_database()) == set()
    other = empty_database("ENCODING 'LATIN1'")
    assert setting(other, "server_encoding") == "LATIN1"


@pytest.mark.parametrize("how", ["stop", "immediately", "kill"])
def test_what_is_committed_outlives_its_end(own: Server, how: str) -> None:
    url, port = own.create_database(keep), own.port
    connection = psycopg.connect(url)
    if how == "kill":
        own.kill()
    else:
        own.stop(immediate=how == "immediately")
    with connection, pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    own.start()
    assert kept(url) == ["word"]
    assert own.port == port


def test_settings_are_its_own() -> None:
    with Server(fsync=False, commit_delay=2000) as server:
        assert setting(server.url(), "commit_delay") == "2000"


def test_a_failed_start_tells_why_and_leaves_nothing() -> None:
    server = Server(no_such_setting=1)
    with pytest.raises(Unstartable, match="no_such_setting"):
        server.open()
    assert not server.directory.exists()


def test_closing_it_removes_everything() -> None:
    with Server(fsync=False) as server:
        process = server._process
        assert process is not None
    assert process.returncode is not None
    assert not server.directory.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_owner(how: signal.Signals) -> None:
    """The watchdog holds the owner's standard output too, so that its end is the watchdog's."""
    command = [sys.executable, "-c", OWNER, str(TESTS)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        server, _, directory = owner.stdout.readline().split()
        os.kill(owner.pid, how)
        assert owner.stdout.read() == "", "read to the end, which comes when the watchdog is gone"
    assert not Path(directory).exists()
    assert not runs(int(server))


def runs(process: int) -> bool:
    """Nobody may have collected it; what it had open is closed all the same."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except FileNotFoundError:
        return False
