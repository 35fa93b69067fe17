"""Whole flows by Tab, Enter, Space and the arrows alone; nobody touches the mouse.

The other pages' flows by keyboard stand with those pages: reject with a reason (cards), cancel
many (runs), a chat with an approval (chat), a new plan and its start (plans), boxes (run).
"""

from __future__ import annotations

import pytest
from card_scene import CardScene
from console_plans import an_office, started
from console_scene import Window, reach, serving, window
from playwright.async_api import Browser, Locator, Page, expect

from holdfast import Holdfast
from holdfast.model.run import RunStatus


@pytest.fixture
def app(scene: CardScene) -> Holdfast:
    return scene.app


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def at_the_question(window: Window, scene: CardScene, run_id: str) -> tuple[Page, Locator]:
    """From the runs to the inbox to the question, as the tabulator leads."""
    row = await scene.question(run_id)
    page = await window.live("/console/runs")
    await reach(page, page.get_by_role("navigation").get_by_role("link", name="Inbox"))
    await press(page, "Enter")
    await reach(page, page.locator("#inbox-queue li a").first)
    await press(page, "Enter")
    await page.wait_for_url(f"**/console/inbox/{row.question_id}")
    card = page.locator(f"#q-{row.question_id}")
    await expect(page.locator("html")).to_have_attribute("data-live", "live")
    return page, card


async def test_the_computer_form_with_a_mistake_first(scene: CardScene, admin: Window) -> None:
    run_id = await scene.start("computer")
    page, card = await at_the_question(admin, scene, run_id)
    admin.forgive("422")
    await reach(page, card.get_by_label("MacBook Pro 14寸"))
    await press(page, "Space", "ArrowDown")
    await expect(card.get_by_label("ThinkPad X1")).to_be_checked()
    await press(page, "Enter")
    date = card.get_by_label("交货日期")
    await expect(date).to_have_attribute("aria-invalid", "true")
    await expect(date).to_be_focused()
    await page.keyboard.type("02022027")  # the day or the month first, as the browser likes
    await expect(date).to_have_value("2027-02-02")
    await press(page, "Enter")
    await expect(card.get_by_role("heading")).to_be_focused()
    await scene.came_to(run_id, RunStatus.DONE)
    ordered = {"employee": "张三", "computer_model": "ThinkPad", "delivery": "2027-02-02"}
    assert scene.calls == [("apply_computer", ordered)]


async def test_approve_with_other_arguments(scene: CardScene, admin: Window) -> None:
    run_id = await scene.ask_clerk("pay 900")
    page, card = await at_the_question(admin, scene, run_id)
    await reach(page, card.get_by_text("Edit the arguments"))
    await press(page, "Enter")
    await reach(page, card.get_by_label("Amount"))
    await press(page, "Control+a")
    await page.keyboard.type("450")
    await press(page, "Enter")
    assert scene.calls == [], "Enter in a field must not approve"
    await reach(page, card.get_by_role("button", name="Approve and run"))
    await press(page, "Enter")
    await scene.came_to(run_id, RunStatus.DONE)
    assert [given["amount"] for _, given in scene.calls] == [450]


async def test_terminate_asks_again_and_the_harmless_answer_comes_first(
    scene: CardScene, admin: Window
) -> None:
    run_id = await scene.ask_clerk("pay 900")
    page, card = await at_the_question(admin, scene, run_id)
    terminate = card.get_by_role("button", name="Reject and stop everything")
    await reach(page, terminate)
    await press(page, "Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("[data-closes]")).to_be_focused()
    await press(page, "Enter")
    await expect(dialog).to_have_count(0)
    await expect(terminate).to_be_focused()
    await press(page, "Enter", "Tab")
    await expect(dialog.locator("[data-confirms]")).to_be_focused()
    await press(page, "Enter")
    await scene.came_to(run_id, RunStatus.CANCELLED)
    assert scene.calls == []


async def test_a_failed_plan_is_resumed(browser: Browser) -> None:
    office = an_office()
    async with serving(office) as backend, window(browser, backend) as admin:
        run_id = await started(office, "fragile", RunStatus.ERROR)
        page = await _at_the_run(admin, run_id)
        office.broken = False
        await reach(page, page.locator("#failures-resume"))
        await press(page, "Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("[data-closes]")).to_be_focused()
        await press(page, "Tab")
        await expect(dialog.locator("#action-do")).to_be_focused()
        await press(page, "Enter")
        await expect(page.locator("#run-status")).to_contain_text("Done")


async def test_a_run_is_cancelled_with_a_reason(scene: CardScene, admin: Window) -> None:
    run_id = await scene.start("computer")
    page = await _at_the_run(admin, run_id)
    await reach(page, page.locator("#do-cancel"))
    await press(page, "Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("[data-closes]")).to_be_focused()
    await press(page, "Shift+Tab")
    await expect(dialog.get_by_label("Reason")).to_be_focused()
    await page.keyboard.type("not needed")
    await press(page, "Tab", "Tab", "Enter")
    await expect(page.locator("#run-status")).to_contain_text("Cancelled")
    await expect(page.locator("#timeline")).to_contain_text("not needed")


async def test_feedback_makes_the_model_think_again(scene: CardScene, admin: Window) -> None:
    run_id = await scene.ask_clerk("pay 900")
    page, card = await at_the_question(admin, scene, run_id)
    await reach(page, card.get_by_label("Reason or feedback"))
    await page.keyboard.type("half of it is enough")
    await reach(page, card.get_by_role("button", name="Ask again with feedback"))
    await press(page, "Enter")
    await expect(card).to_contain_text("Will Zhang answered: Ask again with feedback")
    assert scene.calls == []
    await reach(page, page.locator("#inbox-queue a", has_text="amount: 450"))
    await press(page, "Enter")
    approve = page.locator(".question").get_by_role("button", name="Approve and run")
    await expect(page.locator(".question")).to_contain_text("450")
    await reach(page, approve)
    await press(page, "Enter")
    await scene.came_to(run_id, RunStatus.DONE)
    assert [given["amount"] for _, given in scene.calls] == [450]


async def test_a_run_is_started_with_what_was_typed(scene: CardScene, admin: Window) -> None:
    page = await admin.live("/console/runs")
    await reach(page, page.locator("main summary", has_text="Start a run"))
    await press(page, "Enter")
    await reach(page, page.get_by_role("link", name="Computer for a colleague"))
    await press(page, "Enter")
    await page.wait_for_url("**/console/plans/computer#start")
    name = page.locator("#starting").get_by_label("姓名")
    await reach(page, name)
    await press(page, "Control+a")
    await page.keyboard.type("Will Zhang")
    await reach(page, page.locator("#starting").get_by_role("button", name="Start"))
    await press(page, "Enter")
    await page.wait_for_url("**/console/runs/inst_*")
    run_id = page.url.rpartition("/")[2]
    await scene.came_to(run_id, RunStatus.PAUSE)
    task = (await scene.app.instance(run_id)).get_main_task_instance()
    assert task.context["name"] == "Will Zhang"


async def test_what_failed_is_resumed_together(browser: Browser) -> None:
    office = an_office()
    async with serving(office) as backend, window(browser, backend) as admin:
        failed = [await started(office, "fragile", RunStatus.ERROR) for _ in range(2)]
        page = await admin.live("/console/runs")
        office.broken = False
        await reach(page, page.get_by_label("Select all on this page"))
        await press(page, "Space")
        await reach(page, page.get_by_role("button", name="Resume…"))
        await press(page, "Enter")
        await expect(page.get_by_role("button", name="Leave them")).to_be_focused()
        await press(page, "Tab")
        await expect(page.get_by_role("button", name="Resume 2 runs")).to_be_focused()
        await press(page, "Enter")
        for run_id in failed:
            await expect(page.locator(f"#row-{run_id}")).to_contain_text("Done")


async def test_the_past_is_looked_at_and_left(scene: CardScene, admin: Window) -> None:
    run_id = await scene.start("computer")
    page = await _at_the_run(admin, run_id)
    asks = page.locator('#stage .node[data-id="L001"]').first
    await expect(asks).to_contain_class("waiting")
    await reach(page, page.get_by_label("History"))
    await press(page, "Home")
    await expect(page.locator("#moment")).to_contain_text("Event 1 of")
    await expect(asks).to_contain_class("idle")
    await press(page, "Tab")
    await expect(page.get_by_role("button", name="Now")).to_be_focused()
    await press(page, "Enter")
    await expect(page.locator("#moment")).to_have_count(0)
    await expect(asks).to_contain_class("waiting")
    await expect(page.get_by_label("History")).to_be_focused()


async def test_a_box_tells_its_details(scene: CardScene, admin: Window) -> None:
    run_id = await scene.start("computer")
    page = await _at_the_run(admin, run_id)
    asks = page.locator('#stage .node[data-id="L001"]').first
    await reach(page, page.locator("#stage"))
    for _ in range(4):
        await press(page, "ArrowRight")
        if await asks.evaluate("one => one === document.activeElement"):
            break
    await press(page, "Enter")
    details = page.locator("#details")
    await expect(details.get_by_role("heading", level=2)).to_be_focused()
    await expect(details).to_contain_text("apply_computer")
    await press(page, "Escape")
    await expect(details).to_have_count(0)
    await expect(asks).to_be_focused()


async def test_another_language_and_out(admin: Window) -> None:
    admin.forgive("401")
    page = await admin.live("/console/runs")
    await reach(page, page.locator("summary.language"))
    await press(page, "Enter")
    await reach(page, page.get_by_role("link", name="中文"))
    await press(page, "Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("运行")
    await reach(page, page.locator("summary", has_text="Will Zhang"))
    await press(page, "Enter")
    await reach(page, page.locator("#sign-out"))
    await press(page, "Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("您尚未登录")


async def _at_the_run(admin: Window, run_id: str) -> Page:
    page = await admin.live("/console/runs")
    await reach(page, page.locator(f"#open-{run_id}"))
    await press(page, "Enter")
    await page.wait_for_url(f"**/console/runs/{run_id}")
    await expect(page.locator("html")).to_have_attribute("data-live", "live")
    return page
