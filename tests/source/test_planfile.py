from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast.demo
from holdfast.core.storing import record_to_json
from holdfast.errors import PlanRejected, Problem
from holdfast.model.form import FieldType
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    AgentAction,
    Check,
    CodeAction,
    HumanAction,
    Output,
    PlanAction,
    TaskStatus,
    ToolAction,
    WhilePaused,
)
from holdfast.model.retry import RetryPolicy
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan, parse_plan, read_plan

DEMO_PLANS = sorted((Path(holdfast.demo.__file__).parent / "plans").glob("*.yaml"))

MINIMAL = """\
plan_id: small
main_task_id: "001"
tasks:
  - {task_id: "001"}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""

LISTENER = "    code_snippet: \"result = {'success': True}\"\n"


def problems(text: str, catalog: Catalog | None = None) -> list[str]:
    """Every problem as `line:column: message`."""
    with pytest.raises(PlanRejected) as caught:
        load_plan(text, "plan.yaml", catalog or Catalog())
    assert all(one.file == "plan.yaml" for one in caught.value.problems)
    return [str(one).removeprefix("plan.yaml:") for one in caught.value.problems]


def with_listener(*lines: str, instead_of: str = LISTENER) -> str:
    """The minimal plan, with other keys for its listener."""
    return MINIMAL.replace(instead_of, "".join(f"    {line}\n" for line in lines))


def listener_of(*lines: str) -> Any:
    (listener,) = read_plan(with_listener(*lines)).listeners
    return listener


class TestAPlanThatIsRight:
    def test_needs_little(self) -> None:
        plan = read_plan(MINIMAL)
        assert (plan.plan_id, plan.name, plan.main_task_id) == ("small", "small", "001")
        assert plan.while_paused is WhilePaused.GO_ON
        (listener,) = plan.listeners
        assert listener.trigger_task_id == ("001",)
        assert listener.action == CodeAction("result = {'success': True}")
        assert listener.success_output == Output("001", TaskStatus.DONE)
        assert listener.retry == RetryPolicy()

    def test_may_say_everything(self) -> None:
        plan = read_plan("""\
plan_id: whole
name: 整个计划
description: all keys
main_task_id: "001"
while_paused: hold
inputs: {name: {type: text, label: 姓名, default: 张三}}
tasks: [{task_id: "001", name: Goal, prompt: reach it}, {task_id: "002"}, {task_id: "003"}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: tool
    tool: order
    args: {who: "{001.context.name}", count: 2, rush: true, note: null, tags: [a, 1.5]}
    fields: {model: {type: radio, options: [{value: a, label: A}]}}
    success_output: {task_id: "002", status: Done, context: {order: "{{result.id}}"}}
    failure_output: {task_id: "003", status: Skipped}
    retry: {attempts: 5, initial: 0, factor: 3, maximum: 10, jitter: 0}
    timeout: 30
    approval: true
    priority: 5
    max_firings: 7
  - listener_id: L2
    trigger_task_id: "002,003"
    trigger_condition: "002.status == Done or 003.status == Skipped"
    listener_type: human
    title: Sure?
    message: About {001.context.name}
    form: [reason]
    timeout_seconds: 3600
    role: approver
    retry: 1
    repeat: true
    success_output: {task_id: "001", status: Done}
  - {listener_id: L3, trigger_task_id: ["002"], trigger_condition: Done, listener_type: plan,
     plan_id: other, values: {name: x}}
  - {listener_id: L4, trigger_task_id: "002", trigger_condition: Done, listener_type: agent,
     agent_id: hr, action_prompt: "Greet {001.context.name}"}
  - {listener_id: L5, trigger_task_id: "002", trigger_condition: Done, listener_type: code,
     code_snippet: "result = lookup(1)", functions: [lookup]}
verify:
  - {tool: query_order, args: {id: "{002.context.order}"}, expect: result.exists == true}
""")
        tool, human, sub_plan, agent, code = plan.listeners
        assert plan.while_paused is WhilePaused.HOLD
        assert plan.inputs.fields[0].default == "张三"
        assert isinstance(tool.action, ToolAction)
        assert tool.action.args == {
            "who": "{001.context.name}",
            "count": 2,
            "rush": True,
            "note": None,
            "tags": ["a", 1.5],
        }
        assert tool.action.fields.fields[0].type is FieldType.RADIO
        assert tool.retry == RetryPolicy(5, 0, 3, 10, 0)
        assert (tool.timeout, tool.approval, tool.priority) == (30.0, True, 5)
        assert tool.max_firings == 7
        assert tool.failure_output == Output("003", TaskStatus.SKIPPED)
        assert human.trigger_task_id == ("002", "003")
        assert isinstance(human.action, HumanAction)
        assert human.action.asking == Asking(
            "Sure?", "About {001.context.name}", timeout_seconds=3600.0, role="approver"
        )
        assert [field.name for field in human.action.form.fields] == ["reason"]
        assert (human.retry.attempts, human.repeat) == (1, True)
        assert sub_plan.action == PlanAction("other", {"name": "x"})
        assert sub_plan.trigger_task_id == ("002",)
        assert agent.action == AgentAction("hr", "Greet {001.context.name}")
        assert code.action == CodeAction("result = lookup(1)", ("lookup",))
        assert plan.verify == (
            Check("query_order", {"id": "{002.context.order}"}, "result.exists == true"),
        )

    def test_keeps_ids_as_they_are_written(self) -> None:
        plan = read_plan(MINIMAL.replace('"001"', "010"))
        assert plan.main_task_id == plan.tasks[0].task_id == "010"
        assert plan.listeners[0].trigger_task_id == ("010",)
        assert plan.listeners[0].success_output == Output("010", TaskStatus.DONE)

    @pytest.mark.parametrize("plan", DEMO_PLANS, ids=lambda path: path.stem)
    def test_is_what_every_demo_plan_is(self, plan: Path) -> None:
        assert read_plan(plan.read_text(encoding="utf-8"), plan.name).plan_id == plan.stem

    def test_may_be_json_whose_forms_are_lists_of_named_fields(self) -> None:
        for path in DEMO_PLANS:
            plan = read_plan(path.read_text(encoding="utf-8"))
            assert read_plan(json.dumps(record_to_json(plan))) == plan


TWELVE = """\
plan_id: broken
main_task_id: "001"
colour: blue
tasks:
  - {task_id: "001"}
  - {task_id: "002"}
  - {task_id: "002"}
  - {task_id: "003"}
  - {task_id: 004}
  - {task_id: 005}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Runing"
    listener_type: tool
    tool: apply_computr
    args: {employee: "{009.context.name}"}
    success_output: {task_id: "002", status: Finished}
  - listener_id: L002
    trigger_task_id: "002,008"
    trigger_condition: Done
    listener_type: code
    code_snippet: |
      x = 1
      result = {'success': True
    success_output: {task_id: "001", status: Done, context: {a: "{{reslt.x}}"}}
  - listener_id: L003
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: agent
    agent_id: nobody
    approval: maybe
    succes_output: {task_id: "004", status: Done}
  - {listener_id: L004, trigger_task_id: 004, trigger_condition: Done, listener_type: code,
     code_snippet: "result = 1", repeat: true, success_output: {task_id: 005, status: Done}}
  - {listener_id: L005, trigger_task_id: 005, trigger_condition: Done, listener_type: code,
     code_snippet: "result = 1", repeat: true, success_output: {task_id: 004, status: Done}}
  - listener_id: L006
    trigger_task_id: 005
    listener_type: tool
    tool: apply_computer
    args: {who: x}
    fields: {computer_model: {type: radoi}}
    retry: 0
    code_snippet: x
"""

OFFICE = Catalog(
    tools={"apply_computer": {"properties": {"employee": {}, "computer_model": {}}}},
    agents=frozenset({"hr"}),
)


def test_a_plan_with_many_mistakes_reports_them_all_with_line_and_column() -> None:
    found = problems(TWELVE, OFFICE)
    expected = [
        ("3:1:", "unknown key 'colour'; known are plan_id, "),
        ("7:15:", "the task_id 002 is taken by tasks[1]"),
        ("8:15:", "nothing ever reaches task 003"),
        ("14:39:", "bad condition: unknown word Runing; did you mean Running?"),
        ("16:11:", "there is no tool 'apply_computr'; did you mean 'apply_computer'?"),
        ("17:22:", "there is no task '009'"),
        ("18:46:", "status cannot be 'Finished'; write one of NotStarted, "),
        ("20:22:", "there is no task '008'"),
        ("25:16:", "bad snippet: '{' was never closed"),
        ("26:66:", "bad template: {{reslt.x}}"),
        ("31:15:", "there is no agent 'nobody'"),
        ("32:15:", "approval must be true or false, not 'maybe'"),
        ("33:5:", "unknown key 'succes_output'; did you mean success_output?"),
        ("35:42:", "the cycle L004 → L005 → L004 can never end"),
        ("38:5:", "listeners[5] lacks the key trigger_condition"),
        ("42:12:", "apply_computer takes no argument 'who'; it takes"),
        ("43:31:", 'computer_model.type: there is no field type "radoi": did you mean radio?'),
        ("44:12:", "attempts must be between 1 and 100, not 0"),
        ("45:5:", "code_snippet belongs to listeners of type code; this one is of type tool"),
    ]
    assert len(found) == len(expected)
    for line, (place, message) in zip(found, expected, strict=True):
        assert line.startswith(f"{place} {message}")


class TestMistakesOfShape:
    def test_broken_yaml_is_the_only_problem(self) -> None:
        assert problems("plan_id: [") == [
            "1:11: not valid YAML: expected the node content, but found '<stream end>'"
        ]

    @pytest.mark.parametrize("text", ["just text", "- a\n- list", "null"])
    def test_a_plan_is_a_mapping(self, text: str) -> None:
        (only,) = problems(text)
        assert only == "1:1: a plan is a mapping; it begins with plan_id: …"

    def test_every_missing_key_is_named(self) -> None:
        found = problems("name: x")
        assert found == [
            f"1:1: the plan lacks the key {key}"
            for key in ("plan_id", "main_task_id", "tasks", "listeners")
        ]

    def test_lists_must_be_lists_of_mappings(self) -> None:
        found = problems('plan_id: p\nmain_task_id: "1"\ntasks: {a: b}\nlisteners: [x, [y]]\n')
        assert "3:8: tasks must be a list" in found
        assert "4:13: each of listeners must be a mapping" in found
        assert "4:16: each of listeners must be a mapping" in found

    def test_what_is_no_listener_does_not_shift_the_places_of_the_next(self) -> None:
        text = MINIMAL.replace("listeners:\n", "listeners:\n  - nonsense\n")
        text = text.replace("status: Done", "status: Done, context: {a: '{009.status}'}")
        assert problems(text) == [
            "6:5: each of listeners must be a mapping",
            "12:65: there is no task '009'",
        ]

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("code_snippet: [a]", "10:19: code_snippet must be text"),
            ("code_snippet:", "10:5: code_snippet must be text"),
            ("timeout: soon", "11:14: timeout must be a number, not 'soon'"),
            ("timeout: true", "11:14: timeout must be a number, not 'true'"),
            ("timeout: -1", "11:14: timeout must be above 0 and at most a year, in seconds"),
            ("timeout: .inf", "11:14: .inf is not a number that JSON knows; quote it if text is"),
            ("timeout:", "11:5: timeout has no value; write one or remove the key"),
            ("repeat: yes", "11:13: repeat must be true or false, not 'yes'"),
            ("approval: [true]", "11:15: approval must be true or false, not a list"),
            ("priority: 1.5", "11:15: priority must be a whole number, not '1.5'"),
            ("priority: {a: 1}", "11:15: priority must be a whole number, not a mapping"),
            ("retry: often", "11:12: retry must be a whole number, not 'often'"),
            ("retry: {atempts: 2}", "11:13: unknown key 'atempts'; did you mean attempts?"),
            ("retry: {jitter: 2}", "11:21: jitter must be between 0 and 1, not 2"),
            ("functions: [a, {b: c}]", "11:20: functions[1] must be text"),
            ("failure_output: 002", "11:21: failure_output must be a mapping with the keys task_"),
            ("failure_output: {status: Done}", "11:21: failure_output lacks the key task_id"),
            ('failure_output: {task_id: "001"}', "11:21: failure_output lacks the key status"),
            ("listener_tpe: code", "11:5: unknown key 'listener_tpe'; did you mean listener_type?"),
            (
                "tool: order",
                "11:5: tool belongs to listeners of type tool; this one is of type code",
            ),
        ],
    )
    def test_of_a_listener_have_a_place_and_a_remedy(self, line: str, problem: str) -> None:
        lines = [LISTENER.strip(), line] if not line.startswith("code_snippet") else [line]
        (only,) = problems(with_listener(*lines))
        assert only.startswith(problem)

    @pytest.mark.parametrize(
        ("triggers", "problem"),
        [
            ('"001,,001"', "7:22: trigger_task_id has an empty name between its commas"),
            ("{a: b}", "7:22: trigger_task_id must be text"),
            ("[]", "7:22: a listener needs a task that triggers it"),
            ("[[a]]", "7:23: trigger_task_id[0] must be text"),
            ("", "7:5: trigger_task_id must be text"),
        ],
    )
    def test_of_triggers(self, triggers: str, problem: str) -> None:
        text = MINIMAL.replace('trigger_task_id: "001"', f"trigger_task_id: {triggers}")
        assert problems(text) == [problem]

    def test_an_unknown_type_welcomes_the_keys_of_all_types(self) -> None:
        text = with_listener("listener_type: robot", "agent_id: x", "tool: y").replace(
            "    listener_type: code\n", ""
        )
        assert problems(text) == [
            "9:20: listener_type cannot be 'robot'; "
            "write one of tool, code, human, plan, agent, wait_until"
        ]

    @pytest.mark.parametrize("word", ["Tool", "tol"])
    def test_a_misspelt_type_is_read_as_the_one_that_was_meant(self, word: str) -> None:
        text = with_listener(f"listener_type: {word}", "tool: order", "agent_id: x").replace(
            "    listener_type: code\n", ""
        )
        assert problems(text, Catalog(tools={})) == [
            f"9:20: listener_type cannot be '{word}'; did you mean tool?",
            "10:11: there is no tool 'order'",
            "11:5: agent_id belongs to listeners of type agent; this one is of type tool",
        ]

    def test_a_listener_without_a_type_lacks_only_that(self) -> None:
        text = MINIMAL.replace("    listener_type: code\n", "")
        assert problems(text) == ["6:5: listeners[0] lacks the key listener_type"]

    def test_an_unquoted_template_is_recognised(self) -> None:
        text = with_listener(LISTENER.strip()).replace(
            "status: Done", "status: Done, context: {a: {001.context.name}, b: {{result.x}}}"
        )
        assert problems(text) == [
            '11:65: quote the template: "{001.context.name}"',
            '11:89: a key must be text; if this is a template, quote it: "{{result.x}}"',
        ]

    def test_a_context_must_be_a_mapping(self) -> None:
        text = MINIMAL.replace("status: Done", "status: Done, context: [a]")
        assert problems(text) == ["11:61: context must be a mapping of names to values"]

    def test_long_texts_are_shown_in_part(self) -> None:
        (only,) = problems(MINIMAL + "while_paused: " + "x" * 60 + "\n")
        assert f"'{'x' * 39}…'" in only

    def test_of_a_form_stand_where_the_form_has_them(self) -> None:
        text = MINIMAL + "inputs:\n  a: {type: number, labl: x}\n  b: {type: colour}\n"
        assert [line.split(": ")[0] for line in problems(text)] == ["13:21", "14:7"]

    def test_of_a_form_as_a_list(self) -> None:
        text = MINIMAL + "inputs: [{name: a}, {name: a}, {label: x}, {name: [b]}, {name: c, x: 1}]"
        assert problems(text) == [
            "12:21: this field has the name 'a' again",
            "12:32: this field needs a name",
            "12:44: this field needs a name",
            "12:67: c.x: unknown key: known are "
            "type, label, description, options, required, default, visible_if, validation, "
            "integer, json, nullable",
        ]

    def test_a_form_that_is_no_form(self) -> None:
        (only,) = problems(MINIMAL + "inputs: 5\n")
        assert only.startswith("12:9: form: ")


class TestPlacesInsideTexts:
    def test_a_condition_in_quotes_counts_from_its_first_letter(self) -> None:
        text = MINIMAL.replace("condition: Running", "condition: '001.status = Running'")
        (only,) = problems(text)
        assert only.startswith("8:36: bad condition")

    def test_a_text_with_escapes_is_placed_at_its_beginning(self) -> None:
        text = MINIMAL.replace("condition: Running", 'condition: "001.st\\x61tus = Running"')
        (only,) = problems(text)
        assert only.startswith("8:24: bad condition")

    def test_a_folded_text_is_placed_at_its_beginning(self) -> None:
        text = MINIMAL.replace("condition: Running", "condition: >\n      001.status\n      = Done")
        (only,) = problems(text)
        assert only.startswith("8:24: bad condition")

    def test_a_place_beyond_the_text_is_its_beginning(self) -> None:
        catalog = Catalog(snippet_checker=lambda text: [("odd", 99, 1), ("end", 2, 1)])
        assert problems(MINIMAL, catalog) == ["10:19: bad snippet: odd", "10:19: bad snippet: end"]

    def test_a_snippet_that_ends_the_file(self) -> None:
        text = MINIMAL.replace(LISTENER, "") + "    code_snippet: |\n      x = 1\n      y = ("
        assert problems(text) == ["13:11: bad snippet: '(' was never closed"]

    def test_windows_line_ends_count_once(self) -> None:
        text = with_listener("code_snippet: |", "  x = 1", "  y = (").replace("\n", "\r\n")
        assert problems(text) == ["12:11: bad snippet: '(' was never closed"]


def test_a_draft_never_raises_and_says_what_was_readable() -> None:
    parsed = parse_plan("plan_id: p\nname: [x]\n")
    assert parsed.plan is not None
    assert parsed.plan.plan_id == "p"
    assert ("name",) in parsed.shape.broken


def problems_if_any(text: str) -> tuple[Problem, ...]:
    try:
        read_plan(text)
    except PlanRejected as rejected:
        return rejected.problems
    return ()


def accepted_or_rejected(text: str) -> None:
    assert all(one.line >= 1 and one.column >= 1 for one in problems_if_any(text))


ASKING = with_listener(
    "title: Which?",
    "default: later",
    "reminders: [60, 120]",
    "escalate: {after: 90, role: boss}",
    "options: [{id: later, action: skip}, {id: own, action: custom, handler: h, dangerous: true}]",
).replace("listener_type: code", "listener_type: human")


@settings(max_examples=150, deadline=None)
@given(st.text(), st.integers())
def test_a_mangled_plan_is_rejected_with_places_and_never_worse(noise: str, seed: int) -> None:
    dice = random.Random(seed)
    text = dice.choice([MINIMAL, TWELVE, ASKING, DEMO_PLANS[0].read_text(encoding="utf-8")])
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(text))
        end = start + dice.choice([0, 1, 1, 5, 40])
        piece = dice.choice(
            [noise, "", ": ", "[", "}", "- ", '"', "~", "&a ", "*a", "\n", "{a: b}"]
        )
        text = text[:start] + piece + text[end:]
    accepted_or_rejected(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@cache
def demo_plan_as_json(path: Path) -> str:
    return json.dumps(record_to_json(read_plan(path.read_text(encoding="utf-8"))))


ASKING_AS_JSON = json.dumps(record_to_json(read_plan(ASKING)))


@settings(max_examples=100, deadline=None)
@given(json_values, st.integers())
def test_a_plan_with_any_value_anywhere_is_accepted_or_rejected(value: Any, seed: int) -> None:
    dice = random.Random(seed)
    text = dice.choice([demo_plan_as_json(dice.choice(DEMO_PLANS)), ASKING_AS_JSON])
    plan = json.loads(text)
    spot: Any = plan
    while True:
        key = dice.choice(list(spot) if isinstance(spot, dict) else range(len(spot)))
        if not isinstance(spot[key], dict | list) or not spot[key] or dice.random() < 0.2:
            break
        spot = spot[key]
    spot[key] = value
    accepted_or_rejected(json.dumps(plan))
