"""The engine's own habits: one actor per run, commit before act, and nobody left hanging."""

from __future__ import annotations

import asyncio
import gc
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
from holdfast.errors import InternalError, JournalUnavailable, NotAllowed, NotFound
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, RunRow
from holdfast.model import events as e
from holdfast.model.plan import ToolAction
from holdfast.plans import PlannerAgent, RetrySituation
from holdfast.runtime.permits import Permits

PARENT = """
plan_id: parent
name: Parent
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: child
    values: {size: wide}
    success_output: {task_id: "001", status: Done}
"""

CHILD = """
plan_id: child
name: Child
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


@pytest.fixture
def desk() -> Desk:
    return Desk()


class Slow(MemoryJournal):
    """Counts its look-ups, which take a moment; tells what was on disk when an append ended."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_up = 0
        self.appended: list[list[str]] = []

    async def run(self, run_id: str) -> RunRow | None:
        self.looked_up += 1
        for _ in range(5):
            await asyncio.sleep(0)
        return await super().run(run_id)

    async def append(self, append: Append) -> int:
        version = await super().append(append)
        self.appended.append([record.type for record in append.records])
        await asyncio.sleep(0)
        return version


async def test_an_effect_begins_only_when_its_start_is_on_disk(desk: Desk) -> None:
    journal = Slow()
    app = Holdfast(journal=journal)
    started: list[bool] = []

    @app.tool
    async def work(note: str) -> None:
        records = await journal.read("inst_000001")
        claims = [record for record in records if record.type == "ListenerStarted"]
        started.append(len(claims) == len(started) + 1)

    app.add_plan(tools("chain", *["work"] * 10))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "chain")
        assert await instance.wait_for_completion(20) == "done"
    assert started == [True] * 10
    assert len(journal.appended) == 11, "a result and the next start share one commit"


async def test_what_was_cancelled_before_it_was_handed_over_is_never_sent(desk: Desk) -> None:
    app = Holdfast(journal=Slow())
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    async with app:
        starting = asyncio.ensure_future(app.plans.start_plan_by_prompt("", "one"))
        await until(lambda: "inst_000001" in app.engine._residents)
        cancelling = asyncio.ensure_future(app.cancel("inst_000001"))
        instance = await starting
        await cancelling
        assert await instance.wait_for_completion(20) == "cancelled"
        events = await history(app, instance.id)
        assert of_kind(events, e.ListenerStarted)
        assert of_kind(events, e.StepReleased)
    assert desk.keys == []


@pytest.mark.parametrize(
    ("option", "status"), [("reject", "error"), ("terminate", "cancelled"), (None, "error")]
)
async def test_what_a_person_refused_never_runs(
    desk: Desk, option: str | None, status: str
) -> None:
    app = Holdfast.in_memory(max_retry_count=3)
    app.tool(desk.work, name="work", approval="require")
    app.add_plan(tools("one", "work"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        assert await instance.wait_until_settled(20) == "pause"
        [question] = await app.inbox()
        if option is None:
            await app.skip(instance.id, "L0001")
        else:
            await app.answer(question.question_id, option_id=option, feedback="no")
        await instance.wait_for_completion(20)
        assert instance.status in (status, "done")
        await assert_sound(app, instance.id)
    assert desk.keys == []


async def test_a_tools_result_never_waits_for_the_pure_work_behind_it(desk: Desk) -> None:
    journal = Slow()
    app = Holdfast(journal=journal)
    app.tool(desk.work, name="work")
    app.add_plan(chain("mixed", [ToolAction("work", {"note": "x"}), *[PURE] * 10]))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "mixed")
        assert await instance.wait_for_completion(20) == "done"
    assert journal.appended[1] == ["ListenerSucceeded", "ListenerStarted"]
    assert len(journal.appended) < 8, "while pure work rides with the next append"


async def test_a_run_is_loaded_once_however_many_ask_for_it(desk: Desk) -> None:
    journal = Slow()
    first = Holdfast(journal=journal)
    first.add_plan(chain("one", [PURE]))
    async with first:
        instance = await first.plans.start_plan_by_prompt("", "one")
        await instance.wait_for_completion(20)
    journal.looked_up = 0
    async with Holdfast(journal=journal) as app:
        states = await asyncio.gather(*(app.engine.state(instance.id) for _ in range(20)))
        assert len({id(state) for state in states}) == 1
        assert journal.looked_up == 1


async def test_who_gives_up_while_a_run_is_loaded_does_not_spoil_it_for_the_others(
    desk: Desk,
) -> None:
    journal = Slow()
    first = Holdfast(journal=journal)
    first.add_plan(chain("one", [PURE]))
    async with first:
        instance = await first.plans.start_plan_by_prompt("", "one")
        await instance.wait_for_completion(20)
    async with Holdfast(journal=journal) as app:
        loader = asyncio.ensure_future(app.engine.state(instance.id))
        others = [asyncio.ensure_future(app.engine.state(instance.id)) for _ in range(3)]
        await asyncio.sleep(0)
        loader.cancel()
        for state in await asyncio.gather(*others):
            assert state.status == "done"


async def test_an_unknown_run_is_not_found_by_anybody() -> None:
    async with Holdfast(journal=Slow()) as app:
        asked = (app.engine.state("inst_000404") for _ in range(5))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(outcome, NotFound) for outcome in outcomes)
        with pytest.raises(NotFound):
            await app.cancel("inst_000404")


async def test_a_mistake_of_ours_is_told_to_the_caller_who_met_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = Holdfast.in_memory()
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    desk.open.clear()

    def broken(*_: Any) -> None:
        raise KeyError("a bug")

    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        with monkeypatch.context() as bug:
            bug.setattr("holdfast.core.plan.people.cancel", broken)
            with pytest.raises(InternalError, match="a bug"):
                await app.cancel(instance.id)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, instance.id)
    assert "could not decide Cancel" in caplog.text


async def test_a_mistake_of_ours_while_recording_is_told_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = Holdfast.in_memory()
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    desk.open.clear()

    def broken(*_: Any) -> None:
        raise KeyError("a bug")

    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        with monkeypatch.context() as bug:
            bug.setattr("holdfast.runtime.appends.encode_all", broken)
            with pytest.raises(InternalError, match="a bug"):
                await app.cancel(instance.id)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, instance.id)
    assert "could not be recorded" in caplog.text


async def test_wait_for_gives_the_last_state_at_its_time_out(desk: Desk) -> None:
    app = Holdfast.in_memory()
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        assert await instance.wait_for_completion(0.01) == "running"
        with pytest.raises(NotAllowed):
            await app.resume(instance.id)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"


async def test_a_child_that_cannot_be_born_fails_its_listener(desk: Desk) -> None:
    app = Holdfast.in_memory(max_retry_count=0)
    app.tool(desk.work, name="work")
    app.add_plan(plan(PARENT))
    app.add_plan(plan(CHILD + "inputs: {size: {type: number, label: Size}}\n"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "parent")
        assert await instance.wait_for_completion(20) == "error"
        assert "child" in instance.get_main_task_instance().context["error_info"]["message"]
        assert len(await app.runs()) == 1
        await assert_sound(app, instance.id)


async def test_a_child_run_keeps_its_plan_when_the_plan_is_edited(
    tmp_path: Path, desk: Desk
) -> None:
    app = Holdfast(tmp_path)
    app.tool(desk.work, name="work")
    app.add_plan(plan(PARENT))
    app.add_plan(plan(CHILD))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "parent")
        assert await instance.wait_until_settled(20) == "pause"
    edited = Holdfast(tmp_path)
    edited.tool(desk.work, name="work")
    edited.add_plan(plan(PARENT))
    edited.add_plan(plan(CHILD.replace("name: Child", "name: Another")))
    async with edited:
        instance = await edited.instance(instance.id)
        result = await edited.planner_agent.continue_plan(instance.id, {"note": "x"})
        assert result["success"] is True
        assert await instance.wait_for_completion(20) == "done"
        assert await edited.journal.notices() == [], "every word between them was heard"


async def test_a_late_result_answers_the_question_whether_the_call_took_effect(
    desk: Desk,
) -> None:
    app = Holdfast.in_memory()
    app.tool(desk.work, name="work", timeout=0.01)
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        assert await instance.wait_until_settled(20) == "pause"
        gc.collect()
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        assert of_kind(await history(app, instance.id), e.QuestionWithdrawn)
        assert len(desk.keys) == 1


async def test_a_call_that_outlasts_its_time_out_and_the_close_is_let_go(desk: Desk) -> None:
    app = Holdfast.in_memory()
    app.tool(desk.work, name="work", timeout=0.01)
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with no_task_left_behind(), app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        assert await instance.wait_until_settled(20) == "pause"


async def test_an_idempotent_call_that_timed_out_is_tried_again_under_its_key(desk: Desk) -> None:
    app = Holdfast.in_memory()
    app.tool(desk.work, name="work", timeout=0.01, idempotent=True)
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with no_task_left_behind(), app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: len(desk.keys) == 2)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
    assert len(set(desk.keys)) == 1


class Brooding(PlannerAgent):
    async def decide_retry_strategy(self, situation: RetrySituation) -> int:
        await asyncio.Event().wait()
        return 0


async def test_a_hook_that_never_ends_does_not_hold_the_close(desk: Desk) -> None:
    journal = MemoryJournal()
    desk.errors = [RuntimeError("no")]
    for planner in (Brooding(), PlannerAgent(max_retry_count=0)):
        app = Holdfast(journal=journal, planner_agent=planner)

        @app.tool
        async def work(note: str) -> dict[str, object]:
            return {"success": False, "error": "no", "error_class": "permanent"}

        app.add_plan(tools("one", "work"))
        async with no_task_left_behind():
            await app.__aenter__()
            if isinstance(planner, Brooding):
                instance = await app.plans.start_plan_by_prompt("", "one")
                await app.engine.wait_for(
                    instance.id, lambda state: state.steps["L0001"].status == "consulting"
                )
                await app.engine.close(grace=0.01)
            else:
                instance = await app.instance(instance.id)
                assert await instance.wait_for_completion(20) == "error"
                assert of_kind(await history(app, instance.id), e.RunRecovered)
            await app.__aexit__(None, None, None)


async def test_after_the_close_nothing_is_accepted(tmp_path: Path, desk: Desk) -> None:
    app = Holdfast(tmp_path)
    app.add_plan(chain("one", [PURE]))
    async with app:
        pass
    with pytest.raises(JournalUnavailable):
        await app.plans.start_plan_by_prompt("", "one")


def test_permits_are_passed_on_in_order_and_never_beyond_the_limit() -> None:
    permits = Permits(1)
    fed: list[str] = []
    permits.charge(2)
    assert not permits.take()
    permits.when_free(lambda: fed.append("first"))
    permits.when_free(lambda: fed.append("second"))
    permits.give_back()
    assert fed == [], "what was out beyond the limit comes off first"
    permits.give_back()
    assert fed == ["first"]
    assert not permits.take(), "it was passed on, not freed"
    permits.give_back()
    assert fed == ["first", "second"]
    permits.give_back()
    assert permits.take()
    with pytest.raises(ValueError, match="at least one"):
        Permits(0)
