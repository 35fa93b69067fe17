"""Every page as axe-core sees it, in both themes: no violation that is more than minor."""

from __future__ import annotations

import pytest
from axe_scene import check
from card_scene import CLEAN_UP, TRAVEL
from console_chat import Bank, a_bank
from console_plans import started
from console_scene import NARROW, Backend, OpenWindow, Window
from playwright.async_api import Page, expect
from run_scene import conversation, trip

from holdfast.model.run import RunStatus

REFUSED = "422"
HASTY = CLEAN_UP.replace("clean_up", "hasty").replace("timeout_seconds: 600", "timeout_seconds: 1")
PAUSE = RunStatus.PAUSE


@pytest.fixture
def bank() -> Bank:
    """A bank that also travels and cleans up: every kind of card there is."""
    bank = a_bank()
    for text in (TRAVEL, CLEAN_UP, HASTY):
        bank.load_plan_text(text)
    return bank


@pytest.fixture
def app(bank: Bank) -> Bank:
    return bank


async def asked(bank: Bank, wish: str = "pay 9") -> str:
    """A chat in which the clerk has been told something, and rests or asks."""
    session = await bank.sessions.open("clerk", by="Will Zhang")
    await bank.sessions.say(session.id, wish, by="Will Zhang")
    await session.wait_until_settled(30)
    return session.id


async def at_the_card(admin: Window, bank: Bank, run_id: str) -> Page:
    row = next(one for one in await bank.inbox() if one.root_id == run_id)
    page = await admin.live(f"/console/inbox/{row.question_id}")
    await expect(page.locator(".question")).to_be_visible()
    return page


class TestRuns:
    async def test_no_runs(self, admin: Window) -> None:
        page = await admin.live()
        await expect(page.locator(".empty")).to_be_visible()
        await check(page)

    async def test_runs_of_every_kind_and_what_can_be_pressed(
        self, admin: Window, bank: Bank
    ) -> None:
        for plan_id, status in (
            ("greet", RunStatus.DONE),
            ("computer", PAUSE),
            ("fragile", RunStatus.ERROR),
            ("hold", RunStatus.RUNNING),
        ):
            await started(bank, plan_id, status)
        await bank.cancel(await started(bank, "computer", PAUSE))
        await asked(bank)
        page = await admin.live()
        await page.get_by_label("Select all on this page").check()
        await page.get_by_text("Start a run").click()
        await check(page)
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Cancel…").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await check(page)

    async def test_nothing_that_fits(self, admin: Window, bank: Bank) -> None:
        await started(bank, "greet")
        await check(await admin.live("/console/runs?status=error"))

    async def test_on_a_telephone(self, open_window: OpenWindow, bank: Bank) -> None:
        await started(bank, "computer", PAUSE)
        await check(await (await open_window(viewport=NARROW)).live())


class TestRun:
    async def test_a_failed_step_an_open_question_and_a_box_opened(
        self, admin: Window, bank: Bank
    ) -> None:
        page = await admin.live(f"/console/runs/{await trip(bank)}")
        await expect(page.locator(".question")).to_be_visible()
        await page.locator('#stage .node[data-id="L002"]').first.click()
        await expect(page.locator(".node-details")).to_be_visible()
        await check(page)

    async def test_as_it_was(self, admin: Window, bank: Bank) -> None:
        page = await admin.live(f"/console/runs/{await trip(bank)}")
        await page.get_by_label("History").press("Home")
        await expect(page.locator("#moment")).to_be_visible()
        await check(page)

    @pytest.mark.parametrize("action", ["resume", "cancel", "skip", "mark-done"])
    async def test_a_press_that_asks_first(self, admin: Window, bank: Bank, action: str) -> None:
        page = await admin.live(f"/console/runs/{await trip(bank)}")
        await page.locator(f'[data-do="{action}"]').first.click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await check(page)

    async def test_a_conversation_with_its_tasks(
        self, admin: Window, backend: Backend, bank: Bank
    ) -> None:
        page = await admin.live(f"/console/runs/{await conversation(backend, admin)}")
        await expect(page.locator("#tasks")).to_be_visible()
        await check(page)
        bank.door.opened.set()

    async def test_a_chat_seen_as_a_run(self, admin: Window, bank: Bank) -> None:
        page = await admin.live(f"/console/runs/{await asked(bank)}")
        await expect(page.locator(".question")).to_be_visible()
        await check(page)


class TestInbox:
    async def test_nothing_to_answer(self, admin: Window) -> None:
        await check(await admin.live("/console/inbox"))

    async def test_an_approval_with_its_arguments_open(self, admin: Window, bank: Bank) -> None:
        page = await at_the_card(admin, bank, await asked(bank))
        admin.forgive(REFUSED)
        await page.get_by_text("Edit the arguments").click()
        await page.get_by_text("Raw JSON").click()
        await page.get_by_label("Amount").fill("nine")
        await page.get_by_role("button", name="Approve and run").click()
        await expect(page.locator("[aria-invalid=true]")).to_be_visible()
        await check(page)

    async def test_terminating_asks_again(self, admin: Window, bank: Bank) -> None:
        page = await at_the_card(admin, bank, await asked(bank))
        await page.locator("[data-again]").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await check(page)

    async def test_a_form_with_every_field_and_its_mistakes(
        self, admin: Window, bank: Bank
    ) -> None:
        page = await at_the_card(admin, bank, await started(bank, "travel", PAUSE))
        admin.forgive(REFUSED)
        await page.get_by_role("group", name="Needs a visa").get_by_label("Yes").check()
        await page.get_by_label("Deluxe").check()
        await page.get_by_label("Airline").select_option("other")
        await check(page)
        await page.locator(".question button[type=submit]").click()
        await expect(page.get_by_role("alert").first).to_contain_text("Please fix")
        await check(page)

    async def test_a_dangerous_choice(self, admin: Window, bank: Bank) -> None:
        await check(await at_the_card(admin, bank, await started(bank, "clean_up", PAUSE)))

    async def test_what_expired(self, admin: Window, bank: Bank) -> None:
        page = await admin.live("/console/inbox?tab=expired")
        await bank.plans.start_plan_by_prompt("hasty", "hasty")
        await page.locator("#inbox-queue li a").first.click()
        await expect(page.locator(".ending")).to_be_visible()
        await check(page)

    async def test_what_was_answered(self, admin: Window, bank: Bank) -> None:
        page = await at_the_card(admin, bank, await asked(bank))
        await page.get_by_label("Reason or feedback").first.fill("not today")
        await page.get_by_role("button", name="Reject", exact=True).click()
        await expect(page.locator(".ending")).to_be_visible()
        await check(page)

    async def test_many_answered_at_once(self, admin: Window, bank: Bank) -> None:
        for _ in range(2):
            await asked(bank)
        page = await admin.live("/console/inbox")
        for box in await page.locator("#inbox-queue input[type=checkbox]").all():
            await box.check()
        await check(page)
        await page.locator("#bulk-options button").first.click()
        await expect(page.locator("#bulk-list")).to_be_visible()
        await check(page)

    async def test_whoever_may_not_answer(self, open_window: OpenWindow, bank: Bank) -> None:
        run_id = await asked(bank)
        viewer = await open_window(name="Some viewer", roles=("viewer",))
        await check(await at_the_card(viewer, bank, run_id))


class TestChat:
    async def test_the_list(self, admin: Window, bank: Bank) -> None:
        await check(await admin.live("/console/chat"))
        await asked(bank)
        await check(await admin.live("/console/chat"))

    async def test_a_talk_with_code_calls_and_a_question(self, admin: Window, bank: Bank) -> None:
        session = await asked(bank, "code")
        bank.door.opened.set()
        for wish in ("wait", "pay 9"):
            await bank.sessions.say(session, wish, by="Will Zhang")
            await (await bank.sessions.session(session)).wait_until_settled(30)
        page = await admin.live(f"/console/chat/{session}")
        await page.locator(".called summary").first.click()
        await check(page)
        await page.get_by_role("button", name="Stop…").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await check(page)

    async def test_a_talk_that_failed(self, admin: Window, bank: Bank) -> None:
        bank.clerk.broken = True
        page = await admin.live(f"/console/chat/{await asked(bank, 'hello')}")
        await expect(page.locator("#resume")).to_be_visible()
        await check(page)


class TestPlans:
    async def test_the_list(self, admin: Window) -> None:
        await check(await admin.live("/console/plans"))

    async def test_a_plan_with_a_start_form_and_its_mistakes(self, admin: Window) -> None:
        page = await admin.live("/console/plans/computer")
        admin.forgive(REFUSED)
        await page.get_by_label("姓名").fill("")
        await page.get_by_role("button", name="Start").click()
        await expect(page.locator("[aria-invalid=true]")).to_be_visible()
        await check(page)

    async def test_a_text_with_mistakes(self, admin: Window) -> None:
        page = await admin.live("/console/plans/computer")
        admin.forgive(REFUSED)
        source = page.get_by_role("textbox", name="Source")
        await source.fill((await source.input_value()).replace("apply_computer", "nobody_has_it"))
        await page.get_by_role("button", name="Check").click()
        await expect(page.get_by_role("list", name="Mistakes, by line")).to_be_visible()
        await check(page)

    async def test_a_new_plan(self, admin: Window) -> None:
        await check(await admin.live("/console/plans/~new"))


class TestTheRest:
    async def test_signing_in(self, open_window: OpenWindow) -> None:
        stranger = await open_window(signed_in=False)
        stranger.forgive("401")
        page = await stranger.open("/console/runs")
        await page.get_by_role("textbox").fill("wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator(".error")).not_to_be_empty()
        await check(page)

    async def test_nothing_here_and_not_for_you(self, open_window: OpenWindow) -> None:
        one = await open_window(roles=("finance",))
        one.forgive("404")
        one.forgive("403")
        await check(await one.open("/console/nowhere"))
        await check(await one.open("/console/runs"))

    async def test_the_menus_open(self, admin: Window) -> None:
        page = await admin.live()
        for menu in await page.locator(".tools .menu summary").all():
            await menu.click()
            await check(page)

    async def test_without_a_connection(self, admin: Window, backend: Backend) -> None:
        admin.forgive("ERR_")
        page = await admin.live()
        await backend.stop()
        await expect(page.locator("html")).not_to_have_attribute("data-live", "live")
        await check(page)
        await backend.start()
