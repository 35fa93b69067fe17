"""Arguments that a service does not know any more, though the tool's declaration has them."""

from __future__ import annotations

from typing import Any

import pytest
from failed_runs import TEXT, call, failed, known, refusal, sound, takes, tool, work_of
from small_plans import CODE, on

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ToolFacts
from holdfast.model.repair import Level, RepairMode, RepairPolicy
from holdfast.model.retry import Cause, Failure
from holdfast.repair.diagnoses import diagnosis_of
from holdfast.repair.looking import auto_covers
from holdfast.repair.mentions import disowned

MEANT = "unknown field 'employee', did you mean 'staff_id'?"
UNKNOWN = refusal(MEANT, code="UNKNOWN_FIELD", field="employee", status=422)
OLD = takes(employee=TEXT, model=TEXT)
BOTH = tool("model", optional={"employee": TEXT, "staff_id": TEXT})
MEND = (
    "order does not know employee any more: mend the tool's declaration, then resume the run, or "
    "mend the plan as well and bring the run to it"
)
NO_LONGER_ANYTHING = "order cannot be given what the plan gives it"


def order(facts: ToolFacts, failure: Failure = UNKNOWN, **args: Any) -> PlanState:
    given = args or {"employee": "{001.context.who}", "model": "pro"}
    return failed(
        on("L1", "001 Running", call("order", **given), "002"),
        on("L2", "002 Done", CODE, "001"),
        tools={"order": facts},
        failure=failure,
        values={"who": "S9"},
    )


def summary(state: PlanState, facts: ToolFacts) -> str:
    tools = {"order": facts}
    work = work_of(state, tools)
    return diagnosis_of(state, work.id, work.failure, (), known(tools)).summary


@pytest.mark.parametrize(
    "facts",
    [OLD, takes(employee=TEXT, model=TEXT, staff_id=TEXT), ToolFacts({}, "1")],
    ids=["the new name is not declared", "the old one is required", "all is taken"],
)
def test_where_the_declaration_must_be_mended_that_is_said_and_nothing_proposed(
    facts: ToolFacts,
) -> None:
    state = order(facts)
    assert sound(state, {"order": facts}) == ()
    assert summary(state, facts) == MEND


@pytest.mark.parametrize(
    "facts",
    [BOTH, tool("model staff_id", optional={"employee": TEXT})],
    ids=["both may be given", "the new one is required"],
)
def test_a_name_that_the_declaration_has_is_proposed_and_a_person_decides(
    facts: ToolFacts,
) -> None:
    state = order(facts)
    (best,) = sound(state, {"order": facts})
    renamed = {"set": {"staff_id": "{001.context.who}"}, "drop": ["employee"]}
    assert best.patch.operations == ({"op": "set_args", "listener_id": "L1", **renamed},)
    assert best.patch.reason == "order calls employee staff_id now"
    assert best.verdict.level is Level.RENAME
    assert not auto_covers(RepairPolicy(RepairMode.AUTO, ("rename",)), best)
    assert summary(state, facts) == NO_LONGER_ANYTHING


def test_of_two_that_are_not_known_one_name_is_not_enough() -> None:
    facts = tool(optional={"employee": TEXT, "colour": TEXT, "staff_id": TEXT})
    failure = refusal("unknown field employee (did you mean staff_id?), unknown field colour")
    state = order(facts, failure, employee="S9", colour="red")
    assert work_of(state, {"order": facts}).disowned == ["employee", "colour"]
    assert sound(state, {"order": facts}) == ()
    assert "does not know colour any more" in summary(state, facts)


def test_a_value_that_is_refused_is_asked_for_as_ever() -> None:
    state = order(OLD, refusal("employee: unknown value", field="employee"))
    (best, *_) = sound(state, {"order": OLD})
    assert [one["op"] for one in best.patch.operations] == ["ask_first"]
    assert summary(state, OLD) == NO_LONGER_ANYTHING


def test_a_value_that_would_not_fit_the_old_name_goes_under_the_new_one() -> None:
    facts = tool("model", optional={"employee": {"type": "integer"}, "staff_id": TEXT})
    (best,) = sound(order(facts), {"order": facts})
    assert [one["op"] for one in best.patch.operations] == ["set_args"]


def test_the_cause_decides() -> None:
    state = order(OLD, refusal(MEANT, Cause.OUTAGE, field="employee"))
    assert summary(state, OLD) == "order is out of order, and may recover by itself"


NAMES = ("employee", "model", "order_id")
TOLD = {
    MEANT: ["employee"],
    "UNKNOWN_FIELD: unknown field 'employee', did you mean 'model'?": ["employee"],
    "order() got an unexpected keyword argument 'model'": ["model"],
    "Unrecognized key: order_id; known keys: employee, model": ["order_id"],
    "employee: Extra inputs are not permitted": ["employee"],
    "Additional properties are not allowed ('employee' was unexpected)": ["employee"],
    "'order_id' is not a valid property": ["order_id"],
    "field 'order_id' is not known; use employee": ["order_id"],
    "property model does not exist": ["model"],
    "UnknownField": [],
    "未知字段 employee，是否为 order_id？": ["employee"],
    "参数 'model' 不存在": ["model"],
    "字段order_id未知": ["order_id"],
    "不支持的参数：employee": ["employee"],
    "employee is unknown": [],
    "unknown field value for employee": [],
    "参数 employee 的值不存在": [],
    "unknown employee S9": [],
    "model must be one of: air, pro": [],
}


@pytest.mark.parametrize("text", TOLD, ids=range(len(TOLD)))
def test_it_is_the_name_that_stands_beside_the_words(text: str) -> None:
    assert disowned("", text, NAMES) == TOLD[text]


@pytest.mark.parametrize(
    ("field", "text", "found"),
    [
        ("body.employee", "unknown field", ["employee"]),
        ("employee", "field 'employee' is unknown", ["employee"]),
        ("employee.name", "unknown field 'name'", []),
        ("employee", "not found", []),
        ("model", "unknown field 'employee'", ["model"]),
    ],
)
def test_the_errors_own_field_decides(field: str, text: str, found: list[str]) -> None:
    assert disowned(field, text, NAMES) == found
