"""Takes the console's pictures: every page of the demo, in English by day and Chinese by night.

The demo's runs are played as `holdfast demo` plays them, only on a clock that begins at a fixed
moment and in the time zone UTC, so that two takings differ in little more than durations.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from playwright.async_api import Browser, BrowserContext, Error, Page, async_playwright

from holdfast.app import Holdfast
from holdfast.console import install
from holdfast.demo.colleagues import office_model
from holdfast.demo.office import Office
from holdfast.demo.onboarding import Request, Stage, furnish
from holdfast.demo.show import ASSISTANT, Show, play
from holdfast.runtime.clock import SystemClock
from holdfast.server import create
from holdfast.server.serving import listening, url_of
from holdfast.server.settings import ServerSettings

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from palette import reduced  # noqa: E402

from chromium import REMEDY, find  # noqa: E402

PICTURES: Final = HERE / "images"
BEGINNING: Final = 1_793_610_000.0
"""A Monday in November 2026, nine o'clock."""
ORDINARY: Final = (Request.MAIL, Request.ACCOUNT)
LARGEST: Final = 150_000
CHINESE_WISH: Final = "请付给张三 420 元出租车费。"


class SetClock(SystemClock):
    """Goes as fast as any clock, from the beginning that it was set to."""

    def __init__(self) -> None:
        self._ahead = BEGINNING - time.time()

    def now(self) -> float:
        return time.time() + self._ahead


@dataclass(frozen=True, slots=True)
class Look:
    """How the console is looked at; `mark` ends a picture's name."""

    mark: str
    locale: str
    theme: str


DAY: Final = Look("", "en-GB", "light")
NIGHT: Final = Look(".zh-CN", "zh-CN", "dark")


@dataclass(frozen=True, slots=True)
class Studio:
    """The demo, served, and a browser that looks at it."""

    stage: Stage
    show: Show
    browser: Browser
    url: str
    tokens: Any

    async def take_all(self) -> None:
        for look in (DAY, NIGHT):
            chat = self.show.chat if look is DAY else await self._ask_in_chinese()
            pages = await self._pages(chat)
            if look is DAY:
                pages["run-failed"] = f"/console/runs/{self.show.failed}"
            async with self._signed_in(look) as context:
                for name, path in pages.items():
                    await take(context, self.url + path, f"{name}{look.mark}")

    async def _pages(self, chat: str) -> dict[str, str]:
        asked = {row.root_id: row.question_id for row in await self.stage.app.inbox()}
        return {
            "runs": "/console/runs",
            "run": f"/console/runs/{self.show.onboarding}",
            "inbox": f"/console/inbox/{asked[self.show.computer]}",
            "chat": f"/console/chat/{chat}",
            "plans": "/console/plans",
            "plan": "/console/plans/onboard_zhang_san",
        }

    async def _ask_in_chinese(self) -> str:
        session = await self.stage.app.sessions.open(ASSISTANT, by="张三")
        await self.stage.app.sessions.say(session.id, CHINESE_WISH, by="张三")
        await session.wait_until_settled()
        return session.id

    @asynccontextmanager
    async def _signed_in(self, look: Look) -> AsyncIterator[BrowserContext]:
        context = await self.browser.new_context(
            viewport={"width": 1280, "height": 800},
            locale=look.locale,
            color_scheme=look.theme,  # type: ignore[arg-type]
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        _, secret = await self.tokens.new_link("Will Zhang", ("admin",))
        await context.request.post(
            f"{self.url}/login", data={"token": secret}, headers={"Origin": self.url}
        )
        yield context
        await context.close()


async def take(context: BrowserContext, address: str, name: str) -> None:
    page = await context.new_page()
    await page.goto(address)
    await _settled(page)
    picture = reduced(await page.screenshot(animations="disabled", caret="hide"))
    await page.close()
    if len(picture) > LARGEST:
        raise SystemExit(f"{name}.png has {len(picture):,} bytes; {LARGEST:,} are allowed")
    (PICTURES / f"{name}.png").write_bytes(picture)
    print(f"{name}.png  {len(picture) / 1000:.0f} kB")  # noqa: T201


async def _settled(page: Page) -> None:
    """It hears of what happens, and its letters are there."""
    await page.locator("html[data-live=live]").wait_for()
    await page.evaluate("document.fonts.ready.then(() => true)")


@asynccontextmanager
async def staged(home: Path) -> AsyncIterator[tuple[Stage, Show]]:
    """The demo's application on the set clock, its four runs, and some that simply went well."""
    async with Office.start() as office:
        app = Holdfast(home, max_retry_count=1, model=office_model(), clock=SetClock())
        furnish(app, office.url, with_agents=True)
        async with app:
            stage = Stage(app, office)
            for request in ORDINARY:
                await stage.answer_with_sample(await stage.ask_for(request), request)
            yield stage, await play(stage)


@asynccontextmanager
async def served(app: Holdfast) -> AsyncIterator[tuple[str, Any]]:
    """Where the application is, and its tokens."""
    web = create(app, ServerSettings(default_agent=ASSISTANT))
    install(web)
    with listening("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(web, log_config=None, ws="none"))
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
        try:
            yield url_of("127.0.0.1", listener.getsockname()[1]), web.state.services.tokens
        finally:
            web.state.services.streams.close()
            server.should_exit = True
            await serving


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=find(), args=["--no-sandbox", "--disable-gpu"]
            )
        except Error as error:
            raise SystemExit(f"{REMEDY}\n{error}") from None
        yield browser
        await browser.close()


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as home:
        async with (
            staged(Path(home)) as (stage, show),
            served(stage.app) as (url, tokens),
            browsing() as browser,
        ):
            await Studio(stage, show, browser, url, tokens).take_all()


if __name__ == "__main__":
    asyncio.run(main())
