"""Every page of the console with something on it, one after the other, from one server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from card_scene import CLEAN_UP, TRAVEL
from console_chat import Bank, a_bank
from console_plans import started
from console_scene import Window
from playwright.async_api import Page, expect
from run_scene import conversation, trip

from holdfast.journal.port import QuestionQuery
from holdfast.model.run import RunStatus

PAUSE = RunStatus.PAUSE
REFUSED = ("401", "403", "404", "422")
HASTY = CLEAN_UP.replace("clean_up", "hasty").replace("timeout_seconds: 600", "timeout_seconds: 1")

Prepare = Callable[[Page], Awaitable[None]]


@dataclass
class Gallery:
    """A bank that also travels and cleans up: every kind of card there is."""

    bank: Bank

    async def asked(self, wish: str = "pay 9") -> str:
        session = await self.bank.sessions.open("clerk", by="Will Zhang")
        await self.bank.sessions.say(session.id, wish, by="Will Zhang")
        await session.wait_until_settled(30)
        return session.id

    async def question(self, run_id: str) -> str:
        [row] = [one for one in await self.bank.inbox() if one.root_id == run_id]
        return row.question_id

    async def answered(self) -> str:
        question = await self.question(await self.asked())
        await self.bank.answer(question, option_id="reject", feedback="not today", by="Will Zhang")
        return question

    async def expired(self) -> str:
        """A question that nobody answered within its second."""
        run_id = await started(self.bank, "hasty", RunStatus.DONE)
        query = QuestionQuery(root_id=run_id)
        [row] = await self.bank.journal.questions(query)
        return row.question_id


def a_gallery() -> Gallery:
    bank = a_bank()
    for text in (TRAVEL, CLEAN_UP, HASTY):
        bank.load_plan_text(text)
    return Gallery(bank)


async def pages(gallery: Gallery, window: Window) -> AsyncIterator[Page]:
    """Each page in turn, live and prepared; everything is in one tab."""
    for status in REFUSED:
        window.forgive(status)
    page = await window.live()
    url = window.backend.url

    async def at(path: str, prepare: Prepare = _nothing) -> Page:
        await page.goto(url + path)
        await expect(page.locator("html")).to_have_attribute("data-live", "live")
        await prepare(page)
        return page

    yield page
    bank, stuck, talk = gallery.bank, await trip(gallery.bank), await gallery.asked()
    question, waiting = await gallery.question(talk), await started(bank, "computer", PAUSE)
    form = await gallery.question(await started(bank, "travel", PAUSE))
    answered, expired = await gallery.answered(), await gallery.expired()
    risky = await gallery.question(await started(bank, "clean_up", PAUSE))
    yield await at("/console/runs", _select_one)
    yield await at("/console/runs?status=cancelled")
    yield await at(f"/console/runs/{waiting}")
    yield await at(f"/console/runs/{stuck}", _open_box)
    yield await at(f"/console/runs/{talk}")
    yield await at("/console/inbox")
    yield await at("/console/inbox?tab=answered")
    yield await at(f"/console/inbox/{answered}?tab=answered")
    yield await at(f"/console/inbox/{expired}?tab=expired")
    yield await at(f"/console/inbox/{risky}")
    yield await at(f"/console/inbox/{question}", _open_arguments)
    yield await at(f"/console/inbox/{form}", _send_with_mistakes)
    yield await at("/console/chat")
    yield await at(f"/console/chat/{talk}")
    yield await at("/console/plans")
    yield await at("/console/plans/computer")
    yield await at("/console/plans/computer", _check_with_mistakes)
    yield await at("/console/plans/~new")
    yield await at(f"/console/runs/{await conversation(window.backend, window)}")
    bank.door.opened.set()
    await page.goto(f"{url}/console/nowhere")
    yield page
    await window.context.clear_cookies()
    await page.goto(f"{url}/console/runs")
    yield page


async def _nothing(page: Page) -> None: ...


async def _select_one(page: Page) -> None:
    await page.locator("#runs tbody input").first.check()
    await expect(page.locator("#bulk")).to_be_visible()


async def _open_box(page: Page) -> None:
    await page.locator('#stage .node[data-id="L002"]').first.click()
    await expect(page.locator(".node-details")).to_be_visible()


async def _open_arguments(page: Page) -> None:
    for folded in await page.locator(".question details > summary").all():
        await folded.click()


async def _send_with_mistakes(page: Page) -> None:
    await page.locator(".question button[type=submit]").click()
    await expect(page.locator("[aria-invalid=true]").first).to_be_visible()


async def _check_with_mistakes(page: Page) -> None:
    source = page.locator("#source")
    await source.fill((await source.input_value()).replace("apply_computer", "nobody_has_it"))
    await page.locator("#check").click()
    await expect(page.locator(".gutter .wrong").first).to_be_attached()
