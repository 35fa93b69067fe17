"""Attacks on what is shown: text that wants to be more, and callers who want to know more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from chat_scene import listening_to
from hostile_scene import Ground, standing_ground
from server_scene import settled, start

from holdfast import Holdfast

APPROVE = {"selectedOptionId": "approve"}
SCRIPT = "</text><script>alert(1)</script>"
BIDI = "invoice\u202efdp.exe"


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


async def test_text_stays_text_wherever_it_comes_from(ground: Ground) -> None:
    source = f"""\
plan_id: loud
name: {SCRIPT!r}
main_task_id: "001"
tasks: [{{task_id: "001", name: "{BIDI}"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    fields: {{employee: {{type: text, label: "{SCRIPT}"}}}}
    success_output: {{task_id: "001", status: Done}}
"""
    made = await ground.crowd["author"].post("/plans", json={"source": source})
    assert made.status_code == 201, made.text
    instance_id = await start(ground.scene, "loud")
    paths = [
        "/plans",
        "/plans/loud",
        f"/instances/{instance_id}",
        f"/interactions?run={instance_id}",
    ]
    for path in [*paths, "/runs", f"/runs/{instance_id}/history"]:
        answer = await ground.crowd["viewer"].get(path)
        assert answer.headers["content-type"] == "application/json", path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert SCRIPT in str(answer.json()) or "/runs" in path
    for path in ("/plans/loud/graph.svg", f"/instances/{instance_id}/graph.svg"):
        answer = await ground.crowd["viewer"].get(path)
        assert answer.headers["content-type"].startswith("image/svg+xml")
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        names = {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(answer.text).iter()}
        assert "script" not in names
        assert "\u202e" not in answer.text, "what turns text around is made visible"


async def test_a_page_of_ours_redirects_nowhere_else(ground: Ground) -> None:
    by_hand = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
    stranger = ground.scene.stranger
    for more in ("next=//evil.example", "redirect=https://evil.example", "return_to=/\\evil"):
        path = f"/login?token={await ground.link()}&{more}"
        answer = await stranger.get(path, headers=by_hand)
        assert answer.status_code == 422
        assert "evil" not in answer.headers.get("location", "")
    forwarded = {**by_hand, "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "//evil"}
    answer = await stranger.get(f"/login?token={await ground.link()}", headers=forwarded)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    link = await ground.scene.admin.post(
        "/tokens/link", json={"name": "guest"}, headers={"X-Forwarded-Host": "evil.example"}
    )
    assert link.json()["url"].startswith(ground.scene.url)


RUN_PATHS = [
    "/runs/{}",
    "/runs/{}/history",
    "/runs/{}/definition",
    "/runs/{}/tracebacks",
    "/runs/{}/events",
    "/runs?parent={}",
    "/instances/{}",
    "/instances/{}/graph.svg",
    "/instances/{}/graph.txt",
    "/chats/{}",
    "/chats/{}/approvals",
    "/conversations/{}",
    "/conversations/{}/snapshot",
    "/interactions?run={}",
]


async def test_who_sees_one_plan_learns_nothing_of_the_others(ground: Ground) -> None:
    instance_id, consent = await ground.waiting(), await ground.approval()
    question_id = (await ground.question(instance_id))["requestId"]
    conversation_id = await ground.achieved()
    prying = ground.crowd["elsewhere"]
    for path, member in (
        ("/runs", "runs"),
        ("/runs?roots=false", "runs"),
        ("/instances", "instances"),
        ("/chats", "chats"),
        ("/conversations", "conversations"),
        ("/interactions", "interactions"),
        ("/agents", "agents"),
    ):
        assert (await prying.get(path)).json()[member] == [], path
    plans = (await prying.get("/plans")).json()["plans"]
    assert [one["plan_id"] for one in plans] == ["unlock"]
    for path in ("/metrics", "/audit", "/tokens", "/audit/verify"):
        assert (await prying.get(path)).status_code == 403
    runs = {instance_id: "inst_9", consent["runId"]: "chat_9", conversation_id: "conv_9"}
    await told_nothing_apart(prying, runs, RUN_PATHS)
    questions = {question_id: "0" * 32, consent["requestId"]: "1" * 32}
    await told_nothing_apart(prying, questions, ["/interactions/{}"])
    names = {"apply_computer": "apply_nothing", "clerk": "nobody"}
    await told_nothing_apart(
        prying, names, ["/plans/{}", "/plans/{}/versions", "/plans/{}/graph.svg", "/agents/{}"]
    )


async def told_nothing_apart(
    prying: httpx.AsyncClient, pairs: dict[str, str], paths: list[str]
) -> None:
    """What is there and hidden looks as what is not there at all."""
    for path in paths:
        for hidden, missing in pairs.items():
            there = await prying.get(path.format(hidden))
            nowhere = await prying.get(path.format(missing))
            assert there.status_code == nowhere.status_code, (path, hidden, there.text)
            assert _anonymous(there, hidden) == _anonymous(nowhere, missing), path


def _anonymous(answer: httpx.Response, name: str) -> dict[str, Any]:
    body = answer.json()
    kept = {
        key: body[key] for key in body if key not in ("request_id", "server_time", "serverTime")
    }
    return {key: str(value).replace(name, "…") for key, value in kept.items()}


async def test_streams_tell_a_listener_nothing_of_others(ground: Ground) -> None:
    """A run of theirs begins after everything else: what they hear first is of that."""
    prying = ground.crowd["elsewhere"]
    async with listening_to(prying, path="/events") as ear:
        await ear.place()
        await ground.approval()
        await settled(ground.scene, await ground.waiting())
        mine = await start(ground.scene, "unlock")
        heard = await ear.next()
    assert heard is not None
    assert heard.data["run_id"] == mine


async def test_a_mistake_of_ours_shows_nothing_of_us_on_any_page(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance_id = await ground.waiting()

    async def broken(*given: Any, **named: Any) -> None:
        raise RuntimeError("hunter2 in /home/secret/holdfast.py line 7")

    for method in ("run", "runs", "questions", "question", "audit", "definitions", "run_counts"):
        monkeypatch.setattr(ground.scene.app.journal, method, broken)
    seen = 0
    for path in (f"/runs/{instance_id}", f"/runs/{instance_id}/events", "/runs", "/instances"):
        seen += await _shows_nothing(await ground.scene.admin.get(path))
    for path in ("/interactions", "/audit", "/plans/apply_computer/versions", "/metrics", "/chats"):
        seen += await _shows_nothing(await ground.scene.admin.get(path))
    body = {"requestIds": ["1" * 32], **APPROVE}
    seen += await _shows_nothing(await ground.scene.admin.post("/interactions/answers", json=body))
    assert seen == 10


async def _shows_nothing(answer: httpx.Response) -> int:
    assert answer.status_code == 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for inside in ("hunter2", "Runtime", "Traceback", ".py", "/home", "journal"):
        assert inside not in answer.text
    return 1
