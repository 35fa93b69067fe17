"""Tasks that name an application's tools, agents and plans, and people who are asked on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from conversation_scenes import GOAL, ONCE, PATIENCE, Gate, Llm, heard, kinds, named, results_of
from plan_texts import end, load, step

from holdfast import Holdfast
from holdfast.conversations.engine import ConversationEngine, EngineEvent, EngineState
from holdfast.conversations.engine import EngineEventType as T
from holdfast.errors import NotAllowed
from holdfast.model.conversation import SubTask
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel


def scout(seen: Seen) -> Entry:
    """An agent that pays when it is told to, and otherwise repeats what it was asked."""
    if seen.results:
        return "Paid."
    asked = seen.asked.partition("\n")[0]
    return say("", call("pay", amount=3)) if asked == "pay" else seen.asked


def office(home: Path, calls: list[Any]) -> Holdfast:
    app = Holdfast(home, model=ScriptedModel(scout))

    @app.tool(idempotent=True)
    async def look(city: str) -> dict[str, Any]:
        calls.append(("look", city))
        return {"sun": True}

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        calls.append(("pay", amount))
        return {"paid": amount}

    app.agent("scout", tools=["look", "pay"])
    load(
        app,
        step("L1", "001", "002", tool="look", args={"city": "Oslo"}),
        end("002"),
        plan_id="tour",
    )
    return app


@pytest.fixture
def calls() -> list[Any]:
    return []


@pytest.fixture
async def app(tmp_path: Path, calls: list[Any]) -> AsyncIterator[Holdfast]:
    async with office(tmp_path, calls) as app:
        yield app


def engine_of(app: Holdfast, tasks: list[dict[str, Any]], **options: Any) -> ConversationEngine:
    return ConversationEngine(llm=Llm(tasks), app=app, **options)


async def test_tools_agents_plans_and_callables_work_side_by_side(
    app: Holdfast, calls: list[Any]
) -> None:
    async def summarise(task: SubTask, results: dict[str, Any], goal: str) -> Any:
        return {"goal": goal, "from": sorted(results)}

    tasks: list[dict[str, Any]] = [
        {"id": "weather", "type": "look", "args": {"city": "Paris"}},
        {"id": "tour", "type": "tour", "dependencies": ["weather"]},
        {"id": "words", "type": "scout", "description": "Say it.", "dependencies": ["weather"]},
        {"id": "sum", "type": "summarise", "dependencies": ["tour", "words", "weather"]},
    ]
    engine = engine_of(app, tasks, executors={"summarise": summarise})
    events = await heard(engine.run(GOAL))
    assert kinds(events)[-1] == "engine_completed"
    for task in engine.tasks:
        cast(dict[str, Any], task.args)["mine"] = task.result["mine"] = True
    assert not any("mine" in {**task.args, **task.result} for task in engine.tasks)
    assert [task.route for task in engine.tasks] == ["tool", "plan", "agent", "callable"]
    results = results_of(engine)
    assert results["weather"] == {"sun": True}
    assert results["sum"] == {"goal": GOAL, "from": ["tour", "weather", "words"]}
    assert results["words"]["answer"].startswith("Say it.")
    assert '{"result":{"sun":true},"task":"weather"}' in results["words"]["answer"]
    assert calls == [("look", "Paris"), ("look", "Oslo")]
    rows = {row.run_id: row for row in await app.runs()}
    assert rows[engine.id].status == "done"
    assert {row.root_id for row in rows.values()} == {engine.id}, "a person sees one run"


PAYING: list[dict[str, Any]] = [
    {"id": "pay", "type": "pay", "args": {"amount": 5}, "priority": 0},
    {"id": "thank", "type": "note", "dependencies": ["pay"], "priority": 1},
    {"id": "free", "type": "note", "priority": 2},
]


async def note(task: SubTask) -> str:
    return f"noted {task.id}"


async def test_a_tool_that_needs_consent_asks_and_only_what_depends_on_it_waits(
    app: Holdfast, calls: list[Any]
) -> None:
    engine = engine_of(app, PAYING, executors={"note": note})
    events: list[EngineEvent] = []
    asked = ""
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            events.append(event)
            if event.event_type is T.INTERACTION:
                asked = str(event.data["requestId"])
                assert event.data["type"] == "TOOL_APPROVAL"
            if event.event_type is T.TASK_COMPLETED and event.data["task_id"] == "free":
                assert calls == []
                answered = await app.answer(asked, option_id="approve")
                assert answered.id == engine.id
    done = [one["task_id"] for one in named(events, T.TASK_COMPLETED)]
    assert done == ["free", "pay", "thank"]
    assert calls == [("pay", 5)]
    assert len(named(events, T.INTERACTION)) == 1


async def test_a_rejected_call_never_runs_and_ends_the_turn_with_its_reason(
    app: Holdfast, calls: list[Any]
) -> None:
    engine = engine_of(app, PAYING, executors={"note": note})
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            if event.event_type is T.INTERACTION:
                question = str(event.data["requestId"])
                await app.answer(question, option_id="reject", feedback="too much", by="will.zhang")
    assert engine.state is EngineState.ERROR
    assert "too much" in engine.error
    assert calls == []


async def until_asked(engine: ConversationEngine) -> str:
    async with asyncio.timeout(PATIENCE), aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.INTERACTION:
                return str(event.data["requestId"])
    raise AssertionError("nothing was asked")


@pytest.mark.parametrize("answered", ["before", "after"])
async def test_a_question_survives_the_restart_and_is_shown_to_who_comes_back(
    answered: str, tmp_path: Path, calls: list[Any]
) -> None:
    """Answered while nobody consumed the conversation, or only after it was taken up again."""
    options: dict[str, Any] = {"llm": Llm(PAYING), "executors": {"note": note}}
    async with office(tmp_path, calls) as app:
        question = await until_asked(await ConversationEngine.open(app, "buying", **options))
    async with office(tmp_path, calls) as app:
        engine = await ConversationEngine.open(app, "buying", **options)
        if answered == "before":
            await app.answer(question, option_id="approve")
            assert calls == [], "nobody consumes it, so nothing of it runs"
        shown = []
        async with asyncio.timeout(PATIENCE):
            async for event in engine.run(GOAL):
                if event.event_type is T.INTERACTION:
                    shown.append(event.data["requestId"])
                    await app.answer(question, option_id="approve")
    assert shown == ([question] if answered == "after" else [])
    assert engine.state is EngineState.COMPLETED
    assert calls == [("pay", 5)]


async def test_what_its_consumer_starts_when_it_comes_back_is_not_taken_for_lost(
    tmp_path: Path, calls: list[Any], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared journal it is driven from then on, and begins with what was consented to."""
    monkeypatch.setenv("HOLDFAST_DATABASE", database)
    options: dict[str, Any] = {"llm": Llm(PAYING), "executors": {"note": note}}
    async with office(tmp_path, calls) as app:
        question = await until_asked(await ConversationEngine.open(app, "buying", **options))
        await app.answer(question, option_id="approve")
        engine = await ConversationEngine.open(app, "buying", **options)
        events = await heard(engine.run(GOAL))
    assert named(events, T.INTERACTION) == [], "nobody is asked whether it happened"
    assert kinds(events)[-1] == "engine_completed"
    assert calls == [("pay", 5)]


async def test_what_an_agent_asks_is_heard_by_the_conversations_consumer(
    app: Holdfast, calls: list[Any]
) -> None:
    """The agent's task waits; another one that does not depend on it goes on meanwhile."""
    tasks: list[dict[str, Any]] = [
        {"id": "agent", "type": "scout", "description": "pay", "priority": 0},
        {"id": "free", "type": "note", "priority": 1},
    ]
    engine = engine_of(app, tasks, executors={"note": note})
    events: list[EngineEvent] = []
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            events.append(event)
            asked = named(events, T.INTERACTION)
            free = [one["task_id"] for one in named(events, T.TASK_COMPLETED)] == ["free"]
            if asked and free and not calls:
                await app.answer(str(asked[0]["requestId"]), option_id="approve")
    done = [one["task_id"] for one in named(events, T.TASK_COMPLETED)]
    assert done == ["free", "agent"]
    assert len(named(events, T.INTERACTION)) == 1
    assert calls == [("pay", 3)]


async def test_reset_ends_the_agents_below(app: Holdfast, calls: list[Any]) -> None:
    tasks = [{"id": "agent", "type": "scout", "description": "pay"}]
    engine = engine_of(app, tasks)
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            if event.event_type is T.INTERACTION:
                engine.reset()
        [child] = [row.run_id for row in await app.runs() if row.run_id != engine.id]
        await app.engine.wait_for(child, lambda state: state.status == "cancelled")
    assert await app.inbox() == []
    assert engine.state is EngineState.IDLE


async def test_a_failed_task_may_be_left_to_a_person(app: Holdfast) -> None:
    tries = 0

    async def shaky(task: SubTask) -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError("bad day")
        return "well"

    options: dict[str, Any] = {"executors": {"shaky": shaky}, "on_failure": "ask", "retry": ONCE}
    engine = engine_of(app, [{"id": "a", "type": "shaky"}], **options)
    events: list[EngineEvent] = []
    async with asyncio.timeout(PATIENCE):
        async for event in engine.run(GOAL):
            events.append(event)
            if event.event_type is T.INTERACTION:
                await app.answer(str(event.data["requestId"]), option_id="run_again")
    assert named(events, T.TASK_FAILED) == [{"task_id": "a", "error": "bad day"}]
    assert results_of(engine) == {"a": "well"}


async def test_a_conversation_that_is_cancelled_from_outside_ends_its_consumer(
    app: Holdfast,
) -> None:
    gate = Gate()
    engine = engine_of(app, [{"id": "a", "type": "work"}], executors={"work": gate.work})
    consumer = asyncio.create_task(heard(engine.run(GOAL)))
    await gate.begun.wait()
    await app.cancel(engine.id)
    events = await consumer
    assert kinds(events)[-1] == "engine_error"
    assert dict(events[-1].data) == {"error": "cancelled", "phase": "executing"}
    assert gate.running == 0
    assert (engine.state, engine.error) == (EngineState.ERROR, "cancelled")
    assert (engine.pause(), engine.resume(), await engine.cancel()) == (False, False, False)
    await app.engine.wait_for(engine.id, lambda state: state.status == "cancelled", PATIENCE)
    for one in (engine, await ConversationEngine.open(app, engine.id)):
        assert one.state is EngineState.ERROR
        for refused in (one.reset, lambda one=one: one.restore_from_snapshot({})):
            with pytest.raises(NotAllowed, match="was cancelled for good; open a new conversation"):
                refused()
        with pytest.raises(NotAllowed, match="was cancelled for good; open a new conversation"):
            await heard(one.run(GOAL))


async def test_one_that_is_cancelled_at_rest_takes_no_further_turn(app: Holdfast) -> None:
    engine = engine_of(app, [{"id": "a"}])
    await heard(engine.run(GOAL))
    await app.cancel(engine.id)
    with pytest.raises(NotAllowed, match="was cancelled for good"):
        await heard(engine.run("and now?"))
    assert engine.state is EngineState.ERROR


def planner(seen: Seen) -> Entry:
    """A model that hands in one task for each thing it has been offered by name."""
    if "plan_tasks" not in [one.name for one in seen.tools]:
        return "done in words"
    names = [name for name in ("look", "scout", "tour", "note") if f'"{name}"' in seen.system]
    tasks = [{"id": name, "description": name, "type": name} for name in names]
    return say("", call("plan_tasks", tasks=tasks))


async def test_an_application_with_a_model_decomposes_and_offers_what_it_has(
    tmp_path: Path,
) -> None:
    async def note(task: SubTask) -> str:
        """Writes a note."""
        return "noted"

    async with Holdfast(tmp_path, model=ScriptedModel(planner)) as app:
        app.tool(idempotent=True, name="look")(lambda: {"sun": True})
        app.agent("scout")
        engine = ConversationEngine(app=app, executors={"note": note})
        events = await heard(engine.run(GOAL))
    assert kinds(events)[-1] == "engine_completed"
    assert [(one.id, one.route) for one in engine.tasks] == [
        ("look", "tool"),
        ("scout", "agent"),
        ("note", "callable"),
    ]
    assert named(events, T.CONTEXT_RECEIVED)[0]["tools_count"] == 2, "as the coordinator said"


async def test_plans_below_go_on_when_the_consumer_leaves_and_are_found_done(
    app: Holdfast, calls: list[Any]
) -> None:
    """They are durable runs of their own; leaving would otherwise lose their work."""
    engine = engine_of(app, [{"id": "tour", "type": "tour"}])
    async with aclosing(engine.run(GOAL)) as run:
        async for event in run:
            if event.event_type is T.TASK_STARTED:
                break
    [child] = [row.run_id for row in await app.runs() if row.run_id != engine.id]
    done = await app.engine.wait_for(child, lambda state: state.status == "done", PATIENCE)
    assert done.status == "done"
    assert kinds(await heard(engine.run()))[-1] == "engine_completed"
    assert calls == [("look", "Oslo")]
