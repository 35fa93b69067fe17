"""Plans over HTTP: register with every mistake, list, versions, graph, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from server_scene import APPLY_COMPUTER, Scene, furnish, serving, settled, start

from holdfast import Holdfast
from holdfast.forms import values

GREET = """\
plan_id: greet
name: Greet
main_task_id: "001"
tasks:
  - {task_id: "001", name: Greeted}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = {'said': 'hello'}"
    success_output: {task_id: "001", status: Done, context: {said: "{{result.said}}"}}
"""

BROKEN = GREET.replace("trigger_condition: Running", 'trigger_condition: "002.status =="').replace(
    'success_output: {task_id: "001"', 'success_output: {task_id: "009"'
)


async def test_a_registered_plan_can_be_started_at_once(scene: Scene) -> None:
    answer = await scene.admin.post("/plans", json={"source": GREET})
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert shown["plan_id"] == "greet"
    assert shown["origin"] == "registered"
    assert shown["registered_by"]
    assert shown["source"] == GREET
    instance_id = await start(scene, "greet")
    assert await settled(scene, instance_id) == "done"


async def test_every_mistake_is_told_with_its_place_and_nothing_is_registered(
    scene: Scene,
) -> None:
    for path in ("/plans", "/plans/check"):
        answer = await scene.admin.post(path, json={"source": BROKEN})
        assert answer.status_code == 422, answer.text
        problems = answer.json()["problems"]
        assert len(problems) >= 2
        assert all(one["line"] > 0 and one["message"] for one in problems)
        assert answer.json()["success"] is False
    assert (await scene.admin.get("/plans/greet")).status_code == 404


async def test_checking_changes_nothing(scene: Scene) -> None:
    answer = await scene.admin.post("/plans/check", json={"source": GREET})
    assert answer.json()["ok"] is True
    assert (await scene.admin.get("/plans/greet")).status_code == 404


async def test_the_list_says_where_each_plan_comes_from(scene: Scene) -> None:
    await scene.admin.post("/plans", json={"source": GREET})
    plans = (await scene.admin.get("/plans")).json()["plans"]
    assert {one["plan_id"]: one["origin"] for one in plans} == {
        "apply_computer": "application",
        "grant_access": "application",
        "greet": "registered",
    }


async def test_versions_stay_readable_and_running_instances_keep_theirs(scene: Scene) -> None:
    waiting = await start(scene)
    before = (await scene.admin.get(f"/instances/{waiting}")).json()["digest"]
    renamed = APPLY_COMPUTER.replace("name: Computer for a colleague\nmain", "name: PC\nmain")
    assert (await scene.admin.post("/plans", json={"source": renamed})).status_code == 201

    versions = (await scene.admin.get("/plans/apply_computer/versions")).json()["versions"]
    assert [one["current"] for one in versions] == [True, False]
    assert versions[1]["digest"] == before
    old = (await scene.admin.get(f"/plans/apply_computer/versions/{before}")).json()
    assert old["definition"]["name"] == "Computer for a colleague"
    assert old["current"] is False
    assert (await scene.admin.get(f"/instances/{waiting}")).json()["digest"] == before
    assert (await scene.admin.get("/plans/apply_computer")).json()["name"] == "PC"


async def test_a_plan_that_never_ran_has_its_one_version(scene: Scene) -> None:
    versions = (await scene.admin.get("/plans/grant_access/versions")).json()["versions"]
    assert [one["current"] for one in versions] == [True]
    assert (await scene.admin.get("/plans/nowhere/versions")).status_code == 404


async def test_graphs_are_svg_and_an_instances_has_its_statuses(scene: Scene) -> None:
    instance_id = await start(scene)
    plan = await scene.admin.get("/plans/apply_computer/graph.svg")
    assert plan.headers["content-type"].startswith("image/svg+xml")
    assert plan.text.startswith("<svg")
    instance = await scene.admin.get(f"/instances/{instance_id}/graph.svg")
    assert instance.headers["content-type"].startswith("image/svg+xml")
    assert "waiting for a person" in instance.text
    assert "waiting for a person" not in plan.text
    lines = await scene.admin.get(f"/instances/{instance_id}/graph.txt")
    assert lines.headers["content-type"].startswith("text/plain")
    assert "waiting for a person" in lines.text


async def test_inputs_are_offered_as_json_schema(scene: Scene) -> None:
    shown = (await scene.admin.get("/plans/apply_computer")).json()
    assert shown["inputs"]["properties"]["name"]["title"] == "姓名"
    assert shown["definition"]["plan_id"] == "apply_computer"


async def test_only_an_author_registers_and_grants_count(scene: Scene) -> None:
    for role in ("viewer", "operator", "approver"):
        answer = await (await scene.as_a(role)).post("/plans", json={"source": GREET})
        assert answer.status_code == 403, role
    granted = await scene.somebody(grants={"greet": ["author"]})
    assert (await granted.post("/plans", json={"source": GREET})).status_code == 201
    other = GREET.replace("plan_id: greet", "plan_id: other")
    assert (await granted.post("/plans", json={"source": other})).status_code == 403


async def test_plans_that_one_may_not_read_do_not_exist(scene: Scene) -> None:
    await scene.admin.post("/plans", json={"source": GREET})
    granted = await scene.somebody(grants={"greet": ["viewer"]})
    plans = (await granted.get("/plans")).json()["plans"]
    assert [one["plan_id"] for one in plans] == ["greet"]
    for path in ("", "/versions", "/graph.svg"):
        assert (await granted.get(f"/plans/apply_computer{path}")).status_code == 404
    assert (await granted.get("/plans/greet/graph.svg")).status_code == 200


async def test_a_refusal_names_no_plan_that_one_may_not_read(scene: Scene) -> None:
    granted = await scene.somebody(grants={"gr*": ["operator"]})
    for answer in (
        await granted.get("/plans/gr"),
        await granted.post("/instances", json={"plan_id": "gr"}),
    ):
        assert answer.status_code == 404
        assert "apply_computer" not in answer.text
    told = await scene.admin.get("/plans/grant_acess")
    assert "grant_access" in told.json()["detail"]


async def test_a_registered_plan_is_there_again_after_a_restart(tmp_path: Path) -> None:
    for registering in (True, False):
        app = Holdfast(tmp_path)
        furnish(app)
        async with serving(app) as scene:
            if registering:
                answer = await scene.admin.post("/plans", json={"source": GREET})
                assert answer.status_code == 201
            shown = (await scene.admin.get("/plans/greet")).json()
            assert shown["origin"] == "registered"
            assert shown["source"] == GREET
            assert await settled(scene, await start(scene, "greet")) == "done"


async def test_of_two_with_one_id_the_newer_counts(tmp_path: Path) -> None:
    mended = GREET.replace("name: Greet", "name: Greet better")

    async def name_after_restart(file: str, register: str | None = None) -> tuple[str, str]:
        app = Holdfast(tmp_path)
        app.load_plan_text(file)
        async with serving(app) as scene:
            if register is not None:
                await scene.admin.post("/plans", json={"source": register})
            shown = (await scene.admin.get("/plans/greet")).json()
            return shown["name"], shown["origin"]

    assert await name_after_restart(GREET) == ("Greet", "application")
    assert await name_after_restart(GREET, register=mended) == ("Greet better", "registered")
    assert await name_after_restart(GREET) == ("Greet better", "registered")
    edited = GREET.replace("name: Greet", "name: Greet anew")
    assert await name_after_restart(edited) == ("Greet anew", "application")


async def test_registering_is_in_the_audit(scene: Scene) -> None:
    await scene.admin.post("/plans", json={"source": GREET})
    deeds = [one.record for one in await scene.app.journal.audit()]
    assert [(one.action, one.subject) for one in deeds if one.action == "registered"] == [
        ("registered", "greet")
    ]


async def test_a_pattern_beyond_the_bounds_is_refused_without_being_matched(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def matched(*_: object) -> None:
        raise AssertionError("it was matched")

    monkeypatch.setattr(values, "_check_pattern", matched)
    field = "{validation: {pattern: '(?:.{0,90}){0,90}[yz]$'}, type: textarea, default: %s}"
    source = GREET + f"inputs:\n  x: {field % ('x' * 100_000)}\n"
    reader = await scene.as_a("viewer")
    for path in ("/plans", "/plans/check"):
        answer = await reader.post(path, json={"source": source})
        assert answer.status_code == 422, answer.text
        [problem] = answer.json()["problems"]
        assert "steps, and 4,000 are allowed" in problem["message"]
