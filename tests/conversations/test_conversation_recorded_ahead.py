"""The journal may be ahead of what a consumer has heard, by events that do nothing in the world.

The consumer sees the conversation as far as it has heard of it, and nothing is lost between two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest
from conversation_scenes import (
    GOAL,
    ORDER,
    PATIENCE,
    Ledger,
    Llm,
    diamond,
    heard,
    kinds,
    named,
    results_of,
    until,
)

from holdfast.conversations.engine import ConversationEngine, EngineEvent, EngineState, SubTask
from holdfast.conversations.engine import EngineEventType as T
from holdfast.errors import NotAllowed

Stop = Callable[[EngineEvent], bool]

WHOLE = [
    *["state_changed"] * 2,
    "context_received",
    "state_changed",
    "task_decomposed",
    "state_changed",
    *["task_scheduled"] * 4,
    "state_changed",
    *["task_started", "task_completed"] * 4,
    "state_changed",
    "engine_completed",
]


def enters(phase: str) -> Stop:
    return lambda event: event.data.get("to") == phase


def last_task_done(event: EngineEvent) -> bool:
    return event.data.get("progress") == 1.0


async def up_to(engine: ConversationEngine, stop: Stop) -> list[EngineEvent]:
    """What a consumer hears who leaves after that event."""
    events = []
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            events.append(event)
            if stop(event):
                return events
    raise AssertionError("it never happened")


@pytest.mark.parametrize("number", range(len(WHOLE) - 1))
async def test_whoever_leaves_after_any_event_hears_the_rest_of_what_was_recorded(
    number: int,
) -> None:
    """And what was under way is begun again."""
    ledger, seen = Ledger(), iter(range(len(WHOLE)))
    engine = diamond(ledger.work)
    first = await up_to(engine, lambda _: next(seen) == number)
    rest = kinds(await heard(engine.run()))
    again = kinds(first)[-1:] == rest[:1] == ["task_started"]
    assert kinds(first) + rest[again:] == WHOLE
    assert ledger.counts.total() <= len(ORDER) + again


async def test_a_pause_while_tasks_are_scheduled_holds_the_first_of_them() -> None:
    ledger = Ledger()
    engine = diamond(ledger.work)
    events: list[EngineEvent] = []
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            events.append(event)
            if enters("scheduling")(event):
                assert engine.pause()
                await until(lambda: not engine._pending)
            if event.event_type is T.TASK_SCHEDULED:
                assert engine.state is EngineState.PAUSED, "from the moment it was wished"
            if event.event_type is T.ENGINE_PAUSED:
                break
        assert kinds(events)[-3:] == ["state_changed", "state_changed", "engine_paused"]
        assert ledger.done == []
        assert engine.resume()
        rest = [event async for event in run]
    assert kinds(rest)[:3] == ["state_changed", "engine_resumed", "task_started"]
    assert ledger.done == ORDER


@pytest.mark.parametrize("when_possible", [True, False])
async def test_a_pause_while_the_tasks_are_told_is_kept_where_that_is_wished(
    when_possible: bool,
) -> None:
    ledger = Ledger()
    engine = diamond(ledger.work)
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_DECOMPOSED:
                assert engine.state is EngineState.DECOMPOSING
                assert engine.pause(when_possible=when_possible) is when_possible
            if event.event_type is T.ENGINE_PAUSED:
                break
    assert (ledger.done == []) is when_possible


async def test_what_is_over_can_be_neither_paused_nor_cancelled() -> None:
    """The end is on disk with the last result; the consumer hears of it event by event."""
    engine = diamond()
    events = []
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            events.append(event)
            if last_task_done(event):
                assert (engine.state, engine.completed_tasks) == (EngineState.EXECUTING, 4)
                assert (engine.pause(), await engine.cancel()) == (False, False)
                assert engine.create_snapshot()["state"] == "executing"
    assert kinds(events) == WHOLE


@pytest.mark.parametrize("goal", [None, GOAL])
async def test_whoever_comes_back_for_the_end_hears_it_and_begins_nothing(goal: str | None) -> None:
    ledger = Ledger()
    engine = diamond(ledger.work)
    await up_to(engine, last_task_done)
    assert kinds(await heard(engine.run(goal))) == ["state_changed", "engine_completed"]
    assert ledger.done == ORDER


async def test_another_goal_is_begun_when_the_end_was_heard() -> None:
    engine = diamond()
    await up_to(engine, last_task_done)
    events = await heard(engine.run("something else"))
    assert kinds(events) == [*WHOLE[-2:], "state_changed", *WHOLE]
    assert engine.user_input == "something else"


async def test_a_reset_takes_back_what_was_not_heard() -> None:
    engine = diamond()
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if enters("scheduling")(event):
                engine.reset()
                assert (engine.state, engine.tasks) == (EngineState.IDLE, [])
            assert event.event_type is not T.TASK_SCHEDULED
    assert kinds(await heard(engine.run(GOAL))) == WHOLE


async def test_a_cancel_is_told_after_what_was_recorded_before_it() -> None:
    engine = diamond()
    events = []
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            events.append(event)
            if enters("receiving")(event):
                assert await engine.cancel()
                assert engine.state is EngineState.ERROR
    *before, phase, last = [one["to"] for one in named(events, T.STATE_CHANGED)]
    assert (before, last) == (["receiving", "context_fetching"][: len(before)], "error")
    assert named(events, T.ENGINE_ERROR) == [{"error": "cancelled", "phase": phase}]


async def test_the_reason_is_known_as_soon_as_the_error_is() -> None:
    async def fails(task: object) -> None:
        raise RuntimeError("no such file")

    engine = diamond(fails)
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            if enters("error")(event):
                assert (engine.state, engine.error) == (EngineState.ERROR, "no such file")
    with pytest.raises(NotAllowed, match="the last turn failed"):
        await heard(engine.run())


async def test_whoever_leaves_between_the_failure_and_its_event_hears_that_next() -> None:
    async def fails(task: object) -> None:
        raise RuntimeError("no such file")

    engine = diamond(fails)
    await up_to(engine, enters("error"))
    assert (engine.state, engine.error) == (EngineState.ERROR, "no such file")
    [told] = await heard(engine.run(GOAL))
    assert (told.event_type, told.data["error"]) == (T.ENGINE_ERROR, "no such file")
    with pytest.raises(NotAllowed, match="the last turn failed"):
        await heard(engine.run())


async def test_a_failure_recorded_behind_a_result_is_heard_by_the_next_consumer() -> None:
    told = asyncio.Event()

    async def work(task: SubTask) -> str:
        await told.wait()
        if task.id == "b":
            await until(lambda: bool(engine._latest.untold))
            raise RuntimeError("no such file")
        return "done"

    pair = [{"id": one, "type": "work"} for one in "ab"]
    engine = diamond(work, llm=Llm(pair), max_parallel=2)
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED and event.data["task_id"] == "b":
                told.set()
                await until(lambda: len(engine._latest.untold) == 2)
            if event.event_type is T.TASK_COMPLETED:
                break
    rest = await heard(engine.run())
    assert kinds(rest) == ["state_changed", "engine_error"]
    assert named(rest, T.ENGINE_ERROR)[0]["task_id"] == "b"
    assert results_of(engine)["a"] == "done"


async def test_an_open_question_is_shown_once_to_whoever_comes_back_for_it() -> None:
    engine = diamond(confirm_tasks=True)
    await up_to(engine, lambda event: event.event_type is T.TASK_DECOMPOSED)
    asked = []
    async with asyncio.timeout(PATIENCE), aclosing(engine.run()) as run:
        async for event in run:
            if event.event_type is T.INTERACTION:
                asked.append(event)
                await engine.answer(str(event.data["requestId"]), option_id="run")
    assert len(asked) == 1
    assert engine.state is EngineState.COMPLETED
