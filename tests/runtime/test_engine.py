"""The engine's own habits: one actor per run, commit before act, and nobody left hanging."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
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
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.errors import InternalError, JournalUnavailable, NotAllowed, NotFound
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, RunRow
from holdfast.model import events as e
from holdfast.model.commands import HearChild, ReportOutcome, Tick
from holdfast.model.plan import Listener, Output, Plan, Task, TaskStatus, ToolAction
from holdfast.plans.module import PlannerAgent, RetrySituation
from holdfast.runtime import turns
from holdfast.runtime.actor import Actor
from holdfast.runtime.executor import ConcurrencyLimit
from holdfast.runtime.machines import PlanMachine
from holdfast.work import threads
from holdfast.work.driver import TaskDriver

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
        self.appended.append([record[2] for record in append.records])
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
        await until(lambda: "inst_000001" in app.engine._actors.by_id)
        cancelling = asyncio.ensure_future(app.cancel("inst_000001"))
        instance = await starting
        await cancelling
        assert await instance.wait_for_completion(20) == "cancelled"
        events = await history(app, instance.id)
        assert of_kind(events, e.ListenerStarted)
        assert of_kind(events, e.StepReleased)
    assert desk.keys == []


class Booth:
    """A tool that blocks its thread until it is opened; there is one thread."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.open = threading.Event()

    def work(self, note: str) -> dict[str, str]:
        self.begun.append(note)
        assert self.open.wait(30)
        return {"note": note}


@pytest.fixture
def booth(monkeypatch: pytest.MonkeyPatch) -> Booth:
    monkeypatch.setattr(threads, "POOL", threads.Threads(1))
    return Booth()


def side_by_side(*notes: str) -> Plan:
    listeners = [
        Listener(
            f"L{note}",
            ("goal",),
            "Running",
            ToolAction("work", {"note": note}),
            Output(note, TaskStatus.DONE),
        )
        for note in notes
    ]
    ended = " && ".join(f"{note}.status == Done" for note in notes)
    listeners.append(Listener("END", notes, ended, PURE, Output("goal", TaskStatus.DONE)))
    return Plan("row", "Row", "goal", (Task("goal"), *map(Task, notes)), tuple(listeners))


@pytest.mark.parametrize("timeout", [None, 60.0])
async def test_a_blocking_call_that_waits_for_a_thread_is_not_made_once_its_run_is_cancelled(
    booth: Booth,
    timeout: float | None,
) -> None:
    app = Holdfast.in_memory()
    app.tool(booth.work, name="work", timeout=timeout)
    app.add_plan(side_by_side("a", "b", "c"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "row")
        await until(lambda: len(booth.begun) == 1)
        await app.cancel(instance.id)
        booth.open.set()
        assert await instance.wait_for_completion(20) == "cancelled"
        assert len(booth.begun) == 1
        events = await history(app, instance.id)
        assert len(of_kind(events, e.StepReleased)) == 2
        assert of_kind(events, e.QuestionOpened) == [], "nobody doubts what was not begun"
        await assert_sound(app, instance.id)


async def test_a_call_that_was_not_made_is_not_sent_however_a_driver_tells_it(
    booth: Booth,
) -> None:
    class Retelling(TaskDriver):
        async def execute_listener(self, listener: Any, context: Any) -> dict[str, Any]:
            try:
                return await super().execute_listener(listener, context)
            except Exception as error:
                return {"success": False, "error": str(error), "task_updates": []}

    app = Holdfast.in_memory(driver=Retelling)
    app.tool(booth.work, name="work")
    app.add_plan(side_by_side("a", "b"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "row")
        await until(lambda: len(booth.begun) == 1)
        await app.cancel(instance.id)
        booth.open.set()
        assert await instance.wait_for_completion(20) == "cancelled"
        assert len(booth.begun) == 1
        assert len(of_kind(await history(app, instance.id), e.StepReleased)) == 1


async def test_a_call_that_timed_out_before_a_thread_was_free_is_made_when_nobody_doubts_it(
    booth: Booth,
) -> None:
    app = Holdfast.in_memory()
    app.tool(booth.work, name="work")
    app.tool(booth.work, name="hasty", timeout=0.05)
    app.add_plan(tools("slow", "work"))
    app.add_plan(tools("quick", "hasty"))
    async with app:
        slow = await app.plans.start_plan_by_prompt("", "slow")
        await until(lambda: booth.begun == ["work"])
        quick = await app.plans.start_plan_by_prompt("", "quick")
        assert await quick.wait_until_settled(20) == "pause", "so far nobody knows"
        booth.open.set()
        assert await slow.wait_for_completion(20) == "done"
        assert await quick.wait_for_completion(20) == "done"
        assert booth.begun == ["work", "hasty"]
        events = await history(app, quick.id)
        assert of_kind(events, e.AttemptFailed)
        assert of_kind(events, e.QuestionWithdrawn)


async def test_at_a_close_a_blocking_call_that_waits_for_a_thread_is_released(
    booth: Booth,
    tmp_path: Path,
) -> None:
    app = Holdfast(tmp_path)
    app.tool(booth.work, name="work")
    app.add_plan(side_by_side("a", "b"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "row")
        await until(lambda: len(booth.begun) == 1)
        asyncio.get_running_loop().call_later(0.1, booth.open.set)
    assert len(booth.begun) == 1
    again = Holdfast(tmp_path)
    again.tool(booth.work, name="work")
    async with again:
        instance = await again.instance(instance.id)
        assert await instance.wait_for_completion(20) == "done"
        assert sorted(booth.begun) == ["a", "b"]


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
            bug.setattr(app.engine._actors.by_id.get(instance.id), "carry_out", broken)
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
            bug.setattr("holdfast.runtime.actor.encode_all", broken)
            with pytest.raises(InternalError, match="a bug"):
                await app.cancel(instance.id)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        await assert_sound(app, instance.id)
    assert "could not be recorded" in caplog.text


class Mistaken(MemoryJournal):
    """Fails for no reason at an append that `when` points out, the first `times`."""

    def __init__(self, when: Callable[[Append], bool], times: int, *, after: bool = False) -> None:
        super().__init__()
        self.when, self.times, self.after, self.tries = when, times, after, 0

    async def append(self, append: Append) -> int:
        if not self.when(append) or self.tries == self.times:
            return await super().append(append)
        self.tries += 1
        if self.after:
            await super().append(append)
        raise RuntimeError("a bug")


def writes(kind: type) -> Callable[[Append], bool]:
    return lambda append: any(kind.__name__ in one[2] for one in append.records)


def hears(append: Append) -> bool:
    return bool(append.heard)


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RETRY_JOURNAL", 0.01)


@pytest.mark.parametrize("after", [False, True], ids=["not on disk", "on disk"])
@pytest.mark.parametrize(
    "when",
    [hears, writes(e.ListenerSucceeded), writes(e.RunCompleted)],
    ids=["word", "result", "end"],
)
async def test_what_a_mistake_of_ours_once_kept_from_the_journal_is_recorded_later(
    when: Callable[[Append], bool], after: bool, desk: Desk, hurry: None
) -> None:
    journal = Mistaken(when, 1, after=after)
    async with Holdfast(journal=journal) as app:
        app.tool(desk.work, name="work")
        app.add_plan(plan(PARENT))
        app.add_plan(tools("child", "work"))
        instance = await app.plans.start_plan_by_prompt("", "parent")
        assert await instance.wait_for_completion(20) == "done"
        assert (len(desk.keys), journal.tries) == (1, 1)
        assert await app.inbox() == []
        await assert_sound(app, instance.id)


async def test_a_result_that_waits_to_be_recorded_is_not_obtained_again_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever speaks to the run then has it read anew, and its step is in flight on disk."""
    monkeypatch.setattr(turns, "RETRY_JOURNAL", 0.1)
    journal = Mistaken(writes(e.ListenerSucceeded), 1)
    async with Holdfast(journal=journal) as app:
        app.tool(desk.work, name="work")
        app.add_plan(tools("one", "work"))
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: journal.tries == 1)
        await app.engine.submit(instance.id, Tick())
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1
        assert of_kind(await history(app, instance.id), e.StepReleased) == []


async def test_a_result_that_can_never_be_recorded_is_lost_and_the_run_asks(
    desk: Desk, hurry: None
) -> None:
    journal = Mistaken(writes(e.ListenerSucceeded), 1_000)
    async with Holdfast(journal=journal) as app:
        app.tool(desk.work, name="work")
        app.add_plan(tools("one", "work"))
        instance = await app.plans.start_plan_by_prompt("", "one")
        assert await instance.wait_until_settled(20) == "pause"
        [question] = await app.inbox()
        assert question.title == "Did work happen?"
        assert journal.tries == 2
        await assert_sound(app, instance.id)


async def test_what_can_never_be_recorded_is_tried_ever_more_rarely(
    desk: Desk, hurry: None
) -> None:
    journal = Mistaken(hears, 1_000)
    async with Holdfast(journal=journal) as app:
        app.tool(desk.work, name="work")
        app.add_plan(plan(PARENT))
        app.add_plan(tools("child", "work"))
        instance = await app.plans.start_plan_by_prompt("", "parent")
        await asyncio.sleep(0.5)
        assert 3 <= journal.tries <= 7, "after 10, 20, 40, 80, 160 and 320 ms"
        assert instance.status == "running"
        journal.times = 0
        journal.tries = 0
        assert await instance.wait_for_completion(20) == "done"


@pytest.mark.parametrize("kind", [HearChild, ReportOutcome])
async def test_a_word_that_could_not_be_decided_is_decided_later(
    kind: type, desk: Desk, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, left = PlanMachine.carry_out, [RuntimeError("a bug")]

    def broken(builder: Any, command: Any) -> Any:
        if left and isinstance(command, kind):
            raise left.pop()
        return whole(builder, command)

    monkeypatch.setattr(PlanMachine, "carry_out", staticmethod(broken))
    async with Holdfast.in_memory() as app:
        app.tool(desk.work, name="work")
        app.add_plan(plan(PARENT))
        app.add_plan(tools("child", "work"))
        instance = await app.plans.start_plan_by_prompt("", "parent")
        assert await instance.wait_for_completion(20) == "done"
        assert (len(desk.keys), left) == (1, [])


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
    limit = ConcurrencyLimit(1)
    blank = CompiledPlan(tools("one", "work"), "digest")
    first, second = (Actor.of(PlanState(name, plan=blank)) for name in ("first", "second"))
    limit.free -= 2
    limit.waiting.extend((first, second))
    limit.free += 1
    assert limit.granted() is None, "what was out beyond the limit comes off first"
    limit.free += 1
    assert limit.granted() is first
    assert first.permits == 1
    assert limit.free == 0, "it was passed on, not freed"
    limit.free += 1
    assert limit.granted() is second
    limit.free += 1
    assert limit.granted() is None
    assert limit.free == 1
    with pytest.raises(ValueError, match="at least one"):
        ConcurrencyLimit(0)
