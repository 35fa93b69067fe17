"""Sketches: what a model may hand in where no plan fits, and the plan that becomes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from asked_cases import said
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.storing import plan_digest
from holdfast.errors import TemplateError
from holdfast.forms.validation import validate
from holdfast.language.templates import compile_template, render
from holdfast.model.approval import ApprovalMode, ApprovalRule, ToolFacts
from holdfast.model.form import Field as FormField
from holdfast.model.form import FieldType, Form, Option
from holdfast.model.message import ToolOffer
from holdfast.model.plan import CodeAction, Plan, Task, ToolAction
from holdfast.repair.replies import Unusable, complaint_of
from holdfast.repair.sketch import (
    REFERENCE,
    SKETCH_PLAN,
    Sketch,
    read_sketch,
    read_sketch_reply,
    reference,
)
from holdfast.repair.sketch_prompt import sketch_offer, sketch_prompt
from holdfast.repair.sketched_plan import plan_of
from holdfast.source.check import Catalog, find_problems
from holdfast.testing.forbidden_patches import INJECTIONS, SECRET, dangerous_sketches

TEXT = {"type": "string", "minLength": 1}
YES_NO = {"type": "boolean"}
MONEY = {"type": "number", "maximum": 50_000}
ADDRESS = {"type": "string", "pattern": r"^[^@\s]+@[^@\s]+$"}


def takes(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


PROFILE = takes(["name", "email"], id=TEXT, name={**TEXT, "title": "姓名"}, email=ADDRESS)
TOOLS: Mapping[str, ToolFacts] = {
    "create_employee_profile": ToolFacts(PROFILE, idempotent=True),
    "grant_access": ToolFacts(takes(["employee_id"], employee_id=TEXT, area=TEXT)),
    "query_access": ToolFacts(takes(["employee_id"], employee_id=TEXT), read_only=True),
    "send_email": ToolFacts(
        takes(["to", "subject", "content"], to=ADDRESS, subject=TEXT, content=TEXT, urgent=YES_NO)
    ),
    "pay_expense": ToolFacts(
        takes(["employee", "amount"], employee=TEXT, amount=MONEY, purpose=TEXT),
        approval=ApprovalRule(ApprovalMode.REQUIRE_APPROVAL),
    ),
    "log_in": ToolFacts(takes(["password"], password={"type": "string", "format": "password"})),
    "shut_down": ToolFacts(takes([]), approval=ApprovalRule(ApprovalMode.DISABLED)),
    "note": ToolFacts({"type": "object"}),
    "set_manager": ToolFacts(
        takes(["who", "list of"], **{"who": {"type": ["string", "null"]}, "list of": {}})
    ),
}
CATALOG = Catalog(
    {name: one.parameters for name, one in TOOLS.items()},
    frozenset(name for name, one in TOOLS.items() if one.read_only),
    frozenset(),
    frozenset(),
)
BADGE: dict[str, Any] = {
    "goal": "A badge for Will Zhang",
    "steps": [
        {
            "id": "s1",
            "tool": "create_employee_profile",
            "args": {"name": "Will Zhang"},
            "after": [],
        },
        {"id": "s2", "tool": "grant_access", "args": {"employee_id": "{s1.employee_id}"}},
        {
            "id": "s3",
            "tool": "send_email",
            "args": {
                "to": "{s1.email}",
                "subject": "Badge {s2.badge}",
                "content": 'Braces {of yours} are text: {"a": 1}, and {{s2.badge}} is a place.',
            },
            "after": ["s2"],
        },
    ],
    "check": [
        {
            "tool": "query_access",
            "args": {"employee_id": "{s1.employee_id}"},
            "expect": "result.exists == true",
        }
    ],
}


def read(raw: Any) -> Sketch:
    sketch = read_sketch(raw, TOOLS)
    assert isinstance(sketch, Sketch), sketch
    return sketch


def planned(raw: Any) -> Plan:
    return plan_of(read(raw), TOOLS, "draft_badge")


def problems(raw: Any) -> tuple[str, ...]:
    refused = read_sketch(raw, TOOLS)
    assert isinstance(refused, Unusable), refused
    return refused.findings


def one_step(tool: str = "note", **rest: Any) -> dict[str, Any]:
    return {"goal": "x", "steps": [{"id": "s1", "tool": tool, **rest}]}


def args_of(plan: Plan, listener_id: str) -> Any:
    [found] = [one.action for one in plan.listeners if one.listener_id == listener_id]
    assert isinstance(found, ToolAction)
    return found.args


# The plan of a sketch


def test_a_sketch_becomes_a_plan() -> None:
    plan = planned(BADGE)
    assert plan.name == "A badge for Will Zhang"
    assert plan.main_task_id == "001"
    assert plan.tasks == (
        Task("001", "A badge for Will Zhang", "A badge for Will Zhang"),
        Task("s1", "create_employee_profile"),
        Task("s2", "grant_access"),
        Task("s3", "send_email"),
    )
    fired = [
        (one.listener_id, one.trigger_task_id, one.trigger_condition) for one in plan.listeners
    ]
    assert fired == [
        ("s1", ("001",), "001.status == Running"),
        ("s2", ("s1",), "s1.status == Done"),
        ("s3", ("s2", "s1"), "s2.status == Done && s1.status == Done"),
        ("finish", ("s3",), "s3.status == Done"),
    ]
    assert isinstance(plan.listeners[-1].action, CodeAction)
    outputs = [one.success_output for one in plan.listeners if one.success_output]
    assert [(one.task_id, dict(one.context)) for one in outputs] == [
        ("s1", {"employee_id": "{{result.employee_id}}", "email": "{{result.email}}"}),
        ("s2", {"badge": "{{result.badge}}"}),
        ("s3", {}),
        ("001", {}),
    ]
    assert args_of(plan, "s2") == {"employee_id": "{s1.context.employee_id}"}
    assert args_of(plan, "s3") == {
        "to": "{s1.context.email}",
        "subject": "Badge {s2.context.badge}",
        "content": 'Braces \\{of yours} are text: \\{"a": 1}, and {s2.context.badge} is a place.',
    }
    [check] = plan.verify
    assert (check.tool, check.args, check.expect) == (
        "query_access",
        {"employee_id": "{s1.context.employee_id}"},
        "result.exists == true",
    )
    assert sound(plan)


def sound(plan: Plan) -> bool:
    """Whether the checker has nothing to say, and everything compiles."""
    assert list(find_problems(plan, CATALOG)) == []
    CompiledPlan(plan, plan_digest(plan)).prepare()
    return True


def test_every_step_that_acts_asks_for_approval_and_no_other() -> None:
    steps = [{"id": f"s{n}", "tool": tool} for n, tool in enumerate(TOOLS) if tool != "shut_down"]
    plan = planned({"goal": "x", "steps": steps})
    approved = {
        one.action.tool: one.approval
        for one in plan.listeners[:-1]
        if isinstance(one.action, ToolAction)
    }
    assert approved == {tool: tool != "query_access" for tool in TOOLS if tool != "shut_down"}
    assert sound(plan)


def test_a_tool_that_is_only_named_as_if_it_looked_asks_for_approval() -> None:
    tools = {"query_and_pay": ToolFacts(takes([]), read_only=False)}
    sketch = read_sketch(one_step("query_and_pay"), tools)
    assert isinstance(sketch, Sketch)
    assert plan_of(sketch, tools, "d").listeners[0].approval


def test_what_nobody_said_is_an_input_of_the_plan() -> None:
    plan = planned(BADGE)
    [email] = plan.inputs.fields
    assert (email.name, email.label, email.required) == ("email", "email", True)
    assert args_of(plan, "s1") == {"name": "Will Zhang", "email": "{001.context.email}"}
    assert validate(plan.inputs, {"email": "nobody"}).errors


def test_inputs_of_several_steps_do_not_share_a_name() -> None:
    steps = [
        {"id": "s1", "tool": "send_email", "args": {"to": "will@example.com", "content": "a"}},
        {"id": "s2", "tool": "send_email", "args": {"to": "will@example.com", "subject": None}},
        {"id": "s3", "tool": "set_manager", "args": {"who": None}},
    ]
    plan = planned({"goal": "x", "steps": steps})
    assert [one.name for one in plan.inputs.fields] == [
        "s1_subject",
        "s2_subject",
        "content",
        "list_of",
    ]
    assert args_of(plan, "s2")["subject"] == "{001.context.s2_subject}"
    assert args_of(plan, "s3") == {"who": None, "list of": "{001.context.list_of}"}
    assert sound(plan)


def test_names_that_fall_together_are_told_apart() -> None:
    tools = {
        "a": ToolFacts(takes(["b c", "b_c"], **{"b c": TEXT, "b_c": TEXT})),
    }
    sketch = read_sketch(one_step("a"), tools)
    assert isinstance(sketch, Sketch)
    plan = plan_of(sketch, tools, "d")
    assert [one.name for one in plan.inputs.fields] == ["b_c", "b_c_"]
    assert [one.label for one in plan.inputs.fields] == ["b c", "b_c"]


def test_an_input_is_asked_as_the_tools_author_has_it_asked() -> None:
    options = (Option("a", "A"), Option("b", "B"))
    fields = Form(
        (FormField("model", FieldType.RADIO, "Which?", options=options, visible_if="true"),)
    )
    tools = {"order": ToolFacts(takes(["model"], model=TEXT), fields=fields)}
    sketch = read_sketch(one_step("order"), tools)
    assert isinstance(sketch, Sketch)
    [asked] = plan_of(sketch, tools, "d").inputs.fields
    assert (asked.label, asked.options, asked.visible_if) == ("Which?", options, None)


def test_a_secret_is_typed_by_a_person() -> None:
    [password] = planned(one_step("log_in")).inputs.fields
    assert password.type is FieldType.SECRET


@pytest.mark.parametrize(
    ("written", "kept", "read_as"),
    [
        ("{s1.rows.0.name}", {"rows": "{{result.rows}}"}, "{s2.context.rows.0.name}"),
        ("{{ s1.rows }}", {"rows": "{{result.rows}}"}, "{s2.context.rows}"),
        (" {s1.rows} ", {"rows": "{{result.rows}}"}, "{s2.context.rows}"),
        ("{s1.result.rows}", {"rows": "{{result.rows}}"}, "{s2.context.rows}"),
        ("{s1}", {"result": "{{result}}"}, "{s2.context.result}"),
        ("{s1.result}", {"result": "{{result}}"}, "{s2.context.result}"),
        ("{s1.result.result.x}", {"result": "{{result}}"}, "{s2.context.result.result.x}"),
    ],
)
def test_later_steps_read_what_a_step_returned(
    written: str, kept: dict[str, str], read_as: str
) -> None:
    steps = [
        {"id": "s1", "tool": "note"},
        {"id": "s2", "tool": "note", "args": {"deep": {"list": [written, 5]}}},
    ]
    plan = planned({"goal": "x", "steps": steps})
    output = plan.listeners[0].success_output
    assert output is not None
    assert output.context == kept
    assert args_of(plan, "s2") == {"deep": {"list": [read_as.replace("s2", "s1"), 5]}}
    assert plan.listeners[1].trigger_task_id == ("s1",)
    assert sound(plan)


def test_where_the_whole_result_is_read_its_fields_are_read_from_it() -> None:
    steps = [
        {"id": "s1", "tool": "note"},
        {"id": "s2", "tool": "note", "args": {"all": "{s1}", "id": "No. {s1.id}"}},
    ]
    plan = planned({"goal": "x", "steps": steps})
    assert args_of(plan, "s2") == {"all": "{s1.context.result}", "id": "No. {s1.context.result.id}"}


def test_all_last_steps_are_waited_for() -> None:
    steps = [
        {"id": "a", "tool": "note"},
        {"id": "b", "tool": "note", "after": ["a"]},
        {"id": "c", "tool": "note", "after": ["a"]},
    ]
    assert planned({"goal": "x", "steps": steps}).listeners[-1].trigger_task_id == ("b", "c")


def test_the_same_sketch_makes_the_same_plan() -> None:
    again = json.loads(json.dumps(BADGE))
    assert plan_digest(planned(BADGE)) == plan_digest(planned(again))


# What is wrong with a sketch


NO_SECRET = "a secret has no place in a sketch: leave it out, a person gives it"
AN_ID = "an id is a letter or digit, then letters, digits, _ and -, at most 40"


def step_called(step_id: Any) -> dict[str, Any]:
    return {"goal": "x", "steps": [{"id": step_id, "tool": "note"}]}


def aiming_at(goal: Any) -> dict[str, Any]:
    return {**one_step(), "goal": goal}


def checked_by(**check: Any) -> dict[str, Any]:
    return {**one_step(), "check": [check]}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([], "sketch: an object with goal, steps, check"),
        ("steps", "sketch: an object with goal, steps, check"),
        ({"goal": "x", "steps": []}, "steps: a plan has at least one step"),
        ({"goal": "x", "steps": {}}, "steps: a list is needed"),
        ({"goal": "x", "steps": [["s1"]]}, "steps[0]: an object with id, tool, args, after"),
        ({**one_step(), "approve": True}, "sketch: there is no key 'approve'"),
        (aiming_at("  "), "sketch.goal: a text of 1 to 300 characters"),
        (aiming_at("x" * 301), "sketch.goal: a text of 1 to 300 characters"),
        (aiming_at(7), "sketch.goal: a text is needed"),
        (aiming_at(None), "sketch: goal is missing"),
        (step_called(""), f"steps[0].id: {AN_ID}"),
        (step_called("s 1"), f"steps[0].id: {AN_ID}"),
        (step_called(1), "steps[0].id: a text is needed"),
        (step_called("001"), "steps[0].id: 001 is reserved: choose another"),
        ({"goal": "x", "steps": step_called("s1")["steps"] * 2}, "steps[1].id: s1 is taken"),
        (one_step("delete_everything"), "steps[0].tool: there is no tool 'delete_everything'"),
        (one_step("notes"), "steps[0].tool: there is no tool 'notes'; did you mean 'note'?"),
        (one_step(""), "steps[0].tool: there is no tool ''"),
        (one_step("shut_down"), "steps[0].tool: shut_down is disabled"),
        (one_step(approval=False), "steps[0]: there is no key 'approval'"),
        (one_step(args=["x"]), "steps[0].args: an object of arguments by name"),
        (one_step(args={"a": ["{s9.x}"]}), "steps[0].args: {s9.x}: there is no step s9"),
        (one_step(args={"a": "Dear {name}"}), "steps[0].args: {name}: there is no step name"),
        (one_step(args={"a": "{001.status}"}), "steps[0].args: {001.status}: there is no step 001"),
        (one_step(args={"a": "{{result}}"}), "steps[0].args: {{result}}: there is no step result"),
        (one_step(args={"a": {"b": SECRET}}), f"steps[0].args: {NO_SECRET}"),
        (one_step("log_in", args={"password": "x"}), f"steps[0].args.password: {NO_SECRET}"),
        (
            one_step("grant_access", args={"employee": "x"}),
            "steps[0].args: there is no argument 'employee'; did you mean 'employee_id'?",
        ),
        (
            one_step("pay_expense", args={"amount": 60_000}),
            "steps[0].args.amount: give at most 50,000; got 60000",
        ),
        (
            one_step("send_email", args={"urgent": "yes"}),
            'steps[0].args.urgent: answer true or false; got "yes"',
        ),
        (one_step(after="s1"), "steps[0].after: a list of ids of steps"),
        (one_step(after=["x"]), "steps[0].after: there is no step 'x'"),
        (one_step(after=["s1"]), "steps: they wait for each other: s1 → s1"),
        (one_step(args={"a": "{s1}"}), "steps: they wait for each other: s1 → s1"),
        ({**one_step(), "check": {}}, "check: a list is needed"),
        (
            checked_by(tool="note"),
            "check[0].tool: note may change something; verify with a tool that only reads",
        ),
        (checked_by(tool="query_access"), "check[0].args: employee_id is missing"),
        (checked_by(args={}), "check[0]: tool is missing"),
        (
            checked_by(tool="query_access", args={"employee_id": "{s2.id}"}),
            "check[0].args: {s2.id}: there is no step s2",
        ),
        (
            {"goal": "x", "steps": [{"id": f"s{n}", "tool": "note"} for n in range(41)]},
            "steps: at most 40, not 41",
        ),
        ({**one_step(), "check": BADGE["check"] * 7}, "check: at most 6, not 7"),
    ],
)
def test_a_mistake_is_told_with_its_place(raw: Any, expected: str) -> None:
    found = problems(raw)
    assert expected in found
    assert len({one for one in found if "s1.employee_id" not in one}) == 1


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        (5, "a text is needed"),
        ("result.exists = true", "compare with =="),
        ("s1.status == Done", "only the result of the check can be asked here"),
        ("values.name == 1", "only the result of the check can be asked here"),
        ("Done", "only the result of the check can be asked here"),
    ],
)
def test_a_check_asks_for_its_own_result(expect: Any, expected: str) -> None:
    check = {"tool": "query_access", "args": {"employee_id": "x"}, "expect": expect}
    [found] = problems({**one_step(), "check": [check]})
    assert found.startswith("check[0].expect: ")
    assert expected in found


@pytest.mark.parametrize("expect", [None, "", "  "])
def test_a_check_may_expect_nothing_but_an_answer(expect: Any) -> None:
    check = {"tool": "query_access", "args": {"employee_id": "x"}, "expect": expect}
    assert read({**one_step(), "check": [check]}).check[0].expect is None


def test_a_circle_is_told_by_its_steps() -> None:
    steps = [
        {"id": "a", "tool": "note", "args": {"x": "{c.id}"}},
        {"id": "b", "tool": "note", "after": ["a"]},
        {"id": "c", "tool": "note", "after": ["b"]},
    ]
    [found] = problems({"goal": "x", "steps": steps})
    assert found.startswith("steps: they wait for each other: ")
    assert set("abc") <= set(found.rpartition(": ")[2])


def test_everything_that_is_wrong_is_told_at_once() -> None:
    raw = {
        "name": "x",
        "steps": [
            {"id": "s1", "tool": "nothing", "args": {"a": "{s7}"}},
            {"id": "s1", "tool": "grant_access", "args": {"employee": 1}, "after": ["s8"]},
            "s3",
        ],
        "check": [{"tool": "grant_access"}, {"tool": "query_access", "expect": "=="}],
    }
    found = problems(raw)
    places = [one.partition(": ")[0] for one in found]
    assert places == [
        "sketch",
        "sketch",
        "steps[1].id",
        "steps[0].tool",
        "steps[0].args",
        "steps[1].args",
        "steps[1].after",
        "steps[2]",
        "check[0].tool",
        "check[0].args",
        "check[1].args",
        "check[1].expect",
    ]
    assert complaint_of(found).endswith("; and 7 more")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("\ud800", "lone surrogate"),
        (float("nan"), "NaN"),
        ("\x00", "U+0000"),
        ("x" * 70_000, "larger than 64,000 bytes"),
        (json.loads("[" * 30 + "]" * 30), "nested too deep"),
        (b"x", "bytes is not JSON"),
    ],
)
def test_what_is_no_strict_json_is_no_sketch(value: Any, reason: str) -> None:
    [found] = problems(one_step(args={"a": value}))
    assert reason in found


def test_null_is_what_a_model_leaves_out() -> None:
    raw = {**one_step(args=None, after=None), "check": None}
    assert read(raw).steps[0].args == {}


def test_hidden_characters_of_a_goal_are_spelled_out() -> None:
    for text in INJECTIONS:
        goal = read({**one_step(), "goal": text}).goal
        assert goal.isprintable()
        assert len(goal) <= 300


# Danger


@pytest.mark.parametrize("name", list(dangerous_sketches([])))
def test_no_dangerous_sketch_acts_without_a_person(name: str) -> None:
    sketch = read_sketch(dangerous_sketches(list(TOOLS))[name], TOOLS)
    if isinstance(sketch, Unusable):
        return
    assert name == "pay and tell"
    plan = plan_of(sketch, TOOLS, "d")
    assert all(one.approval for one in plan.listeners if isinstance(one.action, ToolAction))
    assert sound(plan)


# Replies


@pytest.mark.parametrize(
    "reply",
    [
        said("", (SKETCH_PLAN, BADGE)),
        said(json.dumps(BADGE)),
        said(f"Here is the plan:\n```json\n{json.dumps(BADGE, indent=2)}\n```"),
        said(f"Certainly! {json.dumps({'name': SKETCH_PLAN, 'arguments': BADGE})}"),
    ],
)
def test_a_sketch_is_handed_in_by_a_call_or_in_words(reply: Any) -> None:
    assert read_sketch_reply(reply, TOOLS) == read(BADGE)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("I cannot do that."), "call sketch_plan: the reply has no JSON object for it"),
        (said(json.dumps(BADGE)[:-40]), "call sketch_plan: the reply has no JSON object for it"),
        (said("", ("start_plan", {})), "call sketch_plan once and nothing else, not start_plan"),
        (said("", (SKETCH_PLAN, {"goal": "x"})), "sketch: steps is missing"),
    ],
)
def test_a_reply_without_a_sketch_says_why(reply: Any, expected: str) -> None:
    refused = read_sketch_reply(reply, TOOLS)
    assert isinstance(refused, Unusable)
    assert refused.findings == (expected,)


# The request


OFFERS = tuple(ToolOffer(name, f"Does {name}.", one.parameters) for name, one in TOOLS.items())


def test_the_request_for_a_sketch_has_the_tools_and_what_a_person_wants() -> None:
    gone = ToolOffer("gone", "", {})
    prompt = sketch_prompt(
        "A badge for 张三", (*OFFERS, gone), TOOLS, "steps[0].tool: no such tool"
    )
    lines = [json.loads(one[2:]) for one in prompt.message.split("\n") if one.startswith("- ")]
    assert [one["name"] for one in lines[:-2]] == list(TOOLS)
    assert [one["name"] for one in lines[:-2] if "changes" in one] == ["query_access"]
    assert lines[-2:] == ["steps[0].tool: no such tool", "A badge for 张三"]
    assert prompt.tools == (sketch_offer(TOOLS),)
    steps = prompt.tools[0].parameters["properties"]["steps"]["items"]["properties"]
    assert steps["tool"]["enum"] == sorted(TOOLS)
    assert "wrong" not in sketch_prompt("x", OFFERS, TOOLS).message


@pytest.mark.parametrize("text", INJECTIONS)
def test_hostile_requests_and_descriptions_stay_inside_their_lines(text: str) -> None:
    offers = tuple(ToolOffer(one.name, text, one.parameters) for one in OFFERS)
    hostile = sketch_prompt(text, offers, TOOLS, text)
    plain = sketch_prompt("x", OFFERS, TOOLS, "y")
    assert hostile.system == plain.system

    def frame(message: str) -> list[str]:
        return [one for one in message.split("\n") if not one.startswith("- ")]

    assert frame(hostile.message) == frame(plain.message)
    assert all(line.isprintable() for line in hostile.message.split("\n"))


# Laws


@dataclass
class World:
    contexts: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    def status_of(self, task_id: str) -> str:
        return "Done"

    def context_of(self, task_id: str) -> Any:
        return self.contexts[task_id]


PIECES = st.lists(
    st.sampled_from(
        ["{s1.id}", "{{s1.name}}", "{s1.result.id}", "{s1}", "{", "}", "\\", "a", " ", '{"b": 1}']
    ),
    max_size=8,
)
RESULT = {"id": "7", "name": "张三"}


def as_meant(text: str) -> Any:
    """The text with each place filled by hand."""

    def value(found: Any) -> Any:
        path = reference(found).path
        return RESULT[path[0]] if path else RESULT

    if whole := REFERENCE.fullmatch(text.strip()):
        return value(whole)

    def inserted(found: Any) -> str:
        read = value(found)
        return (
            read
            if isinstance(read, str)
            else json.dumps(read, ensure_ascii=False, separators=(",", ":"))
        )

    return REFERENCE.sub(inserted, text)


@given(PIECES)
def test_a_text_comes_out_as_it_was_meant_whatever_braces_are_in_it(pieces: list[str]) -> None:
    text = "".join(pieces)
    steps = [{"id": "s1", "tool": "note"}, {"id": "s2", "tool": "note", "args": {"text": text}}]
    sketch = read_sketch({"goal": "x", "steps": steps}, TOOLS)
    if isinstance(sketch, Unusable):
        assert any(f"{{{word}}}" in text.replace(" ", "") for word in ("a", "aa", "aaa"))
        return
    plan = plan_of(sketch, TOOLS, "d")
    output = plan.listeners[0].success_output
    assert output is not None
    kept = render(compile_template(dict(output.context)), World(names={"result": RESULT}))
    world = World({"s1": kept})
    try:
        rendered = render(compile_template(dict(args_of(plan, "s2"))), world)
    except TemplateError as error:
        raise AssertionError(text) from error
    assert rendered == {"text": as_meant(text)}


IDS = st.sampled_from(["s1", "s2", "not", "1e5", "Done", "a-b", "x_y", "in"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 99)
    | st.sampled_from(["x", "{s1.id}", "{a-b}", "{b", "will@example.com"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["name", "email", "to", "subject", "employee_id", "amount", "x"]),
    VALUES,
    max_size=4,
)
STEPS = st.fixed_dictionaries(
    {"id": IDS, "tool": st.sampled_from([*TOOLS, "unknown"])},
    optional={"args": ARGUMENTS, "after": st.lists(IDS, max_size=2)},
)
CHECKS = st.fixed_dictionaries(
    {"tool": st.sampled_from(["query_access", "note"]), "args": ARGUMENTS},
    optional={"expect": st.sampled_from(["result.ok", "Done", "result.n > 3"])},
)


@given(
    st.fixed_dictionaries(
        {"goal": st.just("x"), "steps": st.lists(STEPS, max_size=4)},
        optional={"check": st.lists(CHECKS, max_size=2)},
    )
)
def test_a_sketch_is_refused_or_makes_a_plan_that_the_checker_accepts(raw: dict[str, Any]) -> None:
    sketch = read_sketch(raw, TOOLS)
    if isinstance(sketch, Unusable):
        assert sketch.findings
        return
    plan = plan_of(sketch, TOOLS, "draft")
    assert sound(plan)
    for one in plan.listeners:
        if isinstance(one.action, ToolAction):
            assert one.approval is not TOOLS[one.action.tool].read_only
