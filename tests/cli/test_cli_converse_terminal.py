"""Conversations at a terminal: a board that moves, three keys, and questions asked right there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli_scene import Command, command_line, environment
from terminal import CTRL_C, ENTER, Terminal

import warm


@pytest.fixture
def talk(place: Path, goals: str) -> tuple[str, ...]:
    return ("converse", "--app", goals)


def begun(place: Path) -> str:
    file = place / "slow.begun"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def wait_until_begun(place: Path) -> None:
    end = time.monotonic() + 60
    while not begun(place):
        assert time.monotonic() < end, "it never began"
        time.sleep(0.02)


def test_the_board_shows_tasks_results_and_how_far_it_is(
    talk: tuple[str, ...], place: Path
) -> None:
    with Terminal(*talk, "帮我分析销售数据", cwd=place) as terminal:
        terminal.wait_for("conv_000001 is completed")
        terminal.wait_for('{"month":"2025-10","total":4200}')
        terminal.wait_for("100%  3 of 3 tasks done")
        terminal.wait_for("conv_000001 is done")
        terminal.wait_for("report: 写报告: 完成")
        assert terminal.end() == 0


def test_p_pauses_and_r_resumes_without_enter(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "slow", cwd=place) as terminal:
        terminal.wait_for("p pauses   q leaves")
        wait_until_begun(place)
        terminal.type("p")
        terminal.wait_for("conv_000001 is paused")
        terminal.wait_for("r resumes   q leaves")
        (place / "go").touch()
        terminal.wait_for("finished")
        terminal.wait_for("0 of 2 tasks done")
        terminal.type("xP\x1b[A")
        terminal.type("r")
        terminal.wait_for("conv_000001 is done")
        assert terminal.end() == 0
    assert begun(place) == "x"


def test_q_leaves_and_says_how_to_go_on(
    talk: tuple[str, ...], place: Path, holdfast_process: Command
) -> None:
    with Terminal(*talk, "slow", "--rule", "be brief", cwd=place) as terminal:
        terminal.wait_for("q leaves")
        wait_until_begun(place)
        terminal.type("q")
        terminal.wait_for(
            "left as it is; to go on: "
            "holdfast converse --id conv_000001 --app goals:app --rule 'be brief'"
        )
        assert terminal.end() == 0
    (place / "go").touch()
    went_on = holdfast_process(*talk, "--id", "1")
    assert (went_on.code, "write: Write it up: 完成" in went_on.out) == (0, True)
    assert begun(place) == "xx", "what may be repeated is done again"


def test_leaving_waits_for_what_cannot_be_repeated(
    talk: tuple[str, ...], place: Path, holdfast_process: Command
) -> None:
    with Terminal(*talk, "careful", cwd=place) as terminal:
        terminal.wait_for("q leaves")
        wait_until_begun(place)
        terminal.type("q")
        terminal.wait_for("what is in flight ends first")
        (place / "go").touch()
        terminal.wait_for("left as it is")
        assert terminal.end() == 0
    went_on = holdfast_process(*talk, "--id", "1")
    assert (went_on.code, 'wait: {"waited":true}' in went_on.out) == (0, True)
    assert begun(place) == "x"


def test_one_that_was_left_paused_goes_on_when_it_is_taken_up(
    talk: tuple[str, ...], place: Path
) -> None:
    with Terminal(*talk, "slow", cwd=place) as terminal:
        terminal.wait_for("p pauses")
        terminal.type("p")
        terminal.wait_for("r resumes")
        terminal.type("q")
        terminal.wait_for("left as it is")
        assert terminal.end() == 0
    (place / "go").touch()
    with Terminal(*talk, "--id", "1", cwd=place) as terminal:
        terminal.wait_for("conv_000001 is done")
        assert terminal.end() == 0


def test_an_interrupt_leaves_it_and_says_how_to_go_on(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "slow", cwd=place) as terminal:
        terminal.wait_for("q leaves")
        terminal.type(CTRL_C)
        terminal.wait_for("to go on: holdfast converse --id conv_000001 --app goals:app")
        assert terminal.end() == 130


def test_a_task_that_asks_is_asked_right_there(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "order", cwd=place) as terminal:
        terminal.wait_for("Needed to go on: Count")
        terminal.wait_for("> Count")
        terminal.type("2" + ENTER)
        terminal.wait_for('{"ordered":["tea","tea"]}')
        terminal.wait_for("conv_000001 is done")
        assert terminal.end() == 0


def test_a_failure_is_asked_about_and_tried_again(talk: tuple[str, ...], place: Path) -> None:
    with Terminal(*talk, "break", "--on-failure", "ask", cwd=place) as terminal:
        terminal.wait_for("error: out of order")
        terminal.wait_for("Stop the conversation")
        (place / "mended").touch()
        terminal.type("1" + ENTER)
        terminal.wait_for('{"mended":true}')
        assert terminal.end() == 0


def test_a_question_left_open_is_asked_again_in_another_process(
    talk: tuple[str, ...], place: Path
) -> None:
    with Terminal(*talk, "pay", cwd=place) as terminal:
        terminal.wait_for("amount = 5")
        terminal.wait_for("Reject and stop everything")
        terminal.type(CTRL_C)
        terminal.wait_for("conv_000001 is pause")
        assert terminal.end() == 4
    with Terminal(*talk, "--id", "1", cwd=place) as terminal:
        terminal.wait_for("Reject and stop everything")
        terminal.type("1" + ENTER)
        terminal.wait_for("Are you sure?")
        terminal.type("y")
        terminal.wait_for("conv_000001 is done")
        assert terminal.end() == 0
    assert (place / "paid").read_text(encoding="utf-8") == "5\n"


def test_the_terminal_gets_its_ways_back(talk: tuple[str, ...], place: Path) -> None:
    for ending in ("q", CTRL_C, None):
        with Terminal(*talk, "slow", cwd=place) as terminal:
            before = terminal.modes()
            terminal.wait_for("q leaves")
            assert terminal.modes() != before
            if ending is None:
                terminal.kill(signal.SIGTERM)
            else:
                terminal.type(ending)
            terminal.end()
            assert terminal.modes() == before


def test_a_conversation_whose_process_was_killed_goes_on(
    talk: tuple[str, ...], place: Path, holdfast_process: Command
) -> None:
    process = warm.Popen(
        command_line(*talk, "slow"),
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_begun(place)
        busy = holdfast_process(*talk, "something else")
        assert (busy.code, str(process.pid) in busy.err) == (1, True)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    (place / "go").touch()
    went_on = holdfast_process(*talk, "--id", "1", "--json")
    assert went_on.code == 0
    assert went_on.events[-1]["event_type"] == "engine_completed"
    assert went_on.events[-1]["data"] == {"total_tasks": 2, "completed_tasks": 2}
    assert begun(place) == "xx", "it was under way and may be repeated"


def test_the_board_of_a_cancelled_one_has_nothing_under_way_or_to_come(
    talk: tuple[str, ...], place: Path, holdfast: Command, goals: str
) -> None:
    with Terminal(*talk, "slow", cwd=place) as terminal:
        wait_until_begun(place)
        terminal.kill(signal.SIGKILL)
        terminal.end()
    assert holdfast("cancel", "conv_000001", "--app", goals).code == 0
    with Terminal("watch", "conv_000001", "--app", goals, cwd=place) as terminal:
        terminal.wait_for("stopped")
        terminal.wait_for("not started")
        terminal.end()
        assert "executes" not in terminal.screen


@pytest.mark.parametrize("option", [(), ("--failed",)])
def test_a_person_is_asked_how_a_failed_one_goes_on_and_enter_alone_changes_nothing(
    holdfast: Command, goals: str, place: Path, option: tuple[str, ...]
) -> None:
    assert holdfast("converse", "break", "--app", goals).code == 3
    command = ("resume", "conv_000001", "--app", goals, *option)
    with Terminal(*command, cwd=place) as terminal:
        terminal.wait_for("How shall it go on?")
        terminal.wait_for("(leave it as it is)")
        terminal.wait_for("skip: go on without what failed (mend)")
        terminal.type(ENTER)
        terminal.wait_for("say how to go on: --failed retry, --failed skip, --failed stop")
        assert terminal.end() == 1
    (place / "mended").touch()
    with Terminal(*command, cwd=place) as terminal:
        terminal.wait_for("How shall it go on?")
        terminal.type("\x1b[B")
        terminal.type(ENTER)
        terminal.wait_for("conv_000001 is done")
        assert terminal.end() == 0
