"""One browser for all tests of the console; a server and a window for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from card_scene import CardScene, a_scene
from console_plans import an_office
from console_scene import Backend, OpenWindow, Window, launch, serving, window
from playwright.async_api import Browser, Page, async_playwright

from holdfast import Holdfast

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser belongs to one loop, and so does whatever looks through it."""
    for item in items:
        if HERE in item.path.parents and iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        running = await launch(playwright)
        yield running
        await running.close()


@pytest.fixture
def scene() -> CardScene:
    """Plans and an agent with every kind of card; a module that needs it overrides `app`."""
    return a_scene()


@pytest.fixture
def app() -> Holdfast:
    """A few plans and tools, all of them in memory."""
    return an_office()


@pytest_asyncio.fixture(loop_scope="session")
async def backend(app: Holdfast) -> AsyncIterator[Backend]:
    async with serving(app) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def open_window(browser: Browser, backend: Backend) -> AsyncIterator[OpenWindow]:
    """Opens further browsers, each with its own cookies; `roles`, `locale`, `color_scheme`…"""
    async with AsyncExitStack() as stack:

        async def opened(**options: Any) -> Window:
            return await stack.enter_async_context(window(browser, backend, **options))

        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def admin(open_window: OpenWindow) -> Window:
    """Signed in as an administrator, in English."""
    return await open_window()


@pytest_asyncio.fixture(loop_scope="session")
async def page(admin: Window) -> Page:
    """The runs page of an administrator, live."""
    return await admin.live()


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["en-GB", "zh-CN"])
def locale(request: pytest.FixtureRequest) -> str:
    return str(request.param)
