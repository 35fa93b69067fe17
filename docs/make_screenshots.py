"""Takes the console's pictures: every page of the demo, by day and by night, in both languages.

The demo's runs are played as `holdfast demo` plays them, only on a clock of their own: it begins
at a fixed moment, goes on a little whenever a page looks at it, and stands still once the
runs wait. So two takings show the same, whatever the machine.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import uvicorn
from playwright.async_api import Browser, BrowserContext, Error, async_playwright

from holdfast.app import Holdfast
from holdfast.console import install
from holdfast.demo.colleagues import office_model
from holdfast.demo.office import Office
from holdfast.demo.onboarding import Request, Stage, furnish
from holdfast.demo.show import ASSISTANT, VISITOR, Show, play
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
TICK: Final = 0.05
"""Seconds that pass at each look at the clock."""
BETWEEN: Final = 47.0
"""Seconds from the last run to the pictures."""
SOON: Final = 60.0
"""What is due within so many seconds is due at once; a deadline never comes."""
PACE: Final = {"grant_access": 0.2}
"""Of what goes on side by side, this ends last, so that stories have one order."""
ORDINARY: Final = (Request.MAIL, Request.ACCOUNT)
WIDTH: Final = 1280
LARGEST: Final = 150_000
CHINESE_WISH: Final = "请付给张三 420 元出租车费。"
LANGUAGES: Final = {"en": "en-GB", "zh-CN": "zh-CN"}
THEMES: Final = ("light", "dark")
STILL: Final = "performance.now = () => 0"
"""A page that was never open for a second counts none down."""


class StageClock:
    """Goes on when it is looked at, until it is stopped."""

    def __init__(self) -> None:
        self._now = BEGINNING
        self._tick = TICK

    def now(self) -> float:
        self._now += self._tick
        return self._now

    def stop(self, later: float) -> None:
        self._now += later
        self._tick = 0.0

    async def wait(self, until: float | None, nudge: asyncio.Event) -> None:
        if until is None or until - self._now > SOON:
            await nudge.wait()
        else:
            self._now = max(self._now, until)


@dataclass(frozen=True, slots=True)
class View:
    """A page, where it is, and how much of it the picture shows."""

    name: str
    path: str
    height: int = 800


SIGN_IN: Final = View("sign-in", "/console/runs", 560)
"""What a visitor who is not signed in sees, wherever they go."""


@dataclass(frozen=True, slots=True)
class Studio:
    """The demo, served, and a browser that looks at it."""

    show: Show
    chats: dict[str, str]
    asked: dict[str, str]
    browser: Browser
    url: str
    tokens: Any

    async def take_all(self) -> None:
        for theme, language in product(THEMES, LANGUAGES):
            async with self._browsing(theme, language) as context:
                await self._take(context, SIGN_IN, f"{theme}.{language}")
                await self._sign_in(context)
                for view in self._views(self.chats[language]):
                    await self._take(context, view, f"{theme}.{language}")

    def _views(self, chat: str) -> list[View]:
        return [
            View("runs", "/console/runs", 660),
            View("run", f"/console/runs/{self.show.onboarding}", 920),
            View("run-failed", f"/console/runs/{self.show.failed}", 920),
            View("inbox", f"/console/inbox/{self.asked[self.show.computer]}"),
            View("approval", f"/console/inbox/{self.asked[chat]}"),
            View("repair", f"/console/runs/{self.show.repair}", 1500),
            View("chats", "/console/chat"),
            View("chat", f"/console/chat/{chat}", 1000),
            View("plans", "/console/plans"),
            View("plan", "/console/plans/onboard_zhang_san", 920),
            View("start", "/console/plans/onboard_will_zhang#start"),
            View("plan-new", "/console/plans/~new"),
        ]

    @asynccontextmanager
    async def _browsing(self, theme: str, language: str) -> AsyncIterator[BrowserContext]:
        context = await self.browser.new_context(
            locale=LANGUAGES[language],
            color_scheme=theme,  # type: ignore[arg-type]
            timezone_id="UTC",
            reduced_motion="reduce",
        )
        await context.add_init_script(STILL)
        yield context
        await context.close()

    async def _sign_in(self, context: BrowserContext) -> None:
        _, secret = await self.tokens.new_link(VISITOR)
        answer = await context.request.post(
            f"{self.url}/login", data={"token": secret}, headers={"Origin": self.url}
        )
        if not answer.ok:
            raise SystemExit(f"signing in failed: {await answer.text()}")

    async def _take(self, context: BrowserContext, view: View, look: str) -> None:
        name = f"{view.name}.{look}.png"
        picture = reduced(await taken(context, self.url, view))
        if len(picture) > LARGEST:
            raise SystemExit(f"{name} has {len(picture):,} bytes; {LARGEST:,} are allowed")
        (PICTURES / name).write_bytes(picture)
        print(f"{name}  {len(picture) / 1000:.0f} kB", flush=True)  # noqa: T201


async def taken(context: BrowserContext, url: str, view: View) -> bytes:
    """The page, once it hears of what happens and its letters are there."""
    page = await context.new_page()
    await page.set_viewport_size({"width": WIDTH, "height": view.height})
    answer = await page.goto(url + view.path)
    if answer is None or answer.status not in (200, 401):
        raise SystemExit(f"{view.path} cannot be shown: {answer and answer.status}")
    ready = "#sign-in" if view is SIGN_IN else "html[data-live=live]"
    await page.locator(ready).wait_for()
    await page.evaluate("document.fonts.ready.then(() => true)")
    picture = await page.screenshot(animations="disabled", caret="hide")
    await page.close()
    return picture


async def ask_in_chinese(stage: Stage) -> str:
    session = await stage.app.sessions.open(ASSISTANT, by=VISITOR)
    await stage.app.sessions.say(session.id, CHINESE_WISH, by=VISITOR)
    await session.wait_until_settled()
    return session.id


@asynccontextmanager
async def staged(home: Path) -> AsyncIterator[tuple[Stage, Show, str]]:
    """The demo's application, its five runs, a chat in Chinese, and some that simply went well."""
    clock = StageClock()
    async with Office.start() as office:
        app = Holdfast(home, max_retry_count=1, model=office_model(), clock=clock)
        furnish(app, office.url, with_agents=True)
        async with app:
            stage = Stage(app, office, by=VISITOR)
            await office.configure_delays(PACE)
            for request in ORDINARY:
                await stage.answer_with_sample(await stage.ask_for(request), request)
            show, chat = await play(stage), await ask_in_chinese(stage)
            clock.stop(BETWEEN)
            yield stage, show, chat


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
            staged(Path(home)) as (stage, show, chat),
            served(stage.app) as (url, tokens),
            browsing() as browser,
        ):
            chats = {"en": show.chat, "zh-CN": chat}
            asked = {row.root_id: row.question_id for row in await stage.app.inbox()}
            await Studio(show, chats, asked, browser, url, tokens).take_all()


if __name__ == "__main__":
    asyncio.run(main())
