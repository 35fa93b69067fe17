"""The transcript: a model's words once and whole, and never more than text."""

from __future__ import annotations

import pytest

from holdfast.cli.terminal.transcript import Transcript
from holdfast.core.agent.decide import blank
from holdfast.core.agent.state import AgentDefinition, ReactState
from holdfast.model import agent_events as r
from holdfast.model.agent import Agent
from holdfast.runtime.hub import Recorded, Spoken


@pytest.fixture
def state() -> ReactState:
    return blank("chat_000001", AgentDefinition(Agent("clerk"), "d"))


def replied(text: str) -> Recorded:
    return Recorded(4, 0.0, r.ModelReplied(1, text))


def test_words_that_were_heard_are_not_repeated(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    with Transcript(state) as transcript:
        transcript.speak(Spoken(3, "Let me "))
        transcript.show(state, replied("Let me see.\nSo."))
    assert capsys.readouterr().out == "│ Let me see.\n│ So.\n"


def test_a_reply_that_nobody_heard_is_shown_when_it_is_recorded(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    with Transcript(state) as transcript:
        transcript.show(state, replied("Good day."))
    assert capsys.readouterr().out == "│ Good day.\n"


def test_words_that_are_taken_back_are_said_to_be(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    with Transcript(state) as transcript:
        transcript.speak(Spoken(3, "Wrong"))
        transcript.speak(Spoken(3, None))
        transcript.speak(Spoken(3, "Right"))
        transcript.show(state, replied("Right."))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "│ Wrong",
        "· the model begins again; what stands above does not count",
        "│ Right.",
    ]


def test_words_that_differ_from_the_record_are_followed_by_it(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    with Transcript(state) as transcript:
        transcript.speak(Spoken(3, "Wrong"))
        transcript.show(state, replied("Right."))
    assert capsys.readouterr().out == "│ Wrong\n│ Right.\n"


def test_an_interrupted_reply_ends_its_line(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    with Transcript(state) as transcript:
        transcript.speak(Spoken(3, "Half a"))
    assert capsys.readouterr().out == "│ Half a\n"


def test_a_model_cannot_move_the_cursor(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    with Transcript(state) as transcript:
        transcript.speak(Spoken(3, "\x1b[2Jgone\u202e\r"))
    assert capsys.readouterr().out == "│ \\u001b[2Jgone\\u202e \n"


def test_what_a_person_said_is_repeated_to_others_only(
    state: ReactState, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Recorded(2, 0.0, r.TurnStarted(1, "hello", "will"))
    Transcript(state).show(state, said)
    Transcript(state, echo=False).show(state, said)
    assert capsys.readouterr().out == "· will said: hello\n"
