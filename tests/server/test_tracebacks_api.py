"""Tracebacks are for those who operate a run: whoever only reads it sees none, anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from server_scene import Scene, serving, start

from holdfast import Holdfast
from holdfast.console import install

SPOILT = """\
plan_id: spoilt
main_task_id: "001"
tasks: [{task_id: "001", name: Spoilt}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: spoil
    retry: {attempts: 2, initial: 0.001}
    success_output: {task_id: "001", status: Done}
"""
MARK = "in_the_authors_own_code"


@pytest.fixture
async def scene(app: Holdfast, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """Served with its console."""
    web = app.asgi()
    install(web)
    monkeypatch.setattr(app, "asgi", lambda settings: web)
    app.planner_agent.max_retry_count = 0
    async with serving(app) as scene:
        yield scene


@pytest.fixture
async def run_id(scene: Scene, app: Holdfast) -> str:
    @app.tool
    async def spoil() -> None:
        def in_the_authors_own_code() -> None:
            raise RuntimeError("<b>no & way</b>")

        in_the_authors_own_code()

    app.load_plan_text(SPOILT)
    return await start(scene, "spoilt")


@pytest.mark.parametrize("role", ["operator", "admin"])
async def test_who_operates_the_run_sees_them(scene: Scene, run_id: str, role: str) -> None:
    client = await scene.as_a(role)
    answer = await client.get(f"/runs/{run_id}/tracebacks")
    assert answer.status_code == 200, answer.text
    [shown] = answer.json()["tracebacks"]
    # The command line of earlier releases takes these keys and no others.
    assert shown.keys() == {"step_id", "attempt", "at", "text"}
    assert answer.json()["names"]["L001"].startswith("L001 (")
    assert (shown["step_id"], shown["attempt"]) == ("L001", 2)
    assert shown["text"].endswith("RuntimeError: <b>no & way</b>\n")
    assert MARK in shown["text"]
    for path in (f"/console/runs/{run_id}", f"/console/parts/runs/{run_id}/beside"):
        page = (await client.get(path)).text
        assert '<details class="more" id="traceback-L001">' in page
        assert MARK in page
        assert "<b>no" not in page


@pytest.mark.parametrize("role", ["viewer", "approver", "author"])
async def test_who_only_reads_it_does_not(scene: Scene, run_id: str, role: str) -> None:
    client = await scene.as_a(role)
    refused = await client.get(f"/runs/{run_id}/tracebacks")
    assert refused.status_code == 403
    told = refused.text
    for path in (
        f"/runs/{run_id}",
        f"/runs/{run_id}/history",
        f"/instances/{run_id}",
        f"/console/runs/{run_id}",
        f"/console/parts/runs/{run_id}/beside",
        f"/console/parts/runs/{run_id}/timeline",
        f"/console/parts/runs/{run_id}/node?node=L001",
    ):
        answer = await client.get(path)
        assert answer.status_code == 200, path
        told += answer.text
    told += await streamed(client, f"/runs/{run_id}/events")
    assert "no & way" in told or "no &amp; way" in told
    assert MARK not in told
    assert "Traceback" not in told


async def streamed(client: httpx.AsyncClient, path: str) -> str:
    """What a stream tells up to the event by which the run gave up."""
    told = ""
    async with asyncio.timeout(30), client.stream("GET", path) as answer:
        async for line in answer.aiter_lines():
            told += line
            if line.startswith("event: RunErred") or "ListenerFailed" in line:
                break
    return told
