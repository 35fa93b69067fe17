"""What a rehearsal takes for results: a schema's, else those seen before, else what is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import validator_for
from small_plans import CALL, CODE, compiled, on, started

from holdfast.core.repair.rehearsal import rehearse, rehearse_plan
from holdfast.core.repair.samples import likeness, placeholder, sample
from holdfast.model.approval import ToolFacts
from holdfast.model.form import Field, FieldType, Form, Option, Validation
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    AgentAction,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    TaskStatus,
    ToolAction,
)
from holdfast.model.repair import Rehearsal
from holdfast.model.values import Json

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {}}}},
        "note": {"type": "string"},
    },
    "required": ["id"],
}


def passed_on(context: dict[str, Any], returns: Any = None, **more: Any) -> Rehearsal:
    """A tool is called, and what its result leaves in the context is handed to the next."""
    facts = {"plain": ToolFacts({}, "1", returns=returns), "keyed": ToolFacts({}, "1")}
    args = {name: f"{{002.context.{name}}}" for name in context}
    machine = started(
        on("L1", "001 Running", CALL, "002", context=context),
        on("L2", "002 Done", ToolAction("keyed", args), "001"),
    )
    return rehearse(machine.state, facts.get, now=machine.now, **more)


def args_of(told: Rehearsal) -> dict[str, Json]:
    (call,) = told.calls
    return dict(call.args)


def test_a_schema_says_what_is_there() -> None:
    context = {"id": "{{result.id}}", "all": "{{result}}", "n": "{{result.rows.1.n}}"}
    assert args_of(passed_on(context, ORDER)) == {
        "id": "‹L1.id›",
        "all": {"id": "‹L1.id›", "rows": [{}, {"n": "‹L1.rows.1.n›"}]},
        "n": "‹L1.rows.1.n›",
    }


def test_what_a_schema_does_not_know_of_is_not_there() -> None:
    told = passed_on({"id": "{{result.order_id}}"}, ORDER)
    assert (told.calls, told.status, told.reached) == ((), "error", False)


def test_what_a_schema_leaves_open_may_be_there() -> None:
    context = {"id": "{{result.order.id}}"}
    for returns in ({"type": "object"}, {**ORDER, "additionalProperties": True}):
        assert args_of(passed_on(context, returns)) == {"id": "‹L1.order.id›"}


def test_a_result_seen_before_gives_its_fields_and_not_its_texts() -> None:
    seen = {"plain": {"id": "E-17", "count": 3, "tags": ["new", None], "more": {"by": "Will"}}}
    context = {"all": "{{result}}", "by": "{{result.more.by}}"}
    assert args_of(passed_on(context, seen=seen)) == {
        "all": {
            "id": "‹L1.id›",
            "count": 3,
            "tags": ["‹L1.tags.0›", None],
            "more": {"by": "‹L1.more.by›"},
        },
        "by": "‹L1.more.by›",
    }
    assert passed_on({"id": "{{result.order_id}}"}, seen=seen).status == "error"


def test_a_result_that_reported_a_failure_says_nothing() -> None:
    seen = {"plain": {"success": False, "error": "no"}}
    assert args_of(passed_on({"id": "{{result.id}}"}, seen=seen)) == {"id": "‹L1.id›"}


def test_a_schema_comes_before_what_was_seen() -> None:
    told = passed_on({"all": "{{result}}"}, ORDER, seen={"plain": {"x": 1}})
    assert args_of(told) == {"all": {"id": "‹L1.id›"}}


def test_otherwise_there_is_what_the_plan_reads() -> None:
    context = {"id": "{{result.order.id}}", "words": "No. {{result.order.number}}"}
    assert args_of(passed_on(context)) == {"id": "‹L1.order.id›", "words": "No. ‹L1.order.number›"}
    assert args_of(passed_on({"all": "{{result}}"})) == {"all": "‹L1›"}


def test_what_is_read_later_of_a_whole_result_is_there_too() -> None:
    facts = ToolFacts({}, "1")
    machine = started(
        on(
            "L1",
            "001 Running",
            CALL,
            "002",
            context={"order": "{{ result.order }}", "n": 1, "plain": "text"},
        ),
        on(
            "L2",
            "002 Done",
            HumanAction(asking=Asking("Send {002.context.order.name}?")),
            "003",
            context={"again": "{002.context.order}"},
        ),
        on("L3", "003 Done", ToolAction("keyed", {"id": "{002.context.order.id}"}), "001"),
    )
    told = rehearse(machine.state, {"plain": facts, "keyed": facts}.get, now=machine.now)
    assert told.questions == ("Send ‹L1.order.name›?",)
    assert args_of(told) == {"id": "‹L1.order.id›"}


def test_a_snippet_leaves_what_is_read_of_its_task() -> None:
    machine = started(
        on("L1", "001 Running", CODE, "002", context={"x": "{{result.x}}"}),
        on(
            "L2",
            "002 Done",
            ToolAction("keyed", {"a": "{002.context.x}", "b": "{002.context.y}"}),
            "001",
        ),
    )
    told = rehearse(machine.state, {"keyed": ToolFacts({}, "1")}.get, now=machine.now)
    assert args_of(told) == {"a": "‹L1.x›", "b": "‹L1.y›"}


def test_a_snippet_whose_task_nobody_reads_leaves_what_its_listener_says() -> None:
    machine = started(
        on("L1", "001 Running", CODE, "002", context={"x": "{{result.x}}"}),
        on("L2", "002 Done", ToolAction("keyed", {"a": "{002.context.x}"}), "001"),
    )
    told = rehearse(machine.state, {"keyed": ToolFacts({}, "1")}.get, now=machine.now)
    assert args_of(told) == {"a": "‹L1.x›"}


def test_of_a_snippet_without_an_output_nobody_knows_what_it_sets() -> None:
    machine = started(on("L1", "001 Running", CODE, None), on("L2", "002 Done", CALL, "001"))
    told = rehearse(machine.state, {}.get, now=machine.now)
    assert told.open_conditions == ("L2: Done (002 is NotStarted)",)


def test_a_snippet_may_not_be_read_where_its_plan_reads_nothing_that_is_there() -> None:
    machine = started(on("L1", "001 Running", CODE, "001", context={"x": "{404.context.x}"}))
    told = rehearse(machine.state, {}.get, now=machine.now)
    assert (told.status, told.reached) == ("error", False)


def test_templates_that_cannot_be_read_fail_their_listeners_alone() -> None:
    broken = Output("003", TaskStatus.DONE, {"x": "{{result"})
    snippet = Listener(
        "L1", ("001",), "Running", CodeAction("result = {}"), Output("002", TaskStatus.DONE)
    )
    agent = Listener("L2", ("002",), "Done", AgentAction("hr", "hello"), broken)
    plan = compiled(snippet, agent)
    told = rehearse_plan(plan, {}, {}.get, now=0.0)
    assert [one.tool for one in told.calls] == ["agent:hr"]
    assert (told.status, told.reached) == ("error", False)


def test_a_choice_without_options_and_a_value_among_some() -> None:
    form = Form(
        (
            Field("way", FieldType.SELECT),
            Field("size", validation=Validation(values=("S", "M"))),
            Field("some", FieldType.MULTISELECT, options=(Option("own", "Own", True),)),
        )
    )
    plan = compiled(
        on(
            "L1",
            "001 Running",
            HumanAction(form, Asking("?")),
            "002",
            context={"all": "{{result}}"},
        ),
        on("L2", "002 Done", ToolAction("plain", {"all": "{002.context.all}"}), "001"),
    )
    told = rehearse_plan(plan, {}, {"plain": ToolFacts({}, "1")}.get, now=0.0)
    assert args_of(told)["all"] == {"way": "‹L1.way›", "size": "S", "some": ["‹L1.some›"]}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({}, "‹L1›"),
        ({"type": "string", "format": "date"}, "‹L1›"),
        ({"const": "fixed"}, "fixed"),
        ({"type": "string", "enum": ["open", "closed"]}, "open"),
        ({"type": "integer"}, 0),
        ({"type": "integer", "minimum": 2.5}, 3),
        ({"type": "integer", "minimum": -2, "maximum": 5}, 0),
        ({"type": "number", "maximum": -1.5}, -1.5),
        ({"type": "number", "exclusiveMinimum": 0}, 1),
        ({"type": "number", "exclusiveMaximum": 0}, -1),
        ({"type": "number", "minimum": True}, 0),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, None),
        ({"type": ["integer", "string"]}, 0),
        ({"type": ["null"]}, None),
        ({"type": "array"}, []),
        ({"items": {"type": "integer"}, "minItems": 2}, [0, 0]),
        ({"type": "array", "minItems": 10_000}, [f"‹L1.{one}›" for one in range(32)]),
        ({"required": ["a", 1]}, {"a": "‹L1.a›"}),
        ({"properties": {"a": {}}}, {}),
        ({"properties": {"a": True}, "required": ["a"]}, {"a": "‹L1.a›"}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 0),
        ({"anyOf": "nonsense"}, "‹L1›"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}}, 0),
        ({"$ref": "elsewhere.json#/x"}, "‹L1›"),
        ({"$ref": "#/nowhere/at/all"}, "‹L1›"),
        ({"$ref": "#"}, "‹L1›"),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "null"}}, "required": ["b"]},
                ]
            },
            {"a": 0, "b": None},
        ),
    ],
)
def test_the_smallest_json_that_fits(schema: dict[str, Any], made: Json) -> None:
    assert sample(schema, "L1", ()) == made


def test_what_may_be_null_is_not_where_it_is_read() -> None:
    names = {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}
    schema = {"properties": names, "required": ["a", "b"]}
    assert sample(schema, "L1", ()) == {"a": None, "b": None}
    assert sample(schema, "L1", [("a",)]) == {"a": "‹L1.a›", "b": None}
    assert sample(schema, "L1", [("b", "b")]) == {
        "a": None,
        "b": {"a": None, "b": {"a": None, "b": None}},
    }
    assert sample({"type": ["null"]}, "L1", [()]) is None


def test_a_schema_that_goes_on_for_ever_is_broken_off() -> None:
    """None of these has a value at all, or only a huge one."""
    chain = {"required": ["next"], "properties": {"next": {"$ref": "#"}}}
    made, depth = sample(chain, "L1", ()), 0
    while isinstance(made, dict):
        made, depth = made["next"], depth + 1
    assert (depth, made) == (16, "‹L1" + ".next" * 16 + "›")
    names = [f"n{one}" for one in range(20)]
    tree = {"required": names, "properties": {name: {"$ref": "#"} for name in names}}
    assert str(sample(tree, "L1", ())).count("›") < 25_000


def test_a_list_has_the_items_that_are_read() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    assert sample(schema, "L1", [("2",), ("x",), ("123456",)]) == [0, 0, 0]


def test_of_a_large_result_there_is_what_is_read_and_some_more() -> None:
    large = {f"f{one:04}": one for one in range(5_000)} | {"rows": ["text"] * 5_000}
    made = likeness(large, "L1", [("rows", "0")])
    assert (made["rows"][0], len(made["rows"]), len(made)) == ("‹L1.rows.0›", 32, 65)
    deep: Json = 1
    for _ in range(3):
        deep = [deep] * 32
    assert str(likeness(deep, "L1", [])).count("1, ") < 1_100


def test_a_placeholder_is_short_and_has_nothing_hidden() -> None:
    assert placeholder("L1", "a\u202eb") == "‹L1.a⟨202E⟩b›"
    assert len(placeholder("L1", "x" * 1_000)) == 122


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    leaves = st.one_of(
        st.just({"type": "string"}),
        st.just({"type": "boolean"}),
        st.just({"type": ["null", "string"]}),
        st.builds(
            lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
            st.integers(-50, 50),
            st.integers(0, 20),
        ),
        st.builds(lambda low: {"type": "number", "exclusiveMinimum": low}, st.integers(-9, 9)),
        st.builds(lambda words: {"enum": words}, st.lists(st.text(), min_size=1, max_size=3)),
    )
    names = st.sampled_from(["a", "b", "c"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(_object, st.dictionaries(names, inner, max_size=3), st.lists(names)),
            st.builds(
                lambda one, least: {"type": "array", "items": one, "minItems": least},
                inner,
                st.integers(0, 3),
            ),
            st.builds(lambda one: {"anyOf": [{"type": "null"}, one]}, inner),
        ),
        max_leaves=8,
    )


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    known = [name for name in dict.fromkeys(required) if name in properties]
    return {
        "type": "object",
        "properties": properties,
        "required": known,
        "additionalProperties": False,
    }


@given(schemas(), st.lists(st.lists(st.sampled_from("abcd01"), max_size=3).map(tuple), max_size=4))
def test_a_sample_fits_its_schema_whatever_is_read_of_it(
    schema: dict[str, Any], paths: list[tuple[str, ...]]
) -> None:
    validator_for(schema).validate(sample(schema, "L1", paths))
