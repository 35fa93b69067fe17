"""Forms at a terminal: asked inline, checked while being typed, left for later."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_scene import Command
from terminal import CTRL_C, DOWN, ENTER, ESCAPE, SPACE, Terminal


def fill_in(terminal: Terminal) -> None:
    terminal.wait_for("数量")
    terminal.type("9")
    terminal.wait_for("give between 1")
    terminal.type("\x7f3" + ENTER)
    terminal.wait_for("同意")
    terminal.wait_for("no")
    terminal.type(DOWN + ENTER)
    terminal.wait_for("种类")
    terminal.wait_for("B")
    terminal.type(SPACE + ENTER)
    terminal.wait_for("口令")
    terminal.type("sesame" + ENTER)


def test_a_pause_asks_its_form_and_the_run_goes_on(holdfast: Command, place: Path) -> None:
    with Terminal("run", "ask", cwd=place) as terminal:
        fill_in(terminal)
        terminal.wait_for("inst_000001 is done")
        assert terminal.end() == 0
    answered = holdfast("history", "1").out
    assert "answered 张三的信息: count = 3, agreed = no, kinds = a, word = sesame" in answered


def test_a_question_is_answered_later_at_a_terminal(holdfast: Command, place: Path) -> None:
    question = holdfast("run", "ask", "--json").json["questions"][0]["question_id"]
    with Terminal("answer", question[:8], cwd=place) as terminal:
        fill_in(terminal)
        assert terminal.end() == 0


def test_a_question_may_be_left_for_later(holdfast: Command, place: Path) -> None:
    with Terminal("run", "ask", cwd=place) as terminal:
        terminal.wait_for("数量")
        terminal.type(CTRL_C)
        terminal.wait_for("to answer: holdfast answer")
        assert terminal.end() == 4
    assert len(holdfast("inbox", "--json").json) == 1


def test_with_json_nothing_is_asked_even_at_a_terminal(place: Path) -> None:
    with Terminal("run", "ask", "--json", cwd=place) as terminal:
        assert terminal.end() == 4
    assert '"status": "pause"' in terminal.screen


def test_a_dangerous_option_is_asked_for_twice(application: str, place: Path) -> None:
    with Terminal("run", "call_pay", "--app", application, cwd=place) as terminal:
        terminal.wait_for("Run pay?")
        terminal.wait_for("Approve and run")
        terminal.type(ENTER)
        terminal.wait_for("Are you sure?")
        terminal.type("n")
        terminal.wait_for("to answer: holdfast answer")
        assert terminal.end() == 4
    with Terminal("continue", "1", "--app", application, cwd=place) as terminal:
        terminal.wait_for("Approve and run")
        terminal.type(ENTER)
        terminal.wait_for("Are you sure?")
        terminal.type("y")
        terminal.wait_for("inst_000001 is done")
        assert terminal.end() == 0


def test_an_option_that_wants_words_asks_for_them(application: str, place: Path) -> None:
    with Terminal("run", "call_pay", "--app", application, cwd=place) as terminal:
        terminal.wait_for("Reject and stop")
        terminal.type("4" + ENTER)
        terminal.wait_for("Why not?")
        terminal.type("太贵了" + ENTER)
        terminal.wait_for("rejected by local: 太贵了")
        assert terminal.end() == 3


def test_an_option_with_its_own_text_asks_for_the_text(place: Path, holdfast: Command) -> None:
    with Terminal("demo", "request", "computer", "--home", "kept", cwd=place) as terminal:
        terminal.wait_for("¥18,999")
        terminal.wait_for("其他型号")
        terminal.type(DOWN * 3 + ENTER)
        terminal.wait_for("> 其他型号")
        terminal.type("Framework 13" + ENTER)
        assert terminal.end() == 0
    assert (
        "computer_model = custom (Framework 13)" in holdfast("history", "1", "--home", "kept").out
    )


def test_a_long_text_ends_with_escape_and_enter(place: Path, holdfast: Command) -> None:
    with Terminal("demo", "request", "mail", "--home", "kept", cwd=place) as terminal:
        terminal.wait_for("邮件内容 (请填写邮件正文)")
        terminal.type("您好" + ENTER + "张三" + ESCAPE + ENTER)
        assert terminal.end() == 0
    assert "content = 您好 张三" in holdfast("history", "1", "--home", "kept").out


@pytest.fixture(params=["usual signals", "as in the background"])
def started(request: pytest.FixtureRequest) -> Iterator[None]:
    """How the tests were started: a shell's background jobs ignore interrupts."""
    ignored = request.param == "as in the background"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    yield
    if before is not None:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("started")
def test_an_interrupt_at_the_terminal_says_how_to_go_on(application: str, place: Path) -> None:
    with Terminal("run", "call_slow", "--app", application, cwd=place) as terminal:
        terminal.wait_for("L001 (slow) started")
        terminal.type(CTRL_C)
        terminal.wait_for("stopping")
        (place / "go").touch()
        terminal.wait_for("to go on: holdfast continue inst_000001 --app works:app")
        assert terminal.end() == 130


def test_watching_at_a_terminal_shows_the_tasks(place: Path, holdfast: Command) -> None:
    holdfast("run", "greet", "--set", "name=张三")
    with Terminal("watch", "1", cwd=place) as terminal:
        terminal.wait_for("1 of 1 tasks done")
        assert terminal.end() == 0
    with Terminal("watch", cwd=place) as terminal:
        terminal.wait_for("inst_000001")
        assert terminal.end() == 0
