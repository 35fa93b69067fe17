from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from random_operations import NOWHERE, PatchMaker, sound_plan

from holdfast.core.repair import shapes
from holdfast.core.repair.operations import operations_from_json, patched, read_operations
from holdfast.core.repair.records import Add
from holdfast.core.storing import plan_digest, record_to_json
from holdfast.errors import PatchRejected
from holdfast.i18n.message import Message
from holdfast.language.strict import canonical_json
from holdfast.model.form import Option
from holdfast.model.plan import HumanAction, Plan
from holdfast.model.repair import MOST_NEW_LISTENERS, MOST_OPERATIONS
from holdfast.source import check
from holdfast.source.check import find_problems

SKIP = {"op": "skip", "listener_id": "L2"}
CODE = {"listener_id": "R1", "listener_type": "code", "code_snippet": "result = 1"}
FULL = {**CODE, "trigger_task_id": "001", "trigger_condition": "Running"}
INSERT = {
    "op": "insert_before",
    "listener_id": "L2",
    "task": {"task_id": "R1"},
    "listener": CODE,
}
ASK = {"op": "ask_first", "listener_id": "L2", "fields": [{"name": "a"}]}


def reasons(raw: Any) -> list[str]:
    with pytest.raises(PatchRejected) as refused:
        read_operations(raw)
    return list(refused.value.problems)


def of_one(operation: Any) -> list[str]:
    """What is wrong with a single operation, by its place in it."""
    return [one.removeprefix("operations[0]").removeprefix(".") for one in reasons([operation])]


def asking(**asked: Any) -> dict[str, Any]:
    """A human listener that is put before another."""
    human = {"listener_id": "R1", "listener_type": "human", **asked}
    return {**INSERT, "listener": human}


def with_field(**field: Any) -> dict[str, Any]:
    return asking(form=[{"name": "a", **field}])


WRONG: dict[str, tuple[Any, list[str]]] = {
    "no object": ("skip", [': must be an object, not "skip"']),
    "no kind": ({"listener_id": "L2"}, ["op: is required"]),
    "a kind that is no text": ({"op": ["skip"]}, ["op: must be text, not a list"]),
    "a misspelt kind": (
        {**SKIP, "op": "skipp"},
        ['op: there is no "skipp": did you mean skip?'],
    ),
    "an unknown kind": (
        {"op": "delete"},
        [
            'op: there is no "delete": use set_args, set_output, set_retry, use_tool, '
            "insert_before, add, ask_first, skip"
        ],
    ),
    "no listener": ({"op": "skip"}, ["listener_id: is required"]),
    "an id that is none": (
        {"op": "skip", "listener_id": "L 2"},
        ["listener_id: a listener_id has letters, digits, _ and - only, at most 100"],
    ),
    "a misspelt key": (
        {**SKIP, "listenr": 1},
        ["listenr: unknown key: did you mean listener_id?"],
    ),
    "an unknown key": (
        {**SKIP, "reason": "x"},
        ["reason: unknown key: known are op, listener_id"],
    ),
    "no change of arguments": (
        {"op": "set_args", "listener_id": "L2", "set": {}, "drop": []},
        [": needs one of set, drop"],
    ),
    "arguments of wrong types": (
        {"op": "set_args", "listener_id": "L2", "set": [1], "drop": "a"},
        ["set: must be an object, not a list", 'drop: must be a list, not "a"'],
    ),
    "names that are none": (
        {"op": "set_args", "listener_id": "L2", "set": {"a": 1}, "drop": ["a", "", 3]},
        ["drop[1]: is empty", "drop[2]: must be text, not 3", "drop[0]: a is set as well"],
    ),
    "an output without a context": (
        {"op": "set_output", "listener_id": "L2"},
        ["context: is required"],
    ),
    "no change of a retry": (
        {"op": "set_retry", "listener_id": "L2", "retry": {}},
        [": needs one of retry, timeout"],
    ),
    "a wrong retry": (
        {
            "op": "set_retry",
            "listener_id": "L2",
            "retry": {"attempts": 1.5, "initial": True, "atempts": 3},
            "timeout": "60",
        },
        [
            "retry.atempts: unknown key: did you mean attempts?",
            "retry.attempts: must be a whole number, not 1.5",
            "retry.initial: must be a number, not true",
            'timeout: must be a number, not "60"',
        ],
    ),
    "a tool without a name": (
        {"op": "use_tool", "listener_id": "L2", "tool": " "},
        ["tool: is empty", "args: is required"],
    ),
    "an insertion without its parts": (
        {"op": "insert_before", "listener_id": "L2"},
        ["task: is required", "listener: is required"],
    ),
    "an insertion of wrong parts": (
        {**INSERT, "task": {"name": 1}, "listener": []},
        [
            "task.task_id: is required",
            "task.name: must be text, not 1",
            "listener: must be an object, not a list",
        ],
    ),
    "an insertion with a trigger": (
        {**INSERT, "listener": FULL},
        [
            "listener.trigger_task_id: leave it out: it is that of the listener that comes after",
            "listener.trigger_condition: leave it out: it is that of the listener that comes after",
        ],
    ),
    "an insertion that leads elsewhere": (
        {**INSERT, "listener": {**CODE, "success_output": {"task_id": "003"}}},
        [
            "listener.success_output: leads to the new task, which becomes Done: leave task_id "
            "and status out"
        ],
    ),
    "an insertion with a wrong output": (
        {**INSERT, "listener": {**CODE, "success_output": 3}},
        ["listener.success_output: must be an object, not 3"],
    ),
    "a listener without a type": (
        {**INSERT, "listener": {"listener_id": "R1", "colour": "red"}},
        ["listener.listener_type: is required"],
    ),
    "a listener of an unknown type": (
        {**INSERT, "listener": {"listener_id": "R1", "listener_type": {}}},
        ["listener.listener_type: must be text, not an object"],
    ),
    "a listener with another type's key": (
        {**INSERT, "listener": {**CODE, "tool": "look"}},
        [
            "listener.tool: unknown key: known are listener_type, listener_id, trigger_task_id, "
            "trigger_condition, success_output, failure_output, retry, timeout, approval, repeat, "
            "priority, max_firings, code_snippet, functions"
        ],
    ),
    "an addition of nothing": ({"op": "add"}, [": needs one of tasks, listeners"]),
    "an addition of no lists": (
        {"op": "add", "tasks": {"task_id": "N"}, "listeners": [3]},
        ["tasks: must be a list, not an object", "listeners[0]: must be an object, not 3"],
    ),
    "a listener in which everything is wrong": (
        {
            "op": "add",
            "listeners": [
                {
                    "listener_id": 7,
                    "trigger_task_id": ["001", 2],
                    "listener_type": "tool",
                    "args": [],
                    "missing": {"escalate": {"after": "1"}},
                    "consent": {"escalate": 1, "type": "maybe"},
                    "fields": {},
                    "success_output": {"status": "Finished"},
                    "failure_output": {"task_id": "1", "status": "Don", "context": 1},
                    "retry": 3,
                    "timeout": [],
                    "approval": "yes",
                    "repeat": 0,
                    "priority": 1.0,
                    "max_firings": None,
                }
            ],
        },
        [
            "listeners[0].listener_id: must be text, not 7",
            "listeners[0].trigger_task_id[1]: must be text, not 2",
            "listeners[0].trigger_condition: is required",
            "listeners[0].success_output.task_id: is required",
            'listeners[0].success_output.status: there is no "Finished": use NotStarted, Running, '
            "Done, Error, Retrying, Pending, Skipped, Cancelled",
            'listeners[0].failure_output.status: there is no "Don": did you mean Done?',
            "listeners[0].failure_output.context: must be an object, not 1",
            "listeners[0].retry: must be an object, not 3",
            "listeners[0].timeout: must be a number, not a list",
            'listeners[0].approval: must be true or false, not "yes"',
            "listeners[0].repeat: must be true or false, not 0",
            "listeners[0].priority: must be a whole number, not 1.0",
            "listeners[0].max_firings: must be a whole number, not null",
            "listeners[0].tool: is required",
            "listeners[0].args: must be an object, not a list",
            "listeners[0].fields: must be a list, not an object",
            'listeners[0].missing.escalate.after: must be a number, not "1"',
            "listeners[0].missing.escalate.role: is required",
            'listeners[0].consent.type: there is no "maybe": use TOOL_APPROVAL, MISSING_INFO, '
            "USER_CONFIRMATION, USER_CHOICE, USER_INPUT, CUSTOM",
            "listeners[0].consent.escalate: must be an object, not 1",
        ],
    ),
    "options that are none": (
        asking(options=[{"option_id": "a", "action": "SKIP", "default": 1}, {"metadata": []}, "x"]),
        [
            "listener.options[0].default: must be true or false, not 1",
            "listener.options[1].option_id: is required",
            "listener.options[1].action: is required",
            "listener.options[1].metadata: must be an object, not a list",
            'listener.options[2]: must be an object, not "x"',
        ],
    ),
    "reminders that are none": (
        asking(reminders=["soon"], timeout_seconds=True),
        [
            "listener.timeout_seconds: must be a number, not true",
            'listener.reminders[0]: must be a number, not "soon"',
        ],
    ),
    "a field without a name": (
        asking(form=[{"type": "text"}, {"name": " "}]),
        ["listener.form[0].name: is required", "listener.form[1].name: is empty"],
    ),
    "a field twice": (
        asking(form=[{"name": "a"}, {"name": "b"}, {"name": "a"}]),
        ["listener.form[2].name: this field has the name 'a' again"],
    ),
    "a field of wrong shape": (
        with_field(
            type="txt",
            json="list",
            nullable=None,
            options=[{"value": "x"}, {"value": "", "label": "", "requires_input": 1, "price": 1}],
            validation={"min": "1", "values": None, "type": "list", "colour": "red"},
        ),
        [
            'listener.form[0].type: there is no "txt": did you mean text?',
            "listener.form[0].options[0].label: is required",
            "listener.form[0].options[1].value: is empty",
            "listener.form[0].options[1].requires_input: must be true or false, not 1",
            "listener.form[0].validation.colour: unknown key: known are values, pattern, min, "
            "max, min_length, max_length, min_items, max_items, not_before, not_after, type",
            "listener.form[0].validation.values: must be a list of the allowed values",
            'listener.form[0].validation.min: must be a number, not "1"',
            'listener.form[0].validation.type: there is no "list": use enum',
            'listener.form[0].json: there is no "list": use array, object',
            "listener.form[0].nullable: must be true or false, not null",
        ],
    ),
    "a rule that is no object": (
        with_field(validation=[]),
        ["listener.form[0].validation: must be an object, not a list"],
    ),
    "an option that is no object": (
        with_field(type="radio", options=["x"]),
        ['listener.form[0].options[0]: must be an object, not "x"'],
    ),
    "a form that makes no sense": (
        asking(
            form=[
                {"name": "a", "options": [{"value": "x", "label": "X"}]},
                {
                    "name": "b",
                    "type": "number",
                    "validation": {"min": 5, "max": 1},
                    "visible_if": "values.c == 1",
                },
            ]
        ),
        [
            "listener.form[0].options: a field of type text has none: use radio, select or "
            "multiselect",
            "listener.form[1].validation.min: is beyond max, which is 1: nothing would fit",
            "listener.form[1].visible_if: values.c is no field above this one",
        ],
    ),
    "a form that is too large": (
        asking(form=[{"name": f"a{number}"} for number in range(201)]),
        ["listener.form: a form has at most 200 fields; this has 201"],
    ),
    "a question about nothing": (
        {"op": "ask_first", "listener_id": "L2", "fields": []},
        [": needs one of fields, choice"],
    ),
    "a question about two things": (
        {**ASK, "choice": {"title": "Go on?"}, "title": "Which?"},
        [
            "fields: does not go with a choice: leave it out",
            "title: does not go with a choice: leave it out",
        ],
    ),
    "answers that may be missing": (
        {**ASK, "fields": [{"name": "a", "required": False}, {"name": "b c"}]},
        [
            "fields[0]: is always asked: leave required and visible_if out",
            "fields[1].name: the name of an argument has letters, digits, _ and - only",
        ],
    ),
    "answers that may not be asked for": (
        {**ASK, "fields": [{"name": "a"}, {"name": "b", "visible_if": "values.a == 1"}]},
        ["fields[1]: is always asked: leave required and visible_if out"],
    ),
    "fields that are none": (
        {**ASK, "fields": ["a"], "role": "", "title": 1, "task_id": "a.b"},
        [
            'fields[0]: must be an object, not "a"',
            "task_id: a task_id has letters, digits, _ and - only, at most 100",
            "role: is empty",
            "title: must be text, not 1",
        ],
    ),
    "a choice without a title": (
        {"op": "ask_first", "listener_id": "L2", "choice": {"message": 1}},
        ["choice.title: is required", "choice.message: must be text, not 1"],
    ),
    "a choice that is none": (
        {"op": "ask_first", "listener_id": "L2", "choice": "Go on?"},
        ['choice: must be an object, not "Go on?"'],
    ),
}


@pytest.mark.parametrize(("raw", "expected"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_with_its_place(raw: Any, expected: list[str]) -> None:
    assert of_one(raw) == expected


def test_a_listener_with_everything_is_taken() -> None:
    field = {
        "name": "size",
        "type": "select",
        "label": "尺码",
        "options": [{"value": "s", "label": "S", "requires_input": True, "price": [1]}],
        "default": {"value": "s", "text": "small"},
        "validation": {"type": "enum", "values": ["s"], "max_length": 9},
        "visible_if": None,
    }
    details = {"name": "details", "type": "textarea", "json": True, "nullable": True}
    option = {"option_id": "a", "action": "CUSTOM", "default": True, "metadata": {"handler": "h"}}
    human = {
        "listener_id": "H1",
        "trigger_task_id": ["001", "002"],
        "trigger_condition": "Done",
        "listener_type": "human",
        "form": [field, details, {"name": "rows", "type": "textarea", "json": "array"}],
        "title": "Which?",
        "type": "CUSTOM",
        "custom_type": "sizes",
        "options": [option],
        "timeout_seconds": None,
        "reminders": [5, 7.5],
        "escalate": {"after": 9, "role": "hr"},
        "failure_output": None,
        "retry": {"attempts": 1, "longest_wait": 0},
    }
    (operation,) = read_operations([{"op": "add", "listeners": [human]}])
    assert isinstance(operation, Add)
    (made,) = operation.listeners
    assert isinstance(made.action, HumanAction)
    size, details_field, rows = made.action.form.fields
    assert size.options == (Option("s", "S", True, {"price": [1]}),)
    assert (details_field.json, rows.json) == (True, "array")
    assert made.action.asking.escalate_to == "hr"
    assert made.action.asking.options[0].label == "a"


def test_everything_that_is_wrong_with_all_operations_is_told_at_once() -> None:
    assert reasons([SKIP, {"op": "skip"}, 3, {**SKIP, "x": 1}]) == [
        "operations[1].listener_id: is required",
        "operations[2]: must be an object, not 3",
        "operations[3].x: unknown key: known are op, listener_id",
    ]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([], "operations: a patch has at least one operation"),
        ({"op": "skip"}, "operations: must be a list, not an object"),
        ([SKIP] * 13, "operations: a patch has at most 12 operations; this has 13"),
        (
            [{"op": "add", "listeners": [FULL] * 7}, INSERT, ASK],
            "operations: a patch adds at most 8 listeners; this adds 9",
        ),
        (
            [{**SKIP, "x": float("nan")}],
            "operations[0].x: NaN and Infinity are not JSON: send null or text",
        ),
        (
            [SKIP, {**SKIP, "listener_id": "\ud800"}],
            "operations[1].listener_id: text with a lone surrogate: it is not valid Unicode",
        ),
        ([{**SKIP, "x": b"1"}], None),
        ([{**SKIP, "x": "x" * 10_000_000}], None),
        ([{**SKIP, "x": json.loads("[" * 100 + "]" * 100)}], None),
        (None, "operations: must be a list, not null"),
    ],
    ids=["none", "no list", "13", "9 new", "NaN", "surrogate", "bytes", "10 MB", "deep", "null"],
)
def test_what_is_no_list_of_operations_is_refused(raw: Any, expected: str | None) -> None:
    (told,) = reasons(raw)
    assert expected in (told, None)
    assert len(told) < 300


def test_as_much_as_the_limits_allow_is_taken() -> None:
    listeners = [{**FULL, "listener_id": f"N{number}"} for number in range(MOST_NEW_LISTENERS)]
    most = [{"op": "add", "listeners": listeners}, *[SKIP] * (MOST_OPERATIONS - 1)]
    assert len(read_operations(most)) == MOST_OPERATIONS


def test_of_very_many_mistakes_the_first_are_told() -> None:
    told = reasons([{"op": "add", "tasks": [1] * 5_000}])
    assert len(told) == 100
    assert told[-1] == "4,901 more mistakes from here on; mend those above first"


def test_a_key_as_long_as_the_patch_is_told_in_part() -> None:
    (told,) = reasons([{**SKIP, "x" * 100_000: 1}])
    assert len(told) == 1_000
    assert told.endswith("…")


def test_what_is_told_can_be_said_in_another_language() -> None:
    assert all(isinstance(one, Message) for one in reasons([{"op": "skip"}, 3]))


def test_an_id_is_what_it_is_in_a_plan_file() -> None:
    assert shapes._ID.pattern == check._ID.pattern


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of everything in a value."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [here, *(path for key, one in inner for path in paths(one, (*here, key)))]


KEYS = st.sampled_from(
    ["op", "listener_id", "type", "form", "fields", "escalate", "options", "validation", "values"]
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["tool", "human", "add", "insert_before", "Done", "{001.context.x}", "R1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def garbled(draw: Callable[..., Any]) -> tuple[Plan, Any]:
    """A patch that was sensible before something in it was replaced, renamed or lost."""
    dice = Dice(draw(st.binary(min_size=20, max_size=120)))
    plan = sound_plan(dice)
    raw: Any = deepcopy(PatchMaker(dice, plan, skips=True).operations(4))
    for _ in range(draw(st.integers(1, 3))):
        change = draw(st.sampled_from(["replace", "lose", "rename", "join"]))
        *way, last = draw(st.sampled_from(paths(raw)[1:]))
        owner = raw
        for key in way:
            owner = owner[key]
        if change == "lose" and way:
            del owner[last]
        elif change == "rename" and isinstance(owner, dict):
            owner[draw(KEYS)] = owner.pop(last)
        elif change == "join" and isinstance(owner[last], dict):
            owner[last] |= draw(st.dictionaries(KEYS, ANYTHING, max_size=3))
        else:
            owner[last] = draw(ANYTHING)
    return plan, raw


def judge(plan: Plan, raw: Any) -> str:
    """What is read makes a plan, or is refused; and such a plan can be judged and stored."""
    try:
        made = patched(plan, read_operations(raw))
    except PatchRejected as refused:
        return "".join(refused.problems)
    list(find_problems(made, NOWHERE))
    json.loads(canonical_json(record_to_json(made)))
    return plan_digest(made)


@settings(max_examples=400, deadline=None)
@given(garbled())
def test_a_garbled_patch_is_read_or_refused(given: tuple[Plan, Any]) -> None:
    assert judge(*given)


@settings(max_examples=200, deadline=None)
@given(ANYTHING | st.lists(ANYTHING, max_size=3))
def test_whatever_it_is_it_is_read_or_refused(raw: Any) -> None:
    assert judge(sound_plan(Dice(b"")), raw)


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=60, max_size=300))
def test_what_the_journal_has_is_read_as_it_was_first(script: bytes) -> None:
    dice = Dice(script)
    raw = PatchMaker(dice, sound_plan(dice), skips=True).operations(4)
    stored = json.loads(canonical_json(raw))
    assert operations_from_json(stored) == read_operations(raw)
