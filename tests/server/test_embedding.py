"""`app.asgi()` inside another application: mounted under a prefix, open or not."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from html import escape
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from listeners import listening_to
from server_scene import furnish, listening
from starlette.applications import Starlette
from starlette.routing import Mount

import warm
from holdfast import Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.journal.sqlite import SqliteJournal
from holdfast.server.services import Services


async def token_of(app: Holdfast, web: FastAPI) -> dict[str, str]:
    services: Services = web.state.services
    _, secret = await services.tokens.issue("Will Zhang", roles=["admin"])
    return {"Authorization": f"Bearer {secret}"}


@asynccontextmanager
async def client_of(outer: FastAPI | Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with listening(outer) as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        yield client


async def start_and_see(client: httpx.AsyncClient, headers: dict[str, str], prefix: str) -> None:
    body = {"plan_id": "grant_access"}
    answer = await client.post(f"{prefix}/instances", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    path = f"{prefix}/instances/{answer.json()['id']}"
    assert (await client.get(path, headers=headers)).json()["plan_id"] == "grant_access"
    missing = await client.get(f"{prefix}/instances/inst_000099", headers=headers)
    assert missing.json()["instance"] == f"{prefix}/instances/inst_000099"


async def test_a_link_without_a_console_leads_to_a_page_that_says_who_is_signed_in(
    tmp_path: Path,
) -> None:
    app = Holdfast(tmp_path)
    outer, web = FastAPI(lifespan=app.lifespan), app.asgi()
    outer.mount("/holdfast", web)
    by_hand = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
    services: Services = web.state.services
    async with client_of(outer) as client:
        for name, headers in (("Eve <b>", by_hand), ("Adam", {})):
            _, secret = await services.tokens.new_link(name, roles=["viewer"])
            link = {"params": {"token": secret}, "headers": headers}
            answer = await client.get("/holdfast/login", follow_redirects=True, **link)
            if not headers:
                assert f"signs you in to {client.base_url}".rstrip("/") in answer.text
                form = {"data": {"token": secret}, "follow_redirects": True}
                answer = await client.post("/holdfast/login", **form)
            assert (answer.status_code, answer.url.path) == (200, "/holdfast/login")
            assert f"as {escape(name)}" in answer.text
            assert secret not in f"{answer.url}{answer.text}"


async def test_mounted_with_a_prefix_the_first_request_opens_it(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    furnish(app)
    web = app.asgi()
    outer = FastAPI()

    @outer.get("/ours")
    async def ours() -> str:
        return "ours"

    outer.mount("/holdfast", web)
    async with client_of(outer) as client:
        assert not app.is_open
        assert (await client.get("/ours")).json() == "ours"
        assert not app.is_open
        assert (await client.get("/holdfast/instances")).status_code == 401
        assert app.is_open
        await start_and_see(client, await token_of(app, web), "/holdfast")
        document = (await client.get("/holdfast/openapi.json")).json()
        assert "/instances" in document["paths"]


def test_opened_by_a_request_it_closes_with_the_event_loop(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)

    async def serve_once() -> None:
        outer = Starlette(routes=[Mount("/holdfast", app.asgi())])
        async with client_of(outer) as client:
            assert (await client.get("/holdfast/healthz")).status_code == 200
        assert app.is_open

    asyncio.run(serve_once())
    assert not app.is_open
    again = SqliteJournal(app.home / "holdfast.db")
    asyncio.run(again.open())
    asyncio.run(again.close())


async def test_requests_at_once_open_it_once(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    outer = FastAPI()
    outer.mount("/", app.asgi())
    async with client_of(outer) as client:
        answers = await asyncio.gather(*(client.get("/healthz") for _ in range(5)))
        assert [one.status_code for one in answers] == [200] * 5


async def test_an_open_application_is_used_and_left_open() -> None:
    app = Holdfast.in_memory()
    furnish(app)
    async with app:
        web = app.asgi()
        outer = Starlette(routes=[Mount("/deep/inside", web)])
        async with client_of(outer) as client:
            await start_and_see(client, await token_of(app, web), "/deep/inside")
        assert app.is_open
        instance = await app.plans.start_plan_by_prompt("", "grant_access")
        assert await instance.wait_for_completion() == "done"


async def test_the_outer_lifespan_may_hold_it(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    furnish(app)
    web = app.asgi()
    outer = FastAPI(lifespan=web.router.lifespan_context)
    outer.mount("/holdfast", web)
    async with client_of(outer) as client:
        assert app.is_open
        await start_and_see(client, await token_of(app, web), "/holdfast")
    assert not app.is_open


async def test_the_lifespan_of_the_application_starts_all_that_is_mounted(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    furnish(app)
    outer = FastAPI(lifespan=app.lifespan)
    first, second = app.asgi(), app.asgi()
    outer.mount("/first", first)
    outer.mount("/second", second)

    @outer.get("/ours")
    async def ours() -> int:
        return len(await app.runs())

    async with client_of(outer) as client:
        assert app.is_open
        assert (await client.get("/ours")).json() == 0
        await start_and_see(client, await token_of(app, first), "/first")
        await start_and_see(client, await token_of(app, second), "/second")
    assert not app.is_open


async def test_a_lifespan_within_another_leaves_an_open_application_open() -> None:
    app = Holdfast.in_memory()
    async with app:
        async with app.lifespan():
            assert app.is_open
        assert app.is_open


NOT_STARTED: list[Callable[[Holdfast], Awaitable[object]]] = [
    lambda app: app.plans.start_plan_by_prompt("", "grant_access"),
    lambda app: app.instance("inst_000001"),
    lambda app: app.runs(),
    lambda app: app.inbox(),
    lambda app: app.answer("q1"),
    lambda app: app.sessions.open("clerk"),
    lambda app: app.sessions.session("chat_000001"),
    lambda app: app.plans.planner_agent.continue_plan("inst_000001", {}),
]


@pytest.mark.parametrize("use", range(len(NOT_STARTED)))
@pytest.mark.parametrize("kept", [False, True])
async def test_a_host_s_route_before_the_start_is_told_the_remedy(
    use: int, kept: bool, tmp_path: Path
) -> None:
    app = Holdfast(tmp_path) if kept else Holdfast.in_memory()
    furnish(app)
    app.agent("clerk")
    with pytest.raises(JournalUnavailable, match=r"FastAPI\(lifespan=app.lifespan\)"):
        await NOT_STARTED[use](app)
    async with app:
        assert await app.runs() == []


async def test_a_mount_that_nobody_started_says_so_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Holdfast(tmp_path)
    outer = FastAPI()
    outer.mount("/holdfast", app.asgi())
    async with client_of(outer) as client:
        for _ in range(2):
            assert (await client.get("/holdfast/healthz")).status_code == 200
    said_so = [one for one in caplog.messages if "FastAPI(lifespan=app.lifespan)" in one]
    assert len(said_so) == 1


@pytest.mark.own_store  # the home belongs to one
async def test_a_home_that_is_taken_is_a_503_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Holdfast(tmp_path), Holdfast(tmp_path)
    outer = FastAPI()
    outer.mount("/holdfast", second.asgi())
    async with client_of(outer) as client:
        async with first:
            answer = await client.get("/holdfast/healthz")
            assert answer.status_code == 503
            assert str(tmp_path) not in answer.text
            assert answer.json()["success"] is False
        assert (await client.get("/holdfast/healthz")).status_code == 200


async def test_served_by_itself_it_opens_and_closes_with_the_server(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    async with client_of(app.asgi()) as client:
        assert app.is_open
        assert (await client.get("/healthz")).status_code == 200
    assert not app.is_open


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_an_open_stream_does_not_keep_another_server_from_stopping(
    how: signal.Signals,
) -> None:
    port = free_port()
    async with asyncio.timeout(60), child_of("embedded_child.py", str(port)) as (process, lines):
        headers = {"Authorization": f"Bearer {await said(lines)}"}
        transport = httpx.AsyncHTTPTransport(retries=10)
        url = f"http://127.0.0.1:{port}"
        async with (
            httpx.AsyncClient(base_url=url, headers=headers, transport=transport) as client,
            listening_to(client, "/holdfast/events") as ear,
        ):
            await ear.block()
            process.send_signal(how)
            assert [heard.event for heard in await ear.rest()] == ["bye"]
            await process.wait()


async def test_after_a_kill_the_host_s_start_lets_runs_go_on_without_any_request(
    tmp_path: Path,
) -> None:
    (tmp_path / "held").touch()
    port = free_port()
    async with asyncio.timeout(90):
        async with child_of("host_child.py", str(tmp_path), str(port)) as (process, lines):
            await begin_errand(port)
            assert await said(lines) == "called"
            process.kill()
        (tmp_path / "held").unlink()
        async with child_of("host_child.py", str(tmp_path), str(port)) as (_, lines):
            assert [await said(lines), await said(lines)] == ["called", "returned"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@asynccontextmanager
async def child_of(
    file: str, *arguments: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.StreamReader]]:
    child = str(Path(__file__).with_name(file))
    process = await warm.create_subprocess_exec(
        sys.executable, child, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def said(lines: asyncio.StreamReader) -> str:
    return (await lines.readline()).decode().strip()


async def begin_errand(port: int) -> None:
    """As soon as it listens."""
    async with httpx.AsyncClient(trust_env=False) as client:
        while True:
            with suppress(httpx.ConnectError):
                answer = await client.post(f"http://127.0.0.1:{port}/begin")
                assert answer.status_code == 200, answer.text
                return
            await asyncio.sleep(0.05)
