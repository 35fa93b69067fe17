"""Questions over HTTP: who sees them, who may answer them, and what becomes of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from chat_scene import RESPONSE, Till, asked, asks_to_pay, employ, forget, open_chat, rested, tell
from server_scene import Scene, furnish, serving, settled, start

from holdfast import Holdfast
from holdfast.forms.patterns import most_text
from holdfast.server import questions
from holdfast.server.settings import ServerSettings
from holdfast.testing.clock import ManualClock

UNLOCK = """\
plan_id: unlock
name: Unlock a door
main_task_id: "001"
tasks:
  - {task_id: "001", name: Unlock a door}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: unlock
    args: {door: front}
    fields: {code: {type: secret, label: Code}}
    success_output: {task_id: "001", status: Done}
"""


@pytest.fixture
def till(app: Holdfast) -> Till:
    return employ(app)


@pytest.fixture
async def scene(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    furnish(app)
    async with serving(app) as scene:
        yield scene


async def test_a_question_says_all_that_a_person_needs(scene: Scene) -> None:
    question = await asks_to_pay(scene, 5)
    shown = (await scene.admin.get(f"/interactions/{question['requestId']}")).json()
    assert shown["type"] == "TOOL_APPROVAL"
    assert shown["context"]["args"] == {"amount": 5}
    assert [one["optionId"] for one in shown["options"]] == [
        "approve",
        "retry",
        "reject",
        "terminate",
    ]
    assert shown["formSchema"]["properties"]["amount"]["type"] == "integer"
    assert shown["status"] == "open"
    assert shown["runId"] == shown["rootId"] == question["sessionId"]
    assert shown["mayAnswer"] is True
    assert shown["mayNotBecause"] is None
    assert shown["deadline"] is None
    assert shown["serverTime"] >= shown["openedAt"]


async def test_an_answer_is_told_with_who_gave_it(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene, 5)
    approver = await scene.as_a("approver")
    path = f"/interactions/{question['requestId']}"
    answer = await approver.post(f"{path}/answer", json={"selectedOptionId": "approve"})
    assert answer.status_code == 200, answer.text
    assert await rested(scene, question["sessionId"]) == "done"
    shown = (await scene.admin.get(path)).json()
    assert (shown["status"], shown["answeredBy"]) == ("answered", "some approver")
    assert shown["selectedOptionId"] == "approve"
    assert shown["closedAt"] is not None
    assert shown["mayNotBecause"] == "it is answered"
    assert till.paid == [5]


async def test_a_question_is_told_whole_in_the_readers_language(scene: Scene) -> None:
    question = await asks_to_pay(scene)
    path, chinese = f"/interactions/{question['requestId']}", {"Accept-Language": "zh"}
    body = {"selectedOptionId": "reject", "feedback": "too much"}
    answer = await scene.admin.post(f"{path}/answer", json=body, headers=chinese)
    for shown in (answer.json(), (await scene.admin.get(path, headers=chinese)).json()):
        assert shown["mayNotBecause"] == "状态为 已回答"
        assert shown["options"][0]["consequence"] == "以所示参数执行 pay。"
    assert (await scene.admin.get(path)).json()["mayNotBecause"] == "it is answered"


async def test_texts_too_long_for_a_forms_patterns_are_refused_anyway(
    scene: Scene,
) -> None:
    """Whatever option is taken, and with no secrets in the form."""
    ruled = {"type": "text", "required": False, "validation": {"pattern": "^.{0,90}"}}
    no = {"optionId": "no", "label": "No", "action": "REJECT_WITH_REASON", "requiresInput": True}
    asked = await scene.app.sessions.request_interaction(
        await open_chat(scene.admin),
        {
            "requestId": "mine",
            "sessionId": "",
            "type": "USER_INPUT",
            "title": "Words?",
            "options": [no],
            "form": dict.fromkeys("abc", ruled),
        },
    )
    text = "x" * (most_text("^.{0,90}") // 2)
    body = {"selectedOptionId": "no", "data": dict.fromkeys("abc", text)}
    answer = await scene.admin.post(f"/interactions/{asked.request_id}/answer", json=body)
    assert answer.status_code == 422
    assert "too long for its patterns" in answer.json()["fields"]["c"]


async def test_both_spellings_of_an_answer_are_taken(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    body = {"selected_option_id": "reject", "feedback": "too much"}
    answer = await scene.admin.post(f"/interactions/{question['requestId']}/answer", json=body)
    assert answer.json()["feedback"] == "too much"
    await rested(scene, question["sessionId"])
    assert till.paid == []


async def test_the_same_answer_again_is_answered_the_same(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    path = f"/interactions/{question['requestId']}/answer"
    for _ in range(3):
        answer = await scene.admin.post(path, json={"selectedOptionId": "approve"})
        assert answer.status_code == 200
    await rested(scene, question["sessionId"])
    assert till.paid == [5]


async def test_an_answer_whose_answer_was_lost_is_told_how_it_stands(
    scene: Scene, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(scene.services.requests), "_keep", forget)
    key = {"Idempotency-Key": "lost-1"}
    for path in ("/interactions/{}/answer", RESPONSE):
        question = await asks_to_pay(scene)
        body = {"selectedOptionId": "approve"}
        if path == RESPONSE:
            body["requestId"] = question["requestId"]
        told = []
        for _ in range(2):
            sent = await scene.admin.post(
                path.format(question["requestId"]), json=body, headers=key
            )
            assert sent.status_code == 200, sent.text
            told.append(sent)
            await rested(scene, question["sessionId"])
        assert "Idempotency-Replayed" not in told[0].headers
        assert told[1].headers["Idempotency-Replayed"] == "true"
        assert told[1].json()["sessionId"] == question["sessionId"]
    assert till.paid == [5, 5]


async def test_a_draft_whose_answer_was_lost_is_told_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(scene.services.requests), "_keep", forget)
    question = await asks_to_pay(scene)
    path, key = f"/interactions/{question['requestId']}/draft", {"Idempotency-Key": "lost-2"}
    for _ in range(2):
        kept = await scene.admin.put(path, json={"data": {"amount": 4}}, headers=key)
        assert kept.json()["draft"] == {"amount": 4}


async def test_another_answer_is_told_who_was_first(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    path = f"/interactions/{question['requestId']}/answer"
    await scene.admin.post(path, json={"selectedOptionId": "terminate"})
    late = await (await scene.as_a("approver")).post(path, json={"selectedOptionId": "approve"})
    assert late.status_code == 409
    problem = late.json()
    assert problem["answered_by"] == "some admin"
    assert problem["answered_option_id"] == "terminate"
    assert problem["answered_at"] > 0
    assert till.paid == []


async def test_two_who_answer_at_once_are_not_both_heard(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    path = f"/interactions/{question['requestId']}/answer"
    approver = await scene.as_a("approver")
    answers = await asyncio.gather(
        scene.admin.post(path, json={"selectedOptionId": "approve"}),
        approver.post(path, json={"selectedOptionId": "reject", "feedback": "no"}),
    )
    assert sorted(one.status_code for one in answers) == [200, 409]
    await rested(scene, question["sessionId"])
    approved = answers[0].status_code == 200
    assert till.paid == ([5] if approved else [])


async def test_an_answer_that_does_not_fit_says_which_field(scene: Scene) -> None:
    instance_id = await start(scene)
    [question] = (await scene.admin.get(f"/interactions?run={instance_id}")).json()["interactions"]
    path = f"/interactions/{question['requestId']}/answer"
    answer = await scene.admin.post(path, json={"data": {"computer_model": "abacus"}})
    assert answer.status_code == 422
    assert "computer_model" in answer.json()["fields"]
    assert (await scene.admin.get(path.removesuffix("/answer"))).json()["status"] == "open"


async def test_an_unknown_question_is_not_found(scene: Scene) -> None:
    for path in ("/interactions/request-456", "/interactions/" + "0" * 32):
        assert (await scene.admin.get(path)).status_code == 404
        answer = await scene.admin.post(f"{path}/answer", json={"selectedOptionId": "approve"})
        assert answer.status_code == 404


@pytest.mark.parametrize("query", ["state=open", "status=lost", "limit=0", "dueBefore=soon"])
async def test_a_list_does_not_guess_what_was_meant(scene: Scene, query: str) -> None:
    assert (await scene.admin.get(f"/interactions?{query}")).status_code == 422


async def test_a_body_with_an_unknown_key_changes_nothing(scene: Scene) -> None:
    question = await asks_to_pay(scene)
    path = f"/interactions/{question['requestId']}"
    body = {"selectedOptionId": "approve", "toolArgs": {"amount": 5000}}
    answer = await scene.admin.post(f"{path}/answer", json=body)
    assert answer.status_code == 422
    assert "toolArgs" in answer.json()["fields"]
    assert (await scene.admin.get(path)).json()["status"] == "open"


async def test_only_the_asked_role_answers(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    path = f"/interactions/{question['requestId']}"
    for role in ("viewer", "operator", "author"):
        client = await scene.as_a(role)
        shown = (await client.get(path)).json()
        assert (shown["mayAnswer"], shown["mayNotBecause"]) == (
            False,
            "this question is for the role approver",
        )
        answer = await client.post(f"{path}/answer", json={"selectedOptionId": "approve"})
        assert answer.status_code == 403
    machine = await scene.somebody(["admin"], kind="service", name="robot")
    refused = await machine.post(f"{path}/answer", json={"selectedOptionId": "approve"})
    assert refused.status_code == 403
    assert "service token" in refused.json()["detail"]
    assert till.paid == []


async def test_who_is_refused_too_often_must_wait(scene: Scene) -> None:
    question = await asks_to_pay(scene)
    viewer = await scene.as_a("viewer")
    path = f"/interactions/{question['requestId']}/answer"
    codes = [
        (await viewer.post(path, json={"selectedOptionId": "approve"})).status_code
        for _ in range(31)
    ]
    assert codes == [403] * 30 + [429]
    answer = await scene.admin.post(path, json={"selectedOptionId": "terminate"})
    assert answer.status_code == 200


async def test_a_name_in_the_request_gives_no_authority(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    viewer = await scene.as_a("viewer")
    answer = await viewer.post(
        RESPONSE,
        json={
            "sessionId": question["sessionId"],
            "requestId": question["requestId"],
            "selectedOptionId": "approve",
            "userId": "some admin",
        },
        headers={"X-User-Id": "some admin", "X-Roles": "admin"},
    )
    assert answer.status_code == 403
    assert till.paid == []


async def test_four_eyes_want_another_than_who_asked_for_it(app: Holdfast, till: Till) -> None:
    async with serving(app, ServerSettings(four_eyes=True)) as scene:
        boss, other = scene.admin, await scene.as_a("approver")
        session_id = await open_chat(await scene.as_a("operator"))
        assert await tell(scene, boss, session_id, "pay 7") == "pause"
        question = await asked(boss, session_id)
        assert question["mayAnswer"] is False
        path = f"/interactions/{question['requestId']}/answer"
        assert (await boss.post(path, json={"selectedOptionId": "approve"})).status_code == 403
        grant = {"tool": "pay"}
        remembered = await boss.post(f"/chats/{session_id}/approvals", json=grant)
        assert remembered.status_code == 403
        assert (await other.post(path, json={"selectedOptionId": "approve"})).status_code == 200
        await rested(scene, session_id)
        assert till.paid == [7]


async def test_a_digest_that_is_not_the_questions_answers_nothing(scene: Scene, till: Till) -> None:
    question = await asks_to_pay(scene)
    path = f"/interactions/{question['requestId']}/answer"
    other = {"selectedOptionId": "approve", "digest": "0" * 64}
    assert (await scene.admin.post(path, json=other)).status_code == 409
    assert till.paid == []
    right = {"selectedOptionId": "approve", "digest": question["digest"]}
    assert (await scene.admin.post(path, json=right)).status_code == 200
    deeds = [entry.record for entry in await scene.app.journal.audit()]
    [answered] = [deed for deed in deeds if deed.action == "answered"]
    assert answered.seen == question["digest"]
    assert answered.who == "some admin"


async def test_what_one_may_not_read_does_not_exist(scene: Scene) -> None:
    question = await asks_to_pay(scene)
    stranger = await scene.somebody(grants={"apply_computer": ["admin"]}, name="elsewhere")
    path = f"/interactions/{question['requestId']}"
    assert (await stranger.get(path)).status_code == 404
    answer = await stranger.post(f"{path}/answer", json={"selectedOptionId": "approve"})
    assert answer.status_code == 404
    assert (await stranger.get("/interactions")).json()["interactions"] == []
    instance_id = await start(scene)
    seen = (await stranger.get("/interactions")).json()["interactions"]
    assert [one["rootId"] for one in seen] == [instance_id]


async def test_lists_are_filtered_and_come_in_pages(scene: Scene) -> None:
    ids = [(await asks_to_pay(scene, amount))["requestId"] for amount in (1, 2, 3)]
    first = (await scene.admin.get("/interactions?limit=2&status=open")).json()
    assert [one["requestId"] for one in first["interactions"]] == ids[:2]
    rest = (await scene.admin.get(f"/interactions?limit=2&after={first['next']}")).json()
    assert [one["requestId"] for one in rest["interactions"]] == ids[2:]
    assert rest["next"] is None
    assert (await scene.admin.get("/interactions?role=finance")).json()["interactions"] == []
    closed = await scene.admin.get("/interactions?status=answered&status=expired")
    assert closed.json()["interactions"] == []
    assert (await scene.admin.get("/interactions?run=inst_000099")).status_code == 404


async def test_a_list_ends_somewhere_among_much_that_one_may_not_see(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "PAGE", 1)
    monkeypatch.setattr(questions, "MOST_PAGES_READ", 2)
    for amount in (1, 2, 3):
        await asks_to_pay(scene, amount)
    shown = await start(scene)
    narrow = await scene.somebody(grants={"apply_computer": ["viewer"]})
    page = (await narrow.get("/interactions?status=open")).json()
    assert page["interactions"] == []
    assert page["next"] is not None
    page = (await narrow.get(f"/interactions?status=open&after={page['next']}")).json()
    assert [one["runId"] for one in page["interactions"]] == [shown]


async def test_a_draft_is_ones_own_and_binds_nobody(scene: Scene) -> None:
    instance_id = await start(scene)
    [question] = (await scene.admin.get(f"/interactions?run={instance_id}")).json()["interactions"]
    path = f"/interactions/{question['requestId']}"
    body = {"data": {"computer_model": "Mac"}}
    kept = await scene.admin.put(f"{path}/draft", json=body)
    assert kept.json()["draft"] == body["data"]
    assert (await scene.admin.get(path)).json()["draft"] == body["data"]
    operator = await scene.as_a("operator")
    assert (await operator.get(path)).json()["draft"] is None
    viewer = await scene.as_a("viewer")
    assert (await viewer.put(f"{path}/draft", json=body)).status_code == 403


async def test_several_are_answered_each_with_its_own_outcome(scene: Scene, till: Till) -> None:
    one, two = await asks_to_pay(scene, 1), await asks_to_pay(scene, 2)
    await scene.admin.post(
        f"/interactions/{two['requestId']}/answer", json={"selectedOptionId": "terminate"}
    )
    body = {
        "requestIds": [one["requestId"], two["requestId"], "0" * 32, one["requestId"]],
        "selectedOptionId": "approve",
    }
    approver = await scene.as_a("approver")
    headers = {"Idempotency-Key": "bulk-1"}
    first = await approver.post("/interactions/answers", json=body, headers=headers)
    told = first.json()
    assert (first.status_code, told["success"]) == (200, False)
    assert [(each["status"], each["success"]) for each in told["outcomes"]] == [
        (200, True),
        (409, False),
        (404, False),
    ]
    won, lost, unknown = (each["problem"] for each in told["outcomes"])
    assert won is None
    assert (lost["type"], lost["answered_by"]) == ("urn:holdfast:already-answered", "some admin")
    assert unknown["type"] == "urn:holdfast:not-found"
    again = await approver.post("/interactions/answers", json=body, headers=headers)
    assert again.json() == told
    anew = (await approver.post("/interactions/answers", json=body)).json()
    assert anew["outcomes"] == told["outcomes"]
    await rested(scene, one["sessionId"])
    assert till.paid == [1]


async def test_each_of_several_counts_for_what_was_shown_alone(scene: Scene, till: Till) -> None:
    one, two, three = [await asks_to_pay(scene, amount) for amount in (1, 2, 3)]
    body = {
        "requestIds": [each["requestId"] for each in (one, two, three)],
        "selectedOptionId": "approve",
        "digests": {one["requestId"]: one["digest"], two["requestId"]: one["digest"]},
    }
    told = (await scene.admin.post("/interactions/answers", json=body)).json()
    assert [each["status"] for each in told["outcomes"]] == [200, 409, 409]
    changed, unsaid = (each["error"] for each in told["outcomes"][1:])
    assert "not the question that you were shown" in changed
    assert unsaid == changed
    await rested(scene, one["sessionId"])
    assert till.paid == [1]
    raw = {**body, "digests": {one["requestId"]: "short"}}
    assert (await scene.admin.post("/interactions/answers", json=raw)).status_code == 422


async def test_a_deadline_comes_with_the_servers_time_and_what_happens_then(
    clock: ManualClock,
) -> None:
    app = Holdfast.in_memory(clock=clock)
    till = employ(app, asking={"timeout_seconds": 60, "role": "finance"})
    async with app, serving(app) as scene:
        question = await asks_to_pay(scene)
        assert question["deadline"] == question["openedAt"] + 60
        assert question["serverTime"] == clock.now()
        assert question["atDeadline"] == {"expires": True, "optionId": None}
        path = f"/interactions/{question['requestId']}"
        due = question["deadline"]
        soon = (await scene.admin.get(f"/interactions?dueBefore={due + 1}")).json()
        assert [one["requestId"] for one in soon["interactions"]] == [question["requestId"]]
        sooner = (await scene.admin.get(f"/interactions?dueBefore={due - 1}")).json()
        assert sooner["interactions"] == []
        approver = await scene.as_a("approver")
        refused = await approver.post(f"{path}/answer", json={"selectedOptionId": "approve"})
        assert refused.json()["detail"] == "this question is for the role finance"
        clock.advance(61)
        late = await scene.admin.post(f"{path}/answer", json={"selectedOptionId": "approve"})
        assert late.status_code == 410
        assert till.paid == []


async def test_a_secret_has_an_endpoint_of_its_own(scene: Scene) -> None:
    used: list[str] = []

    @scene.app.tool(idempotent=True)
    async def unlock(door: str, code: str) -> dict[str, str]:
        used.append(code)
        return {"door": door}

    scene.app.load_plan_text(UNLOCK)
    instance_id = await start(scene, "unlock")
    [question] = (await scene.admin.get(f"/interactions?run={instance_id}")).json()["interactions"]
    path = f"/interactions/{question['requestId']}"
    for body in ({"data": {"code": "canary-4711"}}, {"feedback": "canary-4711"}):
        refused = await scene.admin.post(f"{path}/answer", json=body)
        assert refused.status_code == 422
        assert f"{path}/secrets/code" in refused.json()["fields"]["code"]
        assert "canary" not in refused.text
    building = await scene.admin.put(f"{path}/draft", json={"data": {"code": "canary-4711"}})
    assert building.status_code == 422
    assert (await scene.admin.post(f"{path}/secrets/door", json={"value": "x"})).status_code == 422
    viewer = await scene.as_a("viewer")
    assert (await viewer.post(f"{path}/secrets/code", json={"value": "x"})).status_code == 403
    kept = await scene.admin.post(f"{path}/secrets/code", json={"value": "canary-4711"})
    reference = kept.json()["reference"]
    answer = await scene.admin.post(f"{path}/answer", json={"data": {"code": reference}})
    assert answer.status_code == 200, answer.text
    assert await settled(scene, instance_id) == "done"
    assert used == ["canary-4711"]
    shown = await scene.admin.get(path)
    assert shown.json()["data"] == {"code": reference}
    assert "canary" not in shown.text
