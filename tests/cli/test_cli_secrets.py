"""Secrets on the command line: typed unseen, read from elsewhere, and never told."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from cli_scene import Command
from terminal import ENTER, Terminal

CANARY = "Kanarienvogel 7f3c9Q"
UNLOCK = """
plan_id: unlock
name: Unlock
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: The door's code
    form: {pin: {type: secret, label: 密码}}
    success_output: {task_id: "001", status: Done, context: {pin: "{{result.pin}}"}}
"""


@pytest.fixture
def plan(place: Path) -> Path:
    (place / "plans" / "unlock.yaml").write_text(UNLOCK, encoding="utf-8")
    return place


def asked(holdfast: Command) -> str:
    return str(holdfast("run", "unlock", "--json").json["questions"][0]["question_id"])


def nowhere(place: Path) -> None:
    kept = [one.read_bytes() for one in place.rglob("*") if one.is_file()]
    assert not [one for one in kept if CANARY.encode() in one]


def test_it_is_typed_unseen_at_a_terminal(plan: Path, holdfast: Command) -> None:
    with Terminal("run", "unlock", cwd=plan) as terminal:
        terminal.wait_for("密码")
        terminal.type(CANARY + ENTER)
        terminal.wait_for("inst_000001 is done")
        assert terminal.end() == 0
    assert CANARY not in terminal.screen
    told = holdfast("history", "1").out
    assert "answered The door's code: pin = (secret)" in told
    assert CANARY not in told + holdfast("history", "1", "--json").out
    nowhere(plan)


def test_it_is_read_from_standard_input(
    plan: Path, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = asked(holdfast)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{CANARY}\nmore\n"))
    assert holdfast("answer", question, "--set", "pin=@-").code == 0
    assert holdfast("answer", question, "--set", f"pin={CANARY}").code == 0, "the same answer"
    other = holdfast("answer", question, "--set", "pin=another")
    assert "was already answered by local" in other.err
    nowhere(plan)


def test_it_is_read_from_the_environment(
    plan: Path, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(holdfast)
    refused = holdfast("continue", "1", "--set", "pin=@env:DOOR_PIN")
    assert refused.code == 2
    assert "the environment has no DOOR_PIN" in refused.err
    monkeypatch.setenv("DOOR_PIN", CANARY)
    assert holdfast("continue", "1", "--set", "pin=@env:DOOR_PIN").code == 0
    nowhere(plan)


def test_the_command_that_is_proposed_does_not_invite_to_write_it_down(
    plan: Path, holdfast: Command
) -> None:
    assert "--set pin=@-" in holdfast("run", "unlock").out
