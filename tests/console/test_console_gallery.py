"""Every page in Chinese and on a telephone, as axe-core sees it; and where the focus is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from axe_scene import THEMES, check
from console_scene import NARROW, WIDE, Backend, OpenWindow, fits, serving
from gallery import Gallery, a_gallery, pages
from playwright.async_api import Page

PAGES = 22

WATCH = """() => {
    document.activeElement.blur?.();
    const STOPS = "a[href], button, input, select, textarea, summary, [tabindex='0']";
    const shown = (one) => one.checkVisibility({ visibilityProperty: true })
        && !one.disabled && one.tabIndex >= 0 && !one.matches("[type=hidden]")
        && one.getBoundingClientRect().width > 0;
    const bearers = (one) =>
        [one, one.closest("label, .lines"), one.querySelector(":scope > rect")].filter(Boolean);
    const looks = (one) => {
        const { outlineStyle, outlineWidth, boxShadow, borderColor, stroke, strokeWidth } =
            getComputedStyle(one);
        return { outline: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1,
            rest: [boxShadow, borderColor, stroke, strokeWidth].join() };
    };
    const named = (one) => one.outerHTML.slice(0, 140);
    const before = new Map();
    for (const one of document.querySelectorAll(STOPS)) {
        for (const each of bearers(one)) before.set(each, looks(each));
    }
    const wanted = [...document.querySelectorAll(STOPS)].filter(shown);
    const visited = new Set();
    const faults = [];
    document.addEventListener("focusin", ({ target }) => {
        if (visited.has(target)) return;
        visited.add(target);
        const told = bearers(target).some((one) => {
            const [now, then] = [looks(one), before.get(one)];
            return now.outline && !then?.outline || then && now.rest !== then.rest;
        });
        if (!told) faults.push(named(target));
    });
    const group = (one) => one.type === "radio" && one.name;
    window.watched = {
        stops: wanted.length,
        told: () => ({
            visited: visited.size,
            faults,
            missed: wanted.filter((one) => shown(one) && !visited.has(one)
                && ![...visited].some((other) => group(other) && group(other) === group(one))
            ).map(named),
        }),
    };
    return wanted.length;
}"""


@pytest.fixture
def gallery() -> Gallery:
    return a_gallery()


@pytest_asyncio.fixture(loop_scope="session")
async def backend(gallery: Gallery) -> AsyncIterator[Backend]:
    async with serving(gallery.bank) as one:
        yield one


@pytest.mark.parametrize(
    ("locale", "viewport"), [("zh-CN", WIDE), ("en-GB", NARROW)], ids=["chinese", "telephone"]
)
async def test_every_page_is_sound_in_both_themes(
    open_window: OpenWindow, gallery: Gallery, locale: str, viewport: dict[str, int]
) -> None:
    seen = 0
    async for page in pages(gallery, await open_window(locale=locale, viewport=viewport)):
        await check(page)
        assert await fits(page), page.url
        seen += 1
    assert seen == PAGES


async def walked(page: Page) -> None:
    """Through the whole page by the tabulator: every control is reached, and shows it."""
    stops = await page.evaluate(WATCH)
    for _ in range(3):  # a date has several stops, and the way may begin in the middle
        for _ in range(stops + 2):
            await page.keyboard.press("Tab")
        told = await page.evaluate("window.watched.told()")
        if not told["missed"]:
            break
    assert told["visited"] > 0, page.url
    assert told["faults"] == [], f"{page.url}: these do not show that they have the focus"
    assert told["missed"] == [], f"{page.url}: the tabulator does not lead to these"


@pytest.mark.parametrize("theme", THEMES)
async def test_every_control_is_reached_and_shows_the_focus(
    open_window: OpenWindow, gallery: Gallery, theme: str
) -> None:
    seen = 0
    async for page in pages(gallery, await open_window(color_scheme=theme)):
        await walked(page)
        seen += 1
    assert seen == PAGES
