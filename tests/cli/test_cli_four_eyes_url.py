"""Four eyes over `--url`: the server refuses who wants a call, and the command line says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_scene import Command, Ending
from serving import served

LACKING = """
plan_id: lacking
name: Pay
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: pay
    success_output: {task_id: "001", status: Done}
"""
WANTS = "and so want this call: another person must approve it"

Acts = Callable[..., Ending]


@pytest.fixture
def acts(
    place: Path,
    application: str,
    holdfast: Command,
    holdfast_process: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Acts]:
    """`acts("ann", "inbox")` is ann at her terminal; all are operators who approve."""
    (place / "calls" / "lacking.yaml").write_text(LACKING, encoding="utf-8")
    tokens: dict[str, str] = {}

    def act(who: str, *arguments: str) -> Ending:
        monkeypatch.setenv("HOLDFAST_TOKEN", tokens[who])
        return holdfast(*arguments, "--url", server.url)

    for who in ("ann", "bob", "eve"):
        roles = ("--role", "operator", "--role", "approver")
        made = holdfast_process("token", "create", who, *roles, "--app", application, "--json")
        tokens[who] = made.json["token"]
    with served(place, application, "--four-eyes") as server:
        yield act


def question_of(ending: Ending) -> str:
    [question] = ending.json["questions"]
    return str(question["question_id"])


def approves(acts: Acts, who: str, question: str, *more: str) -> Ending:
    return acts(who, "answer", question, "--option", "approve", "--yes", *more)


def refused(ending: Ending, why: str) -> bool:
    told = " ".join(ending.err.split())
    return ending.code == 1 and f"{why}, {WANTS}" in told


def test_who_started_it_does_not_approve_it(acts: Acts) -> None:
    question = question_of(acts("ann", "run", "call_pay", "--set", "who=x", "--json"))
    assert refused(approves(acts, "ann", question), "you started this run")
    assert refused(approves(acts, "ann", question, "--set", "who=y"), "you started this run")
    told = approves(acts, "ann", question, "--json")
    assert told.json["error"]["kind"] == "NotPermitted"
    assert [one["question_id"] for one in acts("ann", "inbox", "--json").json] == [question]
    done = approves(acts, "bob", question)
    assert done.code == 0, done
    assert "bob     " in done.out


def test_who_edits_it_does_not_approve_it(acts: Acts) -> None:
    question = question_of(acts("ann", "run", "call_pay", "--set", "who=x", "--json"))
    wished = approves(acts, "bob", question, "--set", "who=y", "--json")
    assert wished.code == 4, wished
    [again] = wished.json["questions"]
    assert again["context"]["args"] == {"who": "y"}
    why = "you answered a question of this run with more than a yes or no"
    assert refused(approves(acts, "bob", again["question_id"]), why)
    assert approves(acts, "eve", again["question_id"]).code == 0


@pytest.mark.parametrize("way", ["answer", "continue"])
def test_who_fills_in_what_it_lacks_does_not_approve_it(acts: Acts, way: str) -> None:
    started = acts("ann", "run", "lacking", "--json")
    name = question_of(started) if way == "answer" else "1"
    filled = acts("bob", way, name, "--set", "who=x", "--json")
    assert filled.code == 4, filled
    question = question_of(filled)
    why = "you answered a question of this run with more than a yes or no"
    assert refused(approves(acts, "bob", question), why)
    assert approves(acts, "eve", question).code == 0
