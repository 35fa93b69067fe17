"""What a form says about its fields goes when they are corrected; nothing typed is no draft."""

from __future__ import annotations

import pytest
from card_scene import CardScene, at_card
from console_scene import Window
from playwright.async_api import expect

from holdfast import Holdfast

ONE_INPUT = """
plan_id: one_input
main_task_id: "001"
inputs: {number: {type: text, label: Number}}
tasks: [{task_id: "001", name: Take a number}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: code,
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""


@pytest.fixture
def app(scene: CardScene) -> Holdfast:
    return scene.app


async def test_a_corrected_field_is_no_longer_complained_about(
    scene: CardScene, admin: Window
) -> None:
    admin.forgive("422")
    _, card = await at_card(admin, await scene.question(await scene.start("travel")))
    await card.get_by_role("button", name="Submit").click()
    wrong = card.locator(".error:not(:empty)")
    await expect(wrong).to_have_count(4)
    await expect(card.locator(".kept")).to_be_empty()
    await card.get_by_label("Full name").fill("张三")
    await expect(card.get_by_label("Full name")).not_to_have_attribute("aria-invalid", "true")
    await expect(wrong).to_have_count(3)
    await card.get_by_label("Standard").check()
    await card.get_by_label("Departure").fill("2026-12-01")
    await expect(card.get_by_role("alert")).to_contain_text("Please fix")
    await card.get_by_role("group", name="Needs a visa").get_by_label("No").check()
    await expect(wrong).to_have_count(0)
    await expect(card.locator("[aria-invalid]")).to_have_count(0)
    await expect(card.locator(".errors")).to_be_empty()
    await expect(card.locator(".kept")).to_have_text("Draft kept")


async def test_nothing_filled_in_is_no_draft(scene: CardScene, admin: Window) -> None:
    admin.forgive("422")
    page, card = await at_card(admin, await scene.question(await scene.start("travel")))
    await card.get_by_role("button", name="Submit").click()
    await expect(card.get_by_role("alert")).to_contain_text("Please fix")
    assert "draft of" not in str(await page.evaluate("JSON.stringify({...sessionStorage})"))


async def test_the_start_form_forgets_what_was_wrong(scene: CardScene, admin: Window) -> None:
    scene.app.load_plan_text(ONE_INPUT)
    page = await admin.live("/console/plans/one_input")
    form = page.locator("#starting")
    await form.get_by_role("button", name="Start").click()
    await expect(form.locator(".error:not(:empty)")).to_have_count(1)
    await form.get_by_label("Number").fill("7")
    await expect(form.locator(".error:not(:empty)")).to_have_count(0)
    await expect(form.locator(".errors")).to_be_empty()


async def test_what_does_not_show_is_told_as_long_as_it_is_there(
    scene: CardScene, admin: Window
) -> None:
    _, card = await at_card(admin, await scene.question(await scene.ask_clerk("pay 900")))
    await card.get_by_text("Edit the arguments").click()
    hint = card.get_by_text("It holds characters that do not show")
    note = card.get_by_label("Note")
    await expect(hint).to_be_visible()
    await note.press("End")
    await note.press("x")
    await expect(hint).to_be_visible()
    await note.fill("for the train")
    await expect(hint).to_be_hidden()
