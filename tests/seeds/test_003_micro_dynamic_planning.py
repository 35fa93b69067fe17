"""Seed 003, 微动态规划功能说明: the planner retries what failed, then waits for a person.

Each docstring quotes the seed's section. The driver's own attempts of one firing are set to one
here, so that every call of a tool is one decision of the planner, as the seed counts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import holdfast.demo
from holdfast import Holdfast, PlanInstance, PlannerAgent, RetrySituation, TaskDriver
from holdfast.core.run.steps import retry_delay
from holdfast.demo.office import Office
from holdfast.errors import ForbiddenError, PermanentError
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.testing.clock import ManualClock

DEMO = Path(holdfast.demo.__file__).parent

GATE = """
plan_id: gate
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "005"}, {task_id: "006"}]
listeners:
  - listener_id: L005
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: open_gate
    retry: {attempts: 1, initial: 0.001}
    success_output: {task_id: "005", status: Done}
    failure_output: {task_id: "005", status: Error, context: {error: "{{result.error}}"}}
  - listener_id: L006
    trigger_task_id: "005"
    trigger_condition: Done
    listener_type: tool
    tool: tell
    retry: {attempts: 1, initial: 0.001}
    success_output: {task_id: "006", status: Done}
  - listener_id: L007
    trigger_task_id: "006"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

OpenApp = Callable[..., Awaitable[Holdfast]]


class Gate:
    """A gate that fails as often as it is told to, and one that hears of it afterwards."""

    def __init__(self, app: Holdfast, plan: str = GATE) -> None:
        self.app = app
        self.failures = 0
        self.opened = 0
        self.told = 0
        app.tool(self.open_gate)
        app.tool(self.tell)
        app.load_plan_text(plan)

    async def open_gate(self) -> dict[str, Any]:
        self.opened += 1
        if self.failures:
            self.failures -= 1
            return {"success": False, "error": "门禁系统故障"}
        return {"success": True}

    async def tell(self) -> dict[str, Any]:
        self.told += 1
        return {"success": True}

    async def run(self, failures: int) -> PlanInstance:
        self.failures = failures
        instance = await self.app.plans.start_plan_by_prompt("开门", "gate")
        await instance.wait_for_completion()
        return instance


@pytest.fixture
async def gate(open_app: OpenApp) -> Gate:
    return Gate(await open_app())


def trace(instance: PlanInstance, task_id: str) -> list[str]:
    return [entry["status"] for entry in instance.get_task_instance(task_id).trace]


class TestAutomaticRetry:
    """1. 任务失败自动重试"""

    async def test_failure_is_noticed(self, gate: Gate) -> None:
        """监控失败: 捕获 Error 状态"""
        instance = await gate.run(failures=1)
        assert instance.status == "done"
        assert "Error" in trace(instance, "005")

    async def test_three_retries_by_default(self, gate: Gate) -> None:
        """智能重试: 默认最多 3 次"""
        assert PlannerAgent().max_retry_count == 3
        assert gate.app.planner_agent.max_retry_count == 3
        instance = await gate.run(failures=3)
        assert instance.status == "done"
        assert gate.opened == 4
        failed = await gate.run(failures=100)
        assert failed.status == "error"
        assert gate.opened == 4 + 4

    async def test_the_task_goes_back_to_not_started(self, gate: Gate) -> None:
        """状态重置: 将失败任务重置为 NotStarted，触发侦听器重新执行"""
        instance = await gate.run(failures=1)
        expected = ["Running", "Error", "NotStarted", "Running", "Done"]
        assert trace(instance, "005") == expected

    async def test_retries_are_recorded_in_the_tasks_context(self, gate: Gate) -> None:
        """记录追踪: 在任务上下文中记录重试次数和时间"""
        instance = await gate.run(failures=2)
        context = instance.get_task_instance("005").context
        assert context["retry_count"] == 2
        assert context["max_retries"] == 3
        times = [datetime.fromisoformat(one) for one in context["retry_times"]]
        assert len(times) == 2
        assert times == sorted(times)

    async def test_example_task_005(self, gate: Gate) -> None:
        """示例: Task 005: Running -> Error; 重置为 NotStarted; NotStarted -> Running"""
        instance = await gate.run(failures=1)
        entries = instance.get_task_instance("005").trace
        moved = list(
            zip([one["status"] for one in entries], trace(instance, "005")[1:], strict=False)
        )
        assert moved[0] == ("Running", "Error")
        assert moved[1] == ("Error", "NotStarted")
        assert moved[2] == ("NotStarted", "Running")
        assert entries[2]["reason"] == "planner_retry"

    async def test_the_main_task_is_retrying_meanwhile(self, gate: Gate) -> None:
        """1. 任务失败自动重试: the main task shows that something is tried again"""
        instance = await gate.run(failures=1)
        assert trace(instance, "001") == ["Running", "Retrying", "Running", "Done"]


class TestBeyondTheLimit:
    """2. 超过重试次数的处理"""

    async def test_a_failed_sub_task_puts_the_main_task_in_error(self, gate: Gate) -> None:
        """子任务失败: 将主任务设置为 Error 状态"""
        instance = await gate.run(failures=100)
        assert instance.get_task_instance("005").status == "Error"
        assert instance.get_main_task_instance().status == "Error"
        assert instance.status == "error"

    async def test_a_failed_main_task_stays_in_error_and_waits(self, open_app: OpenApp) -> None:
        """主任务失败: 保持 Error 状态，等待人工 resume"""
        plan = GATE.replace(
            '{task_id: "005", status: Error, context: {error: "{{result.error}}"}}',
            '{task_id: "001", status: Error, context: {error: "{{result.error}}"}}',
        )
        gate = Gate(await open_app(), plan)
        instance = await gate.run(failures=100)
        assert instance.status == "error"
        main = instance.get_main_task_instance()
        assert main.status == "Error"
        assert main.context["error_info"]["status"] == "waiting_for_resume"
        assert gate.opened == 4

    async def test_the_error_is_recorded(self, gate: Gate) -> None:
        """错误记录: 主任务上下文 error_info: failed_retries, status, message"""
        instance = await gate.run(failures=100)
        info = instance.get_main_task_instance().context["error_info"]
        assert set(info) == {"failed_retries", "status", "message"}
        assert info["failed_retries"] == 3
        assert info["status"] == "waiting_for_resume"
        assert "failed after 3 retries" in info["message"]
        assert "门禁系统故障" in info["message"]

    async def test_what_the_failure_said_is_in_the_tasks_context(self, gate: Gate) -> None:
        """侦听器失败配置: failure_output context"""
        instance = await gate.run(failures=100)
        assert instance.get_task_instance("005").context["error"] == "门禁系统故障"


class TestResume:
    """3. 计划恢复 (Resume)"""

    async def test_counters_start_anew(self, gate: Gate) -> None:
        """重置计数器: 清除所有任务的重试计数"""
        instance = await gate.run(failures=4)
        assert instance.status == "error"
        gate.failures = 3
        assert await gate.app.planner_agent.resume_plan(gate.app.plans, "gate", instance.id)
        assert await instance.wait_for_completion() == "done"
        assert gate.opened == 8

    async def test_the_failed_task_runs_again_and_the_rest_follows(self, gate: Gate) -> None:
        """重新执行, 继续流程: 从失败点继续执行后续流程"""
        instance = await gate.run(failures=4)
        assert gate.told == 0
        await gate.app.planner_agent.resume_plan(gate.app.plans, "gate", instance.id)
        assert await instance.wait_for_completion() == "done"
        assert (gate.opened, gate.told) == (5, 1)

    async def test_code_call_without_an_instance_id(self, gate: Gate) -> None:
        """代码调用: success = await plan_module.planner_agent.resume_plan(plan_module, plan_id)"""
        plan_module, plan_id = gate.app.plans, "gate"
        instance = await gate.run(failures=4)
        success = await plan_module.planner_agent.resume_plan(plan_module, plan_id)
        assert success is True
        assert await instance.wait_for_completion() == "done"

    async def test_nothing_to_resume(self, gate: Gate) -> None:
        """代码调用: while nothing is in error"""
        await gate.run(failures=0)
        assert await gate.app.planner_agent.resume_plan(gate.app.plans, "gate") is False
        assert gate.opened == 1


class TestWorkflows:
    """工作流程"""

    async def test_normal_flow_one_failure_then_success(self, gate: Gate) -> None:
        """正常流程（单次失败后成功）"""
        instance = await gate.run(failures=1)
        assert instance.status == "done"
        assert (gate.opened, gate.told) == (2, 1)
        assert instance.get_task_instance("005").context["retry_count"] == 1

    async def test_failure_flow_beyond_the_limit(self, gate: Gate) -> None:
        """失败流程（超过重试次数）"""
        gate.app.planner_agent.max_retry_count = 2
        instance = await gate.run(failures=100)
        assert trace(instance, "005").count("Error") == 3
        assert instance.get_main_task_instance().status == "Error"
        assert instance.get_main_task_instance().context["error_info"]["failed_retries"] == 2

    async def test_resume_flow(self, gate: Gate) -> None:
        """Resume 流程"""
        instance = await gate.run(failures=4)
        await gate.app.planner_agent.resume_plan(gate.app.plans, "gate", instance.id)
        assert await instance.wait_for_completion() == "done"
        assert trace(instance, "005")[-3:] == ["NotStarted", "Running", "Done"]


class TestConfiguration:
    """配置说明"""

    async def test_max_retry_count_at_construction(self, open_app: OpenApp) -> None:
        """重试次数配置: PlannerAgent(a2a_client=…, llm_client=…, max_retry_count=3)"""
        a2a_client, llm_client = object(), object()
        planner_agent = PlannerAgent(
            a2a_client=a2a_client, llm_client=llm_client, max_retry_count=1
        )
        assert planner_agent.a2a_client is a2a_client
        assert planner_agent.llm_client is llm_client
        gate = Gate(await open_app(planner_agent=planner_agent))
        instance = await gate.run(failures=100)
        assert instance.status == "error"
        assert gate.opened == 2

    async def test_max_retry_count_zero_never_retries(self, open_app: OpenApp) -> None:
        """重试次数配置: 0"""
        gate = Gate(await open_app(max_retry_count=0))
        instance = await gate.run(failures=1)
        assert (instance.status, gate.opened) == ("error", 1)
        assert instance.get_main_task_instance().context["error_info"]["failed_retries"] == 0

    def test_max_retry_count_below_zero_is_refused(self) -> None:
        """重试次数配置: a negative number has no meaning"""
        with pytest.raises(ValueError, match="max_retry_count"):
            PlannerAgent(max_retry_count=-1)

    async def test_max_retry_count_changes_at_run_time(self, gate: Gate) -> None:
        """运行时修改: plan_module.planner_agent.max_retry_count = 5"""
        gate.app.plans.planner_agent.max_retry_count = 5
        instance = await gate.run(failures=5)
        assert (instance.status, gate.opened) == ("done", 6)
        assert instance.get_task_instance("005").context["max_retries"] == 5

    async def test_max_retry_count_changed_while_a_run_is_under_way(
        self, open_app: OpenApp
    ) -> None:
        """运行时修改: the next decision already counts by the new number"""
        app, calls = await open_app(max_retry_count=1), []

        async def open_gate() -> dict[str, Any]:
            calls.append(1)
            app.planner_agent.max_retry_count = 4
            return {"success": False, "error": "门禁系统故障"}

        async def tell() -> None: ...

        app.tool(open_gate)
        app.tool(tell)
        app.load_plan_text(GATE)
        instance = await app.plans.start_plan_by_prompt("开门", "gate")
        assert await instance.wait_for_completion() == "error"
        assert len(calls) == 5

    async def test_a_snippets_success_false_is_a_failure(self, open_app: OpenApp) -> None:
        """侦听器失败配置: 代码侦听器通过 result.success 字段判断失败, with the seed's snippet"""
        app = await open_app(max_retry_count=1)
        app.load_plan_text(
            """
plan_id: gate_code
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    retry: {attempts: 1, initial: 0.001}
    listener_type: code
    code_snippet: |
      # 返回失败
      result = {
          "success": False,
          "target_task": "002",
          "target_status": "Error",
          "context": {"error": "门禁系统故障"}
      }
    success_output: {task_id: "002", status: Done}
    failure_output:
      task_id: "002"
      status: "Error"
      context: {"error": "门禁系统故障"}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""
        )
        instance = await app.plans.start_plan_by_prompt("", "gate_code")
        assert await instance.wait_for_completion() == "error"
        assert instance.get_task_instance("002").context["error"] == "门禁系统故障"
        expected = ["Running", "Error", "NotStarted", "Running", "Error"]
        assert trace(instance, "002") == expected
        main = instance.get_main_task_instance()
        assert main.context["failed_listener_id"] == f"{instance.id}_L001"
        assert "门禁系统故障" in (instance.error or "")


class TestVerification:
    """测试验证, 测试场景"""

    async def test_task_failure_with_retry(self, gate: Gate) -> None:
        """BL014: 基础重试测试: 单任务失败重试; 重试计数正确"""
        instance = await gate.run(failures=2)
        assert instance.status == "done"
        assert instance.get_task_instance("005").context["retry_count"] == 2
        assert gate.opened == 3

    async def test_will_zhang_onboarding_with_retry_success(
        self, app: Holdfast, office: Office, will_zhang: dict[str, Any]
    ) -> None:
        """BL005: 端到端重试测试: Will Zhang 入职流程, 门禁失败 1 次后重试成功"""
        await office.configure_failures({"grant_access": 1})
        instance = await app.plans.start_plan_by_prompt(
            "入职流程", "onboard_will_zhang", values=will_zhang
        )
        assert await instance.wait_for_completion() == "done"
        assert (await office.counts())["grant_access"] == 2

    async def test_will_zhang_onboarding_with_a_planner_retry(
        self, app: Holdfast, office: Office, will_zhang: dict[str, Any]
    ) -> None:
        """BL005: 端到端重试测试: failing 3 times, max_retry_count=1: 4 calls, every other once"""
        app.planner_agent.max_retry_count = 1
        await office.configure_failures({"grant_access": 3})
        instance = await app.plans.start_plan_by_prompt(
            "入职流程", "onboard_will_zhang", values=will_zhang
        )
        assert await instance.wait_for_completion() == "done"
        counts = await office.counts()
        assert counts.pop("grant_access") == 4
        assert set(counts.values()) == {1}

    async def test_simple_retry_and_resume(
        self, app: Holdfast, office: Office, will_zhang: dict[str, Any]
    ) -> None:
        """BL005: Resume 场景测试: 多任务失败超过重试次数, Resume 后流程成功完成"""
        plan = (DEMO / "plans" / "onboard_will_zhang.yaml").read_text(encoding="utf-8")
        app.load_plan_text(plan.replace("attempts: 3", "attempts: 1"))
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({"grant_access": 1, "apply_computer": 1})
        instance = await app.plans.start_plan_by_prompt(
            "入职流程", "onboard_will_zhang", values=will_zhang
        )
        assert await instance.wait_for_completion() == "error"
        await app.engine.wait_for(instance.id, lambda state: len(state.failed) == 2)
        context = instance.get_main_task_instance().context
        both = {f"{instance.id}_L002", f"{instance.id}_L003"}
        assert set(context["failed_listener_ids"]) == both
        assert await app.planner_agent.resume_plan(app.plans, "onboard_will_zhang", instance.id)
        assert await instance.wait_for_completion() == "done"
        counts = await office.counts()
        assert (counts.pop("grant_access"), counts.pop("apply_computer")) == (2, 2)
        assert set(counts.values()) == {1}


class TestEvolution:
    """未来演进, as far as the design has made it present"""

    @pytest.mark.parametrize("error", [PermanentError, ForbiddenError])
    async def test_1_the_kind_of_error_decides(
        self, open_app: OpenApp, error: type[Exception]
    ) -> None:
        """智能重试策略: 根据错误类型决定重试次数"""
        app, calls = await open_app(), []

        async def open_gate() -> None:
            calls.append(1)
            raise error("no badge, no entry")

        async def tell() -> None: ...

        app.tool(open_gate)
        app.tool(tell)
        app.load_plan_text(
            GATE.replace("{attempts: 1, initial: 0.001}", "{attempts: 3, initial: 0.001}")
        )
        instance = await app.plans.start_plan_by_prompt("", "gate")
        assert await instance.wait_for_completion() == "error"
        assert len(calls) == 1

    def test_2_pauses_grow_exponentially(self) -> None:
        """指数退避: 重试间隔逐渐增加"""
        policy = RetryPolicy(attempts=5, initial=1, factor=2, maximum=5, jitter=0)
        failure = Failure(FailureKind.TRANSIENT, "")
        delays = [retry_delay(policy, failure, attempt, 0.5) for attempt in range(1, 6)]
        assert delays == [1, 2, 4, 5, None]

    async def test_2_an_attempt_waits_for_its_time(
        self, open_app: OpenApp, clock: ManualClock
    ) -> None:
        """指数退避: nothing is tried before the pause is over"""
        app = await open_app(clock=clock)
        retry = "{attempts: 3, initial: 10, factor: 3, jitter: 0}"
        gate = Gate(app, GATE.replace("{attempts: 1, initial: 0.001}", retry, 1))
        gate.failures = 2
        instance = await app.plans.start_plan_by_prompt("", "gate")
        for pause, calls in ((10, 1), (30, 2)):
            state = await app.engine.wait_for(instance.id, lambda state: bool(state.timers))
            assert (min(state.timers.values()), gate.opened) == (clock.now() + pause, calls)
            clock.advance(pause)
            await app.engine.wait_for(instance.id, lambda state: not state.timers)
        assert await instance.wait_for_completion() == "done"
        assert gate.opened == 3

    async def test_3_only_the_failed_step_is_retried(self, app: Holdfast, office: Office) -> None:
        """部分重试: 只重试失败的步骤"""
        await office.configure_failures({"send_email": 4})
        instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
        assert await instance.wait_for_completion() == "done"
        counts = await office.counts()
        assert counts.pop("send_email") == 5
        assert set(counts.values()) == {1}

    async def test_4_a_model_may_decide(self, open_app: OpenApp) -> None:
        """LLM 决策: 让 LLM 分析错误并决定重试策略: the decision is a hook"""
        asked: list[RetrySituation] = []

        class Deciding(PlannerAgent):
            async def decide_retry_strategy(self, situation: RetrySituation) -> int:
                asked.append(situation)
                return 2 if "故障" in situation.error else 0

        gate = Gate(await open_app(planner_agent=Deciding()))
        instance = await gate.run(failures=100)
        assert instance.status == "error"
        assert gate.opened == 3
        assert [one.retry_count for one in asked] == [0, 1, 2]
        assert {one.task_id for one in asked} == {"005"}
        assert {one.listener_id for one in asked} == {"L005"}


class TestCoreCode:
    """技术细节, 核心代码"""

    async def test_handle_task_error_compares_the_count_with_the_strategy(self, gate: Gate) -> None:
        """PlannerAgent 重试逻辑: if current_retry < max_retries … else _mark_plan_error"""
        gate.app.planner_agent.max_retry_count = 2
        within = await gate.run(failures=2)
        assert (within.status, gate.opened) == ("done", 3)
        beyond = await gate.run(failures=3)
        assert (beyond.status, gate.opened) == ("error", 6)

    @pytest.mark.parametrize(
        ("execution", "status"),
        [
            ({"success": True, "result": {"success": True}}, "Done"),
            ({"success": True, "result": {"success": False, "error": "故障"}}, "Error"),
            ({"success": True, "result": {"error": "无关"}}, "Done"),
            ({"success": False, "result": {"error": "故障"}}, "Error"),
        ],
    )
    async def test_task_driver_looks_at_the_inner_success(
        self, open_app: OpenApp, execution: dict[str, Any], status: str
    ) -> None:
        """TaskDriver 失败判断: 检查内部 result.success 字段"""
        determined: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        class Judging(TaskDriver):
            async def execute_listener(self, listener: Any, context: Any) -> dict[str, Any]:
                if listener.listener_id == "L005":
                    determined.set_result(self.determine_task_updates(listener, execution, context))
                return {"success": True, "task_updates": [], "result": None}

        gate = Gate(await open_app(driver=Judging))
        await gate.run(failures=0)
        updates = await determined
        assert [(one["task_id"], one["status"]) for one in updates] == [("005", status)]
