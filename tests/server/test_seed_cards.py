"""What the seed's page is told of a question, and what it may answer with one line of words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from chat_scene import RESPONSE, Till, employ, listening_to, open_chat, rested
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.core.interactions.wire import request_from_wire
from holdfast.model.interaction import InteractionRequest
from holdfast.server.seed_cards import plain, seed_card

SESSION = "session-123"
KEY = "ow-very-secret-123"
API_KEY: dict[str, Any] = {
    "requestId": "x",
    "sessionId": SESSION,
    "type": "MISSING_INFO",
    "title": "缺少 API Key",
    "message": "执行该工具需要 OpenWeather API Key",
    "options": [
        {"optionId": "provide", "label": "提供 API Key", "action": "PROVIDE_INFO"},
        {"optionId": "skip", "label": "跳过该工具", "action": "SKIP"},
    ],
    "form": {"api_key": {"type": "secret", "label": "OpenWeather API Key"}},
}


@pytest.fixture
def till(app: Holdfast) -> Till:
    return employ(app)


@pytest.fixture
async def scene(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        await open_chat(scene.admin, sessionId=SESSION)
        yield scene


async def shown(scene: Scene, language: str = "en") -> dict[str, Any]:
    headers = {"Accept-Language": language}
    async with listening_to(scene.admin, headers=headers) as ear:
        return dict((await ear.until("INTERACTION"))[-1].data["data"])


async def asks_to_pay(scene: Scene, language: str = "en") -> dict[str, Any]:
    await scene.admin.post(f"/chats/{SESSION}/messages", json={"message": "pay 5"})
    await rested(scene, SESSION)
    return await shown(scene, language)


async def respond(scene: Scene, request_id: str, option: str, **given: Any) -> Any:
    body = {"sessionId": SESSION, "requestId": request_id, "selectedOptionId": option}
    return await scene.admin.post(RESPONSE, json={**body, "feedback": None, "data": {}, **given})


async def test_details_say_tool_arguments_and_what_each_option_does(scene: Scene) -> None:
    asked = await asks_to_pay(scene)
    assert asked["details"].split("\n") == [
        "Tool: pay.",
        'Arguments: {"amount":5}.',
        "Runs pay with these arguments. (“Approve and run”)",
        "Does not run pay; the agent thinks again with your words. (“Ask again with feedback”)",
        "Does not run pay. (“Reject”)",
        "Does not run pay; ends the whole run. (“Reject and stop everything”)",
    ]


async def test_a_question_follows_the_readers_language(scene: Scene) -> None:
    asked = await asks_to_pay(scene, "zh-CN,zh;q=0.9,en;q=0.8")
    assert asked["title"] == "执行 pay？"
    assert [one["label"] for one in asked["options"]] == [
        "批准并执行",
        "带反馈重试",
        "拒绝",
        "拒绝并终止全部",
    ]
    assert asked["options"][2]["inputPrompt"] == "请说明理由"
    assert "以所示参数执行 pay。（“批准并执行”）" in asked["details"]
    path, headers = f"/interactions/{asked['requestId']}", {"Accept-Language": "zh"}
    for told in (
        (await scene.admin.get(path, headers=headers)).json(),
        (await scene.admin.get("/interactions", headers=headers)).json()["interactions"][0],
        (await scene.admin.get(f"/chats/{SESSION}", headers=headers)).json()["interactions"][0],
    ):
        assert told["title"] == "执行 pay？"
        assert told["options"][0]["label"] == "批准并执行"
        assert told["options"][0]["consequence"] == "以所示参数执行 pay。"
        assert told["context"]["args"] == {"amount": 5}
    english = (await scene.admin.get(path)).json()
    assert english["options"][0]["consequence"] == "Runs pay with these arguments."


async def test_nothing_that_is_told_is_read_as_markup() -> None:
    hostile = "<img src=x onerror=alert(1)> a < b && c &lt;b&gt; \u202eevil"
    card = seed_card(
        request_from_wire(
            {
                **API_KEY,
                "type": "TOOL_APPROVAL",
                "form": None,
                "title": hostile,
                "message": hostile,
                "details": hostile,
                "context": {"tool": "pay", "args": {"note": hostile}, "quoted": hostile},
            }
        ),
        "en",
    )
    for name in ("title", "message", "details"):
        assert "<img" not in card[name]
        assert "&lt;" not in card[name]
        assert "\u202e" not in card[name]
        assert "\\u003cimg" in card[name]
        assert "a < b && c" in card[name]
    assert card["context"]["args"] == {"note": hostile}
    assert json.loads(f'"{plain("<b>")}"') == "<b>"


FIELDS = [
    ({"type": "text", "label": "Key", "description": "As printed"}, "Key: As printed"),
    ({"type": "radio", "label": "Size", "options": ["S", "M"]}, "Size (one of: S / M)"),
    (
        {"type": "multiselect", "label": "Extras", "options": ["a", "b"]},
        "Extras (any of, with commas between: a / b)",
    ),
    ({"type": "boolean", "label": "Sure"}, "Sure (yes or no)"),
    ({"type": "date", "label": "Day"}, "Day (as 2026-01-31)"),
]


@pytest.mark.parametrize(("field", "prompt"), FIELDS)
def test_a_form_of_one_field_is_asked_for_by_the_prompt(field: dict[str, Any], prompt: str) -> None:
    request: InteractionRequest = request_from_wire({**API_KEY, "form": {"x": field}})
    provide, skip = seed_card(request, "en")["options"]
    assert (provide["requiresInput"], provide["inputPrompt"]) == (True, prompt)
    assert (skip["requiresInput"], skip["inputPrompt"]) == (False, "")


async def test_a_secret_by_one_line_is_sealed_and_kept_nowhere_else(scene: Scene) -> None:
    await scene.app.sessions.request_interaction(SESSION, API_KEY)
    asked = await shown(scene)
    assert asked["options"][0]["inputPrompt"] == "OpenWeather API Key"
    for _ in range(2):
        taken = await respond(scene, asked["requestId"], "provide", feedback=KEY)
        assert taken.status_code == 200, taken.text
    other = await respond(scene, asked["requestId"], "provide", feedback="another")
    assert other.status_code == 409
    await rested(scene, SESSION)
    records = await scene.app.journal.read(SESSION)
    assert KEY not in "".join(one.payload for one in records)
    answered = next(one for one in records if one.type.startswith("QuestionAnswered"))
    assert json.loads(answered.payload)["data"]["api_key"].startswith("secret:")


async def test_refusals_carry_a_message_in_the_readers_language(scene: Scene, till: Till) -> None:
    asked = await asks_to_pay(scene)
    silent = await respond(scene, asked["requestId"], "reject")
    assert (silent.status_code, silent.json()["message"]) == (422, "Reject: Why not?")
    body = {"sessionId": SESSION, "requestId": asked["requestId"], "selectedOptionId": "reject"}
    told = await scene.admin.post(RESPONSE, json=body, headers={"Accept-Language": "zh-CN"})
    assert told.json()["message"] == "拒绝：请说明理由"
    malformed = await scene.admin.post(RESPONSE, json={"requestId": ""})
    assert malformed.json()["message"]
    assert till.paid == []


async def test_data_beside_an_approval_is_an_edit(scene: Scene, till: Till) -> None:
    asked = await asks_to_pay(scene)
    for data, name in (({"key": "value"}, "key"), ({"amount": None}, "amount")):
        refused = await respond(scene, asked["requestId"], "approve", data=data)
        assert refused.status_code == 422
        assert list(refused.json()["fields"]) == [name]
    assert till.paid == []
    assert (await respond(scene, asked["requestId"], "approve", data={"amount": 3})).is_success
    await rested(scene, SESSION)
    assert till.paid == [3]


def test_what_is_quoted_already_is_not_quoted_twice() -> None:
    choice = {
        "type": "USER_CHOICE",
        "form": None,
        "options": [{"optionId": "choice_1", "label": "“茶”", "action": "APPROVE_AND_EXECUTE"}],
    }
    request = request_from_wire({**API_KEY, **choice})
    assert seed_card(request, "zh")["details"].split("\n")[-1] == "以此选择继续。（“茶”）"
    assert seed_card(request, "en")["details"].split("\n")[-1] == "Goes on with this choice. (“茶”)"
    assert seed_card(request, "zh")["options"][0]["label"] == "“茶”"
