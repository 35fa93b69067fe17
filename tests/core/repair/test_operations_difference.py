from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from random_operations import PatchMaker, sound_plan
from small_plans import CODE, KEYED, compiled, on

from holdfast.core.repair.difference import difference
from holdfast.core.repair.operations import operations_from_json, patched, read_operations
from holdfast.core.storing import plan_digest
from holdfast.errors import PatchRejected
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field, Form
from holdfast.model.plan import (
    AgentAction,
    Check,
    CodeAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)

LOOK = on("L1", "001 Running", ToolAction("look", {"who": "Will Zhang"}), "002")
GRANT = on("L2", "002 Done", ToolAction("grant", {"n": 1}), "003", context={"id": 1})
END = on("L3", "003 Done", CODE, "001")
PLAN = compiled(LOOK, GRANT, END).plan


def with_listeners(*listeners: Listener, tasks: tuple[Task, ...] = ()) -> Plan:
    return replace(PLAN, tasks=(*PLAN.tasks, *tasks), listeners=listeners)


def reasons(after: Plan, before: Plan = PLAN) -> list[str]:
    with pytest.raises(PatchRejected) as refused:
        difference(before, after)
    return list(refused.value.problems)


def after_patch(before: Plan, after: Plan) -> Plan:
    return patched(before, read_operations(difference(before, after)))


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=60, max_size=300))
def test_the_difference_to_a_patched_plan_makes_the_same_plan(script: bytes) -> None:
    dice = Dice(script)
    plan = sound_plan(dice)
    operations = PatchMaker(dice, plan, skips=True).operations()
    made = patched(plan, operations_from_json(operations))
    found = json.loads(canonical_json(list(difference(plan, made))))
    assert plan_digest(patched(plan, operations_from_json(found))) == plan_digest(made)


def respelled(plan: Plan, dice: Dice) -> Plan:
    """The same plan, in which some triggers are spelled otherwise."""

    def spelled(one: Listener) -> Listener:
        task_id, *more = one.trigger_task_id
        for status in TaskStatus:
            ways = (status, f"{task_id}.status == {status}", f'{task_id}.status=="{status}"')
            if not more and one.trigger_condition in ways:
                return replace(one, trigger_condition=dice.pick(ways))
        return one

    return replace(plan, listeners=tuple(map(spelled, plan.listeners)))


def spelled_out(plan: Plan) -> str:
    """A digest of the plan that is the same however its triggers are spelled."""
    long = respelled(plan, Dice(b"\1" * 100_000))
    assert respelled(long, Dice(b"\1" * 100_000)) == long
    return plan_digest(long)


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=60, max_size=300), st.binary(min_size=20, max_size=60))
def test_however_triggers_are_spelled_it_makes_a_plan_that_means_the_same(
    script: bytes, spelling: bytes
) -> None:
    dice = Dice(script)
    plan = sound_plan(dice)
    operations = PatchMaker(dice, plan, skips=True).operations()
    made = patched(plan, operations_from_json(operations))
    wanted = respelled(made, Dice(spelling))
    found = json.loads(canonical_json(list(difference(plan, wanted))))
    reached = patched(plan, operations_from_json(found))
    assert spelled_out(reached) == spelled_out(wanted)
    assert difference(reached, wanted) == ()


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=60, max_size=300))
def test_a_plan_does_not_differ_from_itself(script: bytes) -> None:
    plan = sound_plan(Dice(script))
    assert difference(plan, replace(plan)) == ()


def test_each_change_of_a_listener_is_its_own_operation() -> None:
    after = replace(
        GRANT,
        action=ToolAction("grant", {"m": 2}),
        success_output=Output("003", TaskStatus.DONE, {"id": "{{result.id}}"}),
        retry=replace(GRANT.retry, attempts=7),
        timeout=9.0,
    )
    assert difference(PLAN, with_listeners(LOOK, after, END)) == (
        {"op": "set_args", "listener_id": "L2", "set": {"m": 2}, "drop": ["n"]},
        {"op": "set_output", "listener_id": "L2", "context": {"id": "{{result.id}}"}},
        {"op": "set_retry", "listener_id": "L2", "retry": {"attempts": 7}, "timeout": 9.0},
    )


def test_another_tool_comes_with_all_of_its_arguments() -> None:
    after = replace(GRANT, action=ToolAction("grant_v2", {"n": 1, "m": 2}))
    assert difference(PLAN, with_listeners(LOOK, after, END)) == (
        {"op": "use_tool", "listener_id": "L2", "tool": "grant_v2", "args": {"n": 1, "m": 2}},
    )


def test_true_is_another_argument_than_one() -> None:
    after = with_listeners(LOOK, replace(GRANT, action=ToolAction("grant", {"n": True})), END)
    assert difference(PLAN, after) == ({"op": "set_args", "listener_id": "L2", "set": {"n": True}},)


def test_values_of_a_plan_are_arguments_too_and_may_only_be_dropped() -> None:
    before = with_listeners(LOOK, replace(GRANT, action=PlanAction("p", {"a": 1, "b": 2})), END)
    after = with_listeners(LOOK, replace(GRANT, action=PlanAction("p", {"b": 2})), END)
    assert difference(before, after) == ({"op": "set_args", "listener_id": "L2", "drop": ["a"]},)


def test_a_time_limit_may_be_taken_away() -> None:
    before = with_listeners(LOOK, replace(GRANT, timeout=5.0), END)
    assert difference(before, PLAN) == ({"op": "set_retry", "listener_id": "L2", "timeout": None},)


def test_a_listener_whose_tool_became_no_work_is_skipped() -> None:
    skipped = replace(
        GRANT,
        action=CodeAction("result = {}"),
        success_output=Output("003", TaskStatus.SKIPPED),
        timeout=3.0,
    )
    assert difference(PLAN, with_listeners(LOOK, skipped, END)) == (
        {"op": "skip", "listener_id": "L2"},
        {"op": "set_retry", "listener_id": "L2", "timeout": 3.0},
    )


def test_what_an_author_put_between_two_steps_is_put_before_the_second() -> None:
    """Wherever in the file the new listener stands."""
    create = on("L9", "002 Done", KEYED, "009")
    waits = replace(GRANT, trigger_task_id=("009",), trigger_condition="009.status == Done")
    after = with_listeners(LOOK, waits, create, END, tasks=(Task("009", "Profile"),))
    (operation,) = difference(PLAN, after)
    assert operation["op"] == "insert_before"
    assert operation["listener_id"] == "L2"
    assert "trigger_task_id" not in operation["listener"]
    made = after_patch(PLAN, after)
    assert made.listeners == (LOOK, create, waits, END)
    assert made.tasks == after.tasks


@pytest.mark.parametrize(
    "condition", ["Done", " Done ", "009.status == Done", "009.status=='Done'", '"Done" == x']
)
def test_it_may_wait_for_that_in_the_authors_own_spelling(condition: str) -> None:
    create = replace(on("L9", "002 Done", KEYED, "009"), trigger_condition="002.status == Done")
    waits = replace(GRANT, trigger_task_id=("009",), trigger_condition=condition)
    after = with_listeners(LOOK, create, waits, END, tasks=(Task("009", "Profile"),))
    if "x" in condition:
        assert "listeners.L2.trigger_condition: no operation changes this" in reasons(after)
        return
    (operation,) = difference(PLAN, after)
    assert (operation["op"], operation["listener_id"]) == ("insert_before", "L2")
    made = after_patch(PLAN, after)
    assert [one.trigger_condition for one in made.listeners[1:3]] == ["Done", "009.status == Done"]
    assert difference(made, after) == ()


def test_a_trigger_that_is_spelled_otherwise_is_no_difference() -> None:
    spelled = replace(GRANT, trigger_condition="002.status == Done")
    assert difference(PLAN, with_listeners(LOOK, spelled, END)) == ()
    both = replace(GRANT, trigger_task_id=("001", "002"), trigger_condition="Done")
    one_of_them = replace(both, trigger_condition="001.status == Done")
    before = with_listeners(LOOK, both, END)
    assert reasons(with_listeners(LOOK, one_of_them, END), before) == [
        "listeners.L2.trigger_condition: no operation changes this"
    ]


def test_several_in_a_row_come_one_by_one_in_the_order_of_their_tasks() -> None:
    first = on("A", "002 Done", KEYED, "a")
    second = replace(on("B", "a Done", KEYED, "b"), trigger_condition="a.status == Done")
    waits = replace(GRANT, trigger_task_id=("b",), trigger_condition="b.status == Done")
    besides = on("C", "001 Running", KEYED, "c")
    tasks = (Task("c"), Task("b"), Task("d"), Task("a"))
    after = with_listeners(LOOK, first, second, waits, END, besides, tasks=tasks)
    found = difference(PLAN, after)
    assert [(one["op"], one.get("listener_id")) for one in found] == [
        ("add", None),
        ("insert_before", "L2"),
        ("add", None),
        ("insert_before", "B"),
    ]
    assert after_patch(PLAN, after) == after


def test_what_is_new_besides_is_added() -> None:
    new = on("L9", "001 Running", KEYED, "003")
    assert difference(PLAN, with_listeners(*PLAN.listeners, new)) == (
        {
            "op": "add",
            "listeners": [
                {
                    "listener_id": "L9",
                    "trigger_task_id": "001",
                    "trigger_condition": "Running",
                    "listener_type": "tool",
                    "tool": "keyed",
                    "success_output": {"task_id": "003", "status": "Done"},
                }
            ],
        },
    )
    assert difference(PLAN, with_listeners(*PLAN.listeners, tasks=(Task("9"),))) == (
        {"op": "add", "tasks": [{"task_id": "9"}]},
    )


def test_the_order_of_what_is_there_is_no_difference() -> None:
    assert difference(PLAN, with_listeners(END, GRANT, LOOK)) == ()


def waiting_for(task_id: str, **more: Any) -> Listener:
    condition = f"{task_id}.status == Done"
    return replace(GRANT, trigger_task_id=(task_id,), trigger_condition=condition, **more)


NEW = on("A", "002 Done", KEYED, "a")
NO_CHAIN = {
    "another condition": (replace(GRANT, trigger_condition="Error"),),
    "another task that was there": (waiting_for("001"),),
    "another task than its trigger": (replace(waiting_for("a"), trigger_task_id=("002",)), NEW),
    "more than a status": (replace(GRANT, trigger_condition="002.context.n == 1"),),
    "two at once": (replace(GRANT, trigger_condition="002.status == Done and 002.context.n"),),
    "a mistake": (replace(GRANT, trigger_condition="002.status ="),),
    "no status": (replace(GRANT, trigger_condition="002.status == Dune"),),
    "several tasks": (replace(waiting_for("a"), trigger_task_id=("a", "002")), NEW),
    "a new task that nothing makes done": (waiting_for("a"),),
    "a new task that is done otherwise": (waiting_for("a"), on("A", "001 Running", KEYED, "a")),
    "a new task that is only skipped": (waiting_for("a"), on("A", "002 Done", KEYED, "a Skipped")),
    "a new task that nothing sets": (waiting_for("a"), on("A", "002 Done", KEYED, None)),
    "something that fires only once": (waiting_for("a", repeat=True), NEW),
}


@pytest.mark.parametrize("listeners", NO_CHAIN.values(), ids=NO_CHAIN.keys())
def test_any_other_trigger_has_no_operation(listeners: tuple[Listener, ...]) -> None:
    after = with_listeners(LOOK, *listeners, END, tasks=(Task("a"),))
    assert any("listeners.L2.trigger_" in one for one in reasons(after))


def test_only_one_listener_can_wait_for_what_is_put_before_it() -> None:
    gated = replace(END, trigger_task_id=("a",), trigger_condition="a.status == Done")
    before = with_listeners(LOOK, GRANT, replace(END, trigger_task_id=("002",)))
    after = with_listeners(LOOK, NEW, waiting_for("a"), gated, tasks=(Task("a"),))
    assert reasons(after, before) == [
        "listeners.L3.trigger_task_id: no operation changes this",
        "listeners.L3.trigger_condition: no operation changes this",
    ]


def test_every_reason_is_told_at_once() -> None:
    after = Plan(
        "other",
        "Other",
        "002",
        (Task("001", "renamed", "Do"), Task("002", "task 002")),
        (
            replace(LOOK, priority=3, approval=True),
            replace(
                GRANT,
                action=AgentAction("hr", "Look"),
                failure_output=Output("002", TaskStatus.DONE),
            ),
        ),
        inputs=Form((Field("x"),)),
        verify=(Check("look"),),
    )
    assert reasons(after) == [
        "plan_id: no operation changes this",
        "name: no operation changes this",
        "main_task_id: no operation changes this",
        "inputs: no operation changes this",
        "verify: no operation changes this",
        "tasks.001.name: no operation changes this",
        "tasks.001.prompt: no operation changes this",
        "tasks.003: no operation removes this",
        "listeners.L3: no operation removes this",
        "listeners.L1.approval: no operation changes this",
        "listeners.L1.priority: no operation changes this",
        "listeners.L2.listener_type: no operation changes this",
        "listeners.L2.tool: no operation changes this",
        "listeners.L2.args: no operation changes this",
        "listeners.L2.agent_id: no operation changes this",
        "listeners.L2.action_prompt: no operation changes this",
        "listeners.L2.failure_output: no operation changes this",
    ]


def test_an_output_cannot_be_taken_away_nor_a_snippet_written() -> None:
    after = with_listeners(
        LOOK, replace(GRANT, success_output=None), replace(END, action=CodeAction("result = 2"))
    )
    assert reasons(after) == [
        "listeners.L2.success_output: no operation changes this",
        "listeners.L3.code_snippet: no operation changes this",
    ]
