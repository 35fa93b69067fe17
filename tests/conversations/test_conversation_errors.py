"""Whatever fails, and whenever somebody cancels or resets: one clear event, and then a good run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest
from conversation_scenes import (
    DIAMOND,
    GOAL,
    ONCE,
    PATIENCE,
    RESULTS,
    Coordinator,
    Gate,
    Ledger,
    Llm,
    diamond,
    heard,
    kinds,
    named,
    no_task_but_mine,
    results_of,
    until,
)

from holdfast.conversations.engine import ConversationEngine, EngineState
from holdfast.conversations.engine import EngineEventType as T
from holdfast.errors import NotAllowed
from holdfast.model.conversation import SubTask
from holdfast.model.retry import RetryPolicy


class Down:
    """A coordinator and a model of which nobody hears anything but this."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def get_context_async(self, user_input: str) -> Any:
        raise self.error

    async def decompose_goal(self, text: str) -> Any:
        raise self.error


def raising(error: BaseException) -> Callable[[SubTask], Any]:
    async def work(task: SubTask) -> None:
        raise error

    return work


def unserialisable(task: SubTask) -> Any:
    return {"when": object()}


def enormous(task: SubTask) -> Any:
    return "x" * 2_000_000


def exhausted(task: SubTask) -> Any:
    return next(iter(()))


class Odd(BaseException):
    """Neither an Exception nor the interpreter's own."""


CIRCLE = [{"id": "a", "dependencies": ["b"]}, {"id": "b", "dependencies": ["a"]}]

BREAKAGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "coordinator down": ({"coordinator": Down(OSError("refused"))}, "context_fetching", "refused"),
    "coordinator cancels itself": (
        {"coordinator": Down(asyncio.CancelledError())},
        "context_fetching",
        "cancelled from within",
    ),
    "context cannot be read": (
        {"coordinator": SimpleNamespace(get_context_async=lambda _: {"rules": map(len, [1])})},
        "context_fetching",
        "context.rules: cannot be read (TypeError",
    ),
    "model down": ({"llm": Down(OSError("no route"))}, "decomposing", "no route"),
    "model cancels itself": (
        {"llm": Down(asyncio.CancelledError())},
        "decomposing",
        "cancelled from within",
    ),
    "circle": ({"llm": Llm(CIRCLE)}, "decomposing", "wait for each other: a, b"),
    "twice the same": (
        {"llm": Llm([{"id": "a"}, {"id": "a"}])},
        "decomposing",
        "more than once: a",
    ),
    "no tasks": ({"llm": Llm([])}, "decomposing", "no tasks at all"),
    "no JSON": ({"llm": Llm("first we shall")}, "decomposing", "has no JSON list"),
    "model misses a key": ({"llm": Down(KeyError("id"))}, "decomposing", "KeyError: 'id'"),
    "no list": ({"llm": Llm(7)}, "decomposing", "no list of tasks but int"),
    "no id": ({"llm": Llm([{"description": "x"}])}, "decomposing", "a task needs an id"),
    "dependencies as text": (
        {"llm": Llm([{"id": "a", "dependencies": "b"}])},
        "decomposing",
        "must be a list of ids",
    ),
    "task fails": ({"work": raising(RuntimeError("no file"))}, "executing", "no file"),
    "task cancels itself": (
        {"work": raising(asyncio.CancelledError())},
        "executing",
        "cancelled from within",
    ),
    "task runs out of items": ({"work": exhausted}, "executing", "StopIteration"),
    "task raises what is no Exception": (
        {"work": raising(Odd("boo"))},
        "executing",
        "the work raised Odd: boo",
    ),
    "task raises GeneratorExit": (
        {"work": raising(GeneratorExit())},
        "executing",
        "the work raised GeneratorExit",
    ),
    "result is no JSON": ({"work": unserialisable}, "executing", "$.when"),
    "result is enormous": ({"work": enormous}, "executing", "$"),
}


@pytest.mark.parametrize("name", BREAKAGES)
async def test_an_error_names_its_phase_and_after_a_reset_all_is_well(name: str) -> None:
    options, phase, error = BREAKAGES[name]
    engine = diamond(**options)
    events = await heard(engine.run(GOAL))
    assert kinds(events)[-2:] == ["state_changed", "engine_error"]
    data = dict(events[-1].data)
    assert data.pop("task_id", None) == ("load" if phase == "executing" else None)
    assert data.keys() == {"error", "phase"}
    assert (data["phase"], engine.state) == (phase, EngineState.ERROR)
    assert error in data["error"]
    assert error in engine.error
    with pytest.raises(NotAllowed, match=r"the last turn failed .*resume\(failed=…\) goes on"):
        await heard(engine.run(GOAL))

    engine.reset()
    assert engine.state is EngineState.IDLE
    engine.coordinator, engine.llm = Coordinator(), Llm()
    engine._executors["work"] = Ledger().work
    assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_completed"
    assert results_of(engine) == RESULTS
    await no_task_but_mine()


async def test_a_bad_decomposition_is_asked_for_once_more_with_the_complaint() -> None:
    class Mending(Llm):
        async def decompose_goal(self, text: str, **known: Any) -> Any:
            await super().decompose_goal(text, **known)
            return DIAMOND if known["complaint"] else CIRCLE

    llm = Mending()
    engine = diamond(llm=llm)
    assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_completed"
    assert [one["complaint"] for one in llm.heard] == ["", "these tasks wait for each other: a, b"]


async def test_tasks_may_come_as_text_as_objects_and_from_plain_functions() -> None:
    class Plain:
        def decompose_goal(self, text: str) -> str:
            return '{"tasks": [{"id": 1, "type": "upper"}, {"id": 2, "dependencies": [1]}]}'

    engine = ConversationEngine(llm=Plain(), executors={"upper": lambda task: task.id.upper()})
    await heard(engine.run(GOAL))
    assert results_of(engine) == {"1": "1", "2": {}}
    engine = ConversationEngine(llm=Llm([SubTask("a", args={"n": 1})]))
    await heard(engine.run(GOAL))
    assert engine.tasks[0].args == {"n": 1}


async def test_a_failing_task_is_tried_again_by_the_policy_and_says_so() -> None:
    calls = 0

    async def flaky(task: SubTask) -> int:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise ConnectionError("not yet")
        return calls

    policy = RetryPolicy(attempts=3, initial=0.001, maximum=0.001)
    engine = diamond(flaky, llm=Llm([{"id": "a", "type": "work"}]), retry=policy)
    events = await heard(engine.run(GOAL))
    retries = named(events, T.TASK_RETRYING)
    assert [(one["task_id"], one["error"]) for one in retries] == [("a", "not yet")] * 2
    assert len(named(events, T.TASK_STARTED)) == 1
    assert results_of(engine) == {"a": 3}


async def test_one_of_several_that_fails_breaks_the_others_off() -> None:
    gate = Gate()

    async def work(task: SubTask) -> Any:
        if task.id == "bad":
            await gate.begun.wait()
            raise RuntimeError("no")
        return await gate.work(task)

    llm = Llm([{"id": "slow", "type": "work"}, {"id": "bad", "type": "work"}])
    engine = diamond(work, llm=llm, max_parallel=2)
    events = await heard(engine.run(GOAL))
    assert named(events, T.ENGINE_ERROR) == [
        {"error": "no", "phase": "executing", "task_id": "bad"}
    ]
    assert gate.running == 0
    await no_task_but_mine()


class Slow:
    """Takes as long as the test wants, in any phase."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.gate = Gate()

    async def _pass(self, phase: str) -> None:
        if phase == self.phase and not self.gate.through.is_set():
            await self.gate.work(SubTask(phase))

    async def get_context_async(self, user_input: str) -> Any:
        await self._pass("context_fetching")
        return {}

    async def decompose_goal(self, text: str) -> Any:
        await self._pass("decomposing")
        return DIAMOND

    async def work(self, task: SubTask, results: dict[str, Any]) -> Any:
        await self._pass("executing")
        return {"did": task.id, "with": sorted(results)}

    def engine(self) -> ConversationEngine:
        return ConversationEngine(self, self, executors={"work": self.work}, retry=ONCE)


@pytest.mark.parametrize("phase", ["context_fetching", "decomposing", "executing"])
async def test_cancel_ends_the_turn_and_its_work_in_each_phase(phase: str) -> None:
    slow = Slow(phase)
    engine = slow.engine()
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await slow.gate.begun.wait()
    assert await engine.cancel() is True
    assert engine.state is EngineState.ERROR
    events = await consumer
    assert dict(events[-1].data) == {"error": "cancelled", "phase": phase}
    assert slow.gate.running == 0
    assert await engine.cancel() is False
    await no_task_but_mine()


async def test_cancel_while_paused_passes_executing() -> None:
    engine = diamond()
    events = []
    async for event in engine.run(GOAL):
        events.append(event)
        if event.event_type is T.TASK_STARTED:
            engine.pause()
        if event.event_type is T.ENGINE_PAUSED:
            assert await engine.cancel()
    changes = [(one["from"], one["to"]) for one in named(events, T.STATE_CHANGED)]
    assert changes[-3:] == [
        ("executing", "paused"),
        ("paused", "executing"),
        ("executing", "error"),
    ]
    assert named(events, T.ENGINE_ERROR) == [{"error": "cancelled", "phase": "executing"}]


@pytest.mark.parametrize("phase", ["context_fetching", "decomposing", "executing"])
async def test_reset_ends_the_work_in_each_phase_and_the_consumer_with_it(phase: str) -> None:
    slow = Slow(phase)
    engine = slow.engine()
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await slow.gate.begun.wait()
    engine.reset()
    assert engine.state is EngineState.IDLE
    events = await consumer
    assert "engine_error" not in kinds(events)
    assert slow.gate.running == 0
    await no_task_but_mine()
    slow.gate.through.set()
    assert kinds(await heard(engine.run("another goal")))[-1] == "engine_completed"


@pytest.mark.parametrize("count", range(1, 19))
async def test_reset_between_any_two_events_makes_room_for_a_good_run(count: int) -> None:
    """The former consumer rests, and neither closes its generator nor asks for more."""
    engine = diamond()
    run = engine.run(GOAL)
    for _ in range(count):
        await anext(run)
    engine.reset()
    assert (engine.state, engine.tasks) == (EngineState.IDLE, [])
    assert kinds(await heard(engine.run("another goal")))[-1] == "engine_completed"
    assert results_of(engine) == RESULTS
    with pytest.raises(StopAsyncIteration):
        await anext(run)
    await no_task_but_mine()


async def test_reset_ends_a_task_although_nobody_asks_for_another_event() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                break
        await gate.begun.wait()
        engine.reset()
        await until(lambda: not gate.running)
        assert [event async for event in run] == []


async def test_a_task_may_pause_reset_or_cancel_its_own_engine() -> None:
    for act in ("pause", "reset", "cancel"):
        engine: ConversationEngine

        async def work(task: SubTask, act: str = act) -> None:
            told = getattr(engine, act)()  # noqa: B023
            if act == "cancel":
                await told
            await asyncio.sleep(0 if act == "pause" else PATIENCE)

        engine = diamond(work)
        async with asyncio.timeout(PATIENCE):
            async for event in engine.run(GOAL):
                if event.event_type is T.ENGINE_PAUSED:
                    engine.resume()
        expected = {"pause": "completed", "reset": "idle", "cancel": "error"}
        assert engine.state == expected[act]
