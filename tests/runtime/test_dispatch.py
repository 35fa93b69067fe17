"""How the dispatcher of a worker reaches its database."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, tzinfo
from typing import Any

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.journal.port import Drive
from holdfast.journal.postgres import PostgresJournal
from holdfast.runs.driving import RunDriver
from holdfast.runtime import dispatch
from holdfast.runtime.drives import HandedBack

PLAN = """
plan_id: asks
main_task_id: "001"
tasks: [{task_id: "001", name: Asks}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: human, title: Well?, success_output: {task_id: "001", status: Done}}
"""

LISTENING = (
    "SELECT DISTINCT application_name FROM pg_stat_activity "
    "WHERE datname = current_database() AND query LIKE 'LISTEN%procrastinate%'"
)


JOB = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, status,"
    " scheduled_at) VALUES ('drive', 'holdfast.drive', 'inst_1', 'inst_1', %s, now() + '1 day')"
    " RETURNING id"
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


async def test_a_run_that_is_being_taken_while_the_process_ends_is_handed_back(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun after all others had been let go of, and its process never ended."""
    app = Holdfast(database=database, drives=False)
    app.load_plan_text(PLAN)
    taking, ended = asyncio.Event(), asyncio.Event()
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "asks")
        take = app.journal.take

        async def take_slowly(run_id: str, drive: Drive) -> bool:
            taken = await take(run_id, drive)
            taking.set()
            await ended.wait()
            return bool(taken)

        monkeypatch.setattr(app.journal, "take", take_slowly)
        driving = asyncio.create_task(app.engine.drive(instance.id, Drive(1, 0)))
        await taking.wait()
        await app.engine.close()
        ended.set()
        async with asyncio.timeout(20):
            with pytest.raises(HandedBack, match="this process ends"):
                await driving


async def test_connections_that_were_ended_while_idle_are_replaced(database: str) -> None:
    """After a restart of PostgreSQL: what nobody used is closed, and no statement has failed."""
    async with (
        Holdfast(journal=PostgresJournal(database)) as worker,
        await psycopg.AsyncConnection.connect(database, autocommit=True) as operator,
    ):
        assert worker.dispatcher is not None
        await worker.dispatcher.ready.wait()
        await operator.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        decider = Holdfast(database=database, drives=False)
        decider.load_plan_text(PLAN)
        async with decider, asyncio.timeout(30):
            instance = await decider.plans.start_plan_by_prompt("", "asks")
            await instance.wait_until_settled()
            assert instance.status == "pause"


async def test_a_job_that_another_stands_in_for_is_no_absence_of_the_database(
    database: str,
) -> None:
    """Each one that was given back kept the jobs of workers that are gone for ten seconds more."""
    async with (
        Holdfast(database=database) as app,
        await psycopg.AsyncConnection.connect(database, autocommit=True) as prompt,
    ):
        assert app.dispatcher is not None
        await app.dispatcher.ready.wait()
        held, waiting = [
            (await (await prompt.execute(JOB, [status])).fetchall())[0][0]
            for status in ("doing", "todo")
        ]
        await app.dispatcher._jobs.give_back(held, 0)
        left = await (await prompt.execute("SELECT id FROM procrastinate_jobs")).fetchall()
        assert left == [(waiting,)]
        assert app.dispatcher._connector.failed_at == float("-inf")


async def test_a_run_is_handed_back_by_the_clock_of_the_database(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a worker's own had been set ahead nobody drove the run for as long."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Ahead:
            return super().now(tz) + timedelta(hours=1)

    monkeypatch.setattr(dispatch, "datetime", Ahead)
    refused = asyncio.Event()
    drive = RunDriver.drive

    async def refuse_once(driver: RunDriver, run_id: str, *given: Any, **more: Any) -> None:
        if not refused.is_set():
            refused.set()
            raise HandedBack(run_id, "not now")
        await drive(driver, run_id, *given, **more)

    monkeypatch.setattr(RunDriver, "drive", refuse_once)
    app = Holdfast(database=database)
    app.load_plan_text(PLAN)
    async with app, asyncio.timeout(30):
        instance = await app.plans.start_plan_by_prompt("", "asks")
        await instance.wait_until_settled()
        assert instance.status == "pause"
    assert refused.is_set()
