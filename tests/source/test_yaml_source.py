from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml.scanner import Scanner

from holdfast.source import yaml
from holdfast.source.nodes import (
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unreadable,
    plain_value,
    scalar_value,
)
from holdfast.source.parser_messages import parser_message
from holdfast.source.yaml import MAX_BYTES, MAX_DEPTH, MAX_NODES, Document, read_document


def read(text: str) -> Node:
    document = read_document(text, "plan.yaml")
    assert document.problems == ()
    assert document.root is not None
    return document.root


def problem(text: str) -> tuple[str, int, int]:
    """The only problem of a text: its message, line and column."""
    document = read_document(text, "plan.yaml")
    (only,) = document.problems
    assert only.file == "plan.yaml"
    return only.message, only.line, only.column


def test_every_node_knows_its_line_and_column() -> None:
    root = read("a: 1\nb:\n  - x\n  - {c: 'd'}\n")
    assert isinstance(root, Mapping)
    (a, one), (_, items) = root.entries
    assert (a, one) == (Scalar("a", "", 1, 1), Scalar("1", "", 1, 4))
    assert isinstance(items, Sequence)
    assert (items.line, items.column) == (3, 3)
    x, inner = items.items
    assert x == Scalar("x", "", 3, 5)
    assert inner == Mapping(((Scalar("c", "", 4, 6), Scalar("d", "'", 4, 9)),), 4, 5)


def test_a_scalar_keeps_its_source_text_so_that_010_is_not_8() -> None:
    assert read("010") == Scalar("010", "", 1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("7", 7),
        ("-12", -12),
        ("+3", 3),
        ("0", 0),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30:00", "12:30:00"),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("01.5", "01.5"),
        (".", "."),
        ("-", "-"),
        ("e5", "e5"),
        ("2025-10-14", "2025-10-14"),
        ("9223372036854774784", 9223372036854774784),
        ("٣", "٣"),
    ],
)
def test_plain_scalars_mean_what_yaml_1_2_says_except_leading_zeros(
    text: str, value: object
) -> None:
    read_value = plain_value(text)
    assert read_value == value
    assert type(read_value) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "1e999", "9" * 25, "-" + "9" * 5000])
def test_numbers_that_json_does_not_know_are_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="quote it"):
        plain_value(text)


def test_quoted_scalars_are_always_text() -> None:
    assert scalar_value(Scalar("1", '"', 1, 1)) == "1"
    assert scalar_value(Scalar("1", "", 1, 1)) == 1


def test_only_an_unquoted_nothing_is_null() -> None:
    assert Scalar("null", "", 1, 1).is_null
    assert not Scalar("null", "'", 1, 1).is_null
    assert not Scalar("nil", "", 1, 1).is_null


def test_a_value_that_is_not_there_stands_where_its_key_does() -> None:
    root = read("a:\n\n\nb: ''\n")
    assert isinstance(root, Mapping)
    assert [value for _, value in root.entries] == [Scalar("", "", 1, 1), Scalar("", "'", 4, 4)]


def test_a_duplicate_key_is_a_problem_and_the_first_one_counts() -> None:
    document = read_document("a: 1\nb: 2\na: 3\n", "f")
    assert [str(one) for one in document.problems] == [
        "f:3:1: the key 'a' appears twice, first on line 1"
    ]
    assert isinstance(document.root, Mapping)
    assert document.root.entries[0] == (Scalar("a", "", 1, 1), Scalar("1", "", 1, 4))


def test_mistakes_that_leave_the_tree_readable_do_not_hide_each_other() -> None:
    text = 'a: !!python/name:os.system x\n<<: {b: 1}\n? [c]\n: 2\nd: "\\ud800"\nd: 2\n'
    places = [(one.line, one.column) for one in read_document(text, "f").problems]
    assert places == [(1, 4), (2, 1), (3, 3), (5, 4), (6, 1)]


def test_a_quoted_merge_sign_is_an_ordinary_key() -> None:
    root = read('"<<": 1')
    assert isinstance(root, Mapping)
    assert root.entries[0][0].text == "<<"


def test_half_a_surrogate_pair_never_gets_further() -> None:
    root = read_document('"\\ud800"', "f").root
    assert isinstance(root, Scalar)
    assert root.text == "?"


def test_the_character_that_no_database_keeps_is_a_problem() -> None:
    read_ = read_document('a: "x\\0y"\n"b\\0": 1', "f")
    assert [one.line for one in read_.problems] == [1, 2]
    assert all("U+0000" in one.message for one in read_.problems)


def test_an_alias_stands_for_what_its_anchor_names() -> None:
    root = read("a: &retry {attempts: 5}\nb: *retry\nc: *retry\n")
    assert isinstance(root, Mapping)
    values = [value for _, value in root.entries]
    assert values[0] == values[1] == values[2]


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    text = "\n".join(lines)
    assert len(text) < 400
    message, line, _ = problem(text)
    assert "expand to too much" in message
    assert line == 5


def test_aliases_cannot_reach_beyond_the_depth_limit() -> None:
    half = "[" * (MAX_DEPTH - 5) + "]" * (MAX_DEPTH - 5)
    assert "expand to too much" in problem(f"a: &a {half}\nb: [[[[[[*a]]]]]]\n")[0]
    read(f"a: &a {half}\nb: [*a]\n")


def test_an_alias_must_name_an_anchor_that_is_complete() -> None:
    assert problem("a: *x") == ("the alias *x names no anchor above it", 1, 4)
    assert problem("a: &x [*x]") == ("the alias *x stands inside what it names", 1, 8)


@pytest.mark.parametrize("sign", ["[", "{", "- ", "? ", "{a: ", "[{"])
def test_deep_nesting_is_refused_before_it_is_scanned(
    sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = []
    fetch = Scanner.fetch_more_tokens
    monkeypatch.setattr(Scanner, "fetch_more_tokens", lambda s: scanned.append(1) or fetch(s))
    message, line, _ = problem(sign * (4000 // len(sign)))
    assert message == f"nested more than {MAX_DEPTH} levels deep; flatten it"
    assert line == 1
    assert len(scanned) < 10 * MAX_DEPTH


def test_nesting_up_to_the_limit_is_fine() -> None:
    read("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert "nested more than" in problem("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))[0]


def test_a_large_file_is_refused_unread() -> None:
    assert "larger than 1000000 bytes" in problem("#" + "é" * (MAX_BYTES // 2))[0]
    read("a #" + "x" * (MAX_BYTES - 3))


@pytest.mark.parametrize("item", ["1,\n", "{},\n", "*a,\n", "a: b,\n"])
def test_more_values_than_may_be_are_not_scanned_to_the_end(
    item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml, "MAX_NODES", 100)
    scanned = []
    fetch = Scanner.fetch_more_tokens
    monkeypatch.setattr(Scanner, "fetch_more_tokens", lambda s: scanned.append(1) or fetch(s))
    message, line, _ = problem("- &a 1\n- [\n" + item * 2_000 + "]")
    assert message == "there are more than 100 values; split the plan into sub-plans"
    assert 25 < line < 110
    assert len(scanned) < 1_000


@pytest.mark.uncounted
def test_as_many_values_as_may_be_are_read() -> None:
    assert MAX_NODES >= 55_000, "what the longest plan of 500,000 characters has"
    read("- a\n" * (MAX_NODES - 1))


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff"])
def test_an_empty_file_is_a_problem(text: str) -> None:
    assert problem(text) == ("the file is empty; a plan was expected", 1, 1)


def test_one_file_is_one_document() -> None:
    assert problem("a: 1\n---\nb: 2\n") == ("a second document; write one plan per file", 2, 1)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1, 2\nb: 3", (2, 2)),
        ("a: 1\n  b: 2", (2, 4)),
        ("a: 'x", (1, 6)),
        ("a: b\n\t- c", (2, 1)),
        ("%YAML 2.0\n--- a", (1, 1)),
    ],
)
def test_broken_syntax_has_a_place(text: str, place: tuple[int, int]) -> None:
    message, *found = problem(text)
    assert message.startswith("not valid YAML: ")
    assert tuple(found) == place


@pytest.mark.parametrize(
    "escape", ['"\\UFFFFFFFF"', '"\\U00110000"', "%YAML " + "9" * 5000 + ".1\n---\na"]
)
def test_what_ruamel_lets_escape_is_caught(escape: str) -> None:
    assert "out of range" in problem(escape)[0]


def test_an_out_of_range_escape_is_placed_after_the_last_thing_read() -> None:
    assert problem('a: 1\nb: c\nd: "\\UFFFFFFFF"')[1:] == (3, 1)


def test_an_unprintable_character_is_named_with_its_place() -> None:
    message = "the character U+0007 is not allowed in a plan; remove it"
    assert problem("a: 1\nb: x\x07y") == (message, 2, 5)
    assert problem("\x07")[1:] == (1, 1)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *"[]{}:,-?&*!|>'\"%@` \n\t#ab01.\\~<=\r",
                *("\u2028", "\ufeff", "\x00", "\ud800"),
                *("---\n", "...\n", "- ", ": ", "? ", "&a ", "*a", "!!str ", "%YAML 1.1\n", "<<: "),
                *("%TAG ! x\n", "\\ud800", "\\UFFFFFFFF", '"\\x', "|2\n", ">-\n", "!<", "%ff"),
            ]
        ),
        max_size=40,
    ).map("".join)
    | st.text()
)
@example("a: &x\n*x : 1")
def test_no_text_brings_the_reader_down(text: str) -> None:
    document = read_document(text, "f")
    assert isinstance(document, Document)
    assert document.root is not None or document.problems
    assert all(one.line >= 1 and one.column >= 1 for one in document.problems)


def test_what_a_newer_parser_may_say_stays_as_it_is() -> None:
    assert parser_message("something that no parser has said yet") == (
        "something that no parser has said yet"
    )
