"""Runs of every kind over HTTP, read only."""

from __future__ import annotations

from server_scene import Office, Scene, start

from holdfast import Holdfast
from holdfast.model import commands as c
from holdfast.model.conversation import ConversationSettings
from holdfast.runtime.machines import pinned_settings

PARENT = """\
plan_id: everything
name: Everything for a colleague
main_task_id: "001"
tasks:
  - {task_id: "001", name: Everything}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: apply_computer
    success_output: {task_id: "001", status: Done}
"""


async def test_a_run_is_read_whole_and_its_history_in_pages(scene: Scene, office: Office) -> None:
    instance_id = await start(scene, "grant_access")
    run = (await scene.admin.get(f"/runs/{instance_id}")).json()
    assert run["kind"] == "plan"
    assert run["name"] == "grant_access"
    assert run["tasks"][1]["status"] == "Done"

    seen, after = [], 0
    while True:
        params = {"after": after, "limit": 2}
        answer = await scene.admin.get(f"/runs/{instance_id}/history", params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["events"]) <= 2
        seen += page["events"]
        if page["next"] is None:
            break
        after = page["next"]
    assert [one["seq"] for one in seen] == list(range(1, run["version"] + 1))
    assert seen[0]["type"] == "RunStarted"
    assert seen[0]["data"]["plan_id"] == "grant_access"
    assert seen[-1]["type"] == "RunCompleted"
    assert all(one["run_id"] == instance_id for one in seen)


async def test_runs_of_sub_plans_are_left_out_unless_asked_for(
    scene: Scene, app: Holdfast, office: Office
) -> None:
    app.load_plan_text(PARENT)
    parent = await start(scene, "everything")
    child = f"{parent}.L001.1"
    everybody = (await scene.admin.get("/runs")).json()["runs"]
    assert [one["id"] for one in everybody] == [parent]
    everything = (await scene.admin.get("/runs", params={"roots": False})).json()["runs"]
    assert {one["id"] for one in everything} == {parent, child}
    below = (await scene.admin.get("/runs", params={"parent": parent})).json()["runs"]
    assert [(one["id"], one["parent_id"], one["root_id"]) for one in below] == [
        (child, parent, parent)
    ]
    shown = (await scene.admin.get(f"/runs/{parent}")).json()
    assert shown["interactions"] == (await scene.admin.get(f"/runs/{child}")).json()["interactions"]
    assert len(shown["interactions"]) == 1


async def test_a_sub_run_is_seen_by_whoever_sees_the_root(
    scene: Scene, app: Holdfast, office: Office
) -> None:
    app.load_plan_text(PARENT)
    parent = await start(scene, "everything")
    child = f"{parent}.L001.1"
    of_root = await scene.somebody(grants={"everything": ["viewer"]})
    of_child = await scene.somebody(grants={"apply_computer": ["viewer"]})
    for path in ("", "/history"):
        assert (await of_root.get(f"/runs/{child}{path}")).status_code == 200
        assert (await of_child.get(f"/runs/{child}{path}")).status_code == 404
    params = {"roots": False}
    listed = (await of_child.get("/runs", params=params)).json()["runs"]
    assert listed == []
    listed = (await of_root.get("/runs", params=params)).json()["runs"]
    assert {one["id"] for one in listed} == {parent, child}


async def test_lists_are_filtered_by_kind_status_and_name(scene: Scene, office: Office) -> None:
    waiting = await start(scene)
    done = await start(scene, "grant_access")

    async def ids(**params: object) -> list[str]:
        return [one["id"] for one in (await scene.admin.get("/runs", params=params)).json()["runs"]]

    assert await ids(kind="plan") == [done, waiting]
    assert await ids(kind="chat") == []
    assert await ids(status="pause") == [waiting]
    assert await ids(name="grant_access") == [done]
    assert await ids(before=done) == [waiting]
    assert await ids(limit=1) == [done]


async def test_a_conversation_is_a_run_like_any_other(scene: Scene) -> None:
    definition = pinned_settings(ConversationSettings())
    await scene.app.engine.begin("conv_000001", definition, c.OpenConversation(by="Will Zhang"))
    run = (await scene.admin.get("/runs/conv_000001")).json()
    assert (run["kind"], run["started_by"]) == ("conversation", "Will Zhang")
    assert "context" not in run
    listed = (await scene.admin.get("/runs", params={"kind": "conversation"})).json()["runs"]
    assert [one["id"] for one in listed] == ["conv_000001"]
    assert (await scene.admin.get("/instances/conv_000001")).status_code == 404
    assert (await scene.admin.post("/instances/conv_000001/cancel")).status_code == 404


async def test_nobody_without_a_role_lists_anything(scene: Scene) -> None:
    nobody = await scene.somebody(["finance"])
    assert (await nobody.get("/runs")).status_code == 403
    assert (await scene.stranger.get("/runs")).status_code == 401
