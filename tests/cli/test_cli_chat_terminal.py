"""Chats at a terminal: words as they come, questions asked right there."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_scene import Command
from terminal import CTRL_C, ENTER, Terminal

PROMPT = "you>"
LAST_OPTION = "Reject and stop everything"


@pytest.fixture
def talk(place: Path, desk: str) -> tuple[str, ...]:
    return ("chat", "--app", desk, "--agent", "clerk")


def say(terminal: Terminal, words: str) -> None:
    terminal.wait_for(PROMPT)
    terminal.type(words + ENTER)


def paid(place: Path) -> list[str]:
    file = place / "paid"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_a_call_is_approved_after_being_asked_twice(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, cwd=place) as terminal:
        say(terminal, "please pay")
        terminal.wait_for("Let me pay.")
        terminal.wait_for('to = "张三"')
        terminal.wait_for(LAST_OPTION)
        terminal.type("1" + ENTER)
        terminal.wait_for("Are you sure?")
        assert paid(place) == []
        terminal.type("y")
        terminal.wait_for("· pay returned")
        terminal.wait_for("Done: pay {'paid': 5}")
        say(terminal, "/usage")
        terminal.wait_for("2 model requests")
        say(terminal, "/quit")
        terminal.wait_for("to go on: holdfast chat --session chat_000001 --app desk:app")
        assert terminal.end() == 0
    assert paid(place) == ["5 张三"]


def test_arguments_are_edited_and_the_edited_ones_run(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "pay", cwd=place) as terminal:
        terminal.wait_for("Edit, then approve and run")
        terminal.wait_for(LAST_OPTION)
        terminal.type("2" + ENTER)
        terminal.wait_for("Amount")
        terminal.type("\x7f8" + ENTER)
        terminal.wait_for("> To")
        terminal.type(ENTER)
        terminal.wait_for("these arguments will run:")
        terminal.wait_for("amount = 8")
        terminal.wait_for("Are you sure?")
        terminal.type("y")
        terminal.wait_for("Done: pay {'paid': 8}")
        assert terminal.end() == 0
    assert paid(place) == ["8 张三"]


def test_a_rejection_asks_why_and_nothing_runs(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "pay", cwd=place) as terminal:
        terminal.wait_for(LAST_OPTION)
        terminal.type("4" + ENTER)
        terminal.wait_for("Why not?")
        terminal.type("太贵了" + ENTER)
        terminal.wait_for("was rejected and did not run")
        terminal.wait_for("Done: pay")
        assert terminal.end() == 0
    assert paid(place) == []


def test_a_form_is_filled_in_field_by_field(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "order", cwd=place) as terminal:
        terminal.wait_for("Provide")
        terminal.type(ENTER)
        terminal.wait_for("> Item")
        terminal.type("tea" + ENTER)
        terminal.wait_for("> Count")
        terminal.type("2" + ENTER)
        terminal.wait_for("Done: order {'ordered': ['tea', 'tea']}")
        assert terminal.end() == 0


def test_a_question_left_open_is_shown_again_and_keeps_the_turn(
    talk: tuple[str, ...], place: Path
) -> None:
    with Terminal(*talk, cwd=place) as terminal:
        say(terminal, "which")
        terminal.wait_for("│ Run pay?")
        terminal.wait_for("Do not answer")
        terminal.type(CTRL_C)
        terminal.wait_for("left open: Clerk asks")
        say(terminal, "something else")
        terminal.wait_for("waits for an answer")
        say(terminal, "/answer")
        terminal.wait_for("Do not answer")
        terminal.type("2" + ENTER)
        terminal.wait_for("Done: ask_person")
        terminal.wait_for("blue")
        say(terminal, "/nonsense")
        terminal.wait_for("there is no command /nonsense")
        say(terminal, "/help")
        terminal.wait_for("/cancel")
        say(terminal, "/cancel")
        terminal.wait_for("chat_000001 is cancelled")
        assert terminal.end() == 5


def test_a_doubt_at_the_second_question_leaves_it_open_for_another_process(
    talk: tuple[str, ...], place: Path
) -> None:
    with Terminal(*talk, "pay", cwd=place) as terminal:
        terminal.wait_for(LAST_OPTION)
        terminal.type("1" + ENTER)
        terminal.wait_for("Are you sure?")
        terminal.type("n")
        terminal.wait_for("left open: Run pay?")
        assert terminal.end() == 4
    assert paid(place) == []
    with Terminal("chat", "--app", "desk:app", "--session", "1", cwd=place) as terminal:
        terminal.wait_for(LAST_OPTION)
        terminal.type("1" + ENTER)
        terminal.wait_for("Are you sure?")
        terminal.type("y")
        terminal.wait_for("Done: pay")
        say(terminal, "/quit")
        assert terminal.end() == 0
    assert paid(place) == ["5 张三"]


def test_an_interrupt_during_a_turn_leaves_the_chat_and_says_how_to_go_on(
    talk: tuple[str, ...], place: Path, holdfast_process: Command
) -> None:
    with Terminal(*talk, "slow", cwd=place) as terminal:
        terminal.wait_for("· slow {}")
        terminal.type(CTRL_C)
        terminal.wait_for("stopping")
        (place / "go").touch()
        terminal.wait_for("to go on: holdfast chat --session chat_000001 --app desk:app")
        assert terminal.end() == 130
    went_on = holdfast_process("chat", "--session", "1", "--app", "desk:app")
    assert (went_on.code, went_on.out) == (0, "Done: slow {}\n")


def test_several_questions_are_shown_before_they_are_answered_together(
    talk: tuple[str, ...], place: Path, holdfast_process: Command
) -> None:
    holdfast_process(*talk, "pay twice")
    common = ("--app", "desk:app")
    ids = [row["question_id"] for row in holdfast_process("inbox", "--json", *common).json]
    with Terminal("answer", *ids, "--option", "approve", *common, cwd=place) as terminal:
        terminal.wait_for("amount = 5")
        terminal.wait_for("amount = 7")
        terminal.wait_for("Approve and run (2 questions): this cannot be undone. Are you sure?")
        terminal.type("y")
        terminal.wait_for("chat_000001 is done")
        assert terminal.end() == 0
    assert sorted(paid(place)) == ["5 nobody", "7 nobody"]


def test_ids_stay_whole_on_a_narrow_screen(
    talk: tuple[str, ...], place: Path, holdfast_process: Command
) -> None:
    holdfast_process(*talk, "pay")
    for command in ("runs", "inbox"):
        for columns in (40, 70, 80):
            with Terminal(command, "--home", "kept", cwd=place, columns=columns) as terminal:
                terminal.wait_for("chat_000001")
                assert terminal.end() == 0
