"""Ways around whoever must consent: rules of one's own chat, one's own plan, one's own changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from chat_scene import Till, asked, clerks_mind, open_chat, rested, tell
from server_scene import Scene, furnish, serving, settled, start

from holdfast import Holdfast
from holdfast.model.interaction import Asking
from holdfast.server.settings import ServerSettings
from holdfast.testing.scripted_model import ScriptedModel

APPROVE = {"selectedOptionId": "approve"}

PAYING = """\
plan_id: paying
name: Pay somebody
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}]
inputs: {amount: {type: number, label: Amount, default: 5}}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: pay
    args: {amount: "{001.context.amount}"}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: human
    title: Is that all?
    success_output: {task_id: "001", status: Done}
  - listener_id: L003
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Is it noted?
    success_output: {task_id: "003", status: Done}
"""
"""Pays with consent, and then waits for a person: there is time to change one's mind."""

AROUND = """\
plan_id: {plan_id}
name: Around
main_task_id: "001"
tasks: [{{task_id: "001"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    {action}
    success_output: {{task_id: "001", status: Done}}
"""


def around(action: str, plan_id: str = "sandbox_around") -> str:
    return AROUND.format(plan_id=plan_id, action=action)


def tills(app: Holdfast) -> Till:
    """A clerk for everybody, and a chief whose calls, or whose helper's, finance consents to."""
    furnish(app)
    till = Till()
    app.tool(till.pay, approval="require")
    app.agent("clerk", name="Clerk", model=None, tools=["pay"])
    app.agent("chief", name="Chief", model=None, tools=["pay"], asking=Asking(role="finance"))
    app.agent("desk", name="Desk", model=None, tools=["pay"], agents=["chief"])
    app.models.default_model = ScriptedModel(clerks_mind)
    app.load_plan_text(PAYING)
    app.load_plan_text(around("listener_type: plan\n    plan_id: paying", "outer"))
    return till


@pytest.fixture
def till(app: Holdfast) -> Till:
    return tills(app)


@pytest.fixture
async def scene(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        yield scene


@pytest.fixture
async def four_eyed(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    async with serving(app, ServerSettings(four_eyes=True)) as scene:
        yield scene


async def consents(client: httpx.AsyncClient, root_id: str) -> list[dict[str, Any]]:
    """What waits for consent in the run or below it, once something does: another question that is
    open lets the run settle before."""
    async with asyncio.timeout(30):
        while True:
            found = await client.get("/interactions", params={"run": root_id, "status": "open"})
            open_ones = found.json()["interactions"]
            if waiting := [one for one in open_ones if one["type"] == "TOOL_APPROVAL"]:
                return waiting


async def approves(client: httpx.AsyncClient, root_id: str) -> httpx.Response:
    """They approve the one call that waits for it in the run or below it."""
    [question] = await consents(client, root_id)
    return await client.post(f"/interactions/{question['requestId']}/answer", json=APPROVE)


@pytest.mark.parametrize("agent_id", ["chief", "desk"])
@pytest.mark.parametrize("tool", ["pay", "*"])
async def test_a_chat_is_loosened_only_by_whom_its_agents_would_ask(
    agent_id: str, tool: str, scene: Scene, till: Till
) -> None:
    """The desk itself asks any approver, but hands work to the chief, who asks finance."""
    loose = {"agentId": agent_id, "approval": {tool: "auto"}}
    mallory = await scene.somebody(["operator", "approver"], name="mallory")
    refused = await mallory.post("/chats", json=loose)
    assert refused.status_code == 403, refused.text
    assert "finance" in refused.json()["detail"]
    treasurer = await scene.somebody(["operator", "approver", "finance"], name="treasurer")
    session_id = await open_chat(treasurer, **loose)
    assert await tell(scene, treasurer, session_id, "pay 6") == "done"
    assert till.paid == [6]


async def test_a_role_that_is_no_approvers_loosens_nothing(scene: Scene) -> None:
    clerk = await scene.somebody(["operator", "finance"], name="a clerk of finance")
    loose = {"agentId": "chief", "approval": {"pay": "auto"}}
    assert (await clerk.post("/chats", json=loose)).status_code == 403
    session_id = await open_chat(clerk, agentId="chief")
    remembered = await clerk.post(f"/chats/{session_id}/approvals", json={"tool": "pay"})
    assert remembered.status_code == 403


async def test_under_four_eyes_nobody_consents_before_they_speak(
    four_eyed: Scene, till: Till
) -> None:
    """Silent so far, they are nobody who wants anything: but they may be the next to speak."""
    ann = await four_eyed.somebody(["operator"], name="ann")
    bob = await four_eyed.somebody(["operator", "approver"], name="bob")
    session_id = await open_chat(ann)
    for somebody in (bob, await four_eyed.as_a("approver"), four_eyed.admin):
        path = f"/chats/{session_id}/approvals"
        refused = await somebody.post(path, json={"tool": "pay"})
        assert refused.status_code == 403, refused.text
        assert "four eyes" in refused.json()["detail"]
        assert (await ann.get(path)).json()["approvals"] == []
        loose = {"agentId": "clerk", "approval": {"pay": "auto"}}
        assert (await somebody.post("/chats", json=loose)).status_code == 403
    assert await tell(four_eyed, bob, session_id, "pay 9999") == "pause"
    question = await asked(bob, session_id)
    path = f"/interactions/{question['requestId']}/answer"
    assert (await bob.post(path, json=APPROVE)).status_code == 403
    assert till.paid == []
    assert (await four_eyed.admin.post(path, json=APPROVE)).status_code == 200
    assert await rested(four_eyed, session_id) == "done"
    assert till.paid == [9999]


CHANGES = {
    "context": {"task_id": "001", "context": {"amount": 9999}},
    "rerun": {"listener_id": "L001"},
    "mark-done": {"task_id": "003", "context": {"amount": 9999}},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("plan_id", ["paying", "outer"])
async def test_under_four_eyes_who_changed_a_run_does_not_approve_in_it(
    plan_id: str, change: str, four_eyed: Scene, till: Till
) -> None:
    """Also where the change is made in a run below: what it does, the whole run does."""
    bob = await four_eyed.somebody(["operator", "approver"], name="bob")
    root_id = await start(four_eyed, plan_id)
    [question] = await consents(bob, root_id)
    assert question["mayAnswer"] is True
    changed = await bob.post(f"/instances/{question['runId']}/{change}", json=CHANGES[change])
    assert changed.status_code == 200, changed.text
    await settled(four_eyed, question["runId"])
    refused = await approves(bob, root_id)
    assert refused.status_code == 403
    assert "another person" in refused.json()["detail"]
    assert till.paid == []
    other = await four_eyed.as_a("approver")
    assert (await approves(other, root_id)).status_code == 200


async def test_under_four_eyes_an_approved_call_is_not_had_again_for_more(
    four_eyed: Scene, till: Till
) -> None:
    bob = await four_eyed.somebody(["operator", "approver"], name="bob")
    root_id = await start(four_eyed, "paying")
    assert (await approves(bob, root_id)).status_code == 200
    await settled(four_eyed, root_id)
    assert till.paid == [5]
    for change in ("context", "rerun"):
        answer = await bob.post(f"/instances/{root_id}/{change}", json=CHANGES[change])
        assert answer.status_code == 200, answer.text
    await settled(four_eyed, root_id)
    assert (await approves(bob, root_id)).status_code == 403
    assert till.paid == [5]


@pytest.mark.parametrize("role", ["operator", "author", "finance"])
async def test_whoever_writes_a_plan_names_no_role_of_theirs_as_the_approvers(
    role: str, scene: Scene, till: Till
) -> None:
    ann = await scene.somebody(["author", "operator", "finance"], name="ann")
    action = "listener_type: tool\n    tool: pay\n    args: {amount: 555}\n    "
    source = around(f"{action}consent: {{role: {role}}}")
    registered = await ann.post("/plans", json={"source": source})
    assert registered.status_code == 201, registered.text
    started = await ann.post("/instances", json={"plan_id": "sandbox_around"})
    root_id = started.json()["id"]
    assert await settled(scene, root_id) == "pause"
    refused = await approves(ann, root_id)
    assert refused.status_code == 403
    assert "approver" in refused.json()["detail"]
    assert (await approves(await scene.as_a("approver"), root_id)).status_code == 403
    assert till.paid == []
    both = await scene.somebody(["approver", role], name="both")
    assert (await approves(both, root_id)).status_code == 200


OTHERS = {
    "grant_access": "listener_type: plan\n    plan_id: grant_access",
    "clerk": "listener_type: agent\n    agent_id: clerk\n    action_prompt: pay 5",
}


@pytest.mark.parametrize("name", OTHERS)
async def test_a_plan_runs_nothing_that_its_author_may_not_start(name: str, scene: Scene) -> None:
    source = {"source": around(OTHERS[name])}
    own = {"sandbox_*": ["author", "operator"]}
    reader = await scene.somebody(grants={**own, name: ["viewer"]}, name="reader")
    refused = await reader.post("/plans", json=source)
    assert refused.status_code == 403, refused.text
    assert name in refused.json()["detail"]
    assert (await scene.admin.get("/plans/sandbox_around")).status_code == 404
    assert (await reader.post("/plans/check", json=source)).status_code == 200
    operator = await scene.somebody(grants={**own, name: ["operator"]}, name="operator")
    assert (await operator.post("/plans", json=source)).status_code == 201


async def test_a_plan_may_run_itself_without_its_author_starting_it(scene: Scene) -> None:
    author = await scene.as_a("author")
    source = around("listener_type: plan\n    plan_id: sandbox_around")
    checked = await author.post("/plans", json={"source": source})
    assert checked.status_code == 201, checked.text


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("path", ["/plans", "/plans/check"])
async def test_checking_a_plan_tells_nothing_of_what_its_author_may_not_see(
    path: str, name: str, scene: Scene
) -> None:
    """A hidden name, a name that is nearly one and a made-up one are told the same."""
    eve = await scene.somebody(grants={"sandbox_*": ["author", "operator"]}, name="eve")
    told = []
    for tried in (name, name[:-1] + "z", "made_up"):
        source = around(OTHERS[name].replace(f"_id: {name}", f"_id: {tried}"))
        answer = await eve.post(path, json={"source": source})
        assert answer.status_code == 422, answer.text
        [problem] = answer.json()["problems"]
        told.append(problem["message"].replace(tried, "…"))
    assert len(set(told)) == 1, told
    assert name not in told[0]


CALLS = {
    "a tool": "listener_type: tool\n    tool: pay\n    args: {amount: 5}",
    "code": 'listener_type: code\n    code_snippet: "result = pay(amount=5)"\n    functions: [pay]',
}


@pytest.mark.parametrize("how", CALLS)
async def test_whoever_may_write_one_plan_is_not_given_every_tool(how: str, scene: Scene) -> None:
    source = {"source": around(CALLS[how])}
    before = await scene.app.journal.last_commit()
    for grants in ({}, {"tool:pa": ["author"]}, {"pay": ["author"]}, {"tool:pay": ["operator"]}):
        eve = await scene.somebody(grants={"sandbox_*": ["author"], **grants}, name="eve")
        refused = await eve.post("/plans", json=source)
        assert refused.status_code == 403, refused.text
        assert "to call pay:" in refused.json()["detail"]
        assert (await eve.post("/plans/check", json=source)).status_code == 200
    assert (await scene.admin.get("/plans/sandbox_around")).status_code == 404
    for grant in ("tool:pay", "tool:p*", "tool:*"):
        held = {"sandbox_*": ["author"], grant: ["author"]}
        ann = await scene.somebody(grants=held, name="ann")
        assert (await ann.post("/plans", json=source)).status_code == 201
    assert await scene.app.journal.last_commit() >= before


async def test_a_plan_may_be_rewritten_with_the_tools_that_it_has(scene: Scene) -> None:
    author = await scene.as_a("author")
    first = around(CALLS["a tool"])
    assert (await author.post("/plans", json={"source": first})).status_code == 201
    ann = await scene.somebody(grants={"sandbox_around": ["author"]}, name="ann")
    again = first.replace("amount: 5", "amount: 6")
    assert (await ann.post("/plans", json={"source": again})).status_code == 201
    more = again.replace("tool: pay", "tool: grant_access").replace("{amount: 6}", "{employee: x}")
    refused = await ann.post("/plans", json={"source": more})
    assert refused.status_code == 403, refused.text
    assert "grant_access" in refused.json()["detail"]


async def test_a_check_of_the_outcome_is_a_call_too(scene: Scene) -> None:
    scene.app.tool(look, read_only=True)
    source = around('listener_type: code\n    code_snippet: "result = {}"') + VERIFY
    eve = await scene.somebody(grants={"sandbox_*": ["author"]}, name="eve")
    refused = await eve.post("/plans", json={"source": source})
    assert refused.status_code == 403, refused.text
    assert "look" in refused.json()["detail"]


VERIFY = "verify: [{tool: look}]\n"


async def look() -> dict[str, bool]:
    return {"success": True}
