"""An argument for which the author has people fill in a field is theirs to give: a patch that
writes it down skips the question, and only a person may."""

from __future__ import annotations

from typing import Any

import pytest
from patch_cases import LISTENERS, TOOLS, WHO, begun, failed, schema, set_args, text, verdict_on
from small_plans import on

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ToolFacts
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.plan import ToolAction
from holdfast.model.repair import Verdict
from holdfast.model.values import JsonObject

BUY = ToolFacts(schema("employee", "colour", employee=text(), colour=text()), "b1")
SHOP = {**TOOLS, "buy": BUY}
FIELDS = Form((Field("colour", FieldType.TEXT, label="Which one?"),))
REFUSED = "only a person may give colour to L3, which asks for it"


@pytest.fixture(scope="module")
def state() -> PlanState:
    buys = on("L3", "003 Done", ToolAction("buy", {"employee": WHO}, FIELDS), "004")
    return failed(begun(*LISTENERS[:2], buys, *LISTENERS[3:], tools=SHOP))


def judged(state: PlanState, operation: JsonObject, by: str, **more: Any) -> Verdict:
    return verdict_on(state, operation, by=by, tools=SHOP, **more)


@pytest.mark.parametrize("by", ["model:m", "rule:r", "lesson:l"])
@pytest.mark.parametrize("value", ["red", "{001.context.model}", ""])
def test_to_write_it_down_is_refused(value: str, by: str, state: PlanState) -> None:
    [found] = judged(state, set_args("L3", colour=value), by).problems
    assert found == f"operations[0] (set_args): {REFUSED}"


def test_so_is_to_do_so_by_naming_the_tool_again(state: PlanState) -> None:
    args = {"employee": WHO, "colour": "{001.context.model}"}
    again = {"op": "use_tool", "listener_id": "L3", "tool": "buy", "args": args}
    assert judged(state, again, "model:m").problems == (f"operations[0] (use_tool): {REFUSED}",)


def test_a_person_may(state: PlanState) -> None:
    assert judged(state, set_args("L3", colour="red"), "person").problems == ()


def test_to_have_another_question_ask_for_it_is_no_skipping(state: PlanState) -> None:
    ask = {"op": "ask_first", "listener_id": "L3", "fields": [{"name": "colour"}]}
    verdict = judged(state, ask, "model:m", rehearse=True)
    assert verdict.problems == ()
    assert verdict.success is not None
    assert len(verdict.success.questions) == 2


def test_what_nobody_is_asked_for_may_change(state: PlanState) -> None:
    assert judged(state, set_args("L3", employee="{001.context.model}"), "model:m").problems == ()
