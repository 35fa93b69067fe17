"""Seed 000, 参数暂停与继续功能设计: a plan that lacks a parameter pauses, and continues with it.

Each docstring quotes the seed's section. Where the design decides otherwise than the seed (other
branches go on while one pauses; `required_params` are fields, not bare names), the design holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from holdfast import (
    Holdfast,
    PlanInstance,
    PlanInstanceStatus,
    PlanModule,
    PlannerAgent,
    TaskDriver,
)
from holdfast.core.plan.decide import blank, replay
from holdfast.core.run.tables import INSTANCE
from holdfast.demo.office import Office
from holdfast.journal.codec import decode
from holdfast.model.events import QuestionAnswered
from holdfast.testing.clock import ManualClock

COMPUTER_MODEL = {
    "computer_model": {
        "type": "radio",
        "label": "电脑型号",
        "description": "请选择所需的电脑型号",
        "options": [
            {"value": "MacBook Pro", "label": "MacBook Pro 14寸", "price": "¥18,999"},
            {"value": "ThinkPad X1", "label": "ThinkPad X1 Carbon", "price": "¥12,999"},
            {"value": "Dell XPS", "label": "Dell XPS 13", "price": "¥9,999"},
            {"value": "custom", "label": "其他型号（需填写）"},
        ],
        "required": True,
        "validation": {
            "type": "enum",
            "values": ["MacBook Pro", "ThinkPad X1", "Dell XPS", "custom"],
        },
    }
}

ORDER = """
plan_id: order
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: order
    retry: {initial: 0.001}
    success_output: {task_id: "002", status: Done, context: {order: "{{result.order_id}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

BESIDE = """
  - listener_id: L003
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: beside
    retry: {attempts: 1}
    success_output: {task_id: "003", status: Done}
"""

StatusesOf = Callable[[Holdfast, str], Awaitable[list[str]]]


class Orders:
    """A tool that finds out by itself what it lacks, one parameter after the other."""

    def __init__(self, *wanted: str) -> None:
        self.wanted = wanted
        self.calls: list[dict[str, Any]] = []

    async def __call__(
        self, computer_model: str | None = None, colour: str | None = None
    ) -> dict[str, Any]:
        given = {"computer_model": computer_model, "colour": colour}
        self.calls.append({name: value for name, value in given.items() if value})
        for name in self.wanted:
            if not given[name]:
                fields = COMPUTER_MODEL if name == "computer_model" else {name: {"type": "text"}}
                return {"success": False, "reason": "missing_params", "required_params": fields}
        return {"success": True, "order_id": "PC-1"}


async def paused_order(app: Holdfast, *wanted: str) -> tuple[PlanInstance, Orders]:
    orders = Orders(*wanted)
    app.tool(orders, name="order")
    plan = ORDER.replace(', {task_id: "003"}', "")
    app.load_plan_text(plan)
    instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "order")
    assert await instance.wait_until_settled() == "pause"
    return instance, orders


@pytest.fixture
async def small(open_app: Callable[..., Awaitable[Holdfast]]) -> Holdfast:
    return await open_app()


class TestOverview:
    async def test_core_requirement_a_missing_parameter_pauses_and_continue_goes_on(
        self, small: Holdfast
    ) -> None:
        """核心需求: 缺少必需参数时进入PAUSE状态，用户提供参数后继续执行。"""
        instance, orders = await paused_order(small, "computer_model")
        answer = {"computer_model": "ThinkPad X1"}
        assert (await small.planner_agent.continue_plan(instance.id, answer))["success"] is True
        assert await instance.wait_for_completion() == "done"
        assert orders.calls == [{}, {"computer_model": "ThinkPad X1"}]

    async def test_scenario_1_a_device_is_chosen_from_a_radio(
        self, app: Holdfast, office: Office
    ) -> None:
        """使用场景 1. 设备申请: 需要电脑型号(单选)。"""
        instance = await app.plans.start_plan_by_prompt("申请电脑", "apply_computer")
        assert await instance.wait_until_settled() == "pause"
        assert instance.context["required_params"]["computer_model"]["type"] == "radio"
        assert await office.counts() == {}
        await app.planner_agent.continue_plan(instance.id, {"computer_model": "MacBook Pro"})
        assert await instance.wait_for_completion() == "done"
        assert await office.counts() == {"apply_computer": 1}
        assert (await office.calls())[0]["args"] == {
            "employee": "张三",
            "computer_model": "MacBook Pro",
        }

    async def test_scenario_1_another_model_is_written_in(
        self, app: Holdfast, office: Office
    ) -> None:
        """使用场景 1. 设备申请: 其他型号（需填写）: the tool receives the text."""
        instance = await app.plans.start_plan_by_prompt("申请电脑", "apply_computer")
        await instance.wait_until_settled()
        bare = await app.planner_agent.continue_plan(instance.id, {"computer_model": "custom"})
        assert bare["success"] is False
        assert "computer_model" in bare["fields"]
        own = {"computer_model": {"value": "custom", "text": "Framework 13"}}
        assert (await app.planner_agent.continue_plan(instance.id, own))["success"] is True
        assert await instance.wait_for_completion() == "done"
        assert (await office.calls())[0]["args"]["computer_model"] == "Framework 13"

    async def test_scenario_2_a_mail_is_written_in_a_textarea(
        self, app: Holdfast, office: Office
    ) -> None:
        """使用场景 2. 邮件发送: 需要邮件内容(文本域)。"""
        instance = await app.plans.start_plan_by_prompt("发送邮件给张三", "send_email")
        assert await instance.wait_until_settled() == "pause"
        required = instance.context["required_params"]
        assert list(required) == ["content"]
        assert required["content"]["type"] == "textarea"
        await app.planner_agent.continue_plan(instance.id, {"content": "你好\n欢迎"})
        assert await instance.wait_for_completion() == "done"
        assert (await office.calls())[0]["args"]["content"] == "你好\n欢迎"

    async def test_scenario_3_an_account_needs_a_text_and_a_select(
        self, app: Holdfast, office: Office
    ) -> None:
        """使用场景 3. 账号创建: 需要用户名(输入框)和部门(下拉框)。"""
        instance = await app.plans.start_plan_by_prompt("创建新员工账号", "create_account")
        assert await instance.wait_until_settled() == "pause"
        types = {k: v["type"] for k, v in instance.context["required_params"].items()}
        assert types == {"username": "text", "department": "select"}
        form = {"username": "zhangsan", "department": "engineering"}
        await app.planner_agent.continue_plan(instance.id, form)
        assert await instance.wait_for_completion() == "done"
        assert (await office.calls())[0]["args"] == form

    async def test_scenario_4_permissions_need_a_multiselect_and_a_date(
        self, app: Holdfast, office: Office
    ) -> None:
        """使用场景 4. 权限申请: 需要权限类型(多选)和期限(日期)。"""
        instance = await app.plans.start_plan_by_prompt("申请系统权限", "request_permission")
        assert await instance.wait_until_settled() == "pause"
        types = {k: v["type"] for k, v in instance.context["required_params"].items()}
        assert types == {"permissions": "multiselect", "until": "date"}
        form = {"permissions": ["code", "vpn"], "until": "2030-12-31"}
        await app.planner_agent.continue_plan(instance.id, form)
        assert await instance.wait_for_completion() == "done"
        assert (await office.calls())[0]["args"] == {"employee": "张三", **form}

    async def test_a_form_filled_in_wrongly_leaves_the_pause_untouched_and_says_why_per_field(
        self, app: Holdfast, office: Office
    ) -> None:
        """使用场景 3. 账号创建: what does not fit the form changes nothing."""
        instance = await app.plans.start_plan_by_prompt("创建新员工账号", "create_account")
        await instance.wait_until_settled()
        before = instance.version
        wrong = {"username": "Z!", "department": "weather"}
        refused = await app.planner_agent.continue_plan(instance.id, wrong)
        assert refused["success"] is False
        assert set(refused["fields"]) == {"username", "department"}
        assert (instance.status, instance.version) == ("pause", before)
        assert await office.counts() == {}


class TestDifferenceToResume:
    """与现有功能的区别 and 与Resume功能的区别, the table of four rows."""

    async def test_row_1_trigger_a_failure_asks_for_resume_a_lack_for_continue(
        self, app: Holdfast, office: Office, small: Holdfast
    ) -> None:
        """触发条件 | 任务执行失败 | 缺少必需参数"""
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({"grant_access": 3})
        failed = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        assert await failed.wait_until_settled() == "error"
        lacking, _ = await paused_order(small, "computer_model")
        assert lacking.status == "pause"

    async def test_row_2_target_status_both_lead_back_to_running(
        self, app: Holdfast, office: Office, statuses_of: StatusesOf, small: Holdfast
    ) -> None:
        """目标状态 | ERROR → RUNNING | PAUSE → RUNNING"""
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({"grant_access": 3})
        failed = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        assert await failed.wait_for_completion() == "error"
        await app.planner_agent.resume_plan(app.plans, "onboard_will_zhang", failed.id)
        assert await failed.wait_for_completion() == "done"
        passed = await statuses_of(app, failed.id)
        assert passed == ["not_started", "running", "error", "running", "done"]
        lacking, _ = await paused_order(small, "colour")
        await small.planner_agent.continue_plan(lacking.id, {"colour": "grey"})
        assert await lacking.wait_for_completion() == "done"
        passed = await statuses_of(small, lacking.id)
        assert passed == ["not_started", "running", "pause", "continue", "running", "done"]

    async def test_row_3_way_of_running_continue_stays_in_the_same_firing(
        self, app: Holdfast, office: Office, small: Holdfast
    ) -> None:
        """执行方式 | 重新执行失败的listener | 继续执行暂停的listener"""
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({"grant_access": 3})
        failed = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        await failed.wait_for_completion()
        await app.planner_agent.resume_plan(app.plans, "onboard_will_zhang", failed.id)
        await failed.wait_for_completion()
        assert (await app.engine.state(failed.id)).steps["L002"].firing == 2
        lacking, _ = await paused_order(small, "colour")
        await small.planner_agent.continue_plan(lacking.id, {"colour": "grey"})
        await lacking.wait_for_completion()
        assert (await small.engine.state(lacking.id)).steps["L001"].firing == 1

    async def test_row_4_parameters_resume_keeps_them_continue_brings_new_ones(
        self, app: Holdfast, office: Office, small: Holdfast
    ) -> None:
        """参数处理 | 使用原有参数重试 | 使用新提供的参数"""
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({"grant_access": 3})
        failed = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        await failed.wait_for_completion()
        await app.planner_agent.resume_plan(app.plans, "onboard_will_zhang", failed.id)
        await failed.wait_for_completion()
        sent = [one["args"] for one in await office.calls() if one["tool"] == "grant_access"]
        assert sent == [{"employee_id": "WZ001"}] * 4
        lacking, orders = await paused_order(small, "colour")
        await small.planner_agent.continue_plan(lacking.id, {"colour": "grey"})
        assert orders.calls == [{}, {"colour": "grey"}]


class TestStateMachine:
    """状态机扩展 / 状态转换图"""

    async def test_normal_flow(self, app: Holdfast, statuses_of: StatusesOf) -> None:
        """正常流程: NOT_STARTED → RUNNING → DONE"""
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        assert await instance.wait_for_completion() == "done"
        assert await statuses_of(app, instance.id) == ["not_started", "running", "done"]

    async def test_parameter_flow(self, app: Holdfast, statuses_of: StatusesOf) -> None:
        """参数流程: RUNNING → PAUSE → [Continue] → RUNNING"""
        instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
        await instance.wait_until_settled()
        await app.planner_agent.continue_plan(instance.id, {"computer_model": "Dell XPS"})
        await instance.wait_for_completion()
        passed = await statuses_of(app, instance.id)
        assert passed == ["not_started", "running", "pause", "continue", "running", "done"]

    async def test_error_flow(self, app: Holdfast, office: Office, statuses_of: StatusesOf) -> None:
        """错误流程: RUNNING → ERROR → [Resume] → RUNNING"""
        app.planner_agent.max_retry_count = 1
        await office.configure_failures({"send_email": 6})
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        assert await instance.wait_for_completion() == "error"
        await app.planner_agent.resume_plan(app.plans, "onboard_will_zhang", instance.id)
        assert await instance.wait_for_completion() == "done"
        passed = await statuses_of(app, instance.id)
        assert passed == ["not_started", "running", "error", "running", "done"]

    async def test_pause_and_error_meet_and_the_open_question_survives(
        self, small: Holdfast, statuses_of: StatusesOf
    ) -> None:
        """状态机扩展: PAUSE ← → ERROR: error shows first, the pause comes back with the resume."""
        broken, breaks = asyncio.Event(), [RuntimeError("the printer is on fire")]

        async def beside() -> dict[str, Any]:
            await broken.wait()
            if breaks:
                raise breaks.pop()
            return {"success": True}

        orders = Orders("colour")
        small.tool(orders, name="order")
        small.tool(beside)
        small.planner_agent.max_retry_count = 0
        small.load_plan_text(ORDER + BESIDE)
        instance = await small.plans.start_plan_by_prompt("", "order")
        assert await instance.wait_until_settled() == "pause"
        broken.set()
        assert await instance.wait_for_completion() == "error"
        assert "colour" in instance.context["required_params"]
        assert await small.planner_agent.resume_plan(small.plans, "order", instance.id)
        assert instance.status == "pause"
        await small.planner_agent.continue_plan(instance.id, {"colour": "red"})
        assert await instance.wait_for_completion() == "done"
        passed = await statuses_of(small, instance.id)
        assert passed[:5] == ["not_started", "running", "pause", "error", "pause"]

    def test_the_drawn_arrows_are_the_tables(self) -> None:
        """状态机扩展: NOT_STARTED → RUNNING → DONE, PAUSE ← → ERROR, CONTINUE → RUNNING"""
        arrows = {(a.value, b.value) for a, row in INSTANCE.items() for b in row.values()}
        drawn = {
            ("not_started", "running"),
            ("running", "done"),
            ("running", "pause"),
            ("pause", "error"),
            ("pause", "continue"),
            ("continue", "running"),
            ("error", "running"),
        }
        assert drawn <= arrows
        assert ("not_started", "pause") not in arrows
        assert not {b for a, b in arrows if a == "done"}


class TestDataModel:
    def test_plan_instance_status_has_the_seeds_values(self) -> None:
        """PlanInstanceStatus 枚举"""
        assert PlanInstanceStatus.NOT_STARTED.value == "not_started"
        assert PlanInstanceStatus.RUNNING.value == "running"
        assert PlanInstanceStatus.DONE.value == "done"
        assert PlanInstanceStatus.ERROR.value == "error"
        assert PlanInstanceStatus.PAUSE.value == "pause"
        assert PlanInstanceStatus.CONTINUE.value == "continue"

    async def test_context_while_paused(self, small: Holdfast) -> None:
        """PlanInstance context 结构: 暂停时的context结构"""
        instance, _ = await paused_order(small, "computer_model")
        context = instance.context
        assert context["values"] == {}
        assert context["metadata"]["prompt"] == "为张三申请电脑"
        assert context["paused_listener_id"] == f"{instance.id}_L001"
        assert list(context["required_params"]) == ["computer_model"]
        assert context["pause_reason"] == "missing_params"
        assert datetime.fromisoformat(context["pause_timestamp"]).tzinfo is not None
        assert "provided_params" not in context

    async def test_context_at_continue(self, small: Holdfast) -> None:
        """PlanInstance context 结构: continue时的context结构, seen by folding the journal to it."""
        instance, _ = await paused_order(small, "computer_model")
        answer = {"computer_model": "MacBook Pro"}
        await small.planner_agent.continue_plan(instance.id, answer)
        state = blank(instance.id, (await small.engine.state(instance.id)).plan)
        for record in await small.journal.read(instance.id):
            event = decode(record)
            state = replay(state, [(record.at, event)])
            if isinstance(event, QuestionAnswered):
                break
        assert state.status == PlanInstanceStatus.CONTINUE
        context = PlanInstance(small.engine, state).context
        assert context["provided_params"] == answer
        assert datetime.fromisoformat(context["continue_timestamp"]).tzinfo is not None
        assert "values" in context
        assert "metadata" in context

    async def test_context_after_success_keeps_values_and_loses_the_pause(
        self, app: Holdfast
    ) -> None:
        """continue_plan(): 清除暂停信息"""
        instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
        await instance.wait_until_settled()
        await app.planner_agent.continue_plan(instance.id, {"computer_model": "Dell XPS"})
        await instance.wait_for_completion()
        context = instance.context
        for gone in ("paused_listener_id", "required_params", "pause_reason", "pause_timestamp"):
            assert gone not in context
        assert context["values"]["name"] == "张三"
        assert context["provided_params"] == {"computer_model": "Dell XPS"}


class TestTaskDriver:
    """2. TaskDriver 扩展, 执行结果扩展"""

    async def test_existing_result_shape(
        self, open_app: Callable[..., Awaitable[Holdfast]]
    ) -> None:
        """现有结果结构: success, task_updates, error(可选)"""
        seen = await results_of(open_app, Orders())
        assert seen[0]["success"] is True
        assert seen[0]["result"] == {"success": True, "order_id": "PC-1"}
        update = seen[0]["task_updates"][0]
        assert (update["task_id"], update["status"]) == ("002", "Done")
        assert update["context"] == {"order": "PC-1"}
        assert "error" not in seen[0]

    async def test_failed_result_has_an_error(
        self, open_app: Callable[..., Awaitable[Holdfast]]
    ) -> None:
        """现有结果结构: "error": "..."  # 可选"""

        async def order() -> dict[str, Any]:
            return {"success": False, "error": "sold out"}

        seen = await results_of(open_app, order)
        assert seen[0]["success"] is False
        assert seen[0]["error"] == "sold out"

    async def test_missing_parameters_result_has_the_seeds_shape(
        self, open_app: Callable[..., Awaitable[Holdfast]]
    ) -> None:
        """新增：缺少参数的结果"""
        seen = await results_of(open_app, Orders("computer_model"))
        assert seen[0] == {
            "success": False,
            "reason": "missing_params",
            "required_params": COMPUTER_MODEL,
            "task_updates": [],
        }

    async def test_required_params_reach_the_person_as_the_tool_gave_them(
        self, small: Holdfast
    ) -> None:
        """新增：缺少参数的结果: type, label, description, options with price, validation."""
        instance, _ = await paused_order(small, "computer_model")
        assert instance.context["required_params"] == COMPUTER_MODEL

    async def test_no_task_moves_forward_while_parameters_are_missing(
        self, small: Holdfast
    ) -> None:
        """新增：缺少参数的结果: "task_updates": []  # 空，不更新任务状态"""
        instance, _ = await paused_order(small, "computer_model")
        assert instance.get_main_task_instance().status == "Running"
        assert instance.get_task_instance("002").status == "Pending"
        assert instance.get_task_instance("002").context == {}

    @pytest.mark.parametrize(
        ("answer", "fits"),
        [("MacBook Pro", True), ("Dell XPS", True), ("custom", True), ("Abacus", False)],
    )
    async def test_enum_validation(self, small: Holdfast, answer: str, fits: bool) -> None:
        """validation: {"type": "enum", "values": [...]}"""
        instance, _ = await paused_order(small, "computer_model")
        result = await small.planner_agent.continue_plan(instance.id, {"computer_model": answer})
        assert result["success"] is fits


async def results_of(
    open_app: Callable[..., Awaitable[Holdfast]], tool: Callable[..., Any]
) -> list[dict[str, Any]]:
    """What the driver returned for L001, recorded by an override that the engine goes through."""
    seen: list[dict[str, Any]] = []

    class Recording(TaskDriver):
        async def execute_listener(self, listener: Any, context: Any) -> dict[str, Any]:
            result = await super().execute_listener(listener, context)
            if listener.listener_id == "L001":
                seen.append(dict(result))
            return result

    app = await open_app(driver=Recording, max_retry_count=0)
    app.tool(tool, name="order")
    app.load_plan_text(ORDER.replace(', {task_id: "003"}', ""))
    instance = await app.plans.start_plan_by_prompt("", "order")
    await instance.wait_until_settled()
    return seen


class TestContinuePlan:
    """3. PlannerAgent 扩展, 新增 continue_plan() 方法: one test for each branch of its code."""

    async def test_unknown_instance(self, small: Holdfast) -> None:
        """if not plan_instance"""
        result = await small.planner_agent.continue_plan("inst_000404", {"a": 1})
        assert result == {"success": False, "error": "Plan instance inst_000404 not found"}

    async def test_not_paused_because_done(self, app: Holdfast) -> None:
        """if plan_instance.status != PlanInstanceStatus.PAUSE.value"""
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        await instance.wait_for_completion()
        result = await app.planner_agent.continue_plan(instance.id, {"computer_model": "x"})
        error = "Plan instance is not in PAUSE status, current: done"
        assert result == {"success": False, "error": error}

    async def test_not_paused_because_running(self, small: Holdfast) -> None:
        """if plan_instance.status != PlanInstanceStatus.PAUSE.value, while work is under way"""
        under_way, may_end = asyncio.Event(), asyncio.Event()

        async def order() -> dict[str, Any]:
            under_way.set()
            await may_end.wait()
            return {"order_id": "PC-1"}

        small.tool(order)
        small.load_plan_text(ORDER.replace(', {task_id: "003"}', ""))
        instance = await small.plans.start_plan_by_prompt("", "order")
        await under_way.wait()
        result = await small.planner_agent.continue_plan(instance.id, {"colour": "red"})
        may_end.set()
        error = "Plan instance is not in PAUSE status, current: running"
        assert result == {"success": False, "error": error}
        assert await instance.wait_for_completion() == "done"

    async def test_not_paused_because_in_error(self, app: Holdfast, office: Office) -> None:
        """if plan_instance.status != PlanInstanceStatus.PAUSE.value, in error"""
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({"grant_access": 3})
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        await instance.wait_for_completion()
        result = await app.planner_agent.continue_plan(instance.id, {"employee_id": "x"})
        error = "Plan instance is not in PAUSE status, current: error"
        assert result == {"success": False, "error": error}
        assert instance.status == "error"

    async def test_no_paused_listener_wants_parameters(self, small: Holdfast) -> None:
        """if not paused_listener_id: a pause that waits for a decision takes no parameters"""
        small.load_plan_text(
            """
            plan_id: confirm
            main_task_id: "001"
            tasks: [{task_id: "001"}]
            listeners:
              - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running,
                 listener_type: human, title: Really?,
                 success_output: {task_id: "001", status: Done}}
            """
        )
        instance = await small.plans.start_plan_by_prompt("", "confirm")
        assert await instance.wait_until_settled() == "pause"
        result = await small.planner_agent.continue_plan(instance.id, {"colour": "red"})
        assert result["success"] is False
        assert result["error"].startswith("No paused listener found")
        assert (await small.inbox())[0].question_id in result["error"]
        assert instance.status == "pause"

    async def test_the_paused_listener_is_found_by_its_id(self, small: Holdfast) -> None:
        """listener_repo.get_by_id(paused_listener_id)"""
        instance, _ = await paused_order(small, "colour")
        paused = instance.context["paused_listener_id"]
        listener = await small.plans.listener_repo.get_by_id(paused)
        assert listener is not None
        assert listener.listener_id == "L001"
        assert await small.plans.listener_repo.get_by_id(f"{instance.id}_L999") is None

    async def test_success_returns_status_and_the_listeners_result(self, app: Holdfast) -> None:
        """成功：继续正常流程; return {"success": True, "status": …, "result": result}"""
        instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
        await instance.wait_until_settled()
        answer = {"computer_model": "MacBook Pro"}
        result = await app.planner_agent.continue_plan(instance.id, answer)
        assert result["success"] is True
        assert result["status"] in ("running", "done")
        assert result["result"]["success"] is True
        assert result["result"]["result"]["model"] == "MacBook Pro"
        assert result["result"]["task_updates"] == [{"task_id": "002", "status": "Done"}]

    async def test_still_missing_pauses_again(self, small: Holdfast) -> None:
        """失败：检查是否是新的参数缺失; 仍然缺少参数，保持PAUSE状态"""
        instance, _ = await paused_order(small, "computer_model", "colour")
        answer = {"computer_model": "Dell XPS"}
        result = await small.planner_agent.continue_plan(instance.id, answer)
        assert result["success"] is True
        assert result["status"] == "pause"
        assert result["result"]["reason"] == "missing_params"
        assert list(instance.context["required_params"]) == ["colour"]
        assert instance.context["pause_reason"] == "missing_params"

    async def test_another_error_leads_to_error(self, small: Holdfast) -> None:
        """其他错误，进入ERROR状态"""
        attempts: list[str] = []

        async def order(colour: str) -> dict[str, Any]:
            attempts.append(colour)
            return {"success": False, "error": "no such colour"}

        small.tool(order)
        small.planner_agent.max_retry_count = 0
        small.load_plan_text(ORDER.replace(', {task_id: "003"}', ""))
        instance = await small.plans.start_plan_by_prompt("", "order")
        await instance.wait_until_settled()
        result = await small.planner_agent.continue_plan(instance.id, {"colour": "plaid"})
        assert (result["success"], result["status"]) == (True, "error")
        assert result["result"]["success"] is False
        assert "no such colour" in result["result"]["error"]
        assert attempts == ["plaid"] * 3
        assert "no such colour" in instance.context["values"]["error_info"]["message"]

    async def test_what_is_no_json_is_refused_like_everything_else(self, small: Holdfast) -> None:
        """except Exception as e: return {"success": False, "error": str(e)}"""
        instance, _ = await paused_order(small, "colour")
        result = await small.planner_agent.continue_plan(instance.id, {"colour": float("nan")})
        assert result["success"] is False
        assert "$.colour" in result["error"]
        assert instance.status == "pause"

    async def test_a_name_that_nobody_asks_for_is_refused(self, small: Holdfast) -> None:
        """continue_plan(): invalid leaves the pause untouched and says why per field"""
        instance, orders = await paused_order(small, "colour")
        result = await small.planner_agent.continue_plan(instance.id, {"size": "XL"})
        assert result["success"] is False
        assert set(result["fields"]) == {"size"}
        assert (instance.status, len(orders.calls)) == ("pause", 1)

    async def test_update_plan_instance_edits_values_but_never_a_status(
        self, small: Holdfast
    ) -> None:
        """保存状态: plan_module.update_plan_instance(…): a status moves by commands only"""
        instance, _ = await paused_order(small, "colour")
        updates = {"status": "pause", "context": {"values": {"note": "urgent"}}}
        await small.plans.update_plan_instance(instance.id, updates)
        assert instance.context["values"] == {"note": "urgent"}
        with pytest.raises(Exception, match="a status cannot be set"):
            await small.plans.update_plan_instance(instance.id, {"status": "done"})
        assert instance.status == "pause"


class TestOnTaskStatusChange:
    """3. PlannerAgent 扩展, 修改 on_task_status_change()"""

    async def test_the_hook_hears_of_every_change_with_the_plans_context(
        self, open_app: Callable[..., Awaitable[Holdfast]]
    ) -> None:
        """async def on_task_status_change(self, task_instance, plan_context)"""
        heard: list[tuple[str, str, str]] = []
        finished = asyncio.Event()

        class Listening(PlannerAgent):
            async def on_task_status_change(self, task_instance: Any, plan_context: Any) -> None:
                name = plan_context["plan_instance_id"]
                heard.append((name, task_instance.task_id, task_instance.status))
                if heard[-1][1:] == ("001", "Done"):
                    finished.set()

        app = await open_app(planner_agent=Listening())
        instance, _ = await paused_order(app, "colour")
        await app.planner_agent.continue_plan(instance.id, {"colour": "red"})
        await asyncio.wait_for(finished.wait(), 60)
        assert (instance.id, "001", "Running") in heard
        assert (instance.id, "002", "Pending") in heard
        assert (instance.id, "002", "Done") in heard

    async def test_no_listener_is_triggered(self, small: Holdfast) -> None:
        """无listener触发，检查是否需要Planner介入: the plan does not hang, it says why"""
        small.tool(Orders(), name="order")
        plan = ORDER.replace(', {task_id: "003"}', "")
        small.load_plan_text(plan.replace("trigger_condition: Done", "trigger_condition: Error"))
        instance = await small.plans.start_plan_by_prompt("", "order")
        assert await instance.wait_for_completion() == "error"
        info = instance.get_main_task_instance().context["error_info"]
        assert info["status"] == "waiting_for_resume"
        assert "L002" in info["message"]

    async def test_task_updates_are_applied(self, small: Holdfast) -> None:
        """正常处理task_updates"""
        small.tool(Orders(), name="order")
        small.load_plan_text(ORDER.replace(', {task_id: "003"}', ""))
        instance = await small.plans.start_plan_by_prompt("", "order")
        assert await instance.wait_for_completion() == "done"
        assert instance.get_task_instance("002").context == {"order": "PC-1"}

    async def test_a_listener_that_raises_is_an_error_of_that_listener_only(
        self, small: Holdfast
    ) -> None:
        """_handle_listener_error: the other listener's work counts all the same"""

        async def beside() -> None:
            raise RuntimeError("the printer is on fire")

        small.tool(Orders(), name="order")
        small.tool(beside)
        small.planner_agent.max_retry_count = 0
        small.load_plan_text(ORDER + BESIDE)
        instance = await small.plans.start_plan_by_prompt("", "order")
        assert await instance.wait_for_completion() == "error"
        context = instance.get_main_task_instance().context
        assert context["failed_listener_ids"] == [f"{instance.id}_L003"]
        assert "the printer is on fire" in context["error_info"]["message"]

    async def test_pausing_writes_what_is_needed_and_leaves_other_branches_alone(
        self, small: Holdfast
    ) -> None:
        """_pause_plan_for_params: 暂停计划等待参数"""

        async def beside() -> dict[str, bool]:
            return {"success": True}

        small.tool(Orders("colour"), name="order")
        small.tool(beside)
        small.load_plan_text(ORDER + BESIDE)
        instance = await small.plans.start_plan_by_prompt("", "order")
        beside_done = await small.engine.wait_for(
            instance.id,
            lambda state: state.task("003").status == "Done" and state.status == "pause",
        )
        assert beside_done.task("003").status == "Done"
        assert instance.context["paused_listener_id"] == f"{instance.id}_L001"


async def test_computer_application_missing_model(
    plan_module: PlanModule, planner_agent: PlannerAgent
) -> None:
    """测试用例, 测试场景1: 电脑申请缺少型号, with a wait in place of the seed's sleep"""

    # 1. 启动计划（缺少电脑型号）
    plan_instance = await plan_module.start_plan_by_prompt(
        prompt="为张三申请电脑", plan_id="apply_computer"
    )

    # 2. 等待执行到IT Agent
    await plan_instance.wait_until_settled()

    # 3. 检查状态应为PAUSE
    updated_instance = await plan_module.get_plan_instance(plan_instance.id)
    assert updated_instance is not None
    assert updated_instance.status == PlanInstanceStatus.PAUSE.value
    assert "computer_model" in updated_instance.context["required_params"]

    # 4. 提供参数继续执行
    continue_result = await planner_agent.continue_plan(
        plan_instance.id, {"computer_model": "MacBook Pro"}
    )

    # 5. 检查继续执行成功
    assert continue_result["success"] is True

    # 6. 最终检查状态
    final_instance = await plan_module.get_plan_instance(plan_instance.id)
    assert final_instance is not None
    assert final_instance.status in [
        PlanInstanceStatus.RUNNING.value,
        PlanInstanceStatus.DONE.value,
    ]


class TestAcceptance:
    """验收标准"""

    async def test_several_rounds_of_missing_parameters(self, small: Holdfast) -> None:
        """支持多次参数缺失场景: each round asks for what is still lacking, and keeps the rest"""
        instance, orders = await paused_order(small, "computer_model", "colour")
        await small.planner_agent.continue_plan(instance.id, {"computer_model": "Dell XPS"})
        assert instance.status == "pause"
        await small.planner_agent.continue_plan(instance.id, {"colour": "grey"})
        assert await instance.wait_for_completion() == "done"
        assert orders.calls == [
            {},
            {"computer_model": "Dell XPS"},
            {"computer_model": "Dell XPS", "colour": "grey"},
        ]

    async def test_pause_and_continue_wait_for_no_clock(
        self, open_app: Callable[..., Awaitable[Holdfast]], clock: ManualClock
    ) -> None:
        """PAUSE/Continue响应时间 < 1秒: not one tick of a clock that stands still"""
        app = await open_app(clock=clock)
        instance, _ = await paused_order(app, "colour")
        result = await app.planner_agent.continue_plan(instance.id, {"colour": "red"})
        assert result["result"]["success"] is True
        assert await instance.wait_for_completion() == "done"

    async def test_a_plan_that_lacks_nothing_never_pauses(
        self, app: Holdfast, statuses_of: StatusesOf
    ) -> None:
        """不影响正常执行流程性能: nothing is asked, nothing extra is called"""
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        await instance.wait_for_completion()
        assert "pause" not in await statuses_of(app, instance.id)

    async def test_the_same_answer_again_returns_the_first_result(
        self, app: Holdfast, office: Office
    ) -> None:
        """错误场景测试: a repeated continue changes nothing"""
        instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
        await instance.wait_until_settled()
        answer = {"computer_model": "Dell XPS"}
        first = await app.planner_agent.continue_plan(instance.id, answer)
        await instance.wait_for_completion()
        again = await app.planner_agent.continue_plan(instance.id, answer)
        assert again["success"] is True
        assert again["result"] == first["result"]
        other = await app.planner_agent.continue_plan(
            instance.id, {"computer_model": "ThinkPad X1"}
        )
        assert other["success"] is False
        assert other["answered_by"] == "local"
        assert await office.counts() == {"apply_computer": 1}
