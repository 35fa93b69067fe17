"""Whom an inserted call is about: said by the run under another name, or asked of a person."""

from __future__ import annotations

from typing import Any

import pytest
from failed_runs import TEXT, call, failed, proposed, refusal, sound, takes, work_of
from hypothesis import given
from hypothesis import strategies as st
from small_plans import CODE, on

from holdfast.core.plan.state import PlanState
from holdfast.language.strict import digest
from holdfast.model.approval import ToolFacts
from holdfast.model.form import Field, Form
from holdfast.model.repair import Level, RepairPolicy
from holdfast.model.retry import Cause
from holdfast.repair.rules_people import people

ORDER = takes(employee=TEXT, computer_model=TEXT)
SHIP = takes(order_id=TEXT)
ASKED = {"name": "Will Zhang", "computer_model": "MacBook Pro", "order_id": "PC-9"}
NO_ORDER = refusal("no order 'PC-9': apply for the computer first", Cause.PRECONDITION)


def tools_of(order: ToolFacts = ORDER) -> dict[str, ToolFacts]:
    return {"apply_computer": order, "outbound": SHIP}


def shipping(
    order: ToolFacts = ORDER,
    values: dict[str, Any] = ASKED,
    labels: dict[str, str] | None = None,
    told: dict[str, Any] | None = None,
) -> PlanState:
    """An order is shipped that nobody has made; before that a call told what it told."""
    inputs = Form(tuple(Field(name, label=label) for name, label in (labels or {}).items()))
    told = told or {"kept": 1}
    context = {name: f"{{{{result.{name}}}}}" for name in told}
    return failed(
        on("L1", "001 Running", call("hire"), "002", context=context),
        on("L2", "002 Done", call("outbound", order_id="{001.context.order_id}"), "003"),
        on("L3", "003 Done", CODE, "001"),
        tools={**tools_of(order), "hire": ToolFacts({}, "1")},
        values=values,
        results=(told,),
        failure=NO_ORDER,
        repair=RepairPolicy(tools=("apply_computer",)),
        inputs=inputs,
    )


def whom(state: PlanState, order: ToolFacts = ORDER) -> dict[str, Any]:
    return dict(people(work_of(state, tools_of(order)), order, {}))


def test_the_order_is_for_the_person_of_the_run_and_its_number_is_handed_on() -> None:
    (best, *_) = sound(shipping(), tools_of())
    ordering, reading = best.patch.operations
    assert ordering["listener"]["args"] == {
        "computer_model": "{001.context.computer_model}",
        "employee": "{001.context.name}",
    }
    assert reading == {
        "op": "set_args",
        "listener_id": "L2",
        "set": {"order_id": "{R1.context.order_id}"},
    }
    assert best.verdict.level is Level.ACT
    assert best.shown["guessed"] is True
    assert best.verdict.success is not None
    assert best.verdict.success.reached
    assert best.verdict.success.questions == ()
    calls = {one.tool: dict(one.args) for one in best.verdict.success.calls}
    assert calls["apply_computer"]["employee"] == "Will Zhang"
    assert calls["outbound"]["order_id"] == "‹R1.order_id›"


@pytest.mark.parametrize(
    ("name", "label"),
    [("applicant", ""), ("employee_name", ""), ("who", "员工"), ("for_whom", "收款人 (payee)")],
)
def test_an_argument_says_by_its_name_or_title_that_it_is_a_person(name: str, label: str) -> None:
    order = takes(**{name: {**TEXT, "title": label} if label else TEXT})
    assert whom(shipping(order), order) == {name: "{001.context.name}"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("employee", {"title": "工号"}),
        ("employee", {"description": "the number of the employee"}),
        ("employee_id", {}),
        ("staff_email", {}),
        ("product_name", {}),
        ("title", {}),
        ("employee", {"minLength": 40}),
        ("employee", {"type": "integer"}),
        ("employee", {"enum": ["sales", "stock"]}),
    ],
)
def test_of_other_arguments_and_values_that_do_not_fit_nothing_is_guessed(
    name: str, more: dict[str, Any]
) -> None:
    order = takes(**{name: {**TEXT, **more}})
    assert whom(shipping(order), order) == {}


def test_what_is_given_and_what_need_not_be_is_left_alone() -> None:
    work = work_of(shipping(), tools_of())
    assert dict(people(work, ORDER, {"employee": "张三"})) == {}
    optional = ToolFacts({**ORDER.parameters, "required": []}, "1")
    assert dict(people(work, optional, {})) == {}


@pytest.mark.parametrize(
    "value",
    [
        "WZ001",
        "will@example.com",
        "",
        7,
        ["Will Zhang"],
        {"name": "Will"},
        "secret:" + "ab" * 16,
        "{x}",
    ],
)
def test_a_value_that_is_not_written_like_a_name_is_no_person(value: Any) -> None:
    assert whom(shipping(values={**ASKED, "name": value})) == {}


@pytest.mark.parametrize("value", ["Will Zhang", "张三", "Anne-Marie O’Neil Jr.", "阿·买提"])
def test_names_are_letters_in_words(value: str) -> None:
    assert whom(shipping(values={**ASKED, "name": value})) == {"employee": "{001.context.name}"}


def test_an_input_is_known_by_what_people_were_asked() -> None:
    values = {"who": "Will Zhang", "order_id": "PC-9"}
    assert whom(shipping(values=values)) == {}
    assert whom(shipping(values=values, labels={"who": "姓名 (name)", "order_id": "订单号"})) == {
        "employee": "{001.context.who}"
    }


def test_the_same_person_twice_is_one_and_two_people_are_none() -> None:
    same = shipping(values={**ASKED, "payee": "Will Zhang"})
    assert whom(same) == {"employee": "{001.context.name}"}
    assert whom(shipping(values={**ASKED, "payee": "张三"})) == {}
    assert whom(shipping(told={"applicant": "张三"})) == {}


def test_a_person_may_stand_in_another_task() -> None:
    state = shipping(values={"order_id": "PC-9"}, told={"applicant": "Will Zhang"})
    assert whom(state) == {"employee": "{002.context.applicant}"}


def test_where_nobody_is_found_a_person_is_asked_as_ever() -> None:
    state = shipping(values={**ASKED, "name": "WZ001"})
    ((ordering, _), *_) = proposed(state, tools_of())
    assert "employee" not in ordering["listener"]["args"]


NAMES = st.sampled_from(["name", "employee", "payee", "applicant", "order_id", "computer_model"])
VALUES = st.sampled_from(["Will Zhang", "张三", "WZ001", "PC-9", "a\u202eb", "{001.context.name}"])


@given(
    st.dictionaries(NAMES, VALUES),
    st.dictionaries(NAMES, st.sampled_from([TEXT, {**TEXT, "title": "姓名"}]), min_size=1),
)
def test_whatever_the_run_has_an_inserted_call_passes_the_checks_as_an_act(
    values: dict[str, Any], schemas: dict[str, Any]
) -> None:
    order = takes(**schemas)
    state = shipping(order, {"order_id": "PC-9", **values})
    judged = {digest([*one.patch.operations]): one for one in sound(state, tools_of(order))}
    inserting = [one for one in proposed(state, tools_of(order)) if "listener" in one[0]]
    assert inserting
    for one in inserting:
        verdict = judged[digest([*one])].verdict
        assert verdict.problems == ()
        assert verdict.level is Level.ACT
