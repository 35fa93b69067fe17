"""Draws the picture of the README: the onboarding at the moment it waits for a person."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.app import Holdfast
from holdfast.demo.office import Office
from holdfast.drawing.graph import render_svg

DEMO = Path(__file__).parents[1] / "src" / "holdfast" / "demo"
PICTURE = Path(__file__).parent / "images" / "onboarding.svg"
FAILURES = 6


async def draw() -> str:
    async with Office.start() as office:
        app = Holdfast.in_memory(max_retry_count=1)
        app.load_tools(DEMO / "tools.yaml", {"OFFICE_URL": office.url})
        app.load_plans(DEMO / "plans")
        await office.configure_failures({"grant_access": FAILURES})
        async with app:
            instance = await app.plans.start_plan_by_prompt("入职流程", "onboard_will_zhang")
            await instance.wait_for_completion()
            state = await app.engine.state(instance.id)
            return render_svg(state.plan.plan, state)


if __name__ == "__main__":
    PICTURE.write_text(asyncio.run(draw()), encoding="utf-8")
