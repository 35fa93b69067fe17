"""帮我分析销售数据 with two plain tools: results reach later tasks, and the answer is words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from conversation_scenes import GOAL, heard, kinds, named

from holdfast import ConversationEngine, Holdfast
from holdfast.conversations.engine import EngineEventType as T
from holdfast.journal.memory import MemoryJournal
from holdfast.testing.journal_samples import birth
from holdfast.testing.model_script import Entry, Seen, call, fail, say
from holdfast.testing.scripted_model import ScriptedModel

ROWS = [{"region": "北", "amount": 3}, {"region": "南", "amount": 4}]


def analyst(args: dict[str, Any], *, fills: Entry | None = None) -> Callable[[Seen], Entry]:
    """Plans the two tasks, fills in what it is asked for, and answers in words."""

    def replies(seen: Seen) -> Entry:
        offered = [one.name for one in seen.tools]
        if "plan_tasks" in offered:
            tasks = [
                {"id": "t1", "description": "Query", "type": "query_sales"},
                {
                    "id": "t2",
                    "description": "Sum up",
                    "type": "summarize",
                    "args": args,
                    "dependencies": ["t1"],
                },
            ]
            return call("plan_tasks", tasks=tasks)
        if "give_arguments" in offered:
            return fills or say("I do not know.")
        return say("一共卖了 7。")

    return replies


def shop(app: Holdfast) -> None:
    @app.tool
    def query_sales() -> dict[str, Any]:
        """All sales."""
        return {"rows": ROWS}

    @app.tool
    def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The total of rows."""
        return {"total": sum(one["amount"] for one in rows)}


@pytest.mark.parametrize(
    ("args", "fills"),
    [
        ({"rows": "{t1.result.rows}"}, None),
        ({}, call("give_arguments", rows=ROWS)),
    ],
    ids=["referred to", "filled in"],
)
async def test_the_seeds_own_goal_works_end_to_end(args: dict[str, Any], fills: Any) -> None:
    model = ScriptedModel(analyst(args, fills=fills))
    async with Holdfast(journal=MemoryJournal(), model=model) as app:
        shop(app)
        engine = ConversationEngine(app=app)
        events = await heard(engine.run(GOAL))
        assert named(events, T.TASK_COMPLETED)[-1]["result"] == {"total": 7}
        assert kinds(events)[-3:] == ["answer", "state_changed", "engine_completed"]
        assert named(events, T.ANSWER) == [{"answer": "一共卖了 7。"}]
        assert engine.final_answer == "一共卖了 7。"
    assert "{t1.result.rows}" in model.seen[0].system
    assert '"total":7' in model.seen[-1].system


async def test_what_the_model_does_not_know_a_person_is_asked_who_sees_the_results() -> None:
    model = ScriptedModel(analyst({}))
    async with Holdfast(journal=MemoryJournal(), model=model) as app:
        shop(app)
        engine = ConversationEngine(app=app)
        async for event in engine.run(GOAL):
            if event.event_type is T.INTERACTION:
                assert event.data["context"]["results"] == {"t1": {"rows": ROWS}}
                assert "北" in str(event.data["details"])
                rows = {"rows": json.dumps(ROWS[:1])}
                await engine.answer(str(event.data["requestId"]), option_id="provide", data=rows)
        assert {one.id: one.result for one in engine.tasks}["t2"] == {"total": 3}


async def test_who_comes_back_is_shown_all_open_questions_however_many() -> None:
    async with Holdfast(journal=MemoryJournal(), model=ScriptedModel(analyst({}))) as app:
        shop(app)
        engine = ConversationEngine(app=app)
        async with aclosing(engine.run(GOAL)) as events:
            async for event in events:
                if event.event_type is T.INTERACTION:
                    break
        [own] = await app.inbox()
        below = f"{engine.id}.many"
        asked = [
            replace(own, question_id=one, run_id=below, body=own.body.replace(own.question_id, one))
            for one in (f"{below}-{number:04}" for number in range(1001))
        ]
        born = birth(below, root_id=own.root_id, parent_id=own.run_id)
        await app.journal.append(replace(born, questions=asked))
        shown = []
        async with asyncio.timeout(30), aclosing(engine.run()) as events:
            async for event in events:
                if event.event_type is T.INTERACTION:
                    shown.append(event.data["requestId"])
                if event.event_type is T.INTERACTION and len(shown) > len(asked):
                    break
        assert shown == [own.question_id, *(one.question_id for one in asked)]


async def test_a_model_that_is_down_at_the_end_leaves_a_plain_answer() -> None:
    plans = analyst({"rows": "{t1.result.rows}"})

    def replies(seen: Seen) -> Entry:
        return plans(seen) if seen.tools else fail(400)

    async with Holdfast(journal=MemoryJournal(), model=ScriptedModel(replies)) as app:
        shop(app)
        engine = ConversationEngine(app=app)
        events = await heard(engine.run(GOAL))
        assert named(events, T.ANSWER) == [{"answer": 'Sum up: {"total":7}'}]


async def test_an_llm_of_ones_own_may_fill_in_and_answer_too() -> None:
    class Llm:
        async def decompose_goal(self, text: str) -> Any:
            return [
                {"id": "a", "type": "query_sales"},
                {"id": "b", "type": "summarize", "dependencies": ["a"]},
            ]

        def fill_arguments(self, description: str, results: Any) -> Any:
            return {"rows": results["a"]["rows"]}

        async def write_answer(self, text: str, tasks: Any) -> str:
            return f"{text}: {tasks[-1]['result']['total']}"

    async with Holdfast(journal=MemoryJournal()) as app:
        shop(app)
        engine = ConversationEngine(llm=Llm(), app=app)
        events = await heard(engine.run("Sales"))
        assert named(events, T.ANSWER) == [{"answer": "Sales: 7"}]


async def test_what_an_llm_makes_of_it_that_is_no_answer_is_none() -> None:
    class Llm:
        async def decompose_goal(self, text: str) -> Any:
            return [
                {"id": "a", "type": "query_sales"},
                {"id": "b", "type": "summarize", "args": {"rows": "{a.result.rows}"}},
            ]

        async def write_answer(self, text: str) -> Any:
            return None

    async with Holdfast(journal=MemoryJournal()) as app:
        shop(app)
        engine = ConversationEngine(llm=Llm(), app=app)
        await heard(engine.run("Sales"))
        assert engine.final_answer == 'b: {"total":7}'
