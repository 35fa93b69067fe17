"""Forks over HTTP: a new instance from an event of one that is over, and who may begin one."""

from __future__ import annotations

from typing import Any

import pytest
from server_scene import Office, Scene, settled, start

from holdfast import Client
from holdfast.errors import NotAllowed
from holdfast.model.run import RunStatus

MODEL = {"computer_model": "MacBook Pro"}

PARENT = """\
plan_id: parent
name: Parent
main_task_id: "001"
tasks:
  - {task_id: "001", name: Parent}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: apply_computer
    success_output: {task_id: "001", status: Done}
"""


async def done(scene: Scene) -> str:
    instance_id = await start(scene)
    await scene.admin.post(f"/plans/{instance_id}/continue?wait=30", json=MODEL)
    assert await settled(scene, instance_id) == "done"
    return instance_id


async def history(scene: Scene, instance_id: str) -> list[dict[str, Any]]:
    told = (await scene.admin.get(f"/runs/{instance_id}/history")).json()
    return list(told["events"])


async def seq_of(scene: Scene, instance_id: str, kind: str) -> int:
    found = (one for one in await history(scene, instance_id) if one["type"] == kind)
    return int(next(found)["seq"])


async def test_what_was_done_is_not_done_again(scene: Scene, office: Office) -> None:
    instance_id = await done(scene)
    at = await seq_of(scene, instance_id, "ListenerSucceeded")
    answer = await scene.admin.post(f"/instances/{instance_id}/fork", json={"at": at})
    assert answer.status_code == 201, answer.text
    fork = answer.json()
    assert (fork["id"], fork["root_id"]) == ("inst_000002", "inst_000002")
    assert await settled(scene, fork["id"]) == "done"
    assert office.count("apply_computer") == 1
    [first, *_] = await history(scene, fork["id"])
    assert first["type"] == "RunForked"
    origin = first["data"]["fork"]
    assert (origin["origin"], origin["seq"]) == (instance_id, at)
    [entry, *_] = (await scene.admin.get(f"/runs/{fork['id']}/timeline")).json()["entries"]
    assert entry["what"] == f"forked {instance_id} at event {at}"


async def test_what_was_asked_then_is_asked_anew(scene: Scene, office: Office) -> None:
    instance_id = await done(scene)
    at = await seq_of(scene, instance_id, "QuestionOpened")
    answer = await scene.admin.post(f"/instances/{instance_id}/fork", json={"at": at})
    fork_id = answer.json()["id"]
    assert await settled(scene, fork_id) == "pause"
    other = {"computer_model": "ThinkPad X1"}
    await scene.admin.post(f"/plans/{fork_id}/continue?wait=30", json=other)
    assert await settled(scene, fork_id) == "done"
    assert [args["computer_model"] for _, args in office.calls] == ["MacBook Pro", "ThinkPad X1"]


@pytest.mark.parametrize(
    ("body", "told"),
    [({"at": 999}, "inst_000001 has no event 999: its events are 1 to"), ({"at": 0}, "at")],
)
async def test_an_event_that_there_is_not_is_refused(
    scene: Scene, office: Office, body: dict[str, int], told: str
) -> None:
    instance_id = await done(scene)
    answer = await scene.admin.post(f"/instances/{instance_id}/fork", json=body)
    assert answer.status_code == (404 if body["at"] else 422)
    assert told in answer.text
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1


@pytest.mark.parametrize("body", [{}, {"at": "7"}, {"at": 1.5}, {"at": True}, {"at": 1, "by": "x"}])
async def test_bad_input_is_named(scene: Scene, body: dict[str, Any]) -> None:
    answer = await scene.admin.post("/instances/inst_000001/fork", json=body)
    assert answer.status_code == 422, answer.text


async def test_a_run_that_goes_on_is_not_forked(scene: Scene) -> None:
    instance_id = await start(scene)
    answer = await scene.admin.post(f"/instances/{instance_id}/fork", json={"at": 1})
    assert answer.status_code == 409
    told = f"{instance_id} is pause, and only a run that is over can be forked: cancel it first"
    assert answer.json()["detail"] == told
    missing = await scene.admin.post("/instances/inst_000404/fork", json={"at": 1})
    assert missing.status_code == 404


async def test_one_that_waits_for_a_resume_is_cancelled_first(scene: Scene, office: Office) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    assert await settled(scene, instance_id) == "error"
    at, path = await seq_of(scene, instance_id, "ListenerFailed"), f"/instances/{instance_id}"
    for language, told in (("en", "cancel it first"), ("zh-CN", "请先取消它")):
        headers = {"Accept-Language": language}
        answer = await scene.admin.post(f"{path}/fork", json={"at": at}, headers=headers)
        assert answer.status_code == 409, answer.text
        assert told in answer.json()["detail"]
        assert instance_id in answer.json()["detail"]
    assert len((await scene.admin.get("/instances")).json()["instances"]) == 1
    assert (await scene.admin.post(f"{path}/cancel")).status_code == 200
    fork = (await scene.admin.post(f"{path}/fork", json={"at": at})).json()
    assert await settled(scene, fork["id"]) == "done"
    assert (await scene.admin.post(f"{path}/resume")).status_code == 409
    assert office.count("grant_access") == 2


async def test_who_only_looks_does_not_fork(scene: Scene, office: Office) -> None:
    instance_id = await done(scene)
    viewer = await scene.as_a("viewer")
    assert (await viewer.post(f"/instances/{instance_id}/fork", json={"at": 1})).status_code == 403
    operator = await scene.as_a("operator")
    answer = await operator.post(f"/instances/{instance_id}/fork", json={"at": 1})
    assert answer.status_code == 201


async def test_the_plan_of_a_sub_run_is_no_way_to_start_it(scene: Scene, office: Office) -> None:
    """A fork of a sub-run stands at the top: who forks it starts its plan."""
    scene.app.load_plan_text(PARENT)
    instance_id = await start(scene, "parent")
    await scene.admin.post(f"/plans/{instance_id}/continue?wait=30", json=MODEL)
    await scene.app.engine.wait_for_status(instance_id, {RunStatus.DONE})
    below = f"{instance_id}.L001.1"
    named = await scene.somebody(grants={"parent": ["operator"]})
    assert (await named.post(f"/instances/{below}/fork", json={"at": 1})).status_code == 403
    answer = await scene.admin.post(f"/instances/{below}/fork", json={"at": 1})
    assert answer.json()["root_id"] == answer.json()["id"] == "inst_000002"


async def test_the_client_has_it(scene: Scene, office: Office) -> None:
    instance_id = await done(scene)
    _, token = await scene.services.tokens.issue("a client", "person", ["admin"], None)
    async with Client(scene.url, token) as client:
        fork = await client.instances.fork(instance_id, 1)
        assert fork["id"] == "inst_000002"
        assert await settled(scene, fork["id"]) == "pause"
        with pytest.raises(NotAllowed, match="only a run that is over"):
            await client.instances.fork(fork["id"], 1)
