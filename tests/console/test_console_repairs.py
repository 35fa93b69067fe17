"""Repairs in a browser: the diagnosis, the proposal as a question's card, the plan that changed.

Will Zhang's access fails in a real office, because HR does not know him; the repair makes the
profile first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from axe_scene import check
from card_scene import HOSTILE, at_card, card
from console_scene import NARROW, Backend, OpenWindow, Window, fits, reach, serving
from playwright.async_api import Locator, Page, expect
from repair_scene import ODD, RepairScene, a_repair_scene

from holdfast.console.views import repair_card
from holdfast.console.views.repair_card import changes, said, short_facts
from holdfast.console.views.repairs import clue_of
from holdfast.i18n.message import msg
from holdfast.model.repair import Evidence
from holdfast.model.run import RunStatus
from holdfast.testing.model_script import Seen, call
from holdfast.testing.scripted_model import ScriptedModel

REFUSED = "403 (Forbidden"
CALLS = ["create_employee_profile", "grant_access", "send_email"]
HOSTILE_AS_TEXT = "<script>alert(1)</script> <b>bold</b> ⟨202E⟩evil⟨202C⟩ &amp;"


@pytest_asyncio.fixture(loop_scope="session")
async def scene() -> AsyncIterator[RepairScene]:
    async with a_repair_scene() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def backend(scene: RepairScene) -> AsyncIterator[Backend]:
    async with serving(scene.app) as one:
        yield one


async def at_run(window: Window, run_id: str) -> Page:
    return await window.live(f"/console/runs/{run_id}")


def node(page: Page, node_id: str) -> Locator:
    return page.locator(f'#stage .node[data-id="{node_id}"]')


def tools(asked: Locator) -> Locator:
    """Those of the rehearsal's calls, as all goes well."""
    return asked.locator(".calls").first.locator("b")


class TestDiagnosis:
    async def test_the_run_says_what_is_wrong_and_what_a_resume_alone_would_do(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed()
        page = await at_run(admin, row.root_id)
        diagnosis = page.locator("#diagnosis")
        await expect(diagnosis).to_contain_text("L001 (grant_access)")
        await expect(diagnosis).to_contain_text("something else has to be done first")
        await expect(diagnosis).to_contain_text("grant_access lacks something that must be first")
        await expect(diagnosis).to_contain_text("A repair waits for consent")
        await expect(diagnosis).to_contain_text("A rule")
        await expect(diagnosis).to_contain_text("Never")
        await expect(diagnosis.locator(".alone")).to_contain_text("runs again: L001 (grant_access)")
        proposed = diagnosis.get_by_role("link", name="create_employee_profile makes what L001")
        await proposed.click()
        await expect(card(page, row)).to_be_visible()

    async def test_evidence_leads_to_its_entry_in_the_timeline(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed()
        page = await at_run(admin, row.root_id)
        clue = page.get_by_role("list", name="Evidence").get_by_role("listitem")
        await expect(clue).to_contain_text("HR has no employee 'WZ001': create the profile first")
        await expect(clue).to_contain_text("status 409")
        for _ in range(2):
            await clue.get_by_role("link", name="Event 3").click()
            entry = page.locator("#told-3")
            await expect(entry.get_by_role("button")).to_be_focused()
            await expect(entry).to_contain_text("L001 (grant_access) failed")
            await page.locator("#timeline").get_by_role("button").first.focus()

    async def test_an_entry_on_an_older_page_of_the_timeline_is_found_too(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.mended()
        page = await at_run(admin, f"{row.root_id}#told-1")
        await expect(page.locator("#told-1").get_by_role("button")).to_be_focused()
        await expect(page.get_by_role("button", name="Newest")).to_be_visible()

    async def test_a_sub_runs_failure_stands_on_the_run_above_and_is_repaired_from_there(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed("outer", {})
        assert row.run_id != row.root_id
        page = await at_run(admin, row.root_id)
        diagnosis = page.locator("#diagnosis")
        await expect(diagnosis).to_contain_text("L001 (grant_access)")
        await expect(diagnosis.get_by_role("link", name=row.run_id)).to_be_visible()
        await diagnosis.get_by_role("link", name="Event 3").click()
        await expect(page.locator("#told-3").get_by_role("button")).to_be_focused()
        assert page.url.endswith(f"/{row.run_id}#told-3")
        await page.go_back()
        await card(page, row).get_by_role("button", name="Repair and go on").click()
        await scene.came_to(row.run_id, RunStatus.DONE)
        assert await scene.counts() == {
            "grant_access": 2,
            "create_employee_profile": 1,
            "send_email": 1,
        }


class TestProposal:
    async def test_the_card_has_the_change_the_rehearsal_and_who_may_approve(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed()
        _, asked = await at_card(admin, row)
        change = asked.locator(".changes li")
        await expect(change).to_have_count(1)
        await expect(change).to_contain_text("before L001 comes R1: calls create_employee_profile")
        await expect(change.locator(".mark")).to_have_text("+")
        await expect(tools(asked)).to_have_text(CALLS)
        calls = asked.locator(".calls").first.locator("> li")
        await expect(calls.nth(0)).to_contain_text("will.zhang@example.com")
        await expect(calls.nth(0)).to_contain_text("acts")
        await expect(calls.nth(2)).to_contain_text("your badge is ‹L001.badge›")
        await expect(asked).to_contain_text("The goal is reached")
        await expect(asked).to_contain_text("To call what acts, or to pass new values")
        await expect(asked).to_contain_text("Approver")
        await expect(asked).to_contain_text("nothing was called")
        assert await scene.counts() == {"grant_access": 1}

        await expect(asked.get_by_text("The goal is not reached")).to_be_hidden()
        await asked.get_by_text("If what is repaired fails again").click()
        await expect(asked.get_by_text("The goal is not reached")).to_be_visible()
        await asked.get_by_text("Raw JSON").click()
        await expect(asked.locator("pre")).to_contain_text('"op": "insert_before"')

    async def test_the_picture_marks_by_signs_what_is_new_changed_and_gone(
        self, scene: RepairScene, open_window: OpenWindow
    ) -> None:
        row = await scene.failed()
        narrow = await open_window(viewport=NARROW)
        page, asked = await at_card(narrow, row)
        picture = asked.get_by_role("group", name="Picture of the change")
        marked = picture.locator('.node:is([class*="added"], [class*="changed"]) .label')
        await expect(marked).to_have_text(
            ["+ R1 create_employee_profile", "+ R1 create_employee_profile", "~ L001 grant_access"]
        )
        await expect(picture.locator(".edge.removed text")).to_contain_text("−")
        await expect(picture.locator(".node.added").first).to_be_in_viewport()
        assert await picture.evaluate("one => one.scrollLeft") > 0, "it begins at the change"
        box = picture.locator(".node.added rect").first
        assert await box.evaluate("one => getComputedStyle(one).strokeWidth") == "2.5px"
        assert await fits(page)

    async def test_of_what_is_very_large_only_so_much_is_shown(
        self, scene: RepairScene, admin: Window, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(repair_card, "MOST_DRAWN", 1)
        monkeypatch.setattr(repair_card, "MOST_CALLS", 1)
        _, asked = await at_card(admin, await scene.failed())
        await expect(asked).to_contain_text("The plan is too large to be drawn here.")
        await expect(asked.locator(".picture")).to_have_count(0)
        await expect(tools(asked)).to_have_text(CALLS[:1])
        await expect(asked).to_contain_text("and 2 more")

    async def test_a_box_of_the_picture_is_no_box_of_the_run(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed()
        page = await at_run(admin, row.root_id)
        await card(page, row).locator(".picture .node.added").first.click()
        await node(page, "L001").click()
        await expect(page.locator("#details-title")).to_contain_text("L001")

    async def test_approved_by_keyboard_the_run_ends_done_and_shows_its_change(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed()
        page = await at_run(admin, row.root_id)
        asked = card(page, row)
        button = asked.get_by_role("button", name="Repair and go on")
        await expect(button).to_have_accessible_description(
            "Changes the plan of this run as shown, and resumes it. "
            "Calls that need approval still ask."
        )
        await reach(page, button)
        await page.keyboard.press("Enter")
        await expect(page.locator("#run-status")).to_contain_text("Done")
        assert await scene.counts() == {
            "grant_access": 2,
            "create_employee_profile": 1,
            "send_email": 1,
        }
        changed = page.locator("#patches")
        await expect(changed).to_contain_text("This run's plan was changed by Will Zhang,")
        await expect(changed).to_contain_text("before L001 comes R1")
        await expect(changed).to_contain_text("It has helped")
        await expect(node(page, "R1")).to_have_count(2)
        await page.get_by_text("1 case that is over").click()
        await expect(page.locator("#diagnosis")).to_contain_text("The repair has helped")

    async def test_the_graph_is_of_the_plan_that_held_then(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.mended()
        page = await at_run(admin, row.root_id)
        await expect(node(page, "R1")).to_have_count(2)
        await page.get_by_role("button", name="Graph before").click()
        await expect(page.locator("#moment")).to_contain_text("Event 9 of 21")
        await expect(node(page, "R1")).to_have_count(0)
        await page.get_by_role("button", name="Graph after").click()
        await expect(page.locator("#moment")).to_contain_text("repaired the plan of this run")
        await expect(node(page, "R1")).to_have_count(2)
        await page.get_by_text("Picture of the change").click()
        picture = page.locator("#patches").get_by_role("group", name="Picture of the change")
        await expect(picture.locator(".node.added").first).to_contain_text("+ R1")

    async def test_refused_with_a_reason_the_run_waits_and_says_why(
        self, scene: RepairScene, admin: Window
    ) -> None:
        row = await scene.failed()
        page, asked = await at_card(admin, row)
        await asked.get_by_label("Reason or feedback").fill("HR makes profiles by hand")
        await asked.get_by_role("button", name="Leave the plan as it is").click()
        await expect(asked).to_contain_text("Will Zhang answered: Leave the plan as it is")
        await expect(asked).to_contain_text("before L001 comes R1")
        await expect(asked.locator(".calls")).to_have_count(0)
        page = await at_run(admin, row.root_id)
        diagnosis = page.locator("#diagnosis")
        await expect(diagnosis).to_contain_text("No repair is proposed")
        await expect(diagnosis).to_contain_text("HR makes profiles by hand")
        await expect(page.locator("#run-status")).to_contain_text("Failed")
        await expect(page.locator("#failures-resume")).to_be_visible()
        await expect(page.locator("#patches")).to_have_count(0)
        assert await scene.counts() == {"grant_access": 1}

    async def test_many_at_once_are_shown_whole_before_they_are_answered(
        self, scene: RepairScene, admin: Window
    ) -> None:
        rows = [await scene.failed() for _ in range(2)]
        page = await admin.live("/console/inbox")
        await expect(page.locator("#inbox-queue li")).to_have_count(2)
        await expect(page.locator("#inbox-queue li").first).to_contain_text("makes what L001 lacks")
        for one in await page.locator("#inbox-queue input").all():
            await one.check()
        await page.locator("#bulk-options").get_by_role("button", name="Leave the plan").click()
        listed = page.locator("#bulk-list > li")
        await expect(listed).to_have_count(2)
        await expect(listed.first.locator(".calls b").first).to_have_text(CALLS[0])
        await page.locator("#bulk-send").click()
        await expect(page.locator("#inbox-queue")).to_contain_text("Nothing waits for you")
        for row in rows:
            await scene.came_to(row.root_id, RunStatus.ERROR)


class TestPeople:
    async def test_who_proposed_a_repair_that_acts_may_only_refuse_it(
        self, scene: RepairScene, open_window: OpenWindow
    ) -> None:
        first = await scene.failed()
        row = await scene.proposed(first.root_id, by="Will Zhang", reason="the profile is missing")
        will = await open_window(name="Will Zhang", roles=["operator", "approver"])
        ann = await open_window(name="Ann", roles=["approver"])

        _, asked = await at_card(will, row)
        await expect(asked).to_contain_text("You proposed this repair: another person must approve")
        await expect(asked).to_contain_text("Approver, but not Will Zhang")
        await expect(asked.locator("blockquote").first).to_have_text("the profile is missing")
        await expect(asked.get_by_role("button")).to_have_text(["Leave the plan as it is"])

        _, asked = await at_card(ann, row)
        await asked.get_by_role("button", name="Repair and go on").click()
        await expect(asked).to_have_attribute("data-status", "answered")
        await scene.came_to(row.root_id, RunStatus.DONE)

    async def test_who_may_not_answer_sees_it_all_and_no_buttons(
        self, scene: RepairScene, open_window: OpenWindow
    ) -> None:
        row = await scene.failed()
        operator = await open_window(name="Ann", roles=["operator"])
        _, asked = await at_card(operator, row)
        await expect(tools(asked)).to_have_text(CALLS)
        await expect(asked).to_contain_text("You cannot answer this")
        await expect(asked.get_by_role("button")).to_have_count(0)


class TestWordsOfOthers:
    @pytest_asyncio.fixture(loop_scope="session")
    async def scene(self) -> AsyncIterator[RepairScene]:
        """A tool that says the worst, and a model that says it again."""
        async with a_repair_scene() as one:
            one.app.models.default_model = ScriptedModel(_hostile)

            @one.app.tool
            async def odd_door() -> dict[str, Any]:
                return {"success": False, "error": f"odd \x07 {HOSTILE}"}

            one.app.load_plan_text(ODD)
            yield one

    async def test_it_is_text_and_nothing_in_it_is_hidden(
        self, scene: RepairScene, admin: Window
    ) -> None:
        run_id = await scene.stuck("odd")
        page = await at_run(admin, run_id)
        diagnosis = page.locator("#diagnosis")
        await expect(diagnosis).to_contain_text("1 time")
        await expect(diagnosis).to_contain_text(f"The model says: “{HOSTILE_AS_TEXT}”")
        await expect(diagnosis.locator(".clues")).to_contain_text(f"odd ␇ {HOSTILE_AS_TEXT}")
        await expect(page.get_by_text("bold", exact=True)).to_have_count(0)
        await expect(page.locator("main script")).to_have_count(0)

    async def test_nor_in_a_proposal(self, scene: RepairScene, admin: Window) -> None:
        run_id = await scene.stuck("odd")
        asking = {"op": "ask_first", "listener_id": "L001", "choice": {"title": HOSTILE}}
        row = await scene.proposed(run_id, asking, by="Will Zhang", reason=HOSTILE)
        page, asked = await at_card(admin, row)
        await expect(asked.locator("blockquote").first).to_have_text(HOSTILE_AS_TEXT)
        await expect(asked.locator(".changes")).to_contain_text(HOSTILE_AS_TEXT)
        await expect(page.get_by_text("bold", exact=True)).to_have_count(0)
        await expect(page.locator("main script")).to_have_count(0)


def _hostile(_: Seen) -> Any:
    return call("diagnose", cause="unknown", because=["E3"], choice="person", summary=HOSTILE)


class TestForEverybody:
    async def test_axe_has_nothing_to_say(
        self, scene: RepairScene, open_window: OpenWindow, admin: Window
    ) -> None:
        row, done = await scene.failed(), await scene.mended()
        narrow = await open_window(viewport=NARROW)
        for window in (admin, narrow):
            page = await at_run(window, row.root_id)
            await expect(card(page, row)).to_be_visible()
            await check(page)
            page, asked = await at_card(window, row)
            for folded in await asked.locator("details > summary").all():
                await folded.click()
            await check(page)
            page = await at_run(window, done.root_id)
            await page.get_by_text("1 case that is over").click()
            await page.get_by_text("Picture of the change").click()
            await expect(page.locator("#patches .picture")).to_be_visible()
            await check(page)

    @pytest.mark.parametrize("width", [390, 1440, 2560])
    async def test_it_fits_in_either_language(
        self, scene: RepairScene, open_window: OpenWindow, locale: str, width: int
    ) -> None:
        row, done = await scene.failed(), await scene.mended()
        window = await open_window(locale=locale, viewport={"width": width, "height": 900})
        for path in (f"runs/{row.root_id}", f"inbox/{row.question_id}", f"runs/{done.root_id}"):
            assert await fits(await window.live(f"/console/{path}"))

    async def test_a_picture_that_is_not_there(self, scene: RepairScene, admin: Window) -> None:
        row = await scene.failed()
        place = f"{admin.backend.url}/console/parts/runs/{row.root_id}/patches/nowhere"
        assert (await admin.context.request.get(place)).status == 404


class TestTexts:
    def test_ours_are_told_apart_from_those_of_others(self) -> None:
        assert said(msg("nothing"), "model:k1").by == ""
        assert said("nothing", "model:k1").by == "model"
        assert said("nothing", "").by == "other"
        assert said("", "model:k1").by == ""

    def test_what_is_known_of_a_change_only_in_words_has_no_mark(self) -> None:
        operations = ({"op": "skip"}, {"op": "add"})
        assert [one.mark for one in changes("ab", operations)] == ["removed", "added"]
        assert [one.mark for one in changes("ab", ())] == ["", ""]

    def test_arguments_are_short_and_secrets_are_not_shown(self) -> None:
        secret = "secret:" + "0" * 32
        told = list(short_facts({"a": "x" * 1_000, "b": {"c": 1}, "d": secret}))
        assert len(told[0].text) == 400
        assert told[1].text == '{"c": 1}'
        assert told[2].secret
        assert told[2].text == ""

    def test_evidence_of_another_planner_need_not_be_json(self) -> None:
        assert clue_of(Evidence(3, "it just broke")).message == "it just broke"
        assert clue_of(Evidence(3, '["a"]')).message == '["a"]'
        assert clue_of(Evidence(3, '{"event": "failed", "a": 1}')).event == "failed"
