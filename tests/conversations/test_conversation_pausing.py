"""Pause and resume: in the middle of a task, anywhere else, and a thousand times at random."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from contextlib import aclosing

import pytest
from conversation_scenes import (
    GOAL,
    PATIENCE,
    RESULTS,
    Gate,
    Ledger,
    diamond,
    heard,
    kinds,
    named,
    results_of,
    until,
)

from holdfast.conversations.engine import ConversationEngine, EngineEvent, EngineState
from holdfast.conversations.engine import EngineEventType as T
from holdfast.model.conversation import SubTask


async def test_a_pause_in_the_middle_of_a_task_is_told_while_the_consumer_waits() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    events: list[EngineEvent] = []
    paused, resumed = asyncio.Event(), asyncio.Event()

    async def consume() -> None:
        async for event in engine.run(GOAL):
            events.append(event)
            if event.event_type is T.ENGINE_PAUSED:
                paused.set()
            if event.event_type is T.ENGINE_RESUMED:
                resumed.set()

    async with asyncio.timeout(PATIENCE):
        consumer = asyncio.create_task(consume())
        await gate.begun.wait()
        assert engine.pause() is True
        await paused.wait()
        assert named(events, T.ENGINE_PAUSED) == [{"progress": 0.0}]
        gate.through.set()
        await until(lambda: not gate.running)
        for _ in range(50):
            await asyncio.sleep(0)
        assert gate.started == ["load"], "no new task starts while it is paused"
        assert kinds(events)[-1] == "engine_paused", "what has finished is told after the resume"
        assert (engine.state, engine.current_progress) == (EngineState.PAUSED, 0.0)
        assert engine.resume() is True
        await resumed.wait()
        await consumer
    after = kinds(events)[kinds(events).index("engine_resumed") :]
    assert after[:2] == ["engine_resumed", "task_completed"]
    assert named(events, T.ENGINE_RESUMED) == [{"progress": 0.0}]
    assert engine.state is EngineState.COMPLETED


async def test_a_pause_between_two_events_is_recorded_without_the_consumer() -> None:
    """An answer or a retry must not start anything once pause() has said True."""
    gate = Gate()
    engine = diamond(gate.work)
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                break
        assert engine.pause()
        await until(lambda: not engine._pending)
        assert engine.state is EngineState.PAUSED
        assert engine._latest.phase is EngineState.PAUSED
        assert engine.resume()
        gate.through.set()
        rest = [event async for event in run]
    assert kinds(rest)[:4] == ["state_changed", "engine_paused", "state_changed", "engine_resumed"]
    assert engine.state is EngineState.COMPLETED


async def test_a_failure_while_paused_is_told_after_the_resume() -> None:
    gate = Gate()

    async def fails(task: SubTask) -> None:
        await gate.work(task)
        raise RuntimeError("no such file")

    engine = diamond(fails)
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                assert engine.pause()
            if event.event_type is T.ENGINE_PAUSED:
                break
        gate.through.set()
        await until(lambda: not gate.running)
        for _ in range(20):
            await asyncio.sleep(0)
        assert engine.state is EngineState.PAUSED
        assert engine.resume()
        rest = [event async for event in run]
    assert kinds(rest)[:2] == ["state_changed", "engine_resumed"]
    assert named(rest, T.ENGINE_ERROR)[0]["error"] == "no such file"


async def test_what_another_thread_wishes_is_heard_too() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    events: list[EngineEvent] = []

    async def consume() -> None:
        async for event in engine.run(GOAL):
            events.append(event)
            if event.event_type is T.ENGINE_PAUSED:
                gate.through.set()
                threading.Thread(target=engine.resume).start()

    async with asyncio.timeout(PATIENCE):
        consumer = asyncio.create_task(consume())
        await gate.begun.wait()
        thread = threading.Thread(target=engine.pause)
        thread.start()
        await consumer
        thread.join()
    assert {"engine_paused", "engine_resumed"} <= set(kinds(events))
    assert engine.state is EngineState.COMPLETED


async def fiddle(engine: ConversationEngine, dice: random.Random, times: int) -> int:
    """Pause and resume at random moments; how many pauses were granted."""
    paused = 0
    for _ in range(times):
        for _ in range(dice.randrange(4)):
            await asyncio.sleep(0)
        if engine.pause():
            paused += 1
        for _ in range(dice.randrange(4)):
            await asyncio.sleep(0)
        engine.resume()
    return paused


def many(count: int) -> list[dict[str, object]]:
    return [
        {"id": f"n{one}", "type": "work", "dependencies": [f"n{one - 1}"] if one else []}
        for one in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("max_parallel", [1, 3])
async def test_a_thousand_pauses_at_random_moments_change_nothing(
    seed: int, max_parallel: int
) -> None:
    """A consumer takes events as they come while somebody else fiddles."""
    ledger = Ledger()
    engine = diamond(ledger.work, max_parallel=max_parallel)
    engine.llm.tasks = many(60)  # type: ignore[union-attr]
    dice = random.Random(seed)

    async def fiddle_until_done() -> int:
        paused = await fiddle(engine, dice, 1_000)
        if engine.state is EngineState.PAUSED:
            engine.resume()
        return paused

    async with asyncio.timeout(PATIENCE * 4):
        fiddling = asyncio.create_task(fiddle_until_done())
        events = [event async for event in engine.run(GOAL)]
        paused = await fiddling
    assert paused > 20
    assert engine.state is EngineState.COMPLETED
    assert ledger.counts == Counter(f"n{one}" for one in range(60))
    done = [one["task_id"] for one in named(events, T.TASK_COMPLETED)]
    assert done == [f"n{one}" for one in range(60)]
    told = [one for one in kinds(events) if one in ("engine_paused", "engine_resumed")]
    assert told == ["engine_paused", "engine_resumed"] * (len(told) // 2), "never out of turn"


async def test_a_thousand_pauses_without_a_consumer_in_between_change_nothing() -> None:
    ledger, dice = Ledger(), random.Random(7)
    engine = diamond(ledger.work)
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            if event.event_type in (T.TASK_STARTED, T.TASK_COMPLETED, T.TASK_SCHEDULED):
                await fiddle(engine, dice, 100)
    assert engine.state is EngineState.COMPLETED
    assert results_of(engine) == RESULTS
    assert set(ledger.counts.values()) == {1}


async def test_a_pause_that_is_taken_back_at_once_has_never_been() -> None:
    engine = diamond()
    events = []
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            events.append(event)
            if engine.pause():
                assert engine.resume()
    assert "engine_paused" not in kinds(events)
    assert engine.state is EngineState.COMPLETED


async def test_pause_resume_and_cancel_say_false_where_there_is_nothing_to_do() -> None:
    engine = diamond()
    assert (engine.pause(), engine.resume(), await engine.cancel()) == (False, False, False)
    await heard(engine.run(GOAL))
    assert (engine.pause(), engine.resume(), await engine.cancel()) == (False, False, False)


async def test_a_thread_that_takes_its_pause_back_is_never_overtaken_by_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread is held up between its look at the wishes and its change of them."""
    gate = Gate()
    engine = diamond(gate.work)
    looked, said = threading.Event(), []
    look = engine._pending._has_not_held

    def held_up() -> bool:
        found = look()
        looked.set()
        time.sleep(0.05)
        return found

    monkeypatch.setattr(engine._pending, "_has_not_held", held_up)

    def fiddler() -> None:
        said.extend([engine.pause(), engine.resume()])

    thread = threading.Thread(target=fiddler)
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    thread.start()
    looked.wait(PATIENCE)
    gate.through.set()
    events = await consumer
    thread.join()
    assert said == [True, True]
    assert kinds(events)[-1] == "engine_completed"
    assert kinds(events).count("engine_paused") == kinds(events).count("engine_resumed")


async def test_threads_that_pause_and_resume_as_they_like_change_nothing() -> None:
    ledger = Ledger()
    engine = diamond(ledger.work)
    engine.llm.tasks = many(30)  # type: ignore[union-attr]
    ended = threading.Event()

    def fiddler() -> None:
        while not ended.is_set():
            engine.pause()
            engine.resume()

    threads = [threading.Thread(target=fiddler) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        await heard(engine.run(GOAL))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert engine.state is EngineState.COMPLETED
    assert ledger.counts == Counter(f"n{one}" for one in range(30))
