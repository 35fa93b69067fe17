"""Agents inside plans: their questions are answered at the plan, and their ends are the plan's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast import Holdfast, PlanInstance
from holdfast.journal.port import QuestionRow
from holdfast.model.message import ModelSaid
from holdfast.testing.model_script import Entry, Seen, call, fail, say
from holdfast.testing.scripted_model import ScriptedModel

OpenApp = Callable[..., Awaitable[Holdfast]]

ONE_PART = """
plan_id: part
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: agent
    agent_id: AGENT
    action_prompt: order
    success_output: {task_id: "001", status: Done, context: {said: "{{result.answer}}"}}
"""


@dataclass
class Shop:
    """A clerk who orders without naming a size, and a chief who leaves it to the clerk."""

    app: Holdfast
    wanted: list[Entry]
    ordered: list[str] = field(default_factory=list)
    asking: list[dict[str, Any]] = field(default_factory=list)

    async def order(self, size: str, colour: str = "") -> dict[str, Any]:
        if self.asking:
            return self.asking.pop()
        self.ordered.append(size)
        return {"size": size}

    async def begin(self, agent_id: str = "clerk") -> PlanInstance:
        self.app.load_plan_text(ONE_PART.replace("AGENT", agent_id))
        instance = await self.app.plans.start_plan_by_prompt("order", "part")
        await self.asked(instance)
        return instance

    async def asked(self, instance: PlanInstance) -> list[QuestionRow]:
        """The plan waits for a person, and these are the questions."""
        assert await instance.wait_until_settled() == "pause"
        return await self.app.inbox()

    async def provide(self, instance: PlanInstance, **params: Any) -> dict[str, Any]:
        return await self.app.planner_agent.continue_plan(instance.id, params)


@pytest.fixture
async def shop(open_app: OpenApp) -> Shop:
    wanted: list[Entry] = [call("order")]

    def reply(seen: Seen) -> Entry:
        replies = sum(isinstance(one, ModelSaid) for one in seen.messages)
        if seen.tools[0].name == "ask_clerk":
            return call("ask_clerk", task="order") if replies == 0 else "the clerk has ordered"
        return wanted[replies] if replies < len(wanted) else "ordered"

    app = await open_app(model=ScriptedModel(reply), max_retry_count=0)
    shop = Shop(app, wanted)
    app.tool(shop.order)
    app.agent("clerk", tools=["order"])
    app.agent("chief", agents=["clerk"])
    return shop


async def test_a_sub_agents_question_is_answered_at_the_plan(shop: Shop) -> None:
    instance = await shop.begin("chief")
    [question] = await shop.app.inbox()
    assert question.run_id == f"{instance.id}.L001.1.c1.1"
    continued = await shop.provide(instance, size="XL")
    assert continued["status"] == "done"
    assert continued["result"]["result"]["answer"] == "the clerk has ordered"
    assert shop.ordered == ["XL"]


async def test_what_is_still_missing_is_said_and_asked_again(shop: Shop) -> None:
    instance = await shop.begin()
    lacking = {"success": False, "reason": "missing_params", "required_params": {"colour": {}}}
    shop.asking.append(lacking)
    continued = await shop.provide(instance, size="XL")
    assert continued["result"]["reason"] == "missing_params"
    assert list(continued["result"]["required_params"]) == ["colour"]
    [question] = await shop.asked(instance)
    assert question.type == "MISSING_INFO"
    assert shop.ordered == []


async def test_another_call_that_waits_does_not_hold_the_answer_up(shop: Shop) -> None:
    """One of two questions of the same agent is answered: its call is through, the other waits."""
    shop.wanted[0] = say("", call("order"), call("order", size="M"))
    shop.app.agent("clerk", tools=["order"], approval={"order": {"require_when": 'size == "M"'}})
    instance = await shop.begin()
    await shop.app.engine.wait_for(
        f"{instance.id}.L001.1", lambda one: len(one.open_questions) == 2
    )
    continued = await shop.provide(instance, size="XL")
    assert continued["status"] == "pause"
    assert "waits for another answer" in continued["result"]["error"]
    assert shop.ordered == ["XL"]
    [approval] = await shop.app.inbox()
    await shop.app.answer(approval.question_id, option_id="approve")
    assert await instance.wait_for_completion() == "done"
    assert shop.ordered == ["XL", "M"]


async def test_a_model_that_fails_after_the_answer_is_told_and_resumed(shop: Shop) -> None:
    shop.wanted.append(fail(400, "no more"))
    instance = await shop.begin()
    continued = await shop.provide(instance, size="XL")
    assert "no more" in continued["result"]["error"]
    assert await instance.wait_for_completion() == "error"
    shop.wanted.pop()
    assert await shop.app.planner_agent.resume_plan(shop.app.plans, "part", instance.id)
    assert await instance.wait_for_completion() == "done"
    assert shop.ordered == ["XL"], "the model was asked again, the tool was not"


async def test_cancelling_the_plan_takes_the_agents_question_back(shop: Shop) -> None:
    instance = await shop.begin()
    [question] = await shop.app.inbox()
    await shop.app.cancel(instance.id, by="will.zhang")
    assert await instance.wait_for_completion() == "cancelled"
    assert await shop.app.inbox() == []
    late = await shop.provide(instance, size="XL")
    assert late["success"] is False
    assert shop.ordered == []
    assert question.root_id == instance.id


async def test_two_who_answer_at_once_order_once(shop: Shop) -> None:
    instance = await shop.begin()
    answers = [shop.provide(instance, size=size) for size in ("S", "XL", "S")]
    taken = await asyncio.gather(*answers)
    assert len(shop.ordered) == 1
    refused = [one for one in taken if not one["success"]]
    assert all("already answered" in one["error"] for one in refused)
    assert await instance.wait_for_completion() == "done"
