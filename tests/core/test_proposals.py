"""Proposals: what a person is shown of a call, what may be changed, what has changed since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from holdfast.core.interactions.calls import (
    bind_consent,
    call_name,
    change_form,
    differences,
    missing_arguments,
    shown_call,
    unknown_arguments,
)
from holdfast.core.run.state import QuestionState
from holdfast.forms.validation import validate
from holdfast.model.commands import ToolFacts
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import InteractionRequest, InteractionType

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "default": 3},
        "model": {"type": "string", "enum": ["air", "pro"]},
        "password": {"type": "string", "format": "password"},
    },
    "required": ["amount", "model"],
}
TOOL = ToolFacts(PARAMETERS, "7")


def test_what_is_shown_is_the_tool_its_version_and_the_very_arguments() -> None:
    args: ClassVar[dict[str, Any]] = {"amount": 5}
    shown = shown_call("order", args, TOOL)
    assert shown == {"tool": "order", "args": {"amount": 5}, "tool_version": "7"}
    assert shown["args"] is not args


def test_what_takes_effect_without_being_given_is_shown_too() -> None:
    properties = {"path": {}, "deep": {"default": True}, "until": {"default": None}, "any": True}
    tool = ToolFacts({"properties": properties}, "7")
    assert shown_call("wipe", {"path": "/"}, tool)["defaults"] == {"deep": True, "until": None}
    assert shown_call("wipe", {"deep": False}, tool)["defaults"] == {"until": None}
    assert "defaults" not in shown_call("wipe", {"deep": False, "until": 1}, tool)


class TestTheFormOfChanges:
    def test_every_argument_may_be_changed_and_none_must(self) -> None:
        form = change_form(PARAMETERS)
        assert [(one.name, one.required, one.default) for one in form.fields] == [
            ("amount", False, None),
            ("model", False, None),
        ]
        assert validate(form, {}, partial=True).values == {}

    def test_it_keeps_the_tools_rules(self) -> None:
        errors = validate(change_form(PARAMETERS), {"amount": 0, "model": "mini"}).errors
        assert set(errors) == {"amount", "model"}

    def test_a_plans_fields_enrich_it_but_hide_nothing(self) -> None:
        model = Field(
            "model", FieldType.TEXT, "电脑型号", default="pro", visible_if="values.amount > 1"
        )
        _, enriched = change_form(PARAMETERS, Form((model,))).fields
        assert enriched.label == "电脑型号"
        assert (enriched.visible_if, enriched.default) == (None, None)

    def test_a_tool_without_arguments_has_nothing_to_change(self) -> None:
        assert change_form({}) == Form()


@pytest.mark.parametrize(
    ("args", "missing"),
    [
        ({}, ["amount", "model"]),
        ({"amount": None, "model": "air"}, ["amount"]),
        ({"amount": 0, "model": ""}, []),
    ],
)
def test_an_argument_is_missing_when_it_is_absent_or_null(
    args: dict[str, Any], missing: list[str]
) -> None:
    assert missing_arguments(PARAMETERS, args) == missing
    assert missing_arguments({}, args) == []


def test_null_is_given_where_the_tool_takes_null() -> None:
    until = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    tool = {"properties": {"until": until}, "required": ["until"]}
    assert missing_arguments(tool, {"until": None}) == []
    assert missing_arguments(tool, {}) == ["until"]


def test_an_argument_is_unknown_only_where_the_tool_shuts_others_out() -> None:
    closed = {**PARAMETERS, "additionalProperties": False}
    args = {"amount": 1, "bogus": 2, "more": 3}
    assert unknown_arguments(ToolFacts(closed), args) == ["bogus", "more"]
    assert unknown_arguments(ToolFacts(closed), {"amount": 1}) == []
    assert unknown_arguments(ToolFacts(PARAMETERS), args) == []
    assert unknown_arguments(ToolFacts({**closed, "patternProperties": {"^b": {}}}), args) == []
    assert unknown_arguments(ToolFacts({"additionalProperties": False}), {"x": 1}) == ["x"]


class TestConsent:
    def test_it_is_bound_to_call_tool_version_and_arguments(self) -> None:
        call = call_name("inst_000001", "L001", 2)
        assert call == "inst_000001:L001:2"
        digest = bind_consent(call, "order", "7", {"a": 1, "b": 2})
        assert digest == bind_consent(call, "order", "7", {"b": 2, "a": 1})
        others = [
            bind_consent(call_name("inst_000001", "L001", 3), "order", "7", {"a": 1, "b": 2}),
            bind_consent(call, "cancel", "7", {"a": 1, "b": 2}),
            bind_consent(call, "order", "8", {"a": 1, "b": 2}),
            bind_consent(call, "order", "7", {"a": 1, "b": True}),
        ]
        assert digest not in others


class TestDifferences:
    args: ClassVar[dict[str, Any]] = {"amount": 5, "model": "air", "who": "张三"}
    before = QuestionState(
        InteractionRequest(
            "q1",
            "inst_000001",
            InteractionType.TOOL_APPROVAL,
            "Run order?",
            context=shown_call("order", args, TOOL),
        ),
        "L001",
        1,
        "approval",
        opened_at=0.0,
        opened_seq=1,
        args=args,
        consent="digest",
    )

    def told(self, args: dict[str, Any], version: str = "7") -> list[str]:
        shown = shown_call("order", args, replace(TOOL, version=version))
        other = replace(self.before, consent="another")
        words, context = differences([other, self.before], "digest", shown)
        assert context["args"] == self.args
        return words.splitlines()[1:]

    def test_every_change_is_said(self) -> None:
        assert self.told({"amount": 6, "model": "air", "note": "quick"}) == [
            "- amount: 5 has become 6",
            '- note: new, "quick"',
            '- who: gone, was "张三"',
        ]

    def test_another_version_of_the_tool_is_a_change(self) -> None:
        assert self.told(self.args, "8") == ["- the tool order itself is another version"]

    def test_another_default_is_a_change_where_it_takes_effect(self) -> None:
        tools = [ToolFacts({"properties": {"fee": {"default": fee}}}, str(fee)) for fee in (0, 100)]
        old, new = (shown_call("order", self.args, one) for one in tools)
        asked = replace(self.before.request, context=old)
        words, _ = differences([replace(self.before, request=asked)], "digest", new)
        assert words.splitlines()[2:] == ["- fee: 0 has become 100"]
        given = {**self.args, "fee": 0}
        asked = replace(asked, context=shown_call("order", given, tools[0]))
        before = replace(self.before, request=asked, args=given)
        words, _ = differences([before], "digest", shown_call("order", given, tools[1]))
        assert "fee" not in words

    def test_true_is_not_one(self) -> None:
        self.before = replace(self.before, args={"amount": 1})
        self.args = {"amount": 1}
        assert self.told({"amount": True}) == ["- amount: 1 has become true"]

    def test_an_edited_consent_is_compared_with_what_it_was_edited_to(self) -> None:
        self.before = replace(self.before, args={**self.args, "amount": 50})
        self.args = {**self.args, "amount": 50}
        assert self.told(self.args) == []

    def test_a_consent_that_nobody_remembers_has_changed_somehow(self) -> None:
        shown = shown_call("order", self.args, TOOL)
        assert differences([], "digest", shown) == ("What was consented to has changed.", {})


def test_a_change_to_null_is_one_where_the_tool_takes_null() -> None:
    schema = {"properties": {"to": {"type": "string"}, "note": {"type": ["string", "null"]}}}
    assert [one.nullable for one in change_form(schema).fields] == [False, True]
