"""Ids that callers choose."""

from __future__ import annotations

import pytest

from holdfast.errors import AuthorError, InvalidAnswer
from holdfast.language.ids import chosen_id, tool_name


@pytest.mark.parametrize(
    "one",
    [
        "9f1c2d3e-4b5a-4c6d-8e7f-0a1b2c3d4e5f",
        "7",
        "talk",
        "session-123",
        "x" * 64,
        "conv",
        "conv_",
        "conv_x",
        "chat_7a",
        "inst000001",
    ],
)
def test_an_id_that_is_not_given_out_may_be_chosen(one: str) -> None:
    assert chosen_id(one, "session", "session_id") == one


@pytest.mark.parametrize("series", ["inst", "chat", "conv"])
@pytest.mark.parametrize("number", ["_000001", "_7", "_1000001", "_000001_L002"])
def test_an_id_that_is_given_out_may_not(series: str, number: str) -> None:
    with pytest.raises(InvalidAnswer, match="no id for a new session") as refused:
        chosen_id(series + number, "session", "session_id")
    assert refused.value.fields == {"session_id": "not usable"}


@pytest.mark.parametrize(
    "one",
    [
        "c\u043env_000001",
        "ch\u03b1t-7",
        "c\u00f6nv_000001",
        "c\uff4fnv_000001",
        "conv\u0661\u0430",
        "inst\u1d07",
    ],
)
def test_nor_one_that_looks_like_another(one: str) -> None:
    with pytest.raises(InvalidAnswer, match="none that look like others"):
        chosen_id(one, "session", "session_id")


@pytest.mark.parametrize("one", ["a-\u5f20\u4e09", "caf\u00e9", "7-\u0434\u0430"])
def test_letters_of_other_languages_may_be_chosen(one: str) -> None:
    assert chosen_id(one, "session", "session_id") == one


@pytest.mark.parametrize("bad", ["", "a.b", "inst_000001.L001.1", "x" * 65, "-a", "a b", "a\n"])
def test_nor_what_is_no_id(bad: str) -> None:
    with pytest.raises(InvalidAnswer, match="no id for a new conversation"):
        chosen_id(bad, "conversation", "conversation_id")


@pytest.mark.parametrize(
    "one",
    ["pay", "_pay", "mcp:files/read.text", "get-user.v2", "付款", "pay_付款", "9pay", "x" * 128],
)
def test_a_tool_may_have_a_name_of_letters_of_one_alphabet(one: str) -> None:
    assert tool_name(one) == one


@pytest.mark.parametrize(
    "one",
    [
        "",
        "nothing. This option is harmless",
        "pay\n",
        "pay\x1b[2J",
        "pay\u202eyap",
        "pay\u200b",
        "p\u0430y",
        "\uff50\u0430\uff59",
        ".pay",
        "<lambda>",
        "付款，不执行",
        "x" * 129,
    ],
)
def test_what_reads_as_more_than_a_name_is_no_tool(one: str) -> None:
    with pytest.raises(AuthorError, match=r"is no name for a tool: .* give it one with name="):
        tool_name(one)
