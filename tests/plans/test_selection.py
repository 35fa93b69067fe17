"""A prompt without a plan: the planner chooses, or a person is asked which is meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import NotFound
from holdfast.model.plan import Plan
from holdfast.model.rows import request_of
from holdfast.plans.selection import named_plan
from holdfast.testing.model_script import Script, call, fail
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.models import ModelClient

COMPUTER = """
plan_id: computer
name: 申请电脑
description: A computer for a colleague.
main_task_id: "001"
inputs: {name: {type: text}, model: {type: select, options: [MacBook, ThinkPad]}}
tasks: [{task_id: "001", name: Computer}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: order
    args: {employee: "{001.context.name}", model: "{001.context.model}"}
    success_output: {task_id: "001", status: Done, context: {order: "{{result.order}}"}}
"""
LEAVE = """
plan_id: leave
name: 请假
main_task_id: "001"
tasks: [{task_id: "001", name: Leave}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = {'days': 3}"
    success_output: {task_id: "001", status: Done, context: {days: "{{result.days}}"}}
"""

OpenApp = Callable[..., Awaitable[Holdfast]]


@pytest.fixture
def ordered() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def office(
    open_app: OpenApp, tmp_path: Path, ordered: list[tuple[str, str]]
) -> Callable[..., Awaitable[Holdfast]]:
    """Opens the office's application, with a model that says what the script says."""

    async def opened(script: Script | None = None, plans: tuple[str, ...] = (COMPUTER, LEAVE)):
        options: dict[str, Any] = {}
        if script is not None:
            model = ScriptedModel(script)
            options["model"] = ModelClient(default_model=model, sleep=_no_sleep)
        app = await open_app(tmp_path / "home", **options)

        @app.tool(idempotent=True)
        async def order(employee: str, model: str) -> dict[str, str]:
            ordered.append((employee, model))
            return {"order": f"{employee}-{model}"}

        for text in plans:
            app.load_plan_text(text)
        return app

    return opened


async def _no_sleep(seconds: float) -> None:
    return


async def test_the_only_plan_is_the_one_that_is_meant(office: OpenApp) -> None:
    app = await office(plans=(LEAVE,))
    instance = await app.plans.start_plan_by_prompt("whatever it is")
    assert instance.plan_id == "leave"
    assert await instance.wait_for_completion(10) == "done"


async def test_without_any_plan_there_is_nothing_to_choose(office: OpenApp) -> None:
    app = await office(plans=())
    with pytest.raises(NotFound, match="no plan is loaded"):
        await app.plans.start_plan_by_prompt("hello")


async def test_a_prompt_that_names_a_plan_needs_no_model(office: OpenApp) -> None:
    app = await office()
    instance = await app.plans.start_plan_by_prompt("为张三申请电脑，谢谢")
    assert instance.plan_id == "computer"


def catalogue(*named: tuple[str, str]) -> list[Plan]:
    return [Plan(plan_id, name, "001", (), ()) for plan_id, name in named]


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("fire", "Write up what the firewall logged"),
        ("it", "please wait a moment"),
        ("pay", "show me my payroll"),
        ("pay_all", "check pay_all_twice"),
        ("pay_all", "check re-pay_all"),
        ("pay_all", "check pay_all-day"),
        ("pay_all", "check pay_all.weekly"),
        ("pay_all", "check every.pay_all"),
        ("pay_all", ""),
        ("Order a computer", "I want to reorder a computer"),
        ("Order a computer", "Order a computerised till"),
        ("申请IT", "帮我申请ITEM"),
    ],
)
def test_a_part_of_a_word_names_no_plan(name: str, prompt: str) -> None:
    assert named_plan(prompt, catalogue((name, ""), ("other", ""))) is None
    assert named_plan(prompt, catalogue(("a", name), ("other", ""))) is None


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("fire", "There was a fire in the kitchen"),
        ("it", "is it true?"),
        ("pay", "nobody may pay"),
        ("2", "order 2 computers"),
        ("钱", "把钱给他"),
    ],
)
def test_a_common_word_in_a_sentence_names_no_plan(name: str, prompt: str) -> None:
    assert named_plan(prompt, catalogue((name, ""), ("other", ""))) is None


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("fire", "fire"),
        ("Dismissal", " dismissal\n"),
        ("pay_all", "Pay_All, please."),
        ("pay_all", "请运行pay_all。"),
        ("v1.0", "(v1.0)"),
        ("付款", "为张三付款，谢谢"),
        ("Order a computer", "I want to order a computer."),
        ("申请IT", "帮我申请IT设备"),
        ("Café 9", "book the cafe\u0301 9 now"),
    ],
)
def test_a_prompt_names_a_plan_by_its_whole_name(name: str, prompt: str) -> None:
    assert named_plan(prompt, catalogue((name, ""), ("other", "Other things"))) == name
    assert named_plan(prompt, catalogue(("other", "Other things"), ("a", name))) == "a"


def test_a_prompt_that_names_two_plans_names_none() -> None:
    plans = catalogue(("pay_all", "付款"), ("file_report", "报告"))
    assert named_plan("pay_all and 付款", plans) == "pay_all"
    assert named_plan("付款, then file_report", plans) is None


async def test_a_name_inside_another_word_is_left_to_the_model(
    office: OpenApp, ordered: list[tuple[str, str]]
) -> None:
    fire = LEAVE.replace("plan_id: leave", "plan_id: fire").replace("请假", "Dismissal")
    app = await office([call("start_plan", plan_id="computer")], plans=(fire, COMPUTER))
    values = {"name": "张三", "model": "MacBook"}
    prompt = "A machine for who looks after the firewall"
    instance = await app.plans.start_plan_by_prompt(prompt, values=values)
    assert instance.plan_id == "computer"
    assert await instance.wait_for_completion(10) == "done"
    assert ordered == [("张三", "MacBook")]


async def test_a_model_chooses_and_reads_the_inputs(
    office: OpenApp, ordered: list[tuple[str, str]]
) -> None:
    app = await office(
        [call("start_plan", plan_id="computer"), call("fill_in", name="张三", model="MacBook")]
    )
    instance = await app.plans.start_plan_by_prompt("A MacBook for 张三, please")
    assert instance.plan_id == "computer"
    assert await instance.wait_for_completion(10) == "done"
    assert ordered == [("张三", "MacBook")]


async def test_what_the_model_reads_wrongly_is_asked_of_a_person(
    office: OpenApp, ordered: list[tuple[str, str]]
) -> None:
    app = await office([call("fill_in", name="张三", model="Amiga", colour="red")])
    instance = await app.plans.start_plan_by_prompt("An Amiga for 张三", "computer")
    assert await instance.wait_until_settled(10) == "pause"
    assert list(instance.context["required_params"]) == ["model"]
    answer = await app.planner_agent.continue_plan(instance.id, {"model": "ThinkPad"})
    assert answer["success"], answer
    assert await instance.wait_for_completion(10) == "done"
    assert ordered == [("张三", "ThinkPad")]


async def test_given_values_are_never_asked_of_the_model(
    office: OpenApp, ordered: list[tuple[str, str]]
) -> None:
    app = await office([call("fill_in", name="nobody")])
    values = {"name": "张三", "model": "MacBook"}
    instance = await app.plans.start_plan_by_prompt("a computer", "computer", values=values)
    assert await instance.wait_for_completion(10) == "done"
    assert ordered == [("张三", "MacBook")]


@pytest.mark.parametrize(
    "script",
    [
        None,
        ["I am not sure which you mean."],
        [call("start_plan", plan_id="sabbatical")],
        [fail(400, "no")],
    ],
    ids=["no model", "words", "a plan that is none", "unreachable"],
)
async def test_whoever_cannot_tell_asks(office: OpenApp, script: Script | None) -> None:
    app = await office(script)
    instance = await app.plans.start_plan_by_prompt("please help me")
    assert await instance.wait_until_settled(10) == "pause"
    (row,) = await app.inbox()
    request = request_of(row)
    assert request.type == "USER_CHOICE"
    assert [one.option_id for one in request.options] == ["computer", "leave", "none"]
    assert [one.label for one in request.options] == ["申请电脑", "请假", "None of these"]


async def test_the_chosen_plan_runs_with_the_values_that_were_given(
    office: OpenApp, ordered: list[tuple[str, str]]
) -> None:
    app = await office()
    values = {"name": "张三", "model": "ThinkPad"}
    instance = await app.plans.start_plan_by_prompt("please help me", values=values)
    await instance.wait_until_settled(10)
    (row,) = await app.inbox()
    await app.answer(row.question_id, option_id="computer")
    assert await instance.wait_for_completion(10) == "done"
    assert ordered == [("张三", "ThinkPad")]
    result = instance.get_main_task_instance().context["result"]
    assert result["order"] == "张三-ThinkPad"


async def test_none_of_these_ends_it(office: OpenApp, ordered: list[tuple[str, str]]) -> None:
    app = await office()
    instance = await app.plans.start_plan_by_prompt("please help me")
    await instance.wait_until_settled(10)
    (row,) = await app.inbox()
    await app.answer(row.question_id, option_id="none")
    assert await instance.wait_for_completion(10) == "cancelled"
    assert ordered == []


async def test_plans_called_as_the_questions_own_options_can_be_chosen_too(
    office: OpenApp,
) -> None:
    called = ("choose_plan", "none", "none_2", "v1.0")
    app = await office(
        plans=tuple(LEAVE.replace("plan_id: leave", f"plan_id: {o}") for o in called)
    )
    for chosen, end in [*((one, "done") for one in called), ("none_3", "cancelled")]:
        instance = await app.plans.start_plan_by_prompt("please help me")
        await instance.wait_until_settled(10)
        (row,) = await app.inbox()
        assert [one.option_id for one in request_of(row).options] == [*called, "none_3"]
        await app.answer(row.question_id, option_id=chosen)
        assert await instance.wait_for_completion(10) == end


async def test_the_question_outlives_the_process(
    office: OpenApp, ordered: list[tuple[str, str]]
) -> None:
    app = await office()
    instance = await app.plans.start_plan_by_prompt("please help me")
    await instance.wait_until_settled(10)
    await app.__aexit__(None, None, None)
    app = await office()
    (row,) = await app.inbox()
    await app.answer(row.question_id, option_id="leave")
    again = await app.instance(instance.id)
    assert await again.wait_for_completion(10) == "done"
    assert again.get_main_task_instance().context["result"] == {"days": 3}
