"""Will Zhang's access, again and again: what has repaired a failure is not asked of a model again.

The office is a real one over HTTP, the home a real file, and each repair has a process of its own
to itself, as far as a test can have that: an application that is opened and closed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.core.plan.state import PlanState
from holdfast.demo.office import Office
from holdfast.demo.onboarding import HERE, WILL_ZHANG
from holdfast.model.interaction import REPAIR
from holdfast.model.repair import CaseStatus, LessonState
from holdfast.repair.alerts import Alert, AlertKind
from holdfast.testing.repair_models import diagnosing_model
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.views.experience import LessonView
from holdfast.views.lessons import Lessons

pytestmark = pytest.mark.own_store  # it is a home's file that is opened again and again

PLAN = """
plan_id: access
name: Access and a mail
main_task_id: "001"
inputs: {id: {}, name: {}, email: {}, department: {}}
repair: REPAIR
verify:
  - tool: query_access
    args: {employee_id: "{001.context.id}"}
    expect: "result.exists == true"
tasks: [{task_id: "001"}, {task_id: "002", name: Access}, {task_id: "003", name: Mail}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee_id: "{001.context.id}"}
    retry: 1
    success_output: {task_id: "002", status: Done, context: {badge: "{{result.badge}}"}}
  - listener_id: L2
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: send_email
    args: {to: "{001.context.email}", subject: badge, content: "badge {002.context.badge}"}
    retry: 1
    success_output: {task_id: "003", status: Done}
  - listener_id: L3
    trigger_task_id: "003"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {}"
    success_output: {task_id: "001", status: Done}
"""
TOOLS = "tools: [create_employee_profile, query_profile]"
PROPOSED = f"{{{TOOLS}}}"
BY_ITSELF = f"{{mode: auto, auto: [lesson], {TOOLS}}}"
"""A lesson is applied without a person."""

ONCE_EACH = {"grant_access": 2, "create_employee_profile": 1, "send_email": 1, "query_access": 1}


@dataclass
class Told:
    """What became of one run: how many requests to a model it took, who made the proposal, and
    what the office was asked to do."""

    status: str
    requests: int
    source: str
    counts: Mapping[str, int]
    cases: list[CaseStatus]


@dataclass
class Front:
    """The front office: each run is of a person whom HR does not know yet."""

    home: Path
    office: Office
    repair: str = PROPOSED
    tools: Path = HERE / "tools.yaml"
    model: ScriptedModel = field(default_factory=diagnosing_model)
    alerts: list[Alert] = field(default_factory=list)
    runs: int = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Holdfast]:
        app = Holdfast(self.home, max_retry_count=0, model=self.model)
        app.load_tools(self.tools, {**os.environ, "OFFICE_URL": self.office.url})
        app.load_plan_text(PLAN.replace("REPAIR", self.repair))
        app.on_alert(self.alerts.append)
        async with app:
            yield app

    async def let_in(self) -> Told:
        """One run; whatever is proposed first is approved."""
        self.runs += 1
        before = await self.office.counts()
        async with self.opened() as app:
            given = {**WILL_ZHANG, "id": f"WZ{self.runs:03}"}
            instance = await app.plans.start_plan_by_prompt("", "access", values=given)
            await app.engine.wait_for(instance.id, _settled, 30.0)
            state = await self.state(app, instance.id)
            source = _source(state)
            if state.status == "error":
                [asked] = state.open_questions
                await app.answer(asked, option_id="apply")
                await app.engine.wait_for(instance.id, _decided, 30.0)
                state = await self.state(app, instance.id)
            cases = [one.status for one in state.repair.cases.values()]
            counts = await self.counts_since(before)
        return Told(state.status.value, state.repair.requests, source, counts, cases)

    async def counts_since(self, before: Mapping[str, int]) -> Mapping[str, int]:
        after = await self.office.counts()
        return {one: n - before.get(one, 0) for one, n in after.items() if n > before.get(one, 0)}

    async def state(self, app: Holdfast, run_id: str) -> PlanState:
        state = await app.engine.state(run_id)
        assert isinstance(state, PlanState)
        return state

    async def lessons(self) -> tuple[LessonView, ...]:
        async with self.opened() as app:
            return await Lessons.of(app, await app.engine.learning.experience()).all()

    async def pin(self, lesson_id: str) -> None:
        async with self.opened() as app:
            lessons = Lessons.of(app, await app.engine.learning.experience())
            await lessons.say(lesson_id, LessonState.PINNED)


def _settled(state: Any) -> bool:
    return state.status == "done" or bool(_asks(state))


def _asks(state: Any) -> list[str]:
    return [one for one in state.open_questions if state.questions[one].purpose == REPAIR]


def _decided(state: Any) -> bool:
    """The run is done, or its plan was of no use as it was repaired."""
    return state.status == "done" or (state.status == "error" and bool(_asks(state)))


def _source(state: PlanState) -> str:
    [case] = state.repair.cases.values()
    assert case.proposal is not None
    return case.proposal.patch.source.partition(":")[0]


@pytest.fixture
def front(tmp_path: Path, office: Office) -> Front:
    return Front(tmp_path, office)


async def proven(front: Front) -> LessonView:
    for _ in range(3):
        await front.let_in()
    [lesson] = await front.lessons()
    assert lesson.state is LessonState.PROVEN
    return lesson


async def test_after_three_proven_repairs_the_same_failure_asks_no_model(front: Front) -> None:
    told = [await front.let_in() for _ in range(5)]
    assert [one.requests for one in told] == [1, 1, 1, 0, 0]
    assert [one.source for one in told] == ["rule", "rule", "rule", "lesson", "lesson"]
    assert {one.status for one in told} == {"done"}
    assert [one.counts for one in told] == [ONCE_EACH] * 5
    assert len(front.model.seen) == 3
    [lesson] = await front.lessons()
    assert (lesson.plan_id, lesson.tool, lesson.listener_ids) == ("access", "grant_access", ("L1",))
    assert (lesson.wins, lesson.losses, lesson.state) == (5, 0, LessonState.PROVEN)
    assert lesson.runs == tuple(f"inst_{n:06d}" for n in (5, 4, 3, 2, 1))
    [words] = lesson.words
    assert words.startswith("before L1 comes R1: calls create_employee_profile with ")
    assert '"{001.context.name}"' in words, "what was of one run is read from any"


async def test_where_its_author_lets_a_lesson_be_applied_nobody_is_asked(front: Front) -> None:
    front.repair = BY_ITSELF
    first = await front.let_in()
    assert (first.source, first.requests) == ("rule", 1), "nothing has proven itself yet"
    for _ in range(2):
        await front.let_in()
    async with front.opened() as app:
        before = await front.office.counts()
        given = {**WILL_ZHANG, "id": "WZ009"}
        instance = await app.plans.start_plan_by_prompt("", "access", values=given)
        assert await instance.wait_for_completion(30) == "done"
        state = await front.state(app, instance.id)
        assert await app.inbox() == []
    assert (state.repair.requests, _source(state)) == (0, "lesson")
    assert not state.questions
    assert await front.counts_since(before) == ONCE_EACH


async def test_a_loss_retires_a_lesson_and_an_operator_is_told(front: Front) -> None:
    lesson = await proven(front)
    await front.office.configure_faults({"create_employee_profile": {"silent": True, "times": 1}})
    lost = await front.let_in()
    assert (lost.source, lost.status) == ("lesson", "error")
    [retired] = await front.lessons()
    assert (retired.lesson_id, retired.state) == (lesson.lesson_id, LessonState.RETIRED)
    assert (retired.wins, retired.losses) == (3, 1)
    told = [one for one in front.alerts if one.kind is AlertKind.LESSON_RETIRED]
    assert [one.about for one in told] == [lesson.lesson_id]

    again = await front.let_in()
    assert (again.requests, again.source, again.status) == (1, "rule", "done")
    assert [one.state for one in await front.lessons()] == [LessonState.RETIRED]


async def test_another_version_of_the_tool_retires_a_lesson(front: Front) -> None:
    lesson = await proven(front)
    front.tools = front.home / "tools.yaml"
    text = (HERE / "tools.yaml").read_text(encoding="utf-8")
    versioned = text.replace("name: grant_access\n", 'name: grant_access\n    version: "2"\n')
    assert versioned != text
    front.tools.write_text(versioned, encoding="utf-8")
    [outdated] = await front.lessons()
    assert (outdated.lesson_id, outdated.state) == (lesson.lesson_id, LessonState.RETIRED)
    assert outdated.outdated
    told = await front.let_in()
    assert (told.requests, told.source, told.status) == (1, "rule", "done")
    trial, former = await front.lessons()
    assert (trial.state, trial.wins, trial.outdated) == (LessonState.TRIAL, 1, False)
    assert former == outdated


async def test_a_lesson_that_a_person_has_pinned_outlives_a_loss(front: Front) -> None:
    lesson = await proven(front)
    await front.pin(lesson.lesson_id)
    await front.office.configure_faults({"create_employee_profile": {"silent": True, "times": 1}})
    assert (await front.let_in()).status == "error"
    [pinned] = await front.lessons()
    assert (pinned.state, pinned.wins, pinned.losses) == (LessonState.PINNED, 3, 1)
    told = await front.let_in()
    assert (told.requests, told.source, told.status) == (0, "lesson", "done")
    assert not [one for one in front.alerts if one.kind is AlertKind.LESSON_RETIRED]


async def test_other_failures_of_the_listener_learn_nothing_from_it(front: Front) -> None:
    await proven(front)
    await front.office.configure_faults({"grant_access": {"token": "expired"}})
    async with front.opened() as app:
        given = {**WILL_ZHANG, "id": "WZ009"}
        instance = await app.plans.start_plan_by_prompt("", "access", values=given)
        assert await instance.wait_for_completion(30) == "error"
        await app.engine.wait_for(instance.id, _diagnosed, 30.0)
        [case] = (await front.state(app, instance.id)).repair.cases.values()
    assert case.diagnosis is not None
    assert not case.diagnosis.source.startswith("lesson")


def _diagnosed(state: Any) -> bool:
    return any(one.diagnosis is not None for one in state.repair.cases.values())
