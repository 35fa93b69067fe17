"""The journal cannot acknowledge: callers are told, and everything goes on by itself.

A refused append may have happened or not, and nobody can tell which: both are tried at
every append of a run. Whatever was obtained from the outside is submitted again and never
obtained again; whatever was never handed over is released and handed over then.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from faulty_disk import GROWING_LOG, Disk
from scenes import PURE, Desk, assert_sound, chain, history, of_kind, plan, tools, until

from holdfast.app import Holdfast
from holdfast.errors import JournalUnavailable, PermanentError, TransientError
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append, Journal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model import events as e
from holdfast.model.plan import ToolAction
from holdfast.runs.handles import PlanInstance
from holdfast.runtime import clock as clocks
from holdfast.runtime import turns
from holdfast.testing.clock import ManualClock

pytestmark = pytest.mark.own_store  # its journal fails

T = TypeVar("T")


class Unreliable:
    """A journal that refuses appends on demand, before or after they have happened."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.appends = 0
        self.refuse: Callable[[int], bool] = lambda number: False
        self.after = False
        self.dark = False

    def __getattr__(self, name: str) -> Any:
        if self.dark and name in ("read", "run", "snapshot", "due_runs", "next_wake"):
            raise JournalUnavailable("it is dark")
        return getattr(self._journal, name)

    async def append(self, append: Append) -> int:
        self.appends += 1
        refused = self.refuse(self.appends)
        if refused and not self.after:
            raise JournalUnavailable("the disk is full")
        version = await self._journal.append(append)
        if refused:
            raise JournalUnavailable("the connection was lost")
        return version

    def go_down(self, *, after: bool = False) -> None:
        self.after = after
        self.refuse = lambda number: True

    def come_back(self) -> None:
        self.refuse = lambda number: False


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RETRY_JOURNAL", 0.01)
    monkeypatch.setattr(clocks, "_RETRY_AFTER", 0.01)


@pytest.fixture
def journal() -> Unreliable:
    return Unreliable(MemoryJournal())


@pytest.fixture
def desk() -> Desk:
    return Desk()


def furnished(journal: object, desk: Desk, **options: Any) -> Holdfast:
    app = Holdfast(journal=journal, **options)  # type: ignore[arg-type]
    app.tool(desk.work, name="work")
    return app


EVERYTHING = """
plan_id: everything
name: Everything a run can do
main_task_id: "001"
tasks:
  - {task_id: "001"}
  - {task_id: "002"}
  - {task_id: "003"}
  - {task_id: "004"}
  - {task_id: "005"}
  - {task_id: "006"}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: first
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: tool
    tool: fails_once
    success_output: {task_id: "004", status: Done}
    retry: {attempts: 1}
  - listener_id: L004
    trigger_task_id: "004"
    trigger_condition: Done
    listener_type: plan
    plan_id: part
    success_output: {task_id: "005", status: Done}
  - listener_id: L005
    trigger_task_id: "005"
    trigger_condition: Done
    listener_type: tool
    tool: wants
    success_output: {task_id: "006", status: Done}
  - listener_id: L006
    trigger_task_id: "006"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

PART = """
plan_id: part
name: A part
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: inner
    success_output: {task_id: "001", status: Done}
"""


def everything(journal: object, calls: Counter[str]) -> Holdfast:
    app = Holdfast(journal=journal)  # type: ignore[arg-type]

    @app.tool
    async def first() -> None:
        calls["first"] += 1

    @app.tool
    async def fails_once() -> None:
        calls["fails_once"] += 1
        if calls["fails_once"] == 1:
            raise TransientError("come again")

    @app.tool
    async def inner() -> None:
        calls["inner"] += 1

    @app.tool
    async def wants(note: str) -> None:
        calls["wants"] += 1

    app.add_plan(plan(EVERYTHING))
    app.add_plan(plan(PART))
    return app


async def start(app: Holdfast) -> PlanInstance:
    """Start one, as a person would who is told that it was not acknowledged: look first."""
    while True:
        try:
            return await app.plans.start_plan_by_prompt("", "everything")
        except JournalUnavailable:
            await asyncio.sleep(0.05)
            if runs := await app.runs():
                return await app.instance(runs[-1].run_id)


async def insist(action: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await action()
        except JournalUnavailable:
            await asyncio.sleep(0.01)


async def see_through(app: Holdfast) -> PlanInstance:
    instance = await start(app)
    assert await instance.wait_until_settled(20) == "pause"
    [question] = await app.inbox()
    await insist(lambda: app.answer(question.question_id, data={"note": "x"}))
    assert await instance.wait_for_completion(20) == "done"
    return instance


ONCE_EACH = Counter(first=1, fails_once=2, inner=1, wants=1)


@pytest.mark.parametrize("after", [False, True], ids=["not happened", "happened"])
@pytest.mark.parametrize("length", [1, 3])
async def test_wherever_the_journal_goes_down_the_run_ends_well_and_nothing_runs_twice(
    after: bool, length: int
) -> None:
    whole = Unreliable(MemoryJournal())
    calls: Counter[str] = Counter()
    async with everything(whole, calls) as app:
        await see_through(app)
    assert calls == ONCE_EACH
    for place in range(1, whole.appends + 1):
        calls.clear()
        journal = Unreliable(MemoryJournal())
        journal.after = after
        journal.refuse = lambda number, place=place: place <= number < place + length
        async with everything(journal, calls) as app:
            await see_through(app)
            for run in await app.runs():
                await assert_sound(app, run.run_id)
        assert calls == ONCE_EACH, (place, calls)
        assert journal.appends > place


async def test_a_start_that_was_refused_is_not_acknowledged_and_called_nothing(
    journal: Unreliable, desk: Desk
) -> None:
    app = furnished(journal, desk)
    app.add_plan(tools("one", "work"))
    async with app:
        journal.go_down()
        with pytest.raises(JournalUnavailable):
            await app.plans.start_plan_by_prompt("", "one")
        assert await app.runs() == []
        journal.come_back()
        instance = await app.plans.start_plan_by_prompt("", "one")
        assert await instance.wait_for_completion(20) == "done"
        assert desk.keys == [f"{instance.id}:L0001:1:0"]


async def test_a_start_that_happened_unacknowledged_goes_on_by_itself(
    journal: Unreliable, desk: Desk
) -> None:
    app = furnished(journal, desk)
    app.add_plan(tools("one", "work"))
    async with app:
        journal.go_down(after=True)
        with pytest.raises(JournalUnavailable):
            await app.plans.start_plan_by_prompt("", "one")
        journal.come_back()
        [run] = await app.runs()
        instance = await app.instance(run.run_id)
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1
        assert of_kind(await history(app, run.run_id), e.StepReleased)


async def test_a_result_obtained_while_the_journal_is_down_is_kept_until_it_is_back(
    journal: Unreliable, desk: Desk
) -> None:
    app = furnished(journal, desk)
    app.add_plan(chain("two", [ToolAction("work", {"note": "a"}), PURE]))
    async with app:
        desk.open.clear()
        instance = await app.plans.start_plan_by_prompt("", "two")
        await until(lambda: bool(desk.keys))
        journal.go_down()
        appends = journal.appends
        desk.open.set()
        await until(lambda: journal.appends >= appends + 5)
        assert instance.status == "running"
        with pytest.raises(JournalUnavailable):
            await app.cancel(instance.id)
        journal.come_back()
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1, "what was obtained is never obtained again"
        assert of_kind(await history(app, instance.id), e.CancelRequested) == []


async def test_while_it_is_dark_as_well_nothing_is_lost(journal: Unreliable, desk: Desk) -> None:
    """Reads fail too, so that the run cannot even be loaded anew."""
    app = furnished(journal, desk)
    app.add_plan(tools("two", "work", "work"))
    async with app:
        desk.open.clear()
        instance = await app.plans.start_plan_by_prompt("", "two")
        await until(lambda: bool(desk.keys))
        journal.go_down(after=True)
        journal.dark = True
        desk.open.set()
        await asyncio.sleep(0.1)
        journal.come_back()
        await asyncio.sleep(0.1)
        journal.dark = False
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == len(set(desk.keys)) == 2
        await assert_sound(app, instance.id)


async def test_an_outage_costs_a_retry_per_run_and_moment_not_per_caller(
    journal: Unreliable, desk: Desk
) -> None:
    app = furnished(journal, desk)
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        journal.go_down()
        cancels = (app.cancel(instance.id) for _ in range(50))
        outcomes = await asyncio.gather(*cancels, return_exceptions=True)
        assert all(isinstance(one, JournalUnavailable) for one in outcomes)
        before = journal.appends
        desk.open.set()
        await asyncio.sleep(0.2)
        assert journal.appends - before <= 25
        journal.come_back()
        assert await instance.wait_for_completion(20) == "done"


async def test_a_timer_that_comes_due_meanwhile_fires_when_the_journal_is_back(
    journal: Unreliable, desk: Desk
) -> None:
    clock = ManualClock()
    desk.errors = [TransientError("later")]
    app = furnished(journal, desk, clock=clock)
    app.add_plan(tools("one", "work"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: len(desk.keys) == 1 and not desk.errors)
        await asyncio.sleep(0)
        await app.engine.wait_for(instance.id, lambda state: len(state.timers) > 0)
        journal.go_down()
        clock.advance(60)
        await asyncio.sleep(0.1)
        assert len(desk.keys) == 1
        journal.come_back()
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 2


async def test_at_a_close_during_an_outage_what_was_obtained_is_in_doubt_not_unsent(
    journal: Unreliable, desk: Desk
) -> None:
    app = furnished(journal, desk)
    app.add_plan(tools("one", "work"))
    async with app:
        desk.open.clear()
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: bool(desk.keys))
        journal.go_down()
        desk.open.set()
        await asyncio.sleep(0.05)
    journal.come_back()
    again = furnished(journal, desk)
    again.add_plan(tools("one", "work"))
    async with again:
        instance = await again.instance(instance.id)
        assert await instance.wait_until_settled(20) == "pause"
        [question] = await again.inbox()
        assert question.title == "Did work happen?"
        assert len(desk.keys) == 1
        await again.answer(question.question_id, option_id="happened")
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1


async def test_a_run_that_fails_for_good_while_the_journal_is_down_still_asks_its_planner(
    journal: Unreliable, desk: Desk
) -> None:
    desk.errors = [PermanentError("never")]
    app = furnished(journal, desk)
    app.add_plan(tools("one", "work"))
    async with app:
        desk.open.clear()
        instance = await app.plans.start_plan_by_prompt("", "one")
        await until(lambda: bool(desk.keys))
        journal.go_down(after=True)
        desk.open.set()
        await asyncio.sleep(0.05)
        journal.come_back()
        assert await instance.wait_for_completion(20) == "error"
        assert instance.get_main_task_instance().context["error_info"]["status"] == (
            "waiting_for_resume"
        )


@pytest.mark.parametrize("trouble", ["sync", "full"])
async def test_a_real_disk_that_fails_is_told_to_callers_and_waited_for(
    tmp_path: Path, desk: Desk, trouble: str
) -> None:
    with Disk(GROWING_LOG) as disk:
        journal = SqliteJournal(tmp_path / "holdfast.db", connect=disk.connect)
        app = furnished(journal, desk)
        app.add_plan(tools("chain", *["work"] * 5))
        async with app:
            desk.open.clear()
            instance = await app.plans.start_plan_by_prompt("", "chain")
            await until(lambda: bool(desk.keys))
            if trouble == "sync":
                disk.failing_syncs = 3
            else:
                disk.room = 0
            with pytest.raises(JournalUnavailable):
                await app.plans.start_plan_by_prompt("", "chain")
            desk.open.set()
            await asyncio.sleep(0.3)
            disk.room = None
            assert await instance.wait_for_completion(30) == "done"
            assert len(desk.keys) == len(set(desk.keys)) == 5
            await assert_sound(app, instance.id)
