"""What the followers of a session hear, and what those who ask at the same moment are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from plan_texts import load, start, step

from holdfast import (
    AgentContext,
    AgentEventType,
    AgentExecutionEvent,
    AgentSession,
    Holdfast,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
    InteractionType,
    ReActAgentStrategy,
    Resolution,
)
from holdfast.errors import AuthorError, CallerError, NotAllowed, NotFound
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_script import Script, call, say
from holdfast.testing.scripted_model import ScriptedModel

OpenApp = Callable[..., Awaitable[Holdfast]]


async def clerk(open_app: OpenApp, script: Script, **options: Any) -> tuple[Holdfast, AgentSession]:
    app = await open_app(model=ScriptedModel(script), **options)

    @app.tool
    async def pay(amount: int) -> dict[str, int]:
        return {"paid": amount}

    app.agent("clerk", tools=["pay"])
    return app, await app.sessions.open("clerk")


async def told(
    app: Holdfast, session: AgentSession, after: int | None = 0
) -> list[AgentExecutionEvent]:
    return [event async for event in app.sessions.subscribe(session.id, after)]


async def turn(app: Holdfast, session: AgentSession, text: str) -> None:
    await app.sessions.say(session.id, text)
    await session.wait_for_completion()


def thoughts(events: list[AgentExecutionEvent]) -> list[int]:
    return [
        event.data["iteration"]
        for event in events
        if event.type is AgentEventType.THINKING and event.seq is not None
    ]


async def test_whoever_comes_back_at_any_record_hears_the_same_words(open_app: OpenApp) -> None:
    wanted = say("Two.", call("pay", amount=1), call("pay", amount=2))
    app, session = await clerk(open_app, [wanted, "Paid.", call("pay", amount=3), "Again."])
    await turn(app, session, "pay")
    await turn(app, session, "more")
    everything = await told(app, session)
    for after in range(1, session.version + 1):
        later = [one for one in everything if one.seq is None or one.seq > after]
        assert await told(app, session, after) == later


async def test_thoughts_are_counted_from_one_in_every_turn(open_app: OpenApp) -> None:
    app, session = await clerk(open_app, [call("pay", amount=1), "Paid.", "Good.", "Heard."])
    await turn(app, session, "pay")
    await turn(app, session, "thanks")
    asked = await app.sessions.request_interaction(session.id, question("More?"))
    await app.answer(asked.request_id, option_id="confirm")
    await session.wait_for_completion()
    assert thoughts(await told(app, session)) == [1, 2, 1, 1]


async def test_a_proposed_call_is_told_like_one_that_the_model_wants(open_app: OpenApp) -> None:
    app, session = await clerk(open_app, ["Paid, then."])
    context = AgentContext("clerk", session.id, "will")
    asked = await app.sessions.pause_for_tool_approval(
        session.id, "mine", "pay", {"amount": 4}, context
    )
    await app.answer(asked.request_id, option_id="approve")
    await session.wait_for_completion()
    events = await told(app, session)
    [started] = [one for one in events if one.type is AgentEventType.STARTED]
    proposed = {"step_id": "c1", "call_id": "mine", "tool": "pay", "args": {"amount": 4}}
    assert started.data == {"turn": 1, "proposed": proposed, "by": "will"}
    [called] = [one for one in events if one.type is AgentEventType.TOOL]
    assert (called.data["call_id"], called.data["tool"]) == ("mine", "pay")


async def test_a_newcomer_hears_of_what_is_open_and_of_nothing_twice(open_app: OpenApp) -> None:
    app, session = await clerk(open_app, ["Heard."])
    asked = await app.sessions.request_interaction(session.id, question("Before?"))
    async with aclosing(app.sessions.subscribe(session.id, None)) as stream:
        first = await anext(stream)
        assert (first.type, first.seq) == (AgentEventType.INTERACTION, None)
        assert first.data["requestId"] == asked.request_id
        await app.answer(asked.request_id, option_id="confirm")
        rest = [event async for event in stream]
    assert rest[-1].type is AgentEventType.DONE
    assert not any("requestId" in event.data for event in rest)


def question(title: str) -> InteractionRequest:
    return InteractionRequest("", "", InteractionType.USER_CONFIRMATION, title)


async def test_those_who_ask_at_the_same_moment_are_each_given_their_own_question(
    open_app: OpenApp,
) -> None:
    app, session = await clerk(open_app, [])
    titles = [f"Number {number}?" for number in range(10)]
    asked = await asyncio.gather(
        *(app.sessions.request_interaction(session.id, question(one)) for one in titles)
    )
    assert [one.title for one in asked] == titles
    assert len({one.request_id for one in asked}) == len(titles)


async def test_approvals_remembered_at_the_same_moment_are_told_apart(
    open_app: OpenApp, clock: ManualClock
) -> None:
    app, session = await clerk(open_app, [], clock=clock)
    grants = await asyncio.gather(
        *(
            app.sessions.remember_approval(session.id, "pay", pattern={"amount": amount})
            for amount in range(10)
        )
    )
    assert [grant.pattern for grant in grants] == [{"amount": amount} for amount in range(10)]


async def test_a_proposal_of_what_is_disabled_is_refused_at_once(open_app: OpenApp) -> None:
    """Nothing is recorded of it, and no model is asked."""
    app, _ = await clerk(open_app, [])
    app.agent("strict", tools=["pay"], approval="disabled")
    session = await app.sessions.open("strict")
    before = session.version
    with pytest.raises(NotAllowed, match="the tool pay is disabled"):
        await app.sessions.pause_for_tool_approval(session.id, "mine", "pay", {"amount": 4})
    assert (session.version, session.turn) == (before, 0)


async def test_a_session_is_not_taken_for_another_agents(open_app: OpenApp) -> None:
    app, session = await clerk(open_app, [])
    app.agent("other")
    with pytest.raises(NotAllowed, match="is a session with clerk"):
        async for _ in ReActAgentStrategy(app.sessions).execute_stream(
            "hello", AgentContext("other", session.id)
        ):
            pass
    assert session.turn == 0


async def test_the_hub_of_sessions_leaves_plans_alone(open_app: OpenApp) -> None:
    app = await open_app()
    load(app, step("ASK", "001", "001", title="Sure?"))
    instance = await start(app)
    await instance.wait_until_settled()
    for attempt in (app.sessions.cancel, app.sessions.resume):
        with pytest.raises(CallerError):
            await attempt(instance.id)
    assert (await app.engine.state(instance.id)).status == "pause"


async def test_one_answer_to_many_tells_what_became_of_each(open_app: OpenApp) -> None:
    app, session = await clerk(open_app, ["Heard."])

    @app.interactions.action("odd")
    def odd(request: InteractionRequest, response: InteractionResponse) -> Resolution:
        if request.title == "Broken?":
            raise RuntimeError("no idea")
        return Resolution(InteractionAction.SKIP)

    options = (InteractionOption("odd", "Odd", InteractionAction.CUSTOM),)
    asked = [
        await app.sessions.request_interaction(
            session.id, replace(question(title), options=options)
        )
        for title in ("First?", "Broken?", "Last?")
    ]
    ids = [one.request_id for one in asked]
    response = InteractionResponse("", selected_option_id="odd")
    outcomes = await app.sessions.answer_many([*ids, "unknown"], response)
    assert [type(outcomes[one]) for one in (*ids, "unknown")] == [
        type(None),
        AuthorError,
        type(None),
        NotFound,
    ]
    assert [row.question_id for row in await app.inbox()] == [ids[1]]
