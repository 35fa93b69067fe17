"""What callers may not hand to a session, and what is refused before anything is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from holdfast import AgentContext, Holdfast, InteractionResponse, ReActAgentStrategy, ResumePoint
from holdfast.errors import InvalidAnswer, InvalidValue, NotAllowed, NotFound
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.testing.model_script import call, say
from holdfast.testing.scripted_model import RuleModel


def office(wanted: Any) -> Holdfast:
    app = Holdfast.in_memory(
        model=RuleModel([(lambda seen: bool(seen.results), "ok"), ("", wanted)])
    )

    @app.tool(approval="require")
    async def pay(amount: int) -> dict[str, int]:
        return {"paid": amount}

    app.agent("clerk", tools=["pay"])
    return app


async def test_an_answer_is_not_taken_for_another_session() -> None:
    app = office(call("pay", amount=1))
    async with app:
        session = await app.sessions.open("clerk")
        other = await app.sessions.open("clerk")
        await app.sessions.say(session.id, "go")
        await session.wait_until_settled()
        [point] = await app.sessions.resume_points(session.id)
        response = InteractionResponse(point.resume_id, other.id, "approve")
        with pytest.raises(InvalidAnswer) as caught:
            await app.sessions.handle_interaction_response(session.id, response)
        assert set(caught.value.fields) == {"session_id"}
        with pytest.raises(NotFound):
            await app.sessions.handle_interaction_response(
                other.id, replace(response, session_id="")
            )
        right = replace(response, session_id=session.id)
        await app.sessions.handle_interaction_response(session.id, right)
        assert await session.wait_for_completion() == "done"


@pytest.mark.parametrize(("tool", "amount"), [("pay", 2), ("pay", True), ("look", 1)])
async def test_an_open_question_is_not_taken_for_another_call(tool: str, amount: Any) -> None:
    app = office(call("pay", amount=1))
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.say(session.id, "go")
        await session.wait_until_settled()
        [point] = await app.sessions.resume_points(session.id)
        call_id = point.interaction_request.context["call_id"]
        with pytest.raises(NotAllowed, match="is another call"):
            await app.sessions.pause_for_tool_approval(
                session.id, call_id, tool, {"amount": amount}
            )


async def test_a_session_keeps_the_rules_that_it_was_opened_with() -> None:
    app = office("fine")
    async with app:
        strategy = ReActAgentStrategy(app.sessions)
        context = AgentContext("clerk", "S", approval={"pay": "disabled"})
        assert [one async for one in strategy.execute_stream("go", context)]
        assert [one async for one in strategy.execute_stream("go", context)]
        with pytest.raises(NotAllowed, match="other rules of approval"):
            async for _ in strategy.execute_stream(
                "go", replace(context, approval={"pay": "auto"})
            ):
                pass


@pytest.mark.parametrize("after", [-1, 1000, "3", 2.5, True])
async def test_a_follower_comes_back_to_a_place_that_there_is(after: Any) -> None:
    app = office("fine")
    async with app:
        session = await app.sessions.open("clerk")
        with pytest.raises(InvalidAnswer, match=f"from 0 to {session.version}"):
            await anext(app.sessions.subscribe(session.id, after))


async def test_a_newcomer_is_shown_all_open_questions() -> None:
    app = office(say("", *[call("pay", amount=number) for number in range(1001)]))
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.say(session.id, "go")
        await app.engine.wait_for(session.id, lambda state: len(state.open_questions) == 1001)
        assert len(await app.sessions.resume_points(session.id)) == 1001


async def test_an_approval_without_a_tool_is_no_matter_for_the_callback() -> None:
    class Told:
        async def request_approval(
            self, session_id: str, call_id: str, tool: str, args: Mapping[str, Any], context: Any
        ) -> None:
            raise AssertionError(tool)

    app = office("fine")
    async with app:
        session = await app.sessions.open("clerk")
        wire = {"requestId": "", "sessionId": "", "type": "TOOL_APPROVAL", "title": "Well?"}
        await app.sessions.request_interaction(session.id, wire)
        [point] = await app.sessions.resume_points(session.id)
        answered = replace(point, user_response=InteractionResponse("", "", "approve"))
        strategy = ReActAgentStrategy(app.sessions)
        events = [one.type async for one in strategy.resume_from_tool_approval(answered, Told())]
        assert events[-1] == "DONE"


async def test_a_question_stays_as_it_was_asked_whatever_its_caller_does_afterwards() -> None:
    app = office("fine")
    metadata: dict[str, Any] = {}
    context: dict[str, Any] = {}
    go = InteractionOption("go", "Go", InteractionAction.APPROVE_AND_EXECUTE, metadata=metadata)
    kind = InteractionType.USER_CONFIRMATION
    async with app:
        session = await app.sessions.open("clerk")
        request = InteractionRequest("", "", kind, "Well?", context=context, options=(go,))
        asked = await app.sessions.request_interaction(session.id, request)
        metadata["later"] = context["later"] = True
        state = await app.engine.state(session.id)
        kept = state.questions[asked.request_id].request
        assert (kept.context, kept.options[0].metadata) == ({}, {})


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "3", True])
async def test_an_approval_is_remembered_for_a_time_that_ends(seconds: Any) -> None:
    app = office("fine")
    async with app:
        session = await app.sessions.open("clerk")
        with pytest.raises(InvalidAnswer) as caught:
            await app.sessions.remember_approval(session.id, "pay", seconds=seconds)
        assert set(caught.value.fields) == {"seconds"}
        context = AgentContext("clerk", user_id="\ud800")
        with pytest.raises(InvalidValue, match="user_id"):
            await app.sessions.pause_for_tool_approval(session.id, "c", "pay", {}, context)


async def test_a_resume_point_survives_the_wire_in_either_spelling() -> None:
    app = office(call("pay", amount=1))
    async with app:
        session = await app.sessions.open("clerk", by="will.zhang")
        await app.sessions.say(session.id, "go")
        await session.wait_until_settled()
        [point] = await app.sessions.resume_points(session.id)
    wire = json.loads(json.dumps(point.to_wire()))
    assert list(wire) == [
        "resumeId",
        "sessionId",
        "currentIteration",
        "pausedStage",
        "interactionRequest",
        "userResponse",
        "context",
        "originalTask",
    ]
    assert ResumePoint.from_wire(wire) == point
    snake = {**wire, "resume_id": wire["resumeId"]}
    with pytest.raises(InvalidAnswer, match="says the same as resumeId: give only one"):
        ResumePoint.from_wire(snake)
    del snake["resumeId"]
    assert ResumePoint.from_wire(snake) == point
    with pytest.raises(InvalidAnswer) as caught:
        ResumePoint.from_wire({**wire, "resumeId": None, "currentIteration": -1, "more": 1})
    assert set(caught.value.fields) == {"resumeId", "currentIteration", "more"}
    context = {"agentId": 1, "approval": {"pay": "perhaps"}, "toolApprovalCallback": "me"}
    with pytest.raises(InvalidAnswer) as caught:
        ResumePoint.from_wire({**wire, "context": context, "pausedStage": "ACTNG"})
    assert {name: told.split(":")[0] for name, told in caught.value.fields.items()} == {
        "pausedStage": 'there is no "ACTNG"',
        "context.toolApprovalCallback": "unknown key",
        "context.agentId": "must be text, not a number",
        "context.approval.pay": "approval is 'perhaps'",
    }


async def test_events_on_the_wire_spell_our_keys_like_javascript_and_leave_users_alone() -> None:
    app = Holdfast.in_memory(
        model=RuleModel([(lambda s: bool(s.results), "ok"), ("", call("put", a_b=1))])
    )

    @app.tool
    async def put(a_b: int) -> dict[str, int]:
        return {"was_put": a_b}

    app.agent("clerk", tools=["put"])
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.say(session.id, "go")
        told = [one.to_wire() async for one in app.sessions.subscribe(session.id)]
    by_type = {one["type"]: one["data"] for one in told}
    assert by_type["ACTING"]["calls"][0]["stepId"] == "c1"
    assert "inputTokens" in by_type["ACTING"]["usage"]
    assert by_type["TOOL"]["args"] == {"a_b": 1}
    assert by_type["OBSERVING"]["content"] == {"was_put": 1}
    assert "callId" in by_type["OBSERVING"]


@pytest.mark.parametrize("taken", ["inst_000001", "chat_000001", "conv_000001"])
async def test_a_session_takes_no_id_that_is_given_out(taken: str) -> None:
    async with Holdfast.in_memory() as app:
        app.agent("clerk")
        with pytest.raises(InvalidAnswer, match="no id for a new session"):
            await app.sessions.open("clerk", session_id=taken)
        assert await app.journal.version(taken) == 0
