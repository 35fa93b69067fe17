"""A fork repairs nothing as people refused to in its origin, and has nothing called once more by
itself that its origin has called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest
from repair_scenes import ACCESS, WHO, Staff, proposal
from scenes import assert_sound, history, of_kind

from holdfast.app import Holdfast
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.state import operations_digest
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.model.rows import request_of
from holdfast.runs.handles import PlanInstance

TOOLS = "repair: {tools: [create_employee_profile]}"
ALONE = "repair: {mode: auto, auto: [lesson], tools: [create_employee_profile]}"
PROFILE: Mapping[str, Any] = {
    "op": "insert_before",
    "listener_id": "L001",
    "task": {"task_id": "R1"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": "create_employee_profile",
        "args": {"id": "{001.context.id}", "name": "{001.context.name}"},
    },
}


class Office:
    """HR's tool makes a profile each time that it is called."""

    def __init__(self, app: Holdfast) -> None:
        self.app, self.staff = app, Staff()
        self.staff.furnish(app)

        async def create_employee_profile(id: str, name: str) -> dict[str, str]:  # noqa: A002
            self.staff.done["create_employee_profile", id] += 1
            self.staff.known.add(id)
            return {"employee_id": id}

        app.tool(create_employee_profile, replace=True)

    def lessons_are_applied_alone(self) -> None:
        assert TOOLS in ACCESS
        self.app.load_plan_text(ACCESS.replace(TOOLS, ALONE))

    async def started(self, employee: str) -> PlanInstance:
        values = {"id": employee, "name": WHO}
        instance = await self.app.plans.start_plan_by_prompt("", "access", values=values)
        await instance.wait_for_completion(60)
        return instance

    async def repaired(self, employee: str) -> PlanInstance:
        """What is proposed is approved."""
        instance = await self.started(employee)
        asked = await proposal(self.app, instance.id)
        await self.app.answer(asked.question_id, option_id="apply", by=WHO)
        assert await instance.wait_for_completion(60) == "done"
        return instance

    async def refused(self, employee: str) -> PlanInstance:
        """What is proposed is refused, and the run is cancelled."""
        instance = await self.started(employee)
        asked = await proposal(self.app, instance.id)
        await self.app.answer(asked.question_id, option_id="refuse", by=WHO)
        await self.app.cancel(instance.id)
        assert await instance.wait_for_completion(60) == "cancelled"
        return instance

    async def forked(self, origin: PlanInstance, seq: int) -> PlanInstance:
        fork = await self.app.plans.fork(origin.id, seq, by=WHO)
        await fork.wait_for_completion(60)
        return fork

    async def looked_at(self, instance: PlanInstance) -> PlanState:
        """Its first case, once all has been said of it that will be."""
        async with asyncio.timeout(60):
            state = await self.app.engine.wait_for(instance.id, _is_looked_at)
        assert isinstance(state, PlanState)
        return await assert_sound(self.app, instance.id)


def _is_looked_at(state: Any) -> bool:
    return any(one.diagnosis for one in state.repair.cases.values())


def refused_ones(state: PlanState, events: Iterable[Event]) -> list[Event]:
    """What was proposed, or made, although people had refused it in the origin."""
    assert state.forked is not None
    told = [one for one in events if isinstance(one, e.PatchProposed)]
    names = [operations_digest(one.proposal.patch.operations) for one in told]
    return [one for one, name in zip(told, names, strict=True) if name in state.forked.refused]


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    app = Holdfast.in_memory(max_retry_count=0)
    office = Office(app)
    async with app:
        yield office


async def test_what_was_refused_in_the_origin_is_not_proposed_in_the_fork(office: Office) -> None:
    origin = await office.refused("WZ001")
    for seq in (1, origin.version):
        fork = await office.forked(origin, seq)
        state = await office.looked_at(fork)
        assert state.forked is not None
        assert len(state.forked.refused) == 1
        assert not refused_ones(state, await history(office.app, fork.id))
        assert fork.status == "error"
    assert office.staff.counts("WZ001") == {"grant_access": 3}


async def test_a_person_may_propose_it_again_there(office: Office) -> None:
    fork = await office.forked(await office.refused("WZ001"), 1)
    await office.looked_at(fork)
    repairer = office.app.planner_agent.repairer
    assert repairer is not None
    await repairer.propose(fork.id, [PROFILE], by="操作员", listener_id="L001")
    asked = await proposal(office.app, fork.id)
    await office.app.answer(asked.question_id, option_id="apply", by=WHO)
    assert await fork.wait_for_completion(60) == "done"
    assert office.staff.counts("WZ001")["create_employee_profile"] == 1


async def test_a_fork_of_a_run_where_nobody_refused_it_has_it_proposed(office: Office) -> None:
    instance = await office.started("WZ001")
    await proposal(office.app, instance.id)
    await office.app.cancel(instance.id)
    assert await instance.wait_for_completion(60) == "cancelled"
    fork = await office.forked(instance, 1)
    request = request_of(await proposal(office.app, fork.id))
    assert request.context["warnings"] == []
    assert request.message == "create_employee_profile makes what L001 lacks"


class TestLessonsThatAreAppliedAlone:
    @pytest.fixture
    async def learned(self, office: Office) -> Office:
        for number in range(3):
            await office.repaired(f"WZ10{number}")
        office.lessons_are_applied_alone()
        return office

    async def test_one_that_is_proven_is_where_nobody_has_refused_it(self, learned: Office) -> None:
        instance = await learned.started("WZ001")
        assert instance.status == "done"
        assert learned.staff.counts("WZ001")["create_employee_profile"] == 1

    async def test_in_a_fork_none_makes_what_was_refused_in_the_origin(
        self, office: Office
    ) -> None:
        office.lessons_are_applied_alone()
        origin = await office.refused("WZ001")
        office.app.load_plan_text(ACCESS)
        for number in range(3):
            await office.repaired(f"WZ10{number}")
        fork = await office.forked(origin, 1)
        state = await office.looked_at(fork)
        assert fork.status == "error"
        events = await history(office.app, fork.id)
        assert not refused_ones(state, events)
        assert not of_kind(events, e.PlanPatched)
        assert "create_employee_profile" not in office.staff.counts("WZ001")

    async def test_nor_what_would_call_again_what_the_origin_has_called(
        self, learned: Office
    ) -> None:
        """HR has lost the profile; whether another one is wanted, a person says."""
        origin = await learned.started("WZ001")
        assert origin.status == "done"
        learned.staff.known.clear()
        fork = await learned.forked(origin, 1)
        assert fork.status == "error"
        request = request_of(await proposal(learned.app, fork.id))
        assert request.context["source"].startswith("lesson:")
        assert (request.context["level"], request.role) == ("act", "approver")
        assert request.context["warnings"][0] == (
            "R1 would call create_employee_profile again: another run of this tree, or of which it "
            "is a fork, has called it"
        )
        assert learned.staff.counts("WZ001")["create_employee_profile"] == 1


CHILD = """
plan_id: hired
name: Hired
main_task_id: "001"
inputs: {id: {}, name: {}}
tasks: [{task_id: "001"}]
listeners:
  - listener_id: C001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: create_employee_profile
    args: {id: "{001.context.id}", name: "{001.context.name}"}
    success_output: {task_id: "001", status: Done}
"""
PARENT = """
plan_id: access
name: Access
main_task_id: "001"
inputs: {id: {}, name: {}}
repair: {tools: [create_employee_profile]}
tasks: [{task_id: "001"}, {task_id: "000"}]
listeners:
  - listener_id: L000
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: hired
    values: {id: "{001.context.id}", name: "{001.context.name}"}
    success_output: {task_id: "000", status: Done}
  - listener_id: L001
    trigger_task_id: "000"
    trigger_condition: Done
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    success_output: {task_id: "001", status: Done}
"""


async def test_a_call_that_a_run_below_the_origin_has_made_is_warned_of(office: Office) -> None:
    """The fork itself has called nothing, and no other run is of its tree."""
    office.app.load_plan_text(CHILD)
    office.app.load_plan_text(PARENT)
    origin = await office.started("WZ001")
    assert origin.status == "done"
    office.staff.known.clear()
    events = await history(office.app, origin.id)
    hired = next(n for n, one in enumerate(events, 1) if isinstance(one, e.ListenerSucceeded))
    fork = await office.forked(origin, hired)
    assert fork.status == "error"
    request = request_of(await proposal(office.app, fork.id))
    assert request.context["level"] == "act"
    warning, _ = request.context["warnings"]
    assert warning.startswith("R1 would call create_employee_profile again: another run")
    assert office.staff.counts("WZ001") == {"create_employee_profile": 1, "grant_access": 2}
