"""A proposal's card says what stops its rehearsal."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from card_scene import at_card
from console_scene import Backend, Window, serving
from playwright.async_api import expect
from repair_scene import RepairScene, a_repair_scene

TYPO = {"op": "set_args", "listener_id": "L001", "set": {"employee_id": "{001.context.idd}"}}


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[RepairScene]:
    async with a_repair_scene() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def backend(scene: RepairScene) -> AsyncIterator[Backend]:
    async with serving(scene.app) as one:
        yield one


async def test_a_template_that_reads_what_is_not_there_is_told_with_its_reason(
    scene: RepairScene, admin: Window
) -> None:
    run_id = (await scene.failed()).run_id
    row = await scene.proposed(run_id, TYPO, by="Li Lei", reason="It has another name.")
    _, asked = await at_card(admin, row)
    await expect(asked).to_contain_text("The goal is not reached")
    stops = asked.locator("dt", has_text="Stops at").first
    await expect(stops).to_be_visible()
    why = stops.locator("xpath=following-sibling::dd[1]")
    await expect(why).to_contain_text("L001: {001.context.idd}: task 001's context has no 'idd'")
    await expect(why).to_contain_text("did you mean 'id'?")
