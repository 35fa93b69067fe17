"""A new owner takes up what the former one left, and only what it left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scenes import (
    PURE,
    Desk,
    assert_sound,
    chain,
    history,
    no_task_left_behind,
    of_kind,
    plan,
    tools,
    until,
)

from holdfast.app import Holdfast
from holdfast.core.plan.decide import blank, replay
from holdfast.journal.codec import decode
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, Record, Snapshot
from holdfast.journal.snapshots import SCHEMA
from holdfast.model import events as e
from holdfast.model.plan import Plan
from holdfast.runtime import turns
from holdfast.testing.clock import ManualClock

DAY = 86_400.0

ASKS = """
plan_id: asks
name: Asks
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: work
    success_output: {task_id: "001", status: Done}
"""

ASKS_WITH_DEADLINE = """
plan_id: deadline
name: Asks until a moment
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    message: Shall we?
    timeout_seconds: 3600
    success_output: {task_id: "001", status: Done}
"""

PARENT = """
plan_id: parent
name: Has it done by another plan
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: asks
    success_output: {task_id: "001", status: Done}
"""


class Crashed(MemoryJournal):
    """What is on disk when the process goes: the memory stays, its owners do not."""

    async def close(self) -> None:
        """A dead process closes nothing."""


@pytest.fixture
def desk() -> Desk:
    return Desk()


def furnished(
    journal: object, desk: Desk, *plans: Plan, idempotent: bool = False, **options: Any
) -> Holdfast:
    app = Holdfast(journal=journal, **options)  # type: ignore[arg-type]
    app.tool(desk.work, name="work", idempotent=idempotent)
    for one in plans:
        app.add_plan(one)
    return app


async def crash(app: Holdfast) -> None:
    """The process is gone: nothing it had in hand comes to an end."""
    app.engine._turns.closing = True
    await app.engine._timers.stop()
    for task in tuple(app.engine._turns.background.running):
        task.cancel()
    await asyncio.gather(*app.engine._turns.background.running, return_exceptions=True)
    app.sandbox.close()


async def test_a_run_that_takes_its_process_down_three_times_is_quarantined_and_others_go_on(
    desk: Desk,
) -> None:
    journal = Crashed()
    desk.open.clear()
    deadly, healthy = tools("deadly", "work"), chain("healthy", [PURE, PURE])
    app = furnished(journal, desk, deadly, healthy, idempotent=True)
    await app.__aenter__()
    instance = await app.plans.start_plan_by_prompt("", "deadly")
    await until(lambda: len(desk.keys) == 1)
    for crashes in (1, 2):
        await crash(app)
        app = furnished(journal, desk, deadly, healthy, idempotent=True)
        await app.__aenter__()
        await until(lambda crashes=crashes: len(desk.keys) == crashes + 1)
    await crash(app)
    async with furnished(journal, desk, deadly, healthy, idempotent=True) as app:
        instance = await app.instance(instance.id)
        assert await instance.wait_for_completion(20) == "error"
        message = instance.get_main_task_instance().context["error_info"]["message"]
        assert "quarantined" in message
        assert len(desk.keys) == 3, "it was not tried a fourth time"
        other = await app.plans.start_plan_by_prompt("", "healthy")
        assert await other.wait_for_completion(20) == "done"
        recovered = of_kind(await history(app, instance.id), e.RunRecovered)
        assert [one.count for one in recovered] == [1, 2, 3]  # type: ignore[attr-defined]
        desk.open.set()
        assert await app.planner_agent.resume_plan(app.plans, "deadly", instance.id)
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, instance.id)


async def test_progress_between_crashes_forgives_them(desk: Desk) -> None:
    journal = Crashed()
    long = tools("long", *["work"] * 6)
    app = furnished(journal, desk, long, idempotent=True)
    await app.__aenter__()
    instance = await app.plans.start_plan_by_prompt("", "long")
    for _ in range(5):
        desk.open.clear()
        before = len(desk.keys)
        await until(lambda before=before: len(desk.keys) > before)
        await crash(app)
        desk.open.set()
        app = furnished(journal, desk, long, idempotent=True)
        await app.__aenter__()
        await until(lambda before=before: len(desk.keys) > before + 1)
    instance = await app.instance(instance.id)
    assert await instance.wait_for_completion(20) == "done"
    await app.__aexit__(None, None, None)


async def test_an_idempotent_effect_in_flight_runs_again_under_its_key_and_another_asks(
    desk: Desk,
) -> None:
    for idempotent in (True, False):
        journal = Crashed()
        desk.keys.clear()
        desk.open.clear()
        app = furnished(journal, desk, tools("one", "work"), idempotent=idempotent)
        await app.__aenter__()
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: len(desk.keys) == 1)
        await crash(app)
        desk.open.set()
        async with furnished(journal, desk, tools("one", "work"), idempotent=idempotent) as app:
            instance = await app.instance(instance.id)
            if idempotent:
                assert await instance.wait_until_settled(20) == "done"
                assert len(desk.keys) == 2
                assert len(set(desk.keys)) == 1
            else:
                assert await instance.wait_until_settled(20) == "pause"
                assert len(desk.keys) == 1
                [question] = await app.inbox()
                await app.answer(question.question_id, option_id="run_again")
                assert await instance.wait_for_completion(20) == "done"
                assert len(desk.keys) == 2
                assert len(set(desk.keys)) == 1


async def test_what_is_recovered_counts_against_the_permits(desk: Desk) -> None:
    journal = Crashed()
    desk.open.clear()
    one = tools("one", "work")
    app = furnished(journal, desk, one, idempotent=True, max_effects=3)
    await app.__aenter__()
    for _ in range(5):
        await app.plans.start_plan_by_prompt("", "one")
    await until(lambda: len(desk.keys) == 3)
    await crash(app)
    async with furnished(journal, desk, one, idempotent=True, max_effects=2) as app:
        await until(lambda: len(desk.keys) == 5)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(desk.keys) == 5, "three were out, and only two may be"
        desk.open.set()
        for run in await app.runs():
            assert await (await app.instance(run.run_id)).wait_for_completion(20) == "done"
        assert app.engine._limit.free == 2


async def test_a_word_that_comes_early_is_heard_after_the_recovery(desk: Desk) -> None:
    """The run first hears that its owner went down, whoever speaks to it first."""
    journal = Crashed()
    desk.open.clear()
    app = furnished(journal, desk, tools("one", "work"))
    await app.__aenter__()
    instance = await app.plans.start_plan_by_prompt("", "one")
    await until(lambda: len(desk.keys) == 1)
    await crash(app)
    async with furnished(journal, desk, tools("one", "work")) as app:
        await app.cancel(instance.id)
        instance = await app.instance(instance.id)
        assert await instance.wait_for_completion(20) == "cancelled"
        names = [type(event).__name__ for event in await history(app, instance.id)]
        assert names.index("RunRecovered") < names.index("CancelRequested")


async def test_a_graceful_close_lets_what_is_in_flight_end_and_starts_nothing_more(
    tmp_path: Path, desk: Desk
) -> None:
    two = tools("two", "work", "work")
    app = Holdfast(tmp_path)
    app.tool(desk.work, name="work")
    app.add_plan(two)
    desk.open.clear()
    async with no_task_left_behind():
        await app.__aenter__()
        instance = await app.plans.start_plan_by_prompt("", "two")
        await until(lambda: len(desk.keys) == 1)
        closing = asyncio.ensure_future(app.__aexit__(None, None, None))
        await asyncio.sleep(0)
        desk.open.set()
        await closing
    assert len(desk.keys) == 1
    again = Holdfast(tmp_path)
    again.tool(desk.work, name="work")
    again.add_plan(two)
    async with again:
        instance = await again.instance(instance.id)
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == len(set(desk.keys)) == 2, "nothing was in doubt"
        assert of_kind(await history(again, instance.id), e.QuestionOpened) == []


class Unacknowledged(Crashed):
    """Has everything at once, and says so when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.says_so = asyncio.Event()

    async def append(self, append: Append) -> int:
        version = await super().append(append)
        await self.says_so.wait()
        return version


async def test_a_graceful_close_releases_what_was_started_but_not_handed_over(desk: Desk) -> None:
    journal = Unacknowledged()
    one = tools("one", "work")
    app = furnished(journal, desk, one)
    await app.__aenter__()
    starting = asyncio.ensure_future(app.plans.start_plan_by_prompt("", "one"))
    await until(lambda: journal._runs)
    closing = asyncio.ensure_future(app.__aexit__(None, None, None))
    await until(lambda: app.engine._turns.closing)
    journal.says_so.set()
    instance = await starting
    await closing
    assert desk.keys == [], "the start is on disk, and the call was not made"
    async with furnished(journal, desk, one) as app:
        events = await history(app, instance.id)
        assert of_kind(events, e.StepReleased)
        instance = await app.instance(instance.id)
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1


async def test_what_outlasts_the_grace_is_cut_off_and_in_doubt(desk: Desk) -> None:
    journal = Crashed()
    one = tools("one", "work")
    desk.open.clear()
    app = furnished(journal, desk, one)
    async with no_task_left_behind():
        await app.__aenter__()
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: len(desk.keys) == 1)
        await app.engine.close(grace=0.01)
        app.sandbox.close()
    async with furnished(journal, desk, one) as app:
        instance = await app.instance(instance.id)
        assert await instance.wait_until_settled(20) == "pause"
        assert [question.title for question in await app.inbox()] == ["Did work happen?"]
        assert len(desk.keys) == 1


async def test_a_run_that_waited_for_months_goes_on_after_many_deploys(
    tmp_path: Path, desk: Desk
) -> None:
    clock = ManualClock()
    instance_id = ""
    for month in range(6):
        app = Holdfast(tmp_path, clock=clock)
        app.tool(desk.work, name="work")
        app.add_plan(plan(ASKS))
        async with app:
            if not instance_id:
                instance_id = (await app.plans.start_plan_by_prompt("", "asks")).id
            instance = await app.instance(instance_id)
            assert await instance.wait_until_settled(20) == "pause"
            version = instance.version
            if month == 5:
                result = await app.planner_agent.continue_plan(instance_id, {"note": "at last"})
                assert result["success"] is True
                assert await instance.wait_for_completion(20) == "done"
                await assert_sound(app, instance_id)
                assert of_kind(await history(app, instance_id), e.RunRecovered) == []
            else:
                assert version == 2, "waiting leaves no trace"
        clock.advance(31 * DAY)
    assert desk.notes == ["at last"]


async def test_a_deadline_that_passed_while_nobody_was_there_expires_at_the_restart(
    tmp_path: Path, desk: Desk
) -> None:
    clock = ManualClock()
    for life in range(2):
        app = Holdfast(tmp_path, clock=clock)
        app.add_plan(plan(ASKS_WITH_DEADLINE))
        async with app:
            if life == 0:
                instance = await app.plans.start_plan_by_prompt("", "deadline")
                assert instance.status == "pause"
            else:
                instance = await app.instance("inst_000001")
                assert await instance.wait_for_completion(20) == "error"
                assert len(of_kind(await history(app, instance.id), e.QuestionExpired)) == 1
        clock.advance(7200)


async def test_a_long_run_loads_from_its_snapshot_and_the_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "SNAPSHOT_BYTES", 8 * 1024)
    long = chain("long", [PURE] * 2000)
    app = Holdfast(tmp_path)
    app.add_plan(long)
    async with app:
        save = app.journal.save_snapshot
        saved: list[int] = []

        async def only_the_first(snapshot: Snapshot) -> None:
            if not saved:
                saved.append(snapshot.version)
                await save(snapshot)

        monkeypatch.setattr(app.journal, "save_snapshot", only_the_first)
        instance = await app.plans.start_plan_by_prompt("", "long")
        assert await instance.wait_for_completion(120) == "done"
        lived = await app.engine.state(instance.id)
    again = Holdfast(tmp_path)
    again.add_plan(long)
    async with again:
        snapshot = await again.journal.snapshot(instance.id, SCHEMA)
        assert snapshot is not None
        assert [snapshot.version] == saved
        assert 0 < snapshot.version < lived.version
        reads: list[int] = []
        read = again.journal.read

        async def watched(run_id: str, after: int = 0, limit: int | None = None) -> list[Record]:
            reads.append(after)
            return await read(run_id, after, limit)

        monkeypatch.setattr(again.journal, "read", watched)
        loaded = await again.engine.state(instance.id)
        assert reads == [snapshot.version], "only the tail was read"
        records = await read(instance.id)
        told = ((record.at, decode(record)) for record in records)
        assert replay(blank(instance.id, loaded.plan), told) == loaded
        assert loaded.version == lived.version


async def test_a_child_run_is_cancelled_with_its_parent_even_across_a_crash(desk: Desk) -> None:
    parent = plan(PARENT)
    journal = Crashed()
    app = furnished(journal, desk, parent, plan(ASKS))
    await app.__aenter__()
    instance = await app.plans.start_plan_by_prompt("", "parent")
    assert await instance.wait_until_settled(20) == "pause"
    cancel = asyncio.ensure_future(app.cancel(instance.id))
    await until(lambda: instance.status == "cancelling")
    cancel.cancel()
    await crash(app)
    async with furnished(journal, desk, parent, plan(ASKS)) as app:
        instance = await app.instance(instance.id)
        assert await instance.wait_for_completion(20) == "cancelled"
        child = await app.instance(f"{instance.id}.L001.1")
        assert await child.wait_for_completion(20) == "cancelled"
        assert await app.inbox() == []
