"""The front-end script of seed 002 (前端集成指南), unchanged, in a real browser.

`pages/frontend.js` holds the seed's three blocks of code as they stand there, one after the
other and nothing else. `pages/frontend.html` adds what they take for granted: the session's
id, the container, and the request that starts a turn. Both come from the origin that the
server is mounted into, and the browser is signed in by a cookie.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Dialog, Page, async_playwright, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from holdfast import Holdfast
from holdfast.runtime.views import request_of
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "server"), str(HERE.parent / "console")]

from chat_scene import Till  # noqa: E402
from console_scene import launch  # noqa: E402
from server_scene import listening  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE = 30.0
SESSION = "session-123"
TAKEN = "用户响应已处理，正在恢复执行"
LISTEN_TOO = """
globalThis.asked = [];
eventSource.addEventListener('INTERACTION', (event) => {
  asked.push(JSON.parse(event.data).data.context.args.amount);
});
"""
"""After the script's own listener, so whatever is in `asked` is on the page."""

LISTENS = "document.readyState === 'complete' && eventSource.readyState === EventSource.OPEN"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        running = await launch(playwright)
        yield running
        await running.close()


def clerks_mind(seen: Seen) -> Entry:
    """Pays what is asked; sent back with "only N", asks to pay N instead."""
    if not seen.results:
        return call("pay", amount=int(seen.asked.removeprefix("pay ")))
    told = str(seen.results[-1].content)
    if "only " in told:
        return call("pay", amount=int(told.partition("only ")[2][0]))
    return f"It came to this: {told}"


@dataclass
class Visit:
    """The seed's page in front of somebody, and what stands behind it."""

    app: Holdfast
    page: Page
    till: Till
    answers: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    turns: list[asyncio.Task[int]] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("dialog", self._answer)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def _answer(self, dialog: Dialog) -> None:
        self.prompts.append(dialog.message)
        await dialog.accept(self.answers.pop(0))

    def _hear(self, message: Any) -> None:
        into = self.complaints if message.type in ("error", "warning") else self.logged
        into.append(message.text)

    async def say(self, message: str) -> asyncio.Task[int]:
        """Start a turn; its status, once it is over."""
        await self.page.wait_for_function(LISTENS)
        self.turns.append(asyncio.create_task(self.page.evaluate("startTurn", message)))
        return self.turns[-1]

    async def sees_a_question(self, amount: int) -> list[str]:
        """The question of this payment is on the page; the buttons below it."""
        await self.page.wait_for_function("amount => asked.at(-1) === amount", arg=amount)
        shown = self.page.locator("#interaction-container")
        await expect(shown.locator("h3")).to_have_text("Run pay?")
        return await shown.locator("button").all_text_contents()

    async def press(self, option_id: str) -> None:
        """The button of an option, which the page knows by its label only."""
        [question] = await self.app.inbox()
        [option] = [one for one in request_of(question).options if one.option_id == option_id]
        async with self.page.expect_console_message(lambda heard: heard.text == TAKEN):
            await self.page.get_by_role("button", name=option.label, exact=True).click()

    async def session_ends(self) -> str:
        session = await self.app.sessions.session(SESSION)
        return await session.wait_until_settled(PATIENCE)

    async def answer_of_the_session(self) -> str:
        return (await self.app.sessions.session(SESSION)).answer


@asynccontextmanager
async def visit(browser: Browser) -> AsyncIterator[Visit]:
    app, till = Holdfast.in_memory(), Till()
    app.tool(till.pay, approval="require")
    app.agent("clerk", name="Clerk", model=None, tools=["pay"])
    app.models.default_model = ScriptedModel(clerks_mind)
    web = app.asgi()
    routes = [Mount("/seed", StaticFiles(directory=HERE / "pages")), Mount("/", web)]
    outer = Starlette(routes=routes, lifespan=web.router.lifespan_context)
    async with (
        app,
        listening(outer) as url,
        await browser.new_context() as context,
    ):
        _, link = await web.state.services.tokens.new_link("Will Zhang", ["approver", "operator"])
        signed_in = await context.request.post(f"{url}/login", data={"token": link})
        assert signed_in.ok, await signed_in.text()
        one = Visit(app, await context.new_page(), till)
        one.watch()
        await one.page.goto(f"{url}/seed/frontend.html?session={SESSION}")
        await one.page.evaluate(LISTEN_TOO)
        try:
            yield one
        finally:
            web.state.services.streams.close()
            await asyncio.gather(*one.turns, return_exceptions=True)
        assert one.complaints == []


async def test_approve_runs_the_tool_once(browser: Browser) -> None:
    async with visit(browser) as one:
        turn = await one.say("pay 5")
        assert len(await one.sees_a_question(5)) == 4
        assert one.till.paid == []
        await one.press("approve")
        assert await one.session_ends() == "done"
        assert await turn == 200
        assert one.till.paid == [5]
        assert one.prompts == []


async def test_retry_lets_the_agent_think_again_and_ask_again(browser: Browser) -> None:
    async with visit(browser) as one:
        one.answers = ["only 3 of it"]
        turn = await one.say("pay 5")
        await one.sees_a_question(5)
        await one.press("retry")
        await one.sees_a_question(3)
        assert one.till.paid == []
        await one.press("approve")
        assert await one.session_ends() == "done"
        assert await turn == 200
        assert one.till.paid == [3]
        assert len(one.prompts) == 1


async def test_reject_never_runs_the_tool_and_the_agent_hears_why(browser: Browser) -> None:
    async with visit(browser) as one:
        one.answers = ["not this month"]
        turn = await one.say("pay 5")
        await one.sees_a_question(5)
        await one.press("reject")
        assert await one.session_ends() == "done"
        assert await turn == 200
        assert one.till.paid == []
        assert "not this month" in await one.answer_of_the_session()


async def test_terminate_ends_the_session_and_nothing_runs(browser: Browser) -> None:
    async with visit(browser) as one:
        turn = await one.say("pay 5")
        await one.sees_a_question(5)
        await one.press("terminate")
        assert await one.session_ends() == "cancelled"
        assert await turn == 200
        assert one.till.paid == []
        assert one.prompts == []


async def test_the_page_hears_of_the_next_turn_without_being_loaded_again(
    browser: Browser,
) -> None:
    async with visit(browser) as one:
        for amount in (5, 7):
            turn = await one.say(f"pay {amount}")
            await one.sees_a_question(amount)
            await one.press("approve")
            assert await one.session_ends() == "done"
            assert await turn == 200
        assert one.till.paid == [5, 7]
        assert one.logged == [TAKEN, TAKEN]
