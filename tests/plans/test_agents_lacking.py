"""An agent that lacks a parameter: its plan pauses and asks, as for a tool of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, PlanInstance
from holdfast.errors import AuthorError, CallerError
from holdfast.language.instants import iso
from holdfast.model.message import ToolReturned
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.tools import PythonTool

OpenApp = Callable[..., Awaitable[Holdfast]]

MODEL = {
    "type": "radio",
    "label": "电脑型号",
    "options": [
        {"value": "MacBook Pro", "label": "MacBook Pro 14寸", "price": "¥18,999"},
        {"value": "Dell XPS", "label": "Dell XPS 15", "price": "¥12,999"},
        {"value": "custom", "label": "其他型号", "requires_input": True},
    ],
}
PLAN = """
plan_id: {plan_id}
main_task_id: "001"
tasks: [{{task_id: "001"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    {work}
    success_output: {{task_id: "001", status: Done}}
"""
PAUSED = ("paused_listener_id", "required_params", "pause_reason", "pause_timestamp")


def plan(name: str, /, **work: str) -> str:
    lines = "\n    ".join(f"{key}: {value}" for key, value in work.items())
    return PLAN.format(plan_id=name, work=lines)


class Office:
    def __init__(self, app: Holdfast) -> None:
        self.app = app
        self.ordered: list[dict[str, str]] = []
        app.tool(self.apply_computer, fields={"computer_model": MODEL})
        app.agent("buyer", tools=["apply_computer"])
        agent = {"listener_type": "agent", "agent_id": "buyer", "action_prompt": "为张三申请电脑"}
        app.load_plan_text(plan("by_agent", **agent))
        app.load_plan_text(plan("by_plan", listener_type="plan", plan_id="by_agent"))
        app.load_plan_text(plan("by_plans", listener_type="plan", plan_id="by_plan"))
        tool = {"listener_type": "tool", "tool": "apply_computer", "args": "{employee: 张三}"}
        app.load_plan_text(plan("by_tool", **tool))
        enriched = '{computer_model: {label: "Which one?"}}'
        app.load_plan_text(plan("relabelled", **tool, fields=enriched))

    async def apply_computer(self, employee: str, computer_model: str) -> dict[str, str]:
        self.ordered.append({"employee": employee, "computer_model": computer_model})
        return {"order": computer_model}

    async def paused(self, plan_id: str) -> PlanInstance:
        instance = await self.app.plans.start_plan_by_prompt("", plan_id)
        assert await instance.wait_until_settled() == "pause"
        return instance

    async def provide(self, instance: PlanInstance, **params: Any) -> dict[str, Any]:
        return await self.app.planner_agent.continue_plan(instance.id, params)


def orders(seen: Seen) -> Entry:
    return "ordered" if seen.results else call("apply_computer", employee="张三")


@pytest.fixture
async def office(open_app: OpenApp) -> Office:
    return Office(await open_app(model=ScriptedModel(orders)))


@pytest.mark.parametrize("plan_id", ["by_tool", "by_agent", "by_plan", "by_plans"])
async def test_what_is_missing_stands_in_the_plan_whoever_does_the_work(
    office: Office, plan_id: str
) -> None:
    instance = await office.paused(plan_id)
    context = instance.context
    assert context["required_params"] == {"computer_model": {**MODEL, "required": True}}
    assert context["pause_reason"] == "missing_params"
    assert context["paused_listener_id"] == f"{instance.id}_L001"
    [question] = await office.app.inbox()
    assert context["pause_timestamp"] == iso(question.opened_at)
    continued = await office.provide(instance, computer_model="Dell XPS")
    assert continued["success"]
    assert await instance.wait_for_completion() == "done"
    assert office.ordered == [{"employee": "张三", "computer_model": "Dell XPS"}]
    assert not set(PAUSED) & set(instance.context)
    assert instance.context["provided_params"] == {"computer_model": "Dell XPS"}
    assert "continue_timestamp" in instance.context


@pytest.mark.parametrize("plan_id", ["by_agent", "by_plans"])
async def test_a_refused_value_leaves_the_pause_as_it_is(office: Office, plan_id: str) -> None:
    instance = await office.paused(plan_id)
    before = instance.context
    refused = await office.provide(instance, computer_model="Abacus")
    assert list(refused["fields"]) == ["computer_model"]
    assert instance.context == before
    assert office.ordered == []


async def test_it_is_there_for_who_comes_later_and_after_a_restart(
    open_app: OpenApp, tmp_path: Path
) -> None:
    first = Holdfast(tmp_path / "home", model=ScriptedModel(orders))
    async with first:
        instance = await Office(first).paused("by_plans")
    office = Office(await open_app(tmp_path / "home", model=ScriptedModel(orders)))
    found = await office.app.plans.get_plan_instance(instance.id)
    assert found is not None
    assert found.context["required_params"] == {"computer_model": {**MODEL, "required": True}}
    assert (await office.provide(found, computer_model="Dell XPS"))["success"]
    assert await found.wait_for_completion() == "done"


async def test_the_next_question_takes_the_place_of_the_one_that_was_answered(
    open_app: OpenApp,
) -> None:
    def wants(seen: Seen) -> Entry:
        done = sum(isinstance(one, ToolReturned) for one in seen.messages)
        return "done" if done == 2 else call(("first", "second")[done])

    app = await open_app(model=ScriptedModel(wants))
    for name in ("first", "second"):
        app.tool(lambda size: {"size": size}, name=name, fields={"size": {"label": name}})
    app.agent("buyer", tools=["first", "second"])
    app.load_plan_text(plan("p", listener_type="agent", agent_id="buyer", action_prompt="go"))
    instance = await app.plans.start_plan_by_prompt("", "p")
    for label in ("first", "second"):
        assert await instance.wait_until_settled() == "pause"
        await app.engine.wait_for(instance.id, lambda state, label=label: _asks(state, label))
        assert instance.context["required_params"]["size"]["label"] == label
        await app.planner_agent.continue_plan(instance.id, {"size": "M"})
    assert await instance.wait_for_completion() == "done"


def _asks(state: Any, label: str) -> bool:
    asked = state.steps["L001"].waits_for
    return asked is not None and asked.form.fields[0].label == label


async def test_a_plan_adds_to_what_the_tool_declares(office: Office) -> None:
    instance = await office.paused("relabelled")
    [asked] = instance.context["required_params"].values()
    assert (asked["label"], asked["options"]) == ("Which one?", MODEL["options"])


async def test_a_field_that_the_tool_calls_secret_is_asked_as_one_and_kept_from_the_model(
    open_app: OpenApp,
) -> None:
    offered: list[Any] = []

    def logs_in(seen: Seen) -> Entry:
        offered.append(seen.tools[0].parameters)
        return "in" if seen.results else call("log_in")

    app = await open_app(model=ScriptedModel(logs_in))
    app.tool(lambda password: {"in": True}, name="log_in", fields={"password": {"type": "secret"}})
    app.agent("buyer", tools=["log_in"])
    app.load_plan_text(plan("p", listener_type="agent", agent_id="buyer", action_prompt="go"))
    instance = await app.plans.start_plan_by_prompt("", "p")
    assert await instance.wait_until_settled() == "pause"
    assert instance.context["required_params"]["password"]["type"] == "secret"
    assert "password" not in offered[0]["required"]
    await app.planner_agent.continue_plan(instance.id, {"password": "opensesame"})
    assert await instance.wait_for_completion() == "done"
    assert "opensesame" not in str(instance.context)


TOOLS = """
tools:
  - name: apply_computer
    endpoint: http://127.0.0.1:9/tool
    parameters:
      type: object
      properties: {employee: {type: string}, computer_model: {type: string}}
      required: [employee, computer_model]
    fields: FIELDS
"""


async def test_tools_in_files_declare_their_form_too(open_app: OpenApp, tmp_path: Path) -> None:
    file = tmp_path / "tools.yaml"
    options = "[{value: a, label: A, price: ¥1}]"
    file.write_text(
        TOOLS.replace("FIELDS", f"{{computer_model: {{type: radio, options: {options}}}}}"),
        encoding="utf-8",
    )
    app = await open_app(model=ScriptedModel(orders))
    app.load_tools(file)
    app.agent("buyer", tools=["apply_computer"])
    app.load_plan_text(plan("p", listener_type="agent", agent_id="buyer", action_prompt="go"))
    instance = await app.plans.start_plan_by_prompt("", "p")
    assert await instance.wait_until_settled() == "pause"
    [asked] = instance.context["required_params"].values()
    assert asked["options"] == [{"value": "a", "label": "A", "price": "¥1"}]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"computer": {}}, "computer: the tool has no argument computer"),
        ({"computer_model": {"type": "colour"}}, "computer_model.type"),
        (7, "a form is fields by name"),
    ],
)
async def test_fields_that_cannot_be_are_refused_when_they_are_declared(
    open_app: OpenApp, tmp_path: Path, fields: Any, why: str
) -> None:
    app = await open_app()

    def apply_computer(employee: str, computer_model: str) -> None: ...

    with pytest.raises(CallerError, match="tool 'apply_computer': fields: ") as refused:
        app.tool(apply_computer, fields=fields)
    assert why in str(refused.value)
    file = tmp_path / "tools.yaml"
    file.write_text(TOOLS.replace("FIELDS", str(fields)), encoding="utf-8")
    with pytest.raises(AuthorError, match="tool 'apply_computer': fields: ") as refused_file:
        app.load_tools(file)
    assert why in str(refused_file.value)
    assert "apply_computer" not in app.tools


async def test_another_label_is_the_same_tool(open_app: OpenApp) -> None:
    def pay(amount: int) -> None: ...

    plain, labelled = (
        PythonTool.from_function(pay, fields=fields)
        for fields in (None, {"amount": {"label": "¥"}})
    )
    assert plain.spec.version == labelled.spec.version
