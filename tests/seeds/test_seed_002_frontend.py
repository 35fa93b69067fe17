"""The front-end script of seed 002 (前端集成指南), unchanged, in a real browser.

`pages/frontend.js` holds the seed's three blocks of code as they stand there, one after the
other and nothing else. `pages/frontend.html` adds what they take for granted: the session's
id, the container, and the request that starts a turn. Both come from the origin that the
server is mounted into, and the browser is signed in by a cookie.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Dialog, Locator, Page, async_playwright, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from holdfast import Holdfast
from holdfast.model.rows import request_of
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel

HERE = Path(__file__).parent


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
  const { context, title } = JSON.parse(event.data).data;
  asked.push(context.args?.amount ?? title);
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


def wished(asked: str) -> Entry:
    match asked.split():
        case ["pay"]:
            return call("pay")
        case ["pay", first, second]:
            return say("", call("pay", amount=int(first)), call("pay", amount=int(second)))
        case ["pay", amount]:
            return call("pay", amount=int(amount))
        case ["ask"]:
            return call("ask_person", question="Tea <b>or</b> coffee?")
    return f"You said: {asked}"


def clerks_mind(seen: Seen) -> Entry:
    """Pays what is asked; sent back with "only N", asks to pay N instead."""
    if not seen.results:
        return wished(seen.asked)
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
    forgiven: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("dialog", self._answer)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def _answer(self, dialog: Dialog) -> None:
        self.prompts.append(dialog.message)
        await dialog.accept(self.answers.pop(0))

    def _hear(self, message: Any) -> None:
        if any(one in message.text for one in self.forgiven):
            return
        into = self.complaints if message.type in ("error", "warning") else self.logged
        into.append(message.text)

    async def say(self, message: str) -> asyncio.Task[int]:
        """Start a turn; its status, once it is over."""
        await self.page.wait_for_function(LISTENS)
        self.turns.append(asyncio.create_task(self.page.evaluate("startTurn", message)))
        return self.turns[-1]

    async def sees(self, title: str) -> Locator:
        """The question of this title is on the page."""
        await self.page.wait_for_function("title => asked.at(-1) === title", arg=title)
        shown = self.page.locator("#interaction-container")
        await expect(shown.locator("h3")).to_have_text(title)
        return shown

    async def choose(self, label: str, message: str = TAKEN) -> None:
        """The button of this label; what the page is told then."""
        async with self.page.expect_console_message(lambda heard: heard.text == message):
            await self.page.get_by_role("button", name=label, exact=True).click()

    async def is_asked(self, request: dict[str, Any]) -> None:
        """A question from outside, in a session whose turn is over."""
        assert await (await self.say("hello")) == 200
        await self.app.sessions.request_interaction(SESSION, request)

    async def journal(self) -> str:
        return "".join(one.payload for one in await self.app.journal.read(SESSION))

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
async def visit(browser: Browser, locale: str = "en-US") -> AsyncIterator[Visit]:
    app, till = Holdfast.in_memory(), Till()
    app.tool(till.pay, approval="require")
    app.agent("clerk", name="Clerk", model=None, tools=["pay"], asks_people=True)
    app.models.default_model = ScriptedModel(clerks_mind)
    web = app.asgi()
    routes = [Mount("/seed", StaticFiles(directory=HERE / "pages")), Mount("/", web)]
    outer = Starlette(routes=routes, lifespan=web.router.lifespan_context)
    async with (
        app,
        listening(outer) as url,
        await browser.new_context(locale=locale) as context,
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


async def test_details_say_what_would_run_and_what_each_option_does(browser: Browser) -> None:
    async with visit(browser) as one:
        await one.say("pay 5")
        await one.sees_a_question(5)
        details = one.page.locator("p.details")
        for told in (
            "Tool: pay.",
            '"amount":5',
            "Runs pay with these arguments. (“Approve and run”)",
        ):
            await expect(details).to_contain_text(told)
        await one.press("terminate")
        assert await one.session_ends() == "cancelled"


async def test_a_refusal_is_told_and_changes_nothing(browser: Browser) -> None:
    async with visit(browser) as one:
        one.answers = [""]
        await one.say("pay 5")
        await one.sees_a_question(5)
        one.forgiven = ["422"]
        await one.choose("Reject", "Reject: Why not?")
        assert one.prompts == ["Why not?"]
        await one.press("approve")
        assert await one.session_ends() == "done"
        assert one.till.paid == [5]


async def test_what_a_call_lacks_is_given_by_the_prompt(browser: Browser) -> None:
    async with visit(browser) as one:
        one.answers = ["7"]
        await one.say("pay")
        await one.sees("pay needs more")
        await one.choose("Provide")
        assert "Amount" in one.prompts[0]
        await one.sees_a_question(7)
        await one.press("approve")
        assert await one.session_ends() == "done"
        assert one.till.paid == [7]


async def test_what_the_agent_asks_stands_on_the_page_as_text(browser: Browser) -> None:
    async with visit(browser) as one:
        one.answers = ["green tea"]
        await one.say("ask")
        shown = await one.sees("Clerk asks")
        await expect(shown.locator("p.details")).to_contain_text("Tea \\u003cb>or")
        await expect(shown.locator("b")).to_have_count(0)
        await one.choose("Provide")
        assert await one.session_ends() == "done"
        assert "green tea" in await one.answer_of_the_session()


async def test_of_several_questions_the_next_follows_when_one_is_answered(
    browser: Browser,
) -> None:
    async with visit(browser) as one:
        await one.say("pay 5 7")
        await one.page.wait_for_function("asked.length === 2")
        await one.choose("Approve and run")
        await one.page.wait_for_function("asked.length === 3")
        assert await one.page.evaluate("asked[2]") != await one.page.evaluate("asked[1]")
        await one.choose("Approve and run")
        assert await one.session_ends() == "done"
        assert sorted(one.till.paid) == [5, 7]


async def test_a_chinese_browser_is_asked_in_chinese(browser: Browser) -> None:
    async with visit(browser, "zh-CN") as one:
        one.answers = ["", "太贵了"]
        await one.say("pay 5")
        await one.page.wait_for_function("asked.at(-1) === 5")
        shown = one.page.locator("#interaction-container")
        await expect(shown.locator("h3")).to_have_text("执行 pay？")
        await expect(shown.locator("p.details")).to_contain_text("工具：pay。")
        await expect(shown.locator("p.details")).to_contain_text(
            "以所示参数执行 pay。（“批准并执行”）"
        )
        one.forgiven = ["422"]
        await one.choose("拒绝", "拒绝：请说明理由")
        await one.choose("拒绝")
        assert one.prompts == ["请说明理由", "请说明理由"]
        assert await one.session_ends() == "done"
        assert "太贵了" in await one.answer_of_the_session()


API_KEY = {
    "requestId": "missing-api-key-1",
    "sessionId": SESSION,
    "type": "MISSING_INFO",
    "title": "缺少 API Key",
    "message": "执行该工具需要 OpenWeather API Key",
    "form": {"api_key": {"type": "secret", "label": "API Key"}},
    "options": [
        {
            "optionId": "provide",
            "label": "提供 API Key",
            "description": "输入您的 API Key",
            "action": "PROVIDE_INFO",
            "requiresInput": True,
            "inputPrompt": "请输入 OpenWeather API Key",
        },
        {"optionId": "skip", "label": "跳过该工具", "action": "SKIP"},
    ],
}


async def test_an_api_key_is_given_by_the_prompt_and_sealed(browser: Browser) -> None:
    """示例1：缺少 API Key."""
    async with visit(browser) as one:
        one.answers = ["ow-very-secret"]
        await one.is_asked(API_KEY)
        await one.sees("缺少 API Key")
        await one.choose("提供 API Key")
        assert one.prompts == ["请输入 OpenWeather API Key"]
        assert await one.session_ends() == "done"
        assert "ow-very-secret" not in await one.journal()
        assert "secret:" in await one.answer_of_the_session()


async def test_a_deletion_is_confirmed(browser: Browser) -> None:
    """示例2：用户确认（删除文件）."""
    async with visit(browser) as one:
        await one.is_asked(
            {
                "requestId": "confirm-delete-1",
                "sessionId": SESSION,
                "type": "USER_CONFIRMATION",
                "title": "确认删除文件",
                "message": "即将删除文件: /path/to/file.txt",
                "details": "此操作不可撤销，请谨慎操作",
                "options": [
                    {
                        "optionId": "confirm",
                        "label": "确认删除",
                        "action": "APPROVE_AND_EXECUTE",
                        "dangerous": True,
                    },
                    {"optionId": "cancel", "label": "取消", "action": "REJECT_WITH_REASON"},
                ],
            }
        )
        shown = await one.sees("确认删除文件")
        await expect(shown.locator("p.details")).to_contain_text("此操作不可撤销，请谨慎操作")
        await expect(shown.locator(".btn-danger")).to_have_text("确认删除")
        await one.choose("确认删除")
        assert await one.session_ends() == "done"
        heard = await one.answer_of_the_session()
        for told in ("/path/to/file.txt", "此操作不可撤销", "Chosen: “确认删除”"):
            assert told in heard


async def test_another_plan_is_wished_for_and_one_chosen(browser: Browser) -> None:
    """示例3：用户选择（多个方案）."""
    plans = {"plan-a": "方案A：使用 Redis 缓存", "plan-b": "方案B：使用本地缓存", "plan-c": "方案C"}
    options: list[dict[str, Any]] = [
        {"optionId": name, "label": label, "action": "APPROVE_AND_EXECUTE"}
        for name, label in plans.items()
    ]
    rethink = {
        "optionId": "rethink",
        "label": "让 Agent 重新思考",
        "action": "RETRY_WITH_FEEDBACK",
        "requiresInput": True,
        "inputPrompt": "请说明您的需求",
    }
    choice = {
        "requestId": "choose-plan-1",
        "sessionId": SESSION,
        "type": "USER_CHOICE",
        "title": "选择实现方案",
        "message": "Agent 提供了3个实现方案，请选择一个",
        "options": [*options, rethink],
    }
    async with visit(browser) as one:
        one.answers = ["要能横向扩展"]
        await one.is_asked(choice)
        await one.sees("选择实现方案")
        await one.choose("让 Agent 重新思考")
        assert one.prompts == ["请说明您的需求"]
        assert await one.session_ends() == "done"
        assert "要能横向扩展" in await one.answer_of_the_session()
        await one.app.sessions.request_interaction(SESSION, choice)
        await one.page.wait_for_function("asked.length === 2")
        await one.choose("方案B：使用本地缓存")
        assert await one.session_ends() == "done"
        assert "Chosen: “方案B：使用本地缓存”" in await one.answer_of_the_session()
