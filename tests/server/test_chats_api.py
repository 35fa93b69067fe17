"""Chats over HTTP: sessions are opened, spoken in, shown, resumed and ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from chat_scene import Till, asked, employ, forget, open_chat, rested, tell
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.server.settings import ServerSettings
from holdfast.testing.model_script import fail
from holdfast.testing.scripted_model import ScriptedModel


@pytest.fixture
def till(app: Holdfast) -> Till:
    return employ(app)


@pytest.fixture
async def scene(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        yield scene


async def test_a_chat_shows_what_was_said_and_called(scene: Scene, till: Till) -> None:
    operator = await scene.as_a("operator")
    session_id = await open_chat(operator)
    assert await tell(scene, operator, session_id, "pay 5") == "pause"
    waiting = (await operator.get(f"/chats/{session_id}")).json()
    assert (waiting["status"], waiting["stage"], waiting["turn"]) == ("pause", "ACTING", 1)
    assert [one["context"]["args"] for one in waiting["interactions"]] == [{"amount": 5}]
    question = await asked(operator, session_id)
    approver = await scene.as_a("approver")
    path = f"/interactions/{question['requestId']}/answer"
    await approver.post(path, json={"selectedOptionId": "approve"})
    assert await rested(scene, session_id) == "done"
    chat = (await operator.get(f"/chats/{session_id}")).json()
    assert [one["role"] for one in chat["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert chat["messages"][1]["calls"] == [
        {"callId": chat["messages"][2]["callId"], "tool": "pay", "args": {"amount": 5}}
    ]
    assert chat["messages"][2]["content"] == {"paid": 5}
    assert chat["answer"] == 'Done: {"paid": 5}'
    assert chat["usage"]["requests"] == 2
    assert chat["startedBy"] == "some operator"
    assert chat["interactions"] == []
    assert chat["version"] == await scene.app.journal.version(session_id)
    assert till.paid == [5]


async def test_a_message_waits_for_the_turn_before_it(scene: Scene) -> None:
    operator = await scene.as_a("operator")
    session_id = await open_chat(operator)
    await tell(scene, operator, session_id, "pay 5")
    path = f"/chats/{session_id}/messages"
    refused = await operator.post(path, json={"message": "hurry"})
    assert refused.status_code == 409
    assert "waits for an answer" in refused.json()["detail"]


async def test_a_message_under_one_key_is_said_once(scene: Scene) -> None:
    operator = await scene.as_a("operator")
    session_id = await open_chat(operator)
    path, key = f"/chats/{session_id}/messages", {"Idempotency-Key": "m-1"}
    first = await operator.post(path, json={"message": "hello"}, headers=key)
    await rested(scene, session_id)
    again = await operator.post(path, json={"message": "hello"}, headers=key)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()
    other = await operator.post(path, json={"message": "goodbye"}, headers=key)
    assert other.status_code == 422
    assert (await operator.get(f"/chats/{session_id}")).json()["turn"] == 1


async def test_an_answer_that_was_lost_is_given_from_the_chat_as_it_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(scene.services.requests), "_keep", forget)
    key = {"Idempotency-Key": "lost-1"}

    async def twice(path: str, body: dict[str, Any]) -> list[Any]:
        return [await scene.admin.post(path, json=body, headers=key) for _ in range(2)]

    first, again = await twice("/chats", {"agentId": "clerk"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["sessionId"] == again.json()["sessionId"] == "chat_000001"
    first, again = await twice("/chats/chat_000001/messages", {"message": "hello"})
    assert again.json()["turn"] == 1
    first, again = await twice("/chats/chat_000001/approvals", {"tool": "pay"})
    assert first.json() == again.json()
    path = f"/chats/chat_000001/approvals/{first.json()['grantId']}"
    for _ in range(2):
        assert (await scene.admin.delete(path, headers=key)).json()["approvals"] == []


async def test_sessions_have_names_of_their_own_and_one_owner_each(scene: Scene) -> None:
    operator = await scene.as_a("operator")
    assert await open_chat(operator, sessionId="session-123") == "session-123"
    for name, status in (("session-123", 409), ("../etc", 422), ("chat_000007", 422)):
        again = await operator.post("/chats", json={"agentId": "clerk", "sessionId": name})
        assert again.status_code == status, name
    unknown = await operator.post("/chats", json={"agentId": "clark"})
    assert unknown.status_code == 404
    assert "clerk" in unknown.json()["detail"]


async def test_lists_show_what_the_caller_may_see(scene: Scene) -> None:
    scene.app.agent("porter", name="Porter")
    await open_chat(scene.admin)
    await open_chat(scene.admin, agentId="porter")
    await open_chat(scene.admin)
    everything = (await scene.admin.get("/chats?limit=2")).json()
    assert [one["sessionId"] for one in everything["chats"]] == ["chat_000003", "chat_000002"]
    rest = (await scene.admin.get(f"/chats?before={everything['next']}")).json()
    assert [one["sessionId"] for one in rest["chats"]] == ["chat_000001"]
    guest = await scene.somebody(grants={"porter": ["viewer"]}, name="guest")
    seen = (await guest.get("/chats")).json()["chats"]
    assert [(one["sessionId"], one["agentId"]) for one in seen] == [("chat_000002", "porter")]
    assert (await guest.get("/chats/chat_000001")).status_code == 404
    assert (await guest.get("/chats/chat_000002")).status_code == 200
    mine = (await scene.admin.get("/chats?agentId=porter&status=done")).json()["chats"]
    assert [one["sessionId"] for one in mine] == ["chat_000002"]


async def test_only_operators_speak(scene: Scene) -> None:
    session_id = await open_chat(scene.admin)
    for role in ("viewer", "approver", "author"):
        client = await scene.as_a(role)
        paths: list[tuple[str, dict[str, Any]]] = [
            ("/chats", {"agentId": "clerk"}),
            (f"/chats/{session_id}/messages", {"message": "hello"}),
            (f"/chats/{session_id}/cancel", {"reason": "mine"}),
        ]
        for path, body in paths:
            assert (await client.post(path, json=body)).status_code == 403, (role, path)
        assert (await client.post(f"/chats/{session_id}/resume")).status_code == 403
    assert (await scene.stranger.get("/chats")).status_code == 401


async def test_a_cancelled_chat_runs_nothing_more(scene: Scene, till: Till) -> None:
    operator = await scene.as_a("operator")
    session_id = await open_chat(operator)
    await tell(scene, operator, session_id, "pay 5")
    question = await asked(scene.admin, session_id)
    body = {"reason": "not needed"}
    assert (await operator.post(f"/chats/{session_id}/cancel", json=body)).status_code == 200
    assert await rested(scene, session_id) == "cancelled"
    path = f"/interactions/{question['requestId']}/answer"
    late = await scene.admin.post(path, json={"selectedOptionId": "approve"})
    assert late.status_code == 410
    refused = await operator.post(f"/chats/{session_id}/messages", json={"message": "hello"})
    assert refused.status_code == 409
    assert till.paid == []


async def test_a_failed_turn_is_resumed(scene: Scene) -> None:
    scene.app.models.default_model = ScriptedModel([fail(400), "All is well."])
    session_id = await open_chat(scene.admin)
    assert await tell(scene, scene.admin, session_id, "hello") == "error"
    assert (await scene.admin.get(f"/chats/{session_id}")).json()["error"]
    assert (await scene.admin.post(f"/chats/{session_id}/resume")).status_code == 200
    assert await rested(scene, session_id) == "done"
    assert (await scene.admin.get(f"/chats/{session_id}")).json()["answer"] == "All is well."
    assert (await scene.admin.post(f"/chats/{session_id}/resume")).status_code == 409


async def test_an_approval_is_remembered_until_it_is_taken_back(scene: Scene, till: Till) -> None:
    operator, approver = await scene.as_a("operator"), await scene.as_a("approver")
    session_id = await open_chat(operator)
    path = f"/chats/{session_id}/approvals"
    body = {"tool": "pay", "pattern": {"amount": 5}, "uses": 2, "seconds": 60}
    assert (await operator.post(path, json=body)).status_code == 403
    machine = await scene.somebody(["admin"], kind="service", name="robot")
    assert (await machine.post(path, json=body)).status_code == 403
    granted = await approver.post(path, json=body, headers={"Idempotency-Key": "g"})
    assert granted.status_code == 201
    again = await approver.post(path, json=body, headers={"Idempotency-Key": "g"})
    assert again.json() == granted.json()
    assert await tell(scene, operator, session_id, "pay 5") == "done"
    [kept] = (await operator.get(path)).json()["approvals"]
    assert (kept["by"], kept["uses"], kept["pattern"]) == ("some approver", 1, {"amount": 5})
    gone = await approver.delete(f"{path}/{kept['grantId']}")
    assert gone.json()["approvals"] == []
    assert await tell(scene, operator, session_id, "pay 5") == "pause"
    assert till.paid == [5]
    assert (await approver.delete(f"{path}/{kept['grantId']}")).status_code == 404
    assert (await approver.post(path, json={"tool": "stay"})).status_code == 404


async def test_a_rule_that_lets_calls_run_unasked_is_an_approval(scene: Scene, till: Till) -> None:
    operator = await scene.as_a("operator")
    loose: list[object] = ["auto", {"require_when": "amount > 1000"}]
    for rule in loose:
        body = {"agentId": "clerk", "approval": {"pay": rule}}
        refused = await operator.post("/chats", json=body)
        assert refused.status_code == 403
        assert "approval" in refused.json()["detail"]
    session_id = await open_chat(operator, approval={"pay": "disabled"})
    assert await tell(scene, operator, session_id, "pay 5") == "done"
    assert till.paid == []
    wrong = await operator.post("/chats", json={"agentId": "clerk", "approval": {"pay": "always"}})
    assert wrong.status_code == 422
    assert "approval.pay" in wrong.json()["fields"]
    session_id = await open_chat(scene.admin, approval={"pay": "auto"})
    assert await tell(scene, scene.admin, session_id, "pay 6") == "done"
    assert till.paid == [6]


async def test_under_four_eyes_nobody_loosens_the_rules_of_their_own_chat(
    app: Holdfast, till: Till
) -> None:
    async with serving(app, ServerSettings(four_eyes=True)) as scene:
        body = {"agentId": "clerk", "approval": {"pay": "auto"}}
        assert (await scene.admin.post("/chats", json=body)).status_code == 403


async def test_four_eyes_of_the_application_are_those_of_its_server(
    app: Holdfast, till: Till
) -> None:
    app.engine.four_eyes.enabled = True
    async with serving(app) as scene:
        body = {"agentId": "clerk", "approval": {"pay": "auto"}}
        refused = await scene.admin.post("/chats", json=body)
        assert refused.status_code == 403
        assert "four eyes" in refused.json()["detail"]
        session_id = await open_chat(scene.admin)
        path = f"/chats/{session_id}/approvals"
        assert (await scene.admin.post(path, json={"tool": "pay"})).status_code == 403
        assert await tell(scene, scene.admin, session_id, "pay 6") == "pause"
    assert till.paid == []


async def test_lists_say_what_a_chat_is_about(scene: Scene) -> None:
    operator = await scene.as_a("operator")
    session_id = await open_chat(operator)
    await tell(scene, operator, session_id, "pay 5\n")
    [chat] = (await operator.get("/chats")).json()["chats"]
    assert (chat["title"], chat["message"]) == ("Clerk", "pay 5")
    [run] = (await operator.get("/runs")).json()["runs"]
    assert run["summary"]["prompt"] == "pay 5"
    [question] = (await operator.get("/interactions")).json()["interactions"]
    assert question["about"] == "pay 5"
