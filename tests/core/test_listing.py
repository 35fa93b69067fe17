"""Lists in a question's details, and what of its context a person is shown beside them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.interactions.listing import listed_results, listed_tasks, shown_context
from holdfast.model.interaction import InteractionRequest, InteractionType

TASKS = [
    {"id": "pay", "description": "Pay it", "type": "pay", "args": {"n": 5}, "dependencies": []},
    {"id": "mail", "description": "", "type": "mail", "args": {}, "dependencies": ["pay", "look"]},
    {"id": "bare"},
]
LINES = 'pay: Pay it: pay {"n":5}\nmail: mail; needs first: pay, look\nbare'


def question(context: dict[str, Any], details: str) -> InteractionRequest:
    choice = InteractionType.USER_CHOICE
    return InteractionRequest("q", "r", choice, "Which?", details=details, context=context)


def test_a_task_is_a_line_with_its_call_and_what_it_needs_first() -> None:
    assert listed_tasks(TASKS) == LINES


def test_no_more_is_listed_than_a_person_reads() -> None:
    lines = listed_tasks([{"id": f"t{n}"} for n in range(40)]).split("\n")
    assert (len(lines), lines[-1]) == (31, "…")


def test_what_the_details_list_is_not_shown_twice() -> None:
    assert shown_context(question({"tasks": TASKS, "more": 1}, LINES)) == {"more": 1}
    results = {"load": [1, 2]}
    assert shown_context(question({"results": results}, listed_results(results))) == {}


@pytest.mark.parametrize(
    "context",
    [
        {"tasks": TASKS},
        {"tasks": "pay"},
        {"tasks": ["pay"]},
        {"tasks": {"id": "pay"}},
        {"tasks": 5},
        {"results": "pay"},
        {"results": {"load": 1}},
    ],
)
def test_what_an_author_gives_beside_other_details_is_shown(context: dict[str, Any]) -> None:
    assert shown_context(question(context, "Look closely.")) == context
