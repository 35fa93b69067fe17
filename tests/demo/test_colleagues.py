"""The scripted model of the office: it reads, calls with what it has read, and tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.demo.colleagues import facts_in, reply, the_asked_colleague
from holdfast.model.message import (
    Message,
    ModelReply,
    ModelSaid,
    ToolCall,
    ToolOffer,
    ToolReturned,
    Usage,
    UserSaid,
)
from holdfast.model.repair import Diagnosis, Evidence, PlanPatch, Proposal, Verdict
from holdfast.model.retry import Cause
from holdfast.repair.contract import Asked, Chosen, read_reply
from holdfast.repair.prompt import prompt_of
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


class TestDiagnosing:
    STARTED = Evidence(1, '{"event":"run started"}')
    FAILED = Evidence(3, '{"event":"failed","cause":"precondition"}')
    FIRST = Proposal(PlanPatch("k1", "d0", ({"op": "skip", "listener_id": "L001"},)), Verdict("d1"))

    def chosen(self, *candidates: Proposal) -> Chosen:
        """What a case's contract makes of its reply."""
        known = Diagnosis(Cause.PRECONDITION, "something must be first", source="rule:precondition")
        found = (self.STARTED, self.FAILED)
        asked = Asked("inst_1", "case_1", 1, found, known, lambda *_: (), candidates)
        prompt = prompt_of(asked, "")
        wanted = the_asked_colleague(
            Seen(1, prompt.system, (UserSaid(prompt.message),), prompt.tools)
        )
        assert isinstance(wanted, ScriptedCall)
        call = ToolCall("call_1", wanted.tool, json.loads(wanted.arguments))
        read = read_reply(ModelReply("", (call,), Usage(), "office-colleagues"), asked, "")
        assert isinstance(read, Chosen), read
        return read

    def test_it_chooses_the_first_repair_and_cites_what_happened_last(self) -> None:
        chosen = self.chosen(self.FIRST)
        assert chosen.choice == "k1"
        assert chosen.diagnosis.cause is Cause.PRECONDITION
        assert chosen.diagnosis.evidence == (self.FAILED,)
        assert chosen.diagnosis.summary == "The model says: “something must be first”"

    def test_without_a_repair_it_leaves_the_failure_to_a_person(self) -> None:
        assert self.chosen().choice == "person"
