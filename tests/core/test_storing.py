from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_askings import ASKINGS

from holdfast.core.storing import plan_digest, record_from_json, record_to_json
from holdfast.language.strict import canonical_json
from holdfast.model.form import Field, FieldType, Form, Option, Validation
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    Action,
    AgentAction,
    Check,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
    WhilePaused,
)
from holdfast.model.retry import RetryPolicy

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
seconds = st.floats(0, 100) | st.integers(0, 100)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, json_values, max_size=2)
options = st.builds(
    Option, texts, texts, st.booleans(), st.dictionaries(st.just("price"), texts, max_size=1)
)
validations = st.builds(
    Validation,
    values=st.none() | st.lists(texts, max_size=2).map(tuple),
    pattern=st.none() | texts,
    minimum=st.none() | seconds,
    max_items=st.none() | st.integers(0, 9),
    not_after=st.none() | texts,
)
fields = st.builds(
    Field,
    name=texts,
    type=st.sampled_from(FieldType),
    label=texts,
    description=texts,
    options=st.lists(options, max_size=2).map(tuple),
    required=st.booleans(),
    default=json_values,
    visible_if=st.none() | st.just("a == 1"),
    validation=validations,
    integer=st.booleans(),
    json=st.booleans(),
)
forms = st.builds(Form, st.lists(fields, max_size=2).map(tuple))
actions = st.one_of(
    st.builds(ToolAction, texts, objects, forms, ASKINGS, ASKINGS),
    st.builds(CodeAction, texts, st.lists(texts, max_size=2).map(tuple)),
    st.builds(HumanAction, forms, ASKINGS),
    st.builds(PlanAction, texts, objects),
    st.builds(AgentAction, texts, texts),
)
outputs = st.none() | st.builds(Output, texts, st.sampled_from(TaskStatus), objects)
listeners = st.builds(
    Listener,
    listener_id=texts,
    trigger_task_id=st.lists(texts, max_size=3).map(tuple),
    trigger_condition=texts,
    action=actions,
    success_output=outputs,
    failure_output=outputs,
    retry=st.builds(RetryPolicy, st.integers(1, 9), seconds, seconds, seconds, seconds),
    timeout=st.none() | seconds,
    approval=st.booleans(),
    repeat=st.booleans(),
    priority=st.integers(-5, 200),
    max_firings=st.integers(1, 2_000),
)
plans = st.builds(
    Plan,
    plan_id=texts,
    name=texts,
    main_task_id=texts,
    tasks=st.lists(st.builds(Task, texts, texts, texts), max_size=2).map(tuple),
    listeners=st.lists(listeners, max_size=2).map(tuple),
    description=texts,
    inputs=forms,
    verify=st.lists(st.builds(Check, texts, objects, st.none() | texts), max_size=2).map(tuple),
    while_paused=st.sampled_from(WhilePaused),
)

SMALL = Plan(
    "p",
    "P",
    "001",
    (Task("001"),),
    (
        Listener(
            "L1",
            ("001",),
            "Running",
            CodeAction("result = 1"),
            success_output=Output("001", TaskStatus.DONE),
        ),
    ),
)


FORM = Form(
    (
        Field(
            "model",
            FieldType.RADIO,
            label="电脑型号",
            options=(Option("a", "A", extras={"price": "¥1"}), Option("custom", "B", True)),
            default="a",
            validation=Validation(values=("a", "custom")),
        ),
        Field("count", FieldType.NUMBER, integer=True, validation=Validation(minimum=1)),
    )
)


def listener(action: Action, **more: Any) -> Listener:
    return Listener(f"L-{action.kind}", ("001", "002"), "Done", action, **more)


LARGE = Plan(
    "large",
    "Large",
    "001",
    (Task("001", "goal", "reach it"), Task("002")),
    (
        listener(
            ToolAction("order", {"who": "{001.context.name}"}, FORM),
            success_output=Output("002", TaskStatus.DONE, {"id": "{{result.id}}"}),
            failure_output=Output("002", TaskStatus.SKIPPED),
            retry=RetryPolicy(5, 0.0, 3.0, 10.0, 0.0),
            timeout=30.0,
            approval=True,
            repeat=True,
            priority=5,
        ),
        listener(CodeAction("result = f()", ("f",))),
        listener(
            HumanAction(FORM, Asking("Sure?", "Really?", timeout_seconds=60.0, role="approver"))
        ),
        listener(HumanAction()),
        listener(PlanAction("other", {"x": 1})),
        listener(AgentAction("hr", "Greet")),
    ),
    description="everything",
    inputs=FORM,
    verify=(Check("query_order", {"id": 1}, "result.ok"), Check("check_order")),
    while_paused=WhilePaused.HOLD,
)


@settings(max_examples=100, deadline=None)
@given(plans)
@example(SMALL)
@example(LARGE)
def test_a_plan_survives_storage(plan: Plan) -> None:
    stored = canonical_json(record_to_json(plan))
    assert record_from_json(Plan, json.loads(stored)) == plan


@settings(max_examples=50, deadline=None)
@given(plans)
def test_a_digest_is_the_same_after_storage(plan: Plan) -> None:
    stored = record_from_json(Plan, json.loads(json.dumps(record_to_json(plan))))
    assert plan_digest(stored) == plan_digest(plan)


def test_a_plan_with_everything_survives_storage() -> None:
    assert record_from_json(Plan, json.loads(canonical_json(record_to_json(LARGE)))) == LARGE


def test_what_has_its_usual_value_is_left_out() -> None:
    assert record_to_json(SMALL) == {
        "plan_id": "p",
        "name": "P",
        "main_task_id": "001",
        "tasks": [{"task_id": "001"}],
        "listeners": [
            {
                "listener_id": "L1",
                "trigger_task_id": "001",
                "trigger_condition": "Running",
                "listener_type": "code",
                "code_snippet": "result = 1",
                "success_output": {"task_id": "001", "status": "Done"},
            }
        ],
    }


def with_listener(**changes: Any) -> Plan:
    return replace(SMALL, listeners=(replace(SMALL.listeners[0], **changes),))


def test_the_digest_changes_with_whatever_matters() -> None:
    form = Form((Field("a"), Field("b")))
    variants = [
        SMALL,
        replace(SMALL, name="Q"),
        replace(SMALL, inputs=form),
        replace(SMALL, inputs=Form(form.fields[::-1])),
        with_listener(priority=1),
        with_listener(max_firings=1),
        with_listener(retry=RetryPolicy(longest_wait=1)),
        with_listener(retry=RetryPolicy(attempts=4)),
        with_listener(trigger_task_id=("001", "002")),
        with_listener(trigger_task_id=()),
    ]
    assert len({plan_digest(plan) for plan in variants}) == len(variants)


def test_equal_plans_have_one_digest_however_their_numbers_are_written() -> None:
    whole = with_listener(
        timeout=30,
        retry=RetryPolicy(initial=1),
        action=HumanAction(asking=Asking(timeout_seconds=5)),
    )
    split = with_listener(
        timeout=30.0,
        retry=RetryPolicy(initial=1.0),
        action=HumanAction(asking=Asking(timeout_seconds=5.0)),
    )
    assert whole == split
    assert plan_digest(whole) == plan_digest(split)


def test_the_digest_of_a_plan_never_changes() -> None:
    """Runs are pinned to digests: another number here means that old runs lose their plan."""
    assert plan_digest(SMALL) == (
        "ff9353f59d6c2bb859211afa4661ce73e7cc1c16c5efc3933466e53de5a295e4"
    )
