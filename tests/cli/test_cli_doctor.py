"""What `doctor` finds wrong with an installation on PostgreSQL: each of it is made wrong here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cli_scene import Command, command_line, environment

import warm
from holdfast import Holdfast
from holdfast.journal import postgres_condition
from holdfast.journal.port import Append
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.postgres_hints import process_label
from holdfast.model import commands
from holdfast.model.run import RunStatus
from holdfast.testing.journal_samples import birth, records, run_row
from holdfast.views import condition as judged
from postgresql_server import Server, migrated

PATIENCE = 60.0

LAST_STEP = """
plan_id: outer
main_task_id: "001"
tasks: [{task_id: "001", name: Outer}, {task_id: "002", name: Asked}, {task_id: "003", name: Paid}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: human, title: Go on?, success_output: {task_id: "002", status: Done}}
  - {listener_id: B, trigger_task_id: "002", trigger_condition: Done,
     listener_type: tool, tool: pay, success_output: {task_id: "003", status: Done}}
  - {listener_id: C, trigger_task_id: "003", trigger_condition: Done,
     listener_type: plan, plan_id: ask, success_output: {task_id: "001", status: Done}}
"""

PAYS = """
plan_id: pays
main_task_id: "001"
tasks: [{task_id: "001", name: Pays}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: tool, tool: pay, success_output: {task_id: "001", status: Done}}
"""

APPLICATION = """
from holdfast import Holdfast

app = Holdfast()


@app.tool
async def pay() -> dict:
    return {}


app.load_plans("plans")
"""

WITHOUT = """
from holdfast import Holdfast

app = Holdfast()
"""


@pytest.fixture
def shared(place: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOLDFAST_DATABASE", database)
    return database


@pytest.fixture
def prompt(shared: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared, autocommit=True) as connection:
        yield connection


def filled(
    url: str, *appends: Append, then: Callable[[PostgresJournal], Any] | None = None
) -> None:
    async def fill() -> None:
        journal = PostgresJournal(url)
        await journal.open()
        for append in appends:
            await journal.append(append)
        if then is not None:
            await then(journal)
        await journal.close()

    asyncio.run(fill())


def found(holdfast: Command) -> dict[str, dict[str, Any]]:
    """The findings by what they are about; the exit code is theirs."""
    ended = holdfast("doctor", "--json")
    problems = {one["what"]: one for one in ended.json["problems"]}
    assert all(one["remedy"] for one in problems.values())
    grave = any(not one["harmless"] for one in problems.values())
    assert (ended.code, ended.json["ok"]) == (int(grave), not grave)
    return problems


def waited_for(holdfast: Command, what: str) -> dict[str, Any]:
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        problems = found(holdfast)
        if what in problems:
            return problems[what]
    raise AssertionError(f"{what} was not found in {PATIENCE} s")


@contextmanager
def working(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = warm.Popen(
        command_line("worker", "--json", *arguments),
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["pid"] == process.pid
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_nothing_is_wrong_with_an_installation_at_rest(
    holdfast: Command, shared: str, place: Path
) -> None:
    with working(place):
        ended = holdfast("doctor", "--json")
        assert (ended.code, ended.json["problems"]) == (0, [])
        told = ended.json["installation"]
        assert (told["schema"], told["figures"]["workers"]) == (told["wanted_schema"], 1)
        [process] = told["processes"]
        assert process["role"] == "worker"
        said = holdfast("doctor").out
        assert "sound" in said
        assert f"worker {process['name']}: Holdfast {process['version']}" in said


def test_a_schema_that_is_not_this_releases(
    holdfast: Command,
    place: Path,
    empty_database: Callable[..., str],
    prompt: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt.execute("UPDATE installation SET schema = schema + 1")
    assert "newer" in found(holdfast)["schema"]["problem"]
    prompt.execute("UPDATE installation SET schema = -1")
    assert "back it up" in found(holdfast)["schema"]["remedy"]
    monkeypatch.setenv("HOLDFAST_DATABASE", empty_database())
    assert found(holdfast)["schema"]["remedy"] == "run `holdfast migrate`"


def test_clocks_that_differ(
    holdfast: Command, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = time.time

    monkeypatch.setattr("holdfast.journal.postgres_migrations.time.time", lambda: there() + 3.0)
    problem = found(holdfast)["clock"]["problem"]
    assert "3.0 s apart" in problem or "2.9 s apart" in problem


def test_a_transaction_that_holds_back_the_order_of_commits(
    holdfast: Command, shared: str, prompt: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged, "SEALING_SECONDS", 1.0)
    monkeypatch.setattr(judged, "OPEN_SECONDS", float("inf"))
    with psycopg.connect(shared, application_name="a report") as other:
        other.execute("CREATE TABLE mine (id int)")
        filled(shared, birth("a", 3))
        transaction = waited_for(holdfast, "transaction")["problem"]
        assert f"pid {other.info.backend_pid} (a report, idle in transaction)" in transaction
        assert "commits: 3, the oldest" in found(holdfast)["sealing"]["problem"]
        assert "end the transaction" in found(holdfast)["sealing"]["remedy"]
        other.rollback()
    filled(shared, then=lambda journal: journal.seal())
    assert not {"transaction", "sealing"} & set(found(holdfast))


def test_a_long_transaction_that_only_reads(
    holdfast: Command, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged, "OPEN_SECONDS", 1.0)
    with psycopg.connect(shared) as other:
        other.execute("SELECT 1")
        assert "nothing that was removed" in waited_for(holdfast, "transaction")["problem"]


def test_runs_that_wait_for_a_worker(
    holdfast: Command, shared: str, prompt: psycopg.Connection, place: Path
) -> None:
    filled(shared, birth("a", active=True))
    assert "there is no worker" in found(holdfast)["workers"]["problem"]
    prompt.execute("UPDATE procrastinate_jobs SET scheduled_at = now() - interval '5 minutes'")
    prompt.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
    problem = found(holdfast)["waiting"]["problem"]
    assert "wait to be driven (1), the oldest for 300." in problem


def test_a_run_that_was_forgotten(
    holdfast: Command, shared: str, prompt: psycopg.Connection
) -> None:
    filled(shared, birth("a", active=True))
    assert "forgotten" not in found(holdfast)
    prompt.execute("DELETE FROM procrastinate_jobs")
    assert found(holdfast)["forgotten"]["problem"].endswith("no job: a")


@pytest.mark.parametrize(
    ("attempts", "seconds", "told"), [(4, 16, False), (5, 32, True), (50, 0, True)]
)
def test_a_run_that_is_tried_again_and_again(
    holdfast: Command,
    shared: str,
    prompt: psycopg.Connection,
    attempts: int,
    seconds: int,
    told: bool,
) -> None:
    filled(shared, birth("a", active=True))
    prompt.execute(
        "UPDATE procrastinate_jobs SET attempts = %s, scheduled_at = now() + %s * interval '1 s'",
        (attempts, seconds),
    )
    problem = found(holdfast).get("retried", {}).get("problem", "")
    assert problem.endswith("again and again (1): a") is told


def test_timers_that_nobody_takes(holdfast: Command, shared: str) -> None:
    late = time.time() - 60.0
    filled(shared, *(birth(name, wake_at=late) for name in "ab"))
    assert "not taken: 2, the first of run a" in found(holdfast)["timers"]["problem"]


def test_a_worker_that_was_stopped(
    holdfast: Command,
    shared: str,
    place: Path,
    prompt: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judged, "SILENT_SECONDS", 8.0)
    with working(place) as worker:
        os.kill(worker.pid, signal.SIGSTOP)
        [(number,)] = prompt.execute("SELECT id FROM procrastinate_workers").fetchall()
        filled(shared, birth("a", active=True))
        held = "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s"
        prompt.execute(held, [number])
        assert waited_for(holdfast, "stalled")["problem"].endswith("not heard of (1): a")
        assert f"/{worker.pid} has said nothing" in waited_for(holdfast, "silent")["problem"]
        os.kill(worker.pid, signal.SIGCONT)
        limit = time.monotonic() + PATIENCE
        while {"silent", "stalled"} & set(found(holdfast)) and time.monotonic() < limit:
            pass
        assert not {"silent", "stalled"} & set(found(holdfast))


def test_too_few_connections(
    holdfast: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(fsync=False, max_connections=10, superuser_reserved_connections=3) as server:
        url = server.create_database(migrated)
        monkeypatch.setenv("HOLDFAST_DATABASE", url)
        assert "connections" not in found(holdfast)
        held = [psycopg.connect(url) for _ in range(6)]
        assert "7 of 7 connections" in found(holdfast)["connections"]["problem"]
        for one in held:
            one.close()


def test_a_user_who_may_not_see_what_others_do(
    holdfast: Command,
    shared: str,
    place: Path,
    prompt: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt.execute("CREATE ROLE observer LOGIN")
    try:
        prompt.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO observer")
        with working(place):
            monkeypatch.setenv("HOLDFAST_DATABASE", shared.replace("//holdfast@", "//observer@"))
            assert found(holdfast)["hidden"]["harmless"]
            told = holdfast("doctor", "--json").json["installation"]
            assert told["connections"] >= 3, "the worker's and those of the test"
            [process] = told["processes"]
            assert (process["role"], process["silent"]) == ("worker", None)
            assert f"worker {process['name']}: Holdfast" in holdfast("doctor").out
            prompt.execute("GRANT pg_read_all_stats TO observer")
            assert "hidden" not in found(holdfast)
    finally:
        prompt.execute("DROP OWNED BY observer")
        prompt.execute("DROP ROLE observer")


def test_processes_of_two_releases(holdfast: Command, shared: str, place: Path) -> None:
    with working(place), psycopg.connect(shared, application_name="holdfast server 0.0.9 old/1"):
        versions = found(holdfast)["versions"]
        assert "0.0.9" in versions["problem"]
        assert versions["harmless"]


async def quarantine(url: str) -> str:
    """A run whose process went down three times while a tool was at work."""
    app = Holdfast(database=url)
    app.grace = 0.0

    @app.tool(idempotent=True)
    async def pay() -> None:
        await asyncio.Event().wait()

    app.load_plan_text(PAYS)
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "pays")
        await app.engine.wait_for(instance.id, lambda state: bool(state.steps["A"].claim))
        for _ in range(3):
            await app.engine.submit(instance.id, commands.Recover())
        assert (await app.engine.state(instance.id)).status is RunStatus.ERROR
    return instance.id


def test_late_results_and_quarantined_runs(holdfast: Command, shared: str) -> None:
    gone = asyncio.run(quarantine(shared))
    late = [one._replace(type="LateResultKept") for one in records(0, 1)]
    filled(
        shared,
        Append("a", 0, late, run_row("a")),
        birth("c", status="error"),
        then=lambda journal: journal.seal(),
    )
    problems = found(holdfast)
    assert problems["late"]["problem"].endswith(": a")
    assert problems["quarantined"]["problem"].endswith(f": {gone}")


def test_what_a_deploy_would_break(holdfast: Command, shared: str, place: Path) -> None:
    (place / "plans" / "outer.yaml").write_text(LAST_STEP, encoding="utf-8")
    (place / "shop.py").write_text(APPLICATION, encoding="utf-8")
    (place / "bare.py").write_text(WITHOUT, encoding="utf-8")
    with working(place, "shop:app"):
        run = holdfast("run", "outer", "--app", "shop:app", "--json")
        assert run.code == 4
    kept = holdfast("doctor", "shop:app", "--json")
    assert (kept.code, kept.json["problems"]) == (0, [])
    broken = holdfast("doctor", "bare:app", "--json")
    told = [(one["what"], one["name"]) for one in broken.json["problems"]]
    assert (broken.code, told) == (1, [("deploy", "pay"), ("deploy", "ask")])
    assert all("inst_000001" in one["problem"] for one in broken.json["problems"])
    assert "deploy" not in holdfast("doctor").out


def test_findings_are_told_in_the_readers_language(
    holdfast: Command, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(shared, birth("a", active=True))
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    said = holdfast("doctor").out
    assert "没有 worker" in said
    assert "holdfast worker" in said


def test_a_database_that_is_away(
    holdfast: Command, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE", "postgresql://will:hush@127.0.0.1:1/holdfast")
    ended = holdfast("doctor")
    assert (ended.code, "did not acknowledge" in ended.err, "hush" in ended.err) == (1, True, False)


def test_the_label_of_a_process_is_read_back() -> None:
    label = process_label("worker")
    read = postgres_condition._LABEL.fullmatch(label)
    assert read is not None
    assert (len(label) <= 63, read["role"], label.endswith(f"/{os.getpid()}")) == (
        True,
        "worker",
        True,
    )
