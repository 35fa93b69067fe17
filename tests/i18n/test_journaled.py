"""A message stays one in the journal, beside the English text that an older release reads."""

from __future__ import annotations

import json

from holdfast.i18n.catalogue import said
from holdfast.i18n.journaled import beside, restored
from holdfast.i18n.message import Message, joined, msg
from holdfast.journal.codec import decode, encode
from holdfast.journal.port import Record
from holdfast.model.events import ListenerFailed, OutcomeLost, PlannerGaveUp
from holdfast.model.recorded import Event
from holdfast.model.retry import Failure, FailureKind

REASON = msg("no answer within {n:g} s", n=5.0)
SHORT = msg("leave this out of drafts")
GAVE_UP = msg("{id} failed: {reason}", id="L001", reason=joined("; ", [REASON, "and a tool's"]))


def again(event: Event) -> Event:
    kind, payload = encode(event)
    return decode(Record(1, 0.0, kind, payload))


def test_a_failure_is_read_in_the_readers_language_after_it_was_stored() -> None:
    read = again(PlannerGaveUp(GAVE_UP, ("L001",)))
    assert isinstance(read, PlannerGaveUp)
    assert read.message == "L001 failed: no answer within 5 s; and a tool's"
    assert said(read.message, "zh") == "L001 失败：5 秒内没有回复；and a tool's"
    inner = again(ListenerFailed("L001", 1, Failure(FailureKind.UNKNOWN, REASON)))
    assert isinstance(inner, ListenerFailed)
    assert said(inner.failure.message, "zh") == "5 秒内没有回复"


def test_the_english_text_is_stored_too_and_a_plain_text_alone() -> None:
    body = json.loads(encode(OutcomeLost("L001", 1, REASON))[1])
    assert body["reason"] == "no answer within 5 s"
    assert body["messages"] == [[["reason"], "no answer within {n:g} s", {"n": 5.0}]]
    assert "messages" not in json.loads(encode(OutcomeLost("L001", 1, "on fire"))[1])


def test_a_message_without_parameters_stays_one_too() -> None:
    payload = encode(OutcomeLost("L001", 1, SHORT))[1]
    assert json.loads(payload)["messages"] == [[["reason"], SHORT, {}]]
    read = again(OutcomeLost("L001", 1, SHORT))
    assert isinstance(read, OutcomeLost)
    assert said(msg("{place}: {problem}", place="L001", problem=read.reason), "zh") == (
        f"L001：{said(SHORT, 'zh')}"
    )
    assert said(SHORT, "zh") != SHORT


def test_messages_at_any_depth_are_put_back_and_nothing_else() -> None:
    asked = {"options": ({"label": SHORT, "id": "a"}, {"label": "a person's"}), "left": "as it is"}
    body = beside(json.dumps({"asked": asked}), {"asked": asked})
    read = restored({"asked": asked | {"options": ({"label": str.__str__(SHORT)}, {})}}, body)
    assert isinstance(read["asked"]["options"][0]["label"], Message)
    assert read["asked"]["left"] == "as it is"
    gone = restored({"asked": {"left": "as it is"}}, body)
    assert gone == {"asked": {"left": "as it is"}}


def test_a_record_without_messages_reads_as_before() -> None:
    old = Record(1, 0.0, "OutcomeLost@2", '{"step_id":"L001","firing":1,"reason":"on fire"}')
    assert decode(old) == OutcomeLost("L001", 1, "on fire")
