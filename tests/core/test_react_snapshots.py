"""Snapshots of sessions: a state that went through JSON is the same state, whatever it holds."""

from __future__ import annotations

import json
from dataclasses import fields

from react_machine import REQUIRE, RUN_ID, WILL, Chat, begun, clerk, opened, request

from holdfast.core.agent.decide import blank
from holdfast.core.agent.state import THINK, ReactState
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.model import commands as c
from holdfast.model.interaction import InteractionType
from holdfast.model.message import ModelSaid, ToolReturned, UserSaid
from holdfast.model.run import Parent, RunStatus


def round_trip(chat: Chat) -> ReactState:
    payload = dump_state(chat.state)
    assert "You pay." not in payload, "what a session is pinned to is stored by content"
    loaded = load_state(payload, blank(RUN_ID, chat.definition))
    assert loaded == chat.state
    assert json.loads(dump_state(loaded)) == json.loads(payload)
    return loaded


def busy() -> Chat:
    """A session that has something in every field."""
    chat = opened(
        clerk(max_iterations=30),
        root_id="chat_000000",
        parent=Parent("chat_000000", "c1", 1),
        approval={"look": REQUIRE},
        only=None,
    )
    chat.submit(c.RememberApproval("pay", "1", WILL, {"amount": 5}, chat.now + 900, 3))
    chat.say("付款，谢谢。")
    chat.reply("我看看。", chat.want("pay", amount=5), chat.want("pay", amount=7))
    chat.start_ready()
    chat.returns("c1", {"paid": [5, None, 2.5]})
    chat.submit(c.KeepDraft(chat.question().request_id, WILL, {"amount": 6}))
    chat.submit(c.Ask(request(type=InteractionType.USER_CONFIRMATION, timeout_seconds=60)))
    chat.answer("confirm", at="q3")
    return chat


def test_a_busy_session_comes_back_as_it_was_and_goes_on() -> None:
    chat = busy()
    filled = {one.name for one in fields(ReactState) if getattr(chat.state, one.name)}
    assert {"messages", "calls", "did", "asides", "grants", "approval", "questions"} <= filled
    chat.state = chat.replayed = round_trip(chat)
    chat.answer("approve")
    chat.settle()
    assert chat.state.status is RunStatus.DONE
    round_trip(chat)


def test_everybodys_words_stay_their_own() -> None:
    chat = begun()
    chat.calls(chat.want("look"))
    chat.returns("c1", "seen")
    chat.reply("Seen.")
    spoken = list(round_trip(chat).messages)
    assert [type(one) for one in spoken] == [ModelSaid, ToolReturned, ModelSaid, UserSaid]


def test_a_session_that_only_looks_still_does() -> None:
    chat = begun(only=("look",))
    assert round_trip(chat).only == ("look",)


def test_a_blank_session_is_a_session_too() -> None:
    chat = Chat()
    round_trip(chat)
    assert json.loads(dump_state(chat.state))["status"] == "not_started"


def test_what_is_in_flight_is_in_the_snapshot() -> None:
    chat = begun()
    asked = chat.think()
    chat.state = chat.replayed = round_trip(chat)
    assert chat.state.steps[THINK].claim == asked.work.claim
    chat.reply("Here.")
    assert chat.state.answer == "Here."
