"""The tasks of a conversation as a picture, and pictures in other words than English."""

from __future__ import annotations

from dataclasses import replace

import pytest
from immutables import Map

from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import StepState, retry_timer
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.graph import render_svg
from holdfast.drawing.picture import Condition, Edge
from holdfast.drawing.svg import draw
from holdfast.drawing.tasks import picture_of_tasks, standing
from holdfast.model.conversation import ConversationSettings, EngineState, SubTask
from holdfast.model.plan import Listener, Plan, Task, ToolAction
from holdfast.model.run import RunStatus

LOAD = SubTask("load", "Load it", "read", status="completed")
SUM = SubTask("sum", dependencies=("load", "gone"), status="running")
STATE = ConversationState(
    "conv_000001",
    definition=ConversationDefinition(ConversationSettings(), "digest"),
    status=RunStatus.RUNNING,
    tasks=Map({"t1": LOAD, "t2": SUM}),
    steps=Map({"t2": StepState(status=StepStatus.BACKOFF, attempt=1)}),
    timers=Map({retry_timer("t2"): 30.0}),
    order=("t1", "t2"),
    total=2,
    completed=1,
)


def test_each_task_stands_after_what_it_waits_for() -> None:
    picture = picture_of_tasks(STATE)

    assert [(one.id, one.label, one.note) for one in picture.nodes] == [
        ("t1", "load Load it", "read, done"),
        ("t2", "sum", "retrying, try 2 of 3"),
    ]
    assert picture.edges == (Edge(0, 1),)
    assert picture.title == "conv_000001 ◐ running"
    assert picture.description == "1 of 2 tasks done"


def test_a_box_that_moves_by_itself_says_when() -> None:
    assert 'data-id="t2" data-due="30.000"' in draw(picture_of_tasks(STATE))
    assert 'data-id="t1" role' in draw(picture_of_tasks(STATE))


@pytest.mark.parametrize(
    ("status", "step", "condition"),
    [
        ("pending", None, Condition.IDLE),
        ("running", StepStatus.WAITING, Condition.WAITING),
        ("failed", StepStatus.FAILED, Condition.FAILED),
        ("completed", StepStatus.DONE, Condition.DONE),
        ("something else", None, Condition.IDLE),
    ],
)
def test_a_task_is_as_its_step_is_while_that_is_under_way(
    status: str, step: StepStatus | None, condition: Condition
) -> None:
    tasks = {"t1": LOAD, "t2": replace(SUM, status=status)}
    steps = {"t2": StepState(status=step)} if step else {}
    state = replace(STATE, tasks=Map(tasks), steps=Map(steps))

    assert standing(state, "t2")[0] is condition


def test_a_conversation_that_has_failed_tries_nothing_again() -> None:
    failed = replace(STATE, status=RunStatus.ERROR)

    assert standing(failed, "t2") == (Condition.CANCELLED, "stopped")
    assert "data-due" not in draw(picture_of_tasks(failed))


def test_a_drawing_is_in_the_readers_language() -> None:
    listener = Listener("L1", ("1",), "Done", ToolAction("work"))
    plan = Plan("p", "Plan", "1", (Task("1", "One"),), (listener,))
    waits = StepState(status=StepStatus.BACKOFF, attempt=1)
    state = PlanState(
        "inst_000001",
        plan=CompiledPlan(plan, "digest"),
        status=RunStatus.RUNNING,
        steps=Map({"L1": waits}),
    )

    drawn = render_svg(plan, state, language="zh")

    assert "重试中，第 2/3 次尝试" in drawn
    assert "条件 Done" in drawn
    assert "1 个任务，1 个监听器；任务：1 未开始" in drawn


@pytest.mark.parametrize("status", ["finished", "skipped"])
def test_what_is_skipped_is_drawn_and_counted_so(status: str) -> None:
    skipped = replace(SUM, status=status, skipped="it failed")
    state = replace(STATE, tasks=STATE.tasks.set("t2", skipped), steps=Map(), skipped=1)
    assert standing(state, "t2") == (Condition.SKIPPED, "skipped")
    assert picture_of_tasks(state).description == "1 of 2 tasks done, 1 skipped"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("scheduled", (Condition.IDLE, "not started")),
        ("running", (Condition.CANCELLED, "stopped")),
        ("failed", (Condition.FAILED, "failed")),
        ("completed", (Condition.DONE, "done")),
    ],
)
def test_a_turn_that_a_person_has_ended_is_stopped_and_has_nothing_to_come(
    status: str, shown: tuple[Condition, str]
) -> None:
    tasks = STATE.tasks.set("t2", replace(SUM, status=status))
    ended = replace(STATE, status=RunStatus.DONE, kept=True, tasks=tasks, steps=Map())
    assert standing(ended, "t2") == shown
    assert picture_of_tasks(ended).title == "conv_000001 ⊘ stopped"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("scheduled", (Condition.IDLE, "not started")),
        ("running", (Condition.CANCELLED, "stopped")),
    ],
)
def test_in_a_run_that_was_cancelled_nothing_is_under_way_or_to_come(
    status: str, shown: tuple[Condition, str]
) -> None:
    tasks = STATE.tasks.set("t2", replace(SUM, status=status))
    withdrawn = Map({"t2": StepState(status=StepStatus.STOPPED)})
    cancelled = replace(
        STATE, status=RunStatus.CANCELLED, phase=EngineState.EXECUTING, tasks=tasks, steps=withdrawn
    )
    assert standing(cancelled, "t2") == shown


def test_what_was_under_way_when_a_turn_failed_does_not_run_any_more() -> None:
    failed = replace(STATE, status=RunStatus.ERROR, phase=EngineState.ERROR, steps=Map())
    assert standing(failed, "t2") == (Condition.CANCELLED, "stopped")
