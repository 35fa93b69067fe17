"""The server dies under open pages, and another one takes its place over the same home."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from card_scene import TRAVEL
from console_scene import Window, window
from playwright.async_api import Browser, Page, expect

import warm

HERE = Path(__file__).parent
LOST = "ERR_"
RETURN = 60_000
"""A process begins slowly, and whoever waits for it asks less and less often."""


class ServerProcess:
    """`console_child.py` as a process, at one address whichever process serves it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        (home / "travel.yaml").write_text(TRAVEL, "utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._secret = ""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, door: str) -> None:
        self._process = await warm.create_subprocess_exec(
            sys.executable,
            str(HERE / "console_child.py"),
            str(self._home),
            str(self._port),
            door,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._secret = (await self._process.stdout.readline()).decode().strip()
        assert self._secret

    async def stop(self, how: signal.Signals) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        await self._process.communicate()

    async def link(self, *_: object) -> str:
        return self._secret


@pytest_asyncio.fixture(loop_scope="session")
async def household(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    household = ServerProcess(tmp_path)
    await household.start("held")
    yield household
    await household.stop(signal.SIGKILL)


@pytest_asyncio.fixture(loop_scope="session")
async def admin(browser: Browser, household: ServerProcess) -> AsyncIterator[Window]:
    async with window(browser, household) as one:  # type: ignore[arg-type]
        one.forgive(LOST)
        yield one


async def begun(admin: Window, plan_id: str) -> str:
    url = admin.backend.url
    answer = await admin.context.request.post(
        f"{url}/instances", data={"plan_id": plan_id, "prompt": plan_id}, headers={"Origin": url}
    )
    assert answer.ok, await answer.text()
    return str((await answer.json())["id"])


async def cut_off(page: Page) -> None:
    await expect(page.locator("html")).not_to_have_attribute("data-live", "live")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_open_pages_find_the_next_server_and_tell_what_it_did(
    admin: Window, household: ServerProcess, how: signal.Signals
) -> None:
    run_id = await begun(admin, "hold")
    run = await admin.live(f"/console/runs/{run_id}")
    await expect(run.locator("#run-status")).to_contain_text("Running")
    runs = await admin.live()
    await expect(runs.locator(f"#row-{run_id}")).to_contain_text("Running")
    await household.stop(how)
    for page in (run, runs):
        await cut_off(page)

    await household.start("open")
    await run.bring_to_front()
    await expect(run.locator("#live")).to_have_text("Live", timeout=RETURN)
    await expect(run.locator("#run-status")).to_contain_text("Done")
    await expect(run.locator("#timeline")).to_contain_text("the run is done")
    await runs.bring_to_front()
    await expect(runs.locator(f"#row-{run_id}")).to_contain_text("Done")


async def test_a_form_half_filled_in_is_still_there_and_can_be_sent(
    admin: Window, household: ServerProcess
) -> None:
    run_id = await begun(admin, "travel")
    page = await admin.live(f"/console/inbox?run={run_id}")
    await page.locator("#inbox-queue a").click()
    card = page.locator(".question")
    await card.get_by_label("Full name").fill("张三")
    await card.get_by_label("Deluxe").check()
    await household.stop(signal.SIGKILL)
    await cut_off(page)
    await card.get_by_label("Departure").fill("2026-12-01")
    await card.get_by_label("Notes").fill("written while nobody listened")

    await household.start("open")
    await expect(page.locator("#live")).to_have_text("Live", timeout=RETURN)
    await expect(card.locator(".kept")).to_have_text("Draft kept")
    await expect(card.get_by_label("Full name")).to_have_value("张三")
    await expect(card.get_by_label("Deluxe")).to_be_checked()
    await expect(card.get_by_label("Departure")).to_have_value("2026-12-01")
    await expect(card.get_by_label("Notes")).to_have_value("written while nobody listened")
    await card.get_by_role("group", name="Needs a visa").get_by_label("No").check()
    await card.get_by_role("button", name="Submit").click()
    await expect(card).to_contain_text("Will Zhang answered: Submit")
    await expect(card.locator(".ending")).to_contain_text("written while nobody listened")
    page = await admin.live(f"/console/runs/{run_id}")
    await expect(page.locator("#run-status")).to_contain_text("Done")
