"""Timers are in the journal; the clock may be set forth and back, and nothing fires twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scenes import Desk, assert_sound, history, of_kind, tools, until

from holdfast.app import Holdfast
from holdfast.errors import JournalDamaged, JournalUnavailable, TransientError
from holdfast.journal.memory import MemoryJournal
from holdfast.model import events as e
from holdfast.runs.handles import PlanInstance
from holdfast.runtime import clock as clocks
from holdfast.runtime.clock import SystemClock, Timers
from holdfast.source.planfile import read_plan
from holdfast.testing.clock import ManualClock

pytestmark = pytest.mark.own_store  # its journal is in memory, with the clock in the hand

HOUR = 3600.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def furnished(journal: MemoryJournal, desk: Desk, clock: ManualClock) -> Holdfast:
    app = Holdfast(journal=journal, clock=clock)
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    return app


async def backing_off(app: Holdfast, desk: Desk) -> PlanInstance:
    """A run that has failed once and waits for its next attempt."""
    desk.errors.append(TransientError("later"))
    calls = len(desk.keys)
    instance = await app.plans.start_plan_by_prompt("", "one")
    await until(lambda: len(desk.keys) == calls + 1)
    await app.engine.wait_for(instance.id, lambda state: len(state.timers) > 0)
    return instance


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_an_attempt_waits_for_its_time_and_comes_once(desk: Desk, clock: ManualClock) -> None:
    async with furnished(MemoryJournal(), desk, clock) as app:
        instance = await backing_off(app, desk)
        [retry] = of_kind(await history(app, instance.id), e.AttemptFailed)
        assert isinstance(retry, e.AttemptFailed)
        clock.advance(retry.retry_at - clock.now() - 0.001)
        await settle()
        assert len(desk.keys) == 1, "nothing fires early"
        clock.advance(0.001)
        assert await instance.wait_for_completion(20) == "done"
        clock.advance(HOUR)
        await settle()
        assert len(desk.keys) == 2
        assert len(of_kind(await history(app, instance.id), e.StepWoken)) == 1


async def test_a_clock_that_is_set_back_an_hour_fires_nothing_early(
    desk: Desk, clock: ManualClock
) -> None:
    async with furnished(MemoryJournal(), desk, clock) as app:
        instance = await backing_off(app, desk)
        clock.advance(-HOUR)
        await settle()
        clock.advance(HOUR - 1)
        await settle()
        assert len(desk.keys) == 1
        clock.advance(2)
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 2
        await assert_sound(app, instance.id)


async def test_a_clock_that_jumps_forth_and_back_fires_nothing_twice(
    desk: Desk, clock: ManualClock
) -> None:
    async with furnished(MemoryJournal(), desk, clock) as app:
        instance = await backing_off(app, desk)
        clock.advance(HOUR)
        assert await instance.wait_for_completion(20) == "done"
        clock.advance(-HOUR)
        await settle()
        clock.advance(HOUR)
        await settle()
        assert len(desk.keys) == 2
        assert len(of_kind(await history(app, instance.id), e.StepWoken)) == 1
        await assert_sound(app, instance.id)


async def test_timers_survive_a_restart(desk: Desk, clock: ManualClock) -> None:
    journal = MemoryJournal()
    async with furnished(journal, desk, clock) as app:
        instance = await backing_off(app, desk)
    clock.advance(HOUR)
    async with furnished(journal, desk, clock) as app:
        instance = await app.instance(instance.id)
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 2
        assert of_kind(await history(app, instance.id), e.RunRecovered) == []


async def test_many_timers_due_at_once_all_fire(desk: Desk, clock: ManualClock) -> None:
    async with furnished(MemoryJournal(), desk, clock) as app:
        instances = [await backing_off(app, desk) for _ in range(250)]
        clock.advance(HOUR)
        for instance in instances:
            assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 500


async def test_a_sooner_timer_is_not_kept_waiting_by_a_later_one(clock: ManualClock) -> None:
    journal = FakeWakes(clock)
    journal.wakes = {"late": clock.now() + HOUR}
    woken: list[str] = []
    timers = Timers(journal, clock, journal.waker(woken))  # type: ignore[arg-type]
    timers.start()
    await settle()
    journal.wakes["soon"] = clock.now() + 1
    timers.note(clock.now() + 1)
    await settle()
    clock.advance(1)
    await until(lambda: woken == ["soon"])
    await timers.stop()
    assert woken == ["soon"]


async def test_a_run_that_cannot_be_woken_holds_nobody_up_and_is_tried_again(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "_RETRY_AFTER", 0.01)
    journal = FakeWakes(clock)
    journal.wakes = {"broken": clock.now(), "fine": clock.now()}
    woken: list[str] = []
    troubles = [JournalUnavailable("down"), RuntimeError("a bug"), JournalUnavailable("down")]
    timers = Timers(journal, clock, journal.waker(woken, {"broken": troubles}))  # type: ignore[arg-type]
    timers.start()
    await until(lambda: set(woken) == {"broken", "fine"})
    assert troubles == []
    await timers.stop()


async def test_a_damaged_run_is_told_of_once_and_tried_ever_more_rarely(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However many there are, those that can be woken are."""
    waits: list[float] = []
    monkeypatch.setattr(clocks, "_AT_ONCE", 2)
    loop = asyncio.get_running_loop()

    def at_once(delay: float, callback: Callable[[str], None], run_id: str) -> object:
        waits.append(delay)
        return loop.call_soon(callback, run_id) if len(waits) <= 40 else None

    monkeypatch.setattr(loop, "call_later", at_once)
    journal = FakeWakes(clock)
    names = [f"broken{n}" for n in range(3)]
    journal.wakes = {**dict.fromkeys(names, clock.now()), "fine": clock.now()}
    woken: list[str] = []
    troubles: dict[str, list[Exception]] = {
        name: [JournalDamaged(f"{name} has changed") for _ in range(99)] for name in names
    }
    timers = Timers(journal, clock, journal.waker(woken, troubles))  # type: ignore[arg-type]
    timers.start()
    await until(lambda: len(waits) == 43)
    await timers.stop()
    assert woken == ["fine"]
    told = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert sorted(told) == [
        f"run {name} is due and cannot be woken: {name} has changed" for name in names
    ]
    assert waits[::3][:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(waits) == 600.0


async def test_a_run_that_can_be_woken_again_is(clock: ManualClock) -> None:
    journal = FakeWakes(clock)
    journal.wakes = {"broken": clock.now()}
    woken: list[str] = []
    troubles: dict[str, list[Exception]] = {"broken": [JournalDamaged("has changed")]}
    timers = Timers(journal, clock, journal.waker(woken, troubles))  # type: ignore[arg-type]
    timers.start()
    await until(lambda: woken == ["broken"])
    await timers.stop()
    assert woken == ["broken"]


class FakeWakes:
    """As much of a journal as timers need."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.wakes: dict[str, float] = {}

    async def next_wake(self, after: float) -> float | None:
        return min((at for at in self.wakes.values() if at > after), default=None)

    async def due_runs(self, now: float, limit: int = 100) -> list[str]:
        return [run_id for run_id, at in self.wakes.items() if at <= now][:limit]

    def waker(
        self, woken: list[str], troubles: dict[str, list[Exception]] | None = None
    ) -> Callable[[str], object]:
        async def wake(run_id: str) -> None:
            if troubles and troubles.get(run_id):
                raise troubles[run_id].pop()
            del self.wakes[run_id]
            woken.append(run_id)

        return wake


async def test_the_system_clock_naps_so_that_it_notices_when_it_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.runtime.clock.LONGEST_NAP", 0.01)
    clock = SystemClock()
    async with asyncio.timeout(20):
        await clock.wait(clock.now() + HOUR, asyncio.Event())
        nudge = asyncio.Event()
        nudge.set()
        await clock.wait(None, nudge)
        await clock.wait(clock.now() - HOUR, asyncio.Event())
    assert nudge.is_set()


WAIT = """
plan_id: wait
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: wait_until
    after: 1h
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: work
    args: {note: now}
    success_output: {task_id: "001", status: Done}
"""


def waits_an_hour(journal: MemoryJournal, desk: Desk, clock: ManualClock) -> Holdfast:
    app = furnished(journal, desk, clock)
    app.add_plan(read_plan(WAIT))
    return app


async def test_a_listener_waits_for_its_moment_across_a_restart(
    desk: Desk, clock: ManualClock
) -> None:
    journal = MemoryJournal()
    async with waits_an_hour(journal, desk, clock) as app:
        instance = await app.plans.start_plan_by_prompt("", "wait")
        await app.engine.wait_for(instance.id, lambda state: len(state.timers) > 0)
        clock.advance(HOUR - 1)
        await settle()
        assert desk.keys == []
    async with waits_an_hour(journal, desk, clock) as app:
        await settle()
        clock.advance(1)
        again = await app.plans.get_plan_instance(instance.id)
        assert again is not None
        assert await again.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1
        told = of_kind(await history(app, instance.id), e.WaitEnded)
        assert len(told) == 1
