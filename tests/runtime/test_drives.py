"""Which runs of a shared journal a process drives, and when it lets go of one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import psycopg
import pytest
from psycopg import sql
from scenes import until

from holdfast import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.journal.port import Drive
from holdfast.journal.shared import SharedJournal
from holdfast.runtime import dispatch
from holdfast.runtime.actor import Actor
from holdfast.runtime.dispatch import Dispatcher
from holdfast.testing.journal_samples import birth

PLAN = """
plan_id: errand
main_task_id: "001"
inputs: {size: {type: number, label: Size}}
tasks: [{task_id: "001", name: Errand}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: "001.status == Running",
     listener_type: tool, tool: errand, success_output: {task_id: "001", status: Done}}
"""
SECONDS = 60


class Errand:
    """A tool that waits until it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.let_go = asyncio.Event()

    async def run(self) -> dict[str, bool]:
        self.calls += 1
        await self.let_go.wait()
        return {"done": True}


@pytest.fixture
def errand() -> Errand:
    return Errand()


@asynccontextmanager
async def deciding(database: str, errand: Errand) -> AsyncIterator[Holdfast]:
    """Decides; what it drives the test hands to it."""
    app = Holdfast(database=database, drives=False)
    app.tool(errand.run, name="errand")
    app.load_plan_text(PLAN)
    async with app:
        yield app


@pytest.fixture
async def app(database: str, errand: Errand) -> AsyncIterator[Holdfast]:
    async with deciding(database, errand) as app:
        yield app


async def new_job(app: Holdfast) -> int:
    [job] = await cast(SharedJournal, app.journal).reserve_jobs(1)
    return job


async def test_a_driver_that_was_thought_gone_and_gets_its_job_again_drives_once(
    app: Holdfast, errand: Errand
) -> None:
    run = await app.plans.start_plan_by_prompt("", "errand", values={"size": 1})
    job = await new_job(app)
    cast(SharedJournal, app.journal).worker_id = 1  # which has slots for its calls
    async with asyncio.timeout(SECONDS):
        first = asyncio.create_task(app.engine.drive(run.id, Drive(job, 0)))
        await until(lambda: errand.calls == 1)
        again = asyncio.create_task(app.engine.drive(run.id, Drive(job, 1)))
        await first
        assert not again.done()
        errand.let_go.set()
        await again
    assert await run.wait_for_completion() == "done"
    assert errand.calls == 1, "what it has in flight itself was left by nobody"
    assert await app.inbox() == []


async def test_a_driver_that_another_has_taken_over_from_says_nothing_of_that_ones_calls(
    app: Holdfast, database: str, errand: Errand
) -> None:
    run = await app.plans.start_plan_by_prompt("", "errand", values={"size": 1})
    job, drives = await new_job(app), app.engine.drives
    assert drives is not None
    async with asyncio.timeout(SECONDS), deciding(database, errand) as other:
        former = asyncio.create_task(app.engine.drive(run.id, Drive(job, 0)))
        await until(lambda: run.id in drives.driven)  # without a slot to call anything with
        actor = drives.driven[run.id]
        cast(SharedJournal, other.journal).worker_id = 1
        driving = asyncio.create_task(other.engine.drive(run.id, Drive(job, 1)))
        await until(lambda: errand.calls == 1)
        await former
        await until(lambda: not (actor.draining or actor.mailbox or actor.stale))
        errand.let_go.set()
        await driving
        told = [event.type.partition("@")[0] for event in await app.journal.read(run.id)]
    assert told == ["RunStarted", "ListenerStarted", "ListenerSucceeded", "RunCompleted"]
    assert errand.calls == 1


async def test_runs_are_driven_whatever_an_administrator_has_set_for_the_database(
    database: str, errand: Errand
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        for how in (
            "default_transaction_isolation = 'serializable'",
            "extra_float_digits = 0",
            "datestyle = 'German'",
            "intervalstyle = 'sql_standard'",
            "timezone = 'Asia/Kathmandu'",
            "bytea_output = 'escape'",
            "standard_conforming_strings = off",
        ):
            told = sql.SQL("ALTER DATABASE {} SET {}").format(name, sql.SQL(how))
            connection.execute(told)
    errand.let_go.set()
    async with asyncio.timeout(SECONDS), Holdfast(database=database) as app:
        app.tool(errand.run, name="errand")
        app.load_plan_text(PLAN)
        runs = [
            await app.plans.start_plan_by_prompt("", "errand", values={"size": 1}) for _ in range(9)
        ]
        for run in runs:
            assert await run.wait_for_completion() == "done"
    assert errand.calls == 9


async def test_a_start_that_is_refused_where_it_would_be_driven_says_why(
    database: str, errand: Errand
) -> None:
    async with Holdfast(database=database) as app:
        app.tool(errand.run, name="errand")
        app.load_plan_text(PLAN)
        drives, dispatcher = app.engine.drives, app.dispatcher
        assert drives is not None
        assert dispatcher is not None
        await dispatcher.ready.wait()
        await drives._reserve()
        with pytest.raises(Exception, match="inputs"):
            await app.plans.start_plan_by_prompt("", "errand", values={"size": "wide"})
        assert drives.driven == {}


async def test_a_consumer_that_leaves_after_another_has_taken_over_is_forgotten(
    app: Holdfast,
) -> None:
    run = await app.plans.start_plan_by_prompt("", "errand", values={"size": 1})
    drives = app.engine.drives
    assert drives is not None
    await app.engine.attend(run.id)
    actor = drives.driven[run.id]
    drives.superseded(actor, actor.drive)
    await app.engine.leave(run.id)
    assert drives._consumed == set()


async def test_a_consumer_that_could_not_come_is_forgotten(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what is said to the conversation would wake no driver, for it seems to have its own."""
    run = await app.plans.start_plan_by_prompt("", "errand", values={"size": 1})
    drives = app.engine.drives
    assert drives is not None

    async def away(run_id: str) -> Actor:
        raise JournalUnavailable("the database is away")

    monkeypatch.setattr(app.engine._turns, "find", away)
    with pytest.raises(JournalUnavailable):
        await app.engine.attend(run.id)
    assert drives._consumed == set()


async def test_as_many_runs_are_driven_as_was_said_last_also_of_those_born_here(
    database: str, errand: Errand
) -> None:
    app = Holdfast(database=database)
    app.tool(errand.run, name="errand")
    app.load_plan_text(PLAN)
    app.concurrency = 1
    async with app:
        drives, dispatcher = app.engine.drives, app.dispatcher
        assert drives is not None
        assert dispatcher is not None
        await dispatcher.ready.wait()
        await drives._reserve()
        starts = [
            app.plans.start_plan_by_prompt("", "errand", values={"size": n}) for n in range(3)
        ]
        runs = [await one for one in starts]
        assert len(drives.driven) < len(runs), "one that is born here, and one that was fetched"
        errand.let_go.set()
        assert [await run.wait_for_completion() for run in runs] == ["done"] * 3


async def test_who_reads_a_run_while_the_application_closes_is_told_so(
    app: Holdfast, errand: Errand
) -> None:
    run = await app.plans.start_plan_by_prompt("", "errand", values={"size": 1})
    actor = await app.engine._turns.find(run.id)
    actor.stale = True  # another process has appended something
    app.engine._turns.closing = True
    reading = asyncio.create_task(app.engine.state(run.id))
    await until(lambda: actor.readers)
    await app.engine.close()
    async with asyncio.timeout(SECONDS):
        with pytest.raises(JournalUnavailable, match="is closed"):
            await reading


class Idle:
    """Drives nothing."""

    async def drive(self, run_id: str, drive: Drive) -> None: ...

    def holds(self, job: int) -> bool:
        return False


async def test_all_timers_that_are_due_are_woken_in_one_look(
    app: Holdfast, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "WOKEN_AT_ONCE", 2)
    journal = cast(SharedJournal, app.journal)
    for number in range(5):
        await journal.append(birth(f"inst_{number:06d}", wake_at=1.0, active=False))
    dispatcher = Dispatcher(journal, database, Idle(), lambda: 2.0, 1)
    await dispatcher._look_around(1)
    rows = await app.runs()
    assert [row.active for row in rows] == [True] * 5


async def test_a_worker_whose_clock_was_set_takes_no_timers(
    app: Holdfast, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was far ahead ended all questions of the installation that had a deadline."""
    journal = cast(SharedJournal, app.journal)
    await journal.append(birth("inst_000001", wake_at=1.0, active=False))
    dispatcher = Dispatcher(journal, database, Idle(), lambda: 2.0, 1)
    await dispatcher._connector.open_async()
    now = time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: now() + 1000.0)
        await dispatcher._look_around(10)
        assert "the clocks here and of the database are 1000 s apart" in caplog.text
        assert [row.active for row in await app.runs()] == [False]
    await dispatcher._look_around(11)
    assert [row.active for row in await app.runs()] == [True]
    await dispatcher._connector.close_async()


async def test_a_run_that_cannot_be_read_is_told_of_by_its_worker(
    app: Holdfast, database: str, errand: Errand, caplog: pytest.LogCaptureFixture
) -> None:
    run = await app.plans.start_plan_by_prompt("", "errand", values={"size": 1})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE events SET at = at + 1")
    async with asyncio.timeout(SECONDS), Holdfast(database=database):
        await until(lambda: "is to be driven again" in caplog.text)
    assert f"run {run.id} is to be driven again: record 1 of run {run.id}" in caplog.text
    assert errand.calls == 0
