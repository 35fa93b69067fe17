from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from random_operations import DEMO_PLANS, NOWHERE, PatchMaker, sound_plan
from small_plans import CODE, CONFIRM, compiled, on

from holdfast.core.repair.operations import (
    added,
    frozen_problems,
    operations_from_json,
    patched,
    read_operations,
    retriggered,
    touched,
)
from holdfast.core.storing import plan_digest
from holdfast.errors import CallerError, PatchRejected
from holdfast.model.form import Field, FieldType, Form, Option
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.source.check import find_problems

LOOK = on("L1", "001 Running", ToolAction("look", {"who": "{001.context.name}"}), "002")
GRANT = on(
    "L2",
    "002 Done",
    ToolAction("grant", {"id": 1, "model": "X1"}, consent=Asking("Grant?")),
    "003",
    context={"access": "{{result.access}}"},
    timeout=30.0,
    approval=True,
    priority=7,
)
TELL = on("L3", "003 Done", PlanAction("tell", {"whom": "Will Zhang"}), "004")
END = on("L4", "004 Done", CODE, "001")
PLAN = compiled(LOOK, GRANT, TELL, END).plan

FIELDS = [
    {"name": "model", "type": "radio", "options": [{"value": "X1", "label": "X1"}]},
    {"name": "note"},
]
CREATE = {
    "op": "insert_before",
    "listener_id": "L2",
    "task": {"task_id": "R1", "name": "Profile created"},
    "listener": {"listener_id": "R1", "listener_type": "tool", "tool": "create", "args": {"a": 1}},
}
ASK = {"op": "ask_first", "listener_id": "L2", "fields": FIELDS, "role": "hr", "title": "Which?"}


def after(*operations: dict[str, Any], plan: Plan = PLAN) -> Plan:
    return patched(plan, read_operations(operations))


def listener(plan: Plan, listener_id: str = "L2") -> Listener:
    return next(one for one in plan.listeners if one.listener_id == listener_id)


def ids(plan: Plan) -> list[str]:
    return [one.listener_id for one in plan.listeners]


def reasons(*operations: dict[str, Any], plan: Plan = PLAN) -> list[str]:
    with pytest.raises(PatchRejected) as refused:
        after(*operations, plan=plan)
    assert isinstance(refused.value, CallerError)
    assert str(refused.value) == "\n".join(refused.value.problems)
    return list(refused.value.problems)


def test_arguments_are_set_and_dropped_and_the_others_stay() -> None:
    made = after(
        {
            "op": "set_args",
            "listener_id": "L2",
            "set": {"computer_model": "{001.context.model}", "id": 2},
            "drop": ["model"],
        }
    )
    action = ToolAction(
        "grant", {"id": 2, "computer_model": "{001.context.model}"}, consent=Asking("Grant?")
    )
    assert made == replace(PLAN, listeners=(LOOK, replace(GRANT, action=action), TELL, END))


def test_what_a_plan_is_given_is_set_alike() -> None:
    made = after({"op": "set_args", "listener_id": "L3", "set": {"how": "mail"}})
    assert listener(made, "L3").action == PlanAction("tell", {"whom": "Will Zhang", "how": "mail"})


def test_an_output_gets_another_context() -> None:
    made = after({"op": "set_output", "listener_id": "L2", "context": {"n": "{{result.n}}"}})
    output = Output("003", TaskStatus.DONE, {"n": "{{result.n}}"})
    assert listener(made) == replace(GRANT, success_output=output)


def test_of_a_retry_only_what_is_given_changes() -> None:
    made = after({"op": "set_retry", "listener_id": "L2", "retry": {"attempts": 5, "initial": 2}})
    assert listener(made) == replace(GRANT, retry=replace(GRANT.retry, attempts=5, initial=2))


@pytest.mark.parametrize("timeout", [60, 0.5, None])
def test_a_time_limit_is_set_or_taken_away(timeout: float | None) -> None:
    made = after({"op": "set_retry", "listener_id": "L2", "timeout": timeout})
    assert listener(made) == replace(GRANT, timeout=timeout)


def test_another_tool_is_called_and_asked_about_as_before() -> None:
    made = after({"op": "use_tool", "listener_id": "L2", "tool": "grant_v2", "args": {"x": 1}})
    action = ToolAction("grant_v2", {"x": 1}, consent=Asking("Grant?"))
    assert listener(made) == replace(GRANT, action=action)


def test_what_is_put_before_a_listener_takes_over_its_trigger() -> None:
    made = after(CREATE)
    create = on("R1", "002 Done", ToolAction("create", {"a": 1}), "R1")
    waits = replace(GRANT, trigger_task_id=("R1",), trigger_condition="R1.status == Done")
    assert made.tasks == (*PLAN.tasks, Task("R1", "Profile created"))
    assert made.listeners == (LOOK, create, waits, TELL, END)


def test_what_is_put_before_may_say_what_its_task_gets() -> None:
    said = {**CREATE["listener"], "success_output": {"context": {"id": "{{result.id}}"}}}
    made = after({**CREATE, "listener": said})
    assert listener(made, "R1").success_output == Output(
        "R1", TaskStatus.DONE, {"id": "{{result.id}}"}
    )


def test_before_what_fires_again_stands_what_fires_again() -> None:
    again = replace(PLAN, listeners=(LOOK, replace(GRANT, repeat=True), TELL, END))
    assert listener(after(CREATE, plan=again), "R1").repeat
    assert not listener(after(CREATE), "R1").repeat
    wanted = {**CREATE, "listener": {**CREATE["listener"], "repeat": True}}
    assert listener(after(wanted), "R1").repeat


def test_the_second_that_is_put_before_a_listener_comes_after_the_first() -> None:
    second = {
        **CREATE,
        "task": {"task_id": "R2"},
        "listener": {**CREATE["listener"], "listener_id": "R2"},
    }
    made = after(CREATE, second)
    assert ids(made) == ["L1", "R1", "R2", "L2", "L3", "L4"]
    assert listener(made, "R2").trigger_condition == "R1.status == Done"
    assert listener(made).trigger_task_id == ("R2",)


def test_something_may_be_put_before_what_the_patch_brings() -> None:
    before_that = {
        "op": "ask_first",
        "listener_id": "R1",
        "choice": {"title": "Create it?", "message": "In the personnel system."},
    }
    made = after(CREATE, before_that)
    assert ids(made) == ["L1", "ask_R1", "R1", "L2", "L3", "L4"]
    assert listener(made, "ask_R1").trigger_task_id == ("002",)


def test_what_is_added_stands_at_the_end() -> None:
    new = on("N1", "001 Running", CONFIRM, "N1 Skipped", repeat=True)
    raw = {
        "listener_id": "N1",
        "trigger_task_id": "001",
        "trigger_condition": "Running",
        "listener_type": "human",
        "title": "Really?",
        "success_output": {"task_id": "N1", "status": "Skipped"},
        "repeat": True,
    }
    made = after({"op": "add", "tasks": [{"task_id": "N1", "prompt": "Ask"}], "listeners": [raw]})
    assert made.tasks == (*PLAN.tasks, Task("N1", prompt="Ask"))
    assert made.listeners == (*PLAN.listeners, new)


def test_what_a_person_is_asked_first_becomes_arguments() -> None:
    made = after({**ASK, "task_id": "A1"})
    form = Form((Field("model", FieldType.RADIO, options=(Option("X1", "X1"),)), Field("note")))
    asks = Listener(
        "A1",
        ("002",),
        "Done",
        HumanAction(form, Asking("Which?", role="hr")),
        Output("A1", TaskStatus.DONE, {"model": "{{result.model}}", "note": "{{result.note}}"}),
        priority=7,
    )
    args = {"id": 1, "model": "{A1.context.model}", "note": "{A1.context.note}"}
    waits = replace(
        GRANT,
        trigger_task_id=("A1",),
        trigger_condition="A1.status == Done",
        action=replace(GRANT.action, args=args),
    )
    assert made.tasks[-1] == Task("A1", "Which?")
    assert made.listeners == (LOOK, asks, waits, TELL, END)


def test_a_person_may_be_asked_whether_to_go_on_before_any_listener() -> None:
    choice = {"title": "Go on for {001.context.name}?", "message": "It costs."}
    made = after({"op": "ask_first", "listener_id": "L4", "choice": choice})
    asks = listener(made, "ask_L4")
    assert asks.action == HumanAction(Form(), Asking(choice["title"], "It costs."))
    assert asks.success_output == Output("ask_L4", TaskStatus.DONE)
    assert listener(made, "L4").action == END.action
    assert made.tasks[-1] == Task("ask_L4"), "nobody fills in the name of a task"


def test_the_question_is_asked_as_often_as_the_listener_fires() -> None:
    often = replace(GRANT, repeat=True, max_firings=9)
    asks = listener(after(ASK, plan=replace(PLAN, listeners=(LOOK, often, TELL, END))), "ask_L2")
    assert (asks.repeat, asks.max_firings, asks.priority) == (True, 9, 7)
    assert (asks.approval, asks.timeout, asks.failure_output) == (False, None, None)


def test_a_long_id_gives_a_question_an_id_that_is_not_too_long() -> None:
    long = "L" * 100
    plan = replace(PLAN, listeners=(LOOK, replace(GRANT, listener_id=long), TELL, END))
    made = after({**ASK, "listener_id": long}, plan=plan)
    assert ids(made)[1] == "ask_" + "L" * 96


def test_a_listener_that_is_skipped_does_nothing_and_nobody_need_consent() -> None:
    made = after({"op": "skip", "listener_id": "L2"})
    skipped = replace(
        GRANT,
        action=CodeAction("result = {}"),
        success_output=Output("003", TaskStatus.SKIPPED),
        approval=False,
    )
    assert listener(made) == skipped
    without = replace(PLAN, listeners=(LOOK, replace(GRANT, success_output=None), TELL, END))
    assert listener(after({"op": "skip", "listener_id": "L2"}, plan=without)).success_output is None


def test_everything_in_the_way_is_told_at_once() -> None:
    plan = replace(PLAN, listeners=(replace(LOOK, success_output=None), GRANT, TELL, END))
    new = {**CREATE["listener"], "listener_id": "L3"}
    assert reasons(
        {"op": "skip", "listener_id": "L22"},
        {"op": "skip", "listener_id": "elsewhere"},
        {"op": "set_args", "listener_id": "L2", "drop": ["nodel", "model"]},
        {"op": "set_args", "listener_id": "L4", "set": {"a": 1}},
        {"op": "set_output", "listener_id": "L1", "context": {}},
        {"op": "use_tool", "listener_id": "L3", "tool": "look", "args": {}},
        {**CREATE, "task": {"task_id": "003"}, "listener": new},
        {**ASK, "task_id": "L1"},
        {**ASK, "listener_id": "L4", "task_id": "001"},
        {
            "op": "add",
            "tasks": [{"task_id": "N"}, {"task_id": "N"}],
            "listeners": [{**new, "trigger_task_id": "N", "trigger_condition": "Done"}],
        },
        plan=plan,
    ) == [
        "operations[0].listener_id: there is no listener 'L22'; did you mean 'L2'?",
        "operations[1].listener_id: there is no listener 'elsewhere'",
        "operations[2].drop[0]: L2 has no argument nodel",
        "operations[3]: L4 takes no arguments: it is of type code",
        "operations[4]: L1 has no success_output that takes it",
        "operations[5]: L3 calls no tool: it is of type plan",
        "operations[6].task.task_id: the task_id 003 is taken",
        "operations[6].listener.listener_id: the listener_id L3 is taken",
        "operations[7].task_id: the listener_id L1 is taken",
        "operations[8].task_id: the task_id 001 is taken",
        "operations[8]: L4 takes no arguments: it is of type code",
        "operations[9].tasks[1].task_id: the task_id N is taken",
        "operations[9].listeners[0].listener_id: the listener_id L3 is taken",
    ]


def test_the_listeners_of_a_plan_itself_are_not_in_it() -> None:
    """What asks for the inputs and what verifies belong to the engine."""
    plan = next(one for one in DEMO_PLANS if one.verify)
    assert reasons({"op": "skip", "listener_id": "inputs"}, plan=plan)


def test_a_patch_says_which_listeners_it_concerns() -> None:
    operations = read_operations(
        [
            CREATE,
            {"op": "skip", "listener_id": "R1"},
            {**ASK, "listener_id": "L3"},
            {"op": "ask_first", "listener_id": "R1", "choice": {"title": "?"}},
            {"op": "set_output", "listener_id": "L4", "context": {}},
            {
                "op": "add",
                "listeners": [
                    {
                        "listener_id": "N1",
                        "trigger_task_id": [],
                        "trigger_condition": "Done",
                        "listener_type": "code",
                        "code_snippet": "",
                    }
                ],
            },
        ]
    )
    assert added(operations) == ("R1", "ask_L3", "ask_R1", "N1")
    assert touched(operations) == {"L2", "L3", "L4"}
    assert retriggered(operations) == {"L2", "L3"}


def test_the_past_is_frozen() -> None:
    operations = read_operations(
        [
            CREATE,
            {"op": "skip", "listener_id": "L1"},
            {"op": "add", "tasks": [{"task_id": "N"}]},
            {**ASK, "listener_id": "L4"},
        ]
    )
    placed = dict(enumerate(operations))
    assert frozen_problems(placed, {"L1", "L4"}) == (
        "operations[1].listener_id: L1 has run, and the past of a run stays as it is",
        "operations[3].listener_id: L4 has run, and the past of a run stays as it is",
    )
    assert frozen_problems(placed, {"L3"}) == ()


scripts = st.binary(min_size=60, max_size=300)


@settings(max_examples=200, deadline=None)
@given(scripts)
def test_a_sound_plan_stays_sound(script: bytes) -> None:
    dice = Dice(script)
    plan = sound_plan(dice)
    made = patched(plan, operations_from_json(PatchMaker(dice, plan).operations()))
    assert [one.message for one in find_problems(made, NOWHERE)] == []


@settings(max_examples=100, deadline=None)
@given(scripts)
def test_a_patch_may_be_carried_out_in_parts(script: bytes) -> None:
    """Replay does it at once, and what drew it did it one by one."""
    dice = Dice(script)
    plan = sound_plan(dice)
    maker = PatchMaker(dice, plan, skips=True)
    operations = operations_from_json(maker.operations())
    made = patched(plan, operations)
    assert plan_digest(made) == plan_digest(maker.plan)
    assert {*ids(made)} == {*ids(plan), *added(operations)}
    changed = {one.listener_id for one in plan.listeners if listener(made, one.id) != one}
    assert changed <= touched(operations) <= {*ids(plan)}
    moved = {
        one.listener_id
        for one in plan.listeners
        if listener(made, one.id).trigger_task_id != one.trigger_task_id
    }
    assert moved == retriggered(operations)
