"""Instances over HTTP: start, see, continue, resume, mend, cancel; and who may."""

from __future__ import annotations

from server_scene import Office, Scene, settled, start

from holdfast import Holdfast

MODEL = {"computer_model": "MacBook Pro"}

FOR_FINANCE = """\
plan_id: for_finance
name: Budget
main_task_id: "001"
tasks:
  - {task_id: "001", name: Budget}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    role: finance
    title: How much?
    form: {amount: {type: number, label: Amount}}
    success_output: {task_id: "001", status: Done}
"""


async def test_a_plan_is_started_paused_continued_and_done(scene: Scene, office: Office) -> None:
    answer = await scene.admin.post(
        "/instances", json={"prompt": "为张三申请电脑", "plan_id": "apply_computer"}
    )
    assert answer.status_code == 201, answer.text
    instance_id = answer.json()["id"]
    assert await settled(scene, instance_id) == "pause"

    shown = (await scene.admin.get(f"/instances/{instance_id}")).json()
    assert shown["status"] == "pause"
    assert "computer_model" in shown["context"]["required_params"]
    assert shown["context"]["pause_reason"] == "missing_params"
    assert shown["context"]["metadata"]["prompt"] == "为张三申请电脑"
    assert len(shown["interactions"]) == 1
    assert shown["summary"]["waiting"] == 1
    assert shown["server_time"] > shown["created_at"]

    answer = await scene.admin.post(
        f"/instances/{instance_id}/continue",
        params={"wait": 30},
        json={"provided_params": MODEL},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["success"] is True
    assert answer.json()["result"]["result"] == {"order_id": "PC-1"}

    assert await settled(scene, instance_id) == "done"
    shown = (await scene.admin.get(f"/instances/{instance_id}")).json()
    tasks = {one["task_id"]: one for one in shown["tasks"]}
    assert tasks["002"]["status"] == "Done"
    assert tasks["002"]["context"] == {"order": "PC-1"}
    assert [one["status"] for one in tasks["001"]["trace"]] == ["Running", "Done"]
    steps = {one["listener_id"]: one["status"] for one in shown["steps"]}
    assert steps["L001"] == steps["L002"] == "done"
    assert office.calls == [
        ("apply_computer", {"employee": "张三", "computer_model": "MacBook Pro"})
    ]


async def test_the_seeds_path_takes_the_parameters_themselves(scene: Scene, office: Office) -> None:
    instance_id = await start(scene)
    answer = await scene.admin.post(f"/plans/{instance_id}/continue?wait=30", json=MODEL)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["success"] is True
    assert body["status"] in ("running", "done")
    assert body["result"]["success"] is True
    assert office.count("apply_computer") == 1


async def test_continue_answers_after_the_commit_unless_told_to_wait(scene: Scene) -> None:
    instance_id = await start(scene)
    answer = await scene.admin.post(f"/plans/{instance_id}/continue", json=MODEL)
    assert answer.json()["result"] is None
    assert await settled(scene, instance_id) == "done"


async def test_what_does_not_fit_the_form_leaves_the_pause_untouched(
    scene: Scene, office: Office
) -> None:
    instance_id = await start(scene)
    before = (await scene.admin.get(f"/instances/{instance_id}")).json()["version"]
    for params in ({"computer_model": "Abacus"}, {}, {"colour": "red"}):
        answer = await scene.admin.post(f"/plans/{instance_id}/continue", json=params)
        assert answer.status_code == 422, answer.text
        assert answer.json()["success"] is False
        assert answer.json()["fields"]
    shown = (await scene.admin.get(f"/instances/{instance_id}")).json()
    assert (shown["status"], shown["version"]) == ("pause", before)
    assert office.calls == []


async def test_what_is_not_paused_cannot_continue_and_says_so(scene: Scene) -> None:
    instance_id = await start(scene, "grant_access")
    answer = await scene.admin.post(f"/plans/{instance_id}/continue", json=MODEL)
    assert answer.status_code == 409
    assert answer.json()["error"] == "Plan instance is not in PAUSE status, current: done"
    answer = await scene.admin.post("/plans/inst_000099/continue", json=MODEL)
    assert answer.status_code == 404
    assert "inst_000099" in answer.json()["error"]


async def test_a_form_for_another_role_is_not_answered_by_continuing(
    scene: Scene, app: Holdfast, office: Office
) -> None:
    app.load_plan_text(FOR_FINANCE)
    instance_id = await start(scene, "for_finance")
    operator = await scene.as_a("operator")
    answer = await operator.post(f"/plans/{instance_id}/continue", json={"amount": 7})
    assert answer.status_code == 403, answer.text
    assert "finance" in answer.json()["detail"]
    assert (await scene.admin.get(f"/instances/{instance_id}")).json()["status"] == "pause"
    clerk = await scene.somebody(["viewer", "finance"])
    answer = await clerk.post(f"/plans/{instance_id}/continue?wait=30", json={"amount": 7})
    assert answer.status_code == 200, answer.text
    assert await settled(scene, instance_id) == "done"


async def test_a_failed_instance_says_what_resume_will_run_and_resumes(
    scene: Scene, office: Office
) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    shown = (await scene.admin.get(f"/instances/{instance_id}")).json()
    assert shown["status"] == "error"
    assert shown["error_info"]["status"] == "waiting_for_resume"
    assert shown["failed_listener_id"] == f"{instance_id}_L001"
    assert shown["failed_listener_ids"] == [f"{instance_id}_L001"]
    assert shown["resume_runs"] == ["L001"]
    assert "the door does not answer" in shown["error"]

    answer = await scene.admin.post(f"/instances/{instance_id}/resume")
    assert answer.status_code == 200, answer.text
    assert await settled(scene, instance_id) == "done"
    assert office.count("grant_access") == 2
    again = await scene.admin.post(f"/instances/{instance_id}/resume")
    assert again.status_code == 409
    assert again.json()["success"] is False


async def test_the_seeds_resume_finds_the_only_one_that_waits(scene: Scene, office: Office) -> None:
    assert (await scene.admin.post("/plans/grant_access/resume")).status_code == 404
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    answer = await scene.admin.post("/plans/grant_access/resume")
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"] == "Plan resumed successfully"
    assert answer.json()["plan_instance_id"] == instance_id
    assert await settled(scene, instance_id) == "done"


async def test_of_several_that_wait_one_must_be_named(scene: Scene, office: Office) -> None:
    office.failures = 2
    first, second = [await start(scene, "grant_access") for _ in range(2)]
    answer = await scene.admin.post("/plans/grant_access/resume", json={})
    assert answer.status_code == 409
    assert set(answer.json()["plan_instance_ids"]) == {first, second}

    elsewhere = await scene.admin.post(
        "/plans/apply_computer/resume", json={"plan_instance_id": first}
    )
    assert elsewhere.status_code == 404
    answer = await scene.admin.post("/plans/grant_access/resume", json={"plan_instance_id": second})
    assert answer.json()["plan_instance_id"] == second
    assert await settled(scene, second) == "done"
    assert (await scene.admin.get(f"/instances/{first}")).json()["status"] == "error"


async def test_a_failed_step_is_skipped_by_hand(scene: Scene, office: Office) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    answer = await scene.admin.post(
        f"/instances/{instance_id}/skip",
        json={"listener_id": f"{instance_id}_L001", "reason": "opened by hand"},
    )
    assert answer.status_code == 200, answer.text
    tasks = {one["task_id"]: one["status"] for one in answer.json()["tasks"]}
    assert tasks["002"] == "Skipped"
    assert office.count("grant_access") == 1


async def test_a_task_is_marked_done_by_hand(scene: Scene, office: Office) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    answer = await scene.admin.post(
        f"/instances/{instance_id}/mark-done",
        json={"task_id": "002", "context": {"key": "K7"}},
    )
    assert answer.status_code == 200, answer.text
    tasks = {one["task_id"]: one for one in answer.json()["tasks"]}
    assert (tasks["002"]["status"], tasks["002"]["context"]) == ("Done", {"key": "K7"})
    answer = await scene.admin.post(f"/instances/{instance_id}/mark-done", json={"task_id": "9"})
    assert answer.status_code in (404, 409)


async def test_context_is_edited_and_a_step_is_run_again(scene: Scene, office: Office) -> None:
    instance_id = await start(scene)
    answer = await scene.admin.post(
        f"/instances/{instance_id}/context",
        json={"task_id": "001", "context": {"name": "Will Zhang"}},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["context"]["values"]["name"] == "Will Zhang"
    await scene.admin.post(f"/plans/{instance_id}/continue?wait=30", json=MODEL)
    assert await settled(scene, instance_id) == "done"

    failing = await start(scene, "grant_access")
    rerun = await scene.admin.post(f"/instances/{failing}/rerun", json={"listener_id": "L001"})
    assert rerun.status_code in (200, 409), rerun.text
    unknown = await scene.admin.post(f"/instances/{failing}/rerun", json={"listener_id": "L9"})
    assert unknown.status_code in (404, 409)


async def test_cancelling_needs_no_reason_and_takes_one(scene: Scene, office: Office) -> None:
    first, second = await start(scene), await start(scene)
    assert (await scene.admin.post(f"/instances/{first}/cancel")).status_code == 200
    answer = await scene.admin.post(
        f"/instances/{second}/cancel", json={"reason": "not needed any more"}
    )
    assert answer.status_code == 200, answer.text
    for one in (first, second):
        assert await settled(scene, one) == "cancelled"
    answer = await scene.admin.post(f"/plans/{first}/continue", json=MODEL)
    assert answer.status_code in (409, 410)
    assert office.calls == []


async def test_starting_what_is_not_there_or_with_what_does_not_fit(scene: Scene) -> None:
    answer = await scene.admin.post("/instances", json={"plan_id": "apply_computr"})
    assert answer.status_code == 404
    assert "apply_computer" in answer.json()["detail"]
    answer = await scene.admin.post(
        "/instances", json={"plan_id": "apply_computer", "values": {"nmae": "x"}}
    )
    assert answer.status_code == 422, answer.text
    assert (await scene.admin.get("/instances")).json()["instances"] == []


async def test_without_a_plan_the_planner_chooses(scene: Scene) -> None:
    answer = await scene.admin.post("/instances", json={"prompt": "please run grant_access"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["plan_id"] == "grant_access"
    granted = await scene.somebody(grants={"grant_access": ["operator"]})
    answer = await granted.post("/instances", json={"prompt": "please run grant_access"})
    assert answer.status_code == 403


async def test_lists_are_filtered_and_paged(scene: Scene, office: Office) -> None:
    waiting = [await start(scene) for _ in range(3)]
    done = await start(scene, "grant_access")

    async def ids(**params: object) -> list[str]:
        answer = await scene.admin.get("/instances", params=params)
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["instances"]]

    assert await ids() == [done, *reversed(waiting)]
    assert await ids(status="pause") == waiting[::-1]
    assert await ids(status=["pause", "done"]) == [done, *reversed(waiting)]
    assert await ids(plan_id="grant_access") == [done]
    assert await ids(status="error") == []

    seen, before = [], None
    for _ in range(9):
        params = {"limit": 2, **({} if before is None else {"before": before})}
        page = (await scene.admin.get("/instances", params=params)).json()
        seen += [one["id"] for one in page["instances"]]
        before = page["next"]
        if before is None:
            break
    assert seen == [done, *reversed(waiting)]


async def test_who_may_see_may_not_always_command(scene: Scene) -> None:
    instance_id = await start(scene)
    commands = {
        "resume": None,
        "skip": {"listener_id": "L001"},
        "mark-done": {"task_id": "002"},
        "context": {"task_id": "001", "context": {}},
        "rerun": {"listener_id": "L001"},
        "cancel": None,
    }
    for role in ("viewer", "approver", "author"):
        somebody = await scene.as_a(role)
        assert (await somebody.get(f"/instances/{instance_id}")).status_code == 200
        assert (
            await somebody.post("/instances", json={"plan_id": "grant_access"})
        ).status_code == 403
        for command, body in commands.items():
            answer = await somebody.post(f"/instances/{instance_id}/{command}", json=body)
            assert answer.status_code == 403, (role, command, answer.text)
    answer = await (await scene.as_a("viewer")).post(f"/plans/{instance_id}/continue", json=MODEL)
    assert answer.status_code == 403
    assert (await scene.admin.get(f"/instances/{instance_id}")).json()["status"] == "pause"


async def test_what_one_may_not_see_does_not_exist(scene: Scene, office: Office) -> None:
    hidden = await start(scene)
    seen = await start(scene, "grant_access")
    granted = await scene.somebody(grants={"grant_*": ["operator"]})
    listed = (await granted.get("/instances")).json()["instances"]
    assert [one["id"] for one in listed] == [seen]
    assert (await granted.get(f"/instances/{hidden}")).status_code == 404
    for command in ("resume", "cancel"):
        answer = await granted.post(f"/instances/{hidden}/{command}")
        assert answer.status_code == 404, command
    assert (await granted.post(f"/plans/{hidden}/continue", json=MODEL)).status_code == 404
    assert (await granted.get(f"/instances/{hidden}/graph.svg")).status_code == 404
    known = await granted.get("/instances/inst_000077")
    missing = await granted.get(f"/instances/{hidden}")
    assert known.json()["detail"].replace("inst_000077", hidden) == missing.json()["detail"]


async def test_a_page_is_filled_from_further_on_for_one_who_sees_little(
    scene: Scene, office: Office
) -> None:
    first = await start(scene, "grant_access")
    for _ in range(5):
        await start(scene)
    granted = await scene.somebody(grants={"grant_access": ["viewer"]})
    page = (await granted.get("/instances", params={"limit": 2})).json()
    assert [one["id"] for one in page["instances"]] == [first]


async def test_commands_are_in_the_audit_with_who_and_from_where(
    scene: Scene, office: Office
) -> None:
    instance_id = await start(scene)
    await scene.admin.post(f"/instances/{instance_id}/cancel", json={"reason": "enough"})
    deeds = [one.record for one in await scene.app.journal.audit()]
    done = [(one.action, one.run_id, one.origin) for one in deeds if one.run_id]
    assert done == [
        ("started", instance_id, "127.0.0.1"),
        ("cancelled", instance_id, "127.0.0.1"),
    ]
    me = (await scene.admin.get("/me")).json()["id"]
    assert {one.who for one in deeds if one.run_id} == {me}
