"""Holdfast's own messages in Chinese: none is forgotten, and values stay what they are."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from string import Formatter
from typing import Any

import pytest
from chat_scene import Till, asks_to_pay, employ
from server_scene import Scene, furnish, serving
from spoken_sources import SILENT, SPEAKING, texts_in, unsaid

from holdfast import Holdfast
from holdfast.errors import PlanRejected
from holdfast.forms.validation import validate
from holdfast.i18n.catalogue import catalogue, said
from holdfast.i18n.message import joined, moment, msg, term
from holdfast.model.form import Field, FieldType, Form, Option, Validation
from holdfast.server.problems import TABLE, TITLES
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan
from holdfast.source.yaml import read_document

CHINESE = re.compile("[\u4e00-\u9fff]")
OURS = msg("nobody answered in time")


def chinese(text: str) -> str:
    told = said(text, "zh")
    assert CHINESE.search(told), text
    return told


SAMPLES: Mapping[str, Any] = {
    "": "Will Zhang",
    ",": 1024,
    "g": 1.5,
    ".3g": 1.5,
    ".0f": 1.5,
    "04X": 7,
}


def example(form: str) -> str:
    """The message with something for each of its parameters, by how it is written."""
    parts = Formatter().parse(form)
    return msg(form, **{name: SAMPLES[spec or ""] for _, name, spec, _ in parts if name})


@pytest.mark.parametrize("module", SPEAKING)
def test_no_text_in_the_source_is_forgotten(module: str) -> None:
    assert unsaid(module) == set()


def test_what_needs_no_translation_is_really_there() -> None:
    assert {text for module in SPEAKING for text in texts_in(module)} >= SILENT


def test_every_message_is_said_in_chinese() -> None:
    for form, translated in catalogue("zh").items():
        if CHINESE.search(translated):
            chinese(example(form))


def already_answered(title: str, option: str) -> str:
    form = "{title!r} was already answered by {by} at {at} with {option!r}"
    at = moment("2026-11-16T03:33:20.000+00:00")
    return msg(form, title=title, by="Will Zhang", at=at, option=option)


def test_what_a_question_is_called_is_said_where_it_is_ours() -> None:
    ours = already_answered(msg("Run {tool}?", tool="pay"), msg("Approve and run"))
    assert ours == (
        "'Run pay?' was already answered by Will Zhang at 2026-11-16T03:33:20.000+00:00 "
        "with 'Approve and run'"
    )
    assert said(ours, "zh") == (
        "“执行 pay？” 已由 Will Zhang 于 2026-11-16 03:33:20 (UTC) 以 “批准并执行” 回答"
    )
    assert said(already_answered("Delete them?", "Keep them"), "zh") == (
        "“Delete them?” 已由 Will Zhang 于 2026-11-16 03:33:20 (UTC) 以 “Keep them” 回答"
    )
    failed = msg("Task {id} failed", id="5")
    closed = msg("{title!r} is {status}; nothing was changed", title=failed, status=term("expired"))
    assert said(closed, "zh") == "“任务 5 失败” 已过期；没有作任何改动"


def test_every_title_is_said_in_chinese() -> None:
    for title in {*TITLES.values(), *(title for _, title in TABLE.values()), "Refused"}:
        assert CHINESE.search(said(title, "zh")), title
        assert said(title, "en") == title


def option(value: str, own: bool = False) -> Option:
    return Option(value, value, own)


def a_field(kind: FieldType, *options: Option, **rules: Any) -> Field:
    return Field("x", kind, options=options, validation=Validation(**rules))


T = FieldType
WRONG: tuple[tuple[Field, Any], ...] = (
    *((a_field(kind, option("a")), None) for kind in FieldType),
    *((a_field(kind, option("a")), {"a": 1}) for kind in FieldType),
    *((a_field(kind, option("a")), ["x", 1]) for kind in FieldType),
    *((a_field(kind, option("a")), 1.5) for kind in FieldType),
    *((a_field(kind, option("a")), "\ud800") for kind in FieldType),
    *((a_field(kind, option("a")), float("nan")) for kind in FieldType),
    (a_field(T.TEXT, min_length=2), "a"),
    (a_field(T.TEXT, min_length=2, max_length=3), "abcd"),
    (a_field(T.TEXT, max_length=1), "ab"),
    (a_field(T.TEXT, pattern="^[a-z]+$"), "A"),
    (a_field(T.TEXT, values=("a", "b")), "c"),
    (a_field(T.TEXTAREA), "x" * 100_001),
    (a_field(T.SECRET, min_length=3), "a"),
    (a_field(T.SECRET, pattern="^[a-z]+$"), "A"),
    (Field("x", T.TEXTAREA, json=True), "{"),
    (Field("x", T.TEXTAREA, json=True), "[" * 100_000),
    (Field("x", T.TEXTAREA, json=True), "[NaN]"),
    (Field("x", T.NUMBER, integer=True), "a"),
    (Field("x", T.NUMBER, integer=True), 1.5),
    (Field("x", T.NUMBER, integer=True), 1e300),
    (a_field(T.NUMBER, minimum=2), 1),
    (a_field(T.NUMBER, maximum=2), 3),
    (a_field(T.NUMBER, minimum=2, maximum=3), 1),
    (a_field(T.NUMBER, values=(1, 2)), 3),
    (a_field(T.RADIO, option("a"), option("own", True)), "own"),
    (a_field(T.RADIO, option("a"), option("own", True)), {"value": "own", "text": 1}),
    (a_field(T.RADIO, option("a"), option("own", True)), {"value": "a", "text": "b"}),
    (a_field(T.SELECT, *(option(str(number)) for number in range(20))), "x"),
    (a_field(T.MULTISELECT, option("a"), option("b")), ["a", "a"]),
    (a_field(T.MULTISELECT, option("a"), option("b"), min_items=2), ["a"]),
    (a_field(T.MULTISELECT, option("a"), option("b"), max_items=1), ["a", "b"]),
    (a_field(T.MULTISELECT, option("a"), option("b"), min_items=2, max_items=2), ["a"]),
    (a_field(T.DATE), "2026-02-30"),
    (a_field(T.DATE, not_before="2026-01-01"), "2025-01-01"),
    (a_field(T.DATE, not_after="2026-01-01"), "2027-01-01"),
    (a_field(T.DATE, not_before="2026-01-01", not_after="2026-02-01"), "2027-01-01"),
    (a_field(T.DATETIME), "2026-01-01T10:00:00"),
    (a_field(T.FILE), "file:"),
    (a_field(T.FILE), "file:" + "x" * 300),
)


def test_every_way_to_answer_a_field_wrongly_is_told_in_chinese() -> None:
    refused = 0
    for field, value in WRONG:
        for message in validate(Form((field,)), {"x": value}).errors.values():
            chinese(message)
            refused += 1
    assert refused > len(WRONG) - 12
    asked_if = Field("y", visible_if='values.x == "b"')
    form = Form((Field("x"), asked_if))
    for answers in ({"x": "a", "y": "c"}, {"x": "a", "z": 1}, {"x": "a", "unlike anything": 1}):
        assert [chinese(one) for one in validate(form, answers).errors.values()]


BAD_PLANS = (
    "",
    "[1]",
    "plan_id: [",
    "plan_id: &a [*a]",
    "a: 1\n---\nb: 2",
    "plan_id: p\nplan_id: q\nname: !x y\nmain_task_id: 1\ntasks: {}\nlisteners: 3\n<<: {a: 1}",
    """\
plan_id: a b
nam: P
main_task_id: "003"
inputs:
  a: {type: txt}
  b: {type: radio}
  c: {type: text, options: [a], validation: {max_length: -1, pattern: "("}}
  d: {type: number, validation: {minimum: 3, maximum: 2}, default: x}
  e: {type: secret, default: x, visible_if: "values.z == 1"}
tasks:
  - {task_id: "001", name: One}
  - {task_id: "001"}
  - {task_id: result}
  - {task_id: "a,b"}
  - {}
listeners:
  - listener_id: L001
    trigger_task_id: "001,,"
    trigger_condition: "001.status = Running"
    listener_type: tool
    tool: ordr
    args: {who: "{009.context.x}", nobody: "{{result.x}}", odd: "{{never"}
    approval: sometimes
    retry: {attempts: 1000, wait: -1}
    timeout: 0
    priority: high
    success_output: {task_id: "009", status: Finished}
  - listener_id: inputs
    trigger_task_id: "002"
    trigger_condition: "002.status == Done && ("
    listener_type: human
    tool: order
    timeout_seconds: -1
    default_option_id: yes
    escalate: {after: 3}
    remind_after: [3, 2]
    options: [{option_id: "", label: A}, {option_id: a, label: B, action: WHAT}]
  - listener_id: L003
    trigger_task_id: "001"
    trigger_condition: "Runing"
    listener_type: code
    code_snippet: "x = ("
    functions: [nothing]
    success_output: {task_id: "001", status: Cancelled, context: {a: "{x y}"}}
  - listener_id: L004
    trigger_task_id: "001"
    trigger_condition: "Done and 'open"
    listener_type: robot
verify:
  - {tool: order, expect: "Done or result"}
""",
)
TOOLS = {"order": {"type": "object", "properties": {"who": {"type": "string"}}}}


@pytest.mark.parametrize("text", BAD_PLANS)
def test_every_mistake_in_a_plan_is_told_in_chinese(text: str) -> None:
    with pytest.raises(PlanRejected) as rejected:
        load_plan(text, "plan.yaml", Catalog(tools=TOOLS))
    for line, problem in zip(
        chinese(str(rejected.value)).split("\n"), rejected.value.problems, strict=True
    ):
        assert CHINESE.search(line)
        chinese(problem.message)


BROKEN_YAML = (
    "a: b: c",
    "a: 1\n b: 2",
    "a: - b",
    "a: ? b",
    "a: 1\nplain\nb: 2",
    "a:\n\tb: 1",
    "a: @x",
    "a: %x",
    "a: 'x",
    'a: "x',
    "a: 'x\n---\nb'",
    'a: "\\q"',
    'a: "\\u12"',
    "a: ]",
    "a: {,}",
    "a: [1, 2",
    "a: [1}",
    "a: {b: 1",
    "a: {b: 1 c: 2}",
    "a: 1\n- b",
    "- a\nb: 1",
    "a:\n  b: 1\n c: 2",
    "a: 'it's'",
    "a: &b &c d",
    "a: &x *x",
    "a: &",
    "a: * b",
    "a: |x\n b",
    "a: |0\n b",
    "a: > x\n b",
    "%FOO\n a",
    "a: 1\n... b",
    "a: !x!y z",
    "%YAML 1.2\n%YAML 1.2\n---\na: 1",
    "%YAML 2.0\n---\na",
    "%YAML x\n---\na",
    "%YAML 1\n---\na",
    "%TAG ! x\n%TAG ! y\n---\na",
)
KEPT = re.compile(r"YAML|\bTAG\b|'[^']*'|“[^”a-z]*”")


@pytest.mark.parametrize("text", BROKEN_YAML)
def test_what_the_parser_says_of_broken_yaml_is_told_in_chinese(text: str) -> None:
    [problem] = read_document(text, "plan.yaml").problems
    assert problem.message.startswith("not valid YAML: ")
    told = chinese(problem.message)
    assert not re.search("[A-Za-z]", KEPT.sub("", told)), told


def test_broken_yaml_says_what_was_found_instead() -> None:
    [missing] = read_document("a: [1, 2", "plan.yaml").problems
    assert said(missing.message, "zh") == "YAML 无效：此处应为 ',' 或 ']'，却是“文件结尾”"
    [twice] = read_document("'<scalar>': 1\n'<scalar>': 2", "plan.yaml").problems
    assert "键 '<scalar>' 出现两次" in said(twice.message, "zh")


def test_what_holdfast_records_is_told_with_the_words_of_others_in_it() -> None:
    form = "{id} failed after {n} retries: {reason}"
    assert (
        said(msg(form, id="L001", n=2, reason=OURS), "zh") == "L001 重试 2 次后失败：逾期无人回答"
    )
    other = msg("{id} failed: {reason}", id="L001", reason="the printer is on fire")
    assert said(other, "zh") == "L001 失败：the printer is on fire"
    required = msg("this is required: please fill it in")
    both = joined("; ", [msg("{place}: {problem}", place="name", problem=required), "x"])
    assert said(both, "zh") == "name：此项必填，请填写；x"


@pytest.mark.parametrize(
    "text",
    [
        "the printer is on fire",
        "Error: the printer is on fire",
        "order failed; nobody knows why",
        "a list",
        "",
        "x" * 10_000,
        f"{OURS}; and the printer is on fire",
    ],
)
def test_the_words_of_others_stay_as_they_are(text: str) -> None:
    assert said(text, "zh") == text


@pytest.mark.parametrize(
    "value",
    [
        OURS,
        "a; got 1",
        "a: b; c",
        "{by} {0} {{x}}",
        "<b>bold</b>",
        "rejected by {by}: {reason}",
        "two\nlines",
    ],
)
def test_a_value_that_looks_like_a_pattern_stays_a_value(value: str) -> None:
    told = msg("rejected by {by}: {reason}", by="Will Zhang", reason=str.__str__(value))
    assert said(told, "zh") == f"被 Will Zhang 拒绝：{value}"
    field = a_field(T.RADIO, option("a"))
    [message] = validate(Form((field,)), {"x": value}).errors.values()
    shown = message.partition("; got ")[2]
    assert said(message, "zh") == f'请从 "a" 中选择；收到的是 {shown}'


def test_in_english_everything_stays() -> None:
    assert said(OURS, "en") == OURS
    assert said("Try again", "en") == "Try again"


def test_what_a_card_asks_is_told_line_by_line() -> None:
    ours = msg("{who} wants to call {tool} with these arguments.", who="Will Zhang", tool="pay")
    message = joined("\n", [ours, "Do not hesitate."])
    assert said(message, "zh") == "Will Zhang 想用以下参数调用 pay。\nDo not hesitate."
    assert said(msg("Did {what} happen?", what="pay"), "zh") == "pay 执行了吗？"
    assert said("Go on without it\nNow", "zh") == "跳过它继续\nNow"


@pytest.fixture
def till(app: Holdfast) -> Till:
    return employ(app)


@pytest.fixture
async def scene(app: Holdfast, till: Till) -> AsyncIterator[Scene]:
    furnish(app)
    async with serving(app) as scene:
        yield scene


async def test_a_refusal_is_told_in_the_language_that_was_asked_for(scene: Scene) -> None:
    question = await asks_to_pay(scene, 5)
    path = f"/interactions/{question['requestId']}/answer"
    wrong = {"selectedOptionId": "approve", "data": {"amount": "much"}}

    plain = await scene.admin.post(path, json=wrong)
    assert plain.headers["content-language"] == "en"
    assert plain.json()["fields"] == {"amount": 'give a whole number; got "much"'}

    wanted = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}
    told = await scene.admin.post(path, json=wrong, headers=wanted)
    assert told.status_code == plain.status_code == 422
    assert told.headers["content-language"] == "zh"
    assert told.headers["vary"] == "Accept-Language"
    problem = told.json()
    assert problem["fields"] == {"amount": '请填写整数；收到的是 "much"'}
    assert problem["title"] == "回答不符合要求"
    assert problem["detail"] == problem["error"] == "回答与表单不符"
    assert problem["type"] == plain.json()["type"]

    many = {"requestIds": [question["requestId"], "nobody"], **wrong}
    answered = await scene.admin.post("/interactions/answers", json=many, headers=wanted)
    first, second = answered.json()["outcomes"]
    assert first["problem"]["fields"] == {"amount": '请填写整数；收到的是 "much"'}
    assert second["error"] == "没有问题 nobody"


async def test_every_border_of_the_server_speaks_chinese(scene: Scene) -> None:
    wanted = {"Accept-Language": "zh"}
    for method, path, body in (
        ("GET", "/nowhere", None),
        ("DELETE", "/plans", None),
        ("GET", "/runs/inst_000009", None),
        ("GET", "/runs?colour=red", None),
        ("POST", "/instances", b"{"),
        ("POST", "/instances", b'{"plan_id": 1, "more": 2}'),
        ("POST", "/instances", b'{"plan_id": "nothing"}'),
        ("POST", "/instances", b"\xff"),
        ("POST", "/plans", b'{"source": "plan_id: 1"}'),
        ("POST", "/plans/check", b'{"source": "plan_id: a b"}'),
    ):
        headers = {**wanted, "Content-Type": "application/json"}
        answer = await scene.admin.request(method, path, content=body, headers=headers)
        problem = answer.json()
        told = [problem["title"], problem["detail"], *problem.get("fields", {}).values()]
        told += [one["message"] for one in problem.get("problems", ())]
        assert all(map(CHINESE.search, told)), told
    stranger = await scene.stranger.get("/runs", headers=wanted)
    assert stranger.json()["title"] == "您是谁？"
    assert CHINESE.search(stranger.json()["detail"])
    viewer = await scene.as_a("viewer")
    refused = await viewer.post("/instances", json={"plan_id": "grant_access"}, headers=wanted)
    assert refused.json()["detail"].startswith("您的角色无权操作")
