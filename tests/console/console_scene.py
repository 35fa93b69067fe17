"""A real server with the console, and a real Chromium that looks at it.

Everything lives in one event loop for the whole session, because the browser does. A `Window`
fails its test when the page complains: an error in the browser's log, a script that raised,
anything the content policy stopped.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import uvicorn
from fastapi import FastAPI
from playwright.async_api import Browser, BrowserContext, Error, Locator, Page, Playwright, expect

from chromium import REMEDY, find
from holdfast import Holdfast
from holdfast.console import install
from holdfast.server import create
from holdfast.server.services import Services
from holdfast.server.settings import ServerSettings

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 360, "height": 740}

NOT_WANTED = (
    # Playwright's own list, for Chromium obeys the last one that it is given
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    # a renderer in reserve, and one for the address bar's list, per context: half of its cost
    "SpareRendererForSitePerProcess",
    "AndroidWarmUpSpareRendererWithTimeout",
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "PreloadTopChromeWebUI",
)
CHROMIUM_OPTIONS = (
    f"--disable-features={','.join(NOT_WANTED)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

expect.set_options(timeout=20_000)


async def launch(playwright: Playwright) -> Browser:
    """The machine's own Chromium, else Playwright's."""
    try:
        return await playwright.chromium.launch(executable_path=find(), args=CHROMIUM_OPTIONS)
    except Error as error:
        raise RuntimeError(f"{REMEDY}\n{error}") from None


async def reach(page: Page, target: Locator) -> None:
    """Bring the focus there by the tabulator alone."""
    await expect(target).to_be_visible()
    for _ in range(80):
        if await target.evaluate("one => one === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not lead there")


@dataclass(slots=True)
class Backend:
    """An application behind a server that can be stopped and started again at its address.

    With a `prefix` it is another application's server, which has ours mounted there.
    """

    app: Holdfast
    settings: ServerSettings
    port: int
    prefix: str = ""
    _server: uvicorn.Server | None = None
    _task: asyncio.Task[None] | None = None
    _services: Services | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    @property
    def services(self) -> Services:
        assert self._services is not None
        return self._services

    async def start(self) -> None:
        web = create(self.app, self.settings)
        install(web)
        self._services = web.state.services
        listener = _listener(self.port)
        self.port = listener.getsockname()[1]
        host = _host(web, self.prefix) if self.prefix else web
        config = uvicorn.Config(host, log_config=None, ws="none", timeout_graceful_shutdown=2)
        self._server = server = _Server(config)
        self._task = asyncio.create_task(server.serve([listener]))
        await server.ready.wait()

    async def stop(self) -> None:
        assert self._server is not None
        assert self._task is not None
        self.services.streams.close()
        self._server.should_exit = True
        await self._task

    async def link(
        self,
        name: str = "Will Zhang",
        roles: Sequence[str] = ("admin",),
        grants: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """The secret of a one-time link."""
        _, secret = await self.services.tokens.new_link(name, roles, grants)
        return secret


class _Server(uvicorn.Server):
    """Says when it takes requests, and leaves the signals to the tests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    def capture_signals(self) -> AbstractContextManager[None]:
        return nullcontext()


def _host(web: FastAPI, prefix: str) -> FastAPI:
    host = FastAPI(lifespan=web.router.lifespan_context)
    host.mount(prefix, web)
    return host


def _listener(port: int) -> socket.socket:
    listener = socket.socket(proto=socket.IPPROTO_TCP)  # or asyncio leaves Nagle on
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


@asynccontextmanager
async def serving(
    app: Holdfast, settings: ServerSettings | None = None, prefix: str = ""
) -> AsyncIterator[Backend]:
    backend = Backend(app, settings or ServerSettings(), 0, prefix)
    async with app:
        await backend.start()
        try:
            yield backend
        finally:
            await backend.stop()


@dataclass(slots=True)
class Window:
    """One signed-in browser: pages share their cookie, and their one connection for events."""

    backend: Backend
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    async def open(self, path: str = "/console/runs") -> Page:
        page = await self.context.new_page()
        await page.goto(self.backend.url + path)
        return page

    async def live(self, path: str = "/console/runs") -> Page:
        """The page, once it hears of what happens."""
        page = await self.open(path)
        await expect(page.locator("html")).to_have_attribute("data-live", "live")
        return page

    def forgive(self, text: str) -> None:
        """What a test brings about itself, such as a refused request, is no complaint."""
        self.forgiven.append(text)

    def check(self) -> None:
        left = [one for one in self.complaints if not any(f in one for f in self.forgiven)]
        assert not left, "the page complained:\n" + "\n".join(left)


OpenWindow: TypeAlias = Callable[..., Awaitable[Window]]


@asynccontextmanager
async def window(
    browser: Browser,
    backend: Backend,
    *,
    name: str = "Will Zhang",
    roles: Sequence[str] = ("admin",),
    grants: Mapping[str, Sequence[str]] | None = None,
    signed_in: bool = True,
    **options: Any,
) -> AsyncIterator[Window]:
    """`options` are the browser context's: color_scheme, locale, viewport."""
    async with AsyncExitStack() as stack:
        chosen = {"viewport": WIDE, "locale": "en-GB", "reduced_motion": "reduce", **options}
        context = await browser.new_context(**chosen)
        stack.push_async_callback(context.close)
        one = Window(backend, context)
        context.on("page", lambda page: _listen(page, one.complaints))
        if signed_in:
            await _sign_in(context, backend, await backend.link(name, roles, grants))
        yield one
        one.check()


def _listen(page: Page, complaints: list[str]) -> None:
    page.on("pageerror", lambda error: complaints.append(f"raised: {error}"))

    def heard(message: Any) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    page.on("console", heard)


async def _sign_in(context: BrowserContext, backend: Backend, secret: str) -> None:
    """By the login route, as a person's browser does."""
    async with httpx.AsyncClient(base_url=backend.url, trust_env=False) as client:
        answer = await client.post("/login", json={"token": secret})
        answer.raise_for_status()
        cookies = [
            {"name": name, "value": value, "url": backend.url}
            for name, value in client.cookies.items()
        ]
    await context.add_cookies(cookies)


async def fits(page: Page) -> bool:
    """Whether nothing reaches beyond the window's right edge."""
    wide = await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return bool(wide)
