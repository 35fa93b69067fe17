"""The inbox: what waits, in its order; what became of the rest; one answer for many."""

from __future__ import annotations

import re

import pytest
from card_scene import FAR_AWAY, CardScene
from console_scene import NARROW, OpenWindow, Window, fits
from playwright.async_api import expect

from holdfast import Holdfast
from holdfast.model.run import RunStatus


@pytest.fixture
def app(scene: CardScene) -> Holdfast:
    return scene.app


async def test_the_most_urgent_question_stands_first(scene: CardScene, admin: Window) -> None:
    for plan in ("computer", "travel", "clean_up"):
        await scene.start(plan)
    page = await admin.live("/console/inbox")
    await expect(page.locator("#inbox-queue .title")).to_have_text(
        ["Delete the old files?", "Traveller details", "apply_computer needs more"]
    )
    await expect(page.locator("#inbox-queue [data-deadline]").first).to_contain_text("min")


async def test_the_queue_and_its_number_are_live(scene: CardScene, admin: Window) -> None:
    page = await admin.live("/console/inbox")
    await expect(page.locator("main")).to_contain_text("Nothing waits for you")
    await scene.start("travel")
    await expect(page.locator("#inbox-queue .title")).to_have_text(["Traveller details"])
    await expect(page.locator("#inbox-count")).to_contain_text("1 question waits")
    await page.locator("#inbox-queue a").click()
    await page.wait_for_url("**/console/inbox/*")
    await expect(page.locator("#inbox-queue [aria-current]")).to_have_count(1)
    await expect(page.get_by_role("heading", name="Traveller details")).to_be_visible()


async def test_tabs_tell_answered_from_expired(scene: CardScene, admin: Window) -> None:
    answered = await scene.ask_clerk("pay 1")
    row = await scene.question(answered)
    await scene.app.answer(row.question_id, option_id="approve", by="Will Zhang")
    await scene.came_to(answered, RunStatus.DONE)
    await scene.start("clean_up")
    scene.clock.advance(601)
    page = await admin.live("/console/inbox?tab=expired")
    await expect(page.locator("#inbox-queue .title")).to_have_text(["Delete the old files?"])
    await page.get_by_role("link", name="Answered").click()
    await expect(page.locator("#inbox-queue .title")).to_have_text(["Run pay?"])
    await page.locator("#inbox-queue a").click()
    await expect(page.locator(".question")).to_contain_text("Will Zhang answered: Approve and run")
    await page.get_by_role("link", name="Withdrawn").click()
    await expect(page.locator("main")).to_contain_text("No such questions")


async def test_the_role_narrows_the_queue(scene: CardScene, admin: Window) -> None:
    await scene.start("travel")
    await scene.start("clean_up")
    page = await admin.live("/console/inbox")
    await page.get_by_label("For the role").select_option("archive")
    await page.wait_for_url("**/console/inbox?role=archive")
    await expect(page.locator("#inbox-queue .title")).to_have_text(["Delete the old files?"])


async def test_a_runs_questions_alone(scene: CardScene, admin: Window) -> None:
    await scene.start("travel")
    run = await scene.start("clean_up")
    page = await admin.live(f"/console/inbox?run={run}")
    await expect(page.locator("#inbox-queue .title")).to_have_text(["Delete the old files?"])
    await page.get_by_role("link", name="Show all").click()
    await expect(page.locator("#inbox-queue .title")).to_have_count(2)


async def test_one_answer_for_exactly_what_is_selected(scene: CardScene, admin: Window) -> None:
    runs = [await scene.ask_clerk(f"pay {amount}") for amount in (1, 2, 3)]
    await scene.start("clean_up")
    page = await admin.live("/console/inbox")
    rows = page.locator("#inbox-queue li")
    await rows.filter(has_text="amount: 1,").locator("input").check()
    await rows.filter(has_text="amount: 3,").locator("input").check()
    bulk = page.locator("#bulk")
    await expect(bulk).to_contain_text("2 questions selected")
    await rows.filter(has_text="Delete the old").locator("input").check()
    await expect(bulk).to_contain_text("These questions have no answer in common")
    await rows.filter(has_text="Delete the old").locator("input").uncheck()

    await bulk.get_by_role("button", name="Reject", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("li")).to_have_count(2)
    await dialog.get_by_role("button", name="Reject (2)").click()
    await expect(dialog).to_contain_text("Please say why")
    await dialog.get_by_label("Reason or feedback").fill("not this month")
    await dialog.get_by_role("button", name="Reject (2)").click()
    await expect(page.locator("#notices")).to_contain_text("2 questions answered")
    await expect(page.locator("#inbox-queue .title")).to_have_count(2)
    await expect(bulk).to_be_hidden()
    for run in (runs[0], runs[2]):
        await scene.came_to(run, RunStatus.DONE)
    assert (await scene.question(runs[1])).status == "open"
    assert scene.calls == []


async def test_consent_to_many_shows_every_argument_of_each(
    scene: CardScene, admin: Window
) -> None:
    """Where the queue tells two calls apart no longer, the question before the answer does."""
    runs = [await scene.ask_clerk(f"wire {amount}") for amount in (10, 999_999)]
    rows = [await scene.question(run) for run in runs]
    page = await admin.live("/console/inbox")
    for row in rows:
        line = page.locator(f"#inbox-queue li:has(#pick-{row.question_id})")
        await expect(line.locator(".muted").first).to_have_text(re.compile("…$"))
        await line.locator("input").check()
    await page.locator("#bulk").get_by_role("button", name="Approve and run").click()
    dialog = page.get_by_role("dialog")
    for row, amount in zip(rows, ("10", "999999"), strict=True):
        asked = dialog.locator(f"[data-question='{row.question_id}']")
        await expect(asked.locator("dd").get_by_text(amount, exact=True)).to_be_visible()
        await expect(asked).to_contain_text(FAR_AWAY.strip())
        await expect(asked).to_contain_text("Runs pay with these arguments. (“Approve and run”)")
        await expect(asked).to_have_attribute("data-digest", re.compile("^[0-9a-f]{64}$"))
    async with page.expect_request("**/interactions/answers") as sent:
        await dialog.get_by_role("button", name="Approve and run (2)").click()
    digests = (await sent.value).post_data_json["digests"]
    assert set(digests) == {row.question_id for row in rows}
    await expect(page.locator("#notices")).to_contain_text("2 questions answered")
    await expect(page.get_by_role("heading", name="Inbox")).to_be_focused()
    for run in runs:
        await scene.came_to(run, RunStatus.DONE)
    assert sorted(args["amount"] for _, args in scene.calls) == [10, 999_999]


async def test_a_question_that_is_not_the_one_shown_is_refused_and_the_rest_go_on(
    scene: CardScene, admin: Window
) -> None:
    runs = [await scene.ask_clerk(f"pay {amount}") for amount in (1, 2)]
    rows = [await scene.question(run) for run in runs]
    page = await admin.live("/console/inbox")
    for row in rows:
        await page.locator(f"#pick-{row.question_id}").check()
    await page.locator("#bulk").get_by_role("button", name="Approve and run").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    shown = page.locator(f"#bulk-list [data-question='{rows[1].question_id}']")
    await shown.evaluate("one => { one.dataset.digest = '0'.repeat(64); }")
    await page.get_by_role("button", name="Approve and run (2)").click()
    await expect(page.locator("#notices")).to_contain_text("1 question answered")
    await expect(page.locator("#notices")).to_contain_text("not the question that you were shown")
    await expect(page.locator(f"#pick-{rows[1].question_id}")).to_be_checked()
    await scene.came_to(runs[0], RunStatus.DONE)
    assert [args["amount"] for _, args in scene.calls] == [1]


async def test_what_was_answered_meanwhile_is_not_answered_again(
    scene: CardScene, admin: Window
) -> None:
    rows = [await scene.question(await scene.ask_clerk(f"pay {n}")) for n in (1, 2)]
    page = await admin.live("/console/inbox")
    for row in rows:
        await page.locator(f"#pick-{row.question_id}").check()
    await page.route("**/console/parts/inbox?**", lambda route: route.abort())
    await page.route("**/console/parts/inbox", lambda route: route.abort())
    admin.forgive("Failed to load resource")
    await scene.app.answer(rows[0].question_id, option_id="reject", feedback="no", by="Will Zhang")
    await page.locator("#bulk").get_by_role("button", name="Approve and run").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("[data-question]")).to_have_count(1)
    await expect(dialog).to_contain_text("1 of them can no longer be answered by you")
    await expect(dialog.get_by_role("button", name="Approve and run (1)")).to_be_visible()


async def test_letters_move_only_within_the_queue(scene: CardScene, admin: Window) -> None:
    rows = [await scene.question(await scene.ask_clerk(f"pay {n}")) for n in (1, 2)]
    page = await admin.live("/console/inbox")
    await page.keyboard.press("j")
    assert await page.evaluate("document.activeElement.tagName") == "BODY"
    await page.locator(f"#open-{rows[0].question_id}").focus()
    await page.keyboard.press("j")
    await expect(page.locator(f"#open-{rows[1].question_id}")).to_be_focused()
    await page.keyboard.press("k")
    await expect(page.locator(f"#open-{rows[0].question_id}")).to_be_focused()


async def test_a_selection_outlives_what_comes_in(scene: CardScene, admin: Window) -> None:
    await scene.ask_clerk("pay 1")
    page = await admin.live("/console/inbox")
    await page.locator("#inbox-queue input").check()
    await scene.ask_clerk("pay 2")
    await expect(page.locator("#inbox-queue .title")).to_have_count(2)
    await expect(page.locator("#inbox-queue li").first.locator("input")).to_be_checked()
    await expect(page.locator("#bulk")).to_contain_text("1 question selected")


async def test_one_column_on_a_telephone_in_chinese(
    scene: CardScene, open_window: OpenWindow
) -> None:
    await scene.ask_clerk("pay 1")
    narrow = await open_window(viewport=NARROW, locale="zh-CN", color_scheme="dark")
    page = await narrow.live("/console/inbox")
    assert await fits(page)
    await page.locator("#inbox-queue a").click()
    card = page.locator(".question")
    await expect(card).to_contain_text("Clerk 想用以下参数调用 pay。")
    await expect(card.get_by_role("button", name="批准并执行")).to_be_visible()
    await expect(page.locator("#inbox-queue")).to_be_hidden()
    assert await fits(page)
    await page.get_by_role("link", name="返回列表").click()
    await expect(page.locator("#inbox-queue")).to_be_visible()


async def test_a_viewer_selects_nothing(scene: CardScene, open_window: OpenWindow) -> None:
    await scene.ask_clerk("pay 1")
    viewer = await open_window(name="Some viewer", roles=("viewer",))
    page = await viewer.live("/console/inbox")
    await expect(page.locator("#inbox-queue")).to_contain_text("Not for you")
    await expect(page.locator("#inbox-queue input")).to_have_count(0)


async def test_a_question_that_is_not_there(admin: Window) -> None:
    admin.forgive("404 (Not Found")
    page = await admin.open("/console/inbox/nothing-here")
    await expect(page.get_by_role("heading")).to_have_text("There is nothing here")
