"""Mentions: a foreign text selects among names that are known, and adds none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.i18n.message import joined, msg
from holdfast.repair.mentions import (
    cited,
    field_names,
    likeness,
    mentioned,
    named,
    said,
    stems,
)

NAMES = ("to", "name", "employee_id", "amount", "md5")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("employee_id", ("employee_id",)),
        ("缺少employee_id参数", ("employee_id",)),
        ("amount must be a number above 0", ("amount",)),
        ("pay: amount: too large; name is missing", ("name", "amount")),
        ("unexpected argument 'name'", ("name",)),
        ("“to” is no address", ("to",)),
        ("the md5 differs", ("md5",)),
        ("name 不能为空", ("name",)),
        ("give it to the right amount of people by name", ()),
        ("to whom it may concern", ()),
        ("rename(amounts)", ()),
        ("'name of the game'", ()),
        ("name'", ()),
        ("", ()),
    ],
)
def test_words_of_everyday_language_are_named_only_where_a_clause_is_about_them(
    text: str, found: tuple[str, ...]
) -> None:
    assert named("", text, NAMES) == found


def test_the_field_of_an_error_names_by_any_part_of_its_path() -> None:
    assert named("body.args.to", "no", NAMES) == ("to",)
    assert named("/permissions/0/name", "", NAMES) == ("name",)
    assert field_names("") == []


def test_long_enough_words_are_mentioned_wherever_they_stand() -> None:
    assert mentioned("the amount to name", NAMES) == ("name", "amount")
    assert mentioned("x" * 3_000 + " amount", NAMES) == ()


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("WZ001", "HR has no employee 'WZ001'", True),
        ("张三", "没有员工张三的档案", True),
        (4711, "no order 4711", True),
        ("WZ001", "HR has no employee WZ0011", False),
        ("a", "a profile", False),
        (True, "True", False),
        (None, "None", False),
        (["WZ001"], "WZ001", False),
        ("", "anything", False),
        ("w" * 101, "w" * 101, False),
    ],
)
def test_a_value_is_cited_where_it_stands_as_a_whole(value: Any, text: str, found: bool) -> None:
    assert cited(text, {"x": value}) == (("x",) if found else ())


def test_a_tool_is_like_a_text_that_repeats_the_words_of_its_name() -> None:
    assert likeness("apply_computer", "apply for the computers first") == 1
    assert likeness("create_employee_profile", "HR has no employee: create the profile") == 1
    assert likeness("send_email", "create the profile first") == 0
    assert likeness("do", "do") == 0
    assert stems("Applying for") == {"apply", "for"}


def test_what_others_said_in_a_message_of_ours_is_told_apart() -> None:
    words = "HR has no employee"
    told = msg(
        "{tool}: {host} answered {status}: {reason}", tool="a", host="b", status=409, reason=words
    )
    assert said(told) == words
    assert said(joined("; ", [told, "more"])) == f"{words}; more"
    assert said("plainly theirs") == "plainly theirs"
    ours = msg("{tool}: {host} could not be reached", tool="a", host="b")
    assert said(ours) == "a: b could not be reached"


@given(st.text(max_size=200), st.text(max_size=40), st.lists(st.text(max_size=12), max_size=5))
def test_whatever_a_text_says_only_known_names_are_found(
    text: str, field: str, names: list[str]
) -> None:
    assert set(named(field, text, names)) <= set(names)
    assert set(mentioned(text, names)) <= set(names)
    assert 0 <= likeness("create_profile", text) <= 1
