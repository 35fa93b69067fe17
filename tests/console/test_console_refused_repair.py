"""A repair that was refused: whose words say why, and what the page calls things in Chinese."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from console_scene import Backend, OpenWindow, serving
from playwright.async_api import Page, expect
from repair_scene import RepairScene, a_repair_scene

from holdfast.journal.port import QuestionRow

WHY = "not before Monday"


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[RepairScene]:
    async with a_repair_scene() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def backend(scene: RepairScene) -> AsyncIterator[Backend]:
    async with serving(scene.app) as one:
        yield one


async def refused(scene: RepairScene, why: str = WHY) -> QuestionRow:
    row = await scene.failed()
    feedback = why or None
    await scene.app.answer(row.question_id, option_id="refuse", by="Will Zhang", feedback=feedback)
    return row


async def at_run(open_window: OpenWindow, run_id: str, locale: str) -> Page:
    window = await open_window(locale=locale)
    return await window.live(f"/console/runs/{run_id}")


async def test_the_reason_is_a_quotation_of_who_refused(
    scene: RepairScene, open_window: OpenWindow
) -> None:
    row = await refused(scene)
    page = await at_run(open_window, row.root_id, "en-US")
    case = page.locator("#diagnosis .case")
    await expect(case).to_contain_text("No repair is proposed")
    await expect(case).to_contain_text("Will Zhang refused the repair that was proposed.")
    await expect(case.locator(".quoted blockquote")).to_have_text(WHY)
    await expect(case.locator(".quoted figcaption")).to_have_text("Will Zhang's own words")
    await expect(case.get_by_role("term")).to_have_text(["Said by", "Hooks or models asked"])
    timeline = page.locator("#timeline")
    await expect(timeline).to_contain_text("answered Repair L001? with “Leave the plan as it is”")
    await expect(timeline).not_to_contain_text("with refuse")


async def test_without_a_reason_nothing_is_quoted(
    scene: RepairScene, open_window: OpenWindow
) -> None:
    row = await refused(scene, "")
    page = await at_run(open_window, row.root_id, "en-US")
    case = page.locator("#diagnosis .case")
    await expect(case).to_contain_text("Will Zhang refused the repair that was proposed.")
    await expect(case.locator(".quoted")).to_have_count(0)


async def test_a_chinese_page_says_roles_options_and_evidence_in_words(
    scene: RepairScene, open_window: OpenWindow
) -> None:
    row = await refused(scene)
    page = await at_run(open_window, row.root_id, "zh-CN")
    case = page.locator("#diagnosis .case")
    await expect(case).to_contain_text("Will Zhang 拒绝了所建议的修复。")
    await expect(case.locator(".quoted figcaption")).to_have_text("Will Zhang 的原话")
    await expect(case.locator(".clues")).to_contain_text("127.0.0.1 回复了 409")
    await expect(case.locator(".clues .told")).to_have_text(
        "步骤 L001类别 不会自行改变原因 须先完成其他事项状态码 409"
    )
    told = await page.locator("#timeline").inner_text()
    for sentence in (
        "以“保持计划不变”回答了",
        "询问角色“审批人”：",
        "提出修复建议：create_employee_profile",
        "须先完成其他事项：grant_access",
        f"保持计划不变：{WHY}",
    ):
        assert sentence in told
    assert "approver" not in await page.content()


async def test_a_chinese_card_names_roles_in_words_and_who_may_not_approve(
    scene: RepairScene, open_window: OpenWindow
) -> None:
    row = await scene.failed()
    own = await scene.proposed(row.root_id, by="Will Zhang", reason="the profile is missing")
    window = await open_window(name="Will Zhang", roles=["approver"], locale="zh-CN")
    page = await window.live(f"/console/inbox/{own.question_id}")
    card = page.locator(f"#q-{own.question_id}")
    await expect(card).to_contain_text("审批人，但 Will Zhang 除外")
    await expect(card).to_contain_text("需要角色“审批人”")
    await expect(card.locator(".quoted figcaption")).to_have_text("Will Zhang 的原话")
    await expect(page.locator(f"#open-{own.question_id}")).to_contain_text("审批人")
