"""What the followers of a session hear, and what those who ask at the same moment are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import (
    AgentContext,
    AgentEventType,
    AgentExecutionEvent,
    AgentSession,
    Holdfast,
    InteractionRequest,
    InteractionType,
)
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
    newcomer = asyncio.create_task(told(app, session, None))
    async for event in app.sessions.subscribe(session.id, None):
        assert (event.type, event.seq) == (AgentEventType.INTERACTION, None)
        assert event.data["requestId"] == asked.request_id
        break
    await app.answer(asked.request_id, option_id="confirm")
    heard = [one.data["requestId"] for one in await newcomer if "requestId" in one.data]
    assert heard == [asked.request_id]


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
