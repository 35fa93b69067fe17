"""Pages of another site, in the browser of somebody who is signed in here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from console_plans import started
from console_scene import Backend, OpenWindow, Window
from playwright.async_api import Page, expect

from holdfast.journal.port import RunQuery
from holdfast.model.run import RunStatus

FORM = """<form method="post" enctype="text/plain" action="{url}/instances">
<input name='{{"plan_id": "computer", "prompt": "' value='"}}'>
<button>Win a prize</button></form>"""

FETCH = """<button onclick="fetch('{url}/instances', {{method: 'POST', mode: 'no-cors',
credentials: 'include', body: JSON.stringify({{plan_id: 'computer'}})}})
.finally(() => document.title = 'sent')">Win a prize</button>"""


@asynccontextmanager
async def abroad(body: str) -> AsyncIterator[str]:
    """A page on `localhost`, which to a browser is another site than 127.0.0.1."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/"


async def signed_in_by_link(open_window: OpenWindow, backend: Backend) -> tuple[Window, Page]:
    """With the cookie that the server itself sets."""
    one = await open_window(signed_in=False)
    page = await one.open(f"/login?token={await backend.link()}")
    await expect(page).to_have_url(f"{backend.url}/console/runs")
    return one, page


async def test_a_link_on_another_site_shows_the_run_to_who_is_signed_in(
    open_window: OpenWindow, backend: Backend
) -> None:
    run_id = await started(backend.app, "computer", RunStatus.PAUSE)
    _, page = await signed_in_by_link(open_window, backend)
    async with abroad(f'<a href="{backend.url}/console/runs/{run_id}">our run</a>') as wiki:
        await page.goto(wiki)
        await page.get_by_role("link", name="our run").click()
        await expect(page).to_have_url(f"{backend.url}/console/runs/{run_id}")
        await expect(page.locator(".account b").last).to_have_text("Will Zhang")
        await expect(page.get_by_role("heading", level=1)).not_to_have_text("You are not signed in")


@pytest.mark.parametrize("attack", [FORM, FETCH])
async def test_another_site_starts_nothing_in_the_name_of_who_is_signed_in(
    open_window: OpenWindow, backend: Backend, attack: str
) -> None:
    one, page = await signed_in_by_link(open_window, backend)
    for refusal in ("40", "ERR_BLOCKED_BY_RESPONSE", "Failed to fetch"):
        one.forgive(refusal)
    async with abroad(attack.format(url=backend.url)) as trap:
        await page.goto(trap)
        async with page.expect_request(f"{backend.url}/instances") as sent:
            await page.get_by_role("button", name="Win a prize").click()
        await (await sent.value).response()
    refused = [key for key in backend.services.counts.requests if key[1] == "/instances"]
    assert refused
    assert all(status in (401, 403) for *_, status in refused)
    assert not await backend.app.journal.runs(RunQuery(limit=1))


async def test_another_site_does_not_choose_the_language(
    open_window: OpenWindow, backend: Backend
) -> None:
    _, page = await signed_in_by_link(open_window, backend)
    async with abroad(f'<a href="{backend.url}/console/language/zh">news</a>') as trap:
        await page.goto(trap)
        await page.get_by_role("link", name="news").click()
        await expect(page).to_have_url(f"{backend.url}/console/runs")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
