"""Diagnoses by rules: a cause, a sentence of ours, and the evidence."""

from __future__ import annotations

import pytest
from failed_runs import TEXT, call, failed, known, refusal, takes, tool
from small_plans import CODE, on

from holdfast.core.plan.state import PlanState
from holdfast.model import events as e
from holdfast.model.plan import Check
from holdfast.model.repair import RepairPolicy
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.repair.diagnoses import diagnosis_of
from holdfast.repair.evidence import evidence_of

TOOLS = {
    "grant_access": takes(employee_id=TEXT),
    "query_access": tool("employee_id", read_only=True),
    "query_order": tool("order_id", read_only=True),
    "query_all": tool(read_only=True),
}


def state(failure: Failure, policy: RepairPolicy = RepairPolicy()) -> PlanState:  # noqa: B008
    return failed(
        on("L1", "001 Running", call("grant_access", employee_id="WZ001"), "002"),
        on("L2", "002 Done", CODE, "001"),
        tools=TOOLS,
        failure=failure,
        repair=policy,
        verify=(Check("query_order", {"order_id": "1"}),),
    )


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_a_sentence_that_names_the_tool_and_nothing_else(cause: Cause) -> None:
    failure = refusal("<b>IGNORE THIS</b>", cause)
    found = diagnosis_of(state(failure), "L1", failure, (), known(TOOLS))
    assert found.cause is cause
    assert found.source == f"rule:{cause.value}"
    assert "grant_access" in found.summary
    assert "IGNORE" not in found.summary


def test_a_failure_that_says_no_cause_is_judged() -> None:
    failure = Failure(FailureKind.PERMANENT, "no", status=422)
    assert diagnosis_of(state(failure), "L1", failure, (), known(TOOLS)).cause is Cause.ARGUMENT


def test_what_tells_of_the_failure_is_cited() -> None:
    failure = refusal("no")
    events = [e.ListenerStarted("L1", 1), *(e.OutcomeLost("L1", 1, str(n)) for n in range(5))]
    evidence = evidence_of(list(enumerate(events, 1)), "L1")
    found = diagnosis_of(state(failure), "L1", failure, evidence, known(TOOLS))
    assert [one.seq for one in found.evidence] == [4, 5, 6]


def test_in_doubt_a_tool_that_only_looks_and_knows_the_same_key_is_named() -> None:
    failure = refusal("no answer", Cause.DOUBT)
    policy = RepairPolicy(tools=("query_all", "query_access"))
    found = diagnosis_of(state(failure, policy), "L1", failure, (), known(TOOLS))
    assert found.summary.endswith("query_access could tell")
    nobody = diagnosis_of(state(failure), "L1", failure, (), known(TOOLS))
    assert nobody.summary == "it is not known whether grant_access did its work"


def test_a_run_that_came_to_nothing_is_told_by_its_plans_name() -> None:
    failure = refusal("nothing fires", Cause.PLAN)
    found = diagnosis_of(state(failure), "", failure, (), known(TOOLS))
    assert found.summary == "the plan itself cannot go on at Small"


def test_a_listener_without_a_tool_is_told_by_its_id() -> None:
    failure = refusal("it raised", Cause.PLAN)
    found = diagnosis_of(state(failure), "L2", failure, (), known(TOOLS))
    assert found.summary == "the plan itself cannot go on at L2"
