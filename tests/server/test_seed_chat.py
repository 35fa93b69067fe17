"""The seed's own paths: a turn as a stream, an EventSource on the newest session, an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import RESPONSE, STREAM, Heard, Till, employ, listening_to, open_chat, rested
from listeners import seen
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.server.settings import ServerSettings
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel


@pytest.fixture
def till(app: Holdfast) -> Till:
    return employ(app)


@pytest.fixture
async def scene(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        yield scene


def kinds(heard: list[Heard]) -> list[str]:
    """The events by name; a model's words while it speaks are told as often as it likes."""
    return [one.event for one in heard if one.id or one.event == "DONE"]


async def take(scene: Scene, asked: Heard, option: str, feedback: str | None = None) -> Any:
    body = {
        "sessionId": asked.data["sessionId"],
        "requestId": asked.data["data"]["requestId"],
        "selectedOptionId": option,
        "feedback": feedback,
        "data": {},
    }
    return await scene.admin.post(RESPONSE, json=body)


async def test_a_turn_is_streamed_from_its_start_until_done(scene: Scene) -> None:
    body = {"message": "hello", "sessionId": "session-123", "userId": "user-456"}
    async with listening_to(scene.admin, "POST", json=body) as ear:
        heard = await ear.rest()
    assert kinds(heard) == ["STARTED", "THINKING", "PROGRESS", "COMPLETED", "DONE"]
    assert all(one.data["sessionId"] == "session-123" for one in heard)
    assert [one.data["type"] for one in heard] == [one.event for one in heard]
    numbered = [one for one in heard if one.id]
    assert [int(str(one.id)) for one in numbered] == [one.data["seq"] for one in numbered]
    assert heard[0].data["data"]["by"] == "some admin"
    assert heard[-2].data["data"]["answer"] == "You said: hello"


@pytest.mark.parametrize(
    ("option", "feedback", "paid", "status"),
    [
        ("approve", None, [5], "done"),
        ("retry", "only if it must be", [], "done"),
        ("reject", "not today", [], "done"),
        ("terminate", None, [], "cancelled"),
    ],
)
async def test_each_option_of_an_approval_goes_its_way(
    scene: Scene, till: Till, option: str, feedback: str | None, paid: list[int], status: str
) -> None:
    body = {"message": "pay 5", "sessionId": "session-123"}
    async with listening_to(scene.admin, "POST", json=body) as ear:
        asked = (await ear.until("INTERACTION"))[-1]
        assert asked.data["data"]["context"]["args"] == {"amount": 5}
        answer = await take(scene, asked, option, feedback)
        assert answer.status_code == 200
        told = answer.json()
        assert told == {
            "success": True,
            "message": "用户响应已处理，正在恢复执行",
            "sessionId": "session-123",
            "timestamp": told["timestamp"],
        }
        done = (await ear.rest())[-1]
    assert (done.event, done.data["data"]["status"]) == ("DONE", status)
    assert till.paid == paid


async def test_a_further_message_in_the_session_is_the_next_turn(scene: Scene) -> None:
    for turn in (1, 2):
        body = {"message": f"hello {turn}", "sessionId": "session-123"}
        async with listening_to(scene.admin, "POST", json=body) as ear:
            heard = await ear.rest()
        assert heard[0].data["data"] == {
            "turn": turn,
            "message": f"hello {turn}",
            "by": "some admin",
        }


async def test_what_cannot_begin_is_no_stream_but_a_problem(scene: Scene) -> None:
    busily = {"message": "pay 5", "sessionId": "s"}
    async with listening_to(scene.admin, "POST", json=busily) as ear:
        await ear.until("INTERACTION")
        busy = await scene.admin.post(STREAM, json={"message": "hello", "sessionId": "s"})
    assert busy.status_code == 409
    for body in ({}, {"message": ""}, {"message": "x", "sessionId": "../s"}, {"msg": "x"}):
        assert (await scene.admin.post(STREAM, json=body)).status_code == 422
    viewer = await scene.as_a("viewer")
    assert (await viewer.post(STREAM, json={"message": "x"})).status_code == 403
    assert (await scene.stranger.post(STREAM, json={"message": "x"})).status_code == 401
    assert (await scene.stranger.get(STREAM)).status_code == 401


async def test_without_a_name_the_only_agent_or_the_configured_one_answers(
    app: Holdfast, till: Till
) -> None:
    app.agent("porter", name="Porter")
    async with serving(app) as scene:
        unsaid = await scene.admin.post(STREAM, json={"message": "hello"})
        assert unsaid.status_code == 422
        assert unsaid.json()["fields"] == {"agentId": "one of: clerk, porter"}
        async with listening_to(
            scene.admin, "POST", json={"message": "hello", "agentId": "porter"}
        ) as ear:
            await ear.until("DONE")
    async with serving(app, ServerSettings(default_agent="clerk")) as scene:
        async with listening_to(scene.admin, "POST", json={"message": "hello"}) as ear:
            await ear.until("DONE")
        agents = {one["sessionId"]: one["agentId"] for one in await chats(scene)}
    assert agents == {"chat_000001": "porter", "chat_000002": "clerk"}


async def chats(scene: Scene) -> list[dict[str, Any]]:
    return list((await scene.admin.get("/chats")).json()["chats"])


async def test_a_turn_under_one_key_is_started_once_and_told_again(scene: Scene) -> None:
    key = {"Idempotency-Key": "turn-1"}
    told = []
    for _ in range(2):
        async with listening_to(scene.admin, "POST", json={"message": "hello"}, headers=key) as ear:
            told.append([one for one in await ear.rest() if one.id])
    assert told[0] == told[1]
    [chat] = await chats(scene)
    assert chat["turn"] == 1


async def test_a_turn_is_told_again_without_those_that_came_after_it(scene: Scene) -> None:
    key = {"Idempotency-Key": "turn-1"}

    async def turn(message: str, headers: dict[str, str]) -> list[Heard]:
        body = {"message": message, "sessionId": "session-123"}
        async with listening_to(scene.admin, "POST", json=body, headers=headers) as ear:
            return await ear.rest()

    def numbered(heard: list[Heard]) -> list[Any]:
        return [(one.event, one.id, one.data) for one in heard if one.id or one.event == "DONE"]

    await turn("hello", {})
    first = await turn("what now?", key)
    await turn("something else", {})
    again = await turn("what now?", key)
    assert numbered(again) == numbered(first)
    assert again[-1].data["data"] == {"status": "done", "turn": 2}


async def test_an_event_source_waits_for_the_callers_first_session(scene: Scene) -> None:
    async with listening_to(scene.admin) as ear:
        assert await ear.place() == "0"
        await scene.admin.post(STREAM, json={"message": "hello", "sessionId": "session-123"})
        heard = await ear.rest()
    assert kinds(heard)[0] == "STARTED"
    assert kinds(heard)[-2:] == ["COMPLETED", "DONE"]
    assert heard[0].id == f"{heard[0].data['seq']}@session-123"


async def test_an_event_source_hears_a_question_and_what_comes_of_its_answer(
    scene: Scene, till: Till
) -> None:
    async with listening_to(scene.admin) as ear:
        await ear.place()
        starting = asyncio.create_task(scene.admin.post(STREAM, json={"message": "pay 5"}))
        asked = (await ear.until("INTERACTION"))[-1]
        assert (await take(scene, asked, "approve")).status_code == 200
        rest = await ear.rest()
        await starting
    assert kinds(rest)[-2:] == ["COMPLETED", "DONE"]
    assert till.paid == [5]


async def test_a_newcomer_is_shown_what_is_open(scene: Scene) -> None:
    session_id = await open_chat(scene.admin)
    await scene.admin.post(f"/chats/{session_id}/messages", json={"message": "pay 5"})
    await rested(scene, session_id)
    async with listening_to(scene.admin) as ear:
        first = await ear.next()
        assert first is not None
        assert first.event == "INTERACTION"
        assert first.data["data"]["context"]["args"] == {"amount": 5}


async def test_who_comes_back_misses_and_repeats_nothing(scene: Scene) -> None:
    async with listening_to(scene.admin) as ear:
        await ear.place()
        starting = asyncio.create_task(scene.admin.post(STREAM, json={"message": "pay 5"}))
        before = await ear.until("INTERACTION")
    assert (await take(scene, before[-1], "approve")).status_code == 200
    await starting
    headers = {"Last-Event-ID": str(ear.last_id)}
    async with listening_to(scene.admin, headers=headers) as again:
        after = await again.rest()
    ids = [int(str(one.id).partition("@")[0]) for one in before + after if one.id]
    assert ids == sorted(set(ids))
    told = [record.seq for record in await scene.app.journal.read("chat_000001")]
    assert ids[-1] == told[-1]
    assert "OBSERVING" in kinds(after)


async def test_who_has_heard_it_all_waits_for_the_next_turn(scene: Scene) -> None:
    async with listening_to(scene.admin, "POST", json={"message": "one"}) as ear:
        await ear.rest()
    end = f"{ear.last_id}@chat_000001"
    async with listening_to(scene.admin, path=f"{STREAM}?after={end}") as waiting:
        body = {"message": "two", "sessionId": "chat_000001"}
        await scene.admin.post(STREAM, json=body)
        heard = await waiting.rest()
    assert heard[0].data["data"]["message"] == "two"


async def test_a_place_in_one_session_is_none_in_the_next(scene: Scene) -> None:
    """By the time an EventSource is back the newest session may be another, and longer."""
    async with listening_to(scene.admin, "POST", json={"message": "hello"}) as first:
        await first.until("STARTED")
        place = f"{first.last_id}@chat_000001"
        await first.rest()
    async with listening_to(scene.admin, "POST", json={"message": "pay 5"}) as second:
        await second.until("INTERACTION")
        async with listening_to(scene.admin, headers={"Last-Event-ID": place}) as again:
            heard = await again.until("INTERACTION")
    assert heard[0].event == "STARTED"
    assert {one.data["sessionId"] for one in heard} == {"chat_000002"}


async def test_an_event_source_follows_its_own_caller_only(scene: Scene) -> None:
    operator = await scene.as_a("operator")
    async with listening_to(scene.admin) as ear:
        await ear.place()
        await operator.post(STREAM, json={"message": "mine"})
        await scene.admin.post(STREAM, json={"message": "ours"})
        heard = await ear.rest()
    assert {one.data["sessionId"] for one in heard} == {"chat_000002"}


async def test_the_newest_session_is_known_after_a_restart(tmp_path: Path) -> None:
    token = ""
    for life in range(2):
        app = Holdfast(tmp_path)
        employ(app)
        async with app, serving(app) as scene:
            if not life:
                _, token = await scene.services.tokens.issue("Will Zhang", roles=["operator"])
                will = await scene.with_token(token)
                session_id = await open_chat(will)
                await will.post(f"/chats/{session_id}/messages", json={"message": "pay 5"})
                await rested(scene, session_id)
                continue
            will = await scene.with_token(token)
            async with listening_to(will) as ear:
                assert (await ear.until("INTERACTION"))[-1].data["sessionId"] == "chat_000001"


async def test_nonsense_for_an_id_is_refused(scene: Scene) -> None:
    for place in ("now", "-1", "1@../x", "9" * 30):
        refused = await scene.admin.get(f"{STREAM}?after={place}")
        assert refused.status_code == 422, place


async def test_the_question_of_another_session_is_not_answered_here(
    scene: Scene, till: Till
) -> None:
    await open_chat(scene.admin, sessionId="mine")
    body = {"message": "pay 5", "sessionId": "other"}
    async with listening_to(scene.admin, "POST", json=body) as ear:
        request_id = (await ear.until("INTERACTION"))[-1].data["data"]["requestId"]
        here = {"sessionId": "mine", "requestId": request_id, "selectedOptionId": "approve"}
        assert (await scene.admin.post(RESPONSE, json=here)).status_code == 404
        unknown = {**here, "sessionId": "other", "requestId": "request-456"}
        assert (await scene.admin.post(RESPONSE, json=unknown)).status_code == 404
        assert till.paid == []
        there = {**here, "sessionId": "other"}
        assert (await scene.admin.post(RESPONSE, json=there)).status_code == 200
        await ear.rest()
    assert till.paid == [5]


async def test_who_is_not_known_any_longer_hears_no_more(app: Holdfast, till: Till) -> None:
    async with serving(app, ServerSettings(heartbeat=0.05)) as scene:
        made, token = await scene.services.tokens.issue("Will Zhang", roles=["operator"])
        will = await scene.with_token(token)
        turn = {"message": "pay 5"}
        key = {"Idempotency-Key": "one"}
        async with (
            listening_to(will) as idle,
            listening_to(will, "POST", json=turn, headers=key) as told,
        ):
            await idle.place()
            await told.until("INTERACTION")
            async with listening_to(will, "POST", json=turn, headers=key) as again:
                await again.until("INTERACTION")
                await scene.services.tokens.revoke(made.id)
                for ear in (told, again, idle):
                    await ear.until("bye")
                    assert await ear.next() is None
        await seen(lambda: scene.services.streams.clients == 0)


async def test_streams_end_when_the_server_closes(scene: Scene) -> None:
    async with listening_to(scene.admin) as ear:
        await ear.place()
        scene.services.streams.close()
        last = await ear.next()
        assert last is not None
        assert last.event == "bye"
        assert await ear.next() is None


UUID = "9f1c2d3e-4b5a-4c6d-8e7f-0a1b2c3d4e5f"


async def asks(scene: Scene, session_id: str, amount: int) -> None:
    """A session that waits for consent to a payment."""
    await open_chat(scene.admin, sessionId=session_id)
    await scene.admin.post(f"/chats/{session_id}/messages", json={"message": f"pay {amount}"})
    assert await rested(scene, session_id) == "pause"


async def test_an_event_source_follows_the_session_that_it_names(scene: Scene, till: Till) -> None:
    await asks(scene, UUID, 5)
    await asks(scene, "newer", 7)
    async with listening_to(scene.admin, path=f"{STREAM}?sessionId={UUID}") as ear:
        asked = (await ear.until("INTERACTION"))[-1]
        assert asked.data["data"]["context"]["args"] == {"amount": 5}
        assert (await take(scene, asked, "approve")).status_code == 200
        heard = await ear.rest()
    assert {one.data["sessionId"] for one in heard} == {UUID}
    assert kinds(heard)[-1] == "DONE"
    assert till.paid == [5]
    place = f"{STREAM}?sessionId={UUID}&after={heard[-2].id}"
    async with listening_to(scene.admin, path=place) as waiting:
        await scene.admin.post(STREAM, json={"message": "hello", "sessionId": UUID})
        again = await waiting.rest()
    assert again[0].data["data"]["message"] == "hello"


async def test_a_page_may_listen_before_it_speaks(scene: Scene) -> None:
    async with listening_to(scene.admin, path=f"{STREAM}?sessionId={UUID}") as ear:
        assert await ear.place() == f"0@{UUID}"
        await scene.admin.post(STREAM, json={"message": "other"})
        await scene.admin.post(STREAM, json={"message": "hello", "sessionId": UUID})
        heard = await ear.rest()
    assert {one.data["sessionId"] for one in heard} == {UUID}
    assert kinds(heard)[0] == "STARTED"


async def test_no_session_is_followed_that_the_caller_may_not_see(scene: Scene) -> None:
    await asks(scene, "theirs", 5)
    stranger = await scene.somebody(grants={"porter": ["operator"]}, name="Li Lei")
    refused = await stranger.get(f"{STREAM}?sessionId=theirs")
    assert refused.status_code == 404
    assert (await scene.admin.get(f"{STREAM}?sessionId=chat_000099")).status_code == 404
    assert (await scene.admin.get(f"{STREAM}?sessionId=../x")).status_code == 404


async def test_newer_sessions_are_followed_too_and_nothing_is_missed_or_repeated(
    scene: Scene, till: Till
) -> None:
    await asks(scene, "first", 5)
    async with listening_to(scene.admin) as ear:
        asked = [(await ear.until("INTERACTION"))[-1]]
        starting = asyncio.create_task(
            scene.admin.post(STREAM, json={"message": "pay 7", "sessionId": UUID})
        )
        asked += (await ear.until("INTERACTION"))[-1:]
    assert [one.data["sessionId"] for one in asked] == ["first", UUID]
    assert str(ear.last_id).count("@") == 2
    for one in asked:
        assert (await take(scene, one, "approve")).status_code == 200
    await starting
    for session_id in ("first", UUID):
        await rested(scene, session_id)
    headers = {"Last-Event-ID": str(ear.last_id)}
    async with listening_to(scene.admin, headers=headers) as again:
        heard = await again.rest()
    completed = [one.data["sessionId"] for one in heard if one.event == "COMPLETED"]
    assert sorted(completed) == sorted(["first", UUID])
    assert "INTERACTION" not in kinds(heard)
    assert sorted(till.paid) == [5, 7]


def bosss_mind(seen: Seen) -> Entry:
    """The boss hands the work on; the clerk wants to pay twice at once."""
    if seen.results:
        return "Settled."
    if seen.asked == "settle it":
        return call("ask_clerk", task="pay both")
    return say("", call("pay", amount=5), call("pay", amount=7))


async def test_questions_of_a_helper_follow_each_other_too(app: Holdfast) -> None:
    till = employ(app)
    app.agent("boss", name="Boss", model=None, agents=["clerk"])
    app.models.default_model = ScriptedModel(bosss_mind)
    async with serving(app) as scene, listening_to(scene.admin) as ear:
        await ear.place()
        body = {"message": "settle it", "agentId": "boss", "sessionId": "boss-1"}
        starting = asyncio.create_task(scene.admin.post(STREAM, json=body))
        first = (await ear.until("INTERACTION"))[-1]
        second = (await ear.until("INTERACTION"))[-1]
        assert (await take(scene, second, "approve")).status_code == 200
        again = (await ear.until("INTERACTION"))[-1]
        assert again.data["data"]["requestId"] == first.data["data"]["requestId"]
        assert again.id is None
        assert (await take(scene, again, "approve")).status_code == 200
        assert kinds(await ear.rest())[-1] == "DONE"
        await starting
    assert sorted(till.paid) == [5, 7]
