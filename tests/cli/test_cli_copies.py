"""`holdfast copy`: from a home into PostgreSQL and back, also where it is ended half-way."""

from __future__ import annotations

import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from cli_scene import Command, command_line, environment
from serving import served

import warm
from postgresql_server import Server, migrated

PATIENCE = 60.0
SECRET_KEY = b64encode(bytes(range(32))).decode()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)


def test_a_home_moves_into_a_database_and_back(
    holdfast: Command, empty_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = holdfast("run", "ask", "--json").json["instance_id"]
    url = empty_database()
    copied = holdfast("copy", ".holdfast", url)
    assert (copied.code, copied.err) == (0, "")
    assert "verified\n" in copied.out
    assert "1 runs replayed" in copied.out
    head = copied.out.split("audit head: ")[1][:64]
    monkeypatch.setenv("HOLDFAST_DATABASE", url)
    assert holdfast("audit", "verify", "--head", head).code == 0
    [asked] = holdfast("inbox", "--json").json
    values = ("--set", "count=2", "--set", "agreed=yes", "--set", "kinds=a")
    assert holdfast("answer", asked["question_id"], *values, "--no-wait").code == 0
    monkeypatch.delenv("HOLDFAST_DATABASE")
    back = holdfast("copy", url, "again", "--json")
    assert (back.code, back.json["runs"], back.json["verified"]) == (0, 1, True), back.out
    assert back.json["active_runs"] == 1
    assert holdfast("inbox", "--home", "again", "--json").json == []
    assert holdfast("audit", "verify", "--home", "again", "--head", head).code == 0
    assert holdfast("history", run_id, "--home", "again").code == 0


def test_what_cannot_be_copied_is_refused_in_one_line(
    holdfast: Command, place: Path, empty_database: Callable[..., str]
) -> None:
    holdfast("run", "ask")
    url = empty_database()
    for arguments, told in [
        ((".holdfast", "again"), "both are homes"),
        ((url, url), "both are databases"),
        (("nowhere", url), "holds no runs yet"),
        ((url, "again"), "holdfast migrate"),
        ((".holdfast", "mysql://host/name"), "begins with postgresql://"),
        ((".holdfast", "postgresql://nobody@127.0.0.1:1/none"), "did not acknowledge"),
    ]:
        refused = holdfast("copy", *arguments)
        assert (refused.code, told in refused.err, refused.out) == (1, True, ""), refused.err
        assert refused.err.count("\n") == 1
        told_json = holdfast("copy", *arguments, "--json")
        assert told in told_json.json["error"]["message"]
    assert holdfast("copy", ".holdfast").code == 2
    assert holdfast("copy", ".holdfast", url, "--home", "other").code == 2
    with served(place):
        busy = holdfast("copy", ".holdfast", url)
    assert (busy.code, "is in use by process" in busy.err) == (1, True), busy.err


@contextmanager
def _begun(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = warm.Popen(
        command_line("copy", *arguments),
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@contextmanager
def _held(url: str, table: str, mode: str) -> Iterator[Callable[[], None]]:
    """Whoever comes to a table waits; and what waits until somebody does."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as looking:
        holder.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass"

        def arrived() -> None:
            limit = time.monotonic() + PATIENCE
            while looking.execute(waiting.encode(), [table]).fetchall() == [(0,)]:
                assert time.monotonic() < limit, "nobody came to the table"
                time.sleep(0.01)

        yield arrived


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("to", ["database", "home"])
def test_a_copy_that_is_ended_half_way_is_gone_on_with(
    to: str,
    how: signal.Signals,
    holdfast: Command,
    place: Path,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holdfast("run", "ask")
    places = [".holdfast", database]
    table, mode = "audit", "SHARE"
    if to == "home":
        assert holdfast("copy", *places).code == 0
        places = [database, "again"]
        table, mode = "series", "ACCESS EXCLUSIVE"
    with _held(database, table, mode) as arrived, _begun(place, *places) as process:
        arrived()
        process.send_signal(how)
        out, err = process.communicate(timeout=PATIENCE)
    if how is signal.SIGINT:
        assert (process.returncode, out) == (130, "")
        assert "is unfinished and cannot be used: the same command goes on with it" in err
    else:
        assert process.returncode == -signal.SIGKILL
    there = {"database": (), "home": ("--home", "again")}[to]
    with monkeypatch.context() as patch:
        if to == "database":
            patch.setenv("HOLDFAST_DATABASE", database)
        for command in (("runs",), ("run", "ask"), ("doctor",), ("serve", "--port", "0")):
            refused = holdfast(*command, *there)
            assert (refused.code, "is an unfinished copy" in refused.err) == (1, True), refused
    again = holdfast("copy", *places, "--json")
    assert (again.code, again.json["verified"]) == (0, True), again.out
    assert "runs" not in again.json["rows"]
    if to == "home":
        assert holdfast("doctor", "--integrity", "--home", "again").code == 0


def test_a_database_that_goes_away_is_told_with_the_way_on(holdfast: Command, place: Path) -> None:
    holdfast("run", "ask")
    with Server(fsync=False) as server:
        url = server.create_database(migrated)
        with _begun(place, ".holdfast", url) as process:
            with suppress(psycopg.OperationalError), _held(url, "audit", "SHARE") as arrived:
                arrived()
                server.stop(immediate=True)
            out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (1, "")
        assert "did not acknowledge" in err
        assert "the same command goes on with it" in err
        server.start()
        assert holdfast("copy", ".holdfast", url).code == 0
