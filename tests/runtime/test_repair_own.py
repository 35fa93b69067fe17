"""A person's own repair is about the failure that it mends, also where nobody says which; and what
is proposed goes with the values that it was proposed with."""

from __future__ import annotations

import asyncio

import pytest
from repair_scenes import REPAIRED, WHO, Staff, given_up, proposal
from repair_trees import DOOR, HR, WARNING, Offices, warnings
from scenes import assert_sound, history, of_kind

from holdfast.app import Holdfast
from holdfast.errors import NotAllowed, TooLate
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.repair import CaseStatus, LessonState
from holdfast.model.rows import request_of
from holdfast.model.values import JsonObject
from holdfast.views.lessons import Lessons

OPERATOR = "操作员"
OTHER_NUMBER: JsonObject = {
    "op": "set_args",
    "listener_id": "L001",
    "set": {"employee_id": "WZ002"},
}
OTHER_MAIL: JsonObject = {"op": "set_args", "listener_id": "L002", "set": {"to": "hr"}}

TWO_FAIL = """
plan_id: both
name: Two doors
main_task_id: "001"
inputs: {id: {}, name: {}}
tasks: [{task_id: "001"}, {task_id: "002"}]
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
    tool: grant_access
    args: {employee_id: "other {001.context.id}"}
    success_output: {task_id: "001", status: Done}
"""


async def proposed(
    app: Holdfast, run_id: str, *operations: JsonObject, listener_id: str = ""
) -> None:
    assert app.planner_agent.repairer is not None
    await app.planner_agent.repairer.propose(
        run_id, operations, by=OPERATOR, listener_id=listener_id
    )


async def open_about(app: Holdfast, run_id: str) -> list[str]:
    state = await assert_sound(app, run_id)
    return [one.listener_id for one in state.repair.in_status(CaseStatus.PROPOSED)]


class TestWhatItMends:
    async def test_the_failed_listener_that_it_changes_takes_the_rules_proposals_place(
        self,
    ) -> None:
        staff = Staff()
        async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
            [(instance, question)] = await given_up(app, ["WZ001"])
            await proposed(app, instance.id, OTHER_NUMBER)
            assert await open_about(app, instance.id) == ["L001"]
            with pytest.raises(TooLate, match="withdrawn"):
                await app.answer(question, option_id="apply", by=WHO)
            own = await proposal(app, instance.id)
            request = request_of(own)
            assert request.title == "Repair L001?"
            case = (await assert_sound(app, instance.id)).repair.cases["case_2"]
            assert case.diagnosis is not None
            assert case.diagnosis.evidence, "what was found of the failure is shown here too"
            await app.answer(own.question_id, option_id="refuse", feedback="no", by=WHO)
            await app.answer((await proposal(app, instance.id)).question_id, option_id="apply")
            await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
            assert staff.counts("WZ001") == REPAIRED

    async def test_what_changes_something_else_leaves_it_where_it_is(self) -> None:
        async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
            [(instance, _)] = await given_up(app, ["WZ001"])
            await proposed(app, instance.id, OTHER_MAIL)
            assert sorted(await open_about(app, instance.id)) == ["", "L001"]

    async def test_of_two_that_failed_neither_is_meant_by_what_changes_both(self) -> None:
        app = Staff().furnish(Holdfast.in_memory(max_retry_count=0))
        app.load_plan_text(TWO_FAIL)
        async with app:
            values = {"id": "WZ001", "name": WHO}
            instance = await app.plans.start_plan_by_prompt("", "both", values=values)
            await app.engine.wait_for(
                instance.id, lambda state: len(getattr(state, "failed", ())) == 2, 60
            )
            both = [OTHER_NUMBER, {**OTHER_NUMBER, "listener_id": "L002"}]
            await proposed(app, instance.id, *both)
            assert "" in await open_about(app, instance.id)
            await proposed(app, instance.id, both[1])
            state = await assert_sound(app, instance.id)
            by_person = [
                one.listener_id
                for one in state.repair.in_order()
                if one.proposal is not None and one.proposal.patch.by == OPERATOR
            ]
            assert by_person == ["", "L002"]

    async def test_whom_a_person_names_is_meant(self) -> None:
        async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
            [(instance, _)] = await given_up(app, ["WZ001"])
            await proposed(app, instance.id, OTHER_MAIL, listener_id="L001")
            assert await open_about(app, instance.id) == ["L001"]


class TestValues:
    async def test_an_edit_withdraws_what_was_shown_and_has_it_proposed_with_the_new_value(
        self,
    ) -> None:
        staff = Staff()
        async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
            [(instance, question)] = await given_up(app, ["WZ001"])
            await app.engine.submit(
                instance.id, c.EditContext("001", {"name": "Mallory"}, OPERATOR)
            )
            with pytest.raises(TooLate, match="withdrawn"):
                await app.answer(question, option_id="apply", by=WHO)
            anew = await proposal(app, instance.id, besides=question)
            events = of_kind(await history(app, instance.id), e.PatchProposed)
            names = [
                dict(one.proposal.verdict.success.calls[0].args)["name"]
                for one in events
                if isinstance(one, e.PatchProposed) and one.proposal.verdict.success
            ]
            assert names == [WHO, "Mallory"]
            await app.answer(anew.question_id, option_id="apply", by=WHO)
            await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
            assert staff.counts("WZ001") == REPAIRED

    async def test_an_edit_of_anything_else_leaves_it_open(self) -> None:
        async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
            [(instance, question)] = await given_up(app, ["WZ001"])
            await app.engine.submit(instance.id, c.EditContext("001", {"room": "7"}, OPERATOR))
            await app.answer(question, option_id="apply", by=WHO)
            assert await instance.wait_for_completion(60) == "done"

    async def test_an_edit_and_an_approval_at_once_are_never_both_for_what_was_shown(self) -> None:
        """Either the approval comes first, and what was shown is called, or it is refused."""
        staff = Staff()
        async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
            names = [f"WZ{number:05}" for number in range(30)]
            for number, (instance, question) in enumerate(await given_up(app, names)):
                edit = c.EditContext("001", {"name": "Mallory"}, OPERATOR)
                said = [
                    app.answer(question, option_id="apply", by=WHO),
                    app.engine.submit(instance.id, edit),
                ]
                told = await asyncio.gather(
                    *(said if number % 2 else said[::-1]), return_exceptions=True
                )
                approval = told[0] if number % 2 else told[1]
                patched = of_kind(await history(app, instance.id), e.PlanPatched)
                assert len(patched) == (not isinstance(approval, BaseException))
                if isinstance(approval, BaseException):
                    assert isinstance(approval, TooLate | NotAllowed)


class TestLessonsInTrees:
    """`auto: [lesson]`, and a lesson that has proven itself."""

    DOORS = """
plan_id: two_doors
name: One door after the other
main_task_id: "001"
inputs: {id: {}, name: {}}
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: P1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: door
    values: {id: "{001.context.id}", name: "{001.context.name}"}
    success_output: {task_id: "002", status: Done}
  - listener_id: P2
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: plan
    plan_id: door
    values: {id: "other {001.context.id}", name: "{001.context.name}"}
    success_output: {task_id: "001", status: Done}
"""

    async def learned(self, app: Holdfast) -> None:
        """Three doors were repaired, each with a person's consent."""
        for number in range(3):
            values = {"id": f"WZ{number}", "name": WHO}
            instance = await app.plans.start_plan_by_prompt("", "door", values=values)
            asked = await proposal(app, instance.id)
            await app.answer(asked.question_id, option_id="apply", by=WHO)
            await app.engine.wait_for(instance.id, lambda state: state.status == "done", 60)
        async with asyncio.timeout(60):
            while not await self.proven(app):  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def proven(self, app: Holdfast) -> bool:
        known = await Lessons.of(app, await app.engine.learning.experience()).all()
        return any(one.state is LessonState.PROVEN for one in known)

    async def test_what_it_would_call_is_called_by_itself_in_a_run_that_is_alone_only(
        self,
    ) -> None:
        offices = Offices()
        app = offices.furnish(Holdfast.in_memory(max_retry_count=0))
        by_itself = "repair: {mode: auto, auto: [lesson],"
        app.load_plan_text(DOOR.replace("repair: {", f"{by_itself} ", 1))
        app.load_plan_text(self.DOORS)
        async with app:
            await self.learned(app)
            values = {"id": "WZ3", "name": WHO}
            alone = await app.plans.start_plan_by_prompt("", "door", values=values)
            assert await alone.wait_for_completion(60) == "done"
            values = {"id": "WZ4", "name": WHO}
            tree = await app.plans.start_plan_by_prompt("", "two_doors", values=values)
            first = await proposal(app, f"{tree.id}.P1.1")
            assert request_of(first).context["source"].startswith("lesson:")
            assert request_of(first).context["warnings"] == []
            await app.answer(first.question_id, option_id="apply", by=WHO)
            second = await proposal(app, f"{tree.id}.P2.1")
            assert warnings(second).startswith(WARNING)
            assert offices.done[HR, "other WZ4"] == 0
