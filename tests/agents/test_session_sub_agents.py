"""A sub-agent in an agent in a plan: a person sees one run, and an answer reaches its very call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from session_scenes import (
    PATIENCE,
    Ledger,
    assert_sound,
    begin,
    ended,
    history,
    of_kind,
    open_requests,
    until,
)

from holdfast.agents.sessions import AgentEventType
from holdfast.app import Holdfast
from holdfast.errors import NotFound
from holdfast.journal.port import QuestionQuery
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest, InteractionResponse
from holdfast.runs.handles import PlanInstance
from holdfast.testing.model_script import Entry, Fault, Seen, Turn, call, fail, say
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.tools import CallInfo

PLAN = """
plan_id: purchase
name: A purchase
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: agent
    agent_id: boss
    action_prompt: buy a desk
    success_output: {task_id: "002", status: Done, context: {answer: "{{result.answer}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

Handing = Callable[[Seen], Entry]


def one_clerk(_: Seen) -> Entry:
    return say("", call("ask_clerk", task="pay 5"))


def two_clerks(_: Seen) -> Entry:
    return say("", call("ask_clerk", task="pay 5"), call("ask_clerk", task="pay 7"))


class Staff:
    """Boss and clerk on one model: one hands work over, the other looks first and then pays."""

    def __init__(self, hands_over: Handing = one_clerk) -> None:
        self._hands_over = hands_over
        self.sick = False

    def __call__(self, seen: Seen) -> Entry:
        if seen.system == "boss":
            return "The clerks are done." if seen.results else self._hands_over(seen)
        return self._clerk(seen)

    def _clerk(self, seen: Seen) -> Turn | Fault | str | Entry:
        if not seen.results:
            return call("look", what=seen.asked)
        if seen.results[0].tool == "pay":
            return "Paid."
        if self.sick:
            return fail(400, "the clerk is sick")
        return call("pay", amount=int(seen.asked.rpartition(" ")[2]))


def office(home: Path, staff: Staff) -> tuple[Holdfast, Ledger]:
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=ScriptedModel(staff), max_retry_count=0)

    @app.tool
    async def look(what: str, call: CallInfo) -> dict[str, Any]:
        ledger.note("look", call.run_id, what=what)
        return {"seen": what}

    @app.tool(approval="require")
    async def pay(amount: int, call: CallInfo) -> dict[str, Any]:
        ledger.note("pay", call.run_id, amount=amount)
        return {"paid": amount}

    app.agent("clerk", name="Clerk", system_context="clerk", tools=["look", "pay"])
    app.agent("boss", name="Boss", system_context="boss", agents=["clerk"])
    app.load_plan_text(PLAN)
    return app, ledger


async def questions(app: Holdfast, root_id: str, count: int) -> list[InteractionRequest]:
    """The open questions below a root, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while len(found := await open_requests(app, root_id=root_id)) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    return found


async def start(app: Holdfast) -> PlanInstance:
    return await app.plans.start_plan_by_prompt("a desk, please", "purchase")


async def all_sound(app: Holdfast) -> None:
    for row in await app.runs():
        await assert_sound(app, row.run_id)


async def give(app: Holdfast, way: str, root_id: str, question_id: str, option: str) -> None:
    """An answer from the top, by either of the two ways in."""
    if way == "app":
        await app.answer(question_id, option_id=option, feedback="no", by="will.zhang")
        return
    response = InteractionResponse(question_id, root_id, option, feedback="no")
    await app.sessions.handle_interaction_response(root_id, response, by="will.zhang")


@pytest.mark.parametrize("way", ["app", "hub"])
async def test_the_sub_agents_approval_is_asked_at_the_top_and_answered_there(
    tmp_path: Path, way: str
) -> None:
    app, ledger = office(tmp_path, Staff())
    async with app:
        instance = await start(app)
        [question] = await questions(app, instance.id, 1)
        assert await instance.wait_until_settled(PATIENCE) == "pause"
        [row] = await app.inbox()
        assert row.root_id == instance.id
        assert row.run_id == question.session_id == f"{instance.id}.L001.1.c1.1"
        assert question.context["args"] == {"amount": 5}
        assert ledger.counts == {"look": 1}
        await give(app, way, instance.id, question.request_id, "approve")
        assert await instance.wait_for_completion(PATIENCE) == "done"
        assert instance.get_task_instance("002").context["answer"] == "The clerks are done."
        await all_sound(app)
    assert ledger.counts == {"look": 1, "pay": 1}


async def test_a_question_is_answered_only_through_the_run_it_belongs_to(tmp_path: Path) -> None:
    app, ledger = office(tmp_path, Staff())
    async with app:
        instance, stranger = await start(app), await app.sessions.open("boss")
        [question] = await questions(app, instance.id, 1)
        response = InteractionResponse(question.request_id, stranger.id, "approve")
        with pytest.raises(NotFound):
            await app.sessions.handle_interaction_response(stranger.id, response)
    assert ledger.counts == {"look": 1}


@pytest.mark.parametrize("first", [5, 7])
async def test_of_two_sub_agents_at_once_each_answer_reaches_exactly_its_call(
    tmp_path: Path, first: int
) -> None:
    app, ledger = office(tmp_path, Staff(two_clerks))
    async with app:
        instance = await start(app)
        found = await questions(app, instance.id, 2)
        by_amount = {one.context["args"]["amount"]: one for one in found}
        assert by_amount[5].session_id != by_amount[7].session_id
        await app.answer(by_amount[first].request_id, option_id="approve")
        clerk = await app.sessions.session(by_amount[first].session_id)
        assert await ended(clerk) == "done"
        assert await instance.wait_until_settled(PATIENCE) == "pause", "the other still waits"
        assert [one["args"] for one in ledger.of("pay")] == [{"amount": first}]
        other = by_amount[12 - first]
        await app.answer(other.request_id, option_id="reject", feedback="one is enough")
        assert await instance.wait_for_completion(PATIENCE) in ("done", "error")
        await all_sound(app)
    paid = ledger.of("pay")
    assert [(one["args"]["amount"], one["key"]) for one in paid] == [(first, clerk.id)]


async def test_an_agents_stream_shows_the_questions_of_its_sub_agents(tmp_path: Path) -> None:
    app, ledger = office(tmp_path, Staff(two_clerks))
    async with app:
        session = await begin(app, "buy two desks", "boss")
        shown: dict[str, str] = {}
        kinds: list[AgentEventType] = []
        async with (
            asyncio.timeout(PATIENCE),
            aclosing(app.sessions.subscribe(session.id)) as events,
        ):
            async for event in events:
                kinds.append(event.type)
                if event.type is AgentEventType.INTERACTION:
                    question_id = str(event.data["requestId"])
                    assert question_id not in shown
                    shown[question_id] = str(event.data["sessionId"])
                    response = {"requestId": question_id, "selectedOptionId": "approve"}
                    await app.sessions.handle_interaction_response(session.id, response)
        assert len(shown) == 2
        assert set(shown.values()) == {f"{session.id}.c1.1", f"{session.id}.c2.1"}
        assert kinds[-1] is AgentEventType.DONE
        assert session.status == "done"
        points = await app.sessions.resume_points(session.id)
        assert points == []
    assert ledger.counts == {"look": 2, "pay": 2}


async def test_a_question_that_a_paused_sub_agent_adds_is_shown_too(tmp_path: Path) -> None:
    """The sub-agent waits already when the free call beside its approval asks for more."""

    def both(seen: Seen) -> Entry:
        if seen.system == "boss":
            return "Done." if seen.results else call("ask_clerk", task="pay and print")
        return "Done." if seen.results else say("", call("pay", amount=5), call("print"))

    gate = asyncio.Event()
    ledger = Ledger(tmp_path / "ledger.jsonl")
    app = Holdfast(tmp_path, model=ScriptedModel(both))

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        ledger.note("pay")
        return {"paid": amount}

    @app.tool(name="print")
    async def print_it(paper: str = "") -> dict[str, Any]:
        await gate.wait()
        if paper:
            ledger.note("print", paper=paper)
            return {"printed": True}
        wanted = {"paper": {"type": "text"}}
        return {"success": False, "reason": "missing_params", "required_params": wanted}

    app.agent("clerk", system_context="clerk", tools=["pay", "print"])
    app.agent("boss", system_context="boss", agents=["clerk"])
    async with app:
        session = await begin(app, "go", "boss")
        asked: list[str] = []
        async with asyncio.timeout(10), aclosing(app.sessions.subscribe(session.id)) as events:
            async for event in events:
                if event.type is not AgentEventType.INTERACTION:
                    continue
                asked.append(str(event.data["title"]))
                gate.set()
                if len(asked) == 2:
                    for request in await open_requests(app):
                        approval = request.title == "Run pay?"
                        given = {"option_id": "approve"} if approval else {"data": {"paper": "A4"}}
                        await app.answer(request.request_id, **given)  # type: ignore[arg-type]
        assert asked == ["Run pay?", "print needs more"]
        assert session.status == "done"
    assert ledger.counts == {"pay": 1, "print": 1}


async def test_a_sub_agents_question_is_answered_after_a_restart(tmp_path: Path) -> None:
    app, _ = office(tmp_path, Staff())
    async with app:
        instance = await start(app)
        [question] = await questions(app, instance.id, 1)
    app, ledger = office(tmp_path, Staff())
    async with app:
        instance = await app.instance(instance.id)
        assert await instance.wait_until_settled(PATIENCE) == "pause"
        await app.answer(question.request_id, option_id="approve", by="will.zhang")
        assert await instance.wait_for_completion(PATIENCE) == "done"
        await all_sound(app)
    assert ledger.counts == {"look": 1, "pay": 1}


async def test_a_sub_agent_whose_model_is_down_stops_the_plan_and_a_resume_redoes_nothing(
    tmp_path: Path,
) -> None:
    staff = Staff()
    staff.sick = True
    app, ledger = office(tmp_path, staff)
    async with app:
        instance = await start(app)
        assert await instance.wait_for_completion(PATIENCE) == "error"
        message = instance.get_main_task_instance().context["error_info"]["message"]
        assert "the clerk is sick" in message
        assert ledger.counts == {"look": 1}
        staff.sick = False
        await app.resume(instance.id)
        [question] = await questions(app, instance.id, 1)
        assert ledger.counts == {"look": 1}, "what the sub-agent had done is not done again"
        await app.answer(question.request_id, option_id="approve")
        assert await instance.wait_for_completion(PATIENCE) == "done"
        starts = of_kind(await history(app, question.session_id), r.TurnStarted)
        assert len(starts) == 1, "the sub-agent went on in its own turn"
        await all_sound(app)
    assert ledger.counts == {"look": 1, "pay": 1}


async def test_the_resume_works_over_a_restart_as_well(tmp_path: Path) -> None:
    staff = Staff()
    staff.sick = True
    app, _ = office(tmp_path, staff)
    async with app:
        instance = await start(app)
        assert await instance.wait_for_completion(PATIENCE) == "error"
    app, ledger = office(tmp_path, Staff())
    async with app:
        instance = await app.instance(instance.id)
        await app.resume(instance.id)
        [question] = await questions(app, instance.id, 1)
        await app.answer(question.request_id, option_id="approve")
        assert await instance.wait_for_completion(PATIENCE) == "done"
    assert ledger.counts == {"look": 1, "pay": 1}


@pytest.mark.parametrize("hands_over", [one_clerk, two_clerks])
async def test_to_terminate_in_a_sub_agent_ends_everything_above_it(
    tmp_path: Path, hands_over: Handing
) -> None:
    app, ledger = office(tmp_path, Staff(hands_over))
    async with app:
        session = await begin(app, "buy", "boss")
        count = 1 if hands_over is one_clerk else 2
        found = await questions(app, session.id, count)
        await app.answer(found[0].request_id, option_id="terminate", by="will.zhang")
        assert await ended(session) == "cancelled"
        clerk = await app.sessions.session(found[0].session_id)
        assert clerk.status == "cancelled"
        state = await app.engine.state(session.id)
        assert (state.cancelled_by, state.ended_by) == ("will.zhang", "will.zhang")
    assert "pay" not in ledger.counts


async def test_to_terminate_in_a_sub_agent_cancels_the_plan(tmp_path: Path) -> None:
    app, ledger = office(tmp_path, Staff())
    async with app:
        instance = await start(app)
        [question] = await questions(app, instance.id, 1)
        await app.answer(question.request_id, option_id="terminate", by="will.zhang")
        assert await instance.wait_for_completion(PATIENCE) == "cancelled"
    assert "pay" not in ledger.counts


async def test_cancelling_at_the_top_withdraws_the_sub_agents_questions(tmp_path: Path) -> None:
    app, ledger = office(tmp_path, Staff(two_clerks))
    async with app:
        instance = await start(app)
        found = await questions(app, instance.id, 2)
        await app.cancel(instance.id, by="will.zhang")
        assert await instance.wait_for_completion(PATIENCE) == "cancelled"
        for question in found:
            await until(app, question.session_id, lambda state: state.status == "cancelled")
        assert await app.inbox() == []
        withdrawn = QuestionQuery(status=frozenset({"withdrawn"}), root_id=instance.id)
        assert len(await app.inbox(withdrawn)) == 2
        events = await history(app, found[0].session_id)
        assert len(of_kind(events, e.QuestionWithdrawn)) == 1
    assert ledger.counts == {"look": 2}


async def test_whoever_comes_back_is_shown_the_open_questions_of_sub_agents(
    tmp_path: Path,
) -> None:
    """They have no number in the agent's own journal, so none may be lost between two visits."""
    app, _ = office(tmp_path, Staff(two_clerks))
    async with app:
        session = await begin(app, "buy two desks", "boss")
        found = await questions(app, session.id, 2)
        await until(app, session.id, lambda state: state.paused_children == 2)
        for after in (None, session.version - 1, session.version):
            async with aclosing(app.sessions.subscribe(session.id, after)) as events:
                shown = {str((await anext(events)).data.get("requestId")) for _ in range(2)}
            assert shown == {one.request_id for one in found}, after
        points = await app.sessions.resume_points(session.id)
        assert {one.resume_id for one in points} == {one.request_id for one in found}


async def test_the_stream_of_an_agent_in_a_plan_shows_its_own_sub_agents(tmp_path: Path) -> None:
    app, _ = office(tmp_path, Staff())
    async with app:
        instance = await start(app)
        [question] = await questions(app, instance.id, 1)
        async with aclosing(app.sessions.subscribe(f"{instance.id}.L001.1", None)) as events:
            shown = await anext(events)
        assert shown.type is AgentEventType.INTERACTION
        assert shown.data["requestId"] == question.request_id


async def test_an_answer_given_while_a_sub_agent_has_failed_takes_effect_at_the_resume(
    tmp_path: Path,
) -> None:
    """The approval is the boss's own; the clerk beside it is sick."""
    sick = True

    def script(seen: Seen) -> Entry:
        if seen.system == "clerk":
            return fail(400, "the clerk is sick") if sick else "Well again."
        wanted = say("", call("pay", amount=5), call("ask_clerk", task="look around"))
        return "Done." if seen.results else wanted

    ledger = Ledger(tmp_path / "ledger.jsonl")
    app = Holdfast(tmp_path, model=ScriptedModel(script))

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, Any]:
        ledger.note("pay")
        return {"paid": amount}

    app.agent("clerk", system_context="clerk")
    app.agent("boss", system_context="boss", tools=["pay"], agents=["clerk"])
    async with app:
        session = await begin(app, "go", "boss")
        [question] = await questions(app, session.id, 1)
        assert await ended(session) == "error"
        await app.answer(question.request_id, option_id="approve")
        assert session.status == "error"
        assert ledger.counts == {}, "nothing more starts before somebody has looked"
        sick = False
        await app.sessions.resume(session.id)
        assert await ended(session) == "done"
        await all_sound(app)
    assert ledger.counts == {"pay": 1}


@pytest.mark.timeout(60)
async def test_whoever_only_polls_holds_up_nobody(tmp_path: Path) -> None:
    """Between the sub-agent's answer and the boss's hearing of it there is nothing to answer."""
    app, ledger = office(tmp_path, Staff())
    async with app:
        session = await begin(app, "buy", "boss")
        while await session.wait_until_settled() == "pause":
            for row in await app.inbox():
                await app.answer(row.question_id, option_id="approve")
        assert session.status == "done"
    assert ledger.counts == {"look": 1, "pay": 1}


def pays_through_a_clerk(seen: Seen) -> Entry:
    if seen.results:
        return "Done."
    return call("pay", amount=5) if seen.asked == "pay" else call("ask_clerk", task="pay")


@pytest.mark.parametrize(
    ("rules", "title"), [({"pay": "require"}, "Run pay?"), ({"clerk": "require"}, "Run ask_clerk?")]
)
async def test_a_sessions_rules_hold_for_its_sub_agents_too(
    rules: dict[str, str], title: str
) -> None:
    app, paid = Holdfast.in_memory(model=ScriptedModel(pays_through_a_clerk)), []

    @app.tool
    async def pay(amount: int) -> None:
        paid.append(amount)

    app.agent("clerk", tools=["pay"])
    app.agent("boss", tools=["pay"], agents=["clerk"])
    async with app:
        session = await app.sessions.open("boss", approval=rules)
        await app.sessions.say(session.id, "please")
        assert await session.wait_until_settled(PATIENCE) == "pause"
        (request,) = await open_requests(app)
        assert (request.title, paid) == (title, [])
        await app.answer(request.request_id, option_id="approve")
        await ended(session)
    assert paid == [5]


async def test_handing_work_over_may_be_remembered_as_approved() -> None:
    app, paid = Holdfast.in_memory(model=ScriptedModel(pays_through_a_clerk)), []

    @app.tool
    async def pay(amount: int) -> None:
        paid.append(amount)

    app.agent("clerk", tools=["pay"])
    app.agent("boss", agents=["clerk"], approval={"clerk": "require"})
    async with app:
        session = await app.sessions.open("boss")
        await app.sessions.remember_approval(session.id, "ask_clerk", pattern={"task": "pay"})
        await app.sessions.say(session.id, "please")
        await ended(session)
    assert paid == [5]
