"""Bare words: which field they are for, and what they come to as its value."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.interactions.filling import as_said, spoken_field, spoken_secret
from holdfast.model.form import Field, FieldType, Form, Option
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)

A = InteractionAction
T = InteractionType
MODELS = (
    Option("mac", "MacBook Pro"),
    Option("thinkpad", "ThinkPad X1"),
    Option("custom", "Another", requires_input=True),
)


def field(kind: FieldType = FieldType.TEXT, name: str = "x", **more: Any) -> Field:
    return Field(name, kind, **more)


def named(
    option: InteractionOption,
    *fields: Field,
    type: InteractionType = T.MISSING_INFO,  # noqa: A002
    **context: Any,
) -> str | None:
    request = InteractionRequest(
        "q", "s", type, "?", context=context, options=(option,), form=Form(fields)
    )
    found = spoken_field(request, option)
    return None if found is None else found.name


def option(action: InteractionAction, **more: Any) -> InteractionOption:
    return InteractionOption("o", "O", action, **more)


PROVIDE = option(A.PROVIDE_INFO)


def test_words_are_for_the_one_field_that_is_open() -> None:
    assert named(PROVIDE, field(name="key")) == "key"
    assert named(PROVIDE, field(name="key"), field(name="note", required=False)) == "key"
    assert named(PROVIDE, field(name="a", required=False)) == "a"
    assert named(PROVIDE, field(name="a"), field(name="b")) is None
    assert named(PROVIDE) is None


def test_of_a_call_the_field_that_it_lacks_is_open() -> None:
    fields = (field(name="to", required=False), field(name="amount", required=False))
    about = {"type": T.TOOL_APPROVAL, "tool": "pay", "args": {"to": "Will"}}
    assert named(PROVIDE, *fields, **about) == "amount"
    assert named(PROVIDE, *fields, type=T.TOOL_APPROVAL, args="all") is None


def test_words_beside_a_choice_are_a_value_only_where_it_requires_input() -> None:
    asks = {"requires_input": True}
    assert named(option(A.APPROVE_AND_EXECUTE), field()) is None
    assert named(option(A.APPROVE_AND_EXECUTE, **asks), field()) == "x"
    assert named(option(A.CUSTOM), field()) is None
    assert named(option(A.CUSTOM, **asks), field()) == "x"
    assert named(option(A.REJECT_WITH_REASON, **asks), field()) is None
    approval = {"type": T.TOOL_APPROVAL, "tool": "pay", "args": {}}
    assert named(option(A.APPROVE_AND_EXECUTE, **asks), field(), **approval) is None


def test_a_secret_is_known_before_it_is_said() -> None:
    options = (PROVIDE, InteractionOption("skip", "Skip", A.SKIP))
    for kind, secret in ((FieldType.SECRET, True), (FieldType.TEXT, False)):
        request = InteractionRequest(
            "q", "s", T.MISSING_INFO, "?", options=options, form=Form((field(kind),))
        )
        assert (spoken_secret(request, "o") is not None) == secret
        assert spoken_secret(request, "skip") is None
        assert spoken_secret(request, None) is None


@pytest.mark.parametrize(
    ("kind", "words", "value"),
    [
        (FieldType.TEXT, "12", "12"),
        (FieldType.NUMBER, "12.5", 12.5),
        (FieldType.NUMBER, "many", "many"),
        (FieldType.NUMBER, "NaN", "NaN"),
        (FieldType.BOOLEAN, " Yes ", True),
        (FieldType.BOOLEAN, "否", False),
        (FieldType.BOOLEAN, "perhaps", "perhaps"),
        (FieldType.RADIO, "mac", "mac"),
        (FieldType.RADIO, "thinkpad x1", "thinkpad"),
        (FieldType.SELECT, "2", "thinkpad"),
        (FieldType.SELECT, "a Framework", {"value": "custom", "text": "a Framework"}),
        (FieldType.MULTISELECT, "mac，2", ["mac", "thinkpad"]),
    ],
)
def test_words_become_what_the_field_takes(kind: FieldType, words: str, value: object) -> None:
    assert as_said(field(kind, options=MODELS), words) == value


def test_a_choice_that_is_not_there_is_left_for_the_field_to_refuse() -> None:
    assert as_said(field(FieldType.RADIO, options=MODELS[:2]), "a Framework") == "a Framework"
