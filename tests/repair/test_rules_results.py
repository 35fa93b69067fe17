"""Results in which a tool calls something otherwise than the plan reads it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from failed_runs import TEXT, begun, call, failed, failing, known, refusal, sound, takes, tool
from machine import Machine
from small_plans import CODE, on, only

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ToolFacts
from holdfast.model.repair import Level, Look
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.repair.failed_work import FailedWork
from holdfast.repair.looking import look, sound_candidates
from holdfast.repair.rules_results import results

TOOLS = {"order": takes(employee=TEXT, model=TEXT), "ship": takes(order_id=TEXT)}


def ordered(result: Any, context: dict[str, Any] | None = None, **more: Any) -> Machine:
    """The order was placed; its result is not what the plan reads."""
    output = {"order_id": "{{result.order_id}}"} if context is None else context
    machine = begun(
        on(
            "L1",
            "001 Running",
            call("order", employee="{001.context.name}", model="X1"),
            "002",
            context=output,
        ),
        on("L2", "002 Done", call("ship", order_id="{002.context.order_id}"), "003"),
        on("L3", "003 Done", CODE, "001"),
        tools={name: ToolFacts({}, one.version) for name, one in TOOLS.items()},
        values={"name": "Will Zhang"},
        **more,
    )
    machine.report(only(machine), machine.outcome(only(machine), result))
    return machine


def contexts(machine: Machine) -> list[dict[str, Any]]:
    """Those of the drafts, the best first."""
    return [dict(one.operations[0]["context"]) for one in results(work(machine))]


def work(machine: Machine) -> FailedWork:
    listener_id = failing(machine.state)
    failure = machine.state.steps[listener_id].failure
    assert failure is not None
    return FailedWork(machine.state, listener_id, failure, known(TOOLS))


def looked(machine: Machine) -> Look:
    one = work(machine)
    return look(
        machine.state, one.id, one.failure, (), known(TOOLS), has_model=True, case_id="", now=0.0
    )


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ({"orderId": "PC-1"}, "result.orderId"),
        ({"data": {"order_id": "PC-1"}}, "result.data.order_id"),
        ({"order_number": "PC-1", "model": "X1"}, "result.order_number"),
    ],
)
def test_a_field_under_another_name_is_read_from_the_result_that_is_kept(
    result: dict[str, Any], path: str
) -> None:
    machine = ordered({"success": True, **result})
    assert contexts(machine) == [{"order_id": f"{{{{{path}}}}}"}]
    found = looked(machine)
    assert found.diagnosis.cause is Cause.RESULT_SHAPE
    assert found.proposal is not None
    assert not found.thinks
    success = found.proposal.verdict.success
    assert success is not None
    assert [one.tool for one in success.calls] == ["ship"]


def test_the_only_field_that_the_call_did_not_give_may_be_meant() -> None:
    machine = ordered({"success": True, "reference": "PC-1", "model": "X1", "parts": {"a": 1}})
    assert contexts(machine) == [{"order_id": "{{result.reference}}"}]
    found = looked(machine)
    assert found.proposal is not None
    assert found.proposal.shown["guessed"] is True
    assert found.thinks


@pytest.mark.parametrize(
    "result",
    [
        {"success": True},
        {"one": "PC-1", "other": "PC-2"},
        {"orderId": 7},
        "PC-1",
        [],
    ],
)
def test_what_cannot_be_told_or_does_not_fit_is_left_to_a_person(result: Any) -> None:
    assert contexts(ordered(result)) == []


def test_of_several_that_are_alike_each_is_offered() -> None:
    machine = ordered({"order_no": "PC-1", "order_key": "PC-2"})
    assert contexts(machine) == [
        {"order_id": "{{result.order_no}}"},
        {"order_id": "{{result.order_key}}"},
    ]
    of = (machine.state, "L1", work(machine).failure, (), known(TOOLS))
    assert all(one.shown["guessed"] for one in sound_candidates(*of, case_id="", now=0.0))


def test_what_no_tool_takes_may_be_of_any_kind() -> None:
    context = {"note": "order {{result.order_id}} of {001.context.name}"}
    machine = ordered({"orderId": 7}, context)
    assert contexts(machine) == [{"note": "order {{result.orderId}} of {001.context.name}"}]


def test_what_a_task_lacks_is_read_elsewhere_in_an_output_too() -> None:
    context = {"order_id": "{{result.order_id}}", "who": "{002.context.name}"}
    machine = ordered({"order_id": "PC-1"}, context)
    assert contexts(machine) == [{"order_id": "{{result.order_id}}", "who": "{001.context.name}"}]


def test_without_a_result_that_is_kept_there_is_nothing_to_read() -> None:
    machine = ordered({"order_id": "PC-1"})
    assert machine.state.steps["L1"].carried is None
    one = FailedWork(machine.state, "L1", Failure(FailureKind.PERMANENT, "no"), known(TOOLS))
    assert list(results(one)) == []


def test_an_output_that_reads_nothing_has_no_field_to_mend() -> None:
    machine = ordered({"orderId": "PC-1"})
    one = work(machine)
    one.listener = machine.state.plan.listeners["L3"]
    one.listener.listener = replace(one.listener.listener, success_output=None)
    assert list(results(one)) == []


class TestUnread:
    def state(self, tool_name: str) -> PlanState:
        facts = {"query_profile": tool("id", read_only=True), "order": tool("id", idempotent=True)}
        return failed(
            on("L1", "001 Running", call(tool_name, id="WZ001"), "002"),
            on("L2", "002 Done", CODE, "001"),
            tools=facts,
            failure=refusal("answered something that is not JSON", Cause.RESULT_SHAPE),
        )

    def test_a_look_may_be_taken_again_when_a_person_says_so(self) -> None:
        facts = {"query_profile": tool("id", read_only=True)}
        (one,) = sound(self.state("query_profile"), facts)
        assert one.patch.source == "rule:look_again"
        assert one.verdict.level is Level.LOOK

    def test_what_acts_is_not_done_again(self) -> None:
        assert sound(self.state("order"), {"order": tool("id", idempotent=True)}) == ()
