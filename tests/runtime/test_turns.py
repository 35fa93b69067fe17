"""A turn of a run: bounded in what it takes in and starts, and one task from call to call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from scenes import assert_sound, history, of_kind, plan, tools

from holdfast.app import Holdfast
from holdfast.core.plan import steps
from holdfast.core.plan.decide import decide
from holdfast.core.run.tables import StepStatus
from holdfast.errors import VersionConflict
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.runtime.machines import PlanMachine
from holdfast.runtime.scheduler import MOST_AT_ONCE, MOST_ENVELOPES
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
        self.appended.append([record[2] for record in append.records])
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
    count, journal, gate = 3 * MOST_ENVELOPES + 5, Appends(), asyncio.Event()

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
        assert max(journal.sizes) <= MOST_ENVELOPES + 2, "and what the end of the run brings"


async def test_a_run_that_is_taken_up_with_an_empty_mailbox_starts_what_is_ready() -> None:
    """As after an outage in which nothing was said to it."""
    async with Holdfast(journal=MemoryJournal(), max_effects=1) as app:
        app.tool(work)
        app.add_plan(tools("row", "work"))
        app.engine._limit.free -= 1
        instance = await app.plans.start_plan_by_prompt("", "row")
        actor = app.engine._actors.by_id.get(instance.id)
        assert actor is not None
        actor.awaits_permit = False
        app.engine._limit.waiting.clear()
        app.engine._limit.free += 1
        assert not actor.mailbox
        app.engine._turns.retry(actor)
        assert await instance.wait_for_completion(20) == "done"


async def test_a_conflict_in_a_turn_without_letters_is_followed_by_another_turn() -> None:
    class Overtaken(MemoryJournal):
        conflicts = 0

        async def append(self, append: Append) -> int:
            if self.conflicts:
                self.conflicts -= 1
                raise VersionConflict("somebody else was quicker")
            return await super().append(append)

    journal = Overtaken()
    async with Holdfast(journal=journal, max_effects=1) as app:
        app.tool(work)
        app.add_plan(tools("row", "work"))
        app.engine._limit.free -= 1
        instance = await app.plans.start_plan_by_prompt("", "row")
        actor = app.engine._actors.by_id.get(instance.id)
        assert actor is not None
        actor.awaits_permit = False
        app.engine._limit.waiting.clear()
        app.engine._limit.free += 1
        assert not actor.mailbox
        journal.conflicts = 1
        app.engine._turns.retry(actor)
        assert await instance.wait_for_completion(5) == "done"


async def test_calls_in_a_row_share_a_task() -> None:
    tasks = []

    async def work(note: str) -> dict[str, int]:
        tasks.append(asyncio.current_task())
        return {"n": 1}

    async with Holdfast.in_memory() as app:
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

    async with Holdfast.in_memory() as app:
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
    async with Holdfast.in_memory() as app:
        app.tool(work)
        app.add_plan(tools("row", "work", "work"))
        instance = await app.plans.start_plan_by_prompt("", "row")
        assert await instance.wait_for_completion(20) == "done"


@pytest.mark.parametrize("blocks", [False, True])
async def test_a_tool_that_cancels_its_own_task_and_returns_has_its_result_counted(
    blocks: bool, tmp_path: Path
) -> None:
    async def work(note: str) -> dict[str, int]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return {"n": 1}

    async with Holdfast(tmp_path, journal=Appends() if blocks else None) as app:
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

    async with Holdfast(journal=MemoryJournal(), driver=Slow) as app:
        app.tool(work)
        app.add_plan(plan(ASKED))
        instance = await app.plans.start_plan_by_prompt("", "asked")
        await instance.wait_until_settled(20)
        await app.plans.planner_agent.continue_plan(instance.id, {"size": "wide"})
        assert await instance.wait_for_completion(20) == "done"
    assert seen == ["L001", "L002"]


async def test_a_start_that_breaks_off_after_an_event_is_tried_once_a_turn_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake of ours: the step stays ready, and the loop stays free."""
    whole, tries = steps._started, 0

    def broken(builder: Any, listener: Any, *more: Any, **named: Any) -> None:
        nonlocal tries
        whole(builder, listener, *more, **named)
        if listener.id == "L0002":
            tries += 1
            raise RuntimeError("a bug")

    monkeypatch.setattr(steps, "_started", broken)
    async with Holdfast.in_memory() as app:
        app.tool(work)
        app.add_plan(tools("row", "work", "work", "work"))
        instance = await app.plans.start_plan_by_prompt("", "row")
        await app.engine.wait_for(instance.id, lambda state: state.version >= 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert tries == 1
        monkeypatch.undo()
        await app.engine.submit(instance.id, c.Tick())
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, instance.id)
    assert "could not start L0002" in caplog.text


def fails_once(monkeypatch: pytest.MonkeyPatch, when: Callable[[Any], bool]) -> None:
    """A mistake of ours, after a decision has written its events."""
    whole, left = PlanMachine.carry_out, [RuntimeError("a bug")]

    def broken(builder: Any, command: Any) -> Any:
        decided = whole(builder, command)
        if left and when(command):
            raise left.pop()
        return decided

    monkeypatch.setattr(PlanMachine, "carry_out", staticmethod(broken))


def is_a_birth(command: c.Command) -> bool:
    return isinstance(command, c.StartRun) and command.parent is not None


def is_an_outcome(command: c.Command) -> bool:
    return isinstance(command, c.ReportOutcome)


@pytest.mark.own_store  # a driver elsewhere starts it in a turn of its own
@pytest.mark.parametrize(
    ("action", "when"),
    [
        (PlanAction("part", {}), is_a_birth),
        (HumanAction(asking=Asking("Shall we?")), is_an_outcome),
    ],
    ids=["a child's birth", "the conclusion of an answer"],
)
async def test_what_breaks_off_while_a_step_starts_leaves_it_ready_and_everybody_else_answered(
    action: Any,
    when: Callable[[Any], bool],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails_once(monkeypatch, when)
    async with Holdfast.in_memory(max_effects=1) as app:
        app.tool(work)
        app.add_plan(tools("part", "work"))
        listeners = (
            Listener("L", ("goal",), "Running", action, Output("t", TaskStatus.DONE)),
            Listener(
                "M",
                ("t",),
                "Done",
                ToolAction("work", {"note": "n"}),
                Output("goal", TaskStatus.DONE),
            ),
        )
        app.add_plan(Plan("p", "P", "goal", (Task("goal"), Task("t")), listeners))
        instance = await asyncio.wait_for(app.plans.start_plan_by_prompt("", "p"), 5)
        for question in await app.inbox():
            await asyncio.wait_for(app.answer(question.question_id, option_id="confirm"), 5)
        state = await assert_sound(app, instance.id)
        assert state.steps["L"].status is StepStatus.READY
        assert "could not start L" in caplog.text
        await app.engine.submit(instance.id, c.Tick())
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, instance.id)


async def test_a_tool_that_cannot_be_looked_at_costs_no_permit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Holdfast.in_memory(max_effects=1) as app:
        app.tool(work)
        app.add_plan(tools("row", "work"))
        with monkeypatch.context() as bug:
            bug.setattr("holdfast.runtime.executor._facts_of", lambda spec: 1 / 0)
            instance = await asyncio.wait_for(app.plans.start_plan_by_prompt("", "row"), 5)
        await app.engine.submit(instance.id, c.Tick())
        assert await instance.wait_for_completion(20) == "done"


async def test_a_listener_without_a_name_starts_like_any_other() -> None:
    """Plans that are made in Python are not checked."""
    async with Holdfast.in_memory() as app:
        app.tool(work)
        output = Output("goal", TaskStatus.DONE)
        unnamed = Listener("", ("goal",), "Running", ToolAction("work", {"note": "x"}), output)
        app.add_plan(Plan("row", "Row", "goal", (Task("goal"),), (unnamed,)))
        instance = await app.plans.start_plan_by_prompt("", "row")
        assert await instance.wait_for_completion(20) == "done"


async def test_a_forecast_leaves_a_live_run_alone() -> None:
    async with Holdfast.in_memory() as app:
        app.add_plan(at_once(3, HumanAction(asking=Asking(title="and?"))))
        instance = await app.plans.start_plan_by_prompt("", "many")
        state = await app.engine.wait_for(instance.id, lambda state: len(state.open_questions) == 3)
        actor = app.engine._actors.by_id.get(instance.id)
        assert actor is not None
        [question, *_] = sorted(state.open_questions)
        for _ in range(3):
            answer = c.Answer(question, "Will Zhang", option_id="confirm")
            assert decide(state, answer, c.Moment(state.updated_at)).events
        assert actor.builder.readied == []
        assert actor.ready.heap == []
