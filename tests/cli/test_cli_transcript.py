"""The transcript: a model's words once and whole, and never more than text."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.cli.terminal.transcript import Transcript
from holdfast.drawing.picture import Condition
from holdfast.runtime.hub import Spoken
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.views.reader import RunReader
from holdfast.views.records import ChatLine, TimelineEntry


def replied(text: str) -> TimelineEntry:
    told = ("the agent", "replied", (), Condition.RUNNING, None)
    return TimelineEntry(4, 0.0, "ModelReplied", *told, chat=ChatLine("reply", text))


def test_words_that_were_heard_are_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    with Transcript() as transcript:
        transcript.speak(Spoken(3, "Let me "))
        transcript.show(replied("Let me see.\nSo."))
    assert capsys.readouterr().out == "│ Let me see.\n│ So.\n"


def test_a_reply_that_nobody_heard_is_shown_when_it_is_recorded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Transcript() as transcript:
        transcript.show(replied("Good day."))
    assert capsys.readouterr().out == "│ Good day.\n"


def test_words_that_are_taken_back_are_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    with Transcript() as transcript:
        transcript.speak(Spoken(3, "Wrong"))
        transcript.speak(Spoken(3, None))
        transcript.speak(Spoken(3, "Right"))
        transcript.show(replied("Right."))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "│ Wrong",
        "· the model begins again; what stands above does not count",
        "│ Right.",
    ]


def test_words_that_differ_from_the_record_are_followed_by_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Transcript() as transcript:
        transcript.speak(Spoken(3, "Wrong"))
        transcript.show(replied("Right."))
    assert capsys.readouterr().out == "│ Wrong\n│ Right.\n"


def test_an_interrupted_reply_ends_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Transcript() as transcript:
        transcript.speak(Spoken(3, "Half a"))
    assert capsys.readouterr().out == "│ Half a\n"


def test_a_model_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    with Transcript() as transcript:
        transcript.speak(Spoken(3, "\x1b[2Jgone\u202e\r"))
    assert capsys.readouterr().out == "│ \\u001b[2Jgone\\u202e \n"


async def test_what_a_person_said_is_repeated_to_others_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Holdfast.in_memory(model=ScriptedModel(["Good day."])) as app:
        app.agent("clerk")
        session = await app.sessions.open("clerk")
        await app.sessions.say(session.id, "hello", by="will")
        entries = await RunReader.of(app).timeline(session.id)
    [said] = [one for one in entries if one.chat is not None and one.chat.kind == "said"]
    Transcript().show(said)
    Transcript(echo=False).show(said)
    assert capsys.readouterr().out == "· will said: hello\n"
