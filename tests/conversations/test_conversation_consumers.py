"""Consumers come and go: however one leaves, no work goes on, and the turn can be resumed."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
import textwrap
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from conversation_scenes import (
    GOAL,
    PATIENCE,
    RESULTS,
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

from holdfast import Holdfast
from holdfast.conversations.engine import ConversationEngine, EngineState
from holdfast.conversations.engine import EngineEventType as T
from holdfast.errors import (
    CallerError,
    InvalidAnswer,
    InvalidValue,
    NotAllowed,
    NotFound,
    OperatorError,
)
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model.conversation import SubTask


async def into_the_first_task(engine: ConversationEngine, gate: Gate) -> None:
    """Consume until a task is under way, and then walk away."""
    async for event in engine.run(GOAL):
        if event.event_type is T.TASK_STARTED:
            await gate.begun.wait()
            break


async def test_one_that_breaks_out_of_the_loop_leaves_nothing_running() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    async with asyncio.timeout(PATIENCE):
        await into_the_first_task(engine, gate)
        await until(lambda: engine._consumer is None)
    assert gate.running == 0
    await no_task_but_mine()
    gate.through.set()
    assert kinds(await heard(engine.run()))[-1] == "engine_completed"


async def test_after_a_break_the_next_run_may_follow_at_once() -> None:
    """The loop closes what was forgotten in its own time; the next consumer waits for that."""
    gate = Gate()
    engine = diamond(gate.work)
    await into_the_first_task(engine, gate)
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await until(lambda: len(gate.started) == 2)
    gate.through.set()
    assert kinds(await consumer)[-1] == "engine_completed"
    assert gate.started == ["load", "load", "draw", "sum", "report"], "only what was broken off"


async def test_one_that_closes_the_generator_leaves_nothing_running() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                await gate.begun.wait()
                break
        assert gate.running == 1
    assert gate.running == 0
    await no_task_but_mine()


async def test_one_that_is_cancelled_leaves_nothing_running() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert gate.running == 0
    await no_task_but_mine()


async def test_one_that_is_cancelled_again_and_again_leaves_in_order_all_the_same(
    tmp_path: Path,
) -> None:
    """Some frameworks cancel at every await until the task is gone."""
    gate, file = Gate(), tmp_path / "holdfast.db"
    options: dict[str, Any] = {"llm": Llm(), "executors": {"work": gate.work}}
    engine = await ConversationEngine.open(SqliteJournal(file), "sales", **options)
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    while not consumer.done():
        consumer.cancel()
        await asyncio.sleep(0)
    assert consumer.cancelled()
    assert gate.running == 0
    await no_task_but_mine()
    gate.through.set()
    again = await ConversationEngine.open(SqliteJournal(file), "sales", **options)
    assert again._latest.in_flight == 0, "that the work was broken off is on disk"
    assert kinds(await heard(again.run()))[-1] == "engine_completed"


async def test_one_that_never_began_is_no_consumer() -> None:
    engine = diamond()
    never = engine.run(GOAL)
    assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_completed"
    del never
    gc.collect()
    await no_task_but_mine()


async def test_a_forgotten_generator_in_a_circle_is_collected_without_a_word() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    circle: list[Any] = [engine.run(GOAL)]
    circle.append(circle)
    async for event in circle[0]:
        if event.event_type is T.TASK_STARTED:
            break
    del circle
    gc.collect()
    async with asyncio.timeout(PATIENCE):
        await until(lambda: engine._consumer is None)
    assert gate.running == 0


def test_a_program_that_ends_after_a_break_says_nothing(tmp_path: Path) -> None:
    script = """
        import asyncio
        from holdfast.conversations.engine import ConversationEngine
        async def slow(task):
            await asyncio.sleep(3600)
        class Llm:
            async def decompose_goal(self, text):
                return [{"id": "a", "type": "slow"}]
        async def main():
            asyncio.get_running_loop().slow_callback_duration = 3600
            engine = ConversationEngine(llm=Llm(), executors={"slow": slow})
            async for event in engine.run("x"):
                if event.event_type == "task_started":
                    break
        asyncio.run(main())
        async def forgets():
            asyncio.get_running_loop().slow_callback_duration = 3600
            engine = ConversationEngine(llm=Llm(), executors={"slow": slow})
            run = engine.run("x")
            for _ in range(9):
                await run.__anext__()
            return run
        asyncio.run(forgets())
    """
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_one_engine_serves_one_event_loop_after_the_other() -> None:
    engine = diamond()

    async def pause_and_wait() -> None:
        async with aclosing(engine.run(GOAL)) as run:
            async for event in run:
                if event.event_type is T.TASK_STARTED:
                    assert engine.pause()
                if event.event_type is T.ENGINE_PAUSED:
                    return

    async def go_on() -> None:
        consumer = asyncio.create_task(heard(engine.run()))
        await until(lambda: engine._session is not None)
        assert engine.resume()
        await consumer

    asyncio.run(pause_and_wait())
    assert engine.state is EngineState.PAUSED
    asyncio.run(go_on())
    assert results_of(engine) == RESULTS


async def test_two_consumers_are_refused_and_the_first_is_not_disturbed() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    first = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    with pytest.raises(NotAllowed, match="has a consumer already"):
        await anext(engine.run(GOAL))
    with pytest.raises(NotAllowed, match="cannot be replaced"):
        engine.restore_from_snapshot(engine.create_snapshot())
    gate.through.set()
    assert kinds(await first)[-1] == "engine_completed"


async def test_two_engines_of_one_conversation_are_refused_too() -> None:
    async with Holdfast.in_memory() as app:
        gate = Gate()
        one = await ConversationEngine.open(app, "sales", llm=Llm(), executors={"work": gate.work})
        other = await ConversationEngine.open(app, "sales")
        first = asyncio.create_task(heard(one.run(GOAL)))
        await gate.begun.wait()
        with pytest.raises(NotAllowed, match="another engine consumes sales"):
            await anext(other.run(GOAL))
        gate.through.set()
        assert kinds(await first)[-1] == "engine_completed"


async def test_engines_of_one_application_are_conversations_of_their_own() -> None:
    async with Holdfast.in_memory() as app:
        engines = [ConversationEngine(app=app) for _ in range(2)]
        await asyncio.gather(*(heard(one.run(f"goal {n}")) for n, one in enumerate(engines)))
        assert {one.id for one in engines} == {"conv_000001", "conv_000002"}
        assert {one.user_input for one in engines} == {"goal 0", "goal 1"}


async def test_another_goal_while_one_is_under_way_is_refused() -> None:
    gate = Gate()
    engine = diamond(gate.work)
    await into_the_first_task(engine, gate)
    with pytest.raises(NotAllowed, match=r"still at .*reset\(\) ends it"):
        await heard(engine.run("something else"))
    gate.through.set()
    assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_completed"


async def test_a_run_after_completed_is_a_new_turn_that_knows_the_one_before() -> None:
    llm = Llm()
    engine = diamond(llm=llm)
    await heard(engine.run(GOAL))
    events = await heard(engine.run("and now?"))
    assert [(one.data["from"], one.data["to"]) for one in events[:2]] == [
        ("completed", "idle"),
        ("idle", "receiving"),
    ]
    assert llm.heard[0]["history"] == ()
    [said] = llm.heard[1]["history"]
    assert said == {"text": GOAL, "results": RESULTS}
    assert llm.heard[1]["context"]["knowledge"] == ["sales.csv"]
    assert (engine.completed_tasks, engine.total_tasks) == (4, 4)


@pytest.mark.parametrize("nothing", ["", "  \n"])
async def test_an_empty_input_is_refused_and_changes_nothing(nothing: str) -> None:
    engine = diamond()
    with pytest.raises(InvalidAnswer, match="needs words"):
        await heard(engine.run(nothing))
    assert engine.state is EngineState.IDLE
    assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_completed"


async def test_inputs_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidAnswer, match="a goal is text, not int"):
        await heard(diamond().run(7))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="lone surrogate"):
        await heard(diamond().run("half \ud83d"))
    with pytest.raises(NotAllowed, match="nothing left to go on with"):
        await heard(diamond().run())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_parallel": 0}, "max_parallel must be a whole number, 1 or more, not 0"),
        ({"max_parallel": "2"}, "not '2'"),
        ({"max_parallel": 1.5}, "not 1.5"),
        ({"max_parallel": True}, "not True"),
        ({"on_failure": "nope"}, "on_failure is one of error, ask, not 'nope'"),
        ({"once": "work"}, "once is a list of task types, not 'work'"),
        ({"once": None}, "once is a list of task types, not None"),
        ({"once": ["typo"]}, "once names 'typo', for which executors has nothing"),
        ({"once": [["work"]]}, "for which executors has nothing"),
    ],
)
async def test_options_that_cannot_be_are_refused_at_once(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CallerError, match=re.escape(reason)):
        diamond(**options)


async def test_a_durable_conversation_is_taken_up_by_the_same_call(tmp_path: Path) -> None:
    ledger, gate = Ledger(), Gate()

    async def work(task: SubTask, results: dict[str, Any]) -> Any:
        if task.id == "sum" and not gate.through.is_set():
            return await gate.work(task)
        return await ledger.work(task, results)

    async def opened() -> ConversationEngine:
        journal = SqliteJournal(tmp_path / "holdfast.db")
        return await ConversationEngine.open(journal, "sales", llm=Llm(), executors={"work": work})

    engine = await opened()
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    consumer.cancel()
    await asyncio.gather(consumer, return_exceptions=True)
    gate.through.set()
    again = await opened()
    assert (again.state, again.completed_tasks) == (EngineState.EXECUTING, 2)
    events = await heard(again.run(GOAL))
    assert [one["task_id"] for one in named(events, T.TASK_COMPLETED)] == ["sum", "report"]
    assert results_of(again) == RESULTS
    assert set(ledger.counts.values()) == {1}


async def test_a_wish_made_just_before_leaving_is_on_disk(tmp_path: Path) -> None:
    gate = Gate()
    journal = SqliteJournal(tmp_path / "holdfast.db")
    options: dict[str, Any] = {"llm": Llm(), "executors": {"work": gate.work}}
    engine = await ConversationEngine.open(journal, "sales", **options)
    async with aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                engine.pause()
                break
    again = await ConversationEngine.open(SqliteJournal(tmp_path / "holdfast.db"), "sales")
    assert again.state is EngineState.PAUSED


async def test_a_consumer_whose_application_closes_is_told_and_does_not_hang() -> None:
    gate = Gate()
    app = Holdfast.in_memory()
    async with app:
        engine = await ConversationEngine.open(
            app, "sales", llm=Llm(), executors={"work": gate.work}
        )
        async with aclosing(engine.run(GOAL)) as run:
            async for event in run:
                if event.event_type is T.TASK_STARTED:
                    assert engine.pause()
                if event.event_type is T.ENGINE_PAUSED:
                    break
            gate.through.set()
            waiting = asyncio.ensure_future(anext(run))
            await until(lambda: not gate.running)
            await app.engine.close()
            with pytest.raises(OperatorError, match="the application was closed"):
                async with asyncio.timeout(PATIENCE):
                    await waiting


async def test_a_generator_that_outlives_its_application_closes_in_silence() -> None:
    gate = Gate()
    async with Holdfast.in_memory() as app:
        engine = await ConversationEngine.open(
            app, "sales", llm=Llm(), executors={"work": gate.work}
        )
        run = engine.run(GOAL)
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                break
        gate.through.set()
    await run.aclose()
    assert gate.running == 0
    await no_task_but_mine()


async def test_an_id_that_is_no_conversation_is_refused() -> None:
    async with Holdfast.in_memory() as app:
        app.agent("clerk")
        await app.sessions.open("clerk", session_id="talk")
        with pytest.raises(CallerError, match="talk is not a conversation"):
            await ConversationEngine.open(app, "talk")
        for bad in ("", "a.b", "inst_000007", "x" * 65):
            with pytest.raises(InvalidAnswer, match="no id for a new conversation"):
                await ConversationEngine.open(app, bad)


async def test_a_conversation_is_pinned_to_the_settings_it_was_begun_with() -> None:
    journal, gate = MemoryJournal(), Gate()
    tasks = [{"id": one, "type": "work"} for one in "abc"]
    options: dict[str, Any] = {"llm": Llm(tasks), "executors": {"work": gate.work}}
    engine = await ConversationEngine.open(journal, "sales", max_parallel=2, **options)
    await into_the_first_task(engine, gate)
    await until(lambda: engine._consumer is None)
    gate.started.clear()
    again = await ConversationEngine.open(journal, "sales", max_parallel=9, **options)
    consumer = asyncio.create_task(heard(again.run()))
    await until(lambda: gate.running == 2)
    for _ in range(100):
        await asyncio.sleep(0)
    assert gate.started == ["a", "b"], "two at a time, as it was begun"
    gate.through.set()
    assert kinds(await consumer)[-1] == "engine_completed"


async def test_of_two_engines_that_come_at_once_to_a_shared_conversation_one_is_refused(
    database: str,
) -> None:
    async with Holdfast(database=database, drives=False) as app:
        options: dict[str, Any] = {"llm": Llm(), "executors": {"work": Ledger().work}}
        begun = await ConversationEngine.open(app, "sales", **options)
        assert kinds(await heard(begun.run(GOAL)))[-1] == "engine_completed"
        engines = [await ConversationEngine.open(app, "sales", **options) for _ in range(2)]
        came = (heard(one.run(GOAL)) for one in engines)
        outcomes = await asyncio.gather(*came, return_exceptions=True)
        refused = [str(one) for one in outcomes if isinstance(one, BaseException)]
        assert refused == ["another engine consumes sales already"]


@pytest.mark.parametrize("durable", [False, True])
async def test_whoever_only_looks_at_a_journal_does_not_close_it_under_the_consumer(
    durable: bool, tmp_path: Path
) -> None:
    journal = SqliteJournal(tmp_path / "holdfast.db") if durable else MemoryJournal()
    gate = Gate()
    options: dict[str, Any] = {"llm": Llm(), "executors": {"work": gate.work}}
    engine = await ConversationEngine.open(journal, "sales", **options)
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    looker = await ConversationEngine.open(journal, "sales", **options)
    assert looker.state is EngineState.EXECUTING
    with pytest.raises(NotAllowed, match="another engine consumes sales"):
        await anext(looker.run(GOAL))
    gate.through.set()
    assert kinds(await consumer)[-1] == "engine_completed"
    assert gate.started == ["load", "draw", "sum", "report"]
    await no_task_but_mine()


async def test_a_consumer_whose_turn_is_reset_does_none_of_what_is_restored_then() -> None:
    snapshot: dict[str, Any] = {}
    source = diamond()
    async for event in source.run(GOAL):
        if event.event_type is T.TASK_COMPLETED:
            snapshot = source.create_snapshot()
            break
    gate = Gate()
    engine = diamond(gate.work, llm=Llm([{"id": "other", "type": "work"}]))
    first = asyncio.create_task(heard(engine.run("something else")))
    await gate.begun.wait()
    engine.reset()
    engine.restore_from_snapshot(snapshot)
    gate.through.set()
    assert kinds(await first)[-1] == "task_started"
    assert gate.started == ["other"]
    assert (engine.state, engine.completed_tasks) == (EngineState.EXECUTING, 1)
    assert kinds(await heard(engine.run()))[-1] == "engine_completed"
    assert gate.started == ["other", "draw", "sum", "report"]


async def test_a_cancel_between_two_consumers_is_told_to_the_next_one_once() -> None:
    engine = diamond()
    async with aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_COMPLETED:
                break
    assert await engine.cancel()
    events = await heard(engine.run())
    assert kinds(events) == ["state_changed", "engine_error"]
    assert events[-1].data["error"] == "cancelled"
    with pytest.raises(
        NotAllowed, match=r"the last turn failed \(cancelled\); resume\(failed=…\) goes on"
    ):
        await heard(engine.run())


@pytest.mark.parametrize("consumed", [True, False])
async def test_an_engine_by_itself_is_asked_and_answered(consumed: bool) -> None:
    tries: list[str] = []

    async def shaky(task: SubTask) -> str:
        tries.append(task.id)
        if len(tries) == 1:
            raise ValueError("bad day")
        return "well"

    engine = diamond(shaky, llm=Llm([{"id": "a", "type": "work"}]), on_failure="ask")
    with pytest.raises(NotFound, match="has not asked"):
        await engine.answer("nobody")
    question = ""
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.INTERACTION:
                question = str(event.data["requestId"])
                if not consumed:
                    break
                await engine.answer(question, option_id="run_again", by="will.zhang")
    if not consumed:
        await engine.answer(question, option_id="run_again")
        assert kinds(await heard(engine.run()))[-1] == "engine_completed"
    assert results_of(engine) == {"a": "well"}
    with pytest.raises(NotFound, match=r"has not asked 'another\.q1'"):
        await engine.answer("another.q1", option_id="run_again")


async def test_a_task_never_runs_in_two_threads_at_once() -> None:
    """Nobody can break a thread off, so the next attempt waits for the former one."""
    begun, through = threading.Event(), threading.Event()
    running: list[str] = []
    most: list[int] = []

    def blocks(task: SubTask) -> str:
        running.append(task.id)
        most.append(len(running))
        begun.set()
        through.wait(PATIENCE)
        running.remove(task.id)
        return task.id

    engine = diamond(blocks, llm=Llm([{"id": "a", "type": "work"}]))
    async with aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                await asyncio.to_thread(begun.wait, PATIENCE)
                break
    again = asyncio.create_task(heard(engine.run()))
    await until(lambda: engine._latest.in_flight == 1)
    for _ in range(100):
        await asyncio.sleep(0)
    assert most == [1], "it waits"
    through.set()
    assert kinds(await again)[-1] == "engine_completed"
    assert most == [1, 1]
