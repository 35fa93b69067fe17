"""The plan pages: reading, writing and starting plans, and looking at what they were before."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest_asyncio
from console_plans import an_office, started
from console_scene import NARROW, Backend, OpenWindow, Window, fits, reach, serving
from playwright.async_api import Locator, Page, expect

from holdfast.model.run import RunStatus

TRAVEL = """\
plan_id: travel
name: Book a journey
description: Everything that a traveller needs.
main_task_id: "001"
inputs:
  traveller: {type: text, label: Traveller, validation: {min_length: 2}}
  people: {type: number, label: People, default: 1, validation: {min: 1, max: 9}}
  room:
    type: radio
    label: Room
    options:
      - {value: standard, label: Standard, price: "¥420"}
      - {value: other, label: Another one, requires_input: true}
  smoking: {type: boolean, label: Smoking, required: false}
  brand: {type: text, label: Brand, visible_if: "values.smoking == true"}
  pin: {type: secret, label: PIN, required: false}
tasks:
  - {task_id: "001", name: Journey}
listeners:
  # a comment of its author
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

WRONG = """\
plan_id: wrong
name: Wrong
main_task_id: "001"
tasks:
  - {task_id: "001", name: Goal}
listeners:
  - listener_id: L001
    trigger_task_id: "009"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: nobody_has_it
    success_output: {task_id: "001", status: Done}
"""

LINES = "all => all.map(one => [...one.parentNode.children].indexOf(one) + 1)"
SELECTED = "one => one.value.slice(one.selectionStart, one.selectionEnd)"

RIGHT = WRONG.replace('"009"', '"001"').replace("nobody_has_it", "hold_door")


@pytest_asyncio.fixture(loop_scope="session")
async def backend() -> AsyncIterator[Backend]:
    office = an_office()
    office.load_plan_text(TRAVEL)
    async with serving(office) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def travel(admin: Window) -> Page:
    admin.forgive("422")
    return await admin.live("/console/plans/travel")


def has(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))


def problems(page: Page) -> Locator:
    return page.get_by_role("list", name="Mistakes, by line").get_by_role("listitem")


def start_form(page: Page) -> Locator:
    return page.get_by_role("region", name="Start a run")


async def test_the_list_says_what_there_is(admin: Window, backend: Backend) -> None:
    await started(backend.app, "greet")
    page = await admin.live("/console/plans")
    row = page.locator("#plan-greet")
    digest = backend.app.engine.definitions.current("greet").digest
    await expect(row).to_contain_text("Greet a colleague")
    await expect(row).to_contain_text(digest[:8])
    await expect(row).to_contain_text("The application's own")
    runs = row.get_by_role("link", name="1 run of greet")
    await expect(runs).to_have_attribute("href", "/console/runs?plan=greet")
    await expect(page.locator("#plan-travel")).to_contain_text("Everything that a traveller needs")
    await row.get_by_role("link", name="Start Greet a colleague").click()
    await expect(page).to_have_url(f"{backend.url}/console/plans/greet#start")


async def test_a_plan_is_drawn_and_written_out(travel: Page) -> None:
    await expect(travel.get_by_role("heading", name="Book a journey", level=1)).to_be_visible()
    graph = travel.get_by_role("region", name="Graph").locator("svg")
    await expect(graph).to_contain_text("L001")
    source = travel.get_by_role("textbox", name="Source")
    await expect(source).to_have_value(has("plan_id: travel"))
    await expect(travel.get_by_text("the comments of its file are not part of it")).to_be_visible()
    await travel.get_by_role("button", name="Check").click()
    await expect(travel.get_by_text("No mistakes found.")).to_be_visible()


async def test_mistakes_stand_at_their_lines(admin: Window, backend: Backend) -> None:
    admin.forgive("422")
    page = await admin.live("/console/plans/~new")
    source = page.get_by_role("textbox", name="Source")
    await source.fill(WRONG)
    await page.get_by_role("button", name="Check").click()
    await expect(problems(page)).to_have_count(2)
    await expect(problems(page).nth(0)).to_contain_text("there is no task '009'")
    await expect(problems(page).nth(1)).to_contain_text("nobody_has_it")
    wrong = page.locator(".gutter .wrong")
    await expect(wrong).to_have_count(2)
    assert await wrong.evaluate_all(LINES) == [8, 11]
    await expect(source).to_have_attribute("aria-invalid", "true")
    await page.get_by_role("button", name="Line 11").click()
    await expect(source).to_be_focused()
    assert await source.evaluate(SELECTED) == "nobody_has_it"
    await page.get_by_role("button", name="Register").click()
    await expect(page.get_by_text("2 mistakes found. Nothing has changed.")).to_be_visible()
    assert "wrong" not in backend.app.engine.definitions.plan_ids()


async def test_what_checks_out_is_registered(admin: Window, backend: Backend) -> None:
    page = await admin.live("/console/plans/~new")
    await page.get_by_role("textbox", name="Source").fill(RIGHT)
    await page.get_by_role("button", name="Check").click()
    await expect(page.get_by_text("No mistakes found.")).to_be_visible()
    await page.get_by_role("button", name="Register").click()
    await expect(page).to_have_url(f"{backend.url}/console/plans/wrong")
    await expect(page.get_by_role("textbox", name="Source")).to_have_value(RIGHT)
    await page.get_by_role("link", name="All plans").click()
    await expect(page.locator("#plan-wrong")).to_contain_text("Registered by Will Zhang")


async def test_versions_stay_readable(travel: Page, backend: Backend) -> None:
    first = backend.app.engine.definitions.current("travel").digest
    await started(backend.app, "travel", RunStatus.PAUSE)
    source = travel.get_by_role("textbox", name="Source")
    await source.fill(TRAVEL.replace("Book a journey", "Book two journeys"))
    await travel.get_by_role("button", name="Register").click()
    await expect(travel.get_by_role("heading", name="Book two journeys")).to_be_visible()
    await expect(source).to_have_value(has("# a comment of its author"))
    versions = travel.get_by_role("region", name="Versions").get_by_role("listitem")
    await expect(versions).to_have_count(2)
    await expect(versions.nth(0)).to_contain_text("Current")
    await versions.nth(1).get_by_role("link").click()
    await expect(travel).to_have_url(f"{backend.url}/console/plans/travel?version={first}")
    await expect(source).to_have_value(has("name: Book a journey"))
    await expect(travel.get_by_text(f"earlier version {first[:8]}")).to_be_visible()
    await travel.get_by_role("button", name="Register").click()
    await expect(travel).to_have_url(f"{backend.url}/console/plans/travel")
    await expect(travel.get_by_role("heading", name="Book a journey")).to_be_visible()
    assert backend.app.engine.definitions.current("travel").digest == first


async def test_a_start_with_mistakes_says_them_at_the_field(travel: Page, backend: Backend) -> None:
    form = start_form(travel)
    await form.get_by_role("button", name="Start").click()
    await expect(form.get_by_text("Please fix 2 fields")).to_be_visible()
    await expect(form.get_by_label("Traveller")).to_be_focused()
    await expect(form.get_by_role("group", name="Room")).to_contain_text("Please choose.")
    await form.get_by_label("Traveller").fill("W")
    await form.get_by_label("People").fill("12")
    await form.get_by_label("Standard").check()
    await expect(form.locator(".total")).to_contain_text("¥420")
    await form.get_by_role("button", name="Start").click()
    await expect(form.get_by_label("Traveller")).to_have_attribute("aria-invalid", "true")
    await expect(form.get_by_label("People")).to_have_attribute("aria-invalid", "true")
    assert await backend.app.journal.runs() == []
    await form.get_by_label("Traveller").fill("Will Zhang")
    await form.get_by_label("People").fill("2")
    await form.get_by_label("PIN").fill("4711")
    await form.get_by_role("button", name="Start").click()
    await expect(travel).to_have_url(f"{backend.url}/console/runs/inst_000002")
    context = (await backend.app.instance("inst_000002")).get_main_task_instance().context
    assert context["traveller"] == "Will Zhang"
    assert context["people"] == 2
    assert context["room"] == "standard"
    assert str(context["pin"]).startswith("secret:")


async def test_a_field_is_asked_when_it_matters(travel: Page) -> None:
    form = start_form(travel)
    await expect(form.get_by_label("Brand")).to_be_hidden()
    await form.get_by_role("group", name="Smoking").get_by_label("Yes").check()
    await expect(form.get_by_label("Brand")).to_be_visible()
    await form.get_by_role("group", name="Smoking").get_by_label("No").check()
    await expect(form.get_by_label("Brand")).to_be_hidden()


async def test_with_a_prompt_the_rest_may_be_asked_later(travel: Page, backend: Backend) -> None:
    form = start_form(travel)
    await form.get_by_label("What is it for?").fill("Shanghai in May")
    await form.get_by_role("button", name="Start").click()
    await expect(travel).to_have_url(f"{backend.url}/console/runs/inst_000001")
    assert (await backend.app.instance("inst_000001")).status == "pause"


async def test_who_may_not_write_reads(open_window: OpenWindow) -> None:
    window = await open_window(roles=("viewer",))
    page = await window.live("/console/plans")
    await expect(page.get_by_role("link", name="New plan")).to_have_count(0)
    await page.get_by_role("link", name="Book a journey").click()
    await expect(page.get_by_role("textbox", name="Source")).to_have_js_property("readOnly", True)
    await expect(page.get_by_role("button", name="Register")).to_have_count(0)
    await expect(start_form(page)).to_have_count(0)
    window.forgive("403")
    await page.goto(page.url.replace("travel", "~new"))
    await expect(page.get_by_role("heading", name="You may not see this")).to_be_visible()


async def test_an_author_writes_and_does_not_start(open_window: OpenWindow) -> None:
    page = await (await open_window(roles=("author",))).live("/console/plans/travel")
    await expect(page.get_by_role("button", name="Register")).to_be_visible()
    await expect(start_form(page)).to_have_count(0)


async def test_characters_that_do_not_show_are_told_with_their_lines(travel: Page) -> None:
    source = travel.get_by_role("textbox", name="Source")
    await expect(travel.locator("#hidden")).to_be_empty()
    await source.fill("# plain\n# \u202egnp.exe\n" + await source.input_value())
    await expect(travel.locator("#hidden")).to_contain_text("line 2 ⟨202E⟩")
    await expect(travel.locator(".gutter [data-hidden=yes]")).to_have_count(1)


async def test_another_plan_id_is_noticed(travel: Page) -> None:
    source = travel.get_by_role("textbox", name="Source")
    await source.fill(TRAVEL.replace("plan_id: travel", "plan_id: voyage"))
    await travel.get_by_role("button", name="Check").click()
    await expect(travel.get_by_text("Register makes a plan voyage of its own")).to_be_visible()


async def test_by_the_keyboard_alone(admin: Window, backend: Backend) -> None:
    page = await admin.live("/console/plans")
    await reach(page, page.get_by_role("link", name="New plan"))
    await page.keyboard.press("Enter")
    source = page.get_by_role("textbox", name="Source")
    await expect(source).to_be_visible()
    await reach(page, source)
    await page.keyboard.press("Control+Home")
    await page.keyboard.press("Shift+End")
    await page.keyboard.type("plan_id: typed")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Check")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{backend.url}/console/plans/typed")
    await reach(page, page.get_by_role("button", name="Start"))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{backend.url}/console/runs/inst_000001")


async def test_it_fits_a_narrow_window_in_both_languages(
    open_window: OpenWindow, locale: str, theme: str
) -> None:
    narrow = await open_window(viewport=NARROW, locale=locale, color_scheme=theme)
    for path in ("/console/plans", "/console/plans/travel", "/console/plans/~new"):
        assert await fits(await narrow.live(path)), path
