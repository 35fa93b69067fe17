"""How many statements things cost on PostgreSQL, compared with the figures kept here.

What depends on how long something takes is left out: hints, of which one goes each 50 ms, and what
a process asks from time to time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping

import pytest
from bench.ours import effect, sequence
from bench.postgres.statements import counted

from holdfast import Holdfast

NOW_AND_THEN = (
    "tell",
    "wake_due",
    "forgotten_runs",
    "held_jobs",
    "server_up_for",
    "count_slots",
    "look",
    "versions",
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
    return {name: count for name, count in counts.items() if name and name not in NOW_AND_THEN}


@pytest.mark.parametrize("length", [10, 100])
async def test_a_step_is_one_statement_and_a_run_begins_with_six(
    driver: Holdfast, length: int
) -> None:
    with counted() as counts:
        await done(driver, length)
    # Its job is removed with its last append.
    assert kept(counts) == {**BORN, "append_one": length - 1, "append_one_with_row": 1}


async def test_runs_at_once_share_statements(driver: Holdfast) -> None:
    with counted() as counts:
        await asyncio.gather(*(done(driver, 10) for _ in range(50)))
    assert "version" not in counts, "who waits for a run that is driven here asks nobody"
    assert Counter(kept(counts)).total() < 0.2 * 500, kept(counts)
