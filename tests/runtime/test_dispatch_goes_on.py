"""The dispatcher goes on by itself, whatever becomes of its worker and of the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg_pool.base
import pytest

from holdfast import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.model.run import RunStatus
from holdfast.runs.driving import RunDriver
from holdfast.runtime import dispatch
from holdfast.runtime.engine import Engine
from installation import PATIENCE, SECRET_KEY
from postgresql_server import Server, migrated

pytestmark = pytest.mark.own_store  # about PostgreSQL, which it stops

PLAN = """
plan_id: errand
main_task_id: "001"
tasks: [{task_id: "001", name: Errand}]
listeners:
  - {listener_id: A, trigger_task_id: "001", trigger_condition: Running,
     listener_type: tool, tool: errand, success_output: {task_id: "001", status: Done}}
"""


def furnished(app: Holdfast) -> Holdfast:
    @app.tool(idempotent=True)
    async def errand() -> dict[str, bool]:
        return {"done": True}

    app.load_plan_text(PLAN)
    return app


async def runs_an_errand(decider: Holdfast) -> None:
    """Begun by another, so that it comes by a job."""
    run = await decider.plans.start_plan_by_prompt("", "errand")
    state = await decider.engine.wait_for_status(run.id, frozenset({RunStatus.DONE}), PATIENCE)
    assert state.status is RunStatus.DONE


@pytest.fixture
def postgres() -> Iterator[Server]:
    with Server(fsync=False) as server:
        yield server


async def test_after_a_long_absence_the_database_is_looked_for_as_often_as_before(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The pool's tries become rarer by themselves, here at once: that must not matter."""
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    monkeypatch.setattr(psycopg_pool.base.AttemptWithBackoff, "INITIAL_DELAY", 1000.0)
    url = postgres.create_database(migrated)
    async with (
        furnished(Holdfast(database=url)),
        furnished(Holdfast(database=url, drives=False)) as decider,
    ):
        await runs_an_errand(decider)
        with caplog.at_level(logging.WARNING, "psycopg.pool"):
            await asyncio.to_thread(postgres.stop)
            while "error connecting" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await asyncio.to_thread(postgres.start)
        await runs_an_errand(decider)


async def test_a_database_that_goes_away_during_the_start_is_waited_for(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    url = postgres.create_database(migrated)
    begin = Engine.open

    async def open_and_lose(engine: Engine) -> None:
        await begin(engine)
        await asyncio.to_thread(postgres.stop)

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "open", open_and_lose)
        app = await furnished(Holdfast(database=url)).__aenter__()
    try:
        await asyncio.to_thread(postgres.start)
        async with furnished(Holdfast(database=url, drives=False)) as decider:
            await runs_an_errand(decider)
    finally:
        await app.__aexit__(None, None, None)


@pytest.mark.parametrize("error", [OSError("not now"), asyncio.CancelledError()])
async def test_a_start_that_fails_leaves_nothing_running_and_may_be_tried_again(
    database: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it fails: the last that is opened is the dispatcher's pool."""
    open_pool = dispatch._Pool.open

    async def open_and_fail(pool: dispatch._Pool, *given: Any, **more: Any) -> None:
        await open_pool(pool, *given, **more)
        raise error

    app = furnished(Holdfast(database=database))
    before = asyncio.all_tasks()
    with monkeypatch.context() as patched:
        patched.setattr(dispatch._Pool, "open", open_and_fail)
        with pytest.raises(type(error)):
            await app.__aenter__()
    assert asyncio.all_tasks() == before
    async with app, furnished(Holdfast(database=database, drives=False)) as decider:
        await runs_an_errand(decider)
    assert asyncio.all_tasks() == before


async def test_a_worker_that_ends_is_replaced(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[None] = []

    class Ending(dispatch.Worker):
        async def run(self) -> None:
            if len(ended) < 2:
                ended.append(None)
                raise OSError("no heart any more")
            await super().run()  # type: ignore[no-untyped-call]

    monkeypatch.setattr(dispatch, "Worker", Ending)
    async with (
        furnished(Holdfast(database=database)),
        furnished(Holdfast(database=database, drives=False)) as decider,
    ):
        await runs_an_errand(decider)
    assert len(ended) == 2


async def test_a_drive_that_does_not_end_is_left_behind_and_named(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, released = asyncio.Event(), asyncio.Event()

    async def drive(*given: object, **more: object) -> None:
        begun.set()
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    monkeypatch.setattr(RunDriver, "drive", drive)
    before = asyncio.all_tasks()
    async with (
        furnished(Holdfast(database=database, drives=False)) as decider,
        furnished(Holdfast(database=database)),
    ):
        await decider.plans.start_plan_by_prompt("", "errand")
        await begun.wait()
        monkeypatch.setattr(dispatch, "STALLED_SECONDS", 0.1)
    assert "the drives of jobs 1" in caplog.text
    released.set()
    left = asyncio.all_tasks() - before
    for one in left:
        one.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.mark.parametrize("attempts", [0, 20])
def test_a_drive_that_the_database_broke_off_is_tried_again_soon(
    attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that was; what is a mistake of ours is tried ever more rarely."""

    def seconds(error: Exception) -> float:
        job: Any = type("Job", (), {"attempts": attempts})
        decision = dispatch._Returned().get_retry_decision(exception=error, job=job)
        assert decision.retry_at is not None
        return (decision.retry_at - dispatch.datetime.now(dispatch.UTC)).total_seconds()

    assert seconds(JournalUnavailable("away")) <= dispatch.RETRY_SECONDS
    assert seconds(RuntimeError("ours")) <= max(1.0, dispatch.LONGEST_DELAY * (attempts > 0))
    assert seconds(RuntimeError("ours")) > dispatch.RETRY_SECONDS - 0.1
