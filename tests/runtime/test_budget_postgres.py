"""How many statements things cost on PostgreSQL, compared with the figures kept here.

What depends on how long something takes is left out: hints, of which one goes each 50 ms, and what
a process asks from time to time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping

import psycopg
import pytest
from bench.ours import effect, sequence
from bench.postgres.statements import counted

from holdfast import Holdfast
from holdfast.journal.port import Record

NOW_AND_THEN = (
    "tell",
    "wake_due",
    "forgotten_runs",
    "held_jobs",
    "server_up_for",
    "count_slots",
    "look",
    "versions",
    "notices_for",
    "reserve_jobs",
    "procrastinate_update_heartbeat_v1",
    "procrastinate_fetch_job_v2",
    "WITH stalled_workers AS",
)

BORN = {"count_on": 1, "in_use": 1, "BEGIN": 1, "bear_many": 1, "begin_drives": 1, "COMMIT": 1}
"""A run that is driven where it is born."""


def made(database: str, *, drives: bool = True) -> Holdfast:
    app = Holdfast(database=database, drives=drives)
    app.tool(effect, idempotent=True)
    for length in (10, 100):
        app.add_plan(sequence(f"chain_{length}", *["effect"] * length))
    return app


@pytest.fixture
async def driver(database: str) -> AsyncIterator[Holdfast]:
    """An application that has driven a run, and has jobs in reserve for more."""
    async with made(database) as app:
        assert app.dispatcher is not None
        await app.dispatcher.ready.wait()
        for length in (10, 100):
            await done(app, length)
        yield app


async def done(app: Holdfast, length: int) -> None:
    instance = await app.plans.start_plan_by_prompt("", f"chain_{length}")
    assert await instance.wait_for_completion() == "done"


def kept(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name not in NOW_AND_THEN}


@pytest.mark.parametrize("length", [10, 100])
async def test_a_step_is_one_statement_and_a_run_begins_with_six(
    driver: Holdfast, length: int
) -> None:
    with counted() as counts:
        await done(driver, length)
    # Its job is removed with its last append. On a slow machine its row is renewed meanwhile.
    found = kept(counts)
    with_row = found.pop("append_one_with_row")
    assert with_row >= 1
    assert found == {**BORN, "append_one": length - with_row}


async def test_a_run_that_is_driven_elsewhere_is_read_once(
    driver: Holdfast, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = driver.journal.read, []

    async def noted(run_id: str, *given: int) -> list[Record]:
        reads.append(run_id)
        return await read(run_id, *given)

    monkeypatch.setattr(driver.journal, "read", noted)
    async with made(database, drives=False) as server:
        await done(server, 10)
        with counted() as counts:
            instance = await server.plans.start_plan_by_prompt("", "chain_10")
            await asyncio.to_thread(wait_until_over, database, instance.id)
    born = {name: count for name, count in BORN.items() if name != "begin_drives"}
    deferred = {"defer_drives": 1, "notify_workers": 1}
    taken = {"run": 1, "snapshot": 1, "take": 1}
    # The server hears hints and has a handle of the run.
    others = {"read_events", "version", "finish_job"}
    found = {name: count for name, count in kept(counts).items() if name not in others}
    with_row = found.pop("append_one_with_row")
    assert with_row >= 2
    assert found == {**born, **deferred, **taken, "append_one": 11 - with_row}
    assert reads.count(instance.id) == 1


def wait_until_over(database: str, run_id: str) -> None:
    """Beside the statements that are counted; its job is finished too."""
    over = """
        SELECT 1 FROM runs WHERE run_id = %s AND status = 'done'
        AND NOT EXISTS (SELECT FROM procrastinate_jobs)
    """
    limit = time.monotonic() + 60
    with psycopg.connect(database, autocommit=True) as prompt:
        while not prompt.execute(over, [run_id]).fetchone():
            assert time.monotonic() < limit
            time.sleep(0.01)


async def test_runs_at_once_share_statements(driver: Holdfast) -> None:
    with counted() as counts:
        await asyncio.gather(*(done(driver, 10) for _ in range(50)))
    assert "version" not in counts, "who waits for a run that is driven here asks nobody"
    assert Counter(kept(counts)).total() < 0.2 * 500, kept(counts)
