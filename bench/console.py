"""`python -m bench.console`: what the console weighs, how soon a form is usable, and viewers.

The server has this process and no browser in it. The page of a run with sixty boxes is loaded,
and everything it fetches counts: as it travels, and as it is unpacked. A form is usable when an
option of it can be chosen; the clock starts with the navigation, once in a browser that has
nothing of ours and once in one that has been here. Then viewers join: each loads the run's page
and stays on the stream of events while further runs are played, and what the server's resident
memory has grown by is theirs. Viewers that came and went before have warmed it up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import uvicorn
import uvloop

from bench.child import ROOT
from bench.ours import effect, sequence
from bench.trial import resident_bytes
from holdfast import Holdfast
from holdfast.console import install
from holdfast.demo.onboarding import HERE as DEMO
from holdfast.server import create
from holdfast.server.services import Services
from holdfast.server.serving import listening, url_of
from holdfast.server.settings import ServerSettings

EFFECTS = 30
"""Listeners, and as many tasks: sixty boxes."""
VIEWERS = 51
WEIGHT_KB = 60
USABLE_MS = 1000.0
ADDED_MB = 5.0
LOADED = """() => performance.getEntriesByType("resource")
  .concat(performance.getEntriesByType("navigation"))
  .filter((one) => !one.name.includes("/events"))
  .map((one) => [one.name.split("/").pop(), one.encodedBodySize, one.decodedBodySize])"""


@dataclass(frozen=True, slots=True)
class Figures:
    weight_bytes: int
    unpacked_bytes: int
    unpacked_page_bytes: int
    form_cold_ms: float
    form_warm_ms: float
    viewers_mb: float


@dataclass(frozen=True, slots=True)
class Served:
    app: Holdfast
    services: Services
    url: str

    async def link(self) -> str:
        _, secret = await self.services.tokens.new_link("bench", ("admin",))
        return secret

    async def token(self) -> str:
        _, secret = await self.services.tokens.issue("bench", "service", ["operator"], None)
        return secret

    async def chain(self) -> str:
        instance = await self.app.plans.start_plan_by_prompt("", "chain")
        await instance.wait_for_completion()
        return instance.id

    async def question(self) -> str:
        instance = await self.app.plans.start_plan_by_prompt("", "apply_computer")
        await instance.wait_until_settled()
        return next(row.question_id for row in await self.app.inbox() if row.root_id == instance.id)


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[Served]:
    app = Holdfast(home)
    app.tool(effect, idempotent=True)
    app.add_plan(sequence("chain", *["effect"] * EFFECTS))
    app.load_tools(DEMO / "tools.yaml", {"OFFICE_URL": "http://127.0.0.1:9"})
    app.load_plans(DEMO / "plans")
    async with app:
        with listening("127.0.0.1", 0) as listener:
            web = create(app, ServerSettings())
            install(web)
            server = uvicorn.Server(uvicorn.Config(web, log_config=None, ws="none"))
            serving = asyncio.create_task(server.serve([listener]))
            while not server.started:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
            services = web.state.services
            try:
                yield Served(app, services, url_of("127.0.0.1", listener.getsockname()[1]))
            finally:
                services.streams.close()
                server.should_exit = True
                await serving


async def measure(repeats: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-console-", dir=ROOT) as folder:
        async with served(Path(folder)) as house:
            run_id = await house.chain()
            added = await viewers(house, run_id)
            seen = await _browsed(house, run_id, await house.question(), repeats)
    return Figures(**seen, viewers_mb=added)


async def viewers(house: Served, run_id: str) -> float:
    """Megabytes that so many who look on have added."""
    token = await house.token()
    await (await _crowd(house.url, token, run_id)).communicate(b"\n")
    before = resident_bytes()
    crowd = await _crowd(house.url, token, run_id)
    for _ in range(5):
        await house.chain()
    added = resident_bytes() - before
    await crowd.communicate(b"\n")
    return added / 1e6


async def _crowd(*place: str) -> asyncio.subprocess.Process:
    process = await _child("view", *place)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"here\n"
    return process


async def _child(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.console", *arguments, stdin=pipe, stdout=pipe, cwd=ROOT
    )


async def view(url: str, token: str, run_id: str) -> None:
    """Be the viewers until a line comes."""
    place, writers, takers = urlsplit(url), [], []
    proof = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=proof, trust_env=False) as client:
        for _ in range(VIEWERS):
            (await client.get(f"/console/runs/{run_id}")).raise_for_status()
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(
                f"GET /events HTTP/1.1\r\nHost: {place.netloc}\r\n"
                f"Authorization: Bearer {token}\r\n\r\n".encode()
            )
            assert b" 200 " in await reader.readline()
            takers.append(asyncio.create_task(reader.read()))
            writers.append(writer)
    print("here", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*takers, return_exceptions=True)


async def _browsed(house: Served, run_id: str, question: str, repeats: int) -> dict[str, float]:
    links = [await house.link() for _ in range(repeats + 1)]
    process = await _child("browse", house.url, run_id, question)
    told, _ = await process.communicate(json.dumps(links).encode() + b"\n")
    seen: dict[str, float] = json.loads(told)
    return seen


async def browse(url: str, run_id: str, question: str) -> None:
    """Be the browser: one context per link, so that each begins with nothing."""
    from playwright.async_api import async_playwright

    sys.path.insert(0, str(ROOT / "tests"))
    from chromium import find

    first, *links = json.loads(sys.stdin.readline())
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-gpu"]
        )
        loaded = await _weight(browser, url, run_id, first)
        times = [await _usable(browser, url, question, link) for link in links]
        await browser.close()
    figures = {
        "weight_bytes": sum(packed for _, packed, _ in loaded),
        "unpacked_bytes": sum(plain for _, _, plain in loaded),
        "unpacked_page_bytes": max(plain for name, _, plain in loaded if name == run_id),
        "form_cold_ms": statistics.median(cold for cold, _ in times),
        "form_warm_ms": statistics.median(warm for _, warm in times),
    }
    print(json.dumps(figures), flush=True)


async def _weight(browser: Any, url: str, run_id: str, link: str) -> list[tuple[str, int, int]]:
    async with _signed_in(browser, url, link) as context:
        page = await context.new_page()
        await page.goto(f"{url}/console/runs/{run_id}")
        await page.locator("html[data-live=live]").wait_for()
        loaded: list[tuple[str, int, int]] = await page.evaluate(LOADED)
        return loaded


async def _usable(browser: Any, url: str, question: str, link: str) -> tuple[float, float]:
    """Milliseconds from the navigation until an option was chosen: at first, and again."""
    async with _signed_in(browser, url, link) as context:
        page = await context.new_page()
        took = []
        for _ in range(2):
            await page.goto(f"{url}/console/inbox/{question}")
            await page.get_by_label("ThinkPad").check()
            took.append(await page.evaluate("performance.now()"))
        return took[0], took[1]


@asynccontextmanager
async def _signed_in(browser: Any, url: str, link: str) -> AsyncIterator[Any]:
    context = await browser.new_context()
    headers = {"Origin": url}
    answer = await context.request.post(f"{url}/login", data={"token": link}, headers=headers)
    assert answer.ok, answer.status
    yield context
    await context.close()


def told(figures: Figures) -> str:
    def verdict(value: float, most: float) -> str:
        return "kept" if value <= most else "not kept"

    weight, plain = figures.weight_bytes / 1000, figures.unpacked_bytes / 1000
    return "\n".join(
        (
            "| | measured | at most | |",
            "|---|---|---|---|",
            f"| page of a run with {2 * EFFECTS} boxes, all it loads | {weight:.1f} kB "
            f"(unpacked {plain:.1f} kB, {figures.unpacked_page_bytes / 1000:.1f} kB of it HTML) "
            f"| {WEIGHT_KB} kB | {verdict(weight, WEIGHT_KB)} |",
            f"| form usable, empty cache | {figures.form_cold_ms:,.0f} ms | {USABLE_MS:,.0f} ms "
            f"| {verdict(figures.form_cold_ms, USABLE_MS)} |",
            f"| form usable, again | {figures.form_warm_ms:,.0f} ms | {USABLE_MS:,.0f} ms "
            f"| {verdict(figures.form_warm_ms, USABLE_MS)} |",
            f"| {VIEWERS} viewers, added to the server | {figures.viewers_mb:.1f} MB "
            f"| {ADDED_MB:.0f} MB | {verdict(figures.viewers_mb, ADDED_MB)} |",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("role", nargs="?", default="measure", help=argparse.SUPPRESS)
    parser.add_argument("place", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    match options.role:
        case "view":
            uvloop.run(view(*options.place))
        case "browse":
            uvloop.run(browse(*options.place))
        case _:
            figures = uvloop.run(measure(options.repeats))
            print(json.dumps(asdict(figures)) if options.json else told(figures))


if __name__ == "__main__":
    main()
