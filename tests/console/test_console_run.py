"""The run page: it moves by itself, tells what happened, and says what a press will do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from console_plans import Office, started
from console_scene import NARROW, Backend, OpenWindow, Window, fits, window
from playwright.async_api import Browser, Locator, Page, Request, Route, expect
from run_scene import LATER, OUTER, chain, chat, conversation, trip

from holdfast.console.assets import address
from holdfast.model.run import RunStatus


@pytest.fixture
def office(backend: Backend) -> Office:
    assert isinstance(backend.app, Office)
    return backend.app


@pytest_asyncio.fixture(loop_scope="session")
async def stuck(office: Office) -> AsyncIterator[str]:
    """A trip that has failed in one step and waits for an answer in another."""
    yield await trip(office)


def node(page: Page, node_id: str) -> Locator:
    return page.locator(f'#stage .node[data-id="{node_id}"]').first


def status(page: Page) -> Locator:
    return page.locator("#run-status > .pill").first


async def press(page: Page, button: str, answer: str) -> None:
    """A button that asks first, and what is pressed then."""
    await page.get_by_role("button", name=button).first.click()
    await page.get_by_role("dialog").get_by_role("button", name=answer, exact=True).click()


class TestWatching:
    async def test_a_run_finishes_before_ones_eyes(self, admin: Window, office: Office) -> None:
        run_id = await started(office, "hold", RunStatus.RUNNING)
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Hold the door")
        await expect(status(page)).to_have_text("Running")
        await expect(page.locator(".counts")).to_contain_text("running")
        await expect(node(page, "L001")).to_contain_class("running")
        office.door.opened.set()
        await expect(status(page)).to_have_text("Done")
        await expect(node(page, "L002")).to_contain_class("done")
        await expect(page.locator("#timeline li").first).to_contain_text("the run is done")
        await expect(page.locator(".counts .pill")).to_have_text(["done 2"])

    async def test_the_head_counts_the_tasks_as_the_table_does(
        self, admin: Window, backend: Backend, stuck: str
    ) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await expect(page.locator("#tasks-done")).to_have_text("Tasks 1/4")
        pills = await page.locator(".counts .pill").all_inner_texts()
        assert "done 1" in pills
        assert sum(int(one.split()[-1]) for one in pills) == 4
        await page.goto(f"{backend.url}/console/runs")
        await expect(page.locator(f"#row-{stuck} .progress")).to_have_text("1/4")

    async def test_who_what_and_when(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        head = page.locator("#run-head")
        await expect(head).to_contain_text(stuck)
        await expect(head).to_contain_text("version")
        await expect(head.get_by_role("link", name="trip")).to_have_attribute(
            "href", "/console/plans/trip"
        )
        last = page.locator("#timeline li").last
        await expect(last).to_contain_text("started trip: for Will Zhang")
        await expect(last.locator("time")).to_be_visible()

    async def test_a_long_story_has_pages(self, admin: Window, office: Office) -> None:
        office.load_plan_text(chain(20))
        run_id = await started(office, "chain")
        page = await admin.live(f"/console/runs/{run_id}")
        rows = page.locator("#timeline li")
        await expect(rows).to_have_count(20)
        await page.get_by_role("button", name="Older").click()
        await expect(page.get_by_role("button", name="Newest")).to_be_visible()
        await expect(rows.first).not_to_contain_text("the run is done")
        await page.get_by_role("button", name="Newest").click()
        await expect(rows.first).to_contain_text("the run is done")

    async def test_what_somebody_fills_in_is_one_line_however_often_it_was_kept(
        self, admin: Window, office: Office
    ) -> None:
        run_id = await started(office, "computer", RunStatus.PAUSE)
        asked = next(iter((await office.engine.state(run_id)).open_questions))
        for by, model in [*[("Will Zhang", f"Mac {n}") for n in range(130)], ("张三", "Mac")]:
            await office.keep_draft(asked, {"computer_model": model}, by=by)
        page = await admin.live(f"/console/runs/{run_id}")
        drafts = page.locator("#timeline li").filter(has_text="has begun to answer")
        await expect(drafts).to_have_count(2)
        await expect(drafts.first).to_contain_text("张三")
        await page.get_by_role("button", name="Older").click()
        await expect(page.locator("#timeline li").last).to_contain_text("started computer")

    async def test_a_reload_in_the_middle_loses_nothing(
        self, admin: Window, office: Office
    ) -> None:
        run_id = await started(office, "hold", RunStatus.RUNNING)
        page = await admin.live(f"/console/runs/{run_id}")
        await page.reload()
        office.door.opened.set()
        await expect(status(page)).to_have_text("Done")

    async def test_eight_tabs_see_it_end(self, admin: Window, office: Office) -> None:
        run_id = await started(office, "hold", RunStatus.RUNNING)
        tabs = [await admin.live(f"/console/runs/{run_id}") for _ in range(8)]
        office.door.opened.set()
        for tab in tabs:
            await tab.bring_to_front()
            await expect(status(tab)).to_have_text("Done")

    async def test_a_restarted_server_is_found_again(
        self, admin: Window, backend: Backend, office: Office
    ) -> None:
        admin.forgive("ERR_")
        run_id = await started(office, "hold", RunStatus.RUNNING)
        page = await admin.live(f"/console/runs/{run_id}")
        await backend.stop()
        await expect(page.locator("html")).not_to_have_attribute("data-live", "live")
        office.door.opened.set()
        await (await office.instance(run_id)).wait_for_completion(30)
        await backend.start()
        await expect(status(page)).to_have_text("Done")

    async def test_a_run_that_is_not_there(self, admin: Window) -> None:
        admin.forgive("404")
        page = await admin.open("/console/runs/inst_999999")
        await expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing here")


class TestMending:
    async def test_what_was_pressed_is_gone_and_the_run_has_the_focus(
        self, admin: Window, office: Office
    ) -> None:
        run_id = await started(office, "fragile", RunStatus.ERROR)
        page = await admin.live(f"/console/runs/{run_id}")
        await page.locator("#do-cancel").click()
        await page.locator("#action-do").click()
        await expect(page.locator("#do-cancel")).to_have_count(0)
        await expect(page.get_by_role("heading", level=1)).to_be_focused()

    async def test_the_failed_plan_is_resumed_and_finishes(
        self, admin: Window, office: Office
    ) -> None:
        run_id = await started(office, "fragile", RunStatus.ERROR)
        page = await admin.live(f"/console/runs/{run_id}")
        failures = page.locator("#failures")
        await expect(failures).to_contain_text("503: the access service is out of order")
        await expect(failures).to_contain_text("2 tries")
        office.broken = False
        await failures.get_by_role("button", name="Resume from the failed step").click()
        dialog = page.get_by_role("dialog", name=f"Resume {run_id}?")
        await expect(dialog).to_contain_text("Runs again")
        await expect(dialog).to_contain_text("L001 (grant_access)")
        await dialog.get_by_role("button", name="Resume").click()
        await expect(status(page)).to_have_text("Done")
        await expect(failures).to_have_count(0)

    async def test_resume_says_what_stays_done(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await expect(page.locator("#failures")).to_contain_text("1 step that is done")
        await page.locator("#do-resume").click()
        again, stays = page.locator("#action dd").first, page.locator("#action dd").last
        await expect(again).to_have_text("L002 (grant_access)")
        await expect(stays).to_have_text("L001 (code)")
        await expect(page.get_by_role("button", name="Go back")).to_be_focused()

    async def test_a_run_is_cancelled_after_a_second_look(
        self, admin: Window, office: Office, stuck: str
    ) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await press(page, "Cancel…", "Leave it")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.get_by_role("button", name="Cancel…").click()
        await page.get_by_label("Reason").fill("no trip after all")
        await page.get_by_role("button", name="Cancel the run").click()
        await expect(status(page)).to_have_text("Cancelled")
        await expect(page.locator("#timeline")).to_contain_text("no trip after all")
        await expect(page.locator("#do-cancel")).to_have_count(0)

    async def test_a_failed_step_is_skipped_with_a_reason(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await page.locator("#failures").get_by_role("button", name="Skip…").click()
        dialog = page.get_by_role("dialog", name="Skip L002 (grant_access)?")
        await expect(dialog).to_contain_text("003 Weather → skipped")
        await expect(dialog).to_contain_text("still waits to be resumed")
        await dialog.get_by_label("Reason").fill("it is always sunny")
        await dialog.get_by_role("button", name="Skip").click()
        await expect(node(page, "L002")).to_contain_class("skipped")
        await expect(page.locator("#timeline")).to_contain_text("it is always sunny")
        await expect(page.locator("#failures")).to_contain_text("What failed is settled")
        await press(page, "Resume…", "Resume")
        await page.get_by_label("ThinkPad").check()
        await page.get_by_role("button", name="Submit").click()
        await expect(status(page)).to_have_text("Done")
        await expect(page.locator("#failures")).to_have_count(0)

    async def test_a_task_is_marked_done_by_hand(
        self, admin: Window, office: Office, stuck: str
    ) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await page.get_by_role("button", name="Mark done by hand…").click()
        editor = page.get_by_label("Context of 003, as JSON")
        await expect(editor).to_have_value('{\n  "sky": ""\n}')
        await editor.fill('{"sky": "blue"}')
        await page.get_by_role("button", name="Mark done", exact=True).click()
        await expect(node(page, "003")).to_contain_class("done")
        task = (await office.instance(stuck)).get_task_instance("003")
        assert task.context["sky"] == "blue"

    async def test_a_context_that_is_not_json_is_told_at_its_field(
        self, admin: Window, office: Office, stuck: str
    ) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await page.locator("#failures").get_by_role("button", name="Edit context…").click()
        editor = page.get_by_label("Context of 002, as JSON")
        for wrong, why in (("{flight", "This is not JSON"), ("[1]", "It must be an object")):
            await editor.fill(wrong)
            await page.get_by_role("button", name="Save").click()
            await expect(editor).to_have_attribute("aria-invalid", "true")
            await expect(editor).to_be_focused()
            await expect(page.locator("#action-context-error")).to_contain_text(why)
        await editor.fill('{"flight": "JL 5"}')
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        task = (await office.instance(stuck)).get_task_instance("002")
        assert task.context["flight"] == "JL 5"

    async def test_a_step_runs_again_with_all_that_follows(
        self, admin: Window, office: Office
    ) -> None:
        office.broken = False
        stuck = await started(office, "computer", RunStatus.PAUSE)
        page = await admin.live(f"/console/runs/{stuck}")
        await node(page, "L001").click()
        await page.locator("#details").get_by_role("button", name="Run again from here…").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Questions withdrawn")
        await dialog.get_by_role("button", name="Run again").click()
        await expect(page.locator("#timeline")).to_contain_text("runs the plan again from L001")

    async def test_who_comes_too_late_is_told(
        self, admin: Window, office: Office, stuck: str
    ) -> None:
        admin.forgive("409")
        page = await admin.live(f"/console/runs/{stuck}")
        held = asyncio.Event()

        async def later(route: Route) -> None:
            await held.wait()
            await route.continue_()

        await page.locator("#do-resume").click()
        await page.route("**/resume", later)
        await page.get_by_role("button", name="Resume", exact=True).click()
        await office.cancel(stuck, by="somebody else")
        held.set()
        await expect(page.locator("#run-head")).to_contain_text("Cancelled")
        await expect(page.locator("#action .errors")).not_to_be_empty()

    async def test_a_viewer_is_offered_nothing(
        self, open_window: OpenWindow, office: Office, stuck: str
    ) -> None:
        page = await (await open_window(name="Viewer", roles=("viewer",))).live(
            f"/console/runs/{stuck}"
        )
        await expect(page.locator("#failures")).to_be_visible()
        await expect(page.locator("[data-do]")).to_have_count(0)


class TestGraph:
    async def test_a_box_opens_by_keyboard_and_closes_again(
        self, admin: Window, stuck: str
    ) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await page.locator("#stage").focus()
        await page.keyboard.press("ArrowRight")
        await expect(node(page, "001")).to_be_focused()
        for _ in range(2):
            await page.keyboard.press("ArrowRight")
        await expect(node(page, "002")).to_be_focused()
        await page.keyboard.press("Enter")
        details = page.get_by_role("region", name="002 Flights")
        await expect(details.get_by_role("heading", level=2)).to_be_focused()
        await expect(details).to_contain_text('"flight": "NH968"')
        await page.keyboard.press("Escape")
        await expect(details).to_have_count(0)
        await expect(node(page, "002")).to_be_focused()

    async def test_a_step_shows_its_tries_and_errors(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await node(page, "L002").click()
        details = page.locator("#details")
        await expect(details).to_contain_text("Try 2 of 2 failed")
        await expect(details).to_contain_text("503: the access service is out of order")
        await node(page, "L001").click()
        await expect(details).to_contain_text("Try 1 of 3 succeeded")
        await expect(details).to_contain_text("NH968")

    async def test_zoom_fit_and_drag(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        drawing = page.locator("#stage svg")
        whole = await drawing.get_attribute("viewBox")
        await page.get_by_role("button", name="Zoom in").click()
        await expect(drawing).not_to_have_attribute("viewBox", str(whole))
        near = await drawing.get_attribute("viewBox")
        box = await page.locator("#stage").bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + 8
        await page.mouse.move(x, y)
        await page.mouse.down()
        await page.mouse.move(x - 80, y, steps=4)
        await page.mouse.up()
        await expect(drawing).not_to_have_attribute("viewBox", str(near))
        await page.get_by_role("button", name="Fit").click()
        await expect(drawing).to_have_attribute("viewBox", str(whole))
        await expect(page.locator("#details")).to_have_count(0)

    async def test_a_small_graph_opens_whole(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await expect(page.locator("#stage")).to_have_attribute("data-more", "")
        first = await page.locator("#stage svg").get_attribute("viewBox")
        await page.get_by_role("button", name="Fit").click()
        await expect(page.locator("#stage svg")).to_have_attribute("viewBox", str(first))

    async def test_a_large_graph_shows_where_it_goes_on_and_is_moved_by_the_wheel(
        self, admin: Window, office: Office
    ) -> None:
        office.load_plan_text(chain(30))
        run_id = await started(office, "chain")
        page = await admin.live(f"/console/runs/{run_id}")
        stage = page.locator("#stage")
        await expect(stage).to_have_attribute("data-more", "right")
        await stage.hover()
        await page.mouse.wheel(300, 0)
        await expect(stage).to_have_attribute("data-more", "left right")
        await page.mouse.wheel(100_000, 0)
        await expect(stage).to_have_attribute("data-more", "left")

    async def test_a_focused_box_keeps_the_focus_while_the_run_moves(
        self, admin: Window, office: Office
    ) -> None:
        run_id = await started(office, "hold", RunStatus.RUNNING)
        page = await admin.live(f"/console/runs/{run_id}")
        await node(page, "L001").focus()
        office.door.opened.set()
        await expect(node(page, "L001")).to_contain_class("done")
        await expect(node(page, "L001")).to_be_focused()

    async def test_a_graph_of_two_hundred_boxes_can_be_read(
        self, admin: Window, office: Office
    ) -> None:
        office.load_plan_text(chain(100))
        run_id = await started(office, "chain")
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(page.locator("#stage .node")).to_have_count(201)
        height = await node(page, "001").evaluate("one => one.getBoundingClientRect().height")
        assert height >= 24

    async def test_what_people_wrote_is_only_ever_text(self, admin: Window, office: Office) -> None:
        text = chain(2, "evil").replace("Step 002 审核", '"<img src=x onerror=alert(1)>\u202e"')
        office.load_plan_text(text)
        run_id = await started(office, "evil")
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(node(page, "002")).to_contain_text("<img src=x")
        await expect(page.locator("#main img")).to_have_count(0)


class TestPast:
    async def test_the_scrubber_shows_the_graph_as_it_was(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await expect(node(page, "L002")).to_contain_class("failed")
        await page.get_by_label("History").press("Home")
        await expect(page.locator("#moment")).to_contain_text("Event 1 of")
        await expect(page.locator("#moment")).to_contain_text("started trip")
        await expect(node(page, "L002")).to_contain_class("idle")
        await page.get_by_role("button", name="Now").click()
        await expect(page.locator("#moment")).to_have_count(0)
        await expect(node(page, "L002")).to_contain_class("failed")

    async def test_details_are_those_of_that_moment(self, admin: Window, stuck: str) -> None:
        page = await admin.live(f"/console/runs/{stuck}")
        await page.get_by_label("History").press("Home")
        await expect(page.locator("#moment")).to_be_visible()
        await node(page, "002").click()
        await expect(page.locator("#details")).to_contain_text("As it was at event 1")
        await expect(page.locator("#details")).not_to_contain_text("NH968")

    async def test_the_past_stays_while_the_run_moves(self, admin: Window, office: Office) -> None:
        run_id = await started(office, "hold", RunStatus.RUNNING)
        page = await admin.live(f"/console/runs/{run_id}")
        await page.locator("#at-1").click()
        await expect(page.locator("#moment")).to_contain_text("Event 1 of 2")
        office.door.opened.set()
        await expect(status(page)).to_have_text("Done")
        await expect(page.locator("#moment")).to_contain_text("Event 1 of 2")
        await page.get_by_role("button", name="Now").click()
        await expect(node(page, "L001")).to_contain_class("done")


class TestQuestions:
    async def test_the_runs_question_is_answered_on_the_spot(
        self, admin: Window, office: Office
    ) -> None:
        run_id = await started(office, "computer", RunStatus.PAUSE)
        page = await admin.live(f"/console/runs/{run_id}")
        await page.get_by_label("ThinkPad X1").check()
        await page.get_by_role("button", name="Submit").click()
        await expect(status(page)).to_have_text("Done")

    async def test_a_question_that_comes_later_shows_itself(
        self, admin: Window, office: Office
    ) -> None:
        office.load_plan_text(LATER)
        run_id = await started(office, "later", RunStatus.RUNNING)
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(page.locator("#timeline")).to_contain_text("hold_door")
        await expect(page.locator(".question")).to_have_count(0)
        office.door.opened.set()
        await page.get_by_label("ThinkPad").check()
        await page.get_by_role("button", name="Submit").click()
        await expect(status(page)).to_have_text("Done")

    async def test_sub_runs_and_their_questions(self, admin: Window, office: Office) -> None:
        office.load_plan_text(OUTER)
        run_id = await started(office, "outer", RunStatus.PAUSE)
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(page.get_by_label("ThinkPad X1")).to_be_visible()
        child = page.locator("#children a")
        await expect(child).to_have_text("Computer for a colleague")
        await child.click()
        parent = page.locator("#run-head").get_by_role("link", name=run_id, exact=True)
        await expect(parent).to_have_attribute("href", f"/console/runs/{run_id}")


class TestOtherKinds:
    async def test_a_chat_leads_to_the_chat_and_tells_its_story(
        self, admin: Window, backend: Backend
    ) -> None:
        run_id = await chat(backend)
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(page.get_by_role("link", name="Open the chat")).to_have_attribute(
            "href", f"/console/chat/{run_id}"
        )
        await expect(page.locator("#timeline")).to_contain_text("said: 张三")
        await expect(page.locator("#timeline")).to_contain_text("calls apply_computer (c1)")
        await expect(page.locator("#stage")).to_have_count(0)

    async def test_a_conversation_shows_its_tasks(
        self, admin: Window, backend: Backend, office: Office
    ) -> None:
        run_id = await conversation(backend, admin)
        page = await admin.live(f"/console/runs/{run_id}")
        await expect(page.locator("#tasks")).to_contain_text("Load the figures")
        await expect(node(page, "t1")).to_contain_class("running")
        await page.get_by_role("button", name="load", exact=True).click()
        await expect(page.locator("#details")).to_contain_text("Try 1 of 3, under way")
        await press(page, "Pause…", "Pause")
        await expect(page.get_by_role("button", name="Resume…")).to_be_visible()
        office.door.opened.set()
        await press(page, "Resume…", "Resume")
        await expect(status(page)).to_have_text("Done")
        await expect(page.locator("#tasks .pill")).to_have_text(["done", "done"])
        graph = f"{backend.url}/console/parts/runs/{run_id}/graph"
        drawn = [
            await (await admin.context.request.get(f"{graph}?at={at}")).text() for at in (1, 9)
        ]
        assert ["<svg" in one for one in drawn] == [False, True]


async def test_it_fits_a_narrow_window(open_window: OpenWindow, stuck: str, locale: str) -> None:
    window = await open_window(viewport=NARROW, locale=locale)
    page = await window.live(f"/console/runs/{stuck}")
    assert await fits(page)
    await node(page, "L002").click()
    await expect(page.locator("#details")).to_be_visible()
    assert await fits(page)


async def test_the_story_is_told_in_chinese(open_window: OpenWindow, stuck: str) -> None:
    page = await (await open_window(locale="zh-CN")).live(f"/console/runs/{stuck}")
    await expect(page.locator("#timeline")).to_contain_text("启动了 trip")
    await expect(node(page, "L003")).to_contain_text("等待人工处理")


async def test_a_run_of_sixty_boxes_weighs_at_most_sixty_kilobytes(
    browser: Browser, backend: Backend, office: Office
) -> None:
    """A first visit, with nothing kept from before, and everything that it fetched, as sent."""
    office.load_plan_text(chain(30))
    run_id = await started(office, "chain")
    async with window(browser, backend) as visitor:
        seen: list[Request] = []
        visitor.context.on("requestfinished", lambda one: seen.append(one))
        page = await visitor.live(f"/console/runs/{run_id}")
        await expect(page.locator("#stage .node")).to_have_count(61)
        await page.evaluate("new Promise((wake) => requestIdleCallback(wake))")
        sent = {one.url: (await one.sizes())["responseBodySize"] for one in seen}
        unpacked = {one.url: len(await (await one.response()).body()) for one in seen}
    async with httpx.AsyncClient(base_url=backend.url, trust_env=False) as client:
        worker = await client.get(address("live_worker.js"))  # no page sees a shared worker fetched
    sent["worker"], unpacked["worker"] = int(worker.headers["content-length"]), len(worker.content)
    assert {one.rpartition("/")[2] for one in sent} >= {
        run_id,
        "console.css",
        "graph.js",
        "live.js",
    }
    assert sum(sent.values()) <= 60_000, sent
    assert sum(unpacked.values()) <= 120_000, unpacked
