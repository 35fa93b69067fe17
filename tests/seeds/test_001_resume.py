"""Seed 001, PlannerAgent Resume机制设计与实现: a run that gave up goes on from where it failed.

The scenario is the seed's: Will Zhang's onboarding, in which the access system fails. Each
docstring quotes the section that the test makes real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from holdfast import Holdfast, PlanInstance, PlanModule, PlannerAgent
from holdfast.core.plan.decide import blank, replay
from holdfast.demo.office import Office
from holdfast.journal.codec import decode
from holdfast.model.events import ListenerStarted, PlannerRetried, RunResumed
from holdfast.model.recorded import Event

PLAN = "onboard_will_zhang"
ONCE = ("create_employee_profile", "apply_computer", "outbound", "send_email")
QUERIES = ("query_profile", "query_access", "check_outbound_status")

OpenApp = Callable[..., Awaitable[Holdfast]]


@pytest.fixture
async def failed(app: Holdfast, office: Office, will_zhang: dict[str, Any]) -> PlanInstance:
    """grant_access has failed six times: three attempts, and three more at the planner's retry."""
    app.planner_agent.max_retry_count = 1
    await office.configure_failures({"grant_access": 6})
    instance = await app.plans.start_plan_by_prompt("入职流程", PLAN, values=will_zhang)
    await instance.wait_for_completion()
    await computer_shipped(app, instance)
    return instance


async def computer_shipped(app: Holdfast, instance: PlanInstance) -> None:
    """The other branch is in flight when the run gives up; it ends, and then all is quiet."""
    await app.engine.wait_for(instance.id, lambda state: state.in_flight == 0)


async def resume(app: Holdfast, instance: PlanInstance) -> bool:
    return await app.planner_agent.resume_plan(app.plans, PLAN, instance.id)


async def events_of(app: Holdfast, instance: PlanInstance) -> list[Event]:
    return [decode(record) for record in await app.journal.read(instance.id)]


async def as_it_was_resumed(app: Holdfast, instance: PlanInstance) -> PlanInstance:
    """The instance at the very event of its last resume, folded from the journal."""
    records = await app.journal.read(instance.id)
    events = [(record.at, decode(record)) for record in records]
    last = max(n for n, (_, event) in enumerate(events) if isinstance(event, RunResumed))
    plan = (await app.engine.state(instance.id)).plan
    return PlanInstance(app.engine, replay(blank(instance.id, plan), events[: last + 1]))


def statuses(instance: PlanInstance) -> dict[str, str]:
    return {task_id: task.status for task_id, task in instance.tasks.items()}


class TestTrigger:
    async def test_automatic_retries_are_used_up(
        self, failed: PlanInstance, office: Office
    ) -> None:
        """Resume触发场景, 自动重试超限: 3次失败 → 自动重试 → 再3次失败 → waiting_for_resume"""
        assert failed.status == "error"
        main = failed.get_main_task_instance()
        assert main.status == "Error"
        assert main.context["failed_listener_id"] == f"{failed.id}_L002"
        assert main.context["error_info"]["status"] == "waiting_for_resume"
        assert main.context["error_info"]["failed_retries"] == 1
        assert (await office.counts())["grant_access"] == 6

    async def test_the_plan_stops_driving_itself(
        self, app: Holdfast, failed: PlanInstance, office: Office
    ) -> None:
        """停止自我驱动循环: nothing is under way, nothing is due, nothing after 005 has begun"""
        state = await app.engine.state(failed.id)
        assert state.in_flight == 0
        assert not state.timers
        counts = await office.counts()
        assert "send_email" not in counts
        assert not set(QUERIES) & set(counts)


class TestFlow:
    """Resume执行流程"""

    async def test_preparation_and_call(
        self,
        failed: PlanInstance,
        office: Office,
        plan_module: PlanModule,
        planner_agent: PlannerAgent,
    ) -> None:
        """1. 准备阶段, 2. Resume调用, with the seed's own calls"""
        mock_api_url = office.url
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(f"{mock_api_url}/reset_failures")
        success = await planner_agent.resume_plan(
            plan_module, plan_id="onboard_will_zhang", plan_instance_id="inst_000001"
        )
        assert success is True
        assert await failed.wait_for_completion() == "done"

    async def test_step_1_the_state_is_what_resume_requires(
        self, failed: PlanInstance, plan_module: PlanModule
    ) -> None:
        """步骤1：验证状态"""
        plan_instance = await plan_module.get_plan_instance(failed.id)
        assert plan_instance is not None
        main_task = plan_instance.get_main_task_instance()
        assert main_task.status == "Error"
        assert main_task.context.get("error_info", {}).get("status") == "waiting_for_resume"

    async def test_step_2_the_failed_listener_is_named(self, failed: PlanInstance) -> None:
        """步骤2：读取失败信息, 例如: "inst_000001_L002" """
        main_task = failed.get_main_task_instance()
        assert main_task.context.get("failed_listener_id") == "inst_000001_L002"
        assert main_task.context.get("failed_listener_ids") == ["inst_000001_L002"]

    async def test_step_3_the_retry_counter_starts_anew(
        self, app: Holdfast, failed: PlanInstance, office: Office
    ) -> None:
        """步骤3：重置重试计数器: after the resume the planner may retry as often as before"""
        await office.configure_failures({"grant_access": 3})
        assert await resume(app, failed)
        assert await failed.wait_for_completion() == "done"
        retries = [e for e in await events_of(app, failed) if isinstance(e, PlannerRetried)]
        assert [event.retry_count for event in retries] == [1, 1]
        assert (await office.counts())["grant_access"] == 6 + 3 + 1

    async def test_step_4_status_is_restored_and_the_failure_forgotten(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """步骤4：恢复状态: RUNNING; Retrying, "resume_retry_listener"; del failed_listener_id"""
        assert await resume(app, failed)
        resumed = await as_it_was_resumed(app, failed)
        assert resumed.status == "running"
        main = resumed.get_main_task_instance()
        assert main.status == "Retrying"
        assert main.trace[-1]["reason"] == "resume_retry_listener"
        assert "failed_listener_id" not in main.context
        assert main.context["error_info"]["status"] == "resuming"
        assert await failed.wait_for_completion() == "done"

    async def test_step_5_the_failed_listener_runs_again(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """步骤5：重新执行失败的Listener"""
        await resume(app, failed)
        await failed.wait_for_completion()
        events = await events_of(app, failed)
        at = next(n for n, event in enumerate(events) if isinstance(event, RunResumed))
        assert events[at].refired == ("L002",)  # type: ignore[union-attr]
        started = [e.listener_id for e in events[at:] if isinstance(e, ListenerStarted)]
        assert started[0] == "L002"

    async def test_step_6_the_plan_drives_itself_again(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """步骤6：重启自我驱动循环: nobody calls start()"""
        await resume(app, failed)
        assert await failed.wait_for_completion() == "done"

    async def test_step_7_what_follows_follows_by_itself(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """步骤7：后续自动执行: L002 → L004 → L007 → L000DONE (verification)"""
        await resume(app, failed)
        await failed.wait_for_completion()
        events = await events_of(app, failed)
        at = next(n for n, event in enumerate(events) if isinstance(event, RunResumed))
        started = [e.listener_id for e in events[at:] if isinstance(e, ListenerStarted)]
        assert started[:3] == ["L002", "L004", "L007"]
        assert sorted(started[3:]) == ["verify.1", "verify.2", "verify.3"]
        assert set(failed.verification.values()) == {"verified"}


class TestDesign:
    """设计特点"""

    async def test_1_successful_tasks_are_not_reset(
        self, app: Holdfast, failed: PlanInstance, office: Office
    ) -> None:
        """1. 无状态重置: 002, 003, 004保持Done; 只重试失败的listener; 保持执行历史"""
        before = statuses(failed)
        assert {before[one] for one in ("002", "003", "004")} == {"Done"}
        traces = {one: failed.get_task_instance(one).trace for one in ("002", "003", "004")}
        history = await events_of(app, failed)
        await resume(app, failed)
        await failed.wait_for_completion()
        assert {one: failed.get_task_instance(one).trace for one in traces} == traces
        assert (await events_of(app, failed))[: len(history)] == history
        counts = await office.counts()
        assert [counts[tool] for tool in ONCE] == [1, 1, 1, 1]

    @pytest.mark.parametrize(
        ("tool", "listener_id"),
        [
            ("create_employee_profile", "L001"),
            ("apply_computer", "L003"),
            ("outbound", "L005"),
            ("send_email", "L004"),
        ],
    )
    async def test_2_any_listener_and_any_tool(
        self, app: Holdfast, office: Office, tool: str, listener_id: str
    ) -> None:
        """2. 完全泛化: 从context动态读取failed_listener_id"""
        app.planner_agent.max_retry_count = 0
        await office.configure_failures({tool: 3})
        instance = await app.plans.start_plan_by_prompt("入职流程", PLAN)
        assert await instance.wait_for_completion() == "error"
        context = instance.get_main_task_instance().context
        assert context["failed_listener_id"] == f"{instance.id}_{listener_id}"
        await app.engine.wait_for(instance.id, lambda state: state.in_flight == 0)
        assert await resume(app, instance)
        assert await instance.wait_for_completion() == "done"
        expected = dict.fromkeys((*ONCE, *QUERIES, "grant_access"), 1) | {tool: 4}
        assert await office.counts() == expected

    async def test_3_it_goes_on_without_anybody_triggering_anything(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """3. 自动恢复: 无需手动触发后续listener"""
        await resume(app, failed)
        assert await failed.wait_for_completion() == "done"
        assert set(statuses(failed).values()) == {"Done"}

    async def test_4_being_over_the_limit_does_not_last(
        self, app: Holdfast, failed: PlanInstance, office: Office
    ) -> None:
        """4. 重试计数重置: 避免"已超限"的状态延续"""
        await office.configure_failures({"grant_access": 6})
        await resume(app, failed)
        assert await failed.wait_for_completion() == "error"
        assert (await office.counts())["grant_access"] == 12
        assert await resume(app, failed)
        assert await failed.wait_for_completion() == "done"
        assert (await office.counts())["grant_access"] == 13


class TestComparison:
    """对比：自动重试 vs Resume, the table row by row"""

    async def test_row_1_how_it_starts(
        self, app: Holdfast, office: Office, failed: PlanInstance
    ) -> None:
        """触发方式 | 自动（检测到Error） | 手动（API调用）"""
        retried = [e for e in await events_of(app, failed) if isinstance(e, PlannerRetried)]
        assert len(retried) == 1
        assert not [e for e in await events_of(app, failed) if isinstance(e, RunResumed)]
        await resume(app, failed)
        assert [e for e in await events_of(app, failed) if isinstance(e, RunResumed)]

    async def test_row_2_how_often(
        self, app: Holdfast, office: Office, failed: PlanInstance
    ) -> None:
        """重试次数 | 受max_retry_count限制 | 不受限制（计数器已重置）"""
        for round_number in range(3):
            await office.configure_failures({"grant_access": 6})
            assert await resume(app, failed), round_number
            assert await failed.wait_for_completion() == "error"
        assert (await office.counts())["grant_access"] == 6 * 4
        await office.reset_failures()
        assert await resume(app, failed)
        assert await failed.wait_for_completion() == "done"

    async def test_row_3_what_for(self, app: Holdfast, office: Office) -> None:
        """适用场景 | 临时故障 | 需要人工修复的故障"""
        app.planner_agent.max_retry_count = 1
        await office.configure_failures({"grant_access": 5})
        passing = await app.plans.start_plan_by_prompt("入职流程", PLAN)
        assert await passing.wait_for_completion() == "done"
        await office.configure_failures({"grant_access": 6})
        lasting = await app.plans.start_plan_by_prompt("入职流程", PLAN)
        assert await lasting.wait_for_completion() == "error"

    async def test_row_4_status(
        self,
        app: Holdfast,
        office: Office,
        failed: PlanInstance,
        statuses_of: Callable[[Holdfast, str], Awaitable[list[str]]],
    ) -> None:
        """状态恢复 | 保持running | error → running"""
        assert await statuses_of(app, failed.id) == ["not_started", "running", "error"]
        await resume(app, failed)
        await failed.wait_for_completion()
        assert (await statuses_of(app, failed.id))[2:] == ["error", "running", "done"]

    async def test_row_5_the_loop(
        self,
        open_app: OpenApp,
        stage: Callable[[Holdfast], Holdfast],
        office: Office,
        tmp_path: Any,
    ) -> None:
        """循环管理 | 无需重启 | 需要重启run_self_driven: even in another process's place"""
        app = Holdfast(tmp_path / "other", max_retry_count=0)
        async with app:
            stage(app)
            await office.configure_failures({"grant_access": 3})
            instance = await app.plans.start_plan_by_prompt("入职流程", PLAN)
            await instance.wait_for_completion()
            await computer_shipped(app, instance)
        after = stage(await open_app(tmp_path / "other"))
        assert await after.planner_agent.resume_plan(after.plans, PLAN, instance.id)
        assert await (await after.instance(instance.id)).wait_for_completion() == "done"
        counts = await office.counts()
        assert counts["grant_access"] == 4
        assert [counts[tool] for tool in ONCE] == [1, 1, 1, 1]

    async def test_row_6_retry_records(
        self, app: Holdfast, office: Office, will_zhang: dict[str, Any]
    ) -> None:
        """retry_records | 累加 | 清零"""
        app.planner_agent.max_retry_count = 2
        await office.configure_failures({"grant_access": 9})
        instance = await app.plans.start_plan_by_prompt("入职流程", PLAN, values=will_zhang)
        assert await instance.wait_for_completion() == "error"
        assert instance.get_task_instance("005").context["retry_count"] == 2
        assert len(instance.get_task_instance("005").context["retry_times"]) == 2
        await computer_shipped(app, instance)
        await resume(app, instance)
        await instance.wait_for_completion()
        step = (await app.engine.state(instance.id)).steps["L002"]
        assert step.retries == 0


async def test_will_zhang_onboarding_with_multiple_retries_and_resume(
    app: Holdfast, office: Office, will_zhang: dict[str, Any]
) -> None:
    """测试验证, Test: test_will_zhang_onboarding_with_multiple_retries_and_resume"""
    failure_count = 6
    app.planner_agent.max_retry_count = 1
    await office.configure_failures({"grant_access": failure_count})
    plan_instance = await app.plans.start_plan_by_prompt("入职流程", PLAN, values=will_zhang)
    assert await plan_instance.wait_for_completion() == "error"
    await office.reset_failures()
    assert await resume(app, plan_instance)
    await plan_instance.wait_for_completion()

    main_task = plan_instance.get_main_task_instance()
    tool_counts = await office.counts()
    assert tool_counts.get("grant_access") == 7
    assert [tool_counts.get(tool) for tool in ONCE] == [1, 1, 1, 1]
    assert sum(tool_counts.get(tool, 0) for tool in QUERIES) == 3
    assert plan_instance.status == "done"
    assert main_task.status == "Done"
    assert {statuses(plan_instance)[f"00{n}"] for n in range(2, 7)} == {"Done"}


class TestSafety:
    """安全性"""

    async def test_1_only_an_instance_in_error_can_be_resumed_not_one_that_is_done(
        self, app: Holdfast, office: Office
    ) -> None:
        """1. 状态检查: 只能resume处于Error状态的plan_instance: done"""
        instance = await app.plans.start_plan_by_prompt("入职流程", PLAN)
        await instance.wait_for_completion()
        version, counts = instance.version, await office.counts()
        assert await resume(app, instance) is False
        assert (instance.version, await office.counts()) == (version, counts)

    async def test_1_nor_one_that_is_running(self, open_app: OpenApp) -> None:
        """1. 状态检查: running"""
        app, entered, may_end = await open_app(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            entered.set()
            await may_end.wait()

        app.tool(work)
        app.load_plan_text(
            """
            plan_id: short
            main_task_id: "001"
            tasks: [{task_id: "001"}]
            listeners:
              - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running,
                 listener_type: tool, tool: work, success_output: {task_id: "001", status: Done}}
            """
        )
        instance = await app.plans.start_plan_by_prompt("", "short")
        await entered.wait()
        assert instance.status == "running"
        version = instance.version
        assert await app.planner_agent.resume_plan(app.plans, "short", instance.id) is False
        assert instance.version == version
        may_end.set()
        assert await instance.wait_for_completion() == "done"

    async def test_1_nor_one_that_is_paused(self, app: Holdfast) -> None:
        """1. 状态检查: pause"""
        instance = await app.plans.start_plan_by_prompt("为张三申请电脑", "apply_computer")
        await instance.wait_until_settled()
        version = instance.version
        resumed = await app.planner_agent.resume_plan(app.plans, "apply_computer", instance.id)
        assert resumed is False
        assert (instance.status, instance.version) == ("pause", version)

    async def test_1_the_failed_listener_and_the_waiting_mark_are_there(
        self, failed: PlanInstance
    ) -> None:
        """1. 状态检查: 必须有failed_listener_id, 必须有waiting_for_resume标记"""
        context = failed.get_main_task_instance().context
        assert context["failed_listener_id"]
        assert context["error_info"]["status"] == "waiting_for_resume"

    async def test_2_resuming_many_times_runs_it_once(
        self, app: Holdfast, failed: PlanInstance, office: Office
    ) -> None:
        """2. 幂等性: 多次调用resume不会重复执行"""
        answers = await asyncio.gather(*(resume(app, failed) for _ in range(5)))
        assert sorted(answers) == [False, False, False, False, True]
        resumed = await as_it_was_resumed(app, failed)
        assert resumed.get_main_task_instance().context["error_info"]["status"] == "resuming"
        assert await failed.wait_for_completion() == "done"
        assert await resume(app, failed) is False
        assert (await office.counts())["grant_access"] == 7

    async def test_3_who_resumed_is_on_record(self, app: Holdfast, failed: PlanInstance) -> None:
        """3. 权限控制: Resume是显式API调用; 记录完整的日志"""
        planner = app.planner_agent
        assert await planner.resume_plan(app.plans, PLAN, failed.id, by="Will Zhang")
        resumed = [e for e in await events_of(app, failed) if isinstance(e, RunResumed)]
        assert [event.by for event in resumed] == ["Will Zhang"]


class TestApi:
    """API接口, PlannerAgent.resume_plan()"""

    async def test_true_when_it_resumed(self, app: Holdfast, failed: PlanInstance) -> None:
        """返回: True: Resume成功"""
        assert await resume(app, failed) is True

    async def test_false_for_an_unknown_instance(self, app: Holdfast) -> None:
        """返回: False: Resume失败; 所有异常都被捕获并返回False"""
        assert await app.planner_agent.resume_plan(app.plans, PLAN, "inst_000404") is False

    async def test_false_for_another_plans_instance(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """参数: plan_id must be the instance's plan"""
        assert not await app.planner_agent.resume_plan(app.plans, "apply_computer", failed.id)
        assert failed.status == "error"

    async def test_without_an_instance_id_the_only_one_in_error_is_meant(
        self, app: Holdfast, failed: PlanInstance
    ) -> None:
        """签名: plan_instance_id: Optional[str] = None"""
        assert await app.planner_agent.resume_plan(app.plans, PLAN) is True
        assert await failed.wait_for_completion() == "done"
        assert await app.planner_agent.resume_plan(app.plans, PLAN) is False

    async def test_without_an_instance_id_several_in_error_are_refused(
        self, app: Holdfast, failed: PlanInstance, office: Office
    ) -> None:
        """plan_instance_id: 计划实例ID（必需）: with two waiting, nobody guesses"""
        await office.configure_failures({"grant_access": 6})
        other = await app.plans.start_plan_by_prompt("入职流程", PLAN)
        assert await other.wait_for_completion() == "error"
        assert await app.planner_agent.resume_plan(app.plans, PLAN) is False
        assert (failed.status, other.status) == ("error", "error")


async def test_usage_example_the_access_system_breaks(
    plan_module: PlanModule, planner_agent: PlannerAgent, office: Office
) -> None:
    """使用示例, 场景：门禁系统故障"""
    planner_agent.max_retry_count = 1
    await office.configure_failures({"grant_access": 100})
    plan_id = "onboard_will_zhang"
    wait_for_completion = plan_module.wait_for_completion

    # 1. 执行计划
    plan_instance = await plan_module.start_plan_by_prompt("入职流程", plan_id)
    plan_instance.start()

    # 2. 等待执行（自动失败）
    status = await wait_for_completion(plan_instance.id, timeout=120)
    assert status == "error"

    # 3. 修复外部系统
    await office.reset_failures()

    # 4. Resume恢复
    success = await plan_module.planner_agent.resume_plan(plan_module, plan_id, plan_instance.id)
    assert success

    # 5. 等待完成
    final_status = await wait_for_completion(plan_instance.id, timeout=120)
    assert final_status == "done"
