"""Drafts: what becomes of a sketch before a person sees it, and what that person is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from asked_cases import said

from holdfast.core.storing import plan_digest, record_from_json
from holdfast.model.approval import ToolFacts
from holdfast.model.plan import Plan
from holdfast.repair.drafting import Draft, draft_to_json, drafted, findings
from holdfast.repair.replies import Unusable
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.repair.surroundings import Surroundings
from holdfast.source.check import Catalog

TEXT = {"type": "string"}


def takes(*required: str, **more: Any) -> dict[str, Any]:
    properties = dict.fromkeys(required, TEXT) | more
    return {"type": "object", "properties": properties, "required": [*required]}


TOOLS = {
    "make_profile": ToolFacts(takes("name"), returns=takes(employee_id=TEXT)),
    "grant_access": ToolFacts(takes("employee_id", "area"), returns=takes(badge=TEXT)),
    "query_access": ToolFacts(takes("employee_id"), read_only=True),
}
CATALOG = Catalog(
    {name: one.parameters for name, one in TOOLS.items()},
    frozenset({"query_access"}),
    frozenset(),
    frozenset(),
)
HERE = Surroundings(CATALOG, TOOLS)
PROFILE = {"id": "a", "tool": "make_profile", "args": {"name": "张三"}}
BADGE = {"id": "b", "tool": "grant_access", "args": {"employee_id": "{a.employee_id}"}}


def made(*steps: dict[str, Any], here: Surroundings = HERE, **more: Any) -> Draft | Unusable:
    sketch = {"goal": "A badge", "steps": [*steps], **more}
    return drafted(said("", (SKETCH_PLAN, sketch)), here, "drafted", now=0.0)


def draft(*steps: dict[str, Any], **more: Any) -> Draft:
    found = made(*steps, **more)
    assert isinstance(found, Draft), found
    return found


def lines(*steps: dict[str, Any], **more: Any) -> list[str]:
    return draft(*steps, **more).outline.splitlines()


def test_a_person_is_told_steps_in_their_order_what_acts_what_is_asked_and_what_is_checked() -> (
    None
):
    looks = [
        {"tool": "query_access", "args": {"employee_id": "{a.employee_id}"}, "expect": "result.ok"},
        {"tool": "query_access", "args": {"employee_id": "WZ001"}},
    ]
    assert lines(BADGE, PROFILE, check=looks) == [
        "A model drew up this plan:",
        "A badge",
        "It calls, in this order:",
        '1. a: make_profile {"name":"张三"}',
        '2. b: grant_access {"employee_id":"{a.employee_id}"}',
        "These of them act, and each asks for approval first:",
        "1, 2",
        "It asks at the start for:",
        "- area",
        "It looks in the end whether it has succeeded:",
        '- query_access {"employee_id":"{a.employee_id}"} result.ok',
        '- query_access {"employee_id":"WZ001"}',
        "In the rehearsal the goal is reached.",
    ]


def test_of_a_plan_that_only_looks_nothing_is_said_to_act() -> None:
    assert lines({"id": "a", "tool": "query_access", "args": {"employee_id": "WZ001"}}) == [
        "A model drew up this plan:",
        "A badge",
        "It calls, in this order:",
        '1. a: query_access {"employee_id":"WZ001"}',
        "In the rehearsal the goal is reached.",
    ]


def test_a_goal_that_is_not_reached_is_said_with_the_conditions_that_stay_open() -> None:
    unknown = {**BADGE, "args": {"employee_id": "{a.number}"}}
    *_, told, stops, first, second = lines(PROFILE, unknown)
    assert told == "In the rehearsal the goal is not reached."
    assert stops == "- a: {{result.number}}: result has no 'number' (it is empty)"
    assert first.startswith("- b: ")
    assert second.startswith("- finish: ")


def test_what_hides_in_a_value_is_spelled_out() -> None:
    hidden = {**PROFILE, "args": {"name": "\u202egnahZ\u202c"}}
    assert '1. a: make_profile {"name":"⟨202E⟩gnahZ⟨202C⟩"}' in lines(hidden)


def test_a_reply_that_is_no_sketch_is_told_as_such() -> None:
    found = drafted(said("I would rather not."), HERE, "drafted", now=0.0)
    assert isinstance(found, Unusable)


def test_what_the_plans_checker_finds_makes_a_sketch_unusable() -> None:
    elsewhere = Surroundings(replace(CATALOG, tools={}), TOOLS)
    found = made(PROFILE, here=elsewhere)
    assert isinstance(found, Unusable)
    [finding] = found.findings
    assert finding.startswith("listeners.0.tool: there is no tool 'make_profile'")


def test_a_plan_without_mistakes_has_no_findings() -> None:
    assert [*findings(draft(PROFILE).plan, CATALOG)] == []


def test_as_json_it_is_all_there_and_the_plan_is_the_one_that_its_digest_names() -> None:
    found = draft(BADGE, PROFILE)
    told = draft_to_json(found)
    assert (told["goal"], told["outline"]) == ("A badge", found.outline)
    assert [one["id"] for one in told["sketch"]["steps"]] == ["b", "a"]
    assert [one["tool"] for one in told["rehearsal"]["calls"]] == ["make_profile", "grant_access"]
    assert told["rehearsal"]["reached"] is True
    plan = record_from_json(Plan, told["plan"])
    assert plan == found.plan
    assert plan_digest(plan) == told["digest"] == found.digest
