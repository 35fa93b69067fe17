"""What every page has: the way around, the connection, the language, coming and going."""

from __future__ import annotations

import asyncio
import os

import httpx
import pytest
from console_chat import a_bank
from console_plans import started
from console_scene import NARROW, WIDE, Backend, OpenWindow, Window, fits, serving, window
from playwright.async_api import Browser, Locator, Page, Route, expect

from holdfast.console.assets import address
from holdfast.model.run import RunStatus


def client(backend: Backend) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=backend.url, trust_env=False)


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


async def test_a_restarted_server_is_found_again(admin: Window, backend: Backend) -> None:
    admin.forgive("ERR_")
    page = await admin.live()
    await backend.stop()
    await expect(page.locator("html")).not_to_have_attribute("data-live", "live")
    run_id = await started(backend.app, "greet")
    await backend.start()
    await expect(page.locator("#live")).to_have_text("Live")
    await expect(page.locator(f"#row-{run_id}")).to_contain_text("Done")


async def test_eight_tabs_share_one_connection(admin: Window, backend: Backend) -> None:
    tabs = [await admin.live() for _ in range(8)]
    assert backend.services.streams.clients == 1
    run_id = await started(backend.app, "greet")
    for tab in tabs:
        await tab.bring_to_front()
        await expect(tab.locator(f"#row-{run_id}")).to_be_visible()


async def test_the_last_page_takes_its_connection_with_it(admin: Window, backend: Backend) -> None:
    page = await admin.live()
    await page.goto("about:blank")
    back = await admin.live()
    assert backend.services.streams.clients == 1
    await expect(back.locator("#live")).to_have_text("Live")


async def test_the_inbox_counts_live(page: Page, backend: Backend) -> None:
    inbox = page.get_by_role("navigation", name="Main").get_by_role("link", name="Inbox")
    await expect(inbox).to_have_text("Inbox")
    await started(backend.app, "computer", RunStatus.PAUSE)
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


async def test_signing_out_and_in_again(admin: Window, backend: Backend) -> None:
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
    await token.fill(f"{backend.url}/login?token={await backend.link()}")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")


async def test_a_link_signs_in_and_leads_to_the_runs(
    open_window: OpenWindow, backend: Backend
) -> None:
    stranger = await open_window(signed_in=False)
    page = await stranger.open(f"/login?token={await backend.link()}")
    await expect(page).to_have_url(f"{backend.url}/console/runs")


@pytest.mark.parametrize(
    ("language", "title", "press"),
    [("en-GB", "Sign in to Holdfast", "Sign in"), ("zh-CN", "登录 Holdfast", "登录")],
)
async def test_a_link_followed_from_another_page_says_what_it_does_and_signs_in_at_a_press(
    open_window: OpenWindow, backend: Backend, language: str, title: str, press: str
) -> None:
    stranger = await open_window(signed_in=False, locale=language)
    stranger.forgive("401")
    page = await stranger.open("/console/")
    link = f"{backend.url}/login?token={await backend.link()}"
    await page.evaluate("where => location.assign(where)", link)
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await expect(page.locator("main")).to_contain_text(backend.url)
    await expect(page.locator('link[rel="stylesheet"]')).to_have_count(1)
    if directory := os.environ.get("HOLDFAST_SHOTS"):
        await page.screenshot(path=f"{directory}/link_{language}.png")
    await page.get_by_role("button", name=press).click()
    await expect(page).to_have_url(f"{backend.url}/console/runs")


NAVIGATES = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Site": "none",
}


@pytest.mark.parametrize(
    ("language", "title", "way"),
    [
        ("en-GB", "This link does not work", "a demo prints one when it is started again"),
        ("zh-CN", "此链接无法登录", "重新启动演示"),
    ],
)
async def test_a_link_that_no_longer_works_says_so_and_how_to_get_another(
    open_window: OpenWindow, backend: Backend, language: str, title: str, way: str
) -> None:
    used = await backend.link()
    async with client(backend) as first:
        await first.post("/login", json={"token": used})
    stranger = await open_window(signed_in=False, locale=language)
    stranger.forgive("401")
    for secret in (used, used[:20], "link_bad"):
        page = await stranger.open(f"/login?token={secret}")
        await expect(page.get_by_role("heading", level=1)).to_have_text(title)
        await expect(page.locator("main")).to_contain_text(way)
        await expect(page.locator("code")).to_have_text("holdfast serve --link")
        await expect(page).to_have_url(f"{backend.url}/console/")
        assert secret not in await page.content()
    await page.locator("#sign-in-token").fill(await backend.link())
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{backend.url}/console/runs")


async def test_a_used_link_leads_whoever_is_signed_in_to_the_console(
    open_window: OpenWindow, backend: Backend
) -> None:
    one = await open_window(signed_in=False)
    link = f"/login?token={await backend.link()}"
    for _ in range(12):
        await expect(await one.open(link)).to_have_url(f"{backend.url}/console/runs")


async def test_a_link_still_signs_somebody_else_in(admin: Window, backend: Backend) -> None:
    page = await admin.open(f"/login?token={await backend.link('Ann', ('viewer',))}")
    await expect(page.locator(".account b").last).to_have_text("Ann")


async def test_a_refused_link_is_a_page_only_for_who_reads_pages(backend: Backend) -> None:
    link = {"token": "link_bad"}
    async with client(backend) as one:
        page = await one.get("/login", params=link, headers=NAVIGATES)
        button = await one.post("/login", data=link, headers={"Accept": NAVIGATES["Accept"]})
        for accept in ("*/*", "application/json"):
            told = await one.get("/login", params=link, headers={**NAVIGATES, "Accept": accept})
            assert told.status_code == 401
            assert told.headers["content-type"] == "application/problem+json"
        fetched = {**NAVIGATES, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
        script = await one.post("/login", json=link, headers=fetched)
        elsewhere = await one.get("/me", headers=NAVIGATES)
    for answer in (script, elsewhere):
        assert answer.headers["content-type"] == "application/problem+json"
    for answer in (page, button):
        assert (answer.status_code, "link_bad" in answer.text) == (401, False)
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "'unsafe" not in answer.headers["content-security-policy"]


async def test_without_a_link_the_sign_in_page_asks_for_one(backend: Backend) -> None:
    async with client(backend) as one:
        answer = await one.get("/login", headers=NAVIGATES)
    assert answer.status_code == 401
    assert "You are not signed in" in answer.text


async def test_who_opens_bad_links_too_often_reads_that_they_must_wait(backend: Backend) -> None:
    async with client(backend) as one:
        for _ in range(11):
            answer = await one.get("/login", params={"token": "link_bad"}, headers=NAVIGATES)
    assert answer.status_code == 429
    assert "Too many attempts" in answer.text
    assert "retry-after" in answer.headers


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
async def test_refusals_are_pages_with_their_status(
    backend: Backend, path: str, status: int
) -> None:
    async with client(backend) as one:
        answer = await one.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert "'unsafe" not in answer.headers["content-security-policy"]


async def test_what_never_changes_is_kept(backend: Backend) -> None:
    async with client(backend) as one:
        first = await one.get(address("console.css"))
        again = await one.get(
            address("console.css"), headers={"If-None-Match": first.headers["etag"]}
        )
        old = await one.get("/console/static/another-release/console.css")
    assert "immutable" in first.headers["cache-control"]
    assert (again.status_code, again.content) == (304, b"")
    assert old.headers["cache-control"] == "no-cache"
    assert old.content == first.content


async def test_the_start_leads_to_the_runs(page: Page, backend: Backend) -> None:
    await page.goto(f"{backend.url}/")
    await expect(page).to_have_url(f"{backend.url}/console/runs")


@pytest.mark.parametrize("path", ["/console/runs", "/console/nowhere"])
async def test_a_narrow_window_needs_no_sideways_scrolling(
    open_window: OpenWindow, backend: Backend, theme: str, locale: str, path: str
) -> None:
    await started(backend.app, "computer", RunStatus.PAUSE)
    await started(backend.app, "fragile", RunStatus.ERROR)
    narrow = {"width": 360, "height": 740}
    one = await open_window(color_scheme=theme, locale=locale, viewport=narrow)
    one.forgive("404")
    assert await fits(await one.live(path))


async def covered(control: Locator) -> bool:
    """Whether somebody who presses its middle would hit something else."""
    return not await control.evaluate(
        """one => {
            const { x, y, width, height } = one.getBoundingClientRect();
            return one.contains(document.elementFromPoint(x + width / 2, y + height / 2));
        }"""
    )


@pytest.mark.parametrize("viewport", [NARROW, WIDE])
async def test_a_notice_covers_nothing_that_can_be_pressed(
    browser: Browser, viewport: dict[str, int]
) -> None:
    async with serving(a_bank()) as backend:
        session = await backend.app.sessions.open("clerk", by="Will Zhang")
        await backend.app.sessions.say(session.id, "pay 5", by="Will Zhang")
        await session.wait_until_settled(30)
        async with window(browser, backend, viewport=viewport) as one:
            page = await one.live(f"/console/chat/{session.id}")
            await page.get_by_role("button", name="Approve and run").click()
            await expect(page.locator(".notice.done")).to_be_visible()
            failing = "path => import(path).then(({ notify }) => { notify('no', 'failed'); })"
            await page.evaluate(failing, address("shell.js"))
            await expect(page.locator(".notice.failed")).to_be_visible()
            send = page.get_by_role("button", name="Send")
            await expect(send).to_be_enabled()
            for control in (send, page.locator("summary.language"), page.get_by_label("Message")):
                assert not await covered(control)
            assert await fits(page)
            await page.evaluate("scrollTo(0, 0)")
            for control in await page.locator("#chat-head :is(a, button)").all():
                assert not await covered(control)
            failed = page.locator(".notice.failed")
            await failed.get_by_role("button", name="Dismiss").click()
            await expect(failed).to_have_count(0)


async def test_nothing_is_missed_between_the_page_and_its_connection(
    admin: Window, backend: Backend
) -> None:
    page = await admin.context.new_page()
    held = asyncio.Event()

    async def later(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/live.js", later)
    await page.goto(f"{backend.url}/console/runs", wait_until="commit")
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    run_id = await started(backend.app, "greet")
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


@pytest.mark.parametrize("clipboard", ["undefined", "{ writeText: () => Promise.reject() }"])
async def test_where_nothing_can_be_copied_the_text_is_selected(page: Page, clipboard: str) -> None:
    """As over plain HTTP, and where the browser refuses."""
    await page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})")
    await page.locator("[data-copy]").first.click()
    notices = page.locator("#notices")
    await expect(notices).to_contain_text("The text is selected here")
    await expect(notices).not_to_contain_text("Copied")
    text = notices.get_by_role("textbox")
    await expect(text).to_be_focused()
    chosen = await text.evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)")
    assert chosen == await page.locator("[data-copy]").first.get_attribute("data-copy")
