"""The console mounted in another application, under a prefix, or behind a proxy with one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from importlib.resources import files

import httpx
import pytest
import pytest_asyncio
import uvicorn
from card_scene import CardScene, card
from console_scene import Backend, OpenWindow, Window, serving
from playwright.async_api import Page, expect

from holdfast.console.assets import assets, imported_by
from holdfast.model.run import RunStatus

PREFIX = "/holdfast"


@pytest_asyncio.fixture(loop_scope="session")
async def backend(scene: CardScene) -> AsyncIterator[Backend]:
    async with serving(scene.app, prefix=PREFIX) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(open_window: OpenWindow) -> Window:
    """A browser that has nothing of ours yet."""
    return await open_window(signed_in=False)


@pytest_asyncio.fixture(loop_scope="session")
async def runs(visitor: Window, backend: Backend) -> Page:
    """The runs page, reached by the link that one is given."""
    page = await visitor.live(f"/login?token={await backend.link()}")
    assert page.url == f"{backend.url}/console/runs"
    return page


async def test_the_link_signs_in_and_the_runs_are_live(
    scene: CardScene, visitor: Window, runs: Page
) -> None:
    cookies = {one["name"]: one for one in await visitor.context.cookies()}
    assert cookies["holdfast"]["path"] == PREFIX
    run = await scene.start("clean_up")
    await expect(runs.locator("#runs")).to_contain_text(run)
    await expect(runs.locator("#inbox-count")).to_contain_text("1")


async def test_every_way_leads_to_a_page_of_ours(
    scene: CardScene, backend: Backend, runs: Page
) -> None:
    run = await scene.start("clean_up")
    await runs.goto(f"{backend.url}/console/runs/{run}")
    ways = ["", "/", "/console", "/console/", f"/console/chat/{await scene.ask_clerk('pay 5')}"]
    ways += [
        f"/console/{name}" for name in ("inbox", "chat", "plans", "plans/travel", "runs?kind=")
    ]
    for way in ways:
        answer = await runs.goto(backend.url + way)
        assert answer is not None
        assert answer.ok, way
        assert runs.url.startswith(f"{backend.url}/console/")
        for link in await runs.locator("a[href], form[action]").all():
            place = await link.get_attribute("href") or await link.get_attribute("action") or ""
            assert place.startswith((f"{PREFIX}/console/", "#")), (way, place)


async def test_another_language_leads_back(visitor: Window, runs: Page, backend: Backend) -> None:
    await runs.goto(f"{backend.url}/console/plans?")
    await runs.locator("summary.language").click()
    await runs.get_by_role("link", name="中文").click()
    await expect(runs.locator("html")).to_have_attribute("lang", "zh-CN")
    assert runs.url == f"{backend.url}/console/plans"
    assert {one["path"] for one in await visitor.context.cookies()} == {PREFIX}


async def test_a_plan_is_started_and_its_form_answered(
    scene: CardScene, runs: Page, backend: Backend
) -> None:
    await runs.goto(f"{backend.url}/console/plans/computer")
    await runs.locator("#starting").get_by_role("button", name="Start").click()
    await runs.wait_for_url(f"{backend.url}/console/runs/*")
    run = runs.url.rpartition("/")[2]
    asked = card(runs, await scene.question(run))
    await asked.get_by_role("radio", name="ThinkPad X1").check()
    await asked.get_by_label("交货日期").fill("2026-12-24")
    await expect(asked.locator(".kept")).to_have_text("Draft kept")
    await asked.locator("button[data-fills]").click()
    await expect(runs.locator("#run-head")).to_have_attribute("data-status", "done")
    assert [name for name, _ in scene.calls] == ["apply_computer"]


async def test_a_chat_asks_and_goes_on(scene: CardScene, runs: Page, backend: Backend) -> None:
    await runs.goto(f"{backend.url}/console/chat")
    await runs.locator("[data-agent=clerk]").click()
    await runs.wait_for_url(f"{backend.url}/console/chat/*")
    await runs.get_by_label("Message").fill("pay 5")
    await runs.get_by_role("button", name="Send").click()
    await runs.get_by_role("button", name="Approve and run").click()
    await expect(runs.get_by_role("log")).to_contain_text("It is settled")
    assert [name for name, _ in scene.calls] == ["pay"]


async def test_a_press_asks_first_and_cancels(
    scene: CardScene, runs: Page, backend: Backend
) -> None:
    run = await scene.start("clean_up")
    await runs.goto(f"{backend.url}/console/runs/{run}")
    await runs.locator("[data-do=cancel]").click()
    await runs.locator("#action-do").click()
    await expect(runs.locator("#run-head")).to_have_attribute("data-status", "cancelled")
    assert await scene.came_to(run, RunStatus.CANCELLED)


async def test_signed_out_a_pasted_link_signs_in_again(
    visitor: Window, runs: Page, backend: Backend
) -> None:
    visitor.forgive("401")
    await runs.locator("summary.account").last.click()
    await runs.get_by_role("button", name="Sign out").click()
    await expect(runs.locator("#sign-in")).to_be_visible()
    assert not await visitor.context.cookies()
    secret = await backend.link()
    await runs.locator("#sign-in-token").fill(f"{backend.url}/login?token={secret}")
    await runs.locator("#sign-in button").click()
    await expect(runs.locator("html")).to_have_attribute("data-live", "live")
    assert secret not in await runs.evaluate("JSON.stringify(sessionStorage)")


async def test_a_new_link_names_the_place(backend: Backend) -> None:
    _, secret = await backend.services.tokens.issue("Will Zhang", roles=["admin"])
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as client:
        answer = await client.post(f"{backend.url}/tokens/link", json={"name": "Will Zhang"})
    assert answer.json()["url"].startswith(f"{backend.url}/login?token=")


async def test_behind_a_proxy_that_takes_the_prefix_away(
    scene: CardScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = uvicorn.Config

    def behind_proxy(*given: object, **named: object) -> uvicorn.Config:
        return made(*given, **named, root_path=PREFIX)  # type: ignore[arg-type]

    monkeypatch.setattr(uvicorn, "Config", behind_proxy)
    async with (
        serving(scene.app) as one,
        httpx.AsyncClient(base_url=one.url, trust_env=False) as client,
    ):
        by_hand = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
        token = await one.link()
        answer = await client.get("/login", params={"token": token}, headers=by_hand)
        assert answer.headers["location"] == f"{PREFIX}/console/"
        assert f"Path={PREFIX};" in answer.headers["set-cookie"]
        cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        text = (await client.get("/console/plans", headers=cookie)).text
    ways = re.findall(r'(?:href|src|action)="([^"#]+)', text)
    assert ways
    assert [way for way in ways if not way.startswith(f"{PREFIX}/console/")] == []
    assert 'aria-current="page"' in text


def test_no_template_and_no_module_takes_the_root_for_granted() -> None:
    here = files("holdfast.console")
    followed = re.compile(r'(?:href|src|action)="/|(?:href|src|action)="\{\{ (?!root|asset)')
    for one in here.joinpath("templates").iterdir():
        assert not followed.search(one.read_text("utf-8")), one.name
    fetched = re.compile(r'(?:fetch|assign|URL|Worker)\(["`]/')
    for one in here.joinpath("static").iterdir():
        assert not fetched.search(one.read_text("utf-8")), one.name


async def test_a_page_tells_at_once_all_that_it_imports(runs: Page) -> None:
    told = await runs.locator("link[rel=modulepreload], script[type=module]").evaluate_all(
        "all => all.map((one) => (one.href || one.src).split('/').pop())"
    )
    assert sorted(told) == sorted(imported_by(("shell.js", "runs.js")))
    loaded = await runs.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    modules = {one.rpartition("/")[2] for one in loaded if one.endswith(".js")}
    assert modules == set(told)


def test_what_is_imported_by_what_is_imported_is_found() -> None:
    found = imported_by(("card.js",))
    assert {"answering.js", "form.js", "prices.js", "place.js"} <= set(found)
    assert set(found) <= assets().keys()
