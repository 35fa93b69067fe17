"""The runs page: it moves by itself, narrows down, turns pages, and acts on many at once."""

from __future__ import annotations

import asyncio

from console_plans import GREET, started
from console_scene import Backend, OpenWindow, Window
from playwright.async_api import Page, Route, expect

from holdfast.console.views.runs import PAGE
from holdfast.model.run import RunStatus

SECRETIVE = """
plan_id: secretive
name: A badge
main_task_id: "001"
inputs:
  word: {type: secret}
  urgent: {type: boolean}
  name: {type: text, label: 姓名}
  floor: {type: number}
  desk: {type: text}
tasks: [{task_id: "001", name: Badge}]
listeners:
  - {listener_id: L001, trigger_task_id: "001", trigger_condition: Running, listener_type: code,
     code_snippet: "result = {'success': True}", success_output: {task_id: "001", status: Done}}
"""
"""What it is told, and does not tell on."""


async def test_a_run_appears_and_ends_before_ones_eyes(page: Page, backend: Backend) -> None:
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    run_id = await started(backend.app, "hold", RunStatus.RUNNING)
    row = page.locator(f"#row-{run_id}")
    await expect(row).to_contain_text("Hold the door")
    await expect(row).to_contain_text("Running")
    await expect(row).to_contain_text("0/2")
    backend.app.door.opened.set()
    await expect(row).to_contain_text("Done")
    await expect(row).to_contain_text("2/2")


async def test_an_empty_list_shows_the_one_command(page: Page, backend: Backend) -> None:
    line = f"holdfast run computer --url {backend.url}"
    await expect(page.locator("#runs code")).to_have_text(line)


async def test_who_may_start_no_plan_is_shown_no_command(open_window: OpenWindow) -> None:
    page = await (await open_window(name="Viewer", roles=("viewer",))).live()
    await expect(page.locator("#runs")).to_contain_text("There is no plan yet that you may start.")
    await expect(page.locator("#runs code")).to_have_count(0)


async def test_a_waiting_run_says_so_and_leads_to_the_question(
    page: Page, backend: Backend
) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    badge = page.locator(f"#row-{run_id}").get_by_role("link", name="1 question waits")
    await expect(badge).to_have_attribute("href", f"/console/inbox?run={run_id}")


async def test_retries_of_the_driver_and_of_the_planner_are_counted(
    page: Page, backend: Backend
) -> None:
    backend.app.planner_agent.max_retry_count = 2
    run_id = await started(backend.app, "fragile", RunStatus.ERROR)
    await expect(page.locator(f"#row-{run_id} .retrying")).to_contain_text("5")


async def test_runs_without_a_prompt_are_told_apart_by_their_inputs(
    page: Page, backend: Backend
) -> None:
    backend.app.load_plan_text(SECRETIVE)
    for name in ("张三", "Will Zhang"):
        values = {"word": "sesame", "name": name, "urgent": True, "floor": 3, "desk": "by the door"}
        await backend.app.plans.start_plan_by_prompt("secretive", "secretive", values=values)
    told = page.locator("#runs tbody .prompt")
    await expect(told).to_have_text(["姓名: Will Zhang, floor: 3", "姓名: 张三, floor: 3"])


async def test_filters_stand_in_the_address(page: Page, backend: Backend) -> None:
    done = await started(backend.app, "greet")
    failed = await started(backend.app, "fragile", RunStatus.ERROR)
    await page.get_by_role("link", name="Failed", exact=True).click()
    await expect(page).to_have_url(f"{backend.url}/console/runs?status=error")
    await expect(page.locator(f"#row-{failed}")).to_be_visible()
    await expect(page.locator(f"#row-{done}")).to_have_count(0)
    await page.get_by_label("Plan or agent").select_option("greet")
    await expect(page).to_have_url(f"{backend.url}/console/runs?status=error&plan=greet")
    await expect(page.get_by_text("No run fits these filters")).to_be_visible()
    await page.get_by_role("link", name="All", exact=True).click()
    await expect(page).to_have_url(f"{backend.url}/console/runs?plan=greet")
    await expect(page.locator(f"#row-{done}")).to_be_visible()
    await page.get_by_label("Kind").select_option("chat")
    await expect(page).to_have_url(f"{backend.url}/console/runs?kind=chat&plan=greet")


async def test_a_filtered_list_lets_go_of_what_no_longer_fits(
    admin: Window, backend: Backend
) -> None:
    run_id = await started(backend.app, "hold", RunStatus.RUNNING)
    page = await admin.live("/console/runs?status=running")
    await expect(page.locator(f"#row-{run_id}")).to_be_visible()
    backend.app.door.opened.set()
    await expect(page.locator(f"#row-{run_id}")).to_have_count(0)


async def test_pages_are_turned_and_stay_where_they_are(page: Page, backend: Backend) -> None:
    ids = [await started(backend.app, "greet") for _ in range(PAGE + 3)]
    await page.reload()
    await expect(page.locator("#runs tbody tr")).to_have_count(PAGE)
    await page.get_by_role("link", name="Older").click()
    await expect(page).to_have_url(f"{backend.url}/console/runs?before={ids[3]}")
    await expect(page.locator("#runs tbody tr")).to_have_count(3)
    await started(backend.app, "greet")
    await expect(page.locator("#runs tbody tr")).to_have_count(3)
    await expect(page.get_by_role("link", name="Older")).to_have_count(0)
    await page.get_by_role("link", name="Newest").click()
    await expect(page.locator("#runs tbody tr")).to_have_count(PAGE)


async def test_many_are_cancelled_after_a_second_look(page: Page, backend: Backend) -> None:
    waiting = [await started(backend.app, "computer", RunStatus.PAUSE) for _ in range(2)]
    kept = await started(backend.app, "computer", RunStatus.PAUSE)
    for run_id in waiting:
        await page.get_by_label(f"Select {run_id}").check()
    await expect(page.locator("#selected")).to_have_text("2 runs selected")
    await page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog", name="Cancel the selected runs?")
    await expect(dialog.get_by_role("button", name="Leave them")).to_be_focused()
    named = dialog.get_by_role("listitem")
    await expect(named).to_have_count(2)
    for run_id in waiting:
        await expect(named.filter(has_text=run_id)).to_contain_text("Computer for a colleague")
    await dialog.get_by_label("Reason").fill("no longer needed")
    await dialog.get_by_role("button", name="Cancel 2 runs").click()
    for run_id in waiting:
        await expect(page.locator(f"#row-{run_id}")).to_contain_text("Cancelled")
    await expect(page.get_by_text("2 runs are being cancelled")).to_be_visible()
    await expect(page.locator(f"#row-{kept}")).to_contain_text("Waiting")
    await expect(page.locator("#bulk")).to_be_hidden()


async def test_who_leaves_them_changes_nothing(page: Page, backend: Backend) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    await page.get_by_label(f"Select {run_id}").check()
    await page.get_by_role("button", name="Cancel…").click()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Cancel…").click()
    await page.get_by_role("button", name="Leave them").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert (await backend.app.instance(run_id)).status == "pause"


async def test_by_the_keyboard_alone(page: Page, backend: Backend) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    await expect(page.locator(f"#row-{run_id}")).to_be_visible()
    pick = page.get_by_label(f"Select {run_id}")
    for _ in range(40):
        await page.keyboard.press("Tab")
        if await pick.evaluate("one => one === document.activeElement"):
            break
    await page.keyboard.press("Space")
    cancel = page.get_by_role("button", name="Cancel…")
    for _ in range(20):
        await page.keyboard.press("Tab")
        if await cancel.evaluate("one => one === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Leave them")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Cancel 1 run")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(f"#row-{run_id}")).to_contain_text("Cancelled")


async def test_what_failed_is_resumed_together(page: Page, backend: Backend) -> None:
    failed = [await started(backend.app, "fragile", RunStatus.ERROR) for _ in range(2)]
    for run_id in failed:
        await expect(page.locator(f"#row-{run_id}")).to_contain_text("Failed")
    backend.app.broken = False
    await page.get_by_label("Select all on this page").check()
    await page.get_by_role("button", name="Resume…").click()
    dialog = page.get_by_role("dialog", name="Resume the selected runs?")
    await expect(dialog.get_by_role("button", name="Leave them")).to_be_focused()
    await expect(dialog.get_by_role("listitem")).to_contain_text(failed[::-1])
    await dialog.get_by_role("button", name="Resume 2 runs").click()
    for run_id in failed:
        await expect(page.locator(f"#row-{run_id}")).to_contain_text("Done")
    await expect(page.get_by_text("2 runs go on")).to_be_visible()


async def test_a_run_that_moved_on_is_refused_and_said(admin: Window, backend: Backend) -> None:
    admin.forgive("409")
    run_id = await started(backend.app, "fragile", RunStatus.ERROR)
    page = await admin.live()
    await page.get_by_label(f"Select {run_id}").check()
    held = asyncio.Event()

    async def later(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/resume", later)
    await page.get_by_role("button", name="Resume…").click()
    await page.get_by_role("button", name="Resume 1 run").click()
    await backend.app.cancel(run_id, by="somebody else")
    held.set()
    await expect(page.locator(".notice.failed")).to_contain_text(run_id)


async def test_a_selection_outlives_what_happens_meanwhile(page: Page, backend: Backend) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    pick = page.get_by_label(f"Select {run_id}")
    await pick.check()
    other = await started(backend.app, "greet")
    await expect(page.locator(f"#row-{other}")).to_be_visible()
    await expect(pick).to_be_checked()
    await expect(pick).to_be_focused()
    await expect(page.locator("#selected")).to_have_text("1 run selected")


async def test_a_viewer_only_looks(open_window: OpenWindow, backend: Backend) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    page = await (await open_window(name="Viewer", roles=("viewer",))).live()
    await expect(page.locator(f"#row-{run_id}")).to_be_visible()
    await expect(page.get_by_role("checkbox")).to_have_count(0)
    await expect(page.get_by_text("Start a run")).to_have_count(0)


async def test_a_run_is_started_from_a_plans_page(page: Page) -> None:
    await page.locator("summary", has_text="Start a run").click()
    plan = page.get_by_role("link", name="Greet a colleague")
    await expect(plan).to_have_attribute("href", "/console/plans/greet#start")


async def test_what_people_wrote_is_only_ever_text(admin: Window, backend: Backend) -> None:
    name = "<img src=x onerror=alert(1)>\u202egnp.exe"
    text = GREET.replace("plan_id: greet", "plan_id: evil").replace(
        "Greet a colleague", f'"{name}"'
    )
    backend.app.load_plan_text(text)
    run_id = await started(backend.app, "evil")
    page = await admin.live()
    await expect(page.locator(f"#row-{run_id} a")).to_have_text(
        "<img src=x onerror=alert(1)>⟨202E⟩gnp.exe"
    )


async def test_a_double_press_cancels_once(page: Page, backend: Backend) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    await page.get_by_label(f"Select {run_id}").check()
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url) if one.url.endswith("/cancel") else None)
    await page.get_by_role("button", name="Cancel…").click()
    await page.get_by_role("button", name="Cancel 1 run").dblclick()
    await expect(page.locator(f"#row-{run_id}")).to_contain_text("Cancelled")
    assert len(sent) == 1


async def test_two_runs_of_one_plan_differ_by_what_they_were_asked(
    page: Page, backend: Backend
) -> None:
    wishes = ["a computer for Will Zhang", "a computer for 张三"]
    for wish in wishes:
        instance = await backend.app.plans.start_plan_by_prompt(wish, "computer")
        row = page.locator(f"#row-{instance.id}")
        await expect(row).to_contain_text(f"“{wish}”")
    await page.goto(f"{backend.url}/console/runs/{instance.id}")
    await expect(page.locator("#run-head")).to_contain_text(f"“{wishes[-1]}”")


async def test_a_filter_that_makes_no_sense_is_named(admin: Window, backend: Backend) -> None:
    admin.forgive("422")
    page = await admin.open("/console/runs?kind=x")
    await expect(page.locator("main")).to_contain_text("kind")
    await expect(page.locator("main")).not_to_contain_text("enum")
