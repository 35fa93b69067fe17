"""A message is its English text wherever a text is wanted, and stays a message on the way."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from dataclasses import asdict

import pytest

from holdfast.errors import ConditionError, InvalidValue, NotFound, PlanRejected, Problem
from holdfast.i18n.catalogue import said
from holdfast.i18n.message import Message, joined, msg, nmsg, pmsg, recalled, span, term

REQUIRED = msg("this is required: please fill it in")


def test_a_message_is_its_english_text() -> None:
    message = msg("at most {n:,} characters are taken", n=1_000)
    assert message == "at most 1,000 characters are taken"
    assert json.dumps({"why": message}) == '{"why": "at most 1,000 characters are taken"}'
    assert {message: 1}["at most 1,000 characters are taken"] == 1


def test_an_error_keeps_its_message() -> None:
    assert said(str(NotFound(REQUIRED)), "zh") == "此项必填，请填写"
    value = InvalidValue(msg("nested too deep: flatten it"), "$.a")
    assert str(value) == "$.a: nested too deep: flatten it"
    assert said(str(value), "zh") == "$.a：嵌套太深：请减少层级"
    plan = PlanRejected([Problem(REQUIRED, "plan.yaml", 1, 2), Problem("no message of ours")])
    assert said(str(plan), "zh").split("\n") == [
        "plan.yaml:1:2：此项必填，请填写",
        "<plan>:0:0：no message of ours",
    ]
    condition = ConditionError(msg("compare with =="), 3, "  a = b\n    ^")
    assert said(str(condition), "zh") == "比较请用 ==\n  a = b\n    ^"


@pytest.mark.parametrize("copied", [deepcopy, lambda one: pickle.loads(pickle.dumps(one)), str])
def test_a_copy_of_a_message_is_a_message(copied: type[str]) -> None:
    again = copied(msg("no answer within {n} s", n=5))
    assert isinstance(again, Message)
    assert (again.id, again.params) == ("no answer within {n} s", {"n": 5})
    assert again == "no answer within 5 s"
    held = asdict(Problem(REQUIRED))["message"]
    assert isinstance(held, Message)


def test_a_message_takes_another_as_a_parameter() -> None:
    told = msg("{demand}; got {value}", demand=msg("give {what}", what=msg("a number")), value="x")
    assert told == "give a number; got x"
    assert said(told, "zh") == "请填写数字；收到的是 x"


def test_messages_are_joined_with_the_separator_of_the_language() -> None:
    several = joined("; ", [REQUIRED, "the printer is on fire"])
    assert several == "this is required: please fill it in; the printer is on fire"
    assert said(several, "zh") == "此项必填，请填写；the printer is on fire"


@pytest.mark.parametrize("value", [REQUIRED.upper(), "{by} {0} {{x}}", "a\nb", "a number", "; "])
def test_a_value_stays_a_value(value: str) -> None:
    told = msg("{name} has no value; write one or remove the key", name=value)
    assert told == f"{value} has no value; write one or remove the key"
    assert said(told, "zh") == f"{value} 没有值；请填写或删除这个键"


def test_a_word_that_the_catalogue_does_not_have_stays() -> None:
    assert said(term("a number"), "zh") == "数字"
    assert said(term("frobnicate"), "zh") == "frobnicate"


def test_a_text_that_reads_as_a_message_is_taken_for_it() -> None:
    """Records have had no ids; a few words in lower case are an author's, though."""
    assert said(str.__str__(REQUIRED), "zh") == "此项必填，请填写"
    assert said("this is required: please fill it in\nNow!", "zh") == "此项必填，请填写\nNow!"
    assert said("a list", "zh") == "a list"
    assert said("no answer within {n} s", "zh") == "no answer within {n} s"
    assert said("", "zh") == ""


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (12.4, "12 s", "12 秒"),
        (-3, "0 s", "0 秒"),
        (75, "1 min 15 s", "1 分 15 秒"),
        (3_700, "1 h 1 min", "1 小时 1 分"),
        (90_000, "1 d 1 h", "1 天 1 小时"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, english: str, chinese: str) -> None:
    assert span(seconds) == english
    assert said(span(seconds), "zh") == chinese
    assert said(msg("in {span}", span=span(seconds)), "zh") == f"{chinese}后"


def test_one_and_many() -> None:
    counted = [nmsg("{n} task", "{n} tasks", n) for n in (0, 1, 2)]
    assert counted == ["0 tasks", "1 task", "2 tasks"]
    assert [said(one, "zh") for one in counted] == ["0 个任务", "1 个任务", "2 个任务"]


def test_the_same_english_is_said_otherwise_in_another_context() -> None:
    assert pmsg("drawing", "cancelling") == term("cancelling") == "cancelling"
    assert said(pmsg("drawing", "cancelling"), "zh") == "取消中"
    assert said(term("cancelling"), "zh") == "正在取消"
    assert said(pmsg("elsewhere", "the printer is on fire"), "zh") == "the printer is on fire"


def test_a_text_of_a_record_is_a_message_again_inside_another_one() -> None:
    told = msg("{told}: {reason}", told="L001", reason=recalled(str.__str__(REQUIRED)))
    assert said(told, "zh") == "L001：此项必填，请填写"
    for other in ("a list", "on fire {now}", "one }\ntwo", "Total"):
        assert said(recalled(other), "zh") == other
