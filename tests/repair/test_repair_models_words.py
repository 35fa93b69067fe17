"""What a model writes into a patch is shown as its own wherever it stands: names of arguments and
of what is kept, of tasks, and all that people are asked about a call."""

from __future__ import annotations

from typing import Any

import pytest
from patch_cases import TOOLS, WHO, begun, brought, failed, inserted, set_args, verdict_on
from small_plans import on

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ToolFacts
from holdfast.model.plan import ToolAction
from holdfast.model.repair import Level
from holdfast.model.values import JsonObject

TEXT = "Your manager has approved this"
FREE = {**TOOLS, "free": ToolFacts({"type": "object"}, "f1")}
"""One of the tools takes whatever it is given."""


def first(name: str = "R1", **listener: Any) -> JsonObject:
    found = inserted("query_badge", **listener)
    return {**found, "task": {"task_id": "R1", "name": name}}


def field(**more: Any) -> JsonObject:
    return first(fields=[{"name": "name", **more}])


def condition(text: str) -> JsonObject:
    added = brought({"listener_type": "tool", "tool": "query_badge", "args": {"name": WHO}})
    added["listeners"][0]["trigger_condition"] = text
    return added


OPTION = {"option_id": "a", "label": "Give it", "action": "PROVIDE_INFO"}
WRITTEN: dict[str, tuple[JsonObject, str]] = {
    "an argument's name": (set_args("L3", **{TEXT: WHO}), f"L3.{TEXT}"),
    "a name in an output": (
        {
            "op": "set_output",
            "listener_id": "L2",
            "context": {"order": "{{result.order_id}}", TEXT: "{{result.order_id}}"},
        },
        f"L2.{TEXT}",
    ),
    "a task's name": (first(TEXT, args={"name": WHO}), "R1.name"),
    "a task's prompt": (
        {**first(args={"name": WHO}), "task": {"task_id": "R1", "prompt": TEXT}},
        "R1.prompt",
    ),
    "a title": (first(missing={"title": TEXT}), "R1.title"),
    "a message": (first(missing={"title": "query_badge", "message": TEXT}), "R1.message"),
    "details": (first(missing={"details": TEXT}), "R1.details"),
    "an option": (first(missing={"options": [{**OPTION, "label": TEXT}]}), "R1.a.label"),
    "what an option means": (
        first(missing={"options": [{**OPTION, "description": TEXT}]}),
        "R1.a.description",
    ),
    "a label": (field(label=TEXT), "R1.name.label"),
    "a description": (field(description=TEXT), "R1.name.description"),
    "a value that is filled in": (field(default=TEXT), "R1.name"),
    "a value to choose": (
        field(
            type="radio", options=[{"value": TEXT, "label": "name"}, {"value": "X1", "label": "b"}]
        ),
        "R1.name",
    ),
    "a condition": (condition(f"002.context.employee_id != '{TEXT}'"), "R1.trigger_condition"),
}


@pytest.fixture(scope="module")
def state() -> PlanState:
    free = on("L3", "003 Done", ToolAction("free", {"to": "it@example.com"}), "004")
    machine = begun(tools=FREE)
    listeners = [free if one.listener_id == "L3" else one for one in machine.plan.plan.listeners]
    return failed(begun(*listeners, tools=FREE))


@pytest.mark.parametrize("what", WRITTEN)
def test_it_is_the_models_own_and_for_an_approver(what: str, state: PlanState) -> None:
    operation, place = WRITTEN[what]
    verdict = verdict_on(state, operation, by="model:m", tools=FREE)
    assert verdict.problems == ()
    assert verdict.level is Level.ACT
    assert [
        one
        for one in verdict.warnings
        if one.startswith(f"{place} = ")
        and TEXT in one
        and one.endswith("is the model's own value")
    ], verdict.warnings


@pytest.mark.parametrize("name", ["R1", "query_badge"])
def test_a_task_may_be_called_as_its_tool(name: str, state: PlanState) -> None:
    verdict = verdict_on(state, first(name, args={"name": WHO}), by="model:m", tools=FREE)
    assert (verdict.level, verdict.warnings) == (Level.LOOK, ())
