"""Whole flows by Tab, Enter, Space and the arrows alone; nobody touches the mouse.

The other pages' flows by keyboard stand with those pages: reject with a reason (cards), cancel
many (runs), a chat with an approval (chat), a new plan and its start (plans), boxes (run).
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from card_scene import Bureau, a_bureau
from console_plans import an_office, started
from console_scene import House, Window, housed, reach, window
from playwright.async_api import Browser, Locator, Page, expect

from holdfast.model.run import RunStatus


@pytest.fixture
def bureau() -> Bureau:
    return a_bureau()


@pytest_asyncio.fixture(loop_scope="session")
async def house(bureau: Bureau) -> AsyncIterator[House]:
    async with housed(bureau.app) as one:
        yield one


async def press(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def at_the_question(window: Window, bureau: Bureau, run_id: str) -> tuple[Page, Locator]:
    """From the runs to the inbox to the question, as the tabulator leads."""
    row = await bureau.question(run_id)
    page = await window.live("/console/runs")
    await reach(page, page.get_by_role("navigation").get_by_role("link", name="Inbox"))
    await press(page, "Enter")
    await reach(page, page.locator("#inbox-queue li a").first)
    await press(page, "Enter")
    await page.wait_for_url(f"**/console/inbox/{row.question_id}")
    card = page.locator(f"#q-{row.question_id}")
    await expect(page.locator("html")).to_have_attribute("data-live", "live")
    return page, card


async def test_the_computer_form_with_a_mistake_first(bureau: Bureau, admin: Window) -> None:
    run_id = await bureau.start("computer")
    page, card = await at_the_question(admin, bureau, run_id)
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
    await bureau.came_to(run_id, RunStatus.DONE)
    ordered = {"employee": "张三", "computer_model": "ThinkPad", "delivery": "2027-02-02"}
    assert bureau.calls == [("apply_computer", ordered)]


async def test_approve_with_other_arguments(bureau: Bureau, admin: Window) -> None:
    run_id = await bureau.ask_clerk("pay 900")
    page, card = await at_the_question(admin, bureau, run_id)
    await reach(page, card.get_by_text("Edit the arguments"))
    await press(page, "Enter")
    await reach(page, card.get_by_label("Amount"))
    await press(page, "Control+a")
    await page.keyboard.type("450")
    await press(page, "Enter")
    assert bureau.calls == [], "Enter in a field must not approve"
    await reach(page, card.get_by_role("button", name="Approve and run"))
    await press(page, "Enter")
    await bureau.came_to(run_id, RunStatus.DONE)
    assert [given["amount"] for _, given in bureau.calls] == [450]


async def test_terminate_asks_again_and_the_harmless_answer_comes_first(
    bureau: Bureau, admin: Window
) -> None:
    run_id = await bureau.ask_clerk("pay 900")
    page, card = await at_the_question(admin, bureau, run_id)
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
    await bureau.came_to(run_id, RunStatus.CANCELLED)
    assert bureau.calls == []


async def test_a_failed_plan_is_resumed(browser: Browser) -> None:
    office = an_office()
    async with housed(office) as house, window(browser, house) as admin:
        run_id = await started(office, "fragile", RunStatus.ERROR)
        page = await _at_the_run(admin, run_id)
        office.broken = False
        await reach(page, page.locator("#failures-resume"))
        await press(page, "Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("[data-closes]")).to_be_focused()
        await press(page, "Tab")
        await expect(dialog.locator("#deed-do")).to_be_focused()
        await press(page, "Enter")
        await expect(page.locator("#run-status")).to_contain_text("Done")


async def test_a_run_is_cancelled_with_a_reason(bureau: Bureau, admin: Window) -> None:
    run_id = await bureau.start("computer")
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


async def _at_the_run(admin: Window, run_id: str) -> Page:
    page = await admin.live("/console/runs")
    await reach(page, page.locator(f"#open-{run_id}"))
    await press(page, "Enter")
    await page.wait_for_url(f"**/console/runs/{run_id}")
    await expect(page.locator("html")).to_have_attribute("data-live", "live")
    return page
