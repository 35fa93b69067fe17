from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.core.approval import (
    best,
    check_pattern,
    fits,
    lets_run,
    mode_for,
    mode_for_helper,
    mode_of,
    pattern_of,
    read_rule,
    rule_from_json,
    rule_to_json,
    spend,
)
from holdfast.errors import AuthorError, ConditionError, InvalidAnswer
from holdfast.language import judgement
from holdfast.language.conditions import equal
from holdfast.model.approval import ApprovalMode, ApprovalRule, Grant

AUTO, REQUIRE, DISABLED = ApprovalMode
RULES = {mode: ApprovalRule(mode) for mode in ApprovalMode}

texts = st.text(st.sampled_from("ab*\\.é\n"), max_size=6)
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3, allow_nan=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.sampled_from(["amount", "to", "note"]), values)
rules = st.builds(
    ApprovalRule,
    st.sampled_from(ApprovalMode),
    st.none() | st.sampled_from(["amount > 1", 'to == "a"', "not note", "amount in [1, true]"]),
    st.sampled_from(ApprovalMode),
)


def verdict(condition: str, **args: Any) -> bool | None:
    return judgement.parse(condition).judge(args)


def refusal(raw: object) -> str:
    with pytest.raises(AuthorError) as caught:
        read_rule(raw)
    return str(caught.value)


def grant(pattern: dict[str, Any] | None = None, **changes: Any) -> Grant:
    facts = {"grant_id": "g1", "tool": "pay", "version": "v1", "by": "will", "at": 0.0}
    return Grant(**{**facts, "pattern": pattern or {}, **changes})


def covers(pattern: dict[str, Any], **args: Any) -> bool:
    return fits(grant(pattern), "pay", "v1", args, 1.0)


@pytest.mark.parametrize(
    ("raw", "mode"),
    [
        ("auto", AUTO),
        ("AUTO", AUTO),
        (AUTO, AUTO),
        ("require", REQUIRE),
        ("require_approval", REQUIRE),
        ("REQUIRE_APPROVAL", REQUIRE),
        (True, REQUIRE),
        ("true", REQUIRE),
        ("disabled", DISABLED),
        ("DISABLED", DISABLED),
        ({"mode": "disabled"}, DISABLED),
    ],
)
def test_a_mode_may_be_spelled_in_several_ways(raw: object, mode: ApprovalMode) -> None:
    assert read_rule(raw) == ApprovalRule(mode)


def test_a_rule_may_depend_on_the_arguments() -> None:
    full = {"mode": "disabled", "when": "amount > 1000", "otherwise": "require"}
    assert read_rule(full) == ApprovalRule(DISABLED, "amount > 1000", REQUIRE)
    short = ApprovalRule(REQUIRE, "amount > 1000", AUTO)
    assert read_rule({"require_when": "amount > 1000"}) == short
    assert read_rule({"mode": "require", "when": "amount > 1000"}) == short
    assert read_rule(short) is short


@pytest.mark.parametrize(
    "raw", [None, False, 1, "", "yes", ["auto"], {"mode": "never"}, {"mode": {"mode": "auto"}}]
)
def test_anything_else_is_refused_with_what_is_allowed(raw: object) -> None:
    message = refusal(raw)
    assert "auto, require or disabled" in message
    assert "require_when" in message


@pytest.mark.parametrize(
    "raw",
    [{}, {"when": "a > 1"}, {"mode": "auto", "if": "a"}, {"mode": "auto", "require_when": "a"}],
)
def test_a_mapping_with_other_keys_is_refused(raw: object) -> None:
    assert "otherwise: auto" in refusal(raw)


def test_what_is_refused_is_shown_only_in_part() -> None:
    message = refusal("x" * 1000)
    assert "xxx…" in message
    assert len(message) < 300


def test_a_rule_that_decides_nothing_is_refused() -> None:
    assert "otherwise" in refusal({"mode": "auto", "when": "amount < 10"})
    assert "whether or not" in refusal({"mode": "auto", "when": "a", "otherwise": "auto"})
    assert "without when" in refusal({"mode": "require", "otherwise": "auto"})


@pytest.mark.parametrize("when", [None, 5, True, ["amount > 1"]])
def test_a_condition_must_be_text(when: object) -> None:
    assert "write it as text" in refusal({"require_when": when})
    assert "write it as text" in refusal({"mode": "require", "when": when})


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("amount >", "something is missing"),
        ("amount = 5", "compare with =="),
        ("1000", "not a question"),
        ("[amount]", "not a question"),
        ("'text'", "not a question"),
        ("status == Done", "Done names no argument"),
        ("002 == 2", "002 names no argument"),
        ("not " * 60 + "a", "nested deeper"),
        ("a == " + "(b == " * 60 + "1" + ")" * 60, "nested deeper"),
        ("a in " + "[" * 60 + "]" * 60, "nested deeper"),
    ],
)
def test_a_bad_condition_is_found_when_the_rule_is_made(condition: str, reason: str) -> None:
    for raw in (
        {"require_when": condition},
        {"mode": "require", "when": condition},
        ApprovalRule(REQUIRE, condition),
    ):
        with pytest.raises(ConditionError, match=reason):
            read_rule(raw)


@given(rules)
def test_a_rule_survives_its_json(rule: ApprovalRule) -> None:
    kept = rule_from_json(rule_to_json(rule))
    assert rule_to_json(kept) == rule_to_json(rule)
    if rule.when is not None:
        assert kept == rule


def test_a_rule_has_one_spelling() -> None:
    assert rule_to_json(read_rule(True)) == {"mode": "REQUIRE_APPROVAL"}
    assert rule_to_json(read_rule({"require_when": "a > 1"})) == {
        "mode": "REQUIRE_APPROVAL",
        "when": "a > 1",
        "otherwise": "AUTO",
    }


@pytest.mark.parametrize(
    ("condition", "args", "expected"),
    [
        ("amount > 1000", {"amount": 1001}, True),
        ("amount > 1000", {"amount": 1000}, False),
        ("amount >= 1000", {"amount": 1000.0}, True),
        ("amount < 0.5", {"amount": 0}, True),
        ("amount <= 0.5", {"amount": 1}, False),
        ("args.amount > 1000", {"amount": 1001}, True),
        ("name < 'b'", {"name": "a"}, True),
        ('to in ["a", "b"]', {"to": "a"}, True),
        ('to in ["a", "b"]', {"to": "c"}, False),
        ('to not in ["a", "b"]', {"to": "c"}, True),
        ("to in []", {"to": "c"}, False),
        ("'@corp' in to", {"to": "x@corp"}, True),
        ("'x' in tags", {"tags": ["y", "x"]}, True),
        ("'amount' in args", {"amount": None}, True),
        ("'amount' in args", {}, False),
        ("n == 1", {"n": 1.0}, True),
        ("n != 1", {"n": 2}, True),
        ("urgent", {"urgent": True}, True),
        ("not urgent", {"urgent": True}, False),
        ("tags", {"tags": []}, False),
        ("true", {}, True),
        ("order.total > 5", {"order": {"total": 6}}, True),
        ("order.status == 'open'", {"order": {"status": "open"}}, True),
        ("order.items.1.price > 5", {"order": {"items": [{}, {"price": 6}]}}, True),
        ("args.args == 1", {"args": 1}, True),
        ("result == 1 and values.x == 2", {"result": 1, "values": {"x": 2}}, True),
        ("args.Done == 'x'", {"Done": "x"}, True),
        ("user-id == '7'", {"user-id": "7"}, True),
        ("金额 > 1000", {"金额": 2000}, True),
        ("a == [1, [2]]", {"a": [1, [2]]}, True),
        ("a == [1, [2]]", {"a": [1, [3]]}, False),
        ("a == [1]", {"a": [1, 2]}, False),
        ("a == b", {"a": {"x": 1}, "b": {"x": 1}}, True),
        ("a == b", {"a": {"x": 1}, "b": {"x": 2}}, False),
        ("a == b", {"a": {"x": 1}, "b": {"y": 1}}, False),
        ("(a > 1) == true", {"a": 2}, True),
        ("a > 1 and b > 1", {"a": 2, "b": 2}, True),
        ("a > 1 or b > 1", {"a": 1, "b": 1}, False),
    ],
)
def test_a_condition_is_judged_over_the_arguments(
    condition: str, args: dict[str, Any], expected: bool
) -> None:
    assert verdict(condition, **args) is expected
    assert verdict(f"not ({condition})", **args) is not expected


@pytest.mark.parametrize(
    ("condition", "args"),
    [
        ("amount > 1000", {}),
        ("amount > 1000", {"amount": None}),
        ("amount > 1000", {"amount": "1500"}),
        ("amount > 1000", {"amount": True}),
        ("amount > 1000", {"amount": [1500]}),
        ("amount > 1000", {"amount": {"value": 1500}}),
        ("tags < [1]", {"tags": [0]}),
        ("flag > false", {"flag": True}),
        ("flag == 1", {"flag": True}),
        ("flag != true", {"flag": 1}),
        ("amount == 1500", {"amount": "1500"}),
        ("amount != 1500", {}),
        ("amount != limit", {}),
        ("to in ['a', 'b']", {}),
        ("to in ['a', 'b']", {"to": 5}),
        ("to not in ['a', 'b']", {"to": None}),
        ("flag in [1]", {"flag": True}),
        ("'x' in to", {}),
        ("'x' in to", {"to": 5}),
        ("n in to", {"to": "12", "n": 1}),
        ("n in to", {"to": {"1": 1}, "n": 1}),
        ("a == [1]", {"a": ["1"]}),
        ("a == b", {"a": {"x": 1}, "b": {"x": "1"}}),
        ("urgent", {}),
        ("urgent", {"urgent": None}),
        ("order.total > 5", {}),
        ("order.total > 5", {"order": None}),
        ("order.total > 5", {"order": "6"}),
        ("order.total > 5", {"order": {"total": None}}),
        ("items.1 > 5", {"items": [6]}),
        ("items.first > 5", {"items": [6]}),
        ("(a > 1) == true", {}),
        ("amount > null", {"amount": 5}),
        ("a > 1 or b > 1", {"a": 1}),
        ("a > 1 and b > 1", {"a": 2}),
        ("a > 1 or not a > 1", {}),
        ("not (a > 1 and not (b > 1))", {"a": 2, "b": "2"}),
    ],
)
def test_nothing_is_concluded_from_what_is_absent_or_of_another_kind(
    condition: str, args: dict[str, Any]
) -> None:
    assert verdict(condition, **args) is None
    assert verdict(f"not ({condition})", **args) is None


def test_a_part_that_cannot_be_judged_does_not_hide_one_that_decides() -> None:
    assert verdict("absent > 1 or amount > 1000", amount=2000) is True
    assert verdict("absent > 1 and amount > 1000", amount=5) is False
    assert verdict("amount in [absent, 5]", amount=5) is True
    assert verdict("amount in [absent, 5]", amount=6) is None


def test_a_comparison_with_null_asks_about_absence_itself() -> None:
    for args in ({}, {"cc": None}):
        assert verdict("cc == null", **args) is True
        assert verdict("null != cc", **args) is False
    assert verdict("cc != null", cc="a") is True
    assert verdict("null == cc", cc="a") is False


@given(
    st.sampled_from(["a > 1", "a == 'x'", "a in [1, 'x']", "not a", "a == b or b", "a < b and a"]),
    st.dictionaries(st.sampled_from("ab"), values),
    values,
)
def test_a_verdict_never_depends_on_what_was_absent(
    condition: str, args: dict[str, Any], filled: Any
) -> None:
    before = verdict(condition, **args)
    after = verdict(condition, **{"a": filled, "b": filled, **args})
    assert before is None or after is before


def test_the_condition_chooses_between_the_two_modes() -> None:
    rule = read_rule({"mode": "disabled", "when": "amount > 1000", "otherwise": "require"})
    assert mode_of(rule, {"amount": 1001}) is DISABLED
    assert mode_of(rule, {"amount": 1000}) is REQUIRE
    assert mode_of(read_rule("auto"), {"amount": 1001}) is AUTO


@pytest.mark.parametrize(
    ("mode", "otherwise", "stricter"),
    [
        ("require", "auto", REQUIRE),
        ("auto", "require", REQUIRE),
        ("disabled", "auto", DISABLED),
        ("auto", "disabled", DISABLED),
        ("require", "disabled", DISABLED),
        ("disabled", "require", DISABLED),
    ],
)
@pytest.mark.parametrize("condition", ["amount > 1000", "not (amount > 1000)", "amount <= 1000"])
@pytest.mark.parametrize("args", [{}, {"amount": None}, {"amount": "1500"}, {"amount": True}])
def test_where_nobody_can_tell_the_stricter_mode_holds(
    mode: str, otherwise: str, stricter: ApprovalMode, condition: str, args: dict[str, Any]
) -> None:
    rule = read_rule({"mode": mode, "when": condition, "otherwise": otherwise})
    assert mode_of(rule, args) is stricter


def test_a_kept_condition_that_can_no_longer_be_read_is_taken_with_caution() -> None:
    kept = rule_from_json({"mode": "AUTO", "when": "amount ~ 5", "otherwise": "REQUIRE_APPROVAL"})
    assert mode_of(kept, {"amount": 5}) is REQUIRE


@given(rules, arguments)
def test_a_rule_always_says_one_of_its_two_modes(rule: ApprovalRule, args: dict[str, Any]) -> None:
    assert mode_of(rule, args) in (rule.mode, rule.otherwise)


def test_under_four_eyes_a_session_is_only_ever_stricter() -> None:
    def modes(own: Any, agent: dict[str, Any], session: dict[str, Any]) -> list[ApprovalMode]:
        rules: Any = {"agent": agent, "session": session, "four_eyes": True}
        return [
            mode_for("pay", {}, own=own, **rules),
            mode_for_helper(["pay"], {}, **rules),
        ]

    auto, require, disabled = RULES[AUTO], RULES[REQUIRE], RULES[DISABLED]
    assert modes(require, {}, {"pay": auto}) == [REQUIRE, AUTO]
    assert modes(None, {}, {"*": auto}) == [REQUIRE, AUTO]
    assert modes(require, {"pay": auto}, {}) == [AUTO, AUTO]
    assert modes(require, {"pay": auto}, {"pay": require}) == [REQUIRE, REQUIRE]
    assert modes(auto, {"pay": require}, {"pay": auto}) == [REQUIRE, REQUIRE]
    assert modes(auto, {"pay": disabled}, {"pay": auto}) == [DISABLED, DISABLED]


@pytest.mark.parametrize(
    ("raw", "lets"),
    [
        ("auto", True),
        ("require", False),
        ("disabled", False),
        ({"require_when": "amount > 1"}, True),
        ({"mode": "auto", "when": "amount > 1", "otherwise": "disabled"}, True),
        ({"mode": "require", "when": "amount > 1", "otherwise": "disabled"}, False),
    ],
)
def test_a_rule_that_may_let_calls_run_is_known(raw: Any, lets: bool) -> None:
    assert lets_run(read_rule(raw)) is lets


def test_the_session_speaks_over_the_agent_and_the_agent_over_the_tool() -> None:
    def mode(own: Any, agent: dict[str, Any], session: dict[str, Any]) -> ApprovalMode:
        return mode_for("pay", {}, own=own, agent=agent, session=session)

    auto, require = RULES[AUTO], RULES[REQUIRE]
    assert mode(require, {}, {}) is REQUIRE
    assert mode(require, {"pay": auto}, {}) is AUTO
    assert mode(auto, {"pay": require}, {}) is REQUIRE
    assert mode(auto, {"pay": auto}, {"pay": require}) is REQUIRE
    assert mode(require, {"pay": require}, {"*": auto}) is AUTO
    assert mode(require, {"other": auto}, {"other": auto}) is REQUIRE


def test_among_the_rules_of_one_owner_the_tools_name_wins_over_the_star() -> None:
    read_only = {"*": RULES[DISABLED], "look": RULES[AUTO]}
    assert mode_for("look", {}, own=RULES[REQUIRE], agent=read_only, session={}) is AUTO
    assert mode_for("pay", {}, own=RULES[REQUIRE], agent=read_only, session={}) is DISABLED
    assert mode_for("look", {}, own=RULES[REQUIRE], agent={}, session=read_only) is AUTO


def test_a_tool_that_nobody_declared_asks_a_person() -> None:
    assert mode_for("new", {}, own=None, agent={}, session={}) is REQUIRE
    assert mode_for("new", {}, own=None, agent={"old": RULES[AUTO]}, session={}) is REQUIRE
    assert mode_for("new", {}, own=None, agent={"new": RULES[AUTO]}, session={}) is AUTO
    assert mode_for("new", {}, own=None, agent={}, session={"*": RULES[DISABLED]}) is DISABLED


def test_what_is_disabled_for_some_arguments_stays_so_whatever_others_say() -> None:
    own = read_rule({"mode": "disabled", "when": "amount > 1000", "otherwise": "auto"})
    everything = {"*": RULES[AUTO], "pay": RULES[AUTO]}
    for args in ({"amount": 5000}, {}):
        assert mode_for("pay", args, own=own, agent=everything, session=everything) is DISABLED
    assert mode_for("pay", {"amount": 5}, own=own, agent={}, session={"pay": RULES[REQUIRE]}) is (
        REQUIRE
    )


owners = st.dictionaries(st.sampled_from(["pay", "*"]), rules)


@given(st.none() | rules, owners, owners, arguments)
def test_nobody_enables_what_another_has_disabled(
    own: ApprovalRule | None, agent: Any, session: Any, args: dict[str, Any]
) -> None:
    nearest_rules = [own, agent.get("pay", agent.get("*")), session.get("pay", session.get("*"))]
    said = [mode_of(rule, args) for rule in nearest_rules if rule]
    mode = mode_for("pay", args, own=own, agent=agent, session=session)
    assert (mode is DISABLED) is (DISABLED in said)
    assert mode is not AUTO or AUTO in said


def test_a_grant_is_for_one_version_of_one_tool() -> None:
    assert fits(grant(), "pay", "v1", {}, 1.0)
    assert not fits(grant(), "pay", "v2", {}, 1.0)
    assert not fits(grant(), "refund", "v1", {}, 1.0)


def test_a_grant_lapses_at_its_moment() -> None:
    assert fits(grant(expires_at=10.0), "pay", "v1", {}, 9.9)
    assert not fits(grant(expires_at=10.0), "pay", "v1", {}, 10.0)


def test_a_grant_is_used_up() -> None:
    once = grant(uses=1)
    assert fits(once, "pay", "v1", {}, 1.0)
    assert spend(once) == grant(uses=0)
    assert not fits(spend(once), "pay", "v1", {}, 1.0)
    assert not fits(spend(spend(once)), "pay", "v1", {}, 1.0)
    assert spend(grant()) == grant()


def test_named_arguments_are_bound_and_the_others_free() -> None:
    assert covers({"to": "a"}, to="a", amount=5)
    assert not covers({"to": "a"}, amount=5)
    assert not covers({"to": None})
    assert covers({"to": None}, to=None)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (0, False, False),
        (0, None, False),
        (1, "1", False),
        ("1", 1, False),
        ("a", ["a"], False),
        ([1, "a"], [1.0, "a"], True),
        ([1, "a"], ["a", 1], False),
        ([1], [True], False),
        (["*"], ["anything"], False),
        (["*"], ["*"], True),
        ([{"a": 1}], [{"a": 1, "b": 2}], False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": {"b": "x*"}}, {"a": {"b": "xy", "c": 1}}, True),
        ({"a": {"b": "x*"}}, {"a": {"b": "yx"}}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, [1], False),
        ({}, None, False),
    ],
)
def test_values_are_compared_as_json(pattern: Any, value: Any, expected: bool) -> None:
    assert covers({"x": pattern}, x=value) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*", "", True),
        ("*", "two\nlines", True),
        ("*@corp", "will@corp", True),
        ("*@corp", "will@corp.evil", False),
        ("/srv/*", "/srv/a", True),
        ("/srv/*", "/etc/srv/a", False),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "acb", False),
        ("a*x*c", "abc", False),
        ("a*a", "a", False),
        ("ab*b*bc", "abbc", False),
        ("a**b", "ab", True),
        ("", "", True),
        ("", "a", False),
        (".?[a]", ".?[a]", True),
        (".*", "a", False),
        ("a?", "ab", False),
        ("A*", "ab", False),
        (r"\*", "*", True),
        (r"\*", "a", False),
        (r"\*", r"\*", False),
        (r"\\*", r"\*", True),
        (r"2\**", "2*3", True),
        (r"2\**", "213", False),
        (r"C:\dir", r"C:\dir", True),
    ],
)
def test_a_star_stands_for_any_text_and_nothing_else_is_special(
    pattern: str, text: str, expected: bool
) -> None:
    assert covers({"x": pattern}, x=text) is expected


@pytest.mark.parametrize("value", [None, 1, True, [], ["a"], {}, {"a": "b"}])
def test_a_star_stands_for_texts_only(value: Any) -> None:
    assert not covers({"x": "*"}, x=value)


def test_many_stars_over_a_long_text_take_no_time() -> None:
    assert not covers({"x": "*a" * 2_000 + "*b"}, x="a" * 20_000)


def test_the_pattern_of_some_arguments_names_them_literally() -> None:
    args = {"to": "a*", "amount": 5, "more": {"note": "*"}}
    assert pattern_of(args) == {"to": r"a\*", "amount": 5, "more": {"note": r"\*"}}


@given(arguments)
def test_the_pattern_of_some_arguments_fits_them(args: dict[str, Any]) -> None:
    assert covers(pattern_of(args), **args)


@given(arguments, st.data())
def test_a_changed_argument_does_not_fit(args: dict[str, Any], data: st.DataObject) -> None:
    assume(args)
    name = data.draw(st.sampled_from(sorted(args)))
    other = data.draw(values.filter(lambda value: not isinstance(value, dict)))
    assume(not equal(other, args[name]))
    assert not covers(pattern_of(args), **{**args, name: other})


@given(arguments, st.data())
def test_an_argument_left_out_does_not_fit(args: dict[str, Any], data: st.DataObject) -> None:
    assume(args)
    left_out = data.draw(st.sampled_from(sorted(args)))
    rest = {name: value for name, value in args.items() if name != left_out}
    assert not covers(pattern_of(args), **rest)


@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, min_size=3, max_size=3))
def test_whatever_stands_where_the_stars_are_fits(pieces: list[str], between: list[str]) -> None:
    # A literal backslash before a star would escape it, so no piece ends with one.
    plain = [piece.rstrip("\\") for piece in pieces]
    pattern = "*".join(pattern_of({"x": piece})["x"] for piece in plain)
    text = plain[0] + "".join(a + b for a, b in zip(between, plain[1:], strict=False))
    assert covers({"x": pattern}, x=text)


def test_the_best_grant_costs_no_use_then_lapses_first_then_has_the_smallest_id() -> None:
    free = grant(grant_id="z")
    soon = grant(grant_id="y", uses=1, expires_at=5.0)
    later = grant(grant_id="b", uses=1, expires_at=6.0)
    never, twin = grant(grant_id="a", uses=9), grant(grant_id="c", uses=1)
    other = grant(grant_id="0", version="v0")

    def chosen(*grants: Grant) -> Grant | None:
        forwards = best(grants, "pay", "v1", {}, 1.0)
        assert best(reversed(grants), "pay", "v1", {}, 1.0) == forwards
        return forwards

    assert chosen(never, soon, free, later, other) == free
    assert chosen(never, soon, later, other) == soon
    assert chosen(never, later) == later
    assert chosen(twin, never) == never
    assert chosen(other) is None
    assert chosen() is None


SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "order": {"type": "object", "properties": {"total": {"type": "number"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "extra": {"type": "object"},
        "anything": True,
    },
}


def complaints(pattern: dict[str, Any], schema: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidAnswer) as caught:
        check_pattern(pattern, schema)
    assert all(field in str(caught.value) for field in caught.value.fields)
    return caught.value.fields


def test_a_pattern_names_what_the_tool_has() -> None:
    check_pattern({}, SCHEMA)
    check_pattern({"amount": 5, "order": {"total": 5}}, SCHEMA)
    check_pattern({"labels": {"a": "*"}, "extra": {"b": 1}, "anything": {"c": 1}}, SCHEMA)
    check_pattern({"whatever": 1}, {"type": "object", "additionalProperties": True})


def test_every_name_that_the_tool_lacks_is_told_with_a_remedy() -> None:
    assert complaints({"amont": 5, "who": 1, "order": {"totl": 5}, "amount": 1}, SCHEMA) == {
        "amont": "the tool has no argument amont: did you mean amount?",
        "who": "the tool has no argument who: it has amount, order, labels, extra, anything",
        "order.totl": "the tool has no argument totl: did you mean total?",
    }
    assert complaints({"who": 1}, {}) == {"who": "the tool has no argument who: it has none"}
