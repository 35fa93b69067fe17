"""Four eyes in Python: the engine itself knows who wants what a tree of runs does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import InvalidValue, NotPermitted
from holdfast.journal.port import QuestionRow
from holdfast.model import commands as c
from holdfast.model.conversation import ConversationSettings
from holdfast.runtime.identity import Identity, acting
from holdfast.runtime.machines import pinned_settings
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel

PAY = """
plan_id: {plan_id}
name: Pay
main_task_id: "001"
tasks: [{{task_id: "001"}}, {{task_id: "002"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    {first}
    success_output: {{task_id: "002", status: Done}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {{'success': True}}"
    success_output: {{task_id: "001", status: Done}}
"""
CALL = "listener_type: tool\n    tool: pay\n    args: {amount: 5}"
BELOW = "listener_type: plan\n    plan_id: pay"


def application(home: Path, paid: list[int], **options: Any) -> Holdfast:
    app = Holdfast(home, **options)

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        paid.append(amount)
        return {"paid": amount}

    app.load_plan_text(PAY.format(plan_id="pay", first=CALL))
    app.load_plan_text(PAY.format(plan_id="above", first=BELOW))
    return app


async def waiting(app: Holdfast) -> QuestionRow:
    """The question that is open, as soon as it is."""
    async with asyncio.timeout(60):
        while not (rows := await app.inbox()):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
    [row] = rows
    return row


async def asked(app: Holdfast, plan_id: str, by: str) -> str:
    instance = await app.plans.start_plan_by_prompt("pay", plan_id, by=by)
    await instance.wait_until_settled(30)
    return instance.id


@pytest.mark.parametrize("plan_id", ["pay", "above"])
async def test_one_alone_does_not_get_it_through_and_two_do(tmp_path: Path, plan_id: str) -> None:
    paid: list[int] = []
    async with application(tmp_path, paid, four_eyes=True) as app:
        run_id = await asked(app, plan_id, "will")
        question = (await waiting(app)).question_id
        with pytest.raises(NotPermitted, match="you started this run"):
            await app.answer(question, option_id="approve", by="will")
        await app.answer(question, option_id="approve", data={"amount": 900}, by="ann")
        await (await app.instance(run_id)).wait_until_settled(30)
        again = (await waiting(app)).question_id
        assert paid == []
        assert again != question
        with pytest.raises(NotPermitted, match="you answered"):
            await app.answer(again, option_id="approve", by="ann")
        await app.answer(again, option_id="approve", by="bob")
        ended = await app.engine.wait_for(run_id, lambda state: state.status == "done", 30)
        assert ended.status == "done"
    assert paid == [900]


async def test_what_people_did_in_the_tree_is_known_after_a_restart(tmp_path: Path) -> None:
    """Also what was done in a run above the one that asks, and after it had asked."""
    paid: list[int] = []
    async with application(tmp_path, paid, four_eyes=True) as app:
        run_id = await asked(app, "above", "will")
        await app.edit_context(run_id, "001", {"note": "x"}, by="ann")
    async with application(tmp_path, paid, four_eyes=True) as app:
        row = await waiting(app)
        assert row.run_id != run_id
        with pytest.raises(NotPermitted, match="you changed this run"):
            await app.answer(row.question_id, option_id="approve", by="ann")
        await app.answer(row.question_id, option_id="approve", by="bob")
        ended = await app.engine.wait_for(run_id, lambda state: state.status == "done", 30)
        assert ended.status == "done"
    assert paid == [5]


async def test_whoever_gives_no_name_is_one_person(tmp_path: Path) -> None:
    paid: list[int] = []
    async with application(tmp_path, paid, four_eyes=True) as app:
        await (await app.plans.start_plan_by_prompt("pay", "pay")).wait_until_settled(30)
        with pytest.raises(NotPermitted):
            await app.answer((await waiting(app)).question_id, option_id="approve")
    assert paid == []


async def test_a_conversation_knows_who_spoke_and_who_had_it_go_on(tmp_path: Path) -> None:
    async with application(tmp_path, [], four_eyes=True) as app:
        definition = pinned_settings(ConversationSettings())
        await app.engine.begin("talk", definition, c.OpenConversation())
        with acting(Identity("ann")):
            await app.engine.submit("talk", c.Converse("Pay."))
        with acting(Identity("bob")):
            state = await app.engine.submit("talk", c.StartOver())
        wanting = {"local": "started", "ann": "spoke", "bob": "changed"}
        assert dict(state.wanting) == wanting
        assert app.engine.four_eyes.of(state) == wanting


async def test_without_four_eyes_nobody_is_looked_up(tmp_path: Path) -> None:
    paid: list[int] = []
    async with application(tmp_path, paid) as app:
        await asked(app, "pay", "will")
        assert app.engine.four_eyes.of(await app.engine.state("inst_000001")) is None
        await app.answer((await waiting(app)).question_id, option_id="approve", by="will")
        await (await app.instance("inst_000001")).wait_until_settled(30)
    assert paid == [5]


def paying_agent(paid: list[int]) -> Holdfast:
    model = ScriptedModel(lambda seen: "Done." if seen.results else call("pay", amount=5))
    app = Holdfast.in_memory(model=model, four_eyes=True)

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        paid.append(amount)
        return {"paid": amount}

    app.agent("clerk", tools=["pay"])
    return app


async def test_no_session_is_opened_with_consent_beforehand() -> None:
    paid: list[int] = []
    async with paying_agent(paid) as app:
        with pytest.raises(NotPermitted, match="four eyes"):
            await app.sessions.open("clerk", session_id="s", approval={"pay": "auto"}, by="ann")
        session = await app.sessions.open("clerk", session_id="s", by="ann")
        await app.sessions.say(session.id, "Pay.", by="ann")
        await session.wait_until_settled(30)
        assert (await waiting(app)).type == "TOOL_APPROVAL"
    assert paid == []


async def test_nobody_is_called_like_the_clock() -> None:
    paid: list[int] = []
    async with paying_agent(paid) as app:
        with pytest.raises(InvalidValue, match="clock is a name of ours"):
            await app.sessions.open("clerk", session_id="s", by="clock")
        session = await app.sessions.open("clerk", session_id="s", by="ann")
        with pytest.raises(InvalidValue):
            await app.sessions.say(session.id, "Pay.", by="clock")
        with acting(Identity("clock")), pytest.raises(InvalidValue):
            await app.engine.submit(session.id, c.Say("Pay.", ""))
        with pytest.raises(InvalidValue):
            await app.sessions.cancel(session.id, by="clock")
        await app.sessions.say(session.id, "Pay.", by="ann")
        await session.wait_until_settled(30)
        with pytest.raises(InvalidValue):
            await app.answer((await waiting(app)).question_id, option_id="approve", by="clock")
    assert paid == []


async def test_whoever_gives_an_empty_name_gives_none() -> None:
    paid: list[int] = []
    async with paying_agent(paid) as app:
        session = await app.sessions.open("clerk", by="")
        await app.sessions.say(session.id, "Pay.", by="")
        await session.wait_until_settled(30)
        for by in ("", "local"):
            with pytest.raises(NotPermitted, match="you started this run"):
                await app.answer((await waiting(app)).question_id, option_id="approve", by=by)
    assert paid == []


CHOICE = """
plan_id: choose
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: How much?
    options:
      - {id: "5", label: Little, action: APPROVE_AND_EXECUTE}
      - {id: "900", label: Much, action: APPROVE_AND_EXECUTE}
    success_output: {task_id: "002", status: Done, context: {amount: "{{result.option}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: pay
    args: {amount: 5}
    success_output: {task_id: "001", status: Done}
"""


async def test_who_chose_does_not_approve(tmp_path: Path) -> None:
    paid: list[int] = []
    async with application(tmp_path, paid, four_eyes=True) as app:
        app.load_plan_text(CHOICE)
        run_id = await asked(app, "choose", "will")
        await app.answer((await waiting(app)).question_id, option_id="900", by="ann")
        await (await app.instance(run_id)).wait_until_settled(30)
        question = (await waiting(app)).question_id
        with pytest.raises(NotPermitted, match="you answered"):
            await app.answer(question, option_id="approve", by="ann")
    assert paid == []
