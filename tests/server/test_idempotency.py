"""A request that changes something is carried out once, however often it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_scene import GRANT_ACCESS, Office, Scene, furnish, serving, settled, start

from holdfast import Holdfast, errors
from holdfast.journal.port import Attached
from holdfast.plans.results import Taken
from holdfast.plans.routing import Routed
from holdfast.runtime.audit import REQUEST
from holdfast.server.middleware.idempotency import WriteBehind
from holdfast.testing.clock import ManualClock

MODEL = {"computer_model": "MacBook Pro"}
KEY = {"Idempotency-Key": "8e03978e-40d5-43e8-bc93"}

ASKS_TWICE = """\
plan_id: asks_twice
name: Two amounts
main_task_id: "001"
tasks:
  - {task_id: "001", name: Both}
  - {task_id: "002", name: The first}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: How much?
    form: {amount: {type: number, label: Amount}}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: human
    title: And how much more?
    form: {amount: {type: number, label: Amount}}
    success_output: {task_id: "001", status: Done}
"""


ASKS_BOTH = """\
plan_id: asks_both
name: Two forms at once
main_task_id: "001"
tasks:
  - {task_id: "001", name: Both}
  - {task_id: "002", name: The one}
  - {task_id: "003", name: The other}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: How much?
    form: {amount: {type: number, label: Amount}}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: What for?
    form: {purpose: {type: text, label: Purpose}}
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "003"
    trigger_condition: "003.status == Done and 002.status == Done"
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


ASKS_THE_SAME_AGAIN = """\
  - listener_id: L004
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: human
    title: How much again?
    form: {amount: {type: number, label: Amount}}
    success_output: {task_id: "001", status: Done}
"""


def same(first: httpx.Response, second: httpx.Response) -> None:
    """Byte for byte, and marked as given before."""
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["content-type"] == first.headers["content-type"]
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"


async def twice(
    client: httpx.AsyncClient, method: str, path: str, body: Any = None
) -> httpx.Response:
    first = await client.request(method, path, json=body, headers=KEY)
    assert first.status_code < 300, first.text
    second = await client.request(method, path, json=body, headers=KEY)
    same(first, second)
    return first


async def versions(scene: Scene) -> dict[str, int]:
    runs = await scene.app.runs()
    return {run.run_id: await scene.app.journal.version(run.run_id) for run in runs}


async def test_starting_twice_starts_once(scene: Scene) -> None:
    await twice(scene.admin, "POST", "/instances", {"plan_id": "apply_computer"})
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1


async def test_continuing_twice_orders_once_also_with_a_wait(scene: Scene, office: Office) -> None:
    first, second = await start(scene), await start(scene)
    await twice(scene.admin, "POST", f"/plans/{first}/continue?wait=30", MODEL)
    body = {"provided_params": MODEL}
    await twice(scene.admin, "POST", f"/instances/{second}/continue", body)
    await settled(scene, second)
    assert office.count("apply_computer") == 2


async def test_resuming_cancelling_skipping_and_editing_twice(scene: Scene, office: Office) -> None:
    for path, body in (
        ("resume", None),
        ("cancel", {"reason": "enough"}),
        ("skip", {"listener_id": "L001"}),
        ("mark-done", {"task_id": "002"}),
    ):
        office.failures = 1
        instance_id = await start(scene, "grant_access")
        await twice(scene.admin, "POST", f"/instances/{instance_id}/{path}", body)
        await settled(scene, instance_id)
        before = await versions(scene)
        again = await scene.admin.post(f"/instances/{instance_id}/{path}", json=body, headers=KEY)
        assert again.headers["idempotency-replayed"] == "true"
        assert await versions(scene) == before


async def test_the_seeds_resume_twice(scene: Scene, office: Office) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    await twice(scene.admin, "POST", "/plans/grant_access/resume")
    assert await settled(scene, instance_id) == "done"
    assert office.count("grant_access") == 2


async def test_answering_and_keeping_a_draft_twice(scene: Scene, office: Office) -> None:
    instance_id = await start(scene)
    shown = (await scene.admin.get(f"/instances/{instance_id}")).json()
    question = shown["interactions"][0]
    await twice(scene.admin, "PUT", f"/interactions/{question}/draft", {"data": MODEL})
    before = await versions(scene)
    again = {"data": MODEL}
    await scene.admin.put(f"/interactions/{question}/draft", json=again, headers=KEY)
    assert await versions(scene) == before
    await twice(scene.admin, "POST", f"/interactions/{question}/answer", {"data": MODEL})
    await settled(scene, instance_id)
    assert office.count("apply_computer") == 1


async def test_a_token_is_issued_once_shown_again_and_not_at_rest(
    scene: Scene, office: Office
) -> None:
    body = {"name": "ci", "roles": ["viewer"]}
    first = await twice(scene.admin, "POST", "/tokens", body)
    tokens = (await scene.admin.get("/tokens")).json()
    text = json.dumps(tokens)
    assert text.count('"ci"') == 1
    secret = first.json()["token"]
    rows = await scene.app.journal.all_kept(REQUEST, scene.services.now())
    assert rows
    assert all(secret not in row.body for row in rows)
    token_id = next(one["id"] for one in tokens["tokens"] if one["name"] == "ci")
    await twice(scene.admin, "DELETE", f"/tokens/{token_id}")


async def test_registering_twice_is_one_deed(scene: Scene) -> None:
    await twice(scene.admin, "POST", "/plans", {"source": GRANT_ACCESS})
    deeds = [one.record.action for one in await scene.app.journal.audit()]
    assert deeds.count("registered") == 1


async def test_another_body_or_query_under_the_same_key_is_refused(scene: Scene) -> None:
    await scene.admin.post("/instances", json={"plan_id": "apply_computer"}, headers=KEY)
    other = await scene.admin.post("/instances", json={"plan_id": "grant_access"}, headers=KEY)
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["fields"]
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1


async def test_a_key_is_one_persons_and_one_paths(scene: Scene) -> None:
    body = {"plan_id": "apply_computer"}
    mine = await scene.admin.post("/instances", json=body, headers=KEY)
    theirs = await (await scene.as_a("operator")).post("/instances", json=body, headers=KEY)
    assert mine.json()["id"] != theirs.json()["id"]
    elsewhere = await scene.admin.post(f"/instances/{mine.json()['id']}/cancel", headers=KEY)
    assert elsewhere.status_code == 200
    assert elsewhere.json()["status"] in ("cancelling", "cancelled")


async def test_a_stranger_learns_nothing_from_a_key(scene: Scene) -> None:
    await scene.admin.post("/instances", json={"plan_id": "apply_computer"}, headers=KEY)
    answer = await scene.stranger.post(
        "/instances", json={"plan_id": "apply_computer"}, headers=KEY
    )
    assert answer.status_code == 401


async def test_a_key_must_be_visible_ascii(scene: Scene) -> None:
    for key in ("", "a b", "x" * 201, "ключ"):
        answer = await scene.admin.post(
            "/instances",
            json={"plan_id": "apply_computer"},
            headers={"Idempotency-Key": key.encode()},  # type: ignore[dict-item]
        )
        assert answer.status_code == 422, key
    assert (await scene.admin.get("/instances")).json()["instances"] == []


async def test_of_many_at_once_one_is_carried_out(scene: Scene, office: Office) -> None:
    instance_id = await start(scene)

    async def send() -> httpx.Response:
        path = f"/plans/{instance_id}/continue?wait=30"
        return await scene.admin.post(path, json=MODEL, headers=KEY)

    answers = await asyncio.gather(*(send() for _ in range(8)))
    assert len({(one.status_code, one.content) for one in answers}) == 1
    assert sum("idempotency-replayed" not in one.headers for one in answers) == 1
    assert office.count("apply_computer") == 1


async def test_of_many_starts_at_once_one_is_carried_out(scene: Scene) -> None:
    async def send() -> httpx.Response:
        body = {"plan_id": "apply_computer"}
        return await scene.admin.post("/instances", json=body, headers=KEY)

    answers = await asyncio.gather(*(send() for _ in range(8)))
    assert len({one.content for one in answers}) == 1
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1


async def test_a_refusal_is_judged_anew(scene: Scene, office: Office) -> None:
    instance_id = await start(scene)
    path = f"/instances/{instance_id}/resume"
    assert (await scene.admin.post(path, headers=KEY)).status_code == 409
    assert await scene.app.journal.all_kept(REQUEST, scene.services.now()) == []
    again = await scene.admin.post(path, headers=KEY)
    assert again.status_code == 409
    assert "idempotency-replayed" not in again.headers


def _has_answers(attached: Attached) -> bool:
    return any("answer" in json.loads(one.body) for one in attached.kept if one.kind == REQUEST)


@pytest.fixture
def keeps_no_answers(monkeypatch: pytest.MonkeyPatch, app: Holdfast) -> None:
    """The server falls after every commit, and the answer is never kept."""
    kept = app.journal.attach

    async def attach(attached: Attached) -> None:
        if _has_answers(attached):
            raise errors.JournalUnavailable("the server fell")
        await kept(attached)

    monkeypatch.setattr(app.journal, "attach", attach)
    monkeypatch.setattr(WriteBehind, "known", lambda *_: None)


@pytest.fixture
def writes_answers(monkeypatch: pytest.MonkeyPatch, app: Holdfast) -> asyncio.Event:
    """No answer reaches the disk before this is set."""
    let, kept = asyncio.Event(), app.journal.attach

    async def attach(attached: Attached) -> None:
        if _has_answers(attached):
            await let.wait()
        await kept(attached)

    monkeypatch.setattr(app.journal, "attach", attach)
    return let


async def test_nobody_waits_for_the_disk_to_have_an_answer_that_a_claim_vouches_for(
    scene: Scene, office: Office, writes_answers: asyncio.Event
) -> None:
    instance_id = await start(scene)
    path, body = f"/instances/{instance_id}/continue", {"provided_params": MODEL}
    first = await twice(scene.admin, "POST", path, body)
    await settled(scene, instance_id)
    [claim] = await scene.app.journal.all_kept(REQUEST, scene.services.now())
    assert "answer" not in json.loads(claim.body)
    writes_answers.set()
    await scene.services.requests.late.flush()
    [answer] = await scene.app.journal.all_kept(REQUEST, scene.services.now())
    assert "answer" in json.loads(answer.body)
    same(first, await scene.admin.post(path, json=body, headers=KEY))
    assert office.count("apply_computer") == 1


async def test_what_cannot_be_told_again_is_on_disk_before_it_is_told(
    scene: Scene, writes_answers: asyncio.Event
) -> None:
    body = {"name": "ci", "roles": ["viewer"]}
    issuing = asyncio.create_task(scene.admin.post("/tokens", json=body, headers=KEY))
    done, _ = await asyncio.wait((issuing,), timeout=0.2)
    assert not done
    writes_answers.set()
    assert (await issuing).status_code == 201
    [answer] = await scene.app.journal.all_kept(REQUEST, scene.services.now())
    assert "answer" in json.loads(answer.body)


@pytest.mark.usefixtures("keeps_no_answers")
async def test_a_start_whose_answer_was_lost_is_answered_from_the_run(
    scene: Scene, office: Office
) -> None:
    body = {"plan_id": "apply_computer"}
    first = await scene.admin.post("/instances", json=body, headers=KEY)
    assert first.status_code == 201
    await settled(scene, first.json()["id"])
    again = await scene.admin.post("/instances", json=body, headers=KEY)
    assert again.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["status"] == "pause"
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1
    other = await scene.admin.post("/instances", json={"plan_id": "grant_access"}, headers=KEY)
    assert other.status_code == 422


@pytest.mark.usefixtures("keeps_no_answers")
async def test_commands_whose_answers_were_lost_are_not_carried_out_again(
    scene: Scene, office: Office
) -> None:
    office.failures = 3
    waiting = await start(scene)
    path = f"/plans/{waiting}/continue"
    assert (await scene.admin.post(path, json=MODEL, headers=KEY)).status_code == 200
    await settled(scene, waiting)
    again = await scene.admin.post(path, json=MODEL, headers=KEY)
    assert again.json() == {"success": True, "status": "done", "result": None}
    assert office.count("apply_computer") == 1

    for command, body in (("cancel", None), ("skip", {"listener_id": "L001"}), ("resume", None)):
        instance_id = await start(scene, "grant_access")
        path = f"/instances/{instance_id}/{command}"
        assert (await scene.admin.post(path, json=body, headers=KEY)).status_code == 200
        await settled(scene, instance_id)
        before = await versions(scene)
        again = await scene.admin.post(path, json=body, headers=KEY)
        assert again.status_code == 200, (command, again.text)
        assert again.json()["id"] == instance_id
        assert await versions(scene) == before


@pytest.mark.usefixtures("keeps_no_answers")
async def test_a_repeated_continue_does_not_answer_the_next_question(
    scene: Scene, app: Holdfast
) -> None:
    app.load_plan_text(ASKS_TWICE)
    instance_id = await start(scene, "asks_twice")
    path = f"/plans/{instance_id}/continue"
    first = await scene.admin.post(path, json={"amount": 7}, headers=KEY)
    assert first.status_code == 200, first.text
    assert await settled(scene, instance_id) == "pause"
    before = await versions(scene)
    again = await scene.admin.post(path, json={"amount": 7}, headers=KEY)
    assert again.json() == {"success": True, "status": "pause", "result": None}
    assert await versions(scene) == before


BOTH = {"amount": 7, "purpose": "paper"}


@pytest.fixture
def fails_at_the_second_form(monkeypatch: pytest.MonkeyPatch, app: Holdfast) -> None:
    """Of the forms in one request the first is answered, and then the disk is full, once."""
    provide, calls = app.plans.provide, count(1)

    async def provide_or_fail(answers: Sequence[Routed], by: str) -> list[Taken]:
        if next(calls) == 2:
            raise errors.JournalUnavailable("the disk is full")
        return await provide(answers, by)

    monkeypatch.setattr(app.plans, "provide", provide_or_fail)


@pytest.mark.usefixtures("fails_at_the_second_form")
@pytest.mark.parametrize("headers", [KEY, {}])
async def test_forms_of_which_one_was_answered_before_the_fall_are_given_again_whole(
    scene: Scene, app: Holdfast, headers: dict[str, str]
) -> None:
    app.load_plan_text(ASKS_BOTH)
    instance_id = await start(scene, "asks_both")
    path = f"/plans/{instance_id}/continue"
    assert (await scene.admin.post(path, json=BOTH, headers=headers)).status_code == 503
    assert len((await scene.admin.get(f"/instances/{instance_id}")).json()["interactions"]) == 1

    other = {**BOTH, "amount": 8}
    assert (await scene.admin.post(path, json=other)).status_code == 409
    operator = await scene.as_a("operator")
    assert (await operator.post(path, json=BOTH)).status_code == 409
    unknown = await scene.admin.post(path, json={**BOTH, "colour": "red"})
    assert unknown.json()["fields"] == {"colour": "nobody asks for this"}
    assert len((await scene.admin.get(f"/instances/{instance_id}")).json()["interactions"]) == 1

    again = await scene.admin.post(path, json=BOTH, headers=headers)
    assert again.status_code == 200, again.text
    assert await settled(scene, instance_id) == "done"
    actions = [one.record.action for one in await app.journal.audit()]
    assert actions.count("answered") == 2
    assert (await scene.admin.post(path, json=BOTH, headers=headers)).status_code == 200


@pytest.mark.usefixtures("fails_at_the_second_form")
async def test_forms_given_again_go_where_they_went_and_not_to_one_that_asks_the_same_by_then(
    scene: Scene, app: Holdfast
) -> None:
    app.load_plan_text(ASKS_BOTH.replace("asks_both", "asks_on") + ASKS_THE_SAME_AGAIN)
    instance_id = await start(scene, "asks_on")
    path = f"/plans/{instance_id}/continue"
    assert (await scene.admin.post(path, json=BOTH, headers=KEY)).status_code == 503
    await settled(scene, instance_id)
    again = await scene.admin.post(path, json=BOTH, headers=KEY)
    assert again.status_code == 200, again.text
    assert await settled(scene, instance_id) == "pause"
    asked = await scene.admin.get("/interactions", params={"run": instance_id, "status": "open"})
    [left] = asked.json()["interactions"]
    assert left["title"] == "How much again?"


async def test_an_answer_is_not_told_to_the_same_person_with_other_roles(scene: Scene) -> None:
    mighty = await scene.somebody(["admin"], name="Will Zhang")
    body = {"name": "ci", "roles": ["viewer"]}
    first = await mighty.post("/tokens", json=body, headers=KEY)
    assert first.status_code == 201
    for roles in (["viewer"], ["admin", "approver"]):
        other = await scene.somebody(roles, name="Will Zhang")
        answer = await other.post("/tokens", json=body, headers=KEY)
        assert answer.status_code == 422
        assert first.json()["token"] not in answer.text
        assert "idempotency-replayed" not in answer.headers
    named = [one["name"] for one in (await scene.admin.get("/tokens")).json()["tokens"]]
    assert named.count("ci") == 1
    same(first, await mighty.post("/tokens", json=body, headers=KEY))


@pytest.mark.usefixtures("keeps_no_answers")
async def test_a_registration_whose_answer_was_lost_is_answered_from_the_plan(
    scene: Scene, office: Office
) -> None:
    first = await scene.admin.post("/plans", json={"source": GRANT_ACCESS}, headers=KEY)
    again = await scene.admin.post("/plans", json={"source": GRANT_ACCESS}, headers=KEY)
    assert again.status_code == first.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["digest"] == first.json()["digest"]
    deeds = [one.record.action for one in await scene.app.journal.audit()]
    assert deeds.count("registered") == 1


@pytest.mark.usefixtures("keeps_no_answers")
async def test_a_token_whose_answer_was_lost_is_not_issued_again(scene: Scene) -> None:
    body = {"name": "ci", "roles": ["viewer"]}
    assert (await scene.admin.post("/tokens", json=body, headers=KEY)).status_code == 201
    again = await scene.admin.post("/tokens", json=body, headers=KEY)
    assert again.status_code == 409
    assert "took effect" in again.json()["detail"]
    tokens = (await scene.admin.get("/tokens")).json()["tokens"]
    assert [one["name"] for one in tokens].count("ci") == 1


async def test_a_key_holds_after_a_restart_and_ends_after_a_day(tmp_path: Path) -> None:
    clock = ManualClock()
    body = {"plan_id": "apply_computer"}

    async def send() -> httpx.Response:
        app = Holdfast(tmp_path, clock=clock)
        furnish(app)
        async with serving(app) as scene:
            client = await scene.somebody(["operator"], name="Will Zhang")
            return await client.post("/instances", json=body, headers=KEY)

    first, second = await send(), await send()
    same(first, second)
    clock.advance(24 * 3600 + 1)
    third = await send()
    assert third.json()["id"] != first.json()["id"]
