"""A canary is typed into secret fields over HTTP, and looked for everywhere: only a tool has it.

The server is a process of its own that logs all it can. What is looked through: every file of
its home while it runs and after it died, everything it printed, every answer and every stream
that anybody received meanwhile, and what the model was asked.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from canary_child import LONGEST
from chat_scene import RESPONSE, STREAM
from server_scene import Scene, start

import warm
from holdfast import Holdfast
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import Entry, Seen, call

HERE = Path(__file__).parent
PATIENCE = 60.0
ATTEMPTS = 3


@pytest.fixture
def canary() -> str:
    return f'Kanarienvogel+/"é {uuid4().hex}'


def spellings(canary: str) -> list[bytes]:
    """As it is, as JSON, in an address and in base64; and its tail, which no spelling changes."""
    words = (
        canary,
        json.dumps(canary)[1:-1],
        json.dumps(canary, ensure_ascii=False)[1:-1],
        quote(canary),
        quote(canary, safe=""),
        base64.b64encode(canary.encode()).decode().rstrip("="),
        canary[-32:],
    )
    return [one.encode() for one in words]


class Tap:
    """One event stream, recorded as it comes over the wire."""

    def __init__(self) -> None:
        self.text = ""
        self.ended = False
        self._news = asyncio.Event()

    async def record(self, client: httpx.AsyncClient, method: str, path: str, body: Any) -> None:
        try:
            async with client.stream(method, path, json=body) as response:
                async for piece in response.aiter_text():
                    self.text += piece
                    self._news.set()
        except httpx.TransportError:
            self.text += "\n: the connection broke\n"
        self.ended = True
        self._news.set()

    async def hears(self, event: str) -> None:
        await self._until(lambda: f"event: {event}\n" in self.text)

    async def ends(self) -> None:
        await self._until(lambda: self.ended)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()


@dataclass
class Backend:
    """The server's home and process, and everything that came out of it."""

    directory: Path
    model_url: str
    told: list[str] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.directory / "home"

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            await self.close(signal.SIGKILL)

    async def open(self) -> None:
        arguments = [str(self.home), str(self.directory / "notes"), self.model_url]
        with (self.directory / "stderr").open("ab") as stderr:
            self._process = await warm.create_subprocess_exec(
                sys.executable,
                str(HERE / "canary_child.py"),
                *arguments,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
            )
        said = await self.says()
        assert said, (self.directory / "stderr").read_text()
        url, token = said.split()
        self.client = await self._stack.enter_async_context(
            httpx.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {token}"},
                trust_env=False,
                timeout=PATIENCE,
                event_hooks={"response": [self._overhear]},
            )
        )
        self._listening = await self._stack.enter_async_context(
            httpx.AsyncClient(
                base_url=url, headers=self.client.headers, trust_env=False, timeout=PATIENCE
            )
        )

    async def says(self) -> str:
        """Its next line."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await self._process.stdout.readline()).decode()

    async def _overhear(self, response: httpx.Response) -> None:
        await response.aread()
        self.told.append(f"{response.status_code} {response.headers} {response.text}")

    async def close(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to go, and wait for it and its streams."""
        self._process.send_signal(how)
        return await self.died()

    async def died(self) -> int:
        assert self._process.stdout is not None
        self.told.append((await self._process.stdout.read()).decode())
        code = await self._process.wait()
        for tap in self.taps:
            await tap.ends()
        await self._stack.aclose()
        return code

    def tap(self, path: str, method: str = "GET", body: Any = None) -> Tap:
        tap = Tap()
        self.taps.append(tap)
        task = asyncio.create_task(tap.record(self._listening, method, path, body))
        task.add_done_callback(lambda done: done.cancelled() or done.result())
        return tap

    def received(self, canary: str) -> int:
        """How often the tool was given it."""
        notes = self.directory / "notes"
        digest = hashlib.sha256(canary.encode()).hexdigest()
        return notes.read_text().split().count(digest) if notes.exists() else 0

    async def look_everywhere(self) -> None:
        """Everything that anybody may read."""
        for path in ("/metrics", "/audit", "/tokens", "/interactions", "/runs", "/openapi.json"):
            await self._get(path)
        for run in (await self._get("/runs"))["runs"]:
            await self._get(f"/runs/{run['id']}")
            await self._get(f"/runs/{run['id']}/history")
        for question in (await self._get("/interactions"))["interactions"]:
            await self._get(f"/interactions/{question['requestId']}")

    async def _get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    def nowhere(self, canary: str, *elsewhere: str) -> None:
        texts = {str(path): path.read_bytes() for path in self.home.rglob("*") if path.is_file()}
        texts["stderr"] = (self.directory / "stderr").read_bytes()
        overheard = [*self.told, *(tap.text for tap in self.taps), *elsewhere]
        texts |= {one[:200]: one.encode() for one in overheard}
        assert any(name.endswith("holdfast.db") for name in texts)
        for spelled in spellings(canary):
            assert not [name for name, text in texts.items() if spelled in text], spelled


def porters_mind(seen: Seen) -> Entry:
    """Goes to the door that was named, and repeats all it was told of it."""
    if seen.results:
        return f"It came to this: {json.dumps(seen.results[-1].content, ensure_ascii=False)}"
    return call("unlock", door=seen.asked)


@pytest.fixture
async def peer() -> AsyncIterator[ModelPeer]:
    async with ModelPeer(porters_mind) as peer:
        yield peer


@pytest.fixture
async def house(tmp_path: Path, peer: ModelPeer) -> AsyncIterator[Backend]:
    async with Backend(tmp_path, peer.url) as house:
        yield house


async def asks(house: Backend, door: str) -> tuple[str, str, Tap]:
    """A plan that asks for its code: the instance, the question's path, the run's stream."""
    started = await house.client.post("/instances", json={"plan_id": door})
    instance_id = started.json()["id"]
    tap = house.tap(f"/runs/{instance_id}/events")
    await tap.hears("QuestionOpened")
    return instance_id, await question_of(house, instance_id), tap


async def question_of(house: Backend, run_id: str) -> str:
    found = await house.client.get("/interactions", params={"run": run_id, "status": "open"})
    [question] = found.json()["interactions"]
    return f"/interactions/{question['requestId']}"


async def lock_away(house: Backend, path: str, canary: str) -> str:
    """Twice under one key, as a client does whose connection broke."""
    key = {"Idempotency-Key": uuid4().hex}
    references = []
    for _ in range(2):
        kept = await house.client.post(f"{path}/secrets/code", json={"value": canary}, headers=key)
        assert kept.status_code == 200, kept.text
        references.append(kept.json()["reference"])
    assert references[0] == references[1]
    return str(references[0])


async def test_in_a_plans_form(house: Backend, canary: str) -> None:
    house.tap("/events")
    instance_id, path, tap = await asks(house, "front")
    reference = await lock_away(house, path, canary)
    house.nowhere(canary)
    key = {"Idempotency-Key": "answer"}
    for _ in range(2):
        answer = await house.client.post(
            f"{path}/answer", json={"data": {"code": reference}}, headers=key
        )
        assert answer.status_code == 200, answer.text
    await tap.ends()
    done = (await house.client.get(f"/instances/{instance_id}")).json()
    assert done["status"] == "done"
    assert f"front opens with {reference}" in json.dumps(done)
    await house.look_everywhere()
    house.nowhere(canary)
    assert await house.close() == 0
    house.nowhere(canary)
    assert house.received(canary) == 1


async def test_in_what_a_plan_is_started_with(house: Backend, canary: str) -> None:
    house.tap("/events")
    body = {"plan_id": "hall", "values": {"code": canary}}
    refused = await house.client.post("/instances", json=body | {"values": {"code": [canary]}})
    assert refused.status_code == 422
    for _ in range(2):
        started = await house.client.post(
            "/instances", json=body, headers={"Idempotency-Key": "hall"}
        )
        assert started.status_code == 201, started.text
    tap = house.tap(f"/runs/{started.json()['id']}/events")
    await tap.ends()
    assert "hall opens with secret:" in tap.text
    await house.look_everywhere()
    await house.close()
    house.nowhere(canary)
    assert house.received(canary) == 1


async def test_in_the_seeds_way_to_continue(house: Backend, canary: str) -> None:
    instance_id, path, tap = await asks(house, "front")
    raw = await house.client.post(f"/plans/{instance_id}/continue", json={"code": canary})
    assert raw.status_code == 422
    assert f"{path}/secrets/code" in raw.json()["fields"]["code"]
    reference = await lock_away(house, path, canary)
    taken = await house.client.post(
        f"/plans/{instance_id}/continue?wait=30", json={"code": reference}
    )
    assert taken.status_code == 200, taken.text
    assert reference in taken.text
    await tap.ends()
    await house.look_everywhere()
    await house.close()
    house.nowhere(canary)
    assert house.received(canary) == 1


async def test_in_a_chat_by_the_seeds_endpoint(
    house: Backend, peer: ModelPeer, canary: str
) -> None:
    house.tap("/events")
    following = house.tap(STREAM)
    turn = house.tap(STREAM, "POST", {"message": "front", "sessionId": "session-1"})
    await turn.hears("INTERACTION")
    path = await question_of(house, "session-1")
    reference = await lock_away(house, path, canary)
    response = {
        "sessionId": "session-1",
        "requestId": path.rpartition("/")[2],
        "selectedOptionId": None,
        "feedback": None,
        "data": {"code": reference},
    }
    raw = await house.client.post(RESPONSE, json=response | {"data": {"code": canary}})
    assert raw.status_code == 422
    as_feedback = {"data": {}, "feedback": canary}
    assert (await house.client.post(RESPONSE, json=response | as_feedback)).status_code == 422
    taken = await house.client.post(RESPONSE, json=response)
    assert taken.status_code == 200, taken.text
    await turn.ends()
    await following.hears("DONE")
    assert f"front opens with {reference}" in turn.text
    await house.look_everywhere()
    await house.close()
    prompts = json.dumps([one.body for one in peer.requests], ensure_ascii=False)
    assert reference in prompts
    house.nowhere(canary, prompts)
    assert house.received(canary) == 1


async def test_in_what_a_broken_tool_says(house: Backend, peer: ModelPeer, canary: str) -> None:
    instance_id, path, tap = await asks(house, "jammed")
    reference = await lock_away(house, path, canary)
    taken = await house.client.post(
        f"/plans/{instance_id}/continue?wait=30", json={"code": reference}
    )
    assert taken.status_code == 200, taken.text
    await tap.hears("PlannerGaveUp")
    assert house.received(canary) == 1
    turn = house.tap(STREAM, "POST", {"message": "jammed"})
    await turn.hears("INTERACTION")
    [chat] = (await house.client.get("/chats")).json()["chats"]
    path = await question_of(house, chat["sessionId"])
    data = {"code": await lock_away(house, path, canary)}
    answered = await house.client.post(f"{path}/answer", json={"data": data})
    assert answered.status_code == 200, answered.text
    await turn.ends()
    await house.look_everywhere()
    await house.close()
    prompts = json.dumps([one.body for one in peer.requests], ensure_ascii=False)
    assert "does not fit" in prompts
    house.nowhere(canary, prompts)
    assert house.received(canary) == 1 + ATTEMPTS, "in a chat a call that failed is tried again"


async def test_in_what_refused_requests_are_told(house: Backend, canary: str) -> None:
    _, path, tap = await asks(house, "front")
    secrets = f"{path}/secrets"
    long = canary + "x" * LONGEST
    refused: list[tuple[str, Any, int]] = [
        (f"{secrets}/door", {"value": canary}, 422),
        (f"{secrets}/code", {"value": long}, 422),
        (f"{secrets}/code", {"value": long * 200}, 422),
        (f"{secrets}/code", {"value": [canary]}, 422),
        (f"{secrets}/code", {"value": {canary: canary}}, 422),
        (f"{secrets}/code", {"value": canary, "worth": canary}, 422),
        (f"{secrets}/code", canary, 422),
        ("/interactions/unknown/secrets/code", {"value": canary}, 404),
        (f"{path}/answer", {"data": {"code": canary}}, 422),
        (f"{path}/answer", {"data": {"code": [canary]}}, 422),
        (f"{path}/answer", {"feedback": canary}, 422),
        (
            "/interactions/answers",
            {"requestIds": [path.rpartition("/")[2]], "feedback": canary},
            200,
        ),
    ]
    for place, body, status in refused:
        answer = await house.client.post(place, json=body)
        assert answer.status_code == status, f"{place}: {answer.text}"
    building = await house.client.put(f"{path}/draft", json={"data": {"code": canary}})
    assert building.status_code == 422
    cut = json.dumps({"value": canary})[:-1]
    kind = {"Content-Type": "application/json"}
    broken = await house.client.post(f"{secrets}/code", content=cut, headers=kind)
    assert broken.status_code == 422
    stranger = {"Authorization": "Bearer hf_unknown"}
    unknown = await house.client.post(f"{secrets}/code", json={"value": canary}, headers=stranger)
    assert unknown.status_code == 401
    data = {"code": await lock_away(house, path, "another")}
    assert (await house.client.post(f"{path}/answer", json={"data": data})).status_code == 200
    closed = await house.client.post(f"{secrets}/code", json={"value": canary})
    assert closed.status_code == 410
    late = await house.client.post(f"{path}/answer", json={"data": {"code": canary}})
    assert late.status_code == 422
    await tap.ends()
    await house.look_everywhere()
    await house.close()
    house.nowhere(canary)
    assert (house.received(canary), house.received("another")) == (0, 1)


@pytest.mark.parametrize("door", ["cellar", "attic"])
async def test_in_what_a_crash_leaves_behind(house: Backend, canary: str, door: str) -> None:
    house.tap("/events")
    instance_id, path, _ = await asks(house, door)
    data = {"code": await lock_away(house, path, canary)}
    turn = asyncio.create_task(house.client.post(f"{path}/answer", json={"data": data}))
    if door == "cellar":
        assert await house.died() == -signal.SIGABRT
        await asyncio.gather(turn, return_exceptions=True)
        assert b"Fatal Python error: Aborted" in (house.directory / "stderr").read_bytes()
    else:
        await turn
        assert await house.says() == "in the attic\n"
        assert await house.close(signal.SIGKILL) == -signal.SIGKILL
    house.nowhere(canary)
    await house.open()
    again = house.tap(f"/runs/{instance_id}/events")
    await again.hears("OutcomeLost")
    await house.look_everywhere()
    assert await house.close() == 0
    house.nowhere(canary)
    assert house.received(canary) == 1


async def test_in_the_page_of_a_mistake_of_ours(
    scene: Scene, canary: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)

    def fail(question_id: str, field: str, root_id: str, value: str, **_: Any) -> Any:
        raise RuntimeError(f"cannot seal {value}")

    @scene.app.tool
    async def unlock(door: str, code: str) -> None: ...

    load_unlock(scene.app)
    instance_id = await start(scene, "unlock")
    [question] = (await scene.admin.get(f"/interactions?run={instance_id}")).json()["interactions"]
    monkeypatch.setattr(scene.app.vault, "seal", fail)
    answer = await scene.admin.post(
        f"/interactions/{question['requestId']}/secrets/code", json={"value": canary}
    )
    assert answer.status_code == 500
    assert "RuntimeError" in caplog.text
    for spelled in spellings(canary):
        assert spelled not in answer.content + caplog.text.encode()


def load_unlock(app: Holdfast) -> None:
    app.load_plan_text(
        "plan_id: unlock\n"
        'main_task_id: "001"\n'
        'tasks: [{task_id: "001"}]\n'
        "listeners:\n"
        "  - {listener_id: L001, trigger_task_id: '001', trigger_condition: Running,\n"
        "     listener_type: tool, tool: unlock, args: {door: front},\n"
        "     fields: {code: {type: secret}}, success_output: {task_id: '001', status: Done}}\n"
    )
