"""What came of a session, for whoever handed it the work."""

from __future__ import annotations

import pytest
from react_machine import PERMANENT, Chat, begun

from holdfast.core.agent.state import result as result_of
from holdfast.model import commands as c
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json


def answered(text: str, chat: Chat | None = None) -> dict[str, Json]:
    chat = chat or begun()
    chat.reply(text)
    return result_of(chat.state)


def after(tool: str, word: c.Outcome) -> Chat:
    chat = begun()
    chat.calls(chat.want(tool))
    chat.report(chat.out("c1"), word)
    return chat


def test_an_answer_in_words_is_a_success() -> None:
    assert answered("Done.") == {"answer": "Done.", "tools": {}, "success": True}


@pytest.mark.parametrize("text", ['{"order": 7}', '```json\n{"order": 7}\n```', '  {"order": 7}\n'])
def test_an_answer_that_is_an_object_is_a_result_with_its_fields(text: str) -> None:
    result = answered(text)
    assert (result["order"], result["success"], result["answer"]) == (7, True, text)


@pytest.mark.parametrize("text", ["{no json", '{"n": NaN}', '{"a":' * 200_000])
def test_an_answer_that_only_looks_like_an_object_is_words(text: str) -> None:
    assert answered(text) == {"answer": text, "tools": {}, "success": True}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"success": false, "error": "no stock"}', "no stock"),
        ('{"success": false}', '{"success": false}'),
    ],
)
def test_a_model_may_say_that_it_failed(text: str, error: str) -> None:
    result = answered(text)
    assert (result["success"], result["error"]) == (False, error)


def test_what_each_tool_last_returned_is_told() -> None:
    chat = begun()
    chat.calls(chat.want("look"), chat.want("look"), chat.want("keyed"))
    for step_id, result in (("c1", 1), ("c2", 2), ("c3", 3)):
        chat.returns(step_id, result)
    assert answered("Done.", chat)["tools"] == {"look": 2, "keyed": 3}


def test_no_model_talks_a_failed_last_call_into_a_success() -> None:
    result = answered('{"success": true}', after("look", PERMANENT))
    assert (result["success"], result["error"]) == (False, "no such thing")
    assert "error_class" not in result


def test_what_a_person_refused_is_not_tried_again_by_itself() -> None:
    chat = begun()
    chat.calls(chat.want("pay", amount=5))
    chat.answer("reject", "too much")
    result = answered("It is paid.", chat)
    assert (result["success"], result["error"]) == (False, "too much")
    assert result["error_class"] == "forbidden"


@pytest.mark.parametrize(
    ("content", "error"),
    [("plain words", "plain words"), ({"code": 7}, "the last call failed")],
)
def test_the_reason_is_whatever_the_tool_said(content: Json, error: str) -> None:
    failure = Failure(FailureKind.PERMANENT, "x")
    chat = after("look", c.Failed(failure, result=content))
    assert answered("Done.", chat)["error"] == error


def test_a_failure_that_was_made_good_is_a_success() -> None:
    chat = after("look", PERMANENT)
    chat.calls(chat.want("look"))
    chat.returns("c2", "seen")
    assert answered("Seen.", chat)["success"] is True


def test_an_earlier_turn_does_not_count() -> None:
    chat = after("look", PERMANENT)
    chat.reply("It failed.")
    chat.say("Never mind.")
    assert answered("Fine.", chat) == {"answer": "Fine.", "tools": {}, "success": True}


def looking(*results: Json) -> Chat:
    chat = begun(only=("look", "shut"))
    for number, result in enumerate(results, 1):
        chat.calls(chat.want("look"))
        chat.returns(f"c{number}", result)
    return chat


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (({"found": True},), "verified"),
        (({"found": True}, {"success": False}), "failed"),
        (("words",), "verified"),
        ((), "unable_to_verify"),
    ],
)
def test_one_who_only_looks_gives_a_verdict(results: tuple[Json, ...], verdict: str) -> None:
    result = answered("All is well.", looking(*results))
    assert (result["verdict"], result["success"]) == (verdict, verdict != "failed")


def test_a_look_that_failed_or_was_refused_verifies_nothing() -> None:
    chat = looking({"found": True})
    chat.calls(chat.want("shut"))
    assert answered("All is well.", chat)["verdict"] == "unable_to_verify"
