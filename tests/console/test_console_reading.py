"""Whoever reads a run's page while the run goes on is not disturbed, and sees what they chose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from console_plans import Office, started
from console_scene import Backend, Window
from graph_scene import Gate, lattice, node
from playwright.async_api import Locator, Page, Route, expect
from run_scene import trip

from holdfast.model.run import RunStatus

SELECT = """one => {
    one.scrollIntoView({ block: "center" });
    getSelection().selectAllChildren(one);
    return getSelection().toString();
}"""
SELECTED = "getSelection().toString()"


@pytest.fixture
def office(backend: Backend) -> Office:
    assert isinstance(backend.app, Office)
    return backend.app


@pytest.fixture
def gate(office: Office) -> Gate:
    gate = Gate(office, lines=[f"line {number}" for number in range(200)])
    office.load_plan_text(lattice(1, 40, "pass_gate"))
    return gate


@pytest_asyncio.fixture(loop_scope="session")
async def page(admin: Window, office: Office, gate: Gate) -> AsyncIterator[Page]:
    """A long chain of steps that say much, the thirteenth under way."""
    run_id = await started(office, "lattice", RunStatus.RUNNING)
    page = await admin.live(f"/console/runs/{run_id}")
    gate.open(12)
    await expect(node(page, "Lt0012")).to_contain_class("running")
    await expect(page.locator("#timeline")).to_contain_text("Lt0012")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-live", "live")
    yield page
    gate.open(41)


async def mark(part: Locator) -> None:
    """Until a fresh part takes its place."""
    await part.evaluate("one => { one.dataset.mark = 'old'; }")


async def swapped(part: Locator) -> None:
    await expect(part).not_to_have_attribute("data-mark", "old")


async def top(one: Locator) -> float:
    return float(await one.evaluate("one => one.getBoundingClientRect().top"))


async def test_a_scrolled_output_stays_where_it_is(page: Page, gate: Gate) -> None:
    await node(page, "Lt0011").click()
    output = page.locator("#details #node-output")
    await output.evaluate("one => one.scrollTo(0, 500)")
    await mark(page.locator("#details"))
    gate.open()
    await swapped(page.locator("#details"))
    assert await output.evaluate("one => one.scrollTop") == 500


async def test_what_is_selected_stays_until_it_is_let_go(page: Page, gate: Gate) -> None:
    await node(page, "Lt0012").click()
    details, timeline = page.locator("#details"), page.locator("#timeline")
    for part, text in (
        (details, details.locator("#details-title")),
        (timeline, timeline.locator("li").nth(3)),
    ):
        selected = await text.evaluate(SELECT)
        assert len(selected) > 5
        other = timeline if part is details else page.locator("#run-graph")
        await mark(part)
        await mark(other)
        gate.open(2)
        await swapped(other)
        assert await page.evaluate(SELECTED) == selected
        await expect(part).to_have_attribute("data-mark", "old")
        await page.evaluate("getSelection().removeAllRanges()")
        await swapped(part)


async def test_a_row_of_the_timeline_is_not_pushed_away(page: Page, gate: Gate) -> None:
    rows = page.locator("#timeline li")
    await expect(rows).to_have_count(20)
    row = page.locator(f"#{await rows.last.get_attribute('id')}")
    await row.evaluate("one => one.scrollIntoView({ block: 'center' })")
    before = await top(row)
    assert await top(page.locator("#timeline")) < 0
    gate.open(8)
    await expect(rows.first).to_contain_text("Lt0020")
    assert abs(await top(row) - before) < 2
    assert await rows.count() > 30
    await page.get_by_role("button", name="Older").click()
    await expect(row).to_have_count(0)
    await page.get_by_role("button", name="Newest").click()
    await expect(rows).to_have_count(20)


async def test_the_box_pressed_last_is_shown(page: Page) -> None:
    held = asyncio.Event()

    async def later(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/node?node=Lt0011*", later)
    async with page.expect_response("**/node?node=Lt0011*") as slow:
        await node(page, "Lt0011").click()
        await node(page, "Lt0012").click()
        title = page.locator("#details-title")
        await expect(title).to_contain_text("Lt0012")
        held.set()
    await (await slow.value).finished()
    await page.evaluate("new Promise((wake) => requestIdleCallback(wake))")
    await expect(title).to_contain_text("Lt0012")


async def test_details_come_back_from_the_past_with_the_graph(
    admin: Window, office: Office
) -> None:
    page = await admin.live(f"/console/runs/{await trip(office)}")
    details, past = page.locator("#details"), "As it was at event 1"
    await node(page, "L002").click()
    await expect(details).to_contain_text("Try 2 of 2 failed")
    await page.get_by_label("History").press("Home")
    await expect(details).to_contain_text(past)
    await expect(details).not_to_contain_text("Try 2 of 2 failed")
    await page.get_by_role("button", name="Now").click()
    await expect(details).to_contain_text("Try 2 of 2 failed")
    await expect(details).not_to_contain_text(past)


async def test_details_opened_in_the_past_hear_again_after_now(
    admin: Window, office: Office
) -> None:
    run_id = await started(office, "hold", RunStatus.RUNNING)
    page = await admin.live(f"/console/runs/{run_id}")
    await page.get_by_label("History").press("Home")
    await expect(page.locator("#moment")).to_be_visible()
    await node(page, "L001").click()
    details = page.locator("#details")
    await expect(details).to_contain_text("As it was at event 1")
    await page.get_by_role("button", name="Now").click()
    await expect(details).to_contain_text("under way")
    office.door.opened.set()
    await expect(details).to_contain_text("succeeded")


async def test_a_step_that_waits_for_a_person_says_for_what(admin: Window, office: Office) -> None:
    run_id = await started(office, "computer", RunStatus.PAUSE)
    page = await admin.live(f"/console/runs/{run_id}")
    await node(page, "L001").click()
    details = page.locator("#details")
    await expect(details).to_contain_text("It waits for a person:")
    asked = await page.locator(".question h2").inner_text()
    link = details.get_by_role("link", name=asked)
    [question] = (await office.engine.state(run_id)).open_questions
    await expect(link).to_have_attribute("href", f"/console/inbox/{question}")
    await expect(details).to_contain_text("Needed to go on: 电脑型号")
    await expect(details).not_to_contain_text("Nothing has happened")


async def test_a_part_that_the_server_could_not_give_is_asked_for_again(
    admin: Window, office: Office
) -> None:
    admin.forgive("503")
    run_id = await started(office, "hold", RunStatus.RUNNING)
    page = await admin.live(f"/console/runs/{run_id}")
    refused = 0

    async def out_of_order(route: Route) -> None:
        nonlocal refused
        refused += 1
        await route.fulfill(status=503)

    await page.route("**/head", out_of_order)
    office.door.opened.set()
    await expect(page.locator("#timeline li").first).to_contain_text("the run is done")
    status = page.locator("#run-status > .pill").first
    await expect(status).to_have_text("Running")
    await page.unroute("**/head")
    await expect(status).to_have_text("Done")
    assert refused >= 1
