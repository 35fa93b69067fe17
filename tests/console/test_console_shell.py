"""What every page has: the way around, the connection, the language, coming and going."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from console_plans import started
from console_scene import House, OpenWindow, Window, fits
from playwright.async_api import Page, Route, expect

from holdfast.console.assets import address
from holdfast.model.run import RunStatus


def client(house: House) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=house.url, trust_env=False)


async def test_the_keyboard_reaches_the_content_first(page: Page) -> None:
    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()


async def test_the_page_has_its_landmarks(page: Page) -> None:
    await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    here = page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs")
    await expect(here).to_have_attribute("aria-current", "page")
    await expect(page).to_have_title("Runs · Holdfast")


async def test_the_connection_shows_itself(page: Page) -> None:
    await expect(page.locator("#live")).to_have_text("Live")


async def test_a_restarted_server_is_found_again(admin: Window, house: House) -> None:
    admin.forgive("ERR_")
    page = await admin.live()
    await house.stop()
    await expect(page.locator("html")).not_to_have_attribute("data-live", "live")
    run_id = await started(house.app, "greet")
    await house.start()
    await expect(page.locator("#live")).to_have_text("Live")
    await expect(page.locator(f"#row-{run_id}")).to_contain_text("Done")


async def test_eight_tabs_share_one_connection(admin: Window, house: House) -> None:
    tabs = [await admin.live() for _ in range(8)]
    assert house.services.streams.clients == 1
    run_id = await started(house.app, "greet")
    for tab in tabs:
        await tab.bring_to_front()
        await expect(tab.locator(f"#row-{run_id}")).to_be_visible()


async def test_the_last_page_takes_its_connection_with_it(admin: Window, house: House) -> None:
    page = await admin.live()
    await page.goto("about:blank")
    back = await admin.live()
    assert house.services.streams.clients == 1
    await expect(back.locator("#live")).to_have_text("Live")


async def test_the_inbox_counts_live(page: Page, house: House) -> None:
    inbox = page.get_by_role("navigation", name="Main").get_by_role("link", name="Inbox")
    await expect(inbox).to_have_text("Inbox")
    await started(house.app, "computer", RunStatus.PAUSE)
    await expect(inbox).to_contain_text("1 question waits")


async def test_the_language_is_the_browsers_until_somebody_chooses(
    open_window: OpenWindow,
) -> None:
    page = await (await open_window(locale="zh-CN")).live("/console/runs?status=done")
    await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    await expect(page.get_by_role("heading", level=1)).to_have_text("运行")
    await page.locator("summary.language").click()
    await page.get_by_role("link", name="English").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    assert page.url.endswith("/console/runs?status=done")


async def test_a_menu_closes_by_key_and_by_looking_elsewhere(page: Page) -> None:
    account = page.locator("details.menu", has_text="Will Zhang")
    await account.locator("summary").focus()
    await page.keyboard.press("Enter")
    await expect(account.get_by_text("Sign out")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(account.get_by_text("Sign out")).to_be_hidden()
    await expect(account.locator("summary")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", level=1).click()
    await expect(account.get_by_text("Sign out")).to_be_hidden()


async def test_signing_out_and_in_again(admin: Window, house: House) -> None:
    admin.forgive("401")
    page = await admin.live()
    await expect(page.locator(".account .role")).to_have_text("Administrator")
    await page.locator("summary", has_text="Will Zhang").click()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("You are not signed in")
    token = page.get_by_label("Or paste an access token")
    await token.fill("hf_nonsense")
    await page.keyboard.press("Enter")
    await expect(token).to_have_attribute("aria-invalid", "true")
    await expect(token).to_be_focused()
    await token.fill(f"{house.url}/login?token={await house.link()}")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")


async def test_a_link_signs_in_and_leads_to_the_runs(open_window: OpenWindow, house: House) -> None:
    stranger = await open_window(signed_in=False)
    page = await stranger.open(f"/login?token={await house.link()}")
    await expect(page).to_have_url(f"{house.url}/console/runs")


async def test_nobody_is_shown_how_to_get_a_link(open_window: OpenWindow) -> None:
    stranger = await open_window(signed_in=False)
    stranger.forgive("401")
    page = await stranger.open("/console/runs")
    await expect(page.locator("code")).to_have_text("holdfast serve --link")
    await expect(page.get_by_role("navigation")).to_have_count(0)


async def test_nothing_here_and_not_for_you(open_window: OpenWindow) -> None:
    one = await open_window(roles=("finance",))
    one.forgive("404")
    one.forgive("403")
    page = await one.open("/console/nowhere")
    await expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here")
    page = await one.open("/console/runs")
    await expect(page.get_by_role("heading", level=1)).to_have_text("You may not see this")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/console/runs", 401),
        ("/console/parts/runs", 401),
        ("/console/nowhere", 404),
        ("/console/static/x/nothing.js", 404),
        ("/console/language/fr", 422),
    ],
)
async def test_refusals_are_pages_with_their_status(house: House, path: str, status: int) -> None:
    async with client(house) as one:
        answer = await one.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert "'unsafe" not in answer.headers["content-security-policy"]


async def test_what_never_changes_is_kept(house: House) -> None:
    async with client(house) as one:
        first = await one.get(address("console.css"))
        again = await one.get(
            address("console.css"), headers={"If-None-Match": first.headers["etag"]}
        )
        old = await one.get("/console/static/another-release/console.css")
    assert "immutable" in first.headers["cache-control"]
    assert (again.status_code, again.content) == (304, b"")
    assert old.headers["cache-control"] == "no-cache"
    assert old.content == first.content


async def test_the_start_leads_to_the_runs(page: Page, house: House) -> None:
    await page.goto(f"{house.url}/")
    await expect(page).to_have_url(f"{house.url}/console/runs")


@pytest.mark.parametrize("path", ["/console/runs", "/console/nowhere"])
async def test_a_narrow_window_needs_no_sideways_scrolling(
    open_window: OpenWindow, house: House, theme: str, locale: str, path: str
) -> None:
    await started(house.app, "computer", RunStatus.PAUSE)
    await started(house.app, "fragile", RunStatus.ERROR)
    narrow = {"width": 360, "height": 740}
    one = await open_window(color_scheme=theme, locale=locale, viewport=narrow)
    one.forgive("404")
    assert await fits(await one.live(path))


async def test_nothing_is_missed_between_the_page_and_its_connection(
    admin: Window, house: House
) -> None:
    page = await admin.context.new_page()
    held = asyncio.Event()

    async def later(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/live.js", later)
    await page.goto(f"{house.url}/console/runs", wait_until="commit")
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    run_id = await started(house.app, "greet")
    held.set()
    await expect(page.locator(f"#row-{run_id}")).to_contain_text("Done")


async def test_a_page_that_is_up_to_date_fetches_nothing(admin: Window) -> None:
    page = await admin.open()
    fetched: list[str] = []
    page.on("request", lambda one: fetched.append(one.url) if "/parts/" in one.url else None)
    await page.reload()
    await expect(page.locator("#live")).to_have_text("Live")
    await page.evaluate("new Promise((wake) => requestIdleCallback(wake))")
    assert fetched == []
