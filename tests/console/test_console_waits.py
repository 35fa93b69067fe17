"""A run that waits for a moment: lists and its page say until when, and count down."""

from __future__ import annotations

import re
from datetime import datetime

from console_plans import Office
from console_scene import Backend, OpenWindow, Window
from playwright.async_api import expect

from holdfast.core.run.state import RunState, wait_timer

WAIT = """
plan_id: wait
name: Wait an hour
main_task_id: "001"
tasks: [{task_id: "001", name: Wait}, {task_id: "002", name: Waited}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: wait_until
    after: 1h
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


async def waiting(backend: Backend) -> tuple[str, datetime]:
    office = backend.app
    assert isinstance(office, Office)
    office.load_plan_text(WAIT)
    instance = await office.plans.start_plan_by_prompt("", "wait")

    def waits(state: RunState) -> bool:
        return wait_timer("L001") in state.timers

    state = await office.engine.wait_for(instance.id, waits)
    return instance.id, datetime.fromtimestamp(state.timers[wait_timer("L001")])


async def test_the_page_shows_the_moment_and_counts_down(admin: Window, backend: Backend) -> None:
    run_id, moment = await waiting(backend)
    page = await admin.live(f"/console/runs/{run_id}")
    status = page.locator("#run-status .pill").first
    await expect(status).to_have_text(re.compile(f"Waiting until .*{moment:%H:%M:%S}"))
    countdown = page.locator("#countdown b")
    await expect(countdown).to_have_text(re.compile("59 min [0-9]+ s|1 h 0 min"))
    first = await countdown.text_content()
    await expect(countdown).not_to_have_text(str(first))
    await page.locator('#stage .node[data-id="L001"]').click()
    await expect(page.locator("#details")).to_contain_text(f"Waits until: {moment:%H:%M:%S}")


async def test_so_does_the_list(admin: Window, backend: Backend) -> None:
    run_id, moment = await waiting(backend)
    page = await admin.live("/console/runs")
    row = page.locator(f"#row-{run_id} .pill").first
    await expect(row).to_have_text(re.compile(f"Waiting until .*{moment:%H:%M:%S}"))


async def test_in_chinese_too(open_window: OpenWindow, backend: Backend) -> None:
    run_id, moment = await waiting(backend)
    chinese = await open_window(locale="zh-CN")
    page = await chinese.live(f"/console/runs/{run_id}")
    status = page.locator("#run-status .pill").first
    await expect(status).to_have_text(re.compile(f"等待至 .*{moment:%H:%M:%S}"))
