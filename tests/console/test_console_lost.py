"""A connection that breaks: nothing is done twice, nothing that was written is lost."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio
from card_scene import CardScene, at_card
from console_chat import a_bank
from console_scene import Backend, Window, serving, window
from playwright.async_api import Browser, Locator, Page, Route, expect

from holdfast import Holdfast
from holdfast.model.run import RunStatus

DONE = RunStatus.DONE
LOST = "ERR_"

VAULT = """
plan_id: vault
main_task_id: "001"
inputs: {number: {type: secret, label: Number}}
tasks: [{task_id: "001", name: Open the vault}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: code,
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""

JOURNEY = """
plan_id: journey
main_task_id: "001"
inputs:
  abroad: {type: boolean, label: Abroad}
  country: {type: text, label: Country, visible_if: values.abroad == true}
tasks: [{task_id: "001", name: A journey}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: code,
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""


@pytest.fixture
def app(scene: CardScene) -> Holdfast:
    return scene.app


@pytest_asyncio.fixture(loop_scope="session")
async def computer(admin: Window) -> Page:
    """The page that starts the computer plan."""
    admin.forgive(LOST)
    return await admin.live("/console/plans/computer")


def start_form(page: Page) -> Locator:
    return page.locator("#starting")


async def lose_answers(page: Page, path: str, times: int) -> list[str]:
    """The server does what it is asked, and its answer is lost; how each request was named."""
    names: list[str] = []

    async def lost(route: Route) -> None:
        names.append(await route.request.header_value("idempotency-key") or "")
        await route.fetch()
        await route.abort()

    await page.route(path, lost, times=times)
    return names


async def kept_in(page: Page) -> str:
    """All that the browser keeps of this tab."""
    return str(await page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])"))


async def forget_page(page: Page) -> None:
    """Whatever the page knew is gone; the tab stays."""
    await page.goto("about:blank")


async def test_a_lost_answer_is_asked_for_once_more(
    scene: CardScene, backend: Backend, computer: Page
) -> None:
    names = await lose_answers(computer, "**/instances", 1)
    await start_form(computer).get_by_role("button", name="Start").click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(names) == 1
    assert len(await scene.app.inbox()) == 1


async def test_pressed_again_after_lost_answers_one_run_is_started(
    scene: CardScene, computer: Page
) -> None:
    names = await lose_answers(computer, "**/instances", 2)
    start = start_form(computer).get_by_role("button", name="Start")
    await start.click()
    told = computer.locator("#notices")
    await expect(told).to_contain_text("it may have been received")
    assert len(set(names)) == 1
    await start.click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(await scene.app.inbox()) == 1


async def test_pressed_again_after_a_reload_one_run_is_started(
    scene: CardScene, computer: Page
) -> None:
    names = await lose_answers(computer, "**/instances", 2)
    start = start_form(computer).get_by_role("button", name="Start")
    await start.click()
    await expect(computer.locator("#notices")).to_contain_text("it may have been received")
    await computer.reload()
    await start.click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(set(names)) == 1
    assert len(await scene.app.inbox()) == 1


async def test_pressed_again_long_after_it_is_meant_anew(scene: CardScene, computer: Page) -> None:
    await lose_answers(computer, "**/instances", 2)
    start = start_form(computer).get_by_role("button", name="Start")
    await start.click()
    await expect(computer.locator("#notices")).to_contain_text("it may have been received")
    await computer.add_init_script("const real = Date.now; Date.now = () => real() + 601000")
    await computer.reload()
    await start.click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(await scene.app.inbox()) == 2


async def test_a_secret_input_is_typed_again_and_never_kept(
    scene: CardScene, backend: Backend, computer: Page
) -> None:
    scene.app.load_plan_text(VAULT)
    await computer.goto(f"{backend.url}/console/plans/vault")
    names = await lose_answers(computer, "**/instances", 2)
    number = start_form(computer).get_by_label("Number")
    start = start_form(computer).get_by_role("button", name="Start")
    await number.fill("4711")
    await start.click()
    await expect(computer.locator("#notices")).to_contain_text("it may have been received")
    assert names[0] in await kept_in(computer)
    assert "4711" not in await kept_in(computer)
    await computer.reload()
    await expect(number).to_be_empty()
    await number.fill("4711")
    await start.click()
    await computer.wait_for_url("**/console/runs/*")
    assert len(await scene.app.runs()) == 1


async def test_an_answer_that_was_lost_counts_once(scene: CardScene, admin: Window) -> None:
    admin.forgive(LOST)
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    names = await lose_answers(page, "**/answer", 2)
    await card.get_by_label("Reason or feedback").fill("As agreed")
    await card.get_by_role("button", name="Approve and run").click()
    await scene.came_to(run, DONE)
    await page.reload()
    await expect(card).to_contain_text("Will Zhang answered: Approve and run")
    await expect(card.locator(".written")).to_have_count(0)
    assert len(set(names)) == 1
    assert [name for name, _ in scene.calls] == ["pay"]


async def test_an_answer_that_was_lost_is_not_called_unsent(
    scene: CardScene, admin: Window
) -> None:
    admin.forgive(LOST)
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    await lose_answers(page, "**/answer", 2)
    await card.get_by_text("Edit the arguments").click()
    await card.get_by_label("Amount").fill("850")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(page.locator("#notices")).to_have_text("Your answer is inDismiss")
    for _ in range(2):
        await expect(card).to_contain_text("Will Zhang answered: Approve and run")
        await expect(card.locator(".ending")).to_contain_text("850")
        await expect(card.locator(".written")).to_have_count(0)
        await page.reload()


async def test_what_was_changed_after_a_lost_answer_was_not_sent(
    scene: CardScene, admin: Window
) -> None:
    admin.forgive(LOST)
    row = await scene.question(await scene.ask_clerk("pay 900"))
    page, card = await at_card(admin, row)
    await page.route("**/answer", lambda route: route.abort())
    await card.get_by_text("Edit the arguments").click()
    await card.get_by_label("Amount").fill("850")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(card.get_by_role("alert")).to_contain_text("No answer came")
    await card.get_by_label("Amount").fill("700")
    await scene.app.answer(row.question_id, option_id="approve", by="Will Zhang")
    await expect(card).to_contain_text("Will Zhang answered: Approve and run")
    await expect(card.locator(".written")).to_contain_text("700")


async def test_a_start_form_goes_on_when_the_connection_is_back(
    scene: CardScene, backend: Backend, computer: Page
) -> None:
    scene.app.load_plan_text(JOURNEY)
    await computer.goto(f"{backend.url}/console/plans/journey")
    form = start_form(computer)
    await computer.route("**/asked", lambda route: route.abort())
    async with computer.expect_event("requestfailed"):
        await form.get_by_role("group", name="Abroad").get_by_label("No").check()
    start = form.get_by_role("button", name="Start")
    await start.click()
    await expect(computer.locator("#notices")).to_contain_text("No answer came")
    await computer.unroute("**/asked")
    await start.click()
    await computer.wait_for_url("**/console/runs/*")


async def test_a_start_form_asks_again_by_itself(
    scene: CardScene, backend: Backend, computer: Page
) -> None:
    scene.app.load_plan_text(JOURNEY)
    await computer.goto(f"{backend.url}/console/plans/journey")
    await expect(computer.locator("html")).to_have_attribute("data-live", "live")
    await backend.stop()
    await expect(computer.locator("html")).not_to_have_attribute("data-live", "live")
    await start_form(computer).get_by_role("group", name="Abroad").get_by_label("Yes").check()
    await backend.start()
    await expect(start_form(computer).get_by_label("Country")).to_be_visible()


async def test_a_message_that_was_lost_is_one_turn(browser: Browser) -> None:
    bank = a_bank()
    async with serving(bank) as backend, window(browser, backend) as one:
        one.forgive(LOST)
        session = await bank.sessions.open("clerk", by="Will Zhang")
        page = await one.live(f"/console/chat/{session.id}")
        message, send = page.get_by_label("Message"), page.get_by_role("button", name="Send")
        said = page.locator("#transcript .person")
        replied = page.locator("#transcript .model")

        await lose_answers(page, "**/messages", 2)
        await message.fill("hello")
        await send.click()
        await expect(page.locator("#notices")).to_contain_text("it may have been received")
        await page.reload()
        await expect(message).to_have_value("hello")
        await expect(replied).to_have_count(1)
        await send.click()
        await expect(message).to_have_value("")
        await message.fill("and again")
        await send.click()
        await expect(replied).to_have_count(2)
        await expect(said).to_have_count(2)

        await lose_answers(page, "**/messages", 2)
        await message.fill("twice")
        await send.click()
        await expect(page.locator("#notices")).to_contain_text("it may have been received")
        await page.reload()
        await expect(replied).to_have_count(3)
        await message.fill("")
        await message.fill("twice")  # it was seen to be in: this is meant
        await send.click()
        await expect(said).to_have_count(4)


async def test_what_was_answered_is_a_new_press_the_next_time(
    scene: CardScene, backend: Backend, computer: Page
) -> None:
    for _ in range(2):
        await computer.goto(f"{backend.url}/console/plans/computer")
        await start_form(computer).get_by_role("button", name="Start").click()
        await computer.wait_for_url("**/console/runs/*")
    assert len(await scene.app.inbox()) == 2


async def test_a_draft_waits_until_the_server_is_back(
    scene: CardScene, admin: Window, backend: Backend
) -> None:
    admin.forgive(LOST)
    run = await scene.start("travel")
    page, card = await at_card(admin, await scene.question(run))
    await backend.stop()
    await card.get_by_label("Full name").fill("张三")
    await expect(card.locator(".kept")).to_have_text("Draft not kept yet")
    await backend.start()
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    await page.reload()
    await expect(card.get_by_label("Full name")).to_have_value("张三")


async def test_a_draft_that_the_server_never_had_outlives_a_reload(
    scene: CardScene, admin: Window, backend: Backend
) -> None:
    admin.forgive(LOST)
    row = await scene.question(await scene.start("travel"))
    page, card = await at_card(admin, row)
    await card.get_by_role("group", name="Needs a visa").get_by_label("Yes").check()
    passport = card.get_by_label("Passport number")
    await expect(passport).to_be_visible()
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    await backend.stop()
    await passport.fill("E4711")
    await card.get_by_label("Full name").fill("张三")
    await expect(card.locator(".kept")).to_have_text("Draft not kept yet")
    await card.locator("button[data-fills]").click()
    await expect(card.get_by_role("alert")).to_contain_text("No answer came")
    assert "张三" in await kept_in(page)
    assert "E4711" not in await kept_in(page)

    await forget_page(page)
    await backend.start()
    await page.goto(f"{backend.url}/console/inbox/{row.question_id}")
    await expect(card.get_by_label("Full name")).to_have_value("张三")
    await expect(passport).to_be_visible()
    await expect(passport).to_be_empty()
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    assert "张三" not in await kept_in(page)
    await page.reload()
    await expect(card.get_by_label("Full name")).to_have_value("张三")


async def test_answered_elsewhere_meanwhile_what_was_typed_is_still_shown(
    scene: CardScene, admin: Window, backend: Backend
) -> None:
    admin.forgive(LOST)
    row = await scene.question(await scene.ask_clerk("pay 900"))
    page, card = await at_card(admin, row)
    await backend.stop()
    await card.get_by_label("Reason or feedback").fill("Half is enough")
    await forget_page(page)
    await scene.app.answer(row.question_id, option_id="approve", by="张三")
    await backend.start()
    for _ in range(2):
        await page.goto(f"{backend.url}/console/inbox/{row.question_id}")
        await expect(card).to_contain_text("张三 answered: Approve and run")
        await expect(card.locator(".written")).to_contain_text("Half is enough")


async def test_what_one_person_typed_is_not_the_next_persons(
    scene: CardScene, admin: Window, backend: Backend
) -> None:
    admin.forgive(LOST)
    row = await scene.question(await scene.start("travel"))
    page, card = await at_card(admin, row)
    await backend.stop()
    await card.get_by_label("Full name").fill("Will Zhang")
    await forget_page(page)
    await backend.start()
    await page.goto(f"{backend.url}/login?token={await backend.link('张三')}")
    await page.goto(f"{backend.url}/console/inbox/{row.question_id}")
    await expect(page.locator("summary.account").last).to_contain_text("张三")
    await expect(card.locator("form[data-ready]")).to_be_visible()
    await expect(card.get_by_label("Full name")).to_be_empty()


async def sign_in_beside(admin: Window, name: str) -> None:
    """Another person signs in, in another tab of the same browser."""
    tab = await admin.open(f"/login?token={await admin.backend.link(name)}")
    await expect(tab.locator("summary.account").last).to_contain_text(name)
    await tab.close()


async def test_a_page_answers_for_nobody_else_who_has_signed_in_meanwhile(
    scene: CardScene, admin: Window
) -> None:
    admin.forgive("409")
    row = await scene.question(await scene.ask_clerk("pay 900"))
    page, card = await at_card(admin, row)
    await sign_in_beside(admin, "张三")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(card.get_by_role("alert")).to_contain_text("张三 is signed in by now")
    assert scene.calls == []
    await page.reload()
    await card.get_by_role("button", name="Approve and run").click()
    await expect(card).to_contain_text("张三 answered: Approve and run")


async def test_a_draft_is_not_kept_for_another_who_has_signed_in_meanwhile(
    scene: CardScene, admin: Window
) -> None:
    admin.forgive("409")
    row = await scene.question(await scene.start("travel"))
    page, card = await at_card(admin, row)
    await sign_in_beside(admin, "张三")
    name = card.get_by_label("Full name")
    async with page.expect_response("**/draft") as typed:
        await name.fill("Will Zhang")
    assert (await typed.value).status == 409
    async with page.expect_response("**/draft") as leaving:
        await name.fill("Will Zhang of Beijing")
        await page.evaluate("dispatchEvent(new Event('pagehide'))")
    assert (await leaving.value).status == 409
    await forget_page(page)
    await page.goto(f"{admin.backend.url}/console/inbox/{row.question_id}")
    await expect(card.locator("form[data-ready]")).to_be_visible()
    await expect(name).to_be_empty()


async def test_an_answer_that_got_through_at_last_leaves_no_complaint(
    scene: CardScene, admin: Window, backend: Backend
) -> None:
    admin.forgive(LOST)
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    approve = card.get_by_role("button", name="Approve and run")
    await backend.stop()
    await approve.click()
    await expect(card.get_by_role("alert")).to_contain_text("No answer came")
    await backend.start()
    await page.route("**/console/parts/cards/**", lambda route: route.abort())
    await approve.click()
    await expect(page.locator("#notices")).to_contain_text("Your answer is in")
    await expect(card.locator(".errors")).to_be_empty()
    await page.unroute("**/console/parts/cards/**")
    await expect(page.locator("#live")).to_have_text("Live")
    await expect(card).to_contain_text("Will Zhang answered: Approve and run")
    await scene.came_to(run, DONE)
    assert [name for name, _ in scene.calls] == ["pay"]


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
    scene: CardScene, admin: Window
) -> None:
    admin.forgive("401")
    run = await scene.start("travel")
    page, card = await at_card(admin, await scene.question(run))
    cookies: Any = await admin.context.cookies()
    await admin.context.clear_cookies()
    await card.get_by_label("Full name").fill("张三")
    await expect(card.locator(".kept")).to_have_text("Draft not kept yet")
    await card.get_by_role("button", name="Submit").click()
    await expect(card.get_by_role("alert")).to_have_text("You are signed out. Sign in again.")
    again = page.get_by_role("link", name="Sign in again in a new tab")
    await expect(again).to_be_visible()
    await expect(card.get_by_label("Full name")).to_have_value("张三")

    await admin.context.add_cookies(cookies)  # as another tab does
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    await expect(again).to_have_count(0)
    await expect(page.locator("#live")).to_have_text("Live")
