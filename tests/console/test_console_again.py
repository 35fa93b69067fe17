"""Pressed again: about the same state it is the same press, about a newer one it is a new one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from console_chat import a_bank
from console_plans import Office, started
from console_scene import Backend, Window, serving, window
from playwright.async_api import Browser, Locator, Page, Route, expect

from holdfast.model.run import RunStatus

LOST = "ERR_"


@asynccontextmanager
async def losing(page: Page, path: str, *, done: bool = True) -> AsyncIterator[None]:
    """No answer comes back from there; whether the server does what it is asked."""

    async def lost(route: Route) -> None:
        if done:
            await route.fetch()
        await route.abort()

    await page.route(path, lost)
    yield
    await page.unroute(path)


def office_of(backend: Backend) -> Office:
    assert isinstance(backend.app, Office)
    return backend.app


async def tries_of(office: Office, run_id: str) -> int:
    """How often somebody made it go on."""
    records = await office.journal.read(run_id)
    return sum(one.type == "RunResumed" for one in records)


async def resume(page: Page) -> Locator:
    await page.locator("#do-resume").click()
    await page.locator("#action-do").click()
    return page.locator("#action .errors")


async def failed_run(admin: Window, backend: Backend) -> tuple[Page, str]:
    admin.forgive(LOST)
    run_id = await started(backend.app, "fragile", RunStatus.ERROR)
    return await admin.live(f"/console/runs/{run_id}"), run_id


async def test_a_second_resume_about_a_newer_failure_is_carried_out(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    page, run_id = await failed_run(admin, backend)
    async with losing(page, "**/resume"):
        await expect(await resume(page)).to_contain_text("No answer came")
    assert await tries_of(office, run_id) == 1
    office.broken = False
    await page.keyboard.press("Escape")
    await resume(page)
    await expect(page.locator("#run-status > .pill").first).to_have_text("Done")


async def test_a_second_press_in_the_same_dialog_does_nothing_twice(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    page, run_id = await failed_run(admin, backend)
    async with losing(page, "**/resume"):
        await expect(await resume(page)).to_contain_text("No answer came")
    await page.locator("#action-do").click()
    await expect(page.locator("#notices")).to_contain_text("The run goes on")
    assert await tries_of(office, run_id) == 1


async def test_a_resume_that_never_arrived_is_the_same_one_after_a_reload(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    page, run_id = await failed_run(admin, backend)
    names: list[str | None] = []
    page.on(
        "request",
        lambda one: (
            names.append(one.headers.get("idempotency-key"))
            if one.url.endswith("/resume")
            else None
        ),
    )
    async with losing(page, "**/resume", done=False):
        await expect(await resume(page)).to_contain_text("No answer came")
    await page.reload()
    office.broken = False
    await resume(page)
    await expect(page.locator("#run-status > .pill").first).to_have_text("Done")
    assert len(set(names)) == 1
    assert await tries_of(office, run_id) == 1


async def test_many_are_resumed_again_after_they_failed_again(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    admin.forgive(LOST)
    run_id = await started(office, "fragile", RunStatus.ERROR)
    page = await admin.live("/console/runs")
    row = page.locator(f"#row-{run_id}")

    async def resume_selected() -> None:
        await page.locator(f"#pick-{run_id}").check()
        await page.locator("#resume").click()
        await page.locator("#resume-now").click()

    moved = await page.locator(f"#pick-{run_id}").get_attribute("data-moved")
    async with losing(page, "**/resume"):
        await resume_selected()
        await expect(page.locator("#notices")).to_contain_text("No answer came")
    await expect(page.locator(f"#pick-{run_id}")).not_to_have_attribute("data-moved", moved or "")
    await expect(row).to_contain_text("Failed")
    office.broken = False
    await resume_selected()
    await expect(row).to_contain_text("Done")


async def test_a_chat_is_resumed_again_after_it_failed_again(browser: Browser) -> None:
    bank = a_bank()
    async with serving(bank) as backend, window(browser, backend) as one:
        one.forgive(LOST)
        session = await bank.sessions.open("clerk", by="Will Zhang")
        bank.clerk.broken = True
        await bank.sessions.say(session.id, "hello", by="Will Zhang")
        await (await bank.sessions.session(session.id)).wait_until_settled(30)
        page = await one.live(f"/console/chat/{session.id}")
        failures = page.locator("#transcript .message.failed")
        await expect(failures).to_have_count(1)
        async with losing(page, "**/resume"):
            await page.locator("#resume").click()
            await expect(page.locator("#notices")).to_contain_text("No answer came")
        await expect(failures).to_have_count(2)
        bank.clerk.broken = False
        await page.locator("#resume").click()
        await expect(page.locator("#transcript")).to_contain_text("You said: hello")
