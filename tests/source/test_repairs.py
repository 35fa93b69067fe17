"""`repair` in a plan file: what its author lets repairs do."""

from __future__ import annotations

import pytest

from holdfast.core.storing import plan_digest, record_from_json, record_to_json
from holdfast.errors import PlanRejected
from holdfast.model.plan import Plan
from holdfast.model.repair import RepairLimits, RepairMode, RepairPolicy
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan

PLAN = """
plan_id: small
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: code,
     code_snippet: "result = {}", success_output: {task_id: "001", status: Done}}
"""


def read(repair: str = "", catalog: Catalog = Catalog()) -> Plan:  # noqa: B008
    return load_plan(f"{PLAN}\n{repair}\n", "plan.yaml", catalog)


def problems(repair: str, catalog: Catalog = Catalog()) -> list[str]:  # noqa: B008
    with pytest.raises(PlanRejected) as rejected:
        read(repair, catalog)
    return [one.message for one in rejected.value.problems]


def test_without_a_word_repairs_are_proposed() -> None:
    assert read().repair == RepairPolicy()
    assert read().repair.mode is RepairMode.PROPOSE


@pytest.mark.parametrize("mode", RepairMode)
def test_a_mode_alone_is_the_policy(mode: RepairMode) -> None:
    assert read(f"repair: {mode}").repair == RepairPolicy(mode=mode)


def test_the_whole_policy_is_read_and_stored() -> None:
    text = (
        "repair: {mode: auto, auto: [rename, look], write: true, tools: [query_profile],\n"
        "  role: hr_lead, most: {patches: 3, requests: 2, tokens: 40, wait: 60}}"
    )
    plan = read(text)
    most = RepairLimits(3, 2, 40, 60)
    tools = ("query_profile",)
    policy = RepairPolicy(RepairMode.AUTO, ("rename", "look"), True, tools, "hr_lead", most)
    assert plan.repair == policy
    assert record_from_json(Plan, record_to_json(plan)) == plan


def test_a_plan_that_says_nothing_keeps_its_digest() -> None:
    assert "repair" not in record_to_json(read())
    assert plan_digest(read()) == plan_digest(read("repair: propose"))


def test_every_mistake_is_told_at_once() -> None:
    text = (
        "repair: {auto: [rename, everything], tools: [nowhere],\n"
        "  most: {patches: 99, requests: -1, tokens: 1000000, wait: 1000000}}"
    )
    told = problems(text, Catalog(tools={"query_profile": {}}))
    assert len(told) == 7
    assert "auto may name rename, look, lesson" in told
    assert "auto counts with mode: auto only" in told
    assert any("nowhere" in one for one in told)


def test_an_unknown_mode_is_named() -> None:
    assert any("automatic" in one for one in problems("repair: automatic"))
