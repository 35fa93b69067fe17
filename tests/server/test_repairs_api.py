"""Repairs over HTTP: what went wrong, what is proposed, who consents, and the plan as it was."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ET
from typing import Any

import httpx
import pytest
from chat_scene import employ, open_chat
from server_scene import GRANT_ACCESS, Office, Scene, settled, start

from holdfast import Holdfast
from holdfast.i18n.catalogue import worded
from holdfast.i18n.message import msg
from holdfast.model.retry import Cause
from holdfast.server.schemas.repairs import LONGEST_OPERATIONS
from holdfast.views import repairs
from holdfast.views.stories.repairs import CAUSES

SVG = "{http://www.w3.org/2000/svg}"
CHINESE = {"accept-language": "zh-CN,zh;q=0.9"}
BY_ID = [{"op": "set_args", "listener_id": "L001", "set": {"employee": "WZ001"}}]
ASKED = {"operations": BY_ID, "reason": "the door wants an id", "listener_id": "L001"}
PHONED = {
    "op": "insert_before",
    "listener_id": "L001",
    "task": {"task_id": "R1", "name": "Phoned"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": "apply_computer",
        "args": {"employee": "Will Zhang", "computer_model": "ThinkPad X1"},
    },
}


ORDER = """\
  - listener_id: {}
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: apply_computer
    args: {{employee: Will Zhang, computer_model: ThinkPad X1}}
    priority: 9
"""


async def failed(scene: Scene, office: Office, failures: int = 1) -> str:
    """An instance whose tool has failed; nothing but a person knows a way."""
    office.failures = failures
    instance_id = await start(scene, "grant_access")
    assert await settled(scene, instance_id) == "error"
    return instance_id


async def proposed(scene: Scene, instance_id: str, **body: Any) -> dict[str, Any]:
    """What an operator has proposed."""
    operator = await scene.as_a("operator")
    answer = await operator.post(f"/instances/{instance_id}/patches", json=body or ASKED)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def applied(scene: Scene, instance_id: str, **body: Any) -> str:
    """The status of the run once an approver has agreed to a patch."""
    question = (await proposed(scene, instance_id, **body))["interaction"]["requestId"]
    answer = await answered(await scene.as_a("approver"), question, "apply")
    assert answer.status_code == 200, answer.text
    return await settled(scene, instance_id)


async def answered(client: httpx.AsyncClient, question: str, option: str) -> httpx.Response:
    chosen = {"selectedOptionId": option}
    if option == "refuse":
        chosen["feedback"] = "not like this"
    return await client.post(f"/interactions/{question}/answer", json=chosen)


async def standing(scene: Scene) -> tuple[int, int]:
    """How many events and deeds there have been, not counting the tokens of whoever came."""
    journal = scene.app.journal
    deeds = [one.record.action for one in await journal.audit(0, 1000)]
    return await journal.last_commit(), len(deeds) - deeds.count("issued_token")


async def shown(client: httpx.AsyncClient, path: str, **how: Any) -> dict[str, Any]:
    answer = await client.get(path, **how)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


# What went wrong.


async def test_a_failure_is_a_case_with_its_diagnosis_and_evidence(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    viewer = await scene.as_a("viewer")
    [case] = (await shown(viewer, f"/instances/{instance_id}/cases"))["cases"]
    assert (case["case_id"], case["run_id"], case["listener_id"]) == ("case_1", instance_id, "L001")
    assert (case["status"], case["cause"]) == ("open", "unknown")
    assert case["error"] == "the door does not answer"
    assert case["proposal"] is case["interaction_id"] is None

    found = case["diagnosis"]
    assert (found["cause"], found["source"]) == ("unknown", "rule:unknown")
    assert found["told"] == CAUSES[Cause.UNKNOWN]
    [evidence] = found["evidence"]
    history = (await shown(viewer, f"/runs/{instance_id}/history"))["events"]
    assert history[evidence["seq"] - 1]["type"] == "ListenerFailed"
    assert "the door does not answer" in evidence["text"]

    one = await shown(viewer, f"/instances/{instance_id}/cases/case_1")
    assert one["case"] == case
    assert one["server_time"] >= case["opened_at"]


async def test_a_run_that_never_failed_has_no_cases_and_no_patches(scene: Scene) -> None:
    instance_id = await start(scene)
    assert (await shown(scene.admin, f"/instances/{instance_id}/cases"))["cases"] == []
    found = await shown(scene.admin, f"/instances/{instance_id}/patches")
    assert found["patches"] == []
    assert found["pinned"] == found["digest"]


async def test_what_is_not_there_is_404(scene: Scene, app: Holdfast, office: Office) -> None:
    employ(app)
    instance_id, chat = await failed(scene, office), await open_chat(scene.admin)
    for path in (
        f"/instances/{instance_id}/cases/case_2",
        f"/instances/{instance_id}/patches/case_1_k1/diff.svg",
        "/instances/inst_000099/cases",
        "/instances/inst_000099/cases/case_1",
        "/instances/inst_000099/patches",
        f"/instances/{chat}/cases",
        f"/instances/{chat}/patches",
    ):
        answer = await scene.admin.get(path)
        assert answer.status_code == 404, (path, answer.text)
        assert path.split("/")[2] in answer.json()["detail"]
    answer = await scene.admin.get(f"/instances/{instance_id}/cases/case_2")
    assert "case_2" in answer.json()["detail"]
    for instance in ("inst_000099", chat):
        answer = await scene.admin.post(f"/instances/{instance}/patches", json=ASKED)
        assert answer.status_code == 404, answer.text


async def test_cases_stand_in_the_order_in_which_they_opened(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office, failures=20)
    for number in range(2, 12):
        employee = {"employee": f"WZ{number:03}"}
        operations = [{"op": "set_args", "listener_id": "L001", "set": employee}]
        await proposed(scene, instance_id, operations=operations, listener_id="L001")
    found = (await shown(scene.admin, f"/instances/{instance_id}/cases"))["cases"]
    assert [one["case_id"] for one in found] == [f"case_{n}" for n in range(1, 12)]
    assert {one["status"] for one in found[:-1]} == {"closed"}


# What is proposed.


async def test_a_rehearsal_says_what_would_happen_and_changes_nothing(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    before = await standing(scene)
    operator = await scene.as_a("operator")
    body = {"operations": [PHONED, *BY_ID], "reason": "phone first"}
    answer = await operator.post(f"/instances/{instance_id}/patches?rehearse=true", json=body)
    assert answer.status_code == 200, answer.text
    proposal = answer.json()["proposal"]
    assert (proposal["by"], proposal["source"]) == ("some operator", "person")
    assert proposal["level"] == "act"
    assert [one["tool"] for one in proposal["success"]["calls"]] == [
        "apply_computer",
        "grant_access",
    ]
    assert (proposal["success"]["reached"], proposal["success"]["status"]) == (True, "done")
    assert (proposal["failure"]["reached"], proposal["failure"]["status"]) == (False, "error")
    assert set(proposal["versions"]) == {"apply_computer", "grant_access"}
    assert proposal["consent"]
    assert len(proposal["words"]) == 2
    assert any("WZ001" in one for one in proposal["warnings"])

    assert await standing(scene) == before
    assert [name for name, _ in office.calls] == ["grant_access"]
    assert (await shown(scene.admin, f"/interactions?run={instance_id}"))["interactions"] == []


async def test_a_rehearsal_tells_what_is_wrong_as_a_proposal_does(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    before = await standing(scene)
    operations = [
        {"op": "skip", "listener_id": "L009"},
        {"op": "set_args", "listener_id": "L001", "drop": ["colour"]},
    ]
    told = []
    for how in ("", "?rehearse=true"):
        path = f"/instances/{instance_id}/patches{how}"
        answer = await scene.admin.post(path, json={"operations": operations})
        assert answer.status_code == 422, answer.text
        told.append([one["message"] for one in answer.json()["problems"]])
    assert told[0] == told[1]
    missing, colour = told[0]
    assert missing.startswith("operations[0].listener_id: ")
    assert "L009" in missing
    assert colour.startswith("operations[1].drop[0]: ")
    assert await standing(scene) == before


async def test_a_question_tells_its_proposer_that_only_another_may_approve(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    proposer = await scene.somebody(roles=["operator", "approver"], name="proposer")
    answer = await proposer.post(f"/instances/{instance_id}/patches", json=ASKED)
    question = answer.json()["interaction"]
    why = "you proposed this repair: another person must approve it"
    assert (question["mayAnswer"], question["mayNotBecause"]) == (True, None)
    assert question["mayNotApproveBecause"] == why
    path = f"/interactions/{question['requestId']}"
    [listed] = (await shown(proposer, f"/interactions?run={instance_id}"))["interactions"]
    assert listed["mayNotApproveBecause"] == why
    told = (await proposer.get(path, headers=CHINESE)).json()["mayNotApproveBecause"]
    assert told == worded(msg(why), "zh") != why
    for role in ("approver", "admin"):
        other = await scene.as_a(role)
        assert (await shown(other, path))["mayNotApproveBecause"] is None
    viewer = await shown(await scene.as_a("viewer"), path)
    assert (viewer["mayAnswer"], viewer["mayNotApproveBecause"]) == (False, None)

    refused = await answered(proposer, question["requestId"], "refuse")
    assert refused.json()["mayNotApproveBecause"] is None
    case = (await shown(proposer, f"/instances/{instance_id}/cases/case_2"))["case"]
    assert (case["refused_by"], case["reason"]) == ("proposer", "not like this")


async def test_an_unknown_key_of_the_body_is_told_with_what_may_be_meant(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    for path, body, key, meant in (
        ("patches", {"operation": BY_ID}, "operation", "did you mean operations?"),
        ("patches", {"nonsense": 1}, "nonsense", "known are operations, reason, listener_id, to_"),
        ("fork", {"At": 1}, "At", "did you mean at?"),
        ("fork", {"sequence": 1}, "sequence", "known are at"),
    ):
        answer = await scene.admin.post(f"/instances/{instance_id}/{path}", json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["fields"][key].startswith(f"unknown key: {meant}")
    many = {f"{number}": 1 for number in range(30)}
    answer = await scene.admin.post(f"/instances/{instance_id}/patches", json=many)
    told = list(answer.json()["fields"].values())
    assert [one.startswith("unknown key") for one in told] == [True] * 10 + [False] * 20


async def test_a_proposal_is_a_question_and_its_answer_repairs_the_run(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    made = await proposed(scene, instance_id)
    case, question = made["case"], made["interaction"]
    assert (case["status"], case["listener_id"]) == ("proposed", "L001")
    assert case["diagnosis"]["source"] == "person"
    assert case["proposal"]["operations"] == BY_ID
    assert case["interaction_id"] == question["requestId"]
    assert question["context"]["patch_id"] == case["proposal"]["patch_id"]

    listed = await shown(scene.admin, f"/interactions?run={instance_id}&status=open")
    assert [one["requestId"] for one in listed["interactions"]] == [question["requestId"]]

    refused = await answered(await scene.as_a("operator"), question["requestId"], "apply")
    assert refused.status_code == 403, refused.text
    approver = await scene.as_a("approver")
    assert (await answered(approver, question["requestId"], "apply")).status_code == 200
    assert await settled(scene, instance_id) == "done"
    assert [args["employee"] for _, args in office.calls] == ["Will Zhang", "WZ001"]

    found = await shown(scene.admin, f"/instances/{instance_id}/patches")
    [patch] = found["patches"]
    assert patch["patch_id"] == case["proposal"]["patch_id"]
    assert patch["operations"] == BY_ID
    assert (patch["by"], patch["case_id"]) == ("some approver", case["case_id"])
    assert (patch["base"], patch["digest"]) == (found["pinned"], found["digest"])
    assert patch["words"] == case["proposal"]["words"]
    case = (await shown(scene.admin, f"/instances/{instance_id}/cases/{case['case_id']}"))["case"]
    assert (case["status"], case["patch_id"]) == ("proven", patch["patch_id"])


async def test_who_proposes_what_acts_does_not_approve_it(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    made = await scene.admin.post(f"/instances/{instance_id}/patches", json=ASKED)
    question = made.json()["interaction"]["requestId"]
    answer = await answered(scene.admin, question, "apply")
    assert answer.status_code == 403, answer.text
    assert "another person" in answer.json()["detail"]
    assert (await shown(scene.admin, f"/instances/{instance_id}"))["status"] == "error"


async def test_a_refused_proposal_leaves_the_run_as_it_was(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    made = await proposed(scene, instance_id)
    approver = await scene.as_a("approver")
    answer = await answered(approver, made["interaction"]["requestId"], "refuse")
    assert answer.status_code == 200, answer.text
    path = f"/instances/{instance_id}/cases/{made['case']['case_id']}"
    case = (await shown(scene.admin, path))["case"]
    assert (case["status"], case["reason"]) == ("open", "not like this")
    assert case["proposal"] is case["interaction_id"] is None
    assert (await shown(scene.admin, f"/instances/{instance_id}"))["status"] == "error"
    assert (await shown(scene.admin, f"/instances/{instance_id}/patches"))["patches"] == []

    again = await scene.admin.post(f"/instances/{instance_id}/patches", json=ASKED)
    assert again.status_code == 201, "another case about the same listener"


async def test_a_new_proposal_takes_the_place_of_the_open_one(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    first = (await proposed(scene, instance_id))["interaction"]["requestId"]
    named = {"listener_id": f"{instance_id}_L001"}
    second = await proposed(scene, instance_id, operations=[PHONED], **named)
    [question] = (await shown(scene.admin, f"/interactions?run={instance_id}&status=open"))[
        "interactions"
    ]
    assert question["requestId"] == second["interaction"]["requestId"]
    late = await answered(await scene.as_a("approver"), first, "apply")
    assert late.status_code == 410, late.text
    assert office.count("apply_computer") == 0


# What is refused.


async def test_wrong_operations_are_refused_with_everything_that_is_wrong(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    before = await standing(scene)
    for operations, places in (
        (
            [{"op": "unset"}, {"op": "skip"}, 7, {"op": "set_args", "listener_id": "L001"}],
            ["operations[0].op", "operations[1].listener_id", "operations[2]", "operations[3]"],
        ),
        (
            [{"op": "skip", "listener_id": "L8"}, {"op": "skip", "listener_id": "L9"}],
            ["operations[0].listener_id", "operations[1].listener_id"],
        ),
        (
            [{"op": "use_tool", "listener_id": "L001", "tool": "grnt", "args": {}}],
            ["operations[0]"],
        ),
        ([], ["operations"]),
        ([{"op": "skip", "listener_id": "L001"}] * 13, ["operations"]),
    ):
        answer = await scene.admin.post(
            f"/instances/{instance_id}/patches", json={"operations": operations}
        )
        assert answer.status_code == 422, answer.text
        told = answer.json()
        assert told["type"] == "urn:holdfast:patch-rejected"
        found = [one["message"] for one in told["problems"]]
        assert len(found) == len(places), found
        assert all(one.startswith(place) for one, place in zip(found, places, strict=True)), found
    assert await standing(scene) == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": "nothing"},
        {"operations": BY_ID, "to_current": True},
        {"operations": "skip"},
        {"operations": BY_ID, "by": "admin"},
        {"operations": BY_ID, "reason": "x" * 2_001},
        {"operations": BY_ID, "listener_id": "a b"},
        {"operations": [{"op": "skip", "listener_id": "L" * LONGEST_OPERATIONS}]},
    ],
)
async def test_what_is_no_proposal_is_refused_by_its_fields(
    scene: Scene, office: Office, body: dict[str, Any]
) -> None:
    instance_id = await failed(scene, office)
    for path in (f"/instances/{instance_id}/patches{how}" for how in ("", "?rehearse=true")):
        answer = await scene.admin.post(path, json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["fields"]


async def test_the_listener_that_it_mends_must_be_one_of_the_plan(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office)
    answer = await scene.admin.post(
        f"/instances/{instance_id}/patches", json={**ASKED, "listener_id": "L009"}
    )
    assert answer.status_code == 404
    assert "L009" in answer.json()["detail"]


async def test_what_has_run_stays_as_it_is(scene: Scene, app: Holdfast, office: Office) -> None:
    order = "L000"
    app.load_plan_text(GRANT_ACCESS.replace("listeners:\n", f"listeners:\n{ORDER.format(order)}"))
    instance_id = await failed(scene, office)
    before = await standing(scene)
    operations = [{"op": "set_args", "listener_id": order, "set": {"employee": "WZ001"}}]
    path = f"/instances/{instance_id}/patches"
    answer = await scene.admin.post(path, json={"operations": operations})
    assert answer.status_code == 422, answer.text
    [problem] = answer.json()["problems"]
    assert "L000 has run" in problem["message"]
    assert await standing(scene) == before


@pytest.mark.parametrize("end", ["done", "cancelled"])
async def test_a_run_that_is_over_cannot_be_changed(scene: Scene, office: Office, end: str) -> None:
    if end == "done":
        instance_id = await start(scene, "grant_access")
    else:
        instance_id = await failed(scene, office)
        await scene.admin.post(f"/instances/{instance_id}/cancel")
    assert await settled(scene, instance_id) == end
    for how in ("", "?rehearse=true"):
        path = f"/instances/{instance_id}/patches{how}"
        for body in (ASKED, {"to_current": True}):
            answer = await scene.admin.post(path, json=body)
            assert answer.status_code == 409, answer.text
            assert instance_id in answer.json()["detail"]


# Who may.


async def test_who_may_look_may_not_always_propose(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    made = await proposed(scene, instance_id)
    patch = made["case"]["proposal"]["patch_id"]
    before = await standing(scene)
    for role in ("viewer", "approver", "author"):
        client = await scene.as_a(role)
        for path in ("cases", "cases/case_1", "patches", f"patches/{patch}/diff.svg"):
            answer = await client.get(f"/instances/{instance_id}/{path}")
            assert answer.status_code == 200, (role, path)
        for how in ("", "?rehearse=true"):
            answer = await client.post(f"/instances/{instance_id}/patches{how}", json=ASKED)
            assert answer.status_code == 403, (role, answer.text)
    stranger = await scene.somebody(grants={"apply_computer": ["operator"]})
    for path in ("cases", "cases/case_1", "patches", f"patches/{patch}/diff.svg"):
        assert (await stranger.get(f"/instances/{instance_id}/{path}")).status_code == 404
    answer = await stranger.post(f"/instances/{instance_id}/patches", json=ASKED)
    assert answer.status_code == 404
    assert await standing(scene) == before


def running(kind: str, **what: Any) -> list[dict[str, Any]]:
    listener = {
        "listener_id": "R1",
        "trigger_task_id": "001",
        "trigger_condition": "Running",
        "listener_type": kind,
        **what,
    }
    return [{"op": "add", "listeners": [listener]}]


@pytest.mark.parametrize(
    ("operations", "missing"),
    [
        ([PHONED], "tool:apply_computer"),
        (running("code", code_snippet="result = 1", functions=["apply_computer"]), "tool:"),
        (running("plan", plan_id="apply_computer"), "apply_computer"),
        (running("agent", agent_id="clerk", action_prompt="pay"), "clerk"),
    ],
)
async def test_to_operate_one_plan_is_no_way_to_others(
    scene: Scene,
    office: Office,
    operations: list[dict[str, Any]],
    missing: str,
) -> None:
    """Whoever is granted one plan has nothing called that it does not call by itself."""
    instance_id = await failed(scene, office)
    before = await standing(scene)
    granted = await scene.somebody(grants={"grant_access": ["operator"]})
    for how in ("", "?rehearse=true"):
        path = f"/instances/{instance_id}/patches{how}"
        answer = await granted.post(path, json={"operations": operations})
        assert answer.status_code == 403, answer.text
        assert missing in answer.json()["detail"]
    assert await standing(scene) == before
    answer = await granted.post(f"/instances/{instance_id}/patches", json=ASKED)
    assert answer.status_code == 201, "its own calls may be changed"


async def test_a_grant_of_a_tool_or_the_plan_itself_opens_it(
    scene: Scene, app: Holdfast, office: Office
) -> None:
    instance_id = await failed(scene, office)
    body = {"operations": [PHONED]}
    for role in ("operator", "author"):
        grants = {"grant_access": ["operator"], "tool:apply_*": [role]}
        granted = await scene.somebody(grants=grants, name=f"granted {role}")
        answer = await granted.post(f"/instances/{instance_id}/patches?rehearse=true", json=body)
        assert answer.status_code == 200, answer.text

    app.load_plan_text(f"{GRANT_ACCESS}repair: {{tools: [apply_computer]}}\n")
    instance_id = await failed(scene, office)
    granted = await scene.somebody(grants={"grant_access": ["operator"]}, name="granted")
    answer = await granted.post(f"/instances/{instance_id}/patches?rehearse=true", json=body)
    assert answer.status_code == 200, answer.text


# To today's version.


async def test_a_run_is_brought_to_todays_version_of_its_plan(
    scene: Scene, app: Holdfast, office: Office
) -> None:
    instance_id = await failed(scene, office)
    path, current = f"/instances/{instance_id}/patches", {"to_current": True}
    answer = await scene.admin.post(path, json=current)
    assert answer.status_code == 409
    assert "today's version" in answer.json()["detail"]

    better = GRANT_ACCESS.replace("{employee: Will Zhang}", "{employee: WZ001}")
    registered = await scene.admin.post("/plans", json={"source": better})
    assert registered.status_code == 201, registered.text
    answer = await scene.admin.post(f"{path}?rehearse=true", json=current)
    assert answer.json()["proposal"]["operations"] == BY_ID
    assert answer.json()["proposal"]["digest"] == registered.json()["digest"]

    assert await applied(scene, instance_id, to_current=True, reason="the plan was wrong") == "done"
    assert [args["employee"] for _, args in office.calls] == ["Will Zhang", "WZ001"]


async def test_what_no_operation_changes_is_told_as_a_whole(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    other = GRANT_ACCESS.replace("name: Granted", "name: Let in").replace("L002", "L003")
    assert (await scene.admin.post("/plans", json={"source": other})).status_code == 201
    for how in ("", "?rehearse=true"):
        path = f"/instances/{instance_id}/patches{how}"
        answer = await scene.admin.post(path, json={"to_current": True})
        assert answer.status_code == 422, answer.text
        assert len(answer.json()["problems"]) == 2


# The plan as it was.


async def test_the_plan_is_told_as_it_was_at_each_event(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office, failures=2)
    assert await applied(scene, instance_id, operations=[PHONED], listener_id="L001") == "error"
    assert await applied(scene, instance_id) == "done"
    first, second = (await shown(scene.admin, f"/instances/{instance_id}/patches"))["patches"]
    assert (second["base"], first["digest"] != second["digest"]) == (first["digest"], True)

    events = (await shown(scene.admin, f"/runs/{instance_id}/history"))["events"]
    held, path = first["base"], f"/runs/{instance_id}/definition"
    viewer = await scene.as_a("viewer")
    for event in events:
        if event["type"] == "PlanPatched":
            held = event["data"]["digest"]
        then = await shown(viewer, path, params={"at": event["seq"]})
        assert then["digest"] == held, event
        employee, listeners = told(then)
        assert listeners == (["L001", "L002"] if held == first["base"] else ["R1", "L001", "L002"])
        assert employee == ("WZ001" if held == second["digest"] else "Will Zhang")
    assert held == second["digest"]

    born = await shown(viewer, path)
    assert born["digest"] == first["base"]
    assert born == await shown(viewer, path, params={"at": 0})
    last = events[-1]["seq"]
    answer = await viewer.get(path, params={"at": last + 1})
    assert answer.status_code == 404
    assert str(last) in answer.json()["detail"]
    for wrong in (-1, "now", 10**16):
        assert (await viewer.get(path, params={"at": wrong})).status_code == 422


def told(definition: dict[str, Any]) -> tuple[str, list[str]]:
    listeners = {one["listener_id"]: one for one in definition["definition"]["listeners"]}
    return listeners["L001"]["args"]["employee"], list(listeners)


async def test_what_never_changes_is_the_same_at_each_event(scene: Scene, app: Holdfast) -> None:
    employ(app)
    chat = await open_chat(scene.admin)
    path = f"/runs/{chat}/definition"
    born = await shown(scene.admin, path)
    assert await shown(scene.admin, path, params={"at": 1}) == born
    assert "system_context" not in born["definition"]


# In a picture.


def marked(drawing: str) -> set[tuple[str, str]]:
    """The marked boxes: how, and by which label."""
    found = set()
    for one in ET.fromstring(drawing).iter(f"{SVG}g"):
        classes = one.get("class", "").split()
        for mark in {"added", "changed", "removed"}.intersection(classes):
            if "node" in classes:
                found.add((mark, one.findtext(f"{SVG}text") or ""))
    return found


async def test_a_patch_is_drawn_when_it_is_proposed_and_ever_after(
    scene: Scene, office: Office
) -> None:
    instance_id = await failed(scene, office, failures=2)
    made = await proposed(scene, instance_id, operations=[PHONED], listener_id="L001")
    first = made["case"]["proposal"]["patch_id"]
    path = f"/instances/{instance_id}/patches/{first}/diff.svg"
    answer = await scene.admin.get(path)
    assert answer.headers["content-type"] == "image/svg+xml"
    drawn = answer.text
    assert marked(drawn) == {
        ("added", "+ R1 apply_computer"),
        ("added", "+ R1 Phoned"),
        ("changed", "~ L001 grant_access"),
    }
    question = made["interaction"]["requestId"]
    assert (await answered(await scene.as_a("approver"), question, "apply")).status_code == 200
    assert await settled(scene, instance_id) == "error"
    assert (await scene.admin.get(path)).text == drawn

    assert await applied(scene, instance_id) == "done"
    assert (await scene.admin.get(path)).text == drawn
    second = (await shown(scene.admin, f"/instances/{instance_id}/patches"))["patches"][1]
    answer = await scene.admin.get(
        f"/instances/{instance_id}/patches/{second['patch_id']}/diff.svg"
    )
    assert marked(answer.text) == {("changed", "~ L001 grant_access")}


async def test_what_is_not_proposed_any_more_is_not_drawn(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    made = await proposed(scene, instance_id)
    path = f"/instances/{instance_id}/patches/{made['case']['proposal']['patch_id']}/diff.svg"
    assert (await scene.admin.get(path)).status_code == 200
    approver = await scene.as_a("approver")
    await answered(approver, made["interaction"]["requestId"], "refuse")
    assert (await scene.admin.get(path)).status_code == 404


# As every path has it.


async def test_all_of_it_is_in_the_readers_language(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    operator = await scene.as_a("operator")
    path = f"/instances/{instance_id}/patches"
    answer = await operator.post(path, json=ASKED, headers=CHINESE)
    case = answer.json()["case"]
    listed = await shown(operator, f"/instances/{instance_id}/cases", headers=CHINESE)
    assert listed["cases"][1] == case
    diagnosis = listed["cases"][0]["diagnosis"]
    assert diagnosis["told"] == worded(CAUSES[Cause.UNKNOWN], "zh")
    assert diagnosis["cause"] == "unknown"
    assert case["diagnosis"]["summary"] == "the door wants an id"
    assert case["error"] == "the door does not answer", "what a tool said stays as it is"
    patch = case["proposal"]["patch_id"]
    drawn = (await operator.get(f"{path}/{patch}/diff.svg", headers=CHINESE)).text
    assert "工具" in drawn


async def test_a_proposal_under_a_key_is_made_once(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    key = {"Idempotency-Key": "a-repair"}
    path = f"/instances/{instance_id}/patches"
    first, second = [await scene.admin.post(path, json=ASKED, headers=key) for _ in range(2)]
    assert second.content == first.content
    assert second.headers["idempotency-replayed"] == "true"
    found = (await shown(scene.admin, f"/interactions?run={instance_id}"))["interactions"]
    assert len(found) == 1


async def test_a_proposal_stands_in_the_audit(scene: Scene, office: Office) -> None:
    instance_id = await failed(scene, office)
    made = await proposed(scene, instance_id)
    deed = (await shown(scene.admin, "/audit", params={"limit": 200}))["entries"][-1]
    assert (deed["action"], deed["who"]) == ("proposed", "some operator")
    assert deed["subject"] == made["case"]["proposal"]["patch_id"]
    assert deed["detail"]["consent"] == made["case"]["proposal"]["consent"]


@pytest.mark.parametrize("name", ["reach", "patch_svg"])
async def test_patches_are_looked_at_and_drawn_beside_the_loop(
    scene: Scene, office: Office, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    original, threads = getattr(repairs, name), set()

    def watched(*args: Any, **options: Any) -> Any:
        threads.add(threading.current_thread().name)
        return original(*args, **options)

    monkeypatch.setattr(repairs, name, watched)
    instance_id = await failed(scene, office)
    made = await proposed(scene, instance_id)
    patch = made["case"]["proposal"]["patch_id"]
    drawn = await scene.admin.get(f"/instances/{instance_id}/patches/{patch}/diff.svg")
    assert drawn.status_code == 200
    assert threads
    assert all(one.startswith("holdfast-aside") for one in threads)
