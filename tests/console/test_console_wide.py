"""A graph of two hundred boxes: what is written can be read, and stands where it belongs."""

from __future__ import annotations

from typing import Any

import pytest
from console_plans import Office, started
from console_scene import NARROW, WIDE, Backend, OpenWindow, fits
from graph_scene import lattice
from playwright.async_api import Page, expect
from run_scene import chain

SMALLEST = 10.0
"""Pixels on the screen."""

LETTERS = """() => [...document.querySelectorAll("#stage text")].map((one) => ({
    text: one.textContent,
    size: Math.round(100 * parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a) / 100,
}))"""

SPILLED = """() => [...document.querySelectorAll("#stage .node:not(.reference)")].flatMap(node => {
    const room = node.querySelector("rect").getBBox();
    return [...node.querySelectorAll("text")].filter((one) => {
        const { x, y, width, height } = one.getBBox();
        return x < room.x || x + width > room.x + room.width
            || y < room.y || y + height > room.y + room.height;
    }).map((one) => `${node.dataset.id}: ${one.textContent}`);
})"""

OVERLAPPING = """() => {
    const boxes = [...document.querySelectorAll("#stage .node")].map((node) => {
        const { left, right, top, bottom } = node.querySelector("rect").getBoundingClientRect();
        return { id: node.dataset.id, left, right, top, bottom };
    });
    return boxes.flatMap((a, place) => boxes.slice(place + 1).filter((b) =>
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
    ).map((b) => `${a.id} and ${b.id}`));
}"""

OUTSIDE = """() => {
    const room = document.getElementById("stage").getBoundingClientRect();
    return [...document.querySelectorAll("#stage .node")].filter((node) => {
        const box = node.querySelector("rect").getBoundingClientRect();
        return box.left < room.left || box.right > room.right
            || box.top < room.top || box.bottom > room.bottom;
    }).map((node) => node.dataset.id);
}"""


@pytest.fixture
def office(backend: Backend) -> Office:
    office = backend.app
    assert isinstance(office, Office)

    @office.tool(idempotent=True)
    async def quick() -> dict[str, Any]:
        return {"success": True}

    office.load_plan_text(chain(100))
    office.load_plan_text(lattice(10, 10, "quick"))
    return office


async def drawn(page: Page, boxes: int) -> None:
    await expect(page.locator("#stage .node:not(.reference)")).to_have_count(boxes)


@pytest.mark.parametrize(("plan_id", "boxes"), [("chain", 201), ("lattice", 203)])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_two_hundred_boxes_are_legible(
    open_window: OpenWindow, office: Office, plan_id: str, boxes: int, viewport: dict[str, int]
) -> None:
    run_id = await started(office, plan_id)
    page = await (await open_window(viewport=viewport)).live(f"/console/runs/{run_id}")
    await drawn(page, boxes)
    letters = await page.evaluate(LETTERS)
    assert len(letters) >= boxes
    assert [one for one in letters if one["size"] < SMALLEST] == []
    assert await page.evaluate(SPILLED) == []
    assert await page.evaluate(OVERLAPPING) == []
    assert await fits(page)

    assert await page.evaluate(OUTSIDE) != []
    await page.get_by_role("button", name="Fit").click()
    await expect(page.locator("#stage")).to_have_attribute("data-more", "")
    assert await page.evaluate(OUTSIDE) == []
    assert await fits(page)


FILLED = """() => {
    const boxes = [...document.querySelectorAll("#stage .node rect")]
        .map((one) => one.getBoundingClientRect());
    const low = Math.min(...boxes.map((one) => one.top));
    const high = Math.max(...boxes.map((one) => one.bottom));
    return (high - low) / document.getElementById("stage").clientHeight;
}"""


async def test_the_whole_stays_whole_in_another_window(
    open_window: OpenWindow, office: Office
) -> None:
    run_id = await started(office, "lattice")
    page = await (await open_window(viewport=WIDE)).live(f"/console/runs/{run_id}")
    await drawn(page, 203)
    stage = page.locator("#stage")
    high = await stage.evaluate("one => one.clientHeight")
    await page.get_by_role("button", name="Fit").click()
    assert await page.evaluate(OUTSIDE) == []
    assert await page.evaluate(FILLED) > 0.6
    fitted = await stage.evaluate("one => one.clientHeight")
    assert fitted < high
    for viewport in (NARROW, WIDE):
        before = await stage.evaluate("one => one.clientWidth")
        await page.set_viewport_size(viewport)
        await expect(stage).not_to_have_js_property("clientWidth", before)
        await page.wait_for_function(f"({OUTSIDE})().length === 0")
        assert await stage.get_attribute("data-more") == ""
    await expect(stage).to_have_js_property("clientHeight", fitted)


async def test_a_plans_drawing_shows_where_it_goes_on(
    open_window: OpenWindow, office: Office
) -> None:
    page = await (await open_window()).live("/console/plans/chain")
    drawing = page.locator(".drawing")
    await expect(drawing).to_have_attribute("data-more", "right")
    await drawing.evaluate("one => one.scrollTo(300, 0)")
    await expect(drawing).to_have_attribute("data-more", "left right")
    await drawing.evaluate("one => one.scrollTo(one.scrollWidth, 0)")
    await expect(drawing).to_have_attribute("data-more", "left")
