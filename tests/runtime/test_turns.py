"""A turn of a run: bounded in what it takes in and starts, and one task from call to call."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest
from scenes import assert_sound, history, of_kind, plan, tools

from holdfast.app import Holdfast
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append
from holdfast.model import events as e
from holdfast.model.interaction import Asking
from holdfast.model.plan import HumanAction, Listener, Output, Plan, Task, TaskStatus, ToolAction
from holdfast.runtime.engine import MOST_LETTERS
from holdfast.runtime.starting import MOST_AT_ONCE
from holdfast.work.driver import TaskDriver

ANYTHING: ContextVar[object] = ContextVar("anything")
VARIABLE: ContextVar[str] = ContextVar("variable", default="unset")


class Appends(MemoryJournal):
    def __init__(self) -> None:
        super().__init__()
        self.appended: list[list[str]] = []

    @property
    def sizes(self) -> list[int]:
        return [len(types) for types in self.appended]

    async def append(self, append: Append) -> int:
        self.appended.append([record.type for record in append.records])
        return await super().append(append)


def at_once(count: int, action: Any) -> Plan:
    """So many listeners wait for the start, each with a task of its own."""
    ids = [f"t{number}" for number in range(count)]
    listeners = [
        Listener(f"L{one}", ("goal",), "Running", action, Output(one, TaskStatus.DONE))
        for one in ids
    ]
    return Plan("many", "Many", "goal", (Task("goal"), *map(Task, ids)), tuple(listeners))


async def test_a_turn_opens_only_so_many_questions_and_the_next_goes_on() -> None:
    count, journal = 3 * MOST_AT_ONCE + 5, Appends()
    async with Holdfast(journal=journal) as app:
        app.add_plan(at_once(count, HumanAction(asking=Asking(title="and?"))))
        instance = await app.plans.start_plan_by_prompt("", "many")
        await app.engine.wait_for(instance.id, lambda state: len(state.open_questions) == count)
        assert max(journal.sizes) <= MOST_AT_ONCE + 1, "the start, and what it lets start"
        await assert_sound(app, instance.id)


async def test_a_turn_takes_in_only_so_many_results_and_loses_none() -> None:
    count, journal, gate = 3 * MOST_LETTERS + 5, Appends(), asyncio.Event()

    async def work() -> dict[str, int]:
        await gate.wait()
        return {"n": 1}

    async with Holdfast(journal=journal, max_effects=2 * count) as app:
        app.tool(work)
        app.add_plan(at_once(count, ToolAction("work", {})))
        instance = await app.plans.start_plan_by_prompt("", "many")
        await app.engine.wait_for(instance.id, lambda state: state.in_flight == count)
        journal.appended.clear()
        gate.set()
        await instance.wait_for_completion(20)
        events = await history(app, instance.id)
        assert len(of_kind(events, e.ListenerSucceeded)) == count
        assert max(journal.sizes) <= MOST_LETTERS + 2, "and what the end of the run brings"


async def test_a_run_that_is_taken_up_with_an_empty_mailbox_starts_what_is_ready() -> None:
    """As after an outage in which nothing was said to it."""
    async with Holdfast(max_effects=1) as app:
        app.tool(work)
        app.add_plan(tools("row", "work"))
        app.engine._permits.charge(1)
        instance = await app.plans.start_plan_by_prompt("", "row")
        actor = app.engine._residents.get(instance.id)
        assert actor is not None
        actor.hungry = False
        app.engine._permits._hungry.clear()
        app.engine._permits.give_back()
        assert not actor.mailbox
        app.engine._outages.retry(actor)
        assert await instance.wait_for_completion(20) == "done"


async def test_calls_in_a_row_share_a_task() -> None:
    tasks = []

    async def work(note: str) -> dict[str, int]:
        tasks.append(asyncio.current_task())
        return {"n": 1}

    async with Holdfast() as app:
        app.tool(work)
        app.add_plan(tools("row", *["work"] * 4))
        instance = await app.plans.start_plan_by_prompt("", "row")
        assert await instance.wait_for_completion(20) == "done"
    assert len(tasks) == 4
    assert len(set(tasks)) == 1


async def test_what_a_tool_leaves_in_its_context_the_next_one_does_not_find() -> None:
    found = []

    async def work(note: str) -> dict[str, int]:
        found.append(VARIABLE.get())
        VARIABLE.set(f"left by call {len(found)}")
        return {"n": 1}

    async with Holdfast() as app:
        app.tool(work)
        app.add_plan(tools("row", *["work"] * 3))
        instance = await app.plans.start_plan_by_prompt("", "row")
        assert await instance.wait_for_completion(20) == "done"
    assert found == ["unset"] * 3


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise ValueError("which of us?")

    __hash__ = None  # type: ignore[assignment]


async def test_what_cannot_be_compared_in_a_context_keeps_no_run_from_going_on() -> None:
    async def work(note: str) -> dict[str, int]:
        ANYTHING.set(Incomparable())
        return {"n": 1}

    ANYTHING.set(Incomparable())
    async with Holdfast() as app:
        app.tool(work)
        app.add_plan(tools("row", "work", "work"))
        instance = await app.plans.start_plan_by_prompt("", "row")
        assert await instance.wait_for_completion(20) == "done"


@pytest.mark.parametrize("blocks", [False, True])
async def test_a_tool_that_cancels_its_own_task_and_returns_has_its_result_counted(
    blocks: bool,
) -> None:
    async def work(note: str) -> dict[str, int]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return {"n": 1}

    async with Holdfast(journal=Appends() if blocks else None) as app:
        app.tool(work)
        app.add_plan(tools("row", "work", "work"))
        instance = await app.plans.start_plan_by_prompt("", "row")
        assert await instance.wait_for_completion(20) == "done"


ASKED = """
plan_id: asked
name: Asked
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    form: {size: {type: text}}
    success_output: {task_id: "002", status: Done, context: {size: "{{result.size}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: work
    args: {note: "{002.context.size}"}
    success_output: {task_id: "001", status: Done}
"""


async def work(note: str) -> dict[str, str]:
    return {"note": note}


async def test_an_answer_its_conclusion_and_the_next_start_are_one_commit() -> None:
    journal = Appends()
    async with Holdfast(journal=journal) as app:
        app.tool(work)
        app.add_plan(plan(ASKED))
        instance = await app.plans.start_plan_by_prompt("", "asked")
        assert await instance.wait_until_settled(20) == "pause"
        journal.appended.clear()
        await app.plans.planner_agent.continue_plan(instance.id, {"size": "wide"})
        assert await instance.wait_for_completion(20) == "done"
    assert journal.appended == [
        ["QuestionAnswered", "ListenerStarted", "ListenerSucceeded", "ListenerStarted"],
        ["ListenerSucceeded", "RunCompleted"],
    ]


async def test_a_driver_of_ones_own_may_take_its_time_over_a_conclusion() -> None:
    seen = []

    class Slow(TaskDriver):
        async def execute_listener(self, listener: Any, context: Any) -> dict[str, Any]:
            await asyncio.sleep(0)
            seen.append(listener.listener_id)
            return await super().execute_listener(listener, context)

    async with Holdfast(driver=Slow) as app:
        app.tool(work)
        app.add_plan(plan(ASKED))
        instance = await app.plans.start_plan_by_prompt("", "asked")
        await instance.wait_until_settled(20)
        await app.plans.planner_agent.continue_plan(instance.id, {"size": "wide"})
        assert await instance.wait_for_completion(20) == "done"
    assert seen == ["L001", "L002"]
