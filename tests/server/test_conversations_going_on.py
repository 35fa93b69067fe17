"""Conversations over HTTP: going on after a failure, pausing while it thinks, rules, the stream."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from server_scene import Scene, serving

from holdfast import Holdfast, Knowledge
from holdfast.core.run.state import RunState
from holdfast.errors import PermanentError
from holdfast.runtime.machines import as_conversation
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel

PATIENCE = 30.0
TASKS = [
    {"id": "pay", "description": "Pay", "type": "pay"},
    {"id": "mail", "description": "Mail", "type": "mail", "dependencies": ["pay"]},
    {"id": "report", "description": "Report", "type": "pay", "dependencies": ["mail"]},
]


class Office:
    def __init__(self, app: Holdfast) -> None:
        self.calls: Counter[str] = Counter()
        self.down = True
        self.last_word = "It is paid and mailed."
        self.thinking = asyncio.Event()
        self.thought = asyncio.Event()
        self.thought.set()
        app.tool(self.pay)
        app.tool(self.mail)
        app.models.default_model = self.model = ScriptedModel(self.answers)

    def pay(self) -> dict[str, Any]:
        self.calls["pay"] += 1
        return {"receipt": 7}

    def mail(self) -> dict[str, Any]:
        self.calls["mail"] += 1
        if self.down:
            raise PermanentError("the mail server is down")
        return {"sent": True}

    def answers(self, seen: Seen) -> Entry:
        if any(one.name == "plan_tasks" for one in seen.tools):
            self.thinking.set()
            return call("plan_tasks", tasks=TASKS)
        return say(self.last_word)


@pytest.fixture
def office(app: Holdfast) -> Office:
    return Office(app)


@pytest.fixture
async def scene(app: Holdfast, office: Office) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        yield scene


async def until(scene: Scene, state: str) -> dict[str, Any]:
    def there(run: RunState) -> bool:
        return as_conversation(run).phase == state

    await scene.app.engine.wait_for("conv_000001", there, PATIENCE)
    shown: dict[str, Any] = (await scene.admin.get("/conversations/conv_000001")).json()
    return shown


async def failed(scene: Scene) -> dict[str, Any]:
    await scene.admin.post("/conversations", json={"input": "pay and mail"})
    return await until(scene, "error")


async def resume(scene: Scene, **body: Any) -> Any:
    return await scene.admin.post("/conversations/conv_000001/resume", json=body)


async def test_a_failure_is_shown_with_what_may_be_done_and_none_is_chosen(
    scene: Scene, office: Office
) -> None:
    shown = await failed(scene)
    assert shown["failure"] == {
        "choices": ["retry", "skip", "stop"],
        "failed": ["mail"],
        "skips": ["mail", "report"],
        "doubtful": [],
    }
    for body in ({}, {"failed": "again"}, {"failed": None}):
        refused = await resume(scene, **body)
        assert refused.status_code == 422, refused.text
        assert "retry, skip, stop" in refused.text or "'retry', 'skip' or 'stop'" in refused.text
    chinese = {"Accept-Language": "zh"}
    told = await scene.admin.post(
        "/conversations/conv_000001/resume", json={"failed": "again"}, headers=chinese
    )
    assert told.json()["detail"].startswith("failed：应为 ")
    assert (await scene.admin.post("/conversations/conv_000001/resume")).status_code == 422
    assert (await until(scene, "error"))["version"] == shown["version"]


async def test_retry_pays_once(scene: Scene, office: Office) -> None:
    await failed(scene)
    office.down = False
    going = await resume(scene, failed="retry")
    assert going.status_code == 200, going.text
    shown = await until(scene, "completed")
    assert office.calls == {"pay": 2, "mail": 2}, "pay and report, each once"
    assert shown["answer"] == "It is paid and mailed."
    assert shown["failure"] is None
    late = await resume(scene, failed="retry")
    assert late.status_code == 409


async def test_skip_says_which(scene: Scene, office: Office) -> None:
    await failed(scene)
    await resume(scene, failed="skip")
    shown = await until(scene, "completed")
    assert {one["id"]: (one["status"], one["skipped"]) for one in shown["tasks"]} == {
        "pay": ("completed", ""),
        "mail": ("skipped", "it failed: the mail server is down"),
        "report": ("skipped", "it depends on mail, which failed"),
    }
    assert (shown["completed_tasks"], shown["skipped_tasks"]) == (1, 2)
    assert shown["progress"] == pytest.approx(1 / 3)
    assert office.calls == {"pay": 1, "mail": 1}
    [row] = (await scene.admin.get("/conversations")).json()["conversations"]
    assert (row["completed_tasks"], row["skipped_tasks"], row["total_tasks"]) == (1, 2, 3)


async def test_what_was_skipped_is_told_in_the_readers_language(
    scene: Scene, office: Office
) -> None:
    office.last_word = ""
    await failed(scene)
    await resume(scene, failed="skip")
    assert (await until(scene, "completed"))["answer"] == (
        'Pay: {"receipt":7}\n'
        "Mail: skipped (it failed: the mail server is down)\n"
        "Report: skipped (it depends on mail, which failed)"
    )
    chinese = {"Accept-Language": "zh"}
    answer = await scene.admin.get("/conversations/conv_000001", headers=chinese)
    assert answer.json()["answer"] == (
        'Pay: {"receipt":7}\n'
        "Mail: 已跳过（它失败了：the mail server is down）\n"
        "Report: 已跳过（它依赖的 mail 失败了）"
    )
    assert answer.json()["tasks"][2]["skipped"] == "它依赖的 mail 失败了"


async def test_stop_ends_the_turn_and_a_message_is_told_what_was_done(
    scene: Scene, office: Office
) -> None:
    await failed(scene)
    assert (await resume(scene, failed="stop")).json()["state"] == "idle"
    office.down = False
    await scene.admin.post("/conversations/conv_000001/messages", json={"input": "go on"})
    await until(scene, "completed")
    [asked] = [one for one in office.model.seen[1:] if one.tools]
    told = " ".join(str(one) for one in asked.messages)
    assert "must not be done again" in told
    assert '"receipt":7' in told


async def test_a_pause_while_it_thinks_is_kept_and_takes_hold_before_the_first_task(
    scene: Scene, office: Office
) -> None:
    held = await scene.app.engine.journal.version("conv_000001")
    assert held == 0
    waits = asyncio.Event()

    class Slow(ScriptedModel):
        async def _reply(self, *given: Any) -> Any:
            office.thinking.set()
            await waits.wait()
            return await super()._reply(*given)

    scene.app.models.default_model = Slow(office.answers)
    await scene.admin.post("/conversations", json={"input": "pay and mail"})
    async with asyncio.timeout(PATIENCE):
        await office.thinking.wait()
    paused = await scene.admin.post("/conversations/conv_000001/pause")
    assert (paused.status_code, paused.json()["will_pause"]) == (200, True)
    assert paused.json()["state"] == "decomposing"
    waits.set()
    shown = await until(scene, "paused")
    assert (shown["will_pause"], office.calls) == (False, {})
    office.down = False
    assert (await resume(scene)).status_code == 200
    await until(scene, "completed")


async def test_a_person_may_see_the_tasks_first(scene: Scene, office: Office) -> None:
    office.down = False
    await scene.admin.post("/conversations", json={"input": "pay", "confirm_tasks": True})
    await scene.app.engine.wait_for("conv_000001", lambda one: bool(one.open_questions), PATIENCE)
    [asked] = (await scene.admin.get("/interactions")).json()["interactions"]
    assert asked["title"] == "Run these tasks?"
    assert asked["details"].split("\n")[1] == "mail: Mail: mail; needs first: pay"
    chinese = {"Accept-Language": "zh"}
    [asked] = (await scene.admin.get("/interactions", headers=chinese)).json()["interactions"]
    assert asked["title"] == "执行这些任务？"
    assert [one["label"] for one in asked["options"]] == [
        "执行这些任务",
        "要求换一组任务",
        "停止会话",
    ]
    assert asked["options"][1]["inputPrompt"] == "需要如何调整？"
    assert asked["details"].split("\n")[1] == "mail: Mail: mail；需先完成：pay"
    assert office.calls == {}
    body = {"selectedOptionId": "run"}
    answered = await scene.admin.post(f"/interactions/{asked['requestId']}/answer", json=body)
    assert answered.status_code == 200, answered.text
    await until(scene, "completed")


async def test_served_conversations_get_the_applications_rules_and_knowledge(
    scene: Scene, office: Office
) -> None:
    office.down = False
    knowledge = Knowledge()
    knowledge.add("mail", "The mail goes to Will Zhang.")
    scene.app.rules, scene.app.knowledge = ("round to thousands",), knowledge
    await scene.admin.post("/conversations", json={"input": "mail"})
    await until(scene, "completed")
    assert "round to thousands" in office.model.seen[0].system
    assert "Will Zhang" in office.model.seen[0].system


async def frames(scene: Scene, **headers: str) -> list[dict[str, str]]:
    """What the stream has so far, up to the record that is the last one now."""
    last = (await scene.admin.get("/conversations/conv_000001")).json()["version"]
    found: list[dict[str, str]] = []
    path = "/conversations/conv_000001/events"
    async with asyncio.timeout(PATIENCE), scene.admin.stream("GET", path, headers=headers) as got:
        one: dict[str, str] = {}
        async for line in got.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                one[name] = value
                continue
            if "event" in one:
                found.append(one)
            if one.get("id") == str(last):
                return found
            one = {}
    raise AssertionError("the stream ended early")


async def test_the_stream_speaks_the_seeds_types_and_goes_on_after_any_of_them(
    scene: Scene, office: Office
) -> None:
    office.down = False
    await scene.admin.post("/conversations", json={"input": "pay and mail"})
    await until(scene, "completed")
    told = await frames(scene)
    kinds = [one["event"] for one in told]
    assert kinds[:3] == ["STATE_CHANGED", "STATE_CHANGED", "CONTEXT_RECEIVED"]
    assert kinds[-3:] == ["ANSWER", "STATE_CHANGED", "ENGINE_COMPLETED"]
    body = json.loads(told[-1]["data"])
    assert body["data"] == {"total_tasks": 3, "completed_tasks": 3}
    assert (body["event_type"], str(body["seq"])) == ("engine_completed", told[-1]["id"])
    for place in (0, len(told) // 2, len(told) - 2):
        rest = await frames(scene, **{"Last-Event-ID": told[place]["id"]})
        assert rest == told[place + 1 :]


async def test_the_stream_tells_what_was_skipped_in_the_readers_language(
    scene: Scene, office: Office
) -> None:
    office.last_word = ""
    await failed(scene)
    await resume(scene, failed="skip")
    await until(scene, "completed")
    for language, reason, last in (
        ("en", "it depends on mail, which failed", "Report: skipped (it depends on mail, which"),
        ("zh", "它依赖的 mail 失败了", "Report: 已跳过（它依赖的 mail 失败了）"),
    ):
        told = [
            json.loads(one["data"]) for one in await frames(scene, **{"Accept-Language": language})
        ]
        [skipped] = [one["data"] for one in told if one["data"].get("task_id") == "report"][-1:]
        assert (skipped["skipped"], skipped["reason"]) == (True, reason)
        [answer] = [one["data"]["answer"] for one in told if one["event_type"] == "answer"]
        assert answer.split("\n")[2].startswith(last)
        counts = {"total_tasks": 3, "completed_tasks": 1, "skipped_tasks": 2}
        assert told[-1]["data"] == counts
