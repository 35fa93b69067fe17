"""Whoever reads Chinese reads no English of ours: not at a field, not in a plan, not of a run."""

from __future__ import annotations

import pytest
from card_scene import CardScene, at_card
from console_scene import OpenWindow
from playwright.async_api import expect

from holdfast import Holdfast
from holdfast.model.run import RunStatus

REFUSED = "422 (Unprocessable"

FAILING = """
plan_id: failing
name: A plan that fails
main_task_id: "001"
tasks: [{task_id: "001", name: Nothing}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    retry: {attempts: 1}
    code_snippet: "result = {'a': 1}"
    success_output: {task_id: "001", status: Done, context: {b: "{{result.b}}"}}
"""


@pytest.fixture
def app(scene: CardScene) -> Holdfast:
    return scene.app


async def test_what_is_wrong_with_an_answer_is_told_in_chinese_at_its_field(
    scene: CardScene, open_window: OpenWindow
) -> None:
    reader = await open_window(locale="zh-CN")
    reader.forgive(REFUSED)
    run = await scene.start("computer")
    _, card = await at_card(reader, await scene.question(run))

    await card.get_by_label("MacBook Pro 14寸").check()
    await card.get_by_label("交货日期").fill("2025-12-31")
    await card.get_by_role("button", name="提交").click()
    await expect(card.get_by_role("alert")).to_have_text("请修正 1 处错误")
    await expect(card).to_contain_text('不能早于 2026-01-01；收到的是 "2025-12-31"')
    await expect(card.get_by_label("交货日期")).to_be_focused()

    await card.get_by_label("交货日期").fill("2026-12-01")
    await card.get_by_role("button", name="提交").click()
    await expect(card).to_contain_text("Will Zhang 的回答：提交")
    assert await scene.came_to(run, RunStatus.DONE) is RunStatus.DONE


async def test_the_mistakes_in_a_plan_are_told_in_chinese(open_window: OpenWindow) -> None:
    reader = await open_window(locale="zh-CN")
    reader.forgive(REFUSED)
    page = await reader.open("/console/plans/~new")
    await page.locator("#source").fill("plan_id: a b\nnam: A\n")
    await page.get_by_role("button", name="检查").click()
    problems = page.locator("#problems")
    await expect(problems).to_contain_text("未知的键 'nam'；您是否想写 name？")
    await expect(problems).to_contain_text("计划 缺少键 main_task_id")


async def test_why_a_run_failed_is_told_in_chinese(
    scene: CardScene, open_window: OpenWindow
) -> None:
    scene.app.load_plan_text(FAILING)
    run = (await scene.app.plans.start_plan_by_prompt("failing", "failing")).id
    await scene.came_to(run, RunStatus.ERROR)
    reader = await open_window(locale="zh-CN")
    page = await reader.open(f"/console/runs/{run}")
    await expect(page.locator("#failures")).to_contain_text("result 没有 'b'（现有 a）")
    await expect(page.locator("#timeline")).to_contain_text("result 没有 'b'（现有 a）")


async def test_the_story_names_a_question_as_its_card_does(
    scene: CardScene, open_window: OpenWindow
) -> None:
    run = await scene.start("computer")
    question = (await scene.question(run)).question_id
    reader = await open_window(locale="zh-CN")
    page = await reader.open(f"/console/runs/{run}")
    title = await page.locator(f"#q-{question}-title").inner_text()
    assert title == "apply_computer 还缺少信息"
    await expect(page.locator("#timeline")).to_contain_text(f"询问人员：{title}")
