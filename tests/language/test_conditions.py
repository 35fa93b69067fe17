from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConditionError
from holdfast.language.conditions import Condition, explain, holds, parse
from holdfast.model.plan import TaskStatus


@dataclass
class World:
    """A run as a condition sees it."""

    statuses: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    def status_of(self, task_id: str) -> str:
        return self.statuses[task_id]

    def context_of(self, task_id: str) -> Mapping[str, Any]:
        return self.contexts[task_id]


OFFICE = World(
    statuses={
        "001": TaskStatus.RUNNING,
        "002": TaskStatus.DONE,
        "004": "Done",
        "005": "Running",
        "hire-step": "Done",
    },
    contexts={
        "001": {"department": "HR", "name": "张三", "empty": "", "none": None, "flag": True},
        "002": {
            "x": 1,
            "items": [{"price": 1500.5}, {"price": 9}],
            "tags": ["new", "urgent"],
            "pair": [1, [True]],
            "address": {"city": "Xi'an", "n": 1},
        },
        "010": {"1": "one"},
    },
    names={
        "result": {
            "exists": True,
            "status": "active",
            "count": 0,
            "same": {"city": "Xi'an", "n": 1},
        },
        "values": {"姓名": "张三", "limit": -2},
    },
)


def ask(text: str, *triggers: str, world: World = OFFICE) -> bool:
    return holds(parse(text), triggers, world)


def mistake(text: str) -> ConditionError:
    with pytest.raises(ConditionError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "002.status == Done",
        "002.status == 'Done'",
        "Done == 002.status",
        "hire-step.status == Done",
        "002.status != Error",
        "002.status in [Done, Skipped]",
        "005.status not in [Done, 'Skipped']",
        "002.status == Done && 005.status == Running",
        "002.status == Done and not 005.status == Done",
        "005.status == Done || 002.status == Done",
        "005.status == Done or !(005.status == Done)",
        "002.status==Done&&005.status!=Done",
        "009.status == null",
        "002.context.x",
        "002.context.x == 1",
        "002.context.x == 1.0",
        "002.context.x<2",
        "002.context.items.0.price > 1000",
        "002.context.items.1.price <= 9",
        "002.context.items.1.price >= 9",
        "002.context.items.2.price == null",
        "002.context.items.first == null",
        "002.context.x.y.z == None",
        "009.context.x == null",
        "010.context.1 == 'one'",
        "001.context.department in ['Sales', 'HR']",
        "001.context.department in ['Sales', 001.context.department,]",
        "001.context.department < 'IT'",
        "'rge' in 002.context.tags.1",
        "'urgent' in 002.context.tags",
        "'city' in 002.context.address",
        "'x' in 002.context",
        "1 not in 002.context.nothing",
        "[1, [true]] == 002.context.pair",
        "002.context.address == result.same",
        '002.context.address.city == "Xi\'an"',
        "002.context.address.city == 'Xi\\'an'",
        "001.context.name == '张三'",
        "values.姓名 == 001.context.name",
        "values.limit > -2.5 and values.limit <= -2e0",
        "result.exists == true",
        "result.exists",
        'result.status == "active"',
        "result != null",
        "(result.count == 0) == True",
        "not result.count",
        "true",
        "not false or False",
        "[] == []",
        '\'a\\n\\t\\\\\\"\' == "a\\n\\t\\\\\\""',
        "002.status ==\n  Done",
    ],
)
def test_holds(text: str) -> None:
    assert ask(text)


@pytest.mark.parametrize(
    "text",
    [
        "005.status == Done",
        "009.status == Done",
        "002.status == Done && 005.status == Done",
        "002.context.x == true",
        "001.context.flag == 1",
        "002.context.pair == [1, [1]]",
        "002.context.pair == [1]",
        "002.context.address == values",
        "002.context.x == '1'",
        "1 in ['1', true]",
        "1 in 001.context.department",
        "1 in 002.context.address",
        "'x' in 002.context.x",
        "002.context.nothing < 5",
        "002.context.nothing >= 002.context.nothing",
        "001.context.flag > 0",
        "001.context.department > 5",
        "002.context.tags < 002.context.tags",
        "001.context.empty",
        "001.context.none",
        "009.context.x",
        "002.context.items.99999999999999999999.price",
        "result.status.deeper",
        "false or null == 0",
    ],
)
def test_does_not_hold(text: str) -> None:
    assert not ask(text)


def test_a_bare_status_asks_every_trigger_task() -> None:
    assert ask("Done", "002")
    assert ask("Done", "002", "004")
    assert not ask("Done", "004", "005")
    assert not ask("Done", "002", "nowhere")


def test_a_bare_status_without_triggers_is_not_vacuously_true() -> None:
    assert not ask("Done")


def test_a_status_word_among_other_questions_asks_the_triggers_too() -> None:
    assert ask("Done or Running", "005")
    assert not ask("Done || Skipped", "005")
    assert ask("not Done", "005")
    assert ask("Running && 002.status == Done", "005")


def test_and_binds_tighter_than_or() -> None:
    assert ask("true or false and false")
    assert not ask("(true or false) and false")


def test_names_that_do_not_apply_are_null() -> None:
    assert ask("result == null and values.x == null", world=World())


def test_a_condition_tells_what_it_asks_about() -> None:
    condition = parse("004.status == Done && (005.context.a.0 in [006.context.b] || !result.x)")
    assert condition.text.startswith("004.status")
    assert condition.task_ids == {"004", "005", "006"}
    assert condition.paths == (
        ("004", "status"),
        ("005", "context", "a", "0"),
        ("006", "context", "b"),
        ("result", "x"),
    )
    assert not condition.asks_triggers


def test_a_path_is_listed_once() -> None:
    assert parse("002.context.x > 1 && 002.context.x < 5").paths == (("002", "context", "x"),)


def test_a_status_word_alone_asks_the_triggers() -> None:
    assert parse("Done").asks_triggers
    assert parse("not Done").asks_triggers
    assert not parse("002.status == Done").asks_triggers


def test_conditions_are_parsed_once_and_never_change() -> None:
    condition = parse("Done")
    assert parse("Done") is condition
    with pytest.raises(FrozenInstanceError):
        condition.text = "Error"  # type: ignore[misc]


def test_explaining_names_the_tasks_and_their_status() -> None:
    text = "004.status == Done && 005.status == Done"
    assert explain(parse(text), ("004", "005"), OFFICE) == f"{text} (004 is Done, 005 is Running)"


def test_explaining_a_bare_status_names_the_triggers() -> None:
    assert explain(parse("Done"), ("004", "005"), OFFICE) == "Done (004 is Done, 005 is Running)"


def test_explaining_shows_values_and_what_is_missing() -> None:
    condition = parse(
        "002.context.x > 1 or 002.context.y or 009.status == Done or result.status == 'x'"
    )
    assert explain(condition, ("002",), OFFICE).endswith(
        ' (002.context.x is 1, 002.context.y is missing, 009 is missing, result.status is "active")'
    )


def test_explaining_stays_short() -> None:
    world = World(names={"values": {"long": "x" * 500}})
    assert len(explain(parse("values.long == 'y'"), (), world)) < 100
    many = parse(" && ".join(f"{n}.status == Done" for n in range(20)))
    assert explain(many, (), world).endswith("7 is missing, and 12 more)")


def test_explaining_a_constant_is_its_text() -> None:
    assert explain(parse("false"), ("002",), OFFICE) == "false"


def test_a_mistake_is_shown_with_a_caret() -> None:
    error = mistake("002.status == Doen")
    assert error.column == 15
    assert str(error) == (
        "unknown word Doen; did you mean Done?\n  002.status == Doen\n                ^"
    )


def test_the_caret_stands_right_after_wide_characters_and_line_breaks() -> None:
    error = mistake("'张三' ==\n张")
    assert error.column == 9
    assert str(error).splitlines()[1:] == ["  '张三' == 张", "  " + " " * 10 + "^"]


def test_the_excerpt_of_a_long_condition_stays_short() -> None:
    error = mistake("true && " * 100 + "Doen" + " && true" * 100)
    assert error.column == 801
    assert all(len(line) < 90 for line in str(error).splitlines())


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "it is empty"),
        ("  \n ", 1, "it is empty"),
        ("002.status == ", 14, "missing at the end"),
        ("(Done", 6, "missing at the end"),
        ("[1", 3, "missing at the end"),
        ("Done)", 5, "expected &&, || or the end"),
        ("== 5", 1, "expected a value"),
        ("Done Done", 6, "expected &&, || or the end"),
        ("1 < 002.context.x < 3", 19, "expected &&, || or the end"),
        ("002.status = Done", 12, "compare with =="),
        ("Done & Error", 6, "write &&"),
        ("Done | Error", 6, "write ||"),
        ("002.context. == 3", 12, "single dots"),
        ("001.context.name == '张三", 21, "never closed"),
        ('001.context.name == "', 21, "never closed"),
        ("（Done）", 1, "ASCII"),
        ("x == 'C:\\dir'", 1, "unknown word x"),
        ("result == 'C:\\dir'", 14, "\\\\ for a backslash"),
        ("done", 1, "did you mean Done"),
        ("Done AND Done", 6, "expected &&"),
        ("001.context.department == Sales", 27, "put text in quotes"),
        ("002 == Done", 1, "002.status"),
        ("002.stats == Done", 1, ".status or .context"),
        ("002.status.x == 1", 1, "nothing can follow"),
        ("result == 1.2.3", 11, ".status or .context"),
        ("'Done'", 1, "not a question"),
        ("002.status", 1, "not a question"),
        ("true && 5", 9, "not a question"),
        ("not [1]", 5, "not a question"),
        ("not null", 5, "not a question"),
        ("002.status == 'done'", 15, "did you mean Done"),
        ("002.status in [Done, 'ready']", 22, "use Cancelled"),
        ("5 == 002.status", 1, "5 is no task status"),
        ("__import__('os')", 11, "( does not fit here"),
    ],
)
def test_mistakes_name_their_column_and_remedy(text: str, column: int, reason: str) -> None:
    error = mistake(text)
    assert error.column == column
    assert reason in str(error)


def test_a_comparison_used_as_a_value_may_hold_any_text() -> None:
    assert ask("(result.status == 'idle') != 002.status")


def test_length_is_capped() -> None:
    assert "2,000 characters" in str(mistake("true && " * 300 + "true"))


def test_nesting_is_capped_and_redundant_brackets_are_harmless() -> None:
    assert ask("(" * 900 + "true" + ")" * 900)
    assert ask("!" * 40 + "true")
    for text in ("!" * 1_500 + "true", "[" * 900 + "]" * 900 + " == 1"):
        assert "nested deeper than 50" in str(mistake(text))


def test_a_long_chain_is_not_nesting() -> None:
    assert ask(" && ".join(["true"] * 240))


OPERATORS = [
    "==",
    "!=",
    "<",
    ">=",
    "in",
    "not",
    "and",
    "or",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "[",
    "]",
    ",",
]
OPERANDS = [
    "Done",
    "002.status",
    "002.context.x.0",
    "result",
    "values.a",
    "'a'",
    '"b"',
    "1",
    "-2.5",
]
ODDITIES = ["1e9", "true", "null", ".", "\\", "'", "Doen", "002", "\n"]
words = st.sampled_from([*OPERATORS, *OPERANDS, *ODDITIES])


def parsed_or_refused(text: str) -> Condition | ConditionError:
    try:
        return parse(text)
    except ConditionError as error:
        return error


@given(st.text(max_size=40) | st.lists(words, max_size=14).map(" ".join))
def test_any_text_parses_or_is_refused_with_a_column_in_it(text: str) -> None:
    outcome = parsed_or_refused(text)
    if isinstance(outcome, ConditionError):
        assert 1 <= outcome.column <= len(text) + 1
    else:
        assert holds(outcome, ("002",), OFFICE) in (True, False)
        assert explain(outcome, ("002",), OFFICE).startswith(text)


@given(st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_exactly(number: float) -> None:
    assert ask(f"values.n == {number!r}", world=World(names={"values": {"n": number}}))


@given(st.text(st.characters(exclude_characters="\\'"), max_size=30))
def test_texts_are_read_exactly(text: str) -> None:
    assert ask(f"values.t == '{text}'", world=World(names={"values": {"t": text}}))


@given(st.sampled_from(list(TaskStatus)), st.sampled_from(list(TaskStatus)))
def test_the_three_ways_to_ask_for_a_status_agree(actual: TaskStatus, asked: TaskStatus) -> None:
    world = World(statuses={"002": actual})
    answers = {
        ask(asked, "002", world=world),
        ask(f"002.status == {asked}", world=world),
        ask(f"002.status in ['{asked}']", world=world),
    }
    assert answers == {actual == asked}
