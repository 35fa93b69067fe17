"""Finished runs are removed beside the others, which neither wait nor lose anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import HoldfastError, NotAllowed, NotFound
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Journal, verify
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.journal.vault import KIND as SECRET
from holdfast.model.run import RunStatus
from holdfast.runtime import housekeeping
from holdfast.runtime.housekeeping import Finished, Why, digest_of
from holdfast.runtime.identity import Identity, acting
from holdfast.testing.clock import ManualClock
from holdfast.views.housekeeping import all_finished, all_naming, for_owner, sweep

pytestmark = pytest.mark.own_store  # it goes through the stores by itself

DAY = 24 * 3600.0
WHY = Why("removed_runs")

PLANS = [
    """
plan_id: work
name: Work
main_task_id: "001"
tasks: [{task_id: "001", name: Work}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: work
    success_output: {task_id: "001", status: Done}
""",
    """
plan_id: ask
name: Ask
main_task_id: "001"
tasks: [{task_id: "001", name: Asked}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Well?
    form: {word: {type: text}, code: {type: secret, required: false}}
    success_output: {task_id: "001", status: Done}
""",
    """
plan_id: outer
name: Outer
main_task_id: "001"
tasks: [{task_id: "001", name: Outer}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: ask
    success_output: {task_id: "001", status: Done}
""",
]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    match request.param:
        case "memory":
            return MemoryJournal()
        case "sqlite":
            return SqliteJournal(tmp_path / "holdfast.db")
        case _:
            return PostgresJournal(request.getfixturevalue("database"))


@pytest.fixture
async def app(journal: Journal) -> AsyncIterator[Holdfast]:
    app = Holdfast(journal=journal, clock=ManualClock(1_000_000.0))

    @app.tool(idempotent=True)
    async def work() -> dict[str, Any]:
        await asyncio.sleep(0)
        return {}

    for plan in PLANS:
        app.load_plan_text(plan)
    async with app:
        yield app


async def worked(app: Holdfast) -> str:
    instance = await app.plans.start_plan_by_prompt("", "work")
    await instance.wait_for_completion()
    return instance.id


async def asked(app: Holdfast, plan: str = "ask", by: str = "") -> str:
    instance = await app.plans.start_plan_by_prompt("", plan, by=by)
    await app.engine.wait_for_status(instance.id, {RunStatus.PAUSE})
    return instance.id


async def answer(app: Holdfast, run_id: str, by: str, **data: Any) -> None:
    [row] = [one for one in await app.inbox() if one.root_id == run_id]
    await app.answer(row.question_id, data={"word": "yes", **data}, by=by)
    await app.engine.wait_for_status(run_id, {RunStatus.DONE})


async def later(app: Holdfast, days: float) -> None:
    clock = app.engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(days * DAY)


async def old(app: Holdfast, days: float, **wanted: Any) -> list[str]:
    found = Finished(app.engine.clock.now() - days * DAY, **wanted)
    return [row.run_id for row in await all_finished(app.engine.housekeeper, found)]


async def test_what_is_old_and_finished_is_found_by_plan_and_status(app: Holdfast) -> None:
    first, waiting, cancelled = await worked(app), await asked(app), await asked(app)
    await app.cancel(cancelled)
    await app.engine.wait_for_status(cancelled, {RunStatus.CANCELLED})
    await later(app, 10)
    young = await worked(app)
    assert await old(app, 5) == [first, cancelled]
    assert await old(app, 0.0) == [first, cancelled]
    assert await old(app, 11) == []
    assert await old(app, 5, name="ask") == [cancelled]
    assert await old(app, 5, statuses=frozenset({"done"})) == [first]
    assert await old(app, 5, statuses=frozenset({"pause"})) == []
    await later(app, 10)
    assert await old(app, 5) == [first, cancelled, young]
    assert (await app.engine.state(waiting)).status is RunStatus.PAUSE


async def test_pages_are_gone_through_to_the_end(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [await worked(app) for _ in range(7)]
    await later(app, 1)
    for limit in (1, 2, 7, 50):
        found: list[str] = []
        page, before = await app.engine.housekeeper.finished(Finished(2e9), None, limit)
        found += [row.run_id for row in page]
        while before is not None:
            page, before = await app.engine.housekeeper.finished(Finished(2e9), before, limit)
            found += [row.run_id for row in page]
        assert found == runs[::-1]


async def test_a_sweep_removes_them_and_the_audit_proves_it(
    app: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.views.housekeeping.AT_ONCE", 3)
    runs = [await worked(app) for _ in range(7)]
    waiting = await asked(app)
    await later(app, 1)
    with for_owner(tmp_path / "removed.jsonl") as export:
        swept = await sweep(app.engine.housekeeper, await old(app, 0.5), WHY, export)
    assert (swept.trees, swept.runs, swept.left) == (7, 7, ())
    assert [row.run_id for row in await app.runs()] == [waiting]
    for run_id in runs:
        with pytest.raises(NotFound):
            await app.engine.state(run_id)
    lines = [json.loads(line) for line in (tmp_path / "removed.jsonl").read_text().splitlines()]
    assert [line["run"]["run_id"] for line in lines if "run" in line] == runs
    assert sum("event" in line for line in lines) == swept.records
    entries = await app.journal.audit()
    assert verify(entries) is None
    told = [json.loads(one.record.detail) for one in entries if one.record.action == WHY.action]
    assert [one["trees"] for one in told] == [3, 3, 1]
    assert sum(one["records"] for one in told) == swept.records
    await answer(app, waiting, "eva")


async def test_the_digest_is_that_of_what_was_written_out(app: Holdfast) -> None:
    from hashlib import sha256

    keeper = app.engine.housekeeper
    runs = [await worked(app), await worked(app)]
    texts = ["".join([line async for line in keeper.lines_of(run_id)]) for run_id in runs]
    digest = digest_of([sha256(text.encode()).hexdigest() for text in texts])
    with pytest.raises(NotAllowed, match="moved on"):
        await keeper.remove(runs[:1], WHY, digest)
    assert (await keeper.remove(runs, WHY, digest)).roots == tuple(runs)
    [*_, entry] = await app.journal.audit()
    assert json.loads(entry.record.detail)["digest"] == digest


async def test_a_waiting_tree_stays_and_can_be_answered(app: Holdfast) -> None:
    waiting, inner = await asked(app), await asked(app, "outer")
    await later(app, 400)
    removed = await app.engine.housekeeper.remove([waiting, inner], WHY)
    assert (removed.roots, set(removed.left)) == ((), {waiting, inner})
    await answer(app, waiting, "eva")
    await answer(app, inner, "eva")
    removed = await app.engine.housekeeper.remove([inner], WHY)
    assert (removed.roots, removed.runs) == ((inner,), 2)
    assert [row.run_id for row in await app.runs()] == [waiting]


async def test_a_run_below_another_is_not_removed_alone(app: Holdfast) -> None:
    root = await asked(app, "outer")
    await answer(app, root, "eva")
    [child] = [row.run_id for row in await app.runs() if row.run_id != root]
    with pytest.raises(NotFound):
        await app.engine.housekeeper.remove([child], WHY)
    assert len(await app.runs()) == 2


async def test_secrets_of_a_tree_go_with_it(app: Holdfast) -> None:
    gone, stays = await asked(app), await asked(app)
    await answer(app, gone, "eva", code="s3cret")
    await answer(app, stays, "eva", code="s3cret")
    assert len(await app.journal.all_kept(SECRET, 0.0)) == 2
    await app.engine.housekeeper.remove([gone], WHY)
    [kept] = await app.journal.all_kept(SECRET, 0.0)
    assert json.loads(kept.body)["root_id"] == stays


async def test_runs_go_on_while_many_are_removed(app: Holdfast) -> None:
    """And who asks for one that is going is told that it is not there, whenever they ask."""
    await asyncio.gather(*(worked(app) for _ in range(300)))
    waiting = [await asked(app) for _ in range(5)]
    await later(app, 1)
    found = await old(app, 0.5)
    begun: list[str] = []
    over = asyncio.Event()

    async def work_on() -> None:
        while not over.is_set():
            begun.append(await worked(app))

    async def ask_for() -> None:
        n = 0
        while not over.is_set():
            n += 1
            with suppress(HoldfastError):
                await app.resume(found[n % len(found)])
            await asyncio.sleep(0)

    going = asyncio.gather(work_on(), work_on(), ask_for())
    swept = await sweep(app.engine.housekeeper, found, WHY)
    over.set()
    await going
    assert swept.trees + len(swept.left) == 300
    again = await sweep(app.engine.housekeeper, list(swept.left), WHY)
    assert again.left == ()
    left = {row.run_id for row in await app.runs(housekeeping.RunQuery(limit=5000))}
    assert left == {*begun, *waiting}
    for run_id in waiting:
        await answer(app, run_id, "eva")
    assert begun


async def test_a_run_that_is_in_use_stays(app: Holdfast) -> None:
    run_id = await worked(app)
    actor = await app.engine._actors.find(run_id)
    actor.awaits_permit = True
    removed = await app.engine.housekeeper.remove([run_id], WHY)
    assert (removed.roots, removed.left) == ((), (run_id,))
    actor.awaits_permit = False
    assert (await app.engine.housekeeper.remove([run_id], WHY)).roots == (run_id,)


async def test_what_a_person_did_is_found_wherever_they_did_it(app: Holdfast) -> None:
    began, answered, other = [await asked(app, by="will") for _ in range(3)]
    await answer(app, began, "eva")
    await answer(app, answered, "张三")
    within = await asked(app, "outer", by="will")
    await answer(app, within, "张三")
    living = await asked(app, by="eva")

    async def found(name: str) -> list[tuple[str, bool]]:
        told = await all_naming(app.engine.housekeeper, name)
        return [(row.run_id, whole) for row, whole in told]

    assert await found("eva") == [(began, True), (living, False)]
    assert await found("张三") == [(answered, True), (within, True)]
    assert await found("will") == [
        (began, True),
        (answered, True),
        (other, False),
        (within, True),
    ]
    assert await found("ev") == []
    assert await found("yes") == []


async def test_the_audit_has_no_values_and_outlives_what_it_is_about(app: Holdfast) -> None:
    with acting(Identity("eva", "cli")):
        run_id, cancelled = await asked(app), await asked(app)
        [row, _] = await app.inbox()
        await app.keep_draft(row.question_id, {"word": "canary"})
        await app.answer(row.question_id, data={"word": "canary", "code": "canary"})
        await app.engine.wait_for_status(run_id, {RunStatus.DONE})
        await app.cancel(cancelled, reason="canary")
        await app.engine.wait_for_status(cancelled, {RunStatus.CANCELLED})
        why = Why("erased_person", "eva", person="eva")
        removed = await app.engine.housekeeper.remove([run_id, cancelled], why)
    assert removed.runs == 2
    entries = await app.journal.audit()
    assert [one.record.action for one in entries] == [
        "started",
        "started",
        "answered",
        "cancelled",
        "erased_person",
    ]
    assert "canary" not in str(entries)
    assert verify(entries) is None
