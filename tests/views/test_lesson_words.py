"""Lessons of listeners that no plan has any more are told in words, in every language."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from holdfast.core.repair.records import Operation
from holdfast.i18n.catalogue import worded
from holdfast.views.lesson_words import kept_words

ITSELF = {"listener_id": "@listener"}
NEW = {"listener_id": "@new1", "listener_type": "tool", "tool": "pay", "args": {"n": 7}}
WAIT = {"listener_id": "@new1", "listener_type": "wait_until", "after": "1d"}

TOLD: dict[str, tuple[dict[str, Any], str]] = {
    "arguments": (
        {
            "op": "set_args",
            **ITSELF,
            "set": {"employee_id": "{@main.context.id}"},
            "drop": ["employee"],
        },
        'the listener passes employee_id = "{main.context.id}"; '
        "the listener does not pass employee any more",
    ),
    "of another listener": (
        {"op": "set_args", "listener_id": "L2", "set": {"to": "a@example.com"}},
        'L2 passes to = "a@example.com"',
    ),
    "an output": (
        {"op": "set_output", **ITSELF, "context": {"badge": "{{result.number}}"}},
        "the listener gives its task badge",
    ),
    "no output": (
        {"op": "set_output", **ITSELF, "context": {}},
        "the listener gives its task nothing",
    ),
    "retries": (
        {"op": "set_retry", **ITSELF, "timeout": 30},
        "the listener is retried in another way, or has another time limit",
    ),
    "another tool": (
        {"op": "use_tool", **ITSELF, "tool": "pay_2", "args": {}},
        "the listener calls pay_2 with {}, and not what it called",
    ),
    "a step before": (
        {"op": "insert_before", **ITSELF, "task": {"task_id": "@new1"}, "listener": NEW},
        'before the listener a step is put in: calls pay with {"n":7}',
    ),
    "new steps": (
        {"op": "add", "tasks": [], "listeners": [NEW, WAIT]},
        'a step is new: calls pay with {"n":7}; a step is new: wait_until',
    ),
    "a question": (
        {"op": "ask_first", **ITSELF, "fields": [{"name": "area", "type": "text"}]},
        "before the listener a person is asked for area",
    ),
    "a yes": (
        {"op": "ask_first", **ITSELF, "choice": {"title": "Ready?", "message": ""}},
        "before the listener a person is asked to confirm: Ready?",
    ),
    "nothing": ({"op": "skip", **ITSELF}, "the listener is skipped"),
}


@pytest.mark.parametrize("what", TOLD)
def test_an_operation_is_told_in_words(what: str) -> None:
    operation, words = TOLD[what]
    told = kept_words(operation)
    assert told == words
    assert any("\u4e00" <= one <= "\u9fff" for one in worded(told, "zh"))


def test_every_kind_of_operation_is_told() -> None:
    assert len({operation["op"] for operation, _ in TOLD.values()}) == len(get_args(Operation))


def test_what_others_wrote_is_bounded_and_hides_nothing() -> None:
    told = kept_words({"op": "set_args", **ITSELF, "set": {"a\u202eb": "x" * 5_000}})
    assert "\u202e" not in told
    assert len(told) < 300
