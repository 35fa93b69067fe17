"""Graphs that the console's tests look at: one that goes on step by step, and a wide one."""

from __future__ import annotations

import asyncio
from typing import Any

from console_plans import Office
from playwright.async_api import Locator, Page

LONG = (
    "Check everything that somebody has ever written down 审核所有已经写下来的内容 Donaudampfschiff"
)


class Gate:
    """Lets one step through for each call of `open`, which then brings `said`."""

    def __init__(self, office: Office, **said: Any) -> None:
        self._passes = asyncio.Semaphore(0)

        @office.tool(idempotent=True)
        async def pass_gate() -> dict[str, Any]:
            await self._passes.acquire()
            return {"success": True, **said}

    def open(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._passes.release()


def lattice(rows: int, columns: int, tool: str, plan_id: str = "lattice") -> str:
    """So many chains side by side, all of them from the goal and back to it."""
    tasks, listeners = [], []
    for row in range(rows):
        before = "goal"
        for column in range(columns):
            task = f"t{row:02}{column:02}"
            tasks.append(f'  - {{task_id: {task}, name: "{task} {LONG}"}}')
            listeners.append(
                f"  - {{listener_id: L{task}, trigger_task_id: {before}, listener_type: tool,\n"
                f"     trigger_condition: {'Running' if before == 'goal' else 'Done'},\n"
                f"     tool: {tool}, success_output: {{task_id: {task}, status: Done}}}}"
            )
            before = task
    ends = [f"t{row:02}{columns - 1:02}" for row in range(rows)]
    all_done = " and ".join(f"{one}.status == Done" for one in ends)
    listeners.append(
        f"  - {{listener_id: Last, trigger_task_id: [{', '.join(ends)}], listener_type: tool,\n"
        f"     trigger_condition: {all_done},\n"
        f"     tool: {tool}, success_output: {{task_id: goal, status: Done}}}}"
    )
    head = f"plan_id: {plan_id}\nname: A lattice\nmain_task_id: goal\ntasks:\n"
    goal = "  - {task_id: goal, name: The goal}"
    return head + "\n".join([goal, *tasks, "listeners:", *listeners, ""])


def node(page: Page, node_id: str) -> Locator:
    return page.locator(f'#stage .node[data-id="{node_id}"]').first


async def is_seen(one: Locator) -> bool:
    """Whether a box lies wholly within the stage."""
    inside = await one.evaluate(
        """one => {
            const box = one.querySelector("rect").getBoundingClientRect();
            const room = document.getElementById("stage").getBoundingClientRect();
            return box.left >= room.left && box.right <= room.right
                && box.top >= room.top && box.bottom <= room.bottom;
        }"""
    )
    return bool(inside)


async def view_of(page: Page) -> str:
    return str(await page.locator("#stage svg").get_attribute("viewBox"))
