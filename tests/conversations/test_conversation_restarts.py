"""A new process goes on: from a snapshot after any task, and after kill -9 at any append or effect.

No completed task runs again, which a file tells that outlives every process.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from conversation_child import LEDGER, REPORT, mend, mending, opened, paying
from conversation_mortals import Mortals
from conversation_scenes import (
    GOAL,
    ORDER,
    RESULTS,
    Ledger,
    diamond,
    heard,
    kinds,
    named,
    results_of,
    through_json,
)

from holdfast import Holdfast
from holdfast.conversations.engine import ConversationEngine, EngineEvent, EngineState
from holdfast.conversations.engine import EngineEventType as T
from holdfast.errors import InvalidAnswer


@pytest.fixture(scope="module")
def mortals() -> Iterator[Mortals]:
    mortals = Mortals()
    with mortals.process:
        yield mortals
    assert mortals.process.returncode == 0


def report_of(home: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((home / REPORT).read_text())
    return report


async def stopped_after(tasks: int, home: Path, *, pause: bool = False) -> ConversationEngine:
    """An engine whose consumer has gone after so many tasks."""
    engine = diamond(Ledger(home / LEDGER).work)

    def enough(event: EngineEvent) -> bool:
        done = engine.completed_tasks == tasks and engine.state is EngineState.EXECUTING
        if done and pause:
            engine.pause()
        return event.event_type is T.ENGINE_PAUSED if pause else done

    async with aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if enough(event):
                break
    return engine


@pytest.mark.parametrize("done", range(len(ORDER) + 1))
async def test_a_snapshot_after_any_task_goes_on_in_a_new_process(
    done: int, mortals: Mortals, tmp_path: Path
) -> None:
    engine = await stopped_after(done, tmp_path)
    snapshot = json.dumps(engine.create_snapshot())
    assert Ledger(tmp_path / LEDGER).counts.total() == done

    assert await mortals.order(tmp_path, snapshot=snapshot) == 0
    report = report_of(tmp_path)
    assert report["before"] == "executing"
    assert report["state"] == "completed"
    assert report["started"] == ORDER[done:], "exactly what was left"
    assert report["progress"] == [number / 4 for number in range(done + 1, 5)]
    assert report["results"] == RESULTS, "earlier results are intact and were handed on"
    assert Ledger(tmp_path / LEDGER).counts == dict.fromkeys(ORDER, 1)


async def test_a_paused_snapshot_waits_for_resume_in_the_new_process_too(
    mortals: Mortals, tmp_path: Path
) -> None:
    engine = await stopped_after(2, tmp_path, pause=True)
    snapshot = json.dumps(engine.create_snapshot())
    assert await mortals.order(tmp_path, snapshot=snapshot, resume=True) == 0
    report = report_of(tmp_path)
    assert (report["before"], report["state"]) == ("paused", "completed")
    assert report["kinds"][:2] == ["state_changed", "engine_resumed"]
    assert Ledger(tmp_path / LEDGER).counts == dict.fromkeys(ORDER, 1)


async def test_a_consumer_of_a_paused_snapshot_waits_and_goes_on_with_resume(
    tmp_path: Path,
) -> None:
    snapshot = through_json((await stopped_after(1, tmp_path, pause=True)).create_snapshot())
    engine = diamond(Ledger(tmp_path / LEDGER).work)
    assert engine.restore_from_snapshot(snapshot)
    assert engine.state is EngineState.PAUSED
    consumer = asyncio.create_task(heard(engine.run()))
    for _ in range(200):
        await asyncio.sleep(0)
    assert not consumer.done()
    assert engine.resume()
    assert kinds(await consumer)[:2] == ["state_changed", "engine_resumed"]
    assert Ledger(tmp_path / LEDGER).counts == dict.fromkeys(ORDER, 1)


async def test_a_result_that_was_obtained_but_not_told_is_in_the_snapshot() -> None:
    """Paused while a task was under way: it has finished since, and is not done again."""
    ledger = Ledger()
    engine = diamond(ledger.work)
    async with aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                engine.pause()
            if event.event_type is T.ENGINE_PAUSED:
                break
        while not engine._latest.untold:  # noqa: ASYNC110
            await asyncio.sleep(0)
        snapshot = through_json(engine.create_snapshot())
    assert (snapshot["state"], snapshot["completed_tasks"]) == ("paused", 0)
    new = diamond(ledger.work)
    new.restore_from_snapshot(snapshot)
    new.resume()
    events = await heard(new.run())
    assert [one["task_id"] for one in named(events, T.TASK_COMPLETED)] == ORDER
    assert ledger.counts == dict.fromkeys(ORDER, 1)
    assert results_of(new) == RESULTS


async def test_a_damaged_snapshot_is_refused_with_the_reason_and_changes_nothing() -> None:
    engine = diamond()
    await heard(engine.run(GOAL))
    good = engine.create_snapshot()
    broken: dict[str, Any] = {
        "not one of": {"state": "dreaming"},
        "version": {"version": 99},
        "speaks of": {"completed_tasks": 7},
        "are no list": {"tasks": None},
    }
    for reason, change in broken.items():
        with pytest.raises(InvalidAnswer, match=f"cannot be restored: .*{reason}"):
            engine.restore_from_snapshot({**good, **change})
    with pytest.raises(InvalidAnswer, match="no object"):
        engine.restore_from_snapshot([])  # type: ignore[arg-type]
    assert (engine.state, results_of(engine)) == (EngineState.COMPLETED, RESULTS)


async def go_on(home: Path) -> ConversationEngine:
    """What the owner of the next process does: look how far it has come, and go on."""
    async with Holdfast(home) as app:
        engine = await opened(app, home)
        if engine.state is not EngineState.COMPLETED:
            await heard(engine.run(GOAL))
    return engine


async def completed_in(home: Path) -> list[str]:
    async with Holdfast(home) as app:
        engine = await opened(app, home)
        return [one.id for one in engine.tasks if one.status in ("finished", "completed")]


async def test_it_survives_a_kill_at_every_append_and_every_effect(
    mortals: Mortals, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    assert await mortals.order(whole) == 0
    report = report_of(whole)
    assert report["state"] == "completed"
    points = report["reached"]
    assert set(points) == {"append.before", "append.after", "effect.before", "effect.after"}
    assert points["effect.before"] == points["effect.after"] == 6, "context, goal and four tasks"
    assert points["append.before"] == 11, "three before the tasks, and two for each of them"
    for point, reached in sorted(points.items()):
        for nth in range(1, reached + 1):
            await dies_and_goes_on(mortals, tmp_path / f"{point}.{nth}", point, nth)


async def dies_and_goes_on(mortals: Mortals, home: Path, point: str, nth: int) -> None:
    died = await mortals.order(home, point=point, nth=nth)
    assert died == -signal.SIGKILL, home.name
    done = await completed_in(home)
    before = Ledger(home / LEDGER).counts
    engine = await go_on(home)
    assert (engine.state, engine.current_progress) == (EngineState.COMPLETED, 1.0), home.name
    assert results_of(engine) == RESULTS, home.name
    counts = Ledger(home / LEDGER).counts
    for task in done:
        assert counts[task] == before[task], (home.name, task, "ran although it was done")
    again = [task for task, count in counts.items() if count > 1]
    assert set(counts) == set(ORDER)
    assert len(again) <= 1, (home.name, "only what was in flight may run again")


async def test_what_must_not_be_repeated_is_asked_about_after_a_kill(
    mortals: Mortals, tmp_path: Path
) -> None:
    """The process goes while a task named in `once` is under way: a person decides."""
    assert await mortals.order(tmp_path, pays=True) == -signal.SIGKILL
    assert Ledger(tmp_path / LEDGER).counts == {"p": 1}
    async with Holdfast(tmp_path) as app:
        again = await paying(app, Ledger(tmp_path / LEDGER).work)
        async with aclosing(again.run(GOAL)) as run:
            begun, asked = await anext(run), await anext(run)
            assert begun.event_type is T.TASK_STARTED, "it died before it asked for more"
            assert asked.event_type is T.INTERACTION, "who comes back is shown what is open"
            await again.answer(
                str(asked.data["requestId"]), option_id="happened", data={"result": "paid"}
            )
            rest = [event async for event in run]
    assert kinds(rest)[-1] == "engine_completed"
    assert results_of(again) == {"p": {"result": "paid"}}
    assert Ledger(tmp_path / LEDGER).counts == {"p": 1}, "it was not done again"


MENDED = {
    "retry": {"pay": 1, "mail": 2, "report": 1},
    "skip": {"pay": 1, "mail": 1},
    "stop": {"pay": 1, "mail": 2, "report": 1},
}
"""How often each task runs where nobody is killed: with `stop` a new turn does what is left."""


@pytest.mark.parametrize("failed", MENDED)
async def test_going_on_after_a_failure_survives_a_kill_at_every_append_and_every_effect(
    mortals: Mortals, tmp_path: Path, failed: str
) -> None:
    """`pay` is done, `mail` fails, `report` depends on it: pay happens exactly once."""
    whole = tmp_path / "whole"
    assert await mortals.order(whole, mends=failed) == 0
    report = report_of(whole)
    assert report["state"] == "completed"
    assert Ledger(whole / LEDGER).counts == MENDED[failed]
    homes = [
        (tmp_path / f"{point}-{nth}", point, nth)
        for point, reached in report["reached"].items()
        for nth in range(1, reached + 1)
    ]
    assert len(homes) > 20
    for home, point, nth in homes:
        await dies_and_mends(mortals, home, failed, point, nth)


async def dies_and_mends(mortals: Mortals, home: Path, failed: str, point: str, nth: int) -> None:
    died = await mortals.order(home, mends=failed, point=point, nth=nth)
    assert died == -signal.SIGKILL, home.name
    async with Holdfast(home) as app:
        engine = await mending(app, home)
        done = [one.id for one in engine.tasks if one.status == "completed"]
        before = Ledger(home / LEDGER).counts
        await mend(engine, home, failed)
        assert engine.state is EngineState.COMPLETED, home.name
    counts = Ledger(home / LEDGER).counts
    assert counts["pay"] == 1, home.name
    assert [one for one in done if counts[one] != before[one]] == [], home.name
    told = {one.id: one.result for one in engine.tasks if isinstance(one.result, dict)}
    skipped = [one for one, result in told.items() if result.get("skipped")]
    assert skipped in ([], ["mail", "report"] if failed == "skip" else []), home.name
    assert counts["report"] >= (0 if skipped else 1), home.name


async def test_an_executor_that_is_missing_after_the_restart_is_named(tmp_path: Path) -> None:
    engine = await stopped_after(1, tmp_path)
    bare = ConversationEngine()
    bare.restore_from_snapshot(through_json(engine.create_snapshot()))
    [error] = named(await heard(bare.run()), T.ENGINE_ERROR)
    assert "no executor for tasks of type 'work'" in error["error"]
