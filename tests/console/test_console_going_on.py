"""A conversation that failed, in the console: three ways on, and none is chosen beforehand."""

from __future__ import annotations

import os
from typing import Any

from console_scene import House, Window
from playwright.async_api import expect

from holdfast.core.run.state import RunState
from holdfast.errors import PermanentError
from holdfast.runtime.machines import as_conversation
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel

TASKS = [
    {"id": "pay", "description": "Pay the order", "type": "pay_order"},
    {"id": "mail", "description": "Mail it", "type": "mail_order", "dependencies": ["pay"]},
]


class Office:
    def __init__(self, house: House) -> None:
        self.calls: list[str] = []
        self.down = True
        house.app.tool(self.pay_order)
        house.app.tool(self.mail_order)
        house.app.models.default_model = ScriptedModel(self.replies)

    def replies(self, seen: Seen) -> Entry:
        return call("plan_tasks", tasks=TASKS) if seen.tools else say("Paid and mailed.")

    def pay_order(self) -> dict[str, Any]:
        self.calls.append("pay")
        return {"receipt": 7}

    def mail_order(self) -> dict[str, Any]:
        self.calls.append("mail")
        if self.down:
            raise PermanentError("the mail server is down")
        return {"sent": True}


def in_phase(phase: str) -> Any:
    def there(state: RunState) -> bool:
        return as_conversation(state).phase == phase

    return there


async def test_a_failed_conversation_asks_which_way_on_and_pays_once(
    house: House, admin: Window
) -> None:
    office = Office(house)
    answer = await admin.context.request.post(
        f"{house.url}/conversations", data={"input": "Order it"}, headers={"Origin": house.url}
    )
    run_id = (await answer.json())["id"]
    await house.app.engine.wait_for(run_id, in_phase("error"), 30)
    page = await admin.live(f"/console/runs/{run_id}")
    for name in ("Try again…", "Go on without…", "End the turn…"):
        await expect(page.get_by_role("button", name=name)).to_be_visible()
    await expect(page.locator("#do-resume")).to_have_count(0)
    await page.get_by_role("button", name="Try again…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("What is done stays done.")
    await expect(dialog).to_contain_text("task mail")
    if directory := os.environ.get("HOLDFAST_SHOTS"):
        await page.screenshot(path=f"{directory}/going_on.png")
    office.down = False
    await dialog.get_by_role("button", name="Try again").click()
    await house.app.engine.wait_for(run_id, in_phase("completed"), 30)
    await expect(page.locator("#run-beside")).to_contain_text("Paid and mailed.")
    assert office.calls == ["pay", "mail", "mail"]
