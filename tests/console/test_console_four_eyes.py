"""Four eyes in a browser: who wants a call is told so, and it shows where nobody may approve it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from axe_scene import check
from card_scene import CardScene, at_card
from console_scene import Backend, OpenWindow, serving
from playwright.async_api import expect

from holdfast.journal.port import QuestionRow
from holdfast.model.run import RunStatus
from holdfast.server.settings import ServerSettings

STARTED = "you started this run, and so want this call: another person must approve it"
ANSWERED = "you answered a question of this run with more than a yes or no"


@pytest_asyncio.fixture(loop_scope="session")
async def backend(scene: CardScene) -> AsyncIterator[Backend]:
    async with serving(scene.app, ServerSettings(four_eyes=True)) as one:
        yield one


async def asked(scene: CardScene, by: str) -> str:
    """A session that this person has opened and spoken in, once it waits for consent."""
    session = await scene.app.sessions.open("clerk", by=by)
    await scene.app.sessions.say(session.id, "note rent", by=by)
    await scene.came_to(session.id, RunStatus.PAUSE)
    return session.id


def entry(row: QuestionRow) -> str:
    return f"#open-{row.question_id}"


async def test_who_wants_it_is_told_so_and_another_approves(
    scene: CardScene, open_window: OpenWindow
) -> None:
    will = await open_window(name="Will Zhang", roles=["approver", "operator"])
    ann = await open_window(name="Ann", roles=["approver"])
    run = await asked(scene, "Will Zhang")
    row = await scene.question(run)

    page, card = await at_card(will, row)
    await expect(card).to_contain_text(f"You cannot answer this: {STARTED}.")
    await expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    await expect(card.get_by_role("alert")).to_have_count(0)
    await expect(page.locator(entry(row))).to_contain_text("Not for you")

    _, card = await at_card(ann, row)
    await card.get_by_role("button", name="Approve").click()
    await scene.came_to(run, RunStatus.DONE)
    assert [args["amount"] for _, args in scene.calls] == [5]


async def test_an_edit_is_a_wish_and_where_nobody_is_left_the_card_and_the_inbox_say_so(
    scene: CardScene, open_window: OpenWindow
) -> None:
    admin = await open_window(name="Root", roles=["admin"])
    ann = await open_window(name="Ann", roles=["approver"])
    run = await asked(scene, "Root")
    first = await scene.question(run)

    _, card = await at_card(ann, first)
    await card.get_by_text("Edit the arguments").click()
    await expect(card).to_contain_text("with changes the call is asked again")
    await card.get_by_label("amount").fill("900")
    await card.get_by_role("button", name="Approve").click()
    await expect(card).to_have_attribute("data-status", "answered")
    second = await scene.question(run)
    assert second.question_id != first.question_id
    assert scene.calls == []

    page, card = await at_card(ann, second)
    await expect(card).to_contain_text("Ann wants it changed, and somebody else must approve that")
    await expect(card).to_contain_text(f"You cannot answer this: {ANSWERED}")
    page, card = await at_card(admin, second)
    alert = card.get_by_role("alert")
    await expect(alert).to_contain_text("No person is left who may approve this")
    await expect(page.locator(entry(second))).to_contain_text("No approver is left")
    await check(page)

    bob = await open_window(name="Bob", roles=["approver"])
    await page.reload()
    await expect(page.locator(entry(second))).to_contain_text("Not for you")
    _, card = await at_card(bob, second)
    await card.get_by_role("button", name="Approve").click()
    await scene.came_to(run, RunStatus.DONE)
    assert [args["amount"] for _, args in scene.calls] == [900]


async def test_it_is_said_in_chinese_too(scene: CardScene, open_window: OpenWindow) -> None:
    will = await open_window(name="Will Zhang", roles=["admin"], locale="zh-CN")
    row = await scene.question(await asked(scene, "Will Zhang"))
    page, card = await at_card(will, row)
    await expect(card.get_by_role("alert")).to_contain_text("已没有人可以审批")
    await expect(card).to_contain_text("您无法回答：这个运行是您启动的")
    await expect(page.locator(entry(row))).to_contain_text("无人可审批")
