"""The scripted assistant: it understands one kind of sentence, and tells what came of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.demo.assistant import TOOL, reply
from holdfast.demo.colleagues import the_asked_colleague
from holdfast.model.message import Message, ModelSaid, ToolCall, ToolOffer, ToolReturned, UserSaid
from holdfast.testing.model_script import Seen, Turn

PAYS = ToolOffer(TOOL, "pays", {"type": "object", "properties": {}})
PAYMENT = {"employee": "Will Zhang", "amount": 420, "purpose": "the taxi"}
ASKED = UserSaid("Please pay 420 to Will Zhang for the taxi.")


def seen(*messages: Message) -> Seen:
    return Seen(1, "", messages, (PAYS,))


def after(content: Any, *, failed: bool = False) -> Any:
    called = ModelSaid("", (ToolCall("call_1", TOOL, PAYMENT),))
    return reply(seen(ASKED, called, ToolReturned("call_1", TOOL, content, failed)))


def wanted(turn: Any) -> dict[str, Any]:
    assert isinstance(turn, Turn)
    [call] = turn.calls
    assert call.tool == TOOL
    return dict(json.loads(call.arguments))


@pytest.mark.parametrize(
    ("text", "payment"),
    [
        ("Please pay 420 to Will Zhang for the taxi.", PAYMENT),
        ("pay ¥1,200.50 to 张三", {"employee": "张三", "amount": 1200.5, "purpose": "expenses"}),
        ("请付给张三 30 元茶水费。", {"employee": "张三", "amount": 30, "purpose": "茶水费"}),
    ],
)
def test_a_sentence_becomes_a_payment(text: str, payment: dict[str, Any]) -> None:
    assert wanted(reply(seen(UserSaid(text)))) == payment


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What can you do?", "scripted stand-in"),
        ("你好", "替身"),
        ("", "HOLDFAST_MODEL"),
        ("pay 1 to " * 9_000 + "pay 1 to x" + " " * 99_000 + "x", "scripted stand-in"),
    ],
)
def test_anything_else_is_answered_with_what_it_understands(text: str, words: str) -> None:
    said = reply(seen(UserSaid(text)))
    assert isinstance(said, str)
    assert words in said


def test_a_payment_is_told_with_its_number() -> None:
    paid = {"success": True, "payment_id": "PAY-0001", **PAYMENT}
    assert after(paid) == "Paid ¥420 to Will Zhang for the taxi: PAY-0001."


def test_a_refusal_is_told_with_its_reason() -> None:
    refused = {"rejected": "It was not run: will refused.", "reason": "too much"}
    assert after(refused, failed=True) == "Nothing was paid: too much"
    assert after({"error": "out of order"}, failed=True) == "Nothing was paid: out of order"
    assert after("broken", failed=True) == "Nothing was paid: the call failed"


def test_feedback_that_names_an_amount_leads_to_another_question() -> None:
    again = {"retry": "It was not run: will asks for something else.", "reason": "at most 300"}
    assert wanted(after(again, failed=True)) == {**PAYMENT, "amount": 300}


def test_feedback_without_an_amount_is_only_repeated() -> None:
    again = {"retry": "It was not run.", "reason": "ask tomorrow"}
    assert after(again, failed=True) == "Nothing was paid: ask tomorrow"


def test_its_tool_tells_it_from_its_colleagues() -> None:
    assert isinstance(the_asked_colleague(seen(ASKED)), Turn)
    without = Seen(1, "", (ASKED,), ())
    assert the_asked_colleague(without) == '{"success": false, "error": "I have no tool for this."}'
