"""The chat pages: talking to an agent that asks before it acts, and coming back to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio
from console_chat import Bank, a_bank
from console_scene import NARROW, Backend, OpenWindow, Window, fits, reach, serving, window
from playwright.async_api import Browser, Locator, Page, expect

from holdfast.model.run import RunStatus

PATIENCE = 30.0


@pytest_asyncio.fixture(loop_scope="session")
async def backend() -> AsyncIterator[Backend]:
    """A server with a clerk who pays with consent."""
    async with serving(a_bank()) as one:
        yield one


@pytest.fixture
def bank(backend: Backend) -> Bank:
    assert isinstance(backend.app, Bank)
    return backend.app


@pytest_asyncio.fixture(loop_scope="session")
async def chat(admin: Window, bank: Bank) -> Page:
    """The page of a chat in which nothing was said yet."""
    return await admin.live(f"/console/chat/{await opened(bank)}")


async def opened(bank: Bank) -> str:
    return (await bank.sessions.open("clerk", by="Will Zhang")).id


async def told(bank: Bank, session_id: str, text: str) -> None:
    """Says something and waits until the clerk rests or asks."""
    await bank.sessions.say(session_id, text, by="Will Zhang")
    await (await bank.sessions.session(session_id)).wait_until_settled(PATIENCE)


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Message").fill(text)
    await page.get_by_role("button", name="Send").click()


def transcript(page: Page) -> Locator:
    return page.get_by_role("log", name="What was said")


def call_of(page: Page, standing: str) -> Locator:
    return transcript(page).locator("summary").filter(has_text=standing)


async def test_a_chat_that_rests_is_ready_for_more(admin: Window, bank: Bank) -> None:
    session_id = await opened(bank)
    page = await admin.live(f"/console/chat/{session_id}")
    await expect(page.get_by_label("Message")).to_be_focused()
    await told(bank, session_id, "hello")
    await expect(page.locator("#chat-head .pill")).to_have_text("Ready")
    await page.get_by_role("link", name="All chats").click()
    await expect(page.locator(f"#row-{session_id} .pill")).to_have_text("Ready")


async def test_a_chat_starts_with_an_agent(admin: Window, backend: Backend) -> None:
    page = await admin.live("/console/chat")
    await expect(page.get_by_text("No chats yet")).to_be_visible()
    await page.get_by_role("button", name="Start a chat with Clerk").click()
    await expect(page).to_have_url(f"{backend.url}/console/chat/chat_000001")
    await expect(page.get_by_role("heading", name="Clerk", level=1)).to_be_visible()
    await expect(page.get_by_text("Say something to Clerk.")).to_be_visible()


async def test_what_is_said_is_answered(chat: Page) -> None:
    await say(chat, "Good morning\nand welcome")
    answer = transcript(chat).locator(".uttered.model")
    await expect(answer).to_contain_text("You said: Good morning")
    await expect(transcript(chat).locator(".uttered.person")).to_contain_text("Will Zhang")
    await expect(chat.get_by_label("Message")).to_have_value("")
    await expect(chat.get_by_text("1 request ·")).to_be_visible()
    await expect(chat.get_by_role("link", name="Run chat_000001")).to_have_attribute(
        "href", "/console/runs/chat_000001"
    )


async def test_the_list_moves_and_leads_to_the_chat(admin: Window, bank: Bank) -> None:
    page = await admin.live("/console/chat")
    session_id = await opened(bank)
    row = page.locator(f"#row-{session_id}")
    await expect(row).to_contain_text("Clerk")
    await told(bank, session_id, "pay 5")
    await expect(row).to_contain_text("1 question waits")
    await expect(row).to_contain_text("1 turn")
    await row.get_by_role("link", name="Clerk").click()
    await expect(transcript(page).get_by_role("article", name="Run pay?")).to_be_visible()


async def test_an_answer_is_seen_while_it_is_spoken(chat: Page, bank: Bank) -> None:
    await say(chat, "slowly does it, my friend, one word after the other")
    speaking = chat.locator("#speaking")
    await expect(speaking).to_contain_text("You said: slowly")
    await expect(speaking).not_to_contain_text("the other")
    await expect(chat.get_by_text("The agent is at work.")).to_be_visible()
    await expect(chat.get_by_role("button", name="Send")).to_be_disabled()
    bank.clerk.held.set()
    await expect(transcript(chat).locator(".uttered.model")).to_contain_text("after the other")
    await expect(speaking).to_be_hidden()
    await expect(chat.get_by_role("button", name="Send")).to_be_enabled()


async def test_the_next_message_is_written_meanwhile(chat: Page, bank: Bank) -> None:
    await say(chat, "slowly does it, my friend, one word after the other")
    await expect(chat.get_by_role("button", name="Send")).to_be_disabled()
    await chat.get_by_label("Message").fill("and then?")
    await chat.get_by_label("Message").press("Enter")
    await chat.reload()
    await expect(chat.get_by_label("Message")).to_have_value("and then?")
    await expect(chat.get_by_text("Thinking…")).to_be_visible()
    bank.clerk.held.set()
    await expect(chat.get_by_role("button", name="Send")).to_be_enabled()
    await chat.get_by_label("Message").press("Enter")
    await expect(transcript(chat)).to_contain_text("You said: and then?")
    await expect(chat.get_by_label("Message")).to_have_value("")


async def test_a_call_waits_for_consent_and_runs_once(chat: Page, bank: Bank) -> None:
    await say(chat, "pay 5")
    card = transcript(chat).get_by_role("article", name="Run pay?")
    await expect(card).to_contain_text("Will Zhang")
    await expect(call_of(chat, "Waits for an answer")).to_be_visible()
    await expect(chat.get_by_text("It waits for an answer to the question above.")).to_be_visible()
    assert bank.paid == []
    await card.get_by_role("button", name="Approve and run").click()
    await expect(transcript(chat)).to_contain_text('Done: {"paid": 5')
    await expect(card).to_have_count(0)
    await expect(transcript(chat)).to_contain_text("answered: Approve and run")
    assert bank.paid == [5]
    await call_of(chat, "Done").click()
    more = transcript(chat).locator(".called .more")
    await expect(more).to_contain_text("amount")
    await expect(more.locator("pre")).to_contain_text('"paid": 5')


async def test_changed_arguments_are_what_runs_and_what_is_shown(chat: Page, bank: Bank) -> None:
    await say(chat, "pay 5")
    card = transcript(chat).get_by_role("article", name="Run pay?")
    await card.get_by_text("Edit the arguments").click()
    await card.get_by_label("amount").fill("4")
    await card.get_by_role("button", name="Approve and run").click()
    await expect(transcript(chat)).to_contain_text('Done: {"paid": 4')
    await call_of(chat, "Done").click()
    await expect(transcript(chat)).to_contain_text("as a person changed them")
    assert bank.paid == [4]


async def test_a_rejected_call_never_runs_and_says_why(chat: Page, bank: Bank) -> None:
    await say(chat, "pay 5")
    card = transcript(chat).get_by_role("article", name="Run pay?")
    await card.get_by_label("Reason or feedback").fill("not today")
    await card.get_by_role("button", name="Reject", exact=True).click()
    await expect(call_of(chat, "Rejected, not run")).to_be_visible()
    await expect(transcript(chat).locator("blockquote")).to_have_text("not today")
    await expect(chat.get_by_role("button", name="Send")).to_be_enabled()
    assert bank.paid == []


async def test_two_questions_are_answered_one_after_the_other(chat: Page, bank: Bank) -> None:
    await say(chat, "pay 5 6")
    cards = transcript(chat).get_by_role("article", name="Run pay?")
    await expect(cards).to_have_count(2)
    await cards.nth(1).get_by_label("Reason or feedback").fill("still thinking")
    await cards.nth(1).evaluate("one => { one.untouched = true; }")
    await cards.nth(0).get_by_role("button", name="Approve and run").click()
    await expect(cards).to_have_count(1)
    await expect(cards.get_by_label("Reason or feedback")).to_have_value("still thinking")
    assert await cards.evaluate("one => one.untouched")
    await cards.get_by_role("button", name="Reject", exact=True).click()
    await expect(transcript(chat)).to_contain_text("Done:")
    assert bank.paid == [5]


async def test_a_reload_in_the_middle_rebuilds_everything(chat: Page, bank: Bank) -> None:
    await say(chat, "hello")
    await expect(transcript(chat)).to_contain_text("You said: hello")
    await say(chat, "pay 7")
    card = transcript(chat).get_by_role("article", name="Run pay?")
    await expect(card).to_be_visible()
    await chat.reload()
    await expect(transcript(chat)).to_contain_text("You said: hello")
    await expect(transcript(chat)).to_contain_text("I will pay.")
    await expect(chat.get_by_role("button", name="Send")).to_be_disabled()
    await card.get_by_role("button", name="Approve and run").click()
    await expect(transcript(chat)).to_contain_text('Done: {"paid": 7')
    before = await chat.locator("#transcript").inner_text()
    await chat.reload()
    await expect(chat.locator("#transcript")).to_have_text(before, use_inner_text=True)
    assert bank.paid == [7]


async def test_stop_asks_and_says_what_is_open(chat: Page, bank: Bank) -> None:
    await say(chat, "pay 5")
    await chat.get_by_role("button", name="Stop…").click()
    dialog = chat.get_by_role("dialog", name="Stop this chat?")
    await expect(dialog.get_by_role("button", name="Keep going")).to_be_focused()
    await expect(dialog.get_by_role("listitem")).to_have_text("pay: Waits for an answer")
    await chat.keyboard.press("Escape")
    assert (await bank.sessions.session("chat_000001")).status == RunStatus.PAUSE
    await chat.get_by_role("button", name="Stop…").click()
    await dialog.get_by_role("button", name="Stop the chat").click()
    await expect(transcript(chat)).to_contain_text("Will Zhang stopped the chat.")
    await expect(call_of(chat, "Stopped")).to_be_visible()
    await expect(chat.get_by_role("article")).to_have_count(0)
    await expect(chat.get_by_text("This chat is over.")).to_be_visible()
    await expect(chat.get_by_label("Message")).to_be_hidden()
    await expect(chat.get_by_role("button", name="Send")).to_be_hidden()
    await expect(chat.get_by_role("link", name="Start another chat")).to_be_focused()
    await expect(chat.get_by_role("button", name="Stop…")).to_be_hidden()
    assert bank.paid == []


async def test_what_was_left_unsent_when_a_chat_ended_can_be_read(chat: Page, bank: Bank) -> None:
    await say(chat, "pay 5")
    await expect(chat.get_by_role("button", name="Stop…")).to_be_visible()
    message = chat.get_by_label("Message")
    await message.fill("and pay 6")
    await bank.sessions.cancel("chat_000001", by="Will Zhang")
    await expect(chat.get_by_text("This chat is over.")).to_be_visible()
    await expect(message).to_have_value("and pay 6")
    await expect(message).not_to_be_editable()
    await expect(message).not_to_be_focused()
    await chat.get_by_role("link", name="Start another chat").click()
    await expect(chat.get_by_role("button", name="Start a chat with Clerk")).to_be_visible()


@pytest.mark.parametrize("told", [{"isComposing": True}, {"keyCode": 229}])
async def test_the_enter_that_ends_a_composition_sends_nothing(
    chat: Page, bank: Bank, told: dict[str, object]
) -> None:
    message = chat.get_by_label("Message")
    await message.fill("你好")
    assert await message.evaluate(
        """(one, told) => one.dispatchEvent(new KeyboardEvent(
            "keydown", { key: "Enter", cancelable: true, bubbles: true, ...told }))""",
        told,
    )
    await message.press("Enter")
    await expect(transcript(chat)).to_contain_text("You said: 你好")
    await expect(transcript(chat).locator(".uttered.person")).to_have_count(1)


async def test_what_failed_is_resumed(chat: Page, bank: Bank) -> None:
    bank.clerk.broken = True
    await say(chat, "hello")
    await expect(transcript(chat).locator(".message.failed")).to_contain_text("out of order")
    await expect(chat.get_by_role("button", name="Send")).to_be_enabled()
    bank.clerk.broken = False
    await chat.get_by_role("button", name="Resume").click()
    await expect(transcript(chat)).to_contain_text("You said: hello")
    await expect(transcript(chat)).to_contain_text("Will Zhang resumed it")
    await expect(chat.get_by_role("button", name="Resume")).to_have_count(0)


async def test_what_a_model_says_is_text(chat: Page) -> None:
    await say(chat, "markup")
    answer = transcript(chat).locator(".uttered.model")
    await expect(answer).to_contain_text('<script>document.title = "stolen"</script>')
    await expect(answer).to_contain_text("**bold**")
    await expect(answer).to_contain_text("⟨202E⟩txt.exe⟨202C⟩␇")
    await expect(answer.locator("script, img, b:not(.who b)")).to_have_count(0)
    await expect(chat).to_have_title("Clerk · Holdfast")


async def test_what_is_being_spoken_is_text_too(chat: Page, bank: Bank) -> None:
    await say(chat, "slowly <img src=x onerror=alert(1)>\u202e" + " and more of it" * 5)
    speaking = chat.locator("#speaking")
    await expect(speaking).to_contain_text("<img src=x onerror=alert(1)>⟨202E⟩")
    await expect(speaking.locator("img")).to_have_count(0)
    bank.clerk.held.set()
    await expect(transcript(chat).locator(".uttered.model")).to_contain_text("⟨202E⟩ and more")


async def test_code_keeps_its_blanks(chat: Page) -> None:
    await say(chat, "code")
    answer = transcript(chat).locator(".uttered.model")
    await expect(answer.locator("pre")).to_have_text('print("<b>hi</b>")')
    await expect(answer.locator("p.text")).to_have_text(["Look:", "That is all."])


async def test_what_somebody_opened_stays_open(chat: Page, bank: Bank) -> None:
    await say(chat, "wait")
    await call_of(chat, "Running").click()
    bank.door.opened.set()
    await expect(transcript(chat).locator(".called")).to_contain_text("Done")
    await expect(transcript(chat).locator(".called .more pre")).to_contain_text("success")


async def test_by_the_keyboard_alone(admin: Window, backend: Backend, bank: Bank) -> None:
    page = await admin.live("/console/chat")
    await reach(page, page.get_by_role("button", name="Start a chat with Clerk"))
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{backend.url}/console/chat/chat_000001")
    await reach(page, page.get_by_label("Message"))
    await page.keyboard.type("pay")
    await page.keyboard.press("Shift+Enter")
    await expect(page.get_by_label("Message")).to_have_value("pay\n")
    await page.keyboard.type("9")
    await page.keyboard.press("Enter")
    approve = page.get_by_role("button", name="Approve and run")
    await expect(approve).to_be_visible()
    await expect(page.get_by_label("Message")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    for _ in range(30):
        if await approve.evaluate("one => one === document.activeElement"):
            break
        await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(transcript(page)).to_contain_text('Done: {"paid": 9')
    await expect(page.get_by_label("Message")).to_be_focused()
    assert bank.paid == [9]


async def test_nothing_to_say_is_said(chat: Page) -> None:
    await chat.get_by_role("button", name="Send").click()
    await expect(chat.get_by_text("Write something first.")).to_be_visible()
    await expect(chat.get_by_label("Message")).to_be_focused()


async def test_two_windows_tell_the_same(chat: Page, open_window: OpenWindow) -> None:
    other = await (await open_window(name="Zhang San")).live("/console/chat/chat_000001")
    await say(chat, "pay 5")
    card = transcript(other).get_by_role("article", name="Run pay?")
    await card.get_by_role("button", name="Approve and run").click()
    for page in (chat, other):
        await expect(transcript(page)).to_contain_text("Zhang San answered: Approve and run")
        await expect(transcript(page)).to_contain_text('Done: {"paid": 5')
        await expect(page.get_by_role("article")).to_have_count(0)


async def test_who_may_only_look_is_told_so(open_window: OpenWindow, bank: Bank) -> None:
    session_id = await opened(bank)
    await told(bank, session_id, "pay 5")
    page = await (await open_window(roles=("viewer",))).live(f"/console/chat/{session_id}")
    await expect(page.get_by_text("Your role lets you read this chat")).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    await expect(page.get_by_role("button", name="Stop…")).to_be_hidden()
    await expect(page.get_by_role("button", name="Approve and run")).to_have_count(0)


async def test_a_long_chat_shows_its_end_first(admin: Window, bank: Bank) -> None:
    session_id = await opened(bank)
    for number in range(5):
        await told(bank, session_id, f"number {number}")
    page = await admin.live(f"/console/chat/{session_id}?records=10")
    await expect(transcript(page)).to_contain_text("You said: number 4")
    await expect(transcript(page)).not_to_contain_text("number 1")
    await page.get_by_role("link", name="Show what came earlier").click()
    await expect(transcript(page)).to_contain_text("You said: number 1")


async def test_it_listens_only_while_the_agent_works(
    chat: Page, backend: Backend, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = backend.app.engine.hub
    heard = asyncio.Event()
    follow = hub.follow

    async def followed(run_id: str, after: int = 0) -> AsyncIterator[object]:
        async with aclosing(follow(run_id, after)) as frames:
            try:
                async for one in frames:
                    yield one
            finally:
                heard.set()

    monkeypatch.setattr(hub, "follow", followed)
    await say(chat, "slowly does it, my friend, one word after the other")
    await expect(chat.locator("#speaking")).to_contain_text("You said")
    assert not heard.is_set()
    bank.clerk.held.set()
    await asyncio.wait_for(heard.wait(), PATIENCE)


async def test_without_a_model_it_says_how_to_plug_one_in(browser: Browser) -> None:
    async with serving(a_bank(model=False)) as backend, window(browser, backend) as admin:
        page = await admin.live("/console/chat")
        await expect(page.get_by_text("There is no model that could answer")).to_be_visible()
        await expect(page.get_by_text("HOLDFAST_MODEL=openai:gpt-4o")).to_be_visible()
        await page.get_by_role("button", name="Start a chat with Clerk").click()
        await expect(page.get_by_text("No model could answer.")).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_disabled()
        await expect(page.get_by_text("HOLDFAST_MODEL=openai:gpt-4o")).to_be_visible()


async def test_a_scripted_model_says_so(admin: Window) -> None:
    page = await admin.live("/console/chat")
    plug = page.get_by_text("A scripted model answers here")
    await expect(page.get_by_text("HOLDFAST_MODEL=openai:gpt-4o")).to_be_hidden()
    await plug.click()
    await expect(page.get_by_text("HOLDFAST_MODEL=openai:gpt-4o")).to_be_visible()


async def test_it_fits_a_narrow_window_in_both_languages(
    open_window: OpenWindow, bank: Bank, locale: str, theme: str
) -> None:
    session_id = await opened(bank)
    for text in ("code", "markup", "pay 5"):
        await told(bank, session_id, text)
    narrow = await open_window(viewport=NARROW, locale=locale, color_scheme=theme)
    for path in ("/console/chat", f"/console/chat/{session_id}"):
        assert await fits(await narrow.live(path))


async def test_on_a_small_screen_nothing_covers_the_question(
    open_window: OpenWindow, bank: Bank
) -> None:
    session_id = await opened(bank)
    for text in ("code", "code", "pay 5"):
        await told(bank, session_id, text)
    page = await (await open_window(viewport=NARROW)).live(f"/console/chat/{session_id}")
    card = transcript(page).get_by_role("article", name="Run pay?")
    header, composer = page.get_by_role("banner"), page.locator("#say")
    assert await top(card) >= await bottom(header)
    assert await bottom(page.get_by_label("Message")) - await top(page.get_by_label("Message")) < 40
    await card.get_by_text("Edit the arguments").click()
    for place in (card.get_by_role("button").last, card.get_by_label("Amount")):
        await place.focus()
        assert await top(place) >= await bottom(header)
        assert await bottom(place) <= await top(composer)


async def top(place: Locator) -> float:
    return float(await place.evaluate("one => one.getBoundingClientRect().top"))


async def bottom(place: Locator) -> float:
    return float(await place.evaluate("one => one.getBoundingClientRect().bottom"))


async def test_lists_say_what_a_chat_is_about(admin: Window, bank: Bank) -> None:
    session_id = await opened(bank)
    await told(bank, session_id, "pay 55\n")
    for path in ("/console/chat", "/console/runs"):
        page = await admin.live(path)
        row = page.locator(f"#row-{session_id}")
        await expect(row).to_contain_text("“pay 55”")
    page = await admin.live("/console/inbox")
    await expect(page.locator("#inbox-queue")).to_contain_text("“pay 55”")
