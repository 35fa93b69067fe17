"""A sketch of the most steps becomes a plan that is checked, rehearsed, told and drawn."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from asked_cases import said
from test_drafted import HERE

from holdfast.drawing.graph import render_svg, render_text
from holdfast.model.message import ToolOffer
from holdfast.repair.drafting import Draft, drafted, findings
from holdfast.repair.replies import Unusable
from holdfast.repair.sketch import MOST_CHECKS, MOST_STEPS, SKETCH_PLAN
from holdfast.repair.sketch_prompt import sketch_offer, sketch_prompt


def chained(length: int) -> list[dict[str, Any]]:
    first = {"id": "s0", "tool": "make_profile", "args": {"name": "张三"}}
    read = {"tool": "grant_access", "args": {"employee_id": "{s0.employee_id}", "area": "A"}}
    return [first, *({**read, "id": f"s{n}", "after": [f"s{n - 1}"]} for n in range(1, length))]


def beside_each_other(length: int) -> list[dict[str, Any]]:
    step = {"tool": "make_profile", "args": {"name": "Will Zhang"}}
    return [{**step, "id": f"s{n}"} for n in range(length)]


def each_after_all(length: int) -> list[dict[str, Any]]:
    return [
        {**one, "after": [f"s{n}" for n in range(place)]}
        for place, one in enumerate(beside_each_other(length))
    ]


def made(steps: list[dict[str, Any]]) -> Draft | Unusable:
    check = {"tool": "query_access", "args": {"employee_id": "WZ001"}, "expect": "result.ok"}
    sketch = {"goal": "Badges", "steps": steps, "check": [check] * MOST_CHECKS}
    return drafted(said("", (SKETCH_PLAN, sketch)), HERE, "drafted", now=0.0)


@pytest.mark.parametrize("shape", [chained, beside_each_other, each_after_all])
class TestFortySteps:
    def test_are_checked_rehearsed_and_told(self, shape: Any) -> None:
        draft = made(shape(MOST_STEPS))
        assert isinstance(draft, Draft), draft
        assert [*findings(draft.plan, HERE.catalog)] == []
        calls = [one for one in draft.rehearsal.calls if one.acts]
        assert (len(calls), all(one.asks for one in calls)) == (MOST_STEPS, True)
        assert (draft.rehearsal.reached, draft.rehearsal.cut) == (True, False)
        assert f"{MOST_STEPS}. s{MOST_STEPS - 1}: " in draft.outline

    def test_are_drawn_each_of_them(self, shape: Any) -> None:
        draft = made(shape(MOST_STEPS))
        assert isinstance(draft, Draft), draft
        picture = render_svg(draft.plan)
        ElementTree.fromstring(picture)
        words = render_text(draft.plan)
        for number in range(MOST_STEPS):
            assert re.search(rf">s{number} \w+<", picture)
            assert re.search(rf"\bs{number}\b", words)

    def test_one_more_is_too_many(self, shape: Any) -> None:
        found = made(shape(MOST_STEPS + 1))
        assert isinstance(found, Unusable)
        assert "steps: at most 40, not 41" in found.findings


def test_a_model_is_told_the_most_in_the_words_and_in_the_schema() -> None:
    offer = ToolOffer("make_profile", "Makes a profile.", {"type": "object"})
    prompt = sketch_prompt("Forty badges", [offer], HERE.tools)
    assert "at most 40" in prompt.system
    steps = sketch_offer(["make_profile"]).parameters["properties"]["steps"]
    assert steps["maxItems"] == MOST_STEPS == 40
