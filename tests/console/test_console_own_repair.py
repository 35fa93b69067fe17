"""Several proposals answered at once: who proposed one of them is offered a refusal only."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from console_scene import Backend, OpenWindow, Window, serving
from playwright.async_api import Page, expect
from repair_scene import RepairScene, a_repair_scene

from holdfast.journal.port import QuestionRow
from holdfast.model.run import RunStatus

FETCHED = "path => fetch(path).then(response => response.text())"
REPAIR, LEAVE = "Repair and go on", "Leave the plan as it is"


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[RepairScene]:
    async with a_repair_scene() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def backend(scene: RepairScene) -> AsyncIterator[Backend]:
    async with serving(scene.app) as one:
        yield one


async def chosen(window: Window, *rows: QuestionRow) -> Page:
    """The inbox, with these questions selected."""
    page = await window.live("/console/inbox")
    for row in rows:
        await page.locator(f"#pick-{row.question_id}").check()
    return page


async def test_who_proposed_a_repair_is_not_offered_to_make_it(
    scene: RepairScene, open_window: OpenWindow
) -> None:
    rule = await scene.failed()
    first = await scene.failed()
    own = await scene.proposed(first.root_id, by="Will Zhang", reason="the profile is missing")
    will = await open_window(name="Will Zhang", roles=["operator", "approver"])
    ann = await open_window(name="Ann", roles=["approver"])

    page = await chosen(will, rule)
    offered = page.locator("#bulk-options").get_by_role("button")
    await expect(offered).to_have_text([REPAIR, LEAVE])
    await page.locator(f"#pick-{own.question_id}").check()
    await expect(page.locator("#selected")).to_have_text("2 questions selected")
    await expect(offered).to_have_text([LEAVE])
    await page.locator(f"#pick-{rule.question_id}").uncheck()
    await expect(offered).to_have_text([LEAVE])

    page = await chosen(ann, rule, own)
    await page.locator("#bulk").get_by_role("button", name=REPAIR).click()
    await page.get_by_role("button", name=f"{REPAIR} (2)").click()
    for row in (rule, own):
        await scene.came_to(row.root_id, RunStatus.DONE)


async def test_a_list_that_was_fetched_by_hand_leaves_out_what_would_be_refused(
    scene: RepairScene, open_window: OpenWindow
) -> None:
    rule = await scene.failed()
    first = await scene.failed()
    own = await scene.proposed(first.root_id, by="Will Zhang", reason="the profile is missing")
    will = await open_window(name="Will Zhang", roles=["operator", "approver"])
    page = await will.live("/console/inbox")
    asked = f"/console/parts/answering?id={rule.question_id}&id={own.question_id}"
    listed = await page.evaluate(FETCHED, f"{asked}&option=apply")
    assert (rule.question_id in listed, own.question_id in listed) == (True, False)
    assert "1 of them can no longer be answered by you" in listed
    listed = await page.evaluate(FETCHED, f"{asked}&option=refuse")
    assert (rule.question_id in listed, own.question_id in listed) == (True, True)
