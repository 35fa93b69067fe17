"""What rules may look at: the call, what it was sent, and what a person could be asked for."""

from __future__ import annotations

import pytest
from failed_runs import TEXT, begun, call, failed, known, refusal, takes, tool, work_of
from machine import Machine
from small_plans import CALLING_CODE, CODE, on

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ApprovalMode, ApprovalRule, ToolFacts
from holdfast.model.form import Field, FieldType, Validation
from holdfast.model.plan import Check, ToolAction
from holdfast.model.repair import RepairPolicy
from holdfast.model.retry import Failure
from holdfast.repair.failed_work import FailedWork, tools_of, with_default

ORDER = takes(name=TEXT, amount={"type": "integer"}, area=TEXT)
TOOLS = {"order": ORDER}
NO = refusal("no")


def ordering(failure: Failure = NO, facts: ToolFacts = ORDER, **args: object) -> FailedWork:
    state = failed(
        on("L1", "001 Running", ToolAction("order", args), "002"),
        on("L2", "002 Done", CODE, "001"),
        tools=TOOLS,
        values={"name": "Will Zhang"},
        failure=failure,
    )
    return work_of(state, {"order": facts})


class TestSent:
    def test_it_is_what_the_journal_says_was_sent(self) -> None:
        work = ordering(name="{001.context.name}", amount=5)
        assert work.sent == {"name": "Will Zhang", "amount": 5}

    def test_before_anything_was_sent_it_is_what_would_be_as_far_as_that_is_known(self) -> None:
        work = ordering(name="{001.context.name}", area="{001.context.area}")
        assert work.step.args is None
        assert work.sent == {"name": "Will Zhang"}

    def test_a_listener_that_never_fired_has_sent_nothing(self) -> None:
        state = ordering(name="x").state
        later = FailedWork(state, "L2", NO, known(TOOLS))
        assert later.sent == {}
        assert later.step.firing == 1


class TestSchema:
    def test_what_the_tool_does_not_take_and_what_the_plan_lacks_are_told(self) -> None:
        work = ordering(name="x", colour="red")
        assert work.unknown == ["colour"]
        assert work.lacking == ["amount", "area"]

    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "object", "properties": {}, "additionalProperties": True},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ],
    )
    def test_a_tool_that_may_take_anything_refuses_no_name(self, schema: dict[str, object]) -> None:
        assert ordering(facts=ToolFacts(schema, "1"), colour="red").unknown == []

    def test_a_tool_that_is_gone_tells_nothing(self) -> None:
        state = ordering(name="x").state
        work = FailedWork(state, "L1", NO, known({}))
        assert (work.unknown, work.lacking, dict(work.properties)) == ([], [], {})


class TestBlame:
    @pytest.mark.parametrize(
        ("failure", "accused", "suspects"),
        [
            (refusal("no", field="args.area"), ["area"], ["area"]),
            (refusal("there is no room 'R7'"), ["area"], ["area"]),
            (refusal("amount: too high"), ["amount"], ["amount"]),
            (refusal("the amount in that area"), [], ["amount", "area"]),
            (refusal("no", field="colour"), [], []),
            (refusal("no"), [], []),
        ],
    )
    def test_the_first_sign_that_tells_counts(
        self, failure: Failure, accused: list[str], suspects: list[str]
    ) -> None:
        work = ordering(failure, name="x", amount=1, area="R7")
        assert (work.accused, work.suspects) == (accused, suspects)

    def test_the_only_argument_is_suspected_where_no_other_is_named(self) -> None:
        assert ordering(name="x").suspects == ["name"]
        assert ordering(refusal("area: is missing"), name="x").suspects == []


class TestAsking:
    def test_a_default_that_the_field_would_refuse_is_left_out(self) -> None:
        short = Field("note", validation=Validation(max_length=3))
        assert with_default(short, "abc").default == "abc"
        assert with_default(short, "abcd") == short
        assert with_default(short, None) == short

    def test_a_secret_has_none(self) -> None:
        hidden = Field("token", FieldType.SECRET)
        assert with_default(hidden, "abc") == hidden
        assert with_default(Field("token"), f"Bearer secret:{'0' * 32}").default is None


def test_values_of_the_run_are_found_by_name_the_main_tasks_first() -> None:
    machine: Machine = begun(
        on("L1", "001 Running", CODE, "002", context={"name": "other", "size": 5}),
        on("L2", "002 Done", call("order"), "003"),
        tools=TOOLS,
        values={"name": "Will Zhang"},
    )
    effect = next(iter(machine.flying.values()))
    machine.report(effect, machine.outcome(effect, {}))
    state: PlanState = machine.state
    work = FailedWork(state, "L2", NO, known(TOOLS))
    assert list(work.sources("name")) == [("001", "context", "name"), ("002", "context", "name")]
    assert work.source("name", Field("name")) == ("001", "context", "name")
    assert work.source("size", Field("size")) is None
    assert work.source("colour", Field("colour")) is None


def test_a_repair_may_call_what_the_plan_calls_and_what_its_author_names() -> None:
    tools = {
        "plain": tool(),
        "query_x": tool(read_only=True),
        "extra": tool(),
        "closed": tool(approval=ApprovalRule(ApprovalMode.DISABLED)),
        "stranger": tool(),
    }
    state = failed(
        on("L1", "001 Running", CALLING_CODE, "002"),
        on("L2", "002 Done", call("plain"), "001"),
        tools=tools,
        failure=NO,
        repair=RepairPolicy(tools=("extra", "closed", "gone")),
        verify=(Check("query_x"),),
    )
    work = FailedWork(state, "L2", NO, known(tools))
    assert list(tools_of(work.plan)) == ["plain", "keyed", "plain", "query_x"]
    assert list(work.callable) == ["plain", "query_x", "extra"]
