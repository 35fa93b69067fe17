"""Follow mode: the graph keeps up with the run until somebody moves it by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from console_plans import Office, started
from console_scene import Backend, Window
from graph_scene import Gate, is_seen, lattice, node, view_of
from playwright.async_api import Locator, Page, expect

from holdfast.model.run import RunStatus


@pytest.fixture
def gate(backend: Backend) -> Gate:
    assert isinstance(backend.app, Office)
    gate = Gate(backend.app)
    backend.app.load_plan_text(lattice(1, 30, "pass_gate"))
    return gate


@pytest_asyncio.fixture(loop_scope="session")
async def page(admin: Window, backend: Backend, gate: Gate) -> AsyncIterator[Page]:
    """A long chain, its first step under way."""
    run_id = await started(backend.app, "lattice", RunStatus.RUNNING)
    yield await admin.live(f"/console/runs/{run_id}")
    gate.open(31)


def follow(page: Page) -> Locator:
    return page.get_by_role("button", name="Follow")


def step(page: Page, number: int) -> Locator:
    return node(page, f"Lt00{number:02}")


async def works_at(page: Page, number: int) -> None:
    await expect(step(page, number)).to_contain_class("running")


async def by_dragging(page: Page) -> None:
    box = await page.locator("#stage").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 4
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + 60, y, steps=4)
    await page.mouse.up()


async def by_a_button(page: Page) -> None:
    await page.get_by_role("button", name="Zoom in").click()


async def by_turning_the_wheel(page: Page) -> None:
    await page.locator("#stage").hover()
    await page.keyboard.down("Control")
    await page.mouse.wheel(0, -120)
    await page.keyboard.up("Control")


async def by_wheeling_sideways(page: Page) -> None:
    await page.locator("#stage").hover()
    await page.mouse.wheel(-90, 0)


async def by_the_plus_key(page: Page) -> None:
    await page.locator("#stage").focus()
    await page.keyboard.press("+")


async def by_shift_and_an_arrow(page: Page) -> None:
    await page.locator("#stage").focus()
    await page.keyboard.press("Shift+ArrowLeft")


async def by_walking_from_box_to_box(page: Page) -> None:
    await page.locator("#stage").focus()
    await page.keyboard.press("ArrowRight")


HANDS = [
    by_dragging,
    by_a_button,
    by_turning_the_wheel,
    by_wheeling_sideways,
    by_the_plus_key,
    by_shift_and_an_arrow,
    by_walking_from_box_to_box,
]


async def test_a_long_run_is_followed_from_the_start(page: Page, gate: Gate) -> None:
    await expect(follow(page)).to_have_attribute("aria-pressed", "true")
    assert await is_seen(step(page, 0))
    before = await view_of(page)
    for number in (8, 16, 24):
        gate.open(8)
        await works_at(page, number)
        assert await is_seen(step(page, number))
    assert await view_of(page) != before
    assert not await is_seen(step(page, 0))


@pytest.mark.parametrize("hand", HANDS)
async def test_whoever_moves_the_graph_has_it_until_follow_is_pressed(
    page: Page, gate: Gate, hand: Callable[[Page], Awaitable[None]]
) -> None:
    gate.open(4)
    await works_at(page, 4)
    await hand(page)
    await expect(follow(page)).to_have_attribute("aria-pressed", "false")
    mine = await view_of(page)
    gate.open(8)
    await works_at(page, 12)
    assert await view_of(page) == mine
    assert not await is_seen(step(page, 12))
    await follow(page).click()
    await expect(follow(page)).to_have_attribute("aria-pressed", "true")
    assert await is_seen(step(page, 12))
    gate.open(8)
    await works_at(page, 20)
    assert await is_seen(step(page, 20))


async def test_follow_is_let_go_as_it_was_taken(page: Page, gate: Gate) -> None:
    await follow(page).click()
    await expect(follow(page)).to_have_attribute("aria-pressed", "false")
    here = await view_of(page)
    gate.open(8)
    await works_at(page, 8)
    assert await view_of(page) == here


async def test_the_whole_stays_whole_while_the_run_goes_on(page: Page, gate: Gate) -> None:
    await page.get_by_role("button", name="Fit").click()
    await expect(follow(page)).to_have_attribute("aria-pressed", "false")
    gate.open(8)
    await works_at(page, 8)
    await expect(page.locator("#stage")).to_have_attribute("data-more", "")
    assert await is_seen(step(page, 0))
    assert await is_seen(step(page, 29))
