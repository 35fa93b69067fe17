"""A conversation that failed, in the console: three ways on, and none is chosen beforehand."""

from __future__ import annotations

import os
from typing import Any

from console_scene import Backend, OpenWindow, Window
from playwright.async_api import Page, expect

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
    def __init__(self, backend: Backend) -> None:
        self.calls: list[str] = []
        self.down = True
        backend.app.tool(self.pay_order)
        backend.app.tool(self.mail_order)
        backend.app.models.default_model = ScriptedModel(self.replies)

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


async def shoot(page: Page, name: str) -> None:
    if directory := os.environ.get("HOLDFAST_SHOTS"):
        await page.screenshot(path=f"{directory}/{name}.png", full_page=True)


def in_phase(phase: str) -> Any:
    def there(state: RunState) -> bool:
        return as_conversation(state).phase == phase

    return there


async def at_failed(backend: Backend, admin: Window) -> tuple[str, Page]:
    """A conversation whose turn has failed, and its page."""
    answer = await admin.context.request.post(
        f"{backend.url}/conversations", data={"input": "Order it"}, headers={"Origin": backend.url}
    )
    run_id = (await answer.json())["id"]
    await backend.app.engine.wait_for(run_id, in_phase("error"), 30)
    return run_id, await admin.live(f"/console/runs/{run_id}")


async def test_a_failed_conversation_asks_which_way_on_and_pays_once(
    backend: Backend, admin: Window
) -> None:
    office = Office(backend)
    run_id, page = await at_failed(backend, admin)
    for name in ("Try again…", "Go on without…", "End the turn…"):
        await expect(page.locator("#failures").get_by_role("button", name=name)).to_be_visible()
    await expect(page.locator("#do-resume")).to_have_count(0)
    await page.locator("#failures").get_by_role("button", name="Try again…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("What is done stays done.")
    await expect(dialog).to_contain_text("task mail")
    await shoot(page, "going_on")
    office.down = False
    await dialog.get_by_role("button", name="Try again").click()
    await backend.app.engine.wait_for(run_id, in_phase("completed"), 30)
    await expect(page.locator("#run-beside")).to_contain_text("Paid and mailed.")
    assert office.calls == ["pay", "mail", "mail"]


async def test_what_was_skipped_is_shown_as_skipped_and_why(
    backend: Backend, admin: Window, open_window: OpenWindow
) -> None:
    office = Office(backend)
    run_id, page = await at_failed(backend, admin)
    await page.locator("#failures").get_by_role("button", name="Go on without…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Go on without").click()
    await backend.app.engine.wait_for(run_id, in_phase("completed"), 30)
    await expect(page.locator("#result")).to_contain_text("mail")
    await expect(page.locator("#result")).to_contain_text(
        "skipped (it failed: the mail server is down)"
    )
    await expect(page.locator("#tasks-done")).to_have_text("Tasks 1/2")
    await expect(page.locator("#run-status")).to_contain_text("skipped 1")
    await expect(page.locator("#tasks")).to_contain_text("it failed: the mail server is down")
    await expect(page.locator("#timeline")).to_contain_text("task mail is skipped")
    assert '"skipped"' not in await page.inner_text("main")
    await shoot(page, "skipped_en")
    page = await admin.live("/console/runs")
    await expect(page.locator(f"#row-{run_id}")).to_contain_text("skipped 1")
    chinese = await open_window(locale="zh-CN")
    page = await chinese.live(f"/console/runs/{run_id}")
    await expect(page.locator("#result")).to_contain_text(
        "已跳过（它失败了：the mail server is down）"
    )
    await expect(page.locator("#timeline")).to_contain_text("任务完成 1 个，跳过 1 个")
    await shoot(page, "skipped_zh")
    assert office.calls == ["pay", "mail"]


async def test_a_turn_that_was_ended_is_shown_as_stopped_not_done(
    backend: Backend, admin: Window, open_window: OpenWindow
) -> None:
    Office(backend)
    run_id, page = await at_failed(backend, admin)
    await page.locator("#failures").get_by_role("button", name="End the turn…").click()
    await page.get_by_role("dialog").get_by_role("button", name="End the turn").click()
    await expect(page.locator("#run-status .pill").first).to_have_text("Stopped")
    await expect(page.locator("#failures .step-actions")).to_have_count(0)
    await shoot(page, "stopped_en")
    page = await admin.live("/console/runs")
    await expect(page.locator(f"#row-{run_id} .pill").first).to_have_text("Stopped")
    await shoot(page, "stopped_runs")
    chinese = await open_window(locale="zh-CN")
    page = await chinese.live(f"/console/runs/{run_id}")
    await expect(page.locator("#run-status .pill").first).to_have_text("已停止")


async def test_the_tasks_to_confirm_are_listed_once_in_the_readers_language(
    backend: Backend, admin: Window, open_window: OpenWindow
) -> None:
    Office(backend).down = False
    body = {"input": "Order it", "confirm_tasks": True}
    answer = await admin.context.request.post(
        f"{backend.url}/conversations", data=body, headers={"Origin": backend.url}
    )
    run_id = (await answer.json())["id"]
    await backend.app.engine.wait_for(run_id, lambda one: bool(one.open_questions), 30)
    page = await admin.live(f"/console/runs/{run_id}")
    card = page.locator("#run-questions")
    await expect(card).to_contain_text("mail: Mail it: mail_order; needs first: pay")
    assert (await card.inner_text()).count("mail_order") == 1
    await shoot(page, "confirm_en")
    chinese = await open_window(locale="zh-CN")
    page = await chinese.live(f"/console/runs/{run_id}")
    card = page.locator("#run-questions")
    await expect(card).to_contain_text("mail: Mail it: mail_order；需先完成：pay")
    for words in ("执行这些任务", "要求换一组任务", "停止会话"):
        await expect(card.get_by_role("button", name=words)).to_be_visible()
    for words in ("Run these", "Ask for other", "What should"):
        await expect(card).not_to_contain_text(words)
    await shoot(page, "confirm_zh")
    page = await chinese.live("/console/inbox")
    await expect(page.locator("#inbox-queue")).to_contain_text("会话“Order it”")
    await shoot(page, "inbox_zh")


async def test_a_dialog_for_what_is_not_possible_any_more_closes_and_says_so(
    backend: Backend, admin: Window
) -> None:
    office = Office(backend)
    run_id, page = await at_failed(backend, admin)
    await page.locator("#failures").get_by_role("button", name="Try again…").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    office.down = False
    gone_on = await admin.context.request.post(
        f"{backend.url}/conversations/{run_id}/resume",
        data={"failed": "retry"},
        headers={"Origin": backend.url},
    )
    assert gone_on.ok
    await backend.app.engine.wait_for(run_id, in_phase("completed"), 30)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.locator("#notices")).to_contain_text("this is not possible any more")
