"""Cards: every way to answer a question in a browser, and what becomes of what was typed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from card_scene import DISGUISED, HOSTILE, TWINS, CardScene, at_card
from console_scene import OpenWindow, Window
from playwright.async_api import Page, Route, expect

from holdfast import Holdfast
from holdfast.console.views.facts import labelled_facts
from holdfast.console.views.form import price_of
from holdfast.model.form import Field, Form
from holdfast.model.run import RunStatus

DONE = RunStatus.DONE
REFUSED = "422 (Unprocessable"


@pytest.mark.parametrize(
    ("price", "amount", "unit"),
    [
        ("¥18,999", 18999.0, "¥#"),
        ("+¥58.50", 58.5, "¥#"),
        ("12.50 €", 12.5, "#€"),
        (420, 420.0, "#"),
        ("on request", None, ""),
        ("¥10 to ¥20", None, ""),
        ("+ 3 , a", 3.0, "#, a"),
        (" " * 100_000, None, ""),
        ("1" + "," * 100_000 + " 1", None, ""),
    ],
)
def test_a_price_that_is_one_number_can_be_added_up(
    price: object, amount: float | None, unit: str
) -> None:
    read = price_of(price)
    assert (read.amount, read.unit) == (amount, unit)
    assert read.text == str(price)


@pytest.fixture
def app(scene: CardScene) -> Holdfast:
    return scene.app


async def test_the_computer_form_is_filled_in_and_the_plan_is_done(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.start("computer")
    _, card = await at_card(admin, await scene.question(run))
    admin.forgive(REFUSED)

    await card.get_by_role("button", name="Submit").click()
    await expect(card.get_by_role("alert")).to_have_text("Please fix 2 fields")
    model = card.get_by_role("group", name="电脑型号")
    await expect(model).to_have_attribute("aria-invalid", "true")
    await expect(model).to_contain_text("Please choose")
    await expect(card.get_by_label("MacBook Pro 14寸")).to_be_focused()
    await expect(card.locator(".total")).to_be_hidden()

    await card.get_by_label("MacBook Pro 14寸").check()
    await expect(card.locator(".total output")).to_have_text("¥18,999")
    await card.get_by_label("交货日期").fill("2025-12-31")
    await card.get_by_role("button", name="Submit").click()
    await expect(card.get_by_role("alert")).to_have_text("Please fix 1 field")
    await expect(card.get_by_label("交货日期")).to_be_focused()
    await expect(card).to_contain_text("it must be 2026-01-01 or later")

    await card.get_by_label("交货日期").fill("2026-12-01")
    await card.get_by_role("button", name="Submit").click()
    await expect(card).to_contain_text("Will Zhang answered: Submit")
    await expect(card.locator("form")).to_have_count(0)
    assert await scene.came_to(run, DONE) is DONE
    given = {"employee": "张三", "computer_model": "MacBook Pro", "delivery": "2026-12-01"}
    assert scene.calls == [("apply_computer", given)]


async def test_an_option_of_ones_own_asks_for_its_text(scene: CardScene, admin: Window) -> None:
    run = await scene.start("computer")
    _, card = await at_card(admin, await scene.question(run))
    admin.forgive(REFUSED)
    own = card.get_by_label("其他型号: please specify")
    await expect(own).to_be_hidden()
    await card.get_by_label("其他型号", exact=True).check()
    await card.get_by_label("交货日期").fill("2026-12-01")
    await card.get_by_role("button", name="Submit").click()
    await expect(card.locator(".error", has_text="Please specify")).to_be_visible()
    await expect(own).to_be_focused()
    await expect(own).to_have_attribute("aria-invalid", "true")
    await own.fill("Framework 13")
    await card.get_by_role("button", name="Submit").click()
    await scene.came_to(run, DONE)
    assert scene.calls[0][1]["computer_model"] == "Framework 13"


async def test_approved_with_other_arguments_the_tool_gets_exactly_those(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.ask_clerk("pay 900")
    _, card = await at_card(admin, await scene.question(run))
    admin.forgive(REFUSED)
    await card.get_by_text("Edit the arguments").click()
    await card.get_by_label("Amount").fill("8oo")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(card.get_by_role("alert")).to_have_text("Please fix 1 field")
    await expect(card.get_by_label("Amount")).to_be_focused()
    await expect(card.locator(".changed")).to_be_hidden()
    assert scene.calls == []

    await card.get_by_label("Amount").fill("800")
    await card.get_by_role("group", name="Urgent").get_by_label("Yes").check()
    await expect(card.locator(".changed")).to_contain_text("Changed: amount, urgent.")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(card).to_contain_text("Will Zhang answered: Approve and run")
    await expect(card.locator(".ending")).to_contain_text("800")
    await scene.came_to(run, DONE)
    given = {"to": "Will Zhang", "amount": 800, "note": HOSTILE, "urgent": True}
    assert scene.calls == [("pay", given)]


async def test_an_argument_that_is_emptied_is_judged_as_empty(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.ask_clerk("pay 900")
    _, card = await at_card(admin, await scene.question(run))
    admin.forgive(REFUSED)
    await card.get_by_text("Edit the arguments").click()
    await card.get_by_label("Note").fill("")
    await card.get_by_label("Amount").fill("")
    await expect(card.locator(".changed")).to_contain_text("Changed: amount, note.")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(card.get_by_role("alert")).to_have_text("Please fix 1 field")
    await expect(card.get_by_label("Amount")).to_be_focused()
    assert scene.calls == []

    await card.get_by_label("Amount").fill("900")
    await card.get_by_role("button", name="Approve and run").click()
    await scene.came_to(run, DONE)
    [(tool, given)] = scene.calls
    assert (tool, given["amount"], given["note"]) == ("pay", 900, "")


async def test_rejected_with_a_reason_the_tool_never_runs(scene: CardScene, admin: Window) -> None:
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    admin.forgive(REFUSED)
    await card.get_by_role("button", name="Reject", exact=True).click()
    await expect(card.get_by_label("Reason or feedback")).to_be_focused()
    await expect(card.locator(".error:not(:empty)")).to_have_text("Say why not")

    await card.get_by_label("Reason or feedback").fill("not before Monday")
    async with page.expect_request("**/answer") as sent:
        await card.get_by_role("button", name="Reject", exact=True).click()
    answer = (await sent.value).post_data_json
    assert answer["digest"] == await card.get_attribute("data-digest")
    assert set(answer) == {"selectedOptionId", "feedback", "digest"}
    await expect(card).to_contain_text("Will Zhang answered: Reject")
    await expect(card.locator("blockquote")).to_have_text("not before Monday")
    await scene.came_to(run, DONE)
    assert scene.calls == []


async def test_terminating_asks_again_and_ends_the_run(scene: CardScene, admin: Window) -> None:
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    stop = card.get_by_role("button", name="Reject and stop everything")
    await stop.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text(f"Run {run} ends here")
    await expect(dialog.get_by_role("button", name="Go back")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert (await scene.question(run)).status == "open"

    await stop.click()
    await dialog.get_by_role("button", name="Reject and stop everything").click()
    await expect(card).to_contain_text("answered: Reject and stop everything")
    await scene.came_to(run, RunStatus.CANCELLED)
    assert scene.calls == []


async def test_feedback_makes_the_model_think_again(scene: CardScene, admin: Window) -> None:
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    await card.get_by_label("Reason or feedback").fill("half of it is enough")
    await card.get_by_role("button", name="Ask again with feedback").click()
    await expect(card).to_contain_text("Will Zhang answered: Ask again with feedback")
    assert scene.calls == []

    await page.locator("#inbox-queue a", has_text="amount: 450").click()
    await page.locator(".question").get_by_role("button", name="Approve and run").click()
    await scene.came_to(run, DONE)
    assert [given["amount"] for _, given in scene.calls] == [450]


async def test_what_nobody_answers_expires_before_the_readers_eyes(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.ask_clerk("pay 900")
    _, card = await at_card(admin, await scene.question(run))
    await expect(card.get_by_role("timer")).to_contain_text("min")
    await expect(card).to_contain_text("the question expires, and the tool does not run")
    scene.clock.advance(901)
    await expect(card).to_contain_text("There was no answer in time; the tool did not run")
    await expect(card.get_by_role("button", name="Approve and run")).to_have_count(0)
    assert scene.calls == []


async def test_a_plans_step_fails_when_nobody_answers_and_the_card_says_so(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.start("travel")
    _, card = await at_card(admin, await scene.question(run))
    await expect(card.locator(".then")).to_contain_text("the run stops until a person resumes it")
    scene.clock.advance(1801)
    await expect(card).to_contain_text("There was no answer in time; the step failed")
    assert await scene.came_to(run, RunStatus.ERROR) is RunStatus.ERROR


async def test_who_is_asked_for_more_is_told_what_it_is_about(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.start("computer")
    page, card = await at_card(admin, await scene.question(run))
    await expect(card.get_by_role("heading")).to_have_text("apply_computer needs more")
    await expect(card.locator(".facts.call")).to_contain_text("张三")
    await expect(page.locator("#inbox-queue")).to_contain_text("employee: 张三")


async def test_the_default_is_named_before_and_after_the_deadline(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.start("clean_up")
    _, card = await at_card(admin, await scene.question(run))
    await expect(card).to_contain_text("“Keep them” is taken by default")
    scene.clock.advance(601)
    await expect(card).to_contain_text(
        "There was no answer in time; “Keep them” was taken by default"
    )


async def test_answered_in_another_window_nothing_typed_is_lost(
    scene: CardScene, admin: Window, open_window: OpenWindow
) -> None:
    run = await scene.ask_clerk("pay 900")
    row = await scene.question(run)
    admin.forgive("410 (Gone")  # a draft may be on its way when the other answers
    _, mine = await at_card(admin, row)
    await mine.get_by_label("Reason or feedback").fill("I would rather wait")
    other = await open_window(name="Some approver", roles=("approver",))
    _, theirs = await at_card(other, row)
    await theirs.get_by_role("button", name="Approve and run").click()

    await expect(mine).to_contain_text("Some approver answered: Approve and run")
    await expect(mine.locator(".written")).to_contain_text("I would rather wait")
    await expect(mine.get_by_role("button", name="Copy")).to_be_visible()
    await expect(mine.locator("form")).to_have_count(0)
    await expect(theirs.locator(".written")).to_have_count(0)
    await scene.came_to(run, DONE)
    assert [name for name, _ in scene.calls] == ["pay"]


async def test_two_who_press_at_once_one_answer_counts(
    scene: CardScene, open_window: OpenWindow
) -> None:
    """The second page has not been told yet when it sends."""
    run = await scene.ask_clerk("pay 900")
    row = await scene.question(run)
    window = await open_window(name="Some approver", roles=("approver",))
    window.forgive("409 (Conflict")
    window.forgive("410 (Gone")
    page, card = await at_card(window, row)
    told = asyncio.Event()

    async def when_told(route: Route) -> None:
        await told.wait()
        await route.continue_()

    await page.route("**/console/parts/cards/**", when_told)
    await card.get_by_label("Reason or feedback").fill("too much")
    await scene.app.answer(row.question_id, option_id="approve", by="Will Zhang")
    await card.get_by_role("button", name="Reject", exact=True).click()
    await expect(page.locator("#notices")).to_contain_text("already answered by Will Zhang")
    await expect(card.get_by_label("Reason or feedback")).to_have_value("too much")
    told.set()
    await expect(card).to_contain_text("Will Zhang answered: Approve and run")
    await expect(card.locator(".written")).to_contain_text("too much")
    await scene.came_to(run, DONE)
    assert [name for name, _ in scene.calls] == ["pay"]


async def test_an_answer_reads_as_its_form_does(scene: CardScene, open_window: OpenWindow) -> None:
    run = await scene.start("travel")
    row = await scene.question(run)
    given: dict[str, Any] = {
        "full_name": "张三",
        "room": "standard",
        "airline": {"value": "other", "text": "Air Loop"},
        "extras": ["wifi", "breakfast"],
        "travellers": 2,
        "departure": "2026-12-01",
        "visa": False,
    }
    await scene.app.answer(row.question_id, data=given, by="Will Zhang")
    for locale, visa, extras in (
        ("en", "No", "Wi-Fi · +¥30, Breakfast · +¥58.50"),
        ("zh-CN", "否", "Wi-Fi · +¥30、Breakfast · +¥58.50"),
    ):
        window = await open_window(locale=locale)
        _, card = await at_card(window, row)
        told = card.locator(".ending dl")
        for label, value in (
            ("Room", "Standard · ¥420"),
            ("Airline", "Another: Air Loop" if locale == "en" else "Another：Air Loop"),
            ("Extras", extras),
            ("Travellers", "2"),
            ("Needs a visa", visa),
        ):
            name = told.locator("dt").get_by_text(label, exact=True)
            await expect(name.locator("xpath=following-sibling::dd[1]")).to_have_text(value)


async def test_two_fields_of_one_label_both_tell_their_answer(
    scene: CardScene, admin: Window
) -> None:
    scene.app.load_plan_text(TWINS)
    row = await scene.question(await scene.start("twins"))
    await scene.app.answer(row.question_id, data={"one": "A-12", "two": "B-7"}, by="Will Zhang")
    _, card = await at_card(admin, row)
    await expect(card.locator(".ending dt")).to_have_text(["Desk", "Desk"])
    await expect(card.locator(".ending dd")).to_have_text(["A-12", "B-7"])


async def test_a_file_is_named_by_a_reference_and_the_form_says_so(
    scene: CardScene, admin: Window
) -> None:
    admin.forgive(REFUSED)
    row = await scene.question(await scene.start("travel"))
    _, card = await at_card(admin, row)
    await expect(card.locator("[data-name=contract]")).to_contain_text(
        "Nothing is uploaded here: give the reference"
    )
    await card.get_by_label("Full name").fill("张三")
    await card.get_by_label("Standard").check()
    await card.get_by_label("Departure").fill("2026-12-01")
    await card.get_by_role("group", name="Needs a visa").get_by_label("No").check()
    await card.get_by_label("Contract").fill("foo.pdf")
    await card.get_by_role("button", name="Submit").click()
    await expect(card.locator("[data-name=contract] .error")).to_have_text(
        'give a file reference, which begins with "file:"; got "foo.pdf"'
    )


async def test_a_draft_outlives_a_reload(scene: CardScene, admin: Window) -> None:
    run = await scene.start("travel")
    page, card = await at_card(admin, await scene.question(run))
    await card.get_by_label("Full name").fill("张三")
    await card.get_by_label("Deluxe").check()
    await card.get_by_label("Airline").select_option("other")
    await card.get_by_label("Another: please specify").fill("Air Loop")
    await card.get_by_label("Breakfast").check()
    await card.get_by_label("Travellers").fill("2")
    await card.get_by_label("Pick-up").fill("2026-12-01T08:30")
    await card.get_by_role("group", name="Needs a visa").get_by_label("Yes").check()
    await card.get_by_label("Passport number").fill("E1234567")
    await card.get_by_label("Notes").fill("two lines\nof text")
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    async with page.expect_response(lambda one: "/draft" in one.url):
        await card.get_by_label("Notes").press_sequentially("!")
    await page.reload()

    await expect(card.get_by_label("Full name")).to_have_value("张三")
    await expect(card.get_by_label("Deluxe")).to_be_checked()
    await expect(card.get_by_label("Airline")).to_have_value("other")
    await expect(card.get_by_label("Another: please specify")).to_have_value("Air Loop")
    await expect(card.get_by_label("Breakfast")).to_be_checked()
    await expect(card.get_by_label("Travellers")).to_have_value("2")
    await expect(card.get_by_label("Pick-up")).to_have_value("2026-12-01T08:30")
    await expect(card.get_by_label("Notes")).to_have_value("two lines\nof text!")
    await expect(card.get_by_label("Passport number")).to_be_visible()
    await expect(card.get_by_label("Passport number")).to_have_value("")
    await expect(card.locator(".total output")).to_have_text("¥738.50")
    assert "E1234567" not in await page.content()


async def test_a_secret_leaves_the_page_with_the_answer(scene: CardScene, admin: Window) -> None:
    run = await scene.start("travel")
    page, card = await at_card(admin, await scene.question(run))
    admin.forgive(REFUSED)
    await expect(card.get_by_label("Passport number")).to_be_hidden()
    await card.get_by_label("Full name").fill("张三")
    await card.get_by_label("Standard").check()
    await card.get_by_role("group", name="Needs a visa").get_by_label("Yes").check()
    await card.get_by_label("Passport number").fill("E1234567")
    await card.get_by_role("button", name="Submit").click()
    await expect(card.get_by_role("alert")).to_have_text("Please fix 1 field")
    await expect(card.get_by_label("Passport number")).to_have_value("")

    await card.get_by_label("Departure").fill("2026-12-01")
    await card.get_by_role("button", name="Submit").click()
    await expect(card).to_contain_text("secret, under lock")
    assert "E1234567" not in await page.content()
    await scene.came_to(run, DONE)
    for record in await scene.app.journal.read(run):
        assert "E1234567" not in str(record.payload)


async def test_a_field_that_is_not_asked_is_not_sent(scene: CardScene, admin: Window) -> None:
    run = await scene.start("travel")
    _, card = await at_card(admin, await scene.question(run))
    visa = card.get_by_role("group", name="Needs a visa")
    await card.get_by_label("Full name").fill("张三")
    await card.get_by_label("Standard").check()
    await card.get_by_label("Departure").fill("2026-12-01")
    await visa.get_by_label("Yes").check()
    await card.get_by_label("Passport number").fill("E1234567")
    await card.get_by_label("Issued in").fill("Shanghai")
    await visa.get_by_label("No").check()
    await expect(card.get_by_label("Issued in")).to_be_hidden()
    await expect(card.get_by_label("Passport number")).to_be_hidden()
    await card.get_by_role("button", name="Submit").click()
    await expect(card).to_contain_text("Will Zhang answered")
    await scene.came_to(run, DONE)


async def test_what_a_model_writes_is_shown_as_text(scene: CardScene, admin: Window) -> None:
    run = await scene.ask_clerk("pay 900")
    page, card = await at_card(admin, await scene.question(run))
    note = card.locator(".call dd", has_text="<script>")
    await expect(note).to_have_text("<script>alert(1)</script> <b>bold</b> ⟨202E⟩evil⟨202C⟩ &amp;")
    await card.get_by_text("Raw JSON").click()
    await expect(card.locator("pre").first).to_contain_text("<script>alert(1)</script>")
    await card.get_by_text("Edit the arguments").click()
    await expect(card.get_by_label("Note")).to_have_value(HOSTILE)
    await expect(card).to_contain_text("It holds characters that do not show")
    assert await page.locator("main script, main b b").count() == 0


async def test_whoever_may_not_answer_is_told_why(
    scene: CardScene, open_window: OpenWindow
) -> None:
    run = await scene.ask_clerk("pay 900")
    viewer = await open_window(name="Some viewer", roles=("viewer",))
    _, card = await at_card(viewer, await scene.question(run))
    await expect(card).to_contain_text(
        "You cannot answer this: this question is for the role approver."
    )
    await expect(card.get_by_role("button")).to_have_count(0)
    await expect(card.locator("form")).to_have_count(0)


async def pressed(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def tab_to(page: Page, element_id: str) -> None:
    for _ in range(40):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.id") == element_id:
            return
    raise AssertionError(f"{element_id} cannot be reached with Tab")


async def test_by_keyboard_alone(scene: CardScene, admin: Window) -> None:
    """From the queue to an answer, and nothing is ever focused that could do harm by itself."""
    run = await scene.ask_clerk("pay 900")
    row = await scene.question(run)
    page = await admin.live("/console/inbox")
    await tab_to(page, f"open-{row.question_id}")
    await pressed(page, "Enter")
    await page.wait_for_url(f"**/console/inbox/{row.question_id}")
    card = page.locator(f"#q-{row.question_id}")
    await expect(card).to_be_visible()
    assert await page.evaluate("document.activeElement.tagName") == "BODY"

    await tab_to(page, f"q-{row.question_id}-words")
    await page.keyboard.type("not today")
    await pressed(page, "Tab")
    await expect(card.get_by_role("button", name="Approve and run")).to_be_focused()
    await pressed(page, "Tab", "Tab")
    await expect(card.get_by_role("button", name="Reject", exact=True)).to_be_focused()
    await pressed(page, "Enter")
    await expect(card).to_contain_text("Will Zhang answered: Reject")
    await expect(card.get_by_role("heading")).to_be_focused()
    assert scene.calls == []


async def test_a_form_is_sent_with_enter_and_an_approval_is_not(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.ask_clerk("pay 900")
    _, card = await at_card(admin, await scene.question(run))
    await card.get_by_text("Edit the arguments").press("Enter")
    await card.get_by_label("Amount").press("Enter")
    await expect(card.get_by_role("button", name="Approve and run")).to_be_visible()
    assert scene.calls == []

    form = await scene.start("travel")
    _, card = await at_card(admin, await scene.question(form))
    admin.forgive(REFUSED)
    await card.get_by_label("Full name").press("Enter")
    await expect(card.get_by_role("alert")).to_contain_text("Please fix")


async def test_what_a_control_cannot_hold_is_no_change(scene: CardScene, admin: Window) -> None:
    """Line breaks that a model wrote reach the tool as they were shown."""
    run = await scene.ask_clerk("note two\nlines")
    _, card = await at_card(admin, await scene.question(run))
    await card.get_by_text("Edit the arguments").click()
    await expect(card.locator(".changed")).to_be_hidden()
    await card.get_by_label("Amount").fill("7")
    await card.get_by_role("button", name="Approve and run").click()
    await scene.came_to(run, DONE)
    assert scene.calls == [
        ("pay", {"to": "Will Zhang", "amount": 7, "note": "two\nlines", "urgent": False})
    ]


DISGUISES = {
    "en-GB": {
        "No, do not pay": "Runs pay with these arguments.",
        "Reject": "Runs pay with these arguments.",
        "Pay at once": "Does not run pay.",
        "Later": "Does not run pay; ends the whole run.",
    },
    "zh-CN": {
        "No, do not pay": "以所示参数执行 pay。",
        "拒绝": "以所示参数执行 pay。",
        "Pay at once": "不执行 pay。",
        "Later": "不执行 pay，并结束整个运行。",
    },
}


@pytest.mark.parametrize("locale", DISGUISES)
async def test_what_an_option_does_stands_beside_its_authors_words(
    scene: CardScene, open_window: OpenWindow, locale: str
) -> None:
    scene.app.load_plan_text(DISGUISED)
    run = await scene.start("disguised")
    reader = await open_window(locale=locale)
    _, card = await at_card(reader, await scene.question(run))
    for label, does in DISGUISES[locale].items():
        button = card.get_by_role("button", name=label, exact=True)
        await expect(button).to_have_accessible_description(does)
        await expect(button.locator("xpath=..")).to_contain_text(does)
    call = card.locator("dl.call").first
    for shown in ("pay", "Will Zhang", "900"):
        await expect(call).to_contain_text(shown)
    if locale == "en-GB":
        await card.get_by_role("button", name="Later", exact=True).click()
        dialog = card.get_by_role("dialog")
        await expect(dialog).to_contain_text("Does not run pay; ends the whole run.")


async def test_what_is_ours_and_about_no_call_needs_no_further_words(
    scene: CardScene, admin: Window
) -> None:
    run = await scene.start("travel")
    _, card = await at_card(admin, await scene.question(run))
    await expect(card.get_by_role("button", name="Submit")).to_be_visible()
    await expect(card.locator(".does")).to_have_count(0)


def test_a_label_that_only_repeats_the_name_is_not_told_beside_it() -> None:
    names = {"to": "To", "order_id": "Order Id", "amount": "金额", "city": ""}
    form = Form(tuple(Field(name, label=label) for name, label in names.items()))
    told = labelled_facts(form, dict.fromkeys(names, "x"))
    assert [(one.name, one.label) for one in told] == [
        ("to", ""),
        ("order_id", ""),
        ("amount", "金额"),
        ("city", ""),
    ]
