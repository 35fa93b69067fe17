"""Attacks by callers: others' questions, stale and swapped answers, borrowed authority.

Each ends with what did not happen: no commit, no deed, no call of a tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from chat_scene import RESPONSE, STREAM, asked, listening_to, rested, tell
from hostile_scene import Ground, standing_ground
from listeners import listening_to as streaming

from holdfast import Holdfast
from holdfast.server.settings import ServerSettings
from holdfast.testing.clock import ManualClock

APPROVE = {"selectedOptionId": "approve"}
REJECT = {"selectedOptionId": "reject", "feedback": "not today"}


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


def ways_to_approve(question: dict[str, Any], **more: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Every path by which a call can be let run."""
    session, request = question["runId"], question["requestId"]
    return [
        ("POST", f"/interactions/{request}/answer", {**APPROVE, **more}),
        ("POST", "/interactions/answers", {"requestIds": [request], **APPROVE, **more}),
        ("POST", RESPONSE, {"sessionId": session, "requestId": request, **APPROVE, **more}),
        ("POST", RESPONSE, {"requestId": request, **APPROVE, **more}),
        ("POST", f"/plans/{session}/continue", APPROVE),
        ("POST", f"/instances/{session}/continue", {"provided_params": APPROVE}),
        ("POST", f"/chats/{session}/approvals", {"tool": "pay"}),
        ("POST", "/chats", {"agentId": "clerk", "approval": {"pay": "auto"}}),
    ]


def refused(answer: httpx.Response) -> bool:
    if answer.status_code == 200 and "outcomes" in answer.json():
        return all(one["status"] in (403, 404) for one in answer.json()["outcomes"])
    return answer.status_code in (403, 404)


@pytest.mark.parametrize(
    "name", ["viewer", "author", "operator", "service", "granted", "elsewhere"]
)
async def test_nobody_but_who_may_lets_a_call_run_by_any_path(name: str, ground: Ground) -> None:
    question = await ground.approval()
    before = await ground.standing()
    for method, path, body in ways_to_approve(question):
        answer = await ground.crowd[name].request(method, path, json=body)
        assert refused(answer), (name, path, answer.text)
    assert await ground.standing() == before
    assert ground.world.till.paid == []


async def test_a_question_is_answered_in_its_own_session_only(ground: Ground) -> None:
    mine, other = await ground.approval(1), await ground.approval(2)
    before = await ground.standing()
    for session in (mine["runId"], "", ".", "chat", f"{other['runId']}.c1", f"{other['runId']}0"):
        body = {"sessionId": session, "requestId": other["requestId"], **APPROVE}
        answer = await ground.crowd["approver"].post(RESPONSE, json=body)
        assert answer.status_code in ((200,) if session == "" else (404,)), (session, answer.text)
        if session == "":
            assert answer.json()["sessionId"] == other["runId"]
            await rested(ground.scene, other["runId"])
            assert ground.world.till.paid == [2]
            before = await ground.standing()
    assert await ground.standing() == before


async def test_replayed_answers_run_nothing_again(ground: Ground) -> None:
    question = await ground.approval()
    path = f"/interactions/{question['requestId']}/answer"
    approver, admin = ground.crowd["approver"], ground.crowd["admin"]
    assert (await approver.post(path, json=APPROVE)).status_code == 200
    await rested(ground.scene, question["runId"])
    before = await ground.standing()
    assert (await approver.post(path, json=APPROVE)).status_code == 200
    assert (await admin.post(path, json=APPROVE)).status_code == 409
    assert (await approver.post(path, json=REJECT)).status_code == 409
    seeds = {"requestId": question["requestId"], "sessionId": question["runId"], **APPROVE}
    assert (await approver.post(RESPONSE, json=seeds)).status_code == 200
    assert await ground.standing() == before
    assert ground.world.till.paid == [5]


async def test_an_answer_to_what_is_cancelled_is_too_late(ground: Ground) -> None:
    question = await ground.approval()
    await ground.scene.admin.post(f"/chats/{question['runId']}/cancel")
    await rested(ground.scene, question["runId"])
    before = await ground.standing()
    answer = await ground.crowd["approver"].post(
        f"/interactions/{question['requestId']}/answer", json=APPROVE
    )
    assert answer.status_code in (409, 410), answer.text
    assert await ground.standing() == before
    assert ground.world.till.paid == []


async def test_a_late_answer_counts_by_the_clock_not_by_the_timer(clock: ManualClock) -> None:
    app = Holdfast.in_memory(clock=clock)
    async with app, standing_ground(app) as ground:
        app.agent("clerk", model=None, tools=["pay"], asking={"timeout_seconds": 60})
        question = await ground.approval()
        clock.advance(60)
        for method, path, body in ways_to_approve(question)[:4]:
            answer = await ground.crowd["approver"].request(method, path, json=body)
            assert 410 in (answer.status_code, answer.json().get("outcomes", [{}])[0].get("status"))
        assert ground.world.till.paid == []


SWAPS: list[dict[str, Any]] = [
    {"data": {"args": {"amount": 500}}},
    {"args": {"amount": 500}},
    {"tool": "pay", "arguments": {"amount": 500}},
    {"request": {"amount": 500}},
    {"selected_option_id": "reject"},
    {"digest": "0" * 64},
    {"runId": "chat_000002"},
]


@pytest.mark.parametrize("swap", SWAPS)
async def test_an_answer_carries_no_arguments_of_its_own(
    swap: dict[str, Any], ground: Ground
) -> None:
    question = await ground.approval()
    before = await ground.standing()
    path = f"/interactions/{question['requestId']}/answer"
    answer = await ground.crowd["approver"].post(path, json={**APPROVE, **swap})
    assert answer.status_code in (409, 422), answer.text
    assert await ground.standing() == before


async def test_a_digest_of_another_proposal_consents_to_nothing(ground: Ground) -> None:
    """Rejected, and then asked for more: what was seen before is not what is asked now."""
    first = await ground.approval(5)
    approver, session = ground.crowd["approver"], first["runId"]
    old = f"/interactions/{first['requestId']}/answer"
    assert (await approver.post(old, json=REJECT)).status_code == 200
    await rested(ground.scene, session)
    await tell(ground.scene, ground.scene.admin, session, "pay 500")
    second = await asked(ground.scene.admin, session)
    assert second["requestId"] != first["requestId"]
    assert second["digest"] != first["digest"]
    before = await ground.standing()
    assert (await approver.post(old, json=APPROVE)).status_code == 409
    seen = {**APPROVE, "digest": first["digest"]}
    new = f"/interactions/{second['requestId']}/answer"
    assert (await approver.post(new, json=seen)).status_code == 409
    assert await ground.standing() == before
    assert ground.world.till.paid == []


FORGED = {
    "X-Role": "admin",
    "X-Roles": "admin",
    "X-User": "admin",
    "X-User-Id": "admin",
    "X-Forwarded-User": "admin",
    "X-Remote-User": "admin",
    "Remote-User": "admin",
    "X-Auth-Request-User": "admin",
    "X-Auth-Request-Groups": "admin",
    "X-Original-URL": "/healthz",
    "X-Rewrite-URL": "/healthz",
    "X-HTTP-Method-Override": "GET",
    "X-Forwarded-For": "127.0.0.1",
    "Forwarded": "for=127.0.0.1;host=localhost",
}


async def test_headers_and_bodies_lend_nobody_a_role(ground: Ground) -> None:
    question = await ground.approval()
    before = await ground.standing()
    labels = {"userId": "admin", "user_id": "admin"}
    for name, status in (("viewer", 403), ("nobody", 401)):
        for label in ({}, *({key: value} for key, value in labels.items())):
            body = {"requestId": question["requestId"], **APPROVE, **label}
            answer = await ground.crowd[name].post(RESPONSE, json=body, headers=FORGED)
            assert answer.status_code == status, answer.text
        for path in ("/tokens", "/audit"):
            answer = await ground.crowd[name].get(path, headers=FORGED)
            assert answer.status_code == status, answer.text
    assert await ground.standing() == before


async def test_a_user_id_is_a_label_and_the_audit_has_who_it_was(ground: Ground) -> None:
    body = {"message": "hello", "userId": "admin"}
    async with listening_to(ground.crowd["operator"], "POST", STREAM, json=body) as ear:
        heard = await ear.until("DONE")
    session = heard[-1].data["sessionId"]
    chat = (await ground.scene.admin.get(f"/runs/{session}")).json()
    assert chat["started_by"] == "operator"
    deeds = (await ground.scene.admin.get("/audit?limit=1000")).json()["entries"]
    assert {one["who"] for one in deeds if one["run_id"] == session} == {"operator"}


@pytest.fixture
async def four_eyed(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app, ServerSettings(four_eyes=True)) as ground:
        yield ground


async def test_who_wanted_it_does_not_approve_it_by_any_path_or_credential(
    four_eyed: Ground,
) -> None:
    """Neither the token that started it, nor another of that person's, nor their cookie."""
    scene = four_eyed.scene
    question = await four_eyed.approval()
    _, token = await scene.services.tokens.issue("some admin", "person", ["approver"], None)
    cookie = await scene.with_token(None)
    signed = await cookie.post("/login", json={"token": token})
    assert signed.json()["id"] == "some admin"
    cookie.headers["Origin"] = scene.url
    before = (await four_eyed.standing())[0]
    for client in (scene.admin, await scene.with_token(token), cookie):
        for method, path, body in ways_to_approve(question):
            answer = await client.request(method, path, json=body)
            assert refused(answer), (path, answer.text)
    assert (await four_eyed.standing())[0] == before
    assert four_eyed.world.till.paid == []
    other = f"/interactions/{question['requestId']}/answer"
    assert (await four_eyed.crowd["approver"].post(other, json=APPROVE)).status_code == 200


async def test_who_spoke_in_it_does_not_approve_it_either(four_eyed: Ground) -> None:
    session = await four_eyed.chat()
    _, token = await four_eyed.scene.services.tokens.issue(
        "both", "person", ["operator", "approver"], None
    )
    both = await four_eyed.scene.with_token(token)
    await tell(four_eyed.scene, both, session, "pay 7")
    question = await asked(four_eyed.scene.admin, session)
    for method, path, body in ways_to_approve(question):
        answer = await both.request(method, path, json=body)
        assert refused(answer), (path, answer.text)
    assert four_eyed.world.till.paid == []


async def test_a_service_with_every_role_does_not_approve_nor_make_people(ground: Ground) -> None:
    roles = ["admin", "approver", "operator"]
    _, token = await ground.scene.services.tokens.issue("robot", "service", roles, None)
    robot = await ground.scene.with_token(token)
    question = await ground.approval()
    before = await ground.standing()
    for method, path, body in ways_to_approve(question):
        assert refused(await robot.request(method, path, json=body)), path
    for path in ("/tokens", "/tokens/link"):
        answer = await robot.post(path, json={"name": "me", "roles": ["approver"]})
        assert answer.status_code == 403
    assert await ground.standing() == before


async def test_revoked_and_expired_credentials_are_out_at_once(clock: ManualClock) -> None:
    app = Holdfast.in_memory(clock=clock)
    async with app, standing_ground(app) as ground:
        tokens = ground.scene.services.tokens
        kept, secret = await tokens.issue("a", "person", ["operator"], None)
        _, brief = await tokens.issue("b", "person", ["operator"], None, clock.now() + 60)
        await tokens.new_link("c", ["viewer"])
        one, two = await ground.scene.with_token(secret), await ground.scene.with_token(brief)
        cookie = await ground.scene.with_token(None)
        await cookie.post("/login", json={"token": secret})
        for client in (one, two, cookie):
            assert (await client.get("/me")).status_code == 200
        assert (await ground.scene.admin.delete(f"/tokens/{kept.id}")).status_code == 204
        clock.advance(60)
        before = await ground.standing()
        for client in (one, two, cookie):
            assert (await client.get("/me")).status_code == 401
            body = {"plan_id": "apply_computer"}
            assert (await client.post("/instances", json=body)).status_code == 401
        assert (
            await ground.scene.stranger.post("/login", json={"token": secret})
        ).status_code == 401
        assert await ground.standing() == before


STREAMS = ("/events", "/runs/{run}/events", "/api/agent/chat/react/stream")


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("how", ["revoked", "parent revoked", "signed out", "expired"])
async def test_a_stream_ends_with_what_opened_it(how: str, path: str, clock: ManualClock) -> None:
    """The next heartbeat is an hour away, and the clock is the test's: nothing waits for them."""
    app = Holdfast.in_memory(clock=clock)
    async with app, standing_ground(app, ServerSettings(heartbeat=3600)) as ground:
        tokens = ground.scene.services.tokens
        kept, secret = await tokens.issue("a", "person", ["viewer"], None, clock.now() + 60)
        client = await ground.scene.with_token(None if " " in how else secret)
        if " " in how:
            await client.post("/login", json={"token": secret})
        run = await ground.waiting()
        async with streaming(client, path.format(run=run)) as stream:
            await stream.block()
            match how:
                case "signed out":
                    await client.post("/logout", headers={"Origin": ground.scene.url})
                case "expired":
                    clock.advance(60)
                case _:
                    await ground.scene.admin.delete(f"/tokens/{kept.id}")
            async with asyncio.timeout(30):
                *_, last = await stream.rest()
        assert last.event == "bye"
        assert (await client.get(path.format(run=run))).status_code == 401


async def test_of_many_who_open_a_link_at_once_one_gets_in(ground: Ground) -> None:
    link = await ground.link()

    async def opened() -> int:
        answer = await ground.scene.stranger.post("/login", json={"token": link})
        return answer.status_code

    statuses = await asyncio.gather(*(opened() for _ in range(8)))
    assert sorted(statuses) == [200] + [401] * 7
    sessions = (await ground.scene.admin.get("/tokens")).json()["tokens"]
    assert sum(one["form"] == "session" for one in sessions) == 1


async def test_guessing_tokens_is_slowed_down_whichever_way_it_is_done(ground: Ground) -> None:
    guesses: list[int] = []
    for number in range(8):
        guess = f"hf_{number:043d}"
        header = {"Authorization": f"Bearer {guess}"}
        guesses.append((await ground.scene.stranger.get("/me", headers=header)).status_code)
        posted = await ground.scene.stranger.post("/login", json={"token": guess})
        guesses.append(posted.status_code)
    assert guesses == [401] * 10 + [429] * 6
    good = await ground.scene.stranger.post("/login", json={"token": ground.tokens["viewer"]})
    assert good.status_code == 200


async def test_refused_answers_are_slowed_down_also_in_bulk(ground: Ground) -> None:
    question = await ground.approval()
    viewer = ground.crowd["viewer"]
    path = f"/interactions/{question['requestId']}"
    for _ in range(10):
        await viewer.post(f"{path}/answer", json=APPROVE)
        await viewer.put(f"{path}/draft", json={"data": {}})
        await viewer.post("/interactions/answers", json={"requestIds": [question["requestId"]]})
    waits = await viewer.post(f"{path}/answer", json=APPROVE)
    assert waits.status_code == 429
    assert int(waits.headers["retry-after"]) >= 1
    bulk = await viewer.post(
        "/interactions/answers", json={"requestIds": [question["requestId"]], **APPROVE}
    )
    assert bulk.json()["outcomes"][0]["status"] == 429
    assert (await viewer.get(path)).status_code == 200, "reading is not slowed down"
    assert ground.world.till.paid == []


async def test_a_key_of_another_is_no_way_to_their_answers(ground: Ground) -> None:
    key, body = {"Idempotency-Key": "known-to-all"}, {"name": "spare", "roles": ["admin"]}
    first = await ground.crowd["admin"].post("/tokens", json=body, headers=key)
    assert first.status_code == 201
    for name in ("viewer", "elsewhere", "service", "nobody"):
        answer = await ground.crowd[name].post("/tokens", json=body, headers=key)
        assert answer.status_code in (401, 403), name
        assert first.json()["token"] not in answer.text
        assert "idempotency-replayed" not in answer.headers
