"""The console for people of few rights: what is not theirs is not there, by whichever way."""

from __future__ import annotations

import pytest
import pytest_asyncio
from axe_scene import check
from console_chat import Bank, a_bank
from console_plans import started
from console_scene import Backend, OpenWindow, Window
from playwright.async_api import expect
from run_scene import trip

from holdfast.journal.port import QuestionRow
from holdfast.model.run import RunStatus

PAUSE, ERROR = RunStatus.PAUSE, RunStatus.ERROR
PAGES = ("/console/runs", "/console/inbox", "/console/chat", "/console/plans")


@pytest.fixture
def bank() -> Bank:
    return a_bank()


@pytest.fixture
def app(bank: Bank) -> Bank:
    return bank


@pytest_asyncio.fixture(loop_scope="session")
async def buyer(open_window: OpenWindow) -> Window:
    """Approves for the plan `computer`, and has no role anywhere else."""
    return await open_window(name="Buyer", roles=(), grants={"computer": ["approver"]})


async def question_of(bank: Bank, run_id: str) -> QuestionRow:
    [row] = [one for one in await bank.inbox() if one.root_id == run_id]
    return row


async def asked(bank: Bank) -> str:
    """A chat in which the clerk waits for consent."""
    session = await bank.sessions.open("clerk", by="Will Zhang")
    await bank.sessions.say(session.id, "pay 9", by="Will Zhang")
    await session.wait_until_settled(30)
    return session.id


class TestGrantsForOnePlan:
    async def test_only_that_plans_runs_and_questions_are_there(
        self, buyer: Window, bank: Bank
    ) -> None:
        mine = await started(bank, "computer", PAUSE)
        for other in ("greet", "fragile"):
            await started(bank, other, RunStatus.DONE, ERROR)
        talk = await asked(bank)

        page = await buyer.live()
        await expect(page.locator("#runs tbody tr")).to_have_count(1)
        await expect(page.locator(f"#row-{mine}")).to_be_visible()
        await expect(page.get_by_label("Plan or agent").locator("option")).to_have_text(
            ["Every plan and agent", "computer"]
        )
        await expect(page.locator("#inbox-count")).to_contain_text("1 question waits")

        await page.goto(f"{buyer.backend.url}/console/inbox")
        await expect(page.locator("#inbox-queue .title")).to_have_text(
            ["apply_computer needs more"]
        )
        await page.goto(f"{buyer.backend.url}/console/chat")
        await expect(page.locator("main")).not_to_contain_text(talk)
        await expect(page.locator("main")).not_to_contain_text("Clerk")
        await expect(page.locator("main")).to_contain_text("No agent is offered to you")
        await expect(page.locator(".account .role")).to_have_text("Only 1 grant")
        await page.goto(f"{buyer.backend.url}/console/plans")
        await expect(page.locator("[id^=plan-]")).to_have_count(1)

    async def test_they_answer_and_do_not_operate(self, buyer: Window, bank: Bank) -> None:
        mine = await started(bank, "computer", PAUSE)
        page = await buyer.live(f"/console/runs/{mine}")
        await expect(page.locator("[data-do]")).to_have_count(0)
        await page.locator('#stage .node[data-id="L001"]').first.click()
        await expect(page.locator("#details")).to_be_visible()
        await expect(page.locator("[data-do]")).to_have_count(0)
        await page.get_by_label("ThinkPad X1").check()
        await page.get_by_role("button", name="Submit").click()
        await expect(page.locator("#run-status")).to_contain_text("Done")
        page = await buyer.live("/console/plans/computer")
        await expect(page.locator("#starting")).to_have_count(0)
        await expect(page.get_by_role("button", name="Register")).to_have_count(0)

    @pytest.mark.parametrize(
        "path",
        [
            "/console/runs/{run}",
            "/console/parts/runs/{run}/head",
            "/console/parts/runs/{run}/graph",
            "/console/parts/runs/{run}/beside",
            "/console/parts/runs/{run}/questions",
            "/console/parts/runs/{run}/timeline",
            "/console/parts/runs/{run}/node?node=L001",
            "/console/parts/runs/{run}/action?name=cancel",
            "/console/chat/{run}",
            "/console/inbox/{question}",
            "/console/parts/cards/{question}",
            "/console/plans/fragile",
        ],
    )
    async def test_the_rest_does_not_exist_for_them(
        self, buyer: Window, bank: Bank, path: str
    ) -> None:
        """As if it had never been: what is not there says the same."""
        run_id = await asked(bank)
        row = await question_of(bank, run_id)
        there = path.format(run=run_id, question=row.question_id)
        nowhere = path.replace("fragile", "nothing").format(run="chat_999999", question="q_999999")
        answers = [
            await buyer.context.request.get(buyer.backend.url + one) for one in (there, nowhere)
        ]
        assert [one.status for one in answers] == [404, 404]
        text = await answers[0].text()
        for told in ("pay", "Clerk", "grant_access", "Will Zhang"):
            assert told not in text

    async def test_what_happens_elsewhere_is_not_heard(
        self, buyer: Window, bank: Bank, backend: Backend
    ) -> None:
        """Neither on the page nor on the wire; the own run, afterwards, is."""
        page = await buyer.live()
        heard = await page.context.new_page()
        await heard.goto(f"{backend.url}/console/plans")
        await heard.evaluate(
            """() => {
                window.told = "";
                const headers = { "Last-Event-ID": document.documentElement.dataset.cursor };
                fetch("/events", { headers }).then(async ({ body }) => {
                    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
                    for (;;) {
                        const { value, done } = await reader.read();
                        if (done) return;
                        window.told += value;
                    }
                });
            }"""
        )
        foreign = await started(bank, "fragile", ERROR)
        talk = await asked(bank)
        mine = await started(bank, "computer", PAUSE)
        await expect(page.locator(f"#row-{mine}")).to_be_visible()
        await expect(page.locator("#runs tbody tr")).to_have_count(1)
        await expect(page.locator("#inbox-count")).to_contain_text("1 question waits")
        await heard.wait_for_function("id => window.told.includes(id)", arg=mine)
        told = await heard.evaluate("window.told")
        assert foreign not in told
        assert talk not in told
        assert "fragile" not in told
        assert "pay" not in told

    async def test_a_grant_by_the_beginning_of_a_name(
        self, open_window: OpenWindow, bank: Bank
    ) -> None:
        await started(bank, "fragile", ERROR)
        mine = await started(bank, "computer", PAUSE)
        window = await open_window(name="Buyer", roles=(), grants={"comp*": ["operator"]})
        page = await window.live()
        await expect(page.locator("#runs tbody tr")).to_have_count(1)
        await page.get_by_label(f"Select {mine}").check()
        await expect(page.get_by_role("button", name="Cancel…")).to_be_visible()
        await page.get_by_role("button", name="Cancel…").click()
        await page.get_by_role("button", name="Cancel 1 run").click()
        await expect(page.locator(f"#row-{mine}")).to_contain_text("Cancelled")


class TestRolesEverywhere:
    async def test_a_viewer_sees_all_and_presses_nothing(
        self, open_window: OpenWindow, bank: Bank
    ) -> None:
        stuck, talk = await trip(bank), await asked(bank)
        window = await open_window(name="Viewer", roles=("viewer",))
        page = await window.live()
        await expect(page.locator("#inbox-count")).to_contain_text("2 questions wait")
        await expect(page.locator("#runs input, #runs button")).to_have_count(0)

        await page.goto(f"{window.backend.url}/console/runs/{stuck}")
        await expect(page.locator("#failures")).to_be_visible()
        await expect(page.locator("main [data-do], .question form")).to_have_count(0)
        card = page.locator(".question")
        await expect(card).to_contain_text("You cannot answer this")
        await expect(card).to_contain_text("approver or operator")

        await page.goto(f"{window.backend.url}/console/chat/{talk}")
        await expect(page.get_by_text("Your role lets you read this chat")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await expect(page.get_by_role("button", name="Stop…")).to_be_hidden()
        await expect(page.locator(".question")).to_contain_text("You cannot answer this")

    async def test_an_operator_acts_but_does_not_approve(
        self, open_window: OpenWindow, bank: Bank
    ) -> None:
        stuck, talk = await trip(bank), await asked(bank)
        window = await open_window(name="Operator", roles=("operator",))
        page = await window.live(f"/console/runs/{stuck}")
        await expect(page.locator("#do-resume")).to_be_visible()
        await expect(page.locator("#do-cancel")).to_be_visible()
        await expect(page.get_by_role("button", name="Submit")).to_be_visible()
        row = await question_of(bank, talk)
        await page.goto(f"{window.backend.url}/console/inbox/{row.question_id}")
        card = page.locator(f"#q-{row.question_id}")
        await expect(card).to_contain_text("this question is for the role approver")
        await expect(card.get_by_role("button")).to_have_count(0)
        await expect(
            page.locator("#inbox-queue li", has_text="pay").locator("input")
        ).to_have_count(0)
        assert bank.paid == []

    async def test_an_approver_answers_and_does_not_act(
        self, open_window: OpenWindow, bank: Bank
    ) -> None:
        stuck, talk = await trip(bank), await asked(bank)
        window = await open_window(name="Approver", roles=("approver",))
        page = await window.live(f"/console/runs/{stuck}")
        await expect(page.get_by_role("button", name="Submit")).to_be_visible()
        await expect(page.locator("[data-do]")).to_have_count(0)
        row = await question_of(bank, talk)
        await page.goto(f"{window.backend.url}/console/inbox/{row.question_id}")
        card = page.locator(f"#q-{row.question_id}")
        await card.get_by_role("button", name="Approve and run").click()
        await expect(card).to_contain_text("Approver answered: Approve and run")
        assert bank.paid == [9]

    @pytest.mark.parametrize("role", ["viewer", "operator", "approver", "author"])
    async def test_no_page_leads_to_a_refusal(
        self, open_window: OpenWindow, bank: Bank, role: str
    ) -> None:
        """Every link that the four pages show is one that may be followed."""
        await trip(bank)
        window = await open_window(name="Somebody", roles=(role,))
        page = await window.live()
        found: set[str] = set()
        for path in PAGES:
            await page.goto(window.backend.url + path)
            links = page.locator("a[href^='/console/']:not([href*='/language/'])")
            found |= set(await links.evaluate_all("all => all.map(one => one.href)"))
        assert len(found) > len(PAGES)
        for link in sorted(found):
            assert (await window.context.request.get(link)).status == 200, link


async def test_who_may_see_nothing_yet_is_told_and_hears_nothing(
    open_window: OpenWindow, bank: Bank
) -> None:
    """A grant for a plan that has no runs: empty pages, and they stay empty."""
    window = await open_window(name="Reader", roles=(), grants={"greet": ["viewer"]})
    page = await window.live()
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    await check(page)
    await started(bank, "computer", PAUSE)
    mine = await started(bank, "greet")
    await expect(page.locator(f"#row-{mine}")).to_be_visible()
    await expect(page.locator("#runs tbody tr")).to_have_count(1)
    await expect(page.locator("#inbox-count")).not_to_contain_text("wait")
