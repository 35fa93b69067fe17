"""Consent to a repair that no longer fits the run is refused, nothing is changed, and where the
repair still makes sense it is proposed anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from repair_scenes import REPAIRED, RULE, UNREPAIRED, WHO, Staff, given_up, proposal
from scenes import assert_sound, history, of_kind, until

from holdfast.app import Holdfast
from holdfast.errors import NotAllowed, PermanentError, TooLate
from holdfast.journal.port import QuestionRow
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.repair import CaseStatus
from holdfast.model.rows import request_of
from holdfast.model.values import JsonObject
from holdfast.runs.handles import PlanInstance

OTHER = "操作员"

TWO_DOORS = """
plan_id: doors
name: Two doors
main_task_id: "001"
inputs: {id: {}, name: {}}
repair: {tools: [create_employee_profile]}
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: lend_key
    args: {employee_id: "{001.context.id}"}
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "002,003"
    trigger_condition: "002.status == Done && 003.status == Done"
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

SLOW = """
plan_id: slow
name: Two steps
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: first
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: second
    args: {note: as the author wrote}
    success_output: {task_id: "001", status: Done}
"""
OTHERWISE: JsonObject = {"op": "set_args", "listener_id": "L002", "set": {"note": "otherwise"}}


@pytest.fixture
def staff() -> Staff:
    return Staff()


async def waiting(app: Holdfast) -> tuple[PlanInstance, str]:
    [found] = await given_up(app, ["WZ001"])
    return found


async def approve(app: Holdfast, question_id: str, by: str = WHO) -> object:
    return await app.answer(question_id, option_id="apply", by=by)


async def nothing_applied(app: Holdfast, instance: PlanInstance) -> None:
    state = await assert_sound(app, instance.id)
    events = await history(app, instance.id)
    assert of_kind(events, e.PlanPatched) == of_kind(events, e.RepairProven) == []
    assert (state.origin, state.repair.patches) == (None, ())


def told(question: QuestionRow) -> Mapping[str, Any]:
    return request_of(question).context


async def consent_of(app: Holdfast, instance: PlanInstance, question: str) -> str:
    return (await assert_sound(app, instance.id)).questions[question].consent or ""


# The run has moved on.


async def test_a_run_that_was_resumed_meanwhile_is_not_patched_and_its_next_failure_has_a_proposal(
    staff: Staff,
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        instance, question = await waiting(app)
        await app.resume(instance.id, by=OTHER)
        with pytest.raises(TooLate, match="withdrawn"):
            await approve(app, question)
        await nothing_applied(app, instance)
        anew = await proposal(app, instance.id)
        assert (told(anew)["source"], told(anew)["case_id"]) == (RULE, "case_2")
        await approve(app, anew.question_id)
        assert await instance.wait_for_completion(20) == "done"
        assert staff.counts("WZ001") == {**REPAIRED, "grant_access": 3}
        cases = (await assert_sound(app, instance.id)).repair.cases.values()
        assert {one.status for one in cases} == {CaseStatus.CLOSED, CaseStatus.PROVEN}


Deed = Callable[[Holdfast, PlanInstance], Awaitable[object]]
DEEDS: Mapping[str, Deed] = {
    "skipped": lambda app, one: app.skip(one.id, "L001", by=OTHER),
    "marked done": lambda app, one: app.mark_done(one.id, "002", by=OTHER),
    "cancelled": lambda app, one: app.cancel(one.id, by=OTHER),
}


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_failure_that_a_person_has_dealt_with_is_not_repaired_any_more(
    staff: Staff, deed: str
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        instance, question = await waiting(app)
        await DEEDS[deed](app, instance)
        with pytest.raises(TooLate, match="withdrawn"):
            await approve(app, question)
        await nothing_applied(app, instance)
        state = await assert_sound(app, instance.id)
        assert state.repair.cases["case_1"].status is CaseStatus.CLOSED
        assert not state.open_questions
        assert staff.counts("WZ001") == UNREPAIRED


async def test_a_listener_that_fired_meanwhile_is_not_changed() -> None:
    """Proposed while the run went on: by the time of the consent it has been called."""
    app = Holdfast.in_memory(max_retry_count=0)
    gates, notes = [asyncio.Event(), asyncio.Event()], []

    @app.tool
    async def first() -> None:
        await gates[0].wait()

    @app.tool
    async def second(note: str) -> None:
        notes.append(note)
        await gates[1].wait()

    app.load_plan_text(SLOW)
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "slow")
        assert app.planner_agent.repairer is not None
        await app.planner_agent.repairer.propose(instance.id, [OTHERWISE], by=OTHER)
        question = await proposal(app, instance.id)
        assert (await app.instance(instance.id)).context["pause_reason"] == "repair"
        gates[0].set()
        await until(lambda: bool(notes))
        with pytest.raises(NotAllowed, match="nothing was changed"):
            await approve(app, question.question_id)
        await nothing_applied(app, instance)
        gates[1].set()
        assert await instance.wait_for_completion(20) == "done"
        assert notes == ["as the author wrote"]
        await nothing_applied(app, instance)


# A tool is another one.


async def test_a_tool_of_another_version_makes_the_consent_void_and_the_repair_is_proposed_anew(
    staff: Staff,
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0), "1") as app:
        instance, question = await waiting(app)
        staff.employ(app, "2")
        with pytest.raises(NotAllowed, match="a tool that the repair names has changed"):
            await approve(app, question)
        await nothing_applied(app, instance)
        anew = await proposal(app, instance.id, besides=question)
        events = await history(app, instance.id)
        [withdrawn] = [one for one in events if isinstance(one, e.QuestionWithdrawn)]
        assert withdrawn.question_id == question
        first, second = [one for one in events if isinstance(one, e.PatchProposed)]
        versions = [dict(one.proposal.verdict.versions) for one in (first, second)]
        changed = {name for name in versions[0] if versions[0][name] != versions[1][name]}
        assert changed == {"create_employee_profile"}
        assert first.proposal.patch.operations == second.proposal.patch.operations
        before, after = [
            await consent_of(app, instance, one.question_id) for one in (withdrawn, anew)
        ]
        assert before != after
        with pytest.raises(TooLate, match="withdrawn"):
            await approve(app, question)
        await approve(app, anew.question_id)
        assert await instance.wait_for_completion(20) == "done"
        assert staff.counts("WZ001") == REPAIRED
        await assert_sound(app, instance.id)


async def test_two_who_consent_at_once_to_what_has_changed_are_both_refused_and_asked_once(
    staff: Staff,
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0), "1") as app:
        instance, question = await waiting(app)
        staff.employ(app, "2")
        outcomes = await asyncio.gather(
            approve(app, question), approve(app, question, OTHER), return_exceptions=True
        )
        assert {type(one) for one in outcomes} <= {NotAllowed, TooLate}
        await proposal(app, instance.id, besides=question)
        await nothing_applied(app, instance)
        assert len(of_kind(await history(app, instance.id), e.PatchProposed)) == 2


async def test_what_has_changed_may_still_be_refused(staff: Staff) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0), "1") as app:
        instance, question = await waiting(app)
        staff.employ(app, "2")
        await app.answer(question, option_id="refuse", feedback="never", by=WHO)
        await nothing_applied(app, instance)
        [refused] = of_kind(await history(app, instance.id), e.PatchRefused)
        assert isinstance(refused, e.PatchRefused)
        assert (refused.by, refused.reason) == (WHO, "never")


async def test_where_a_tool_takes_other_arguments_by_now_another_repair_is_proposed(
    staff: Staff,
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0), "1") as app:
        instance, question = await waiting(app)

        async def create_employee_profile(passport: int) -> None:
            raise AssertionError("nobody has consented to this")

        app.tool(create_employee_profile, idempotent=True, version="2", replace=True)
        with pytest.raises(NotAllowed, match="has changed"):
            await approve(app, question)
        await app.engine.wait_for(
            instance.id, lambda state: state.repair.cases["case_2"].looked, 20
        )
        await nothing_applied(app, instance)
        events = await history(app, instance.id)
        first, second = [one for one in events if isinstance(one, e.PatchProposed)]
        assert first.proposal.patch.operations != second.proposal.patch.operations


async def test_a_version_that_changed_and_changed_back_is_the_one_that_was_consented_to(
    staff: Staff,
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0), "1") as app:
        instance, question = await waiting(app)
        staff.employ(app, "2")
        staff.employ(app, "1")
        await approve(app, question)
        assert await instance.wait_for_completion(20) == "done"
        assert staff.counts("WZ001") == REPAIRED


# The plan is another one.


async def test_of_two_proposals_for_the_same_plan_the_second_is_void_once_the_first_is_applied(
    staff: Staff,
) -> None:
    app = staff.furnish(Holdfast.in_memory(max_retry_count=0))

    @app.tool
    async def lend_key(employee_id: str) -> None:
        staff.done["lend_key", employee_id] += 1
        if employee_id not in staff.known:
            raise PermanentError(f"HR has no employee {employee_id}: create the profile first")

    app.load_plan_text(TWO_DOORS)
    async with app:
        values = {"id": "WZ001", "name": WHO}
        instance = await app.plans.start_plan_by_prompt("", "doors", values=values)
        async with asyncio.timeout(20):
            while len(rows := await app.inbox()) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        first, second = rows
        staff.known.add("WZ001")  # else both doors would have to wait for the profile
        await approve(app, first.question_id)
        with pytest.raises(TooLate, match="withdrawn"):
            await approve(app, second.question_id)
        assert await instance.wait_for_completion(20) == "done"
        events = await history(app, instance.id)
        assert len(of_kind(events, e.PlanPatched)) == 1
        assert staff.counts("WZ001") == {
            "grant_access": 2,
            "lend_key": 2,
            "create_employee_profile": 1,
        }
        cases = (await assert_sound(app, instance.id)).repair.cases.values()
        assert {one.status for one in cases} == {CaseStatus.CLOSED, CaseStatus.PROVEN}


async def test_what_was_judged_for_a_plan_that_has_changed_since_is_not_even_asked_about(
    staff: Staff,
) -> None:
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        instance, question = await waiting(app)
        repairer = app.planner_agent.repairer
        assert repairer is not None
        operation: JsonObject = {
            "op": "set_args",
            "listener_id": "L001",
            "set": {"employee_id": "7"},
        }
        judged = await repairer.proposal(instance.id, [operation], by=OTHER)
        assert judged.verdict.problems == ()
        await approve(app, question)
        before = len(await history(app, instance.id))
        with pytest.raises(NotAllowed):
            await app.engine.submit(instance.id, c.ProposePatch(judged, OTHER, "L001"))
        assert await instance.wait_for_completion(20) == "done"
        events = await history(app, instance.id)
        assert len(events) > before
        assert len(of_kind(events, e.PatchProposed)) == len(of_kind(events, e.PlanPatched)) == 1
