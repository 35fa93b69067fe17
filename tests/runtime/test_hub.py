"""Whoever follows a run sees each of its events once, in order, however slowly."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from scenes import PURE, Desk, chain, history, tools, until

from holdfast.app import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.journal.memory import MemoryJournal
from holdfast.runtime.hub import Hub


async def follow(app: Holdfast, run_id: str, after: int, chance: random.Random) -> list[int]:
    """Read until the end of the run, dawdling now and then."""
    seen = []
    async for record in app.engine.hub.subscribe(run_id, after):
        seen.append(record.seq)
        for _ in range(chance.choice((0, 0, 1, 5, 30))):
            await asyncio.sleep(0)
        if type(record.event).__name__ == "RunCompleted":
            return seen
    return seen


async def test_no_gap_and_no_repetition_from_any_number_on_under_load(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    desk = Desk()
    app.tool(desk.work, name="work")
    app.add_plan(tools("chain", *["work"] * 30))
    chance = random.Random(7)
    async with app:
        starts = (app.plans.start_plan_by_prompt("", "chain") for _ in range(10))
        instances = await asyncio.gather(*starts)
        places = [(one.id, after) for one in instances for after in (0, 0, 1, 7, 40)]
        followers = [follow(app, run_id, after, chance) for run_id, after in places]
        followed = await asyncio.gather(*followers)
        for (run_id, after), seen in zip(places, followed, strict=True):
            last = len(await history(app, run_id))
            assert seen == list(range(after + 1, last + 1))
        assert not [one for one in app.engine.hub._audiences.values() if one.listeners]


async def test_who_slept_through_the_rest_of_the_run_still_sees_all_of_it() -> None:
    app = Holdfast.in_memory()
    desk = Desk()
    desk.open.clear()
    app.tool(desk.work, name="work")
    app.add_plan(tools("chain", *["work"] * 5))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "chain")
        stream = app.engine.hub.subscribe(instance.id)
        seen = [(await anext(stream)).seq]
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        while seen[-1] < instance.version:
            seen.append((await anext(stream)).seq)
        assert seen == list(range(1, instance.version + 1))
        await stream.aclose()


async def test_what_is_streamed_is_on_disk_and_pure_work_is_not_seen_before(
    tmp_path: Path,
) -> None:
    app = Holdfast(tmp_path)
    app.add_plan(chain("pure", [PURE] * 20))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "pure")
        async for record in app.engine.hub.subscribe(instance.id):
            assert await app.journal.version(instance.id) >= record.seq
            if type(record.event).__name__ == "RunCompleted":
                break


async def test_a_newcomer_after_the_end_receives_everything() -> None:
    app = Holdfast.in_memory()
    app.add_plan(chain("pure", [PURE]))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "pure")
        await instance.wait_for_completion(20)
        seen = await follow(app, instance.id, 0, random.Random(1))
        assert seen == list(range(1, instance.version + 1))


async def test_subscriptions_end_at_shutdown_also_those_of_the_slow(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    desk = Desk()
    desk.open.clear()
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    gate = asyncio.Event()
    first: list[int] = []

    async def slow(run_id: str) -> str:
        async for record in app.engine.hub.subscribe(run_id):
            first.append(record.seq)
            await gate.wait()
        return "ended"

    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        waiting = asyncio.ensure_future(follow(app, instance.id, 0, random.Random(3)))
        dawdling = asyncio.ensure_future(slow(instance.id))
        await until(lambda: bool(first))
        desk.open.set()
    seen = await waiting
    assert seen == list(range(1, len(seen) + 1))
    gate.set()
    assert await dawdling == "ended", "although the journal is closed by now"


async def test_a_journal_that_fails_is_told_to_the_subscriber() -> None:
    hub = Hub(MemoryJournal())
    with pytest.raises(JournalUnavailable):
        await anext(hub.subscribe("inst_000001"))


async def test_a_watcher_that_breaks_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    app = Holdfast.in_memory()
    desk = Desk()
    app.tool(desk.work, name="work")
    app.add_plan(tools("two", "work", "work"))

    def broken(state: object) -> None:
        raise RuntimeError("a bug in a watcher")

    async with app:
        desk.open.clear()
        instance = await app.plans.start_plan_by_prompt("", "two")
        unwatch = app.engine.hub.watch(instance.id, broken)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        unwatch()
        assert len(desk.keys) == 2
    assert "a watcher of inst_000001 failed" in caplog.text
