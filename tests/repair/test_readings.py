"""What templates read, where it is missing, and where it is instead."""

from __future__ import annotations

from typing import Any

import pytest
from failed_runs import begun, call
from small_plans import CODE, on

from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.language.templates import compile_template
from holdfast.repair.readings import (
    absent,
    data_of_task,
    in_result,
    instead,
    lone_path,
    nodes,
    read,
    redirected,
    rendered,
    written,
)

ORDER = ("002", "context", "order_id")


@pytest.fixture
def state() -> PlanState:
    """The main task has an order with a number, and a task has been done."""
    machine = begun(
        on("L1", "001 Running", CODE, "002", context={"badge": "{{result.badge}}"}),
        on("L2", "002 Done", call("ship"), "003"),
        tools={},
        values={"order": {"number": 7, "odd name": 1}, "name": "Will Zhang"},
    )
    effect = next(iter(machine.flying.values()))
    machine.report(effect, machine.outcome(effect, {"badge": "B1"}))
    return machine.state


def paths(found: list[Any]) -> list[str]:
    return [".".join(one.path) for one in found]


class TestReading:
    def test_a_value_is_read_where_it_stands_and_nowhere_else(self, state: PlanState) -> None:
        found = read(("001", "context", "order", "number"), state)
        assert found is not None
        assert found.value == 7
        assert read(ORDER, state) is None
        assert read(("009", "context", "x"), state) is None
        assert read(("001", "context", "name", "first"), state) is None

    def test_what_a_template_lacks_is_told_by_its_paths(self, state: PlanState) -> None:
        template = {"a": "{001.context.name}", "b": ["to {002.context.order_id}"]}
        assert absent(template, state) == (ORDER,)
        result = TaskFacts(state.tasks, {"result": {"id": 1}})
        assert absent("{{result.no}}", result) == (("result", "no"),)
        assert absent("{{result.id}}", result) == ()

    def test_a_template_comes_to_a_value_or_to_none(self, state: PlanState) -> None:
        assert rendered("Dear {001.context.name}", state) == ("Dear Will Zhang",)
        assert rendered("{002.context.order_id}", state) is None
        assert rendered("{{no such thing}}", state) is None

    @pytest.mark.parametrize(
        ("template", "path"),
        [
            ("{ 002.context.order_id }", ORDER),
            ("{{ result.id }}", ("result", "id")),
            ("no {002.context.order_id}", None),
            ("{002.nonsense}", None),
            (["{002.context.order_id}"], None),
            (5, None),
        ],
    )
    def test_one_placeholder_and_nothing_else_has_a_path(self, template: Any, path: Any) -> None:
        assert lone_path(template) == path


class TestRedirecting:
    NEW = ("003", "context", "number")

    def test_every_placeholder_of_that_path_reads_elsewhere(self) -> None:
        template = {
            "a": "{002.context.order_id}",
            "b": ["no. { 002.context.order_id }, {001.context.name}", 5],
        }
        assert redirected(template, {ORDER: self.NEW}) == {
            "a": "{003.context.number}",
            "b": ["no. {003.context.number}, {001.context.name}", 5],
        }

    def test_what_is_meant_as_text_stays(self) -> None:
        text = r"\{002.context.order_id} and \\{002.context.order_id}"
        made = redirected(text, {ORDER: self.NEW})
        assert made == r"\{002.context.order_id} and \\{003.context.number}"

    def test_a_longer_path_is_another(self) -> None:
        text = "{002.context.order_id.first} {{result.order_id}}"
        assert redirected(text, {ORDER: self.NEW}) == text

    def test_a_result_is_read_in_double_braces(self) -> None:
        changes = {("result", "id"): ("result", "data", "id")}
        assert redirected("{{result.id}}", changes) == "{{result.data.id}}"
        assert compile_template(written(("result", "data", "id"))).result_paths


class TestInstead:
    def test_another_task_with_that_name_comes_first(self, state: PlanState) -> None:
        assert paths(instead(("001", "context", "badge"), state)) == ["002.context.badge"]

    def test_a_name_that_is_spelled_otherwise_is_found(self, state: PlanState) -> None:
        assert paths(instead(("001", "context", "nmae"), state)) == ["001.context.name"]
        near = instead(("001", "context", "ordr", "number"), state)
        assert paths(near) == ["001.context.order.number"]

    def test_a_name_that_stands_deeper_is_found(self, state: PlanState) -> None:
        assert paths(instead(("002", "context", "number"), state)) == ["001.context.order.number"]

    def test_the_values_of_a_plan_are_its_main_tasks(self, state: PlanState) -> None:
        assert paths(instead(("values", "name"), state)) == ["001.context.name"]
        assert instead(("values",), state) == []

    def test_what_the_engine_tells_of_failures_is_nobodys_value(self) -> None:
        failing = on("L1", "001 Running", call("ship"), "002")
        machine = begun(failing, tools={}, values={"name": "Will Zhang"})
        machine.consult(0)
        state = machine.state
        assert "error_info" in state.main_task.context
        assert instead(("002", "context", "message"), state) == []
        assert instead(("002", "context", "error_info"), state) == []
        assert instead(("001", "context", "error_inf"), state) == []
        assert set(data_of_task(state, "001")) == {"name"}

    def test_nothing_is_found_where_nothing_is(self, state: PlanState) -> None:
        assert instead(("001", "context", "name", "first"), state) == []
        assert instead(("002", "context", "colour"), state) == []


class TestResult:
    def test_the_same_name_elsewhere_in_the_result_is_it(self) -> None:
        result = {"data": {"order_id": "PC-1"}, "success": True}
        assert paths(in_result(("result", "order_id"), result, bool)) == ["result.data.order_id"]

    @pytest.mark.parametrize("name", ["orderId", "order_no", "order_ID"])
    def test_a_name_much_like_it_is_it(self, name: str) -> None:
        found = in_result(("result", "order_id"), {name: "PC-1", "model": "X1"}, bool)
        assert paths(found) == [f"result.{name}"]

    def test_only_what_fits_is_found(self) -> None:
        result = {"orderId": "PC-1", "order_no": 7}
        found = in_result(("result", "order_id"), result, lambda one: isinstance(one, int))
        assert paths(found) == ["result.order_no"]

    def test_a_part_of_what_is_spelled_otherwise_must_be_there(self) -> None:
        found = in_result(("result", "order", "id"), {"ordr": {"name": 1}}, bool)
        assert paths(found) == []
        found = in_result(("result", "order", "id"), {"ordr": {"id": 1}}, bool)
        assert paths(found) == ["result.ordr.id"]

    def test_a_name_that_no_template_can_have_is_passed_over(self) -> None:
        assert in_result(("result", "order_id"), {"order id": 1}, bool) == []
        assert nodes({"a b": {"c": 1}}, ("result",)) == []

    def test_a_result_that_is_no_object_has_no_parts(self) -> None:
        assert in_result(("result", "order_id"), [1], bool) == []


def test_deep_and_large_values_are_looked_at_as_far_as_it_goes() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(20):
        inner["a"] = {}
        inner = inner["a"]
    assert len(nodes(deep, ("result",))) == 5
    assert len(nodes({f"n{number}": 1 for number in range(1_000)}, ("result",))) == 200
