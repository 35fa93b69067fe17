"""`holdfast fork`: a new run from an event of one that is over, here and on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_scene import Command, Ending
from serving import Served, served

There = Callable[..., Ending]

BROKEN = """
plan_id: broken
name: Broken
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: code
    code_snippet: "result = {'x': 1 // 0}"
    success_output: {task_id: "001", status: Done}
"""
ANSWERED = ("--set", "count=3", "--set", "agreed=yes", "--set", "kinds=a")


@pytest.fixture
def server(
    place: Path, application: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """A server with tools, and the token of an admin in the environment."""
    (place / "calls" / "ask.yaml").write_text((place / "plans" / "ask.yaml").read_text("utf-8"))
    made = holdfast_process("token", "create", "will", "--role", "admin", "--app", application)
    monkeypatch.setenv("HOLDFAST_TOKEN", made.out.splitlines()[1].strip())
    with served(place, application) as running:
        yield running


@pytest.fixture
def there(server: Served, holdfast: Command) -> There:
    return lambda *arguments: holdfast(*arguments, "--url", server.url)


def asked_at(command: Callable[..., Ending]) -> str:
    """The number of the event by which the first run asked its question."""
    events = command("history", "1", "--json").json
    return str(next(one["seq"] for one in events if one["type"] == "QuestionOpened"))


def test_a_question_is_asked_anew_and_the_origin_stays_as_it_is(holdfast: Command) -> None:
    holdfast("run", "ask")
    holdfast("continue", "1", *ANSWERED)
    before = holdfast("history", "1", "--json").json
    fork = holdfast("fork", "1", "--at", asked_at(holdfast), "--json")
    assert (fork.code, fork.json["instance_id"], fork.json["status"]) == (4, "inst_000002", "pause")
    assert holdfast("history", "1", "--json").json == before
    done = holdfast("continue", "2", "--set", "count=5", *ANSWERED[2:])
    assert (done.code, done.out.endswith("inst_000002 is done\n")) == (0, True)
    assert f"forked inst_000001 at event {asked_at(holdfast)}" in holdfast("history", "2").out


def test_what_was_done_is_done_and_the_rest_is_seen_through(holdfast: Command) -> None:
    holdfast("run", "ask")
    holdfast("continue", "1", *ANSWERED)
    last = str(len(holdfast("history", "1", "--json").json))
    fork = holdfast("fork", "inst_000001", "--at", last)
    assert (fork.code, fork.out.endswith("inst_000002 is done\n")) == (0, True)


def test_it_need_not_be_waited_for(holdfast: Command) -> None:
    holdfast("run", "greet", "--set", "name=x")
    fork = holdfast("fork", "1", "--at", "1", "--no-wait", "--json")
    assert (fork.code, fork.json["instance_id"]) == (0, "inst_000002")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("1", "--at", "999"), "inst_000001 has no event 999: its events are 1 to"),
        (("1", "--at", "1"), "inst_000001 is pause, and only a run that is over can be forked"),
        (("9", "--at", "1"), "there is no run inst_000009"),
    ],
)
def test_what_cannot_be_is_said(holdfast: Command, arguments: tuple[str, ...], told: str) -> None:
    holdfast("run", "ask")
    if arguments[2] == "999":
        holdfast("cancel", "1")
    refused = holdfast("fork", *arguments)
    assert (refused.code, told in refused.err) == (1, True), refused.err


def test_a_run_that_waits_for_a_resume_is_cancelled_first(place: Path, holdfast: Command) -> None:
    (place / "plans" / "broken.yaml").write_text(BROKEN)
    assert holdfast("run", "broken").code == 3
    before = holdfast("history", "1", "--json").json
    refused = holdfast("fork", "1", "--at", "1")
    assert refused.code == 1
    assert "inst_000001 is error, and only a run that is over can be forked" in refused.err
    assert "to end it first: holdfast cancel inst_000001" in refused.err
    assert holdfast("history", "1", "--json").json == before
    holdfast("cancel", "1")
    fork = holdfast("fork", "1", "--at", "1", "--json")
    assert (fork.code, fork.json["instance_id"], fork.json["status"]) == (3, "inst_000002", "error")
    resumed = holdfast("resume", "1")
    assert (resumed.code, "inst_000001 is cancelled" in resumed.err) == (1, True)


@pytest.mark.parametrize("arguments", [("1",), ("1", "--at", "0"), ("1", "--at", "first")])
def test_the_event_must_be_named(holdfast: Command, arguments: tuple[str, ...]) -> None:
    refused = holdfast("fork", *arguments)
    assert (refused.code, "--at" in refused.err) == (2, True)


def test_it_is_the_same_on_a_server(there: There) -> None:
    there("run", "call_pay", "--set", "who=张三")
    [question] = there("inbox", "--json").json
    there("answer", question["question_id"], "--option", "approve", "--yes")
    fork = there("fork", "1", "--at", asked_at(there), "--json")
    assert (fork.code, fork.json["instance_id"], fork.json["status"]) == (4, "inst_000002", "pause")
    [again] = there("inbox", "--json").json
    assert again["question_id"] != question["question_id"]
    refused = there("fork", "2", "--at", "1", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "NotAllowed")
    assert "holdfast cancel inst_000002 --url" in refused.json["error"]["message"]
