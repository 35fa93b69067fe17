"""Four eyes: whoever wants a call does not approve it, however they came to want it.

Ann is an approver who would like to do it alone; will only ever starts runs, and bob is the
further person.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from four_eyes_scene import APPROVE, FOUR_EYES, Four, people
from server_scene import serving, settled

from holdfast import Holdfast
from holdfast.errors import OutcomeUnknown
from holdfast.journal.codec import decode
from holdfast.model.events import ListenerStarted
from holdfast.server.settings import ServerSettings
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

PLAN = """\
plan_id: {plan_id}
name: Pay somebody
main_task_id: "001"
tasks: [{{task_id: "001"}}, {{task_id: "002"}}, {{task_id: "003"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    {first}
    success_output: {{task_id: "002", status: Done}}
  - listener_id: L002
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Is it noted?
    success_output: {{task_id: "003", status: Done}}
  - listener_id: L003
    trigger_task_id: "002,003"
    trigger_condition: "002.status == Done && 003.status == Done"
    listener_type: code
    code_snippet: "result = {{'success': True}}"
    success_output: {{task_id: "001", status: Done}}
"""
"""Does one thing while a person is asked for another, so that it can still be changed."""

TOOL = "listener_type: tool\n    tool: {tool}\n    args: {args}"
FIRST = {
    "paying": TOOL.format(tool="pay", args="{to: bob, amount: 5}"),
    "lacking": TOOL.format(tool="pay", args="{to: bob}"),
    "wiring": TOOL.format(tool="wire", args="{to: bob, amount: 5}"),
    "failing": TOOL.format(tool="fail", args="{}") + "\n    retry: {attempts: 1}",
    "above": "listener_type: plan\n    plan_id: paying",
    "asking": "listener_type: agent\n    agent_id: clerk\n    action_prompt: ask",
}

FORM = """\
plan_id: form
name: Pay as somebody says
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: How much?
    form: {amount: {type: number}}
    success_output: {task_id: "002", status: Done, context: {amount: "{{result.amount}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: pay
    args: {to: bob, amount: "{002.context.amount}"}
    success_output: {task_id: "001", status: Done}
"""


@dataclass
class Bank:
    paid: list[tuple[str, int]] = field(default_factory=list)
    wired: list[tuple[str, int]] = field(default_factory=list)
    broken: bool = True

    async def pay(self, to: str, amount: int) -> dict[str, Any]:
        """Pay somebody."""
        self.paid.append((to, amount))
        return {"paid": amount}

    async def wire(self, to: str, amount: int) -> dict[str, Any]:
        """Pay somebody, and hear nothing the first time."""
        self.wired.append((to, amount))
        if len(self.wired) == 1:
            raise OutcomeUnknown("the line went dead")
        return {"paid": amount}

    async def fail(self) -> dict[str, Any]:
        """Fail until it is mended."""
        return {"success": not self.broken, "error": "broken"}


def clerks_mind(seen: Seen) -> Entry:
    """Asks whom to pay; pays whom the answer names, or what somebody said."""
    if seen.asked == "ask" and not seen.results:
        return call("ask_person", question="Whom?", options=["ann", "bob"])
    if seen.asked.startswith(("ask", "pay")) and (not seen.results or len(seen.results) == 1):
        return call("pay", to="bob", amount=7)
    return "Done."


def furnish(app: Holdfast) -> Bank:
    bank = Bank()
    app.tool(bank.pay, approval="require")
    app.tool(bank.wire, approval="require")
    app.tool(bank.fail)
    app.agent("clerk", name="Clerk", model=None, tools=["pay"], asks_people=True)
    app.models.default_model = ScriptedModel(clerks_mind)
    for plan_id, first in FIRST.items():
        app.load_plan_text(PLAN.format(plan_id=plan_id, first=first))
    app.load_plan_text(FORM)
    return bank


@pytest.fixture
def bank(app: Holdfast) -> Bank:
    return furnish(app)


@pytest.fixture
async def four(app: Holdfast, bank: Bank) -> AsyncIterator[Four]:
    async with serving(app, FOUR_EYES) as scene:
        yield await people(scene)


async def alone(four: Four, bank: Bank, root_id: str) -> None:
    """Ann, who has had her say, does not get it through; bob does."""
    before = (list(bank.paid), list(bank.wired))
    question = await four.open(root_id, "TOOL_APPROVAL")
    assert question["mayAnswer"] is False
    assert "ann" in question["wantedBy"]
    assert "and so want this call: another person must approve it" in question["mayNotBecause"]
    several = {"requestIds": [question["requestId"]], **APPROVE}
    told = await four.ann.post("/interactions/answers", json=several)
    assert [one["status"] for one in told.json()["outcomes"]] == [403]
    assert await four.approves(four.ann, root_id) == 403
    assert (bank.paid, bank.wired) == before
    assert await four.approves(four.bob, root_id) == 200


async def test_an_edit_is_a_wish_that_a_further_person_approves(four: Four, bank: Bank) -> None:
    root_id = await four.start("paying")
    edited = {**APPROVE, "data": {"amount": 900}}
    taken = await four.answers(four.ann, root_id, "TOOL_APPROVAL", **edited)
    assert taken.status_code == 200, taken.text
    assert bank.paid == []
    question = await four.open(root_id, "TOOL_APPROVAL")
    assert question["context"]["args"] == {"to": "bob", "amount": 900}
    assert "ann wants it changed" in question["details"]
    assert "5 has become 900" in question["details"]
    assert question["wantedBy"] == ["ann", "will"]
    await alone(four, bank, root_id)
    assert bank.paid == [("bob", 900)]


async def test_a_wish_may_be_changed_again_and_then_needs_a_third_person(
    four: Four, bank: Bank
) -> None:
    root_id = await four.start("paying")
    for who, amount in ((four.ann, 900), (four.bob, 800)):
        edited = {**APPROVE, "data": {"amount": amount}}
        taken = await four.answers(who, root_id, "TOOL_APPROVAL", **edited)
        assert taken.status_code == 200, taken.text
    assert [await four.approves(one, root_id) for one in (four.ann, four.bob)] == [403, 403]
    third = await four.scene.somebody(["approver"], name="eve")
    assert await four.approves(third, root_id) == 200
    assert bank.paid == [("bob", 800)]


async def test_what_is_sent_again_unchanged_is_no_edit(four: Four, bank: Bank) -> None:
    root_id = await four.start("paying")
    same = {**APPROVE, "data": {"to": "bob", "amount": 5}}
    taken = await four.answers(four.ann, root_id, "TOOL_APPROVAL", **same)
    assert taken.status_code == 200, taken.text
    assert bank.paid == [("bob", 5)]


async def test_who_gives_the_missing_argument_does_not_approve(four: Four, bank: Bank) -> None:
    root_id = await four.start("lacking")
    given = await four.answers(four.ann, root_id, "MISSING_INFO", data={"amount": 900})
    assert given.status_code == 200, given.text
    await alone(four, bank, root_id)
    assert bank.paid == [("bob", 900)]


async def test_who_continues_with_the_missing_argument_does_not_approve(
    four: Four, bank: Bank
) -> None:
    root_id = await four.start("lacking")
    body = {"provided_params": {"amount": 900}}
    went_on = await four.ann.post(f"/instances/{root_id}/continue", json=body)
    assert went_on.status_code == 200, went_on.text
    await settled(four.scene, root_id)
    await alone(four, bank, root_id)


async def test_who_fills_in_the_form_does_not_approve(four: Four, bank: Bank) -> None:
    root_id = await four.start("form")
    provided = {"selectedOptionId": "provide", "data": {"amount": 900}}
    given = await four.answers(four.ann, root_id, "USER_INPUT", **provided)
    assert given.status_code == 200, given.text
    await alone(four, bank, root_id)
    assert bank.paid == [("bob", 900)]


@pytest.mark.parametrize("above", [False, True])
async def test_who_registers_the_plan_does_not_approve_its_calls(
    four: Four, bank: Bank, above: bool
) -> None:
    """Nor where it is run by another plan, nor after somebody else registers the same."""
    admin = await four.scene.somebody(["admin"], name="root")
    for who, plan_id in ((four.ann, "paying"), (admin, "paying"), (admin, "above")):
        first = FIRST[plan_id].replace("amount: 5", "amount: 900")
        source = PLAN.format(plan_id=plan_id, first=first)
        registered = await who.post("/plans", json={"source": source})
        assert registered.status_code == 201, registered.text
    root_id = await four.start("above" if above else "paying")
    await alone(four, bank, root_id)
    assert bank.paid == [("bob", 900)]


async def test_who_registered_the_plan_is_known_after_a_restart(tmp_path: Path) -> None:
    source = PLAN.format(plan_id="paying", first=FIRST["paying"].replace("5", "900"))
    for turn in range(2):
        app = Holdfast(tmp_path)
        bank = furnish(app)
        async with serving(app, FOUR_EYES) as scene:
            four = await people(scene)
            if turn == 0:
                assert (await four.ann.post("/plans", json={"source": source})).status_code == 201
                continue
            await alone(four, bank, await four.start("paying"))


async def test_who_has_it_run_again_does_not_approve_that(four: Four, bank: Bank) -> None:
    """Consent was for one call: a further one is asked for anew."""
    root_id = await four.start("wiring")
    assert await four.approves(four.bob, root_id) == 200
    assert bank.wired == [("bob", 5)]
    again = await four.answers(four.ann, root_id, "USER_CHOICE", selectedOptionId="run_again")
    assert again.status_code == 200, again.text
    assert bank.wired == [("bob", 5)]
    question = await four.open(root_id, "TOOL_APPROVAL")
    assert "consented to before" in question["details"]
    await alone(four, bank, root_id)
    assert bank.wired == [("bob", 5), ("bob", 5)]


async def test_who_says_that_it_happened_does_not_approve_what_follows(
    four: Four, bank: Bank
) -> None:
    root_id = await four.start("wiring")
    assert await four.approves(four.bob, root_id) == 200
    happened = {"selectedOptionId": "happened", "data": {"result": "paid"}}
    assert (await four.answers(four.ann, root_id, "USER_CHOICE", **happened)).status_code == 200
    await four.will.post(f"/instances/{root_id}/rerun", json={"listener_id": "L001"})
    await settled(four.scene, root_id)
    await alone(four, bank, root_id)


AuditRecord = Callable[[Four, str], Awaitable[httpx.Response]]


def changes(path: str, **body: Any) -> AuditRecord:
    async def change(four: Four, root_id: str) -> httpx.Response:
        return await four.ann.post(f"/instances/{root_id}/{path}", json=body)

    return change


async def says(four: Four, root_id: str) -> httpx.Response:
    words = {"selectedOptionId": "confirm", "feedback": "and be quick"}
    return await four.answers(four.ann, root_id, "USER_CONFIRMATION", **words)


DEEDS: dict[str, AuditRecord] = {
    "edits the context": changes("context", task_id="001", context={"to": "ann"}),
    "marks done": changes("mark-done", task_id="003"),
    "skips": changes("skip", listener_id="L002"),
    "reruns": changes("rerun", listener_id="L001"),
    "answers with words": says,
}


@pytest.mark.parametrize("deed", DEEDS)
async def test_who_changes_the_run_does_not_approve(four: Four, bank: Bank, deed: str) -> None:
    """Also where the call was asked before the change."""
    root_id = await four.start("paying")
    done = await DEEDS[deed](four, root_id)
    assert done.status_code == 200, done.text
    await settled(four.scene, root_id)
    await alone(four, bank, root_id)


async def test_who_resumes_does_not_approve(four: Four, bank: Bank) -> None:
    root_id = await four.start("failing")
    await four.scene.app.engine.wait_for(root_id, lambda state: state.status == "error", 30)
    bank.broken = False
    resumed = await four.ann.post(f"/instances/{root_id}/resume")
    assert resumed.status_code == 200, resumed.text
    await four.will.post(
        f"/instances/{root_id}/context", json={"task_id": "001", "context": {"a": 1}}
    )
    state = await four.scene.app.engine.state(root_id)
    assert dict(state.wanting) == {"will": "started", "ann": "resumed"}


async def test_who_answers_an_agent_below_does_not_approve(four: Four, bank: Bank) -> None:
    root_id = await four.start("asking")
    clerk = f"{root_id}.L001.1"

    async def waits() -> None:
        await four.scene.app.engine.wait_for(clerk, lambda state: len(state.open_questions), 30)

    await waits()
    chosen = {"selectedOptionId": "choice_1"}
    assert (await four.answers(four.ann, root_id, "USER_CHOICE", **chosen)).status_code == 200
    await waits()
    await alone(four, bank, root_id)


async def test_who_speaks_in_a_chat_does_not_approve(four: Four, bank: Bank) -> None:
    opened = await four.will.post("/chats", json={"agentId": "clerk"})
    session_id = opened.json()["sessionId"]
    said = await four.ann.post(f"/chats/{session_id}/messages", json={"message": "pay"})
    assert said.status_code == 200, said.text
    await (await four.scene.app.sessions.session(session_id)).wait_until_settled(30)
    before = list(bank.paid)
    [question] = (await four.bob.get(f"/chats/{session_id}")).json()["interactions"]
    path = f"/interactions/{question['requestId']}/answer"
    for who in (four.ann, four.will):
        assert (await who.post(path, json=APPROVE)).status_code == 403
    assert bank.paid == before
    assert (await four.bob.post(path, json=APPROVE)).status_code == 200


async def test_a_bare_yes_or_no_is_no_wish(four: Four, bank: Bank) -> None:
    """Ann confirms and approves without a word, and may approve what comes next."""
    root_id = await four.start("paying")
    assert await four.approves(four.ann, root_id) == 200
    again = await four.will.post(f"/instances/{root_id}/rerun", json={"listener_id": "L001"})
    assert again.status_code == 200, again.text
    await settled(four.scene, root_id)
    bare = {"selectedOptionId": "confirm"}
    assert (await four.answers(four.ann, root_id, "USER_CONFIRMATION", **bare)).status_code == 200
    assert await four.approves(four.ann, root_id) == 200
    assert bank.paid == [("bob", 5), ("bob", 5)]


async def test_who_starts_it_does_not_approve_it(four: Four, bank: Bank) -> None:
    started = await four.ann.post("/instances", json={"plan_id": "paying"})
    root_id = started.json()["id"]
    await settled(four.scene, root_id)
    await alone(four, bank, root_id)


async def test_where_nobody_is_left_the_question_says_so_and_admins_see_it(
    four: Four, bank: Bank
) -> None:
    root_id = await four.start("paying")
    assert (await four.open(root_id, "TOOL_APPROVAL"))["nobodyMayApprove"] is False
    for amount, who in enumerate((four.ann, four.bob, four.scene.admin), 100):
        edited = {**APPROVE, "data": {"amount": amount}}
        taken = await four.answers(who, root_id, "TOOL_APPROVAL", **edited)
        assert taken.status_code == 200, taken.text
    listed = await four.scene.admin.get("/interactions", params={"run": root_id, "status": "open"})
    [question] = [one for one in listed.json()["interactions"] if one["type"] == "TOOL_APPROVAL"]
    assert question["nobodyMayApprove"] is True
    await four.scene.somebody(["approver"], name="eve")
    assert (await four.open(root_id, "TOOL_APPROVAL"))["nobodyMayApprove"] is False


async def test_the_audit_entry_of_an_approval_names_what_ran(four: Four, bank: Bank) -> None:
    root_id = await four.start("paying")
    edited = {**APPROVE, "data": {"amount": 900}}
    await four.answers(four.ann, root_id, "TOOL_APPROVAL", **edited)
    assert await four.approves(four.bob, root_id) == 200
    events = [decode(one) for one in await four.scene.app.journal.read(root_id)]
    [ran] = [one for one in events if isinstance(one, ListenerStarted) and one.args]
    audit = await four.scene.admin.get("/audit")
    told = {
        one["who"]: one["detail"] for one in audit.json()["entries"] if one["action"] == "answered"
    }
    assert told["bob"]["consent"] == ran.consent
    assert "consent" not in told["ann"]


async def test_the_question_keeps_who_wanted_it_where_the_setting_is_gone(tmp_path: Path) -> None:
    """What was asked under four eyes is answered under four eyes."""
    root_id = ""
    for settings in (FOUR_EYES, ServerSettings()):
        app = Holdfast(tmp_path)
        bank = furnish(app)
        async with serving(app, settings) as scene:
            four = await people(scene)
            if settings.four_eyes:
                started = await four.ann.post("/instances", json={"plan_id": "paying"})
                root_id = started.json()["id"]
                await settled(scene, root_id)
                continue
            await alone(four, bank, root_id)
            assert bank.paid == [("bob", 5)]


async def test_a_wish_made_under_four_eyes_stays_one_where_the_setting_is_gone(
    tmp_path: Path,
) -> None:
    root_id = ""
    for settings in (FOUR_EYES, ServerSettings()):
        app = Holdfast(tmp_path)
        bank = furnish(app)
        async with serving(app, settings) as scene:
            four = await people(scene)
            if settings.four_eyes:
                root_id = await four.start("paying")
                continue
            edited = {**APPROVE, "data": {"amount": 900}}
            taken = await four.answers(four.ann, root_id, "TOOL_APPROVAL", **edited)
            assert taken.status_code == 200, taken.text
            await alone(four, bank, root_id)
            assert bank.paid == [("bob", 900)]


async def test_what_is_asked_without_the_setting_needs_one_person(app: Holdfast) -> None:
    bank = furnish(app)
    async with serving(app) as scene:
        four = await people(scene)
        started = await four.ann.post("/instances", json={"plan_id": "paying"})
        root_id = started.json()["id"]
        await settled(scene, root_id)
        question = await four.open(root_id, "TOOL_APPROVAL")
        assert (question["mayAnswer"], question["wantedBy"]) == (True, None)
        assert await four.approves(four.ann, root_id) == 200
    assert bank.paid == [("bob", 5)]
