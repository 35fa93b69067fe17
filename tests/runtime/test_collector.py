"""The collector of the process is set while an application is open, and put back afterwards."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from holdfast import Holdfast
from holdfast.model.plan import Listener, Output, Plan, Task, TaskStatus, ToolAction
from holdfast.runtime.collector import TUNED, Collector
from holdfast.runtime.registry import compiled

PYTHONS = (700, 10, 10)


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A process whose collector is as Python sets it, with no application open."""
    before = gc.get_threshold()
    gc.set_threshold(*PYTHONS)
    gc.unfreeze()
    mine = Collector()
    for place in ("holdfast.app", "holdfast.runtime.registry"):
        monkeypatch.setattr(f"{place}.COLLECTOR", mine)
    yield mine
    gc.enable()
    gc.set_threshold(*before)
    gc.unfreeze()


def standing() -> tuple[tuple[int, int, int], bool]:
    """The thresholds, and whether anything is frozen."""
    return gc.get_threshold(), gc.get_freeze_count() > 0


USUAL = (PYTHONS, False)
SET = (TUNED, True)


async def test_opening_sets_the_collector_and_closing_puts_it_back() -> None:
    app = Holdfast.in_memory()
    assert standing() == USUAL
    async with app:
        assert standing() == SET
    assert standing() == USUAL


async def test_an_application_mounted_in_another_sets_it_too() -> None:
    app = Holdfast.in_memory()
    host = FastAPI(lifespan=app.lifespan)
    async with host.router.lifespan_context(host):
        assert standing() == SET
    assert standing() == USUAL


async def test_the_last_application_to_close_puts_it_back() -> None:
    one, other = Holdfast.in_memory(), Holdfast.in_memory()
    async with other:
        async with one:
            assert standing() == SET
        assert standing() == SET
    assert standing() == USUAL


async def test_an_application_may_leave_the_collector_alone() -> None:
    async with Holdfast.in_memory(tune_collector=False):
        assert standing() == USUAL


async def test_thresholds_that_the_program_has_set_are_left_alone() -> None:
    gc.set_threshold(5_000, 5, 5)
    async with Holdfast.in_memory():
        assert standing() == ((5_000, 5, 5), False)
    assert gc.get_threshold() == (5_000, 5, 5)


async def test_thresholds_set_meanwhile_stay() -> None:
    async with Holdfast.in_memory():
        gc.set_threshold(5_000, 5, 5)
    assert standing() == ((5_000, 5, 5), False)


async def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    async with Holdfast.in_memory() as app:
        app.add_plan(chain(3))
        assert not gc.isenabled()
        assert standing() == USUAL


async def test_what_the_program_has_frozen_stays_frozen() -> None:
    gc.freeze()
    async with Holdfast.in_memory():
        assert standing() == SET
    assert standing() == (PYTHONS, True)


async def test_an_application_that_cannot_open_sets_nothing() -> None:
    app = Holdfast.in_memory()
    app.engine.open = refuse  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no disk"):
        await app.__aenter__()
    assert standing() == USUAL


async def refuse() -> None:
    raise OSError("no disk")


async def test_steps_are_made_without_a_collection() -> None:
    app = Holdfast.in_memory()
    app.tool(effect, idempotent=True)
    app.add_plan(chain(300))
    async with app:
        before = collections()
        run = await app.plans.start_plan_by_prompt("run", "chain")
        await run.wait_for_completion()
        assert collections() == before


def test_a_large_plan_is_compiled_without_a_collection() -> None:
    plan = chain(2_000)
    gc.collect()
    before = collections()
    made = compiled(plan)
    passes = sum(collections()) - sum(before)
    assert passes <= 1  # when all is made
    assert gc.isenabled()
    assert len(made.listeners) == 2_000


def test_every_task_of_a_plan_costs_the_same() -> None:
    compiled(chain(10))
    few, many = calls_of(chain(100)), calls_of(chain(2_000))
    assert many / 2_000 <= few / 100


def calls_of(plan: Plan) -> int:
    """How many functions of Python's are called while a plan is compiled."""
    calls = 0

    def count(frame: object, event: str, given: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        compiled(plan)
    finally:
        sys.setprofile(None)
    return calls


def test_the_collector_goes_on_after_the_last_pause(collector: Collector) -> None:
    with collector.paused():
        with collector.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_plan_that_cannot_be_compiled_leaves_the_collector_on() -> None:
    broken = Plan("p", "p", "1", (Task("1"),), (Listener("L", ("1",), "=", ToolAction("t")),))
    with pytest.raises(Exception, match="does not fit"):
        compiled(broken)
    assert gc.isenabled()


def test_what_is_made_while_open_is_not_looked_at_either(collector: Collector) -> None:
    collector.opened()
    before = gc.get_freeze_count()
    with collector.paused():
        kept = [[] for _ in range(TUNED[0] + 1_000)]
    assert gc.get_freeze_count() > before + TUNED[0]
    assert len(kept) > TUNED[0]
    collector.closed()
    assert standing() == USUAL


def collections() -> list[int]:
    return [one["collections"] for one in gc.get_stats()]


async def effect(n: int) -> dict[str, int]:
    return {"n": n + 1}


def chain(length: int) -> Plan:
    ids = [str(number) for number in range(1, length + 1)]
    return Plan("chain", "chain", ids[-1], tuple(map(Task, ids)), tuple(_listeners(ids)))


def _listeners(ids: list[str]) -> Iterator[Listener]:
    main = ids[-1]
    for place, task_id in enumerate(ids):
        before = ids[place - 1] if place else main
        condition = "Done" if place else f"{main}.status == Running"
        seen = f"{{{before}.context.n}}" if place else 0
        output = Output(task_id, TaskStatus.DONE, {"n": "{{result.n}}"})
        action = ToolAction("effect", {"n": seen})
        yield Listener(f"L{task_id}", (before,), condition, action, output)
