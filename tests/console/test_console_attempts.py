"""Tries add up: the same numbers and words on the graph, in the panels and in the timeline."""

from __future__ import annotations

import re
from datetime import datetime

from console_plans import Office, started
from console_scene import Backend, Window
from playwright.async_api import expect
from run_scene import OUTER, trip

from holdfast.core.run.state import RunState, retry_timer
from holdfast.core.run.tables import StepStatus
from holdfast.journal.port import QuestionQuery
from holdfast.model.run import RunStatus

PATIENT = """
plan_id: patient
name: Access, in an hour
main_task_id: "001"
tasks: [{task_id: "001", name: Access}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    retry: {attempts: 3, initial: 3600, maximum: 3600, jitter: 0}
    success_output: {task_id: "001", status: Done}
"""

ENGINE_WORDS = re.compile(r"\b(NotStarted|Pending|Error|Retrying|[a-z]+_[a-z]+_[a-z]+|attempts?)\b")


def office_of(backend: Backend) -> Office:
    assert isinstance(backend.app, Office)
    return backend.app


async def failed_in_two_rounds(office: Office) -> str:
    """Two tries in each of two rounds."""
    office.planner_agent.max_retry_count = 1
    return await started(office, "fragile", RunStatus.ERROR)


async def test_a_step_between_two_tries_says_which_comes_next_and_when(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    office.load_plan_text(PATIENT)
    instance = await office.plans.start_plan_by_prompt("patient", "patient")

    def backs_off(state: RunState) -> bool:
        return "L001" in state.steps and state.steps["L001"].status is StepStatus.BACKOFF

    await office.engine.wait_for(instance.id, backs_off)
    state = await office.engine.state(instance.id)
    due = datetime.fromtimestamp(state.timers[retry_timer("L001")])
    page = await admin.live(f"/console/runs/{instance.id}")
    box = page.locator('#stage .node[data-id="L001"]')
    told = f"tool, retrying, try 2 of 3, next at {due:%H:%M:%S}"
    await expect(box.locator(".note")).to_have_text(told)
    await box.click()
    details = page.locator("#details")
    await expect(details.locator(".pill").first).to_have_text("tool, retrying, try 2 of 3")
    await expect(details).to_contain_text(f"Next try: {due:%H:%M:%S}")
    await expect(details.locator("ol li")).to_have_count(1)
    await expect(details.locator("ol li")).to_contain_text("Try 1 of 3 failed")
    await expect(page.locator("#timeline li").first).to_contain_text("; tries again in 1 h 0 min")


async def test_tries_and_rounds_of_a_failed_run_add_up(admin: Window, backend: Backend) -> None:
    run_id = await failed_in_two_rounds(office_of(backend))
    page = await admin.live(f"/console/runs/{run_id}")
    await expect(page.locator("#failures h3 .pill")).to_have_text("4 tries in 2 rounds")
    rows = page.locator("#timeline li")
    await expect(rows.filter(has_text="L001 (grant_access) started")).to_have_count(4)
    await expect(rows.filter(has_text="started, try 2 of 2")).to_have_count(2)
    await expect(rows.filter(has_text="; tries again in a moment")).to_have_count(2)
    again = rows.filter(has_text="tries L001 (grant_access) again, round 2 of 2")
    await expect(again).to_have_count(1)
    gave_up = rows.filter(has_text="gives up on L001 (grant_access) after 2 rounds")
    await expect(gave_up).to_have_count(1)
    await expect(rows.filter(has_text="next try")).to_have_count(0)
    await page.locator('#stage .node[data-id="L001"]').click()
    tries = page.locator("#details ol li")
    await expect(tries).to_contain_text(
        [f"Try {n} of 2 failed (round {of})" for of, n in ((2, 2), (2, 1), (1, 2), (1, 1))]
    )
    await page.goto(f"{backend.url}/console/runs")
    pill = page.locator(f"#row-{run_id} .pill.retrying")
    await expect(pill.locator("[aria-hidden=true]").last).to_have_text("3")
    await expect(pill).to_contain_text("3 retries")


async def test_after_a_resume_in_vain_all_tries_are_counted(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    run_id = await failed_in_two_rounds(office)
    before = (await office.engine.state(run_id)).version
    assert await office.planner_agent.resume_plan(office.plans, "fragile", run_id)

    def failed_again(state: RunState) -> bool:
        return state.status is RunStatus.ERROR and state.version > before

    await office.engine.wait_for(run_id, failed_again)
    page = await admin.live(f"/console/runs/{run_id}")
    await expect(page.locator("#failures h3 .pill")).to_have_text("8 tries in 4 rounds")


async def test_a_run_that_waits_for_its_resume_says_so_in_peoples_words(
    admin: Window, backend: Backend
) -> None:
    run_id = await failed_in_two_rounds(office_of(backend))
    page = await admin.live(f"/console/runs/{run_id}")
    await page.locator('#stage .node[data-id="001"]').first.click()
    details = page.locator("#details")
    await expect(details.locator("ol li").first).to_contain_text("failedwaits for a resume")
    gave_up = page.locator("#timeline li").filter(has_text="gives up on L001")
    await expect(gave_up).to_contain_text("001 Access has failed (waits for a resume)")
    notes = await page.locator("#stage .note").all_text_contents()
    assert notes == ["failed", "tool, failed", "failed"]
    for part in ("#run-head", "#failures"):
        await expect(page.locator(part)).not_to_contain_text(re.compile("running", re.IGNORECASE))
    for part in ("#run-head", "#timeline"):
        await expect(page.locator(part)).not_to_contain_text(ENGINE_WORDS)


async def test_the_story_has_the_words_of_the_graph_in_chinese(
    admin: Window, backend: Backend
) -> None:
    run_id = await failed_in_two_rounds(office_of(backend))
    page = await admin.live(f"/console/runs/{run_id}")
    await page.goto(f"{backend.url}/console/language/zh?back=/console/runs/{run_id}")
    await expect(page.locator("#failures h3 .pill")).to_have_text("2 轮共尝试 4 次")
    rows = page.locator("#timeline li")
    gave_up = rows.filter(has_text="2 轮后放弃 L001 (grant_access)，等待恢复")
    await expect(gave_up).to_contain_text("001 Access：失败 (等待恢复)")
    again = rows.filter(has_text="重试 L001 (grant_access)，第 2/2 轮")
    await expect(again).to_contain_text("001 Access：重试中")


async def test_a_task_that_waits_for_a_person_is_called_waiting(
    admin: Window, backend: Backend
) -> None:
    run_id = await trip(office_of(backend))
    page = await admin.live(f"/console/runs/{run_id}")
    told = page.locator("#timeline li").filter(has_text="004 Computer is waiting (for a person)")
    await expect(told).to_have_count(1)
    box = page.locator('#stage .node[data-id="004"]')
    await expect(box.locator(".note")).to_have_text("waiting")


async def test_a_step_whose_sub_run_asks_is_waiting_and_takes_one_try(
    admin: Window, backend: Backend
) -> None:
    office = office_of(backend)
    office.load_plan_text(OUTER)
    run_id = await started(office, "outer", RunStatus.PAUSE)
    page = await admin.live(f"/console/runs/{run_id}")
    box = page.locator('#stage .node[data-id="L001"]')
    await expect(box.locator(".note")).to_have_text("plan, waiting for a person")
    [question] = await office.journal.questions(QuestionQuery(frozenset({"open"})))
    await office.planner_agent.continue_plan(question.run_id, {"computer_model": "ThinkPad"})
    await expect(page.locator("#run-status > .pill").first).to_have_text("Done")
    await box.click()
    await expect(page.locator("#details ol li")).to_have_count(1)
    await expect(page.locator("#details ol li")).to_contain_text("Try 1 of 3 succeeded")
