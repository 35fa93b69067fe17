"""A connection that breaks: nothing is done twice, nothing that was written is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from card_scene import Bureau, a_bureau, at_card
from console_scene import House, Window, housed
from playwright.async_api import Locator, Page, Route, expect

from holdfast.model.run import RunStatus

DONE = RunStatus.DONE
LOST = "ERR_"


@pytest_asyncio.fixture(loop_scope="session")
async def bureau() -> Bureau:
    return a_bureau()


@pytest_asyncio.fixture(loop_scope="session")
async def house(bureau: Bureau) -> AsyncIterator[House]:
    async with housed(bureau.app) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def computer(admin: Window) -> Page:
    """The page that starts the computer plan."""
    admin.forgive(LOST)
    return await admin.live("/console/plans/computer")


def start_form(page: Page) -> Locator:
    return page.locator("#starting")


async def lose_answers(page: Page, path: str, times: int) -> list[str | None]:
    """The server does what it is asked, and its answer is lost; how each request was named."""
    names: list[str | None] = []

    async def lost(route: Route) -> None:
        names.append(await route.request.header_value("idempotency-key"))
        await route.fetch()
        await route.abort()

    await page.route(path, lost, times=times)
    return names


async def test_a_lost_answer_is_asked_for_once_more(
    bureau: Bureau, house: House, computer: Page
) -> None:
    names = await lose_answers(computer, "**/instances", 1)
    await start_form(computer).get_by_role("button", name="Start").click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(names) == 1
    assert len(await bureau.app.inbox()) == 1


async def test_pressed_again_after_lost_answers_one_run_is_started(
    bureau: Bureau, computer: Page
) -> None:
    names = await lose_answers(computer, "**/instances", 2)
    start = start_form(computer).get_by_role("button", name="Start")
    await start.click()
    told = computer.locator("#notices")
    await expect(told).to_contain_text("it may have been received")
    assert len(set(names)) == 1
    await start.click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(await bureau.app.inbox()) == 1


async def test_what_was_answered_is_a_new_press_the_next_time(
    bureau: Bureau, house: House, computer: Page
) -> None:
    for _ in range(2):
        await computer.goto(f"{house.url}/console/plans/computer")
        await start_form(computer).get_by_role("button", name="Start").click()
        await computer.wait_for_url("**/console/runs/*")
    assert len(await bureau.app.inbox()) == 2


async def test_a_draft_waits_until_the_server_is_back(
    bureau: Bureau, admin: Window, house: House
) -> None:
    admin.forgive(LOST)
    run = await bureau.start("travel")
    page, card = await at_card(admin, await bureau.question(run))
    await house.stop()
    await card.get_by_label("Full name").fill("张三")
    await expect(card.locator(".kept")).to_have_text("Draft not kept yet")
    await house.start()
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    await page.reload()
    await expect(card.get_by_label("Full name")).to_have_value("张三")


async def test_an_answer_that_got_through_at_last_leaves_no_complaint(
    bureau: Bureau, admin: Window, house: House
) -> None:
    admin.forgive(LOST)
    run = await bureau.ask_clerk("pay 900")
    page, card = await at_card(admin, await bureau.question(run))
    approve = card.get_by_role("button", name="Approve and run")
    await house.stop()
    await approve.click()
    await expect(card.get_by_role("alert")).to_contain_text("No answer came")
    await house.start()
    await page.route("**/console/parts/cards/**", lambda route: route.abort())
    await approve.click()
    await expect(page.locator("#notices")).to_contain_text("Your answer is in")
    await expect(card.locator(".errors")).to_be_empty()
    await page.unroute("**/console/parts/cards/**")
    await expect(page.locator("#live")).to_have_text("Live")
    await expect(card).to_contain_text("Will Zhang answered: Approve and run")
    await bureau.came_to(run, DONE)
    assert [name for name, _ in bureau.calls] == ["pay"]


async def test_a_start_form_outlives_another_language(computer: Page) -> None:
    form = start_form(computer)
    await form.get_by_label("姓名").fill("Will Zhang")
    await form.locator("#start-prompt").fill("As soon as possible")
    await computer.locator("summary.language").click()
    await computer.get_by_role("link", name="中文").click()
    await expect(computer.locator("html")).to_have_attribute("lang", "zh-CN")
    await expect(form.get_by_label("姓名")).to_have_value("Will Zhang")
    await expect(form.locator("#start-prompt")).to_have_value("As soon as possible")


async def test_signed_out_meanwhile_one_signs_in_elsewhere_and_goes_on(
    bureau: Bureau, admin: Window
) -> None:
    admin.forgive("401")
    run = await bureau.start("travel")
    page, card = await at_card(admin, await bureau.question(run))
    cookies: Any = await admin.context.cookies()
    await admin.context.clear_cookies()
    await card.get_by_label("Full name").fill("张三")
    await expect(card.locator(".kept")).to_have_text("Draft not kept yet")
    await bureau.start("clean_up")
    again = page.get_by_role("link", name="Sign in again in a new tab")
    await expect(again).to_be_visible()
    await expect(card.get_by_label("Full name")).to_have_value("张三")

    await admin.context.add_cookies(cookies)  # as another tab does
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    await expect(again).to_have_count(0)
    await expect(page.locator("#live")).to_have_text("Live")
