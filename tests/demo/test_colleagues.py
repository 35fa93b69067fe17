"""The scripted model of the office: it reads, calls with what it has read, and tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.demo.colleagues import facts_in, reply
from holdfast.model.message import Message, ModelSaid, ToolCall, ToolOffer, ToolReturned, UserSaid
from holdfast.testing.model_script import ScriptedCall, Seen

ORDERS = ToolOffer(
    "apply_computer",
    "orders",
    {"type": "object", "properties": {"employee": {}, "computer_model": {}}},
)


def seen(*messages: Message, tools: tuple[ToolOffer, ...] = (ORDERS,)) -> Seen:
    return Seen(1, "You work in IT.", messages, tools)


def after(content: Any, *, failed: bool = False, tool: str = "apply_computer") -> Any:
    """What it says when its call has returned `content`."""
    asked = UserSaid("employee: 张三")
    called = ModelSaid("", (ToolCall("call_1", tool, {}),))
    return reply(seen(asked, called, ToolReturned("call_1", tool, content, failed)))


class TestReading:
    @pytest.mark.parametrize(
        ("text", "facts"),
        [
            ("order_id: PC-0001", {"order_id": "PC-0001"}),
            ("请出库:\n- order_id： PC-0001 \n", {"order_id": "PC-0001"}),
            ("subject: Welcome: all set", {"subject": "Welcome: all set"}),
            (
                '- 002 员工档案: {"employee_id":"WZ001","count":2}',
                {"employee_id": "WZ001", "count": 2},
            ),
            ("to: a\nto: b", {"to": "b"}),
            ("computer_model:\nnothing here", {}),
            ("a {broken} brace, and [1]", {}),
            ("", {}),
            ("to: x" + " " * 200_000 + "y", {"to": "x" + " " * 200_000 + "y"}),
        ],
        ids=lambda one: str(one)[:20],
    )
    def test_it_finds_what_a_text_names(self, text: str, facts: dict[str, Any]) -> None:
        assert facts_in(text) == facts


class TestCalling:
    def test_it_calls_its_tool_with_what_the_request_names(self) -> None:
        asked = UserSaid("order this:\nemployee: 张三\ncomputer_model: Dell\ncolour: red")
        wanted = reply(seen(asked))
        assert isinstance(wanted, ScriptedCall)
        assert wanted.tool == "apply_computer"
        assert json.loads(wanted.arguments) == {"employee": "张三", "computer_model": "Dell"}

    def test_it_leaves_out_what_it_is_not_told(self) -> None:
        wanted = reply(seen(UserSaid("employee: 张三")))
        assert isinstance(wanted, ScriptedCall)
        assert json.loads(wanted.arguments) == {"employee": "张三"}

    def test_the_same_conversation_gets_the_same_words(self) -> None:
        one = seen(UserSaid("employee: 张三"))
        other = Seen(99, one.system, one.messages, one.tools, streamed=True)
        assert reply(one) == reply(other)

    def test_without_a_tool_it_says_so(self) -> None:
        answer = json.loads(str(reply(seen(UserSaid("hello"), tools=()))))
        assert answer == {"success": False, "error": "I have no tool for this."}


class TestTelling:
    def test_work_is_told_as_a_short_json_object(self) -> None:
        content = {"success": True, "order_id": "PC-0001", "parts": [1, 2], "owner": {"id": 1}}
        assert json.loads(after(content)) == {"order_id": "PC-0001"}

    def test_a_look_is_told_in_a_sentence(self) -> None:
        told = after({"success": True, "exists": False}, tool="query_profile")
        assert told == 'query_profile: {"exists": false}'

    @pytest.mark.parametrize("content", ["order_id: PC-0001", {"result": "order_id: PC-0001"}])
    def test_what_a_person_has_found_out_is_told_on(self, content: Any) -> None:
        assert json.loads(after(content)) == {"order_id": "PC-0001"}

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ({"error": "out of order"}, "out of order"),
            ({"rejected": "It was not run.", "reason": "no budget"}, "no budget"),
            ({"skipped": "It was not run."}, "It was not run."),
            ("broken", "broken"),
            ({}, "it failed"),
        ],
    )
    def test_a_failure_is_owned_up_to(self, content: Any, why: str) -> None:
        answer = json.loads(after(content, failed=True))
        assert answer == {"success": False, "error": f"apply_computer: {why}"}
