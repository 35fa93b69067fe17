"""`--url`: the same commands, on the runs of a server."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_scene import Command, Ending, command_line, environment
from serving import Served, served
from terminal import usual_signals

import warm
from holdfast.views.records import TimelineEntry
from holdfast.views.wire import from_json

There = Callable[..., Ending]

CANARY = "canary-7712-9f3e"

SECRET = """
plan_id: key
name: Key
main_task_id: "001"
tasks: [{task_id: "001", name: Goal}, {task_id: "002", name: Key}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: human
    form: {key: {type: secret, label: Key}, note: {type: text}}
    success_output: {task_id: "002", status: Done, context: {key: "{{result.key}}"}}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""


@pytest.fixture
def server(
    place: Path, application: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """A server with tools, and the token of an admin in the environment."""
    (place / "calls" / "ask.yaml").write_text((place / "plans" / "ask.yaml").read_text("utf-8"))
    (place / "calls" / "key.yaml").write_text(SECRET, "utf-8")
    made = holdfast_process("token", "create", "will", "--role", "admin", "--app", application)
    monkeypatch.setenv("HOLDFAST_TOKEN", made.out.splitlines()[1].strip())
    with served(place, application) as running:
        yield running


@pytest.fixture
def there(server: Served, holdfast: Command) -> There:
    return lambda *arguments: holdfast(*arguments, "--url", server.url)


def test_a_run_is_started_watched_and_answered_over_http(there: There, place: Path) -> None:
    asked = there("run", "call_pay", "--set", "who=张三", "--prompt", "Pay him", "--json")
    assert (asked.code, asked.json["status"]) == (4, "pause")
    [question] = asked.json["questions"]
    assert question["context"]["args"] == {"who": "张三"}
    [waiting] = there("inbox", "--json").json
    assert waiting["question_id"] == waiting["request_id"] == question["question_id"]
    assert waiting["about"] == "Pay him"
    assert "Pay him" in there("inbox").out
    name = question["question_id"][:8]
    meant = there("answer", name, "--option", "approve")
    assert (meant.code, "say --yes" in meant.err) == (1, True)
    done = there("answer", name, "--option", "approve", "--yes")
    assert done.code == 0
    assert "will     answered Run pay? with “Approve and run”" in done.out
    assert done.out.endswith("inst_000001 is done\n")
    again = there("answer", name, "--option", "reject", "--json")
    assert (again.code, again.json["error"]["kind"]) == (1, "AlreadyAnswered")


def test_what_is_printed_is_what_a_home_prints(
    there: There, holdfast: Command, server: Served
) -> None:
    there("run", "call_pay", "--set", "who=x")
    there("run", "ask")
    here = ("--home", "kept", "--json")
    for command in (("history", "1"), ("watch", "2"), ("inbox",), ("graph", "1"), ("runs",)):
        assert there(*command, "--json") == holdfast(*command, *here), command


def test_values_are_read_by_the_forms_that_the_server_has(there: There) -> None:
    there("run", "ask")
    refused = there("continue", "1", "--set", "count=9", "--set", "agreed=yes", "--json")
    assert refused.code == 1
    assert "count" in refused.json["error"]["fields"]
    values = ("--set", "count=2", "--set", "agreed=yes", "--set", "kinds=a,b")
    done = there("continue", "1", *values, "--json")
    assert (done.code, done.json["status"]) == (0, "done")


@pytest.mark.parametrize("way", ["answer", "continue"])
def test_a_secret_is_sealed_on_its_way(there: There, place: Path, way: str) -> None:
    [question] = there("run", "key", "--json").json["questions"]
    name = question["question_id"] if way == "answer" else "1"
    done = there(way, name, "--set", f"key={CANARY}", "--set", "note=x")
    assert done.code == 0
    assert CANARY not in done.out
    assert CANARY not in there("history", "1", "--json").out
    for file in (place / "kept").iterdir():
        assert CANARY.encode() not in file.read_bytes(), file.name


def test_what_failed_is_resumed_and_what_is_unwanted_cancelled(there: There, place: Path) -> None:
    assert there("run", "call_shaky", "--set", "who=x").code == 3
    (place / "mended").touch()
    assert there("resume", "1", "--json").json["status"] == "done"
    there("run", "ask")
    ending = there("cancel", "2", "--reason", "enough", "--json")
    assert (ending.code, ending.json["status"]) == (0, "cancelled")
    rows = there("runs", "--status", "cancelled", "--json").json
    assert [row["instance_id"] for row in rows] == ["inst_000002"]


def test_what_goes_on_by_itself_is_said_to_be_watched(there: There) -> None:
    begun = there("run", "call_slow", "--set", "who=x", "--no-wait")
    assert "it goes on there; to see it: holdfast watch inst_000001" in begun.out
    assert "to go on:" not in begun.out


def test_several_questions_have_an_outcome_each(there: There) -> None:
    ids = [there("run", "call_pay", "--set", f"who={n}", "--json").json for n in "abc"]
    names = [one["questions"][0]["question_id"] for one in ids]
    words = ("--yes", "--no-wait", "--json")
    there("answer", names[2], "--option", "reject", "--feedback", "no", *words)
    outcomes = there("answer", *names, "nonsense", "--option", "approve", *words)
    assert outcomes.code == 1
    assert [one["answered"] for one in outcomes.json] == [True, True, False, False]
    lost, unknown = outcomes.json[2:]
    assert (lost["error"]["kind"], unknown["error"]["kind"]) == ("AlreadyAnswered", "NotFound")
    assert "will" in lost["error"]["message"]


def test_an_interrupt_stops_looking_and_the_run_goes_on(
    server: Served, there: There, place: Path
) -> None:
    looking = warm.Popen(
        command_line("run", "call_slow", "--set", "who=x", "--url", server.url),
        cwd=place,
        env={**environment(), "HOLDFAST_TOKEN": os.environ["HOLDFAST_TOKEN"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=usual_signals,
    )
    assert looking.stdout is not None
    while "L001 (slow) started" not in looking.stdout.readline():
        assert looking.poll() is None
    looking.send_signal(signal.SIGINT)
    _, err = looking.communicate(timeout=60)
    assert looking.returncode == 130
    assert err.endswith(f"to see it: holdfast watch inst_000001 --url {server.url}\n")
    (place / "go").touch()
    assert there("watch", "1").code == 0


def test_the_address_may_stand_in_the_environment_and_a_home_goes_before_it(
    server: Served, there: There, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    there("run", "ask")
    monkeypatch.setenv("HOLDFAST_URL", server.url)
    assert len(holdfast("runs", "--json").json) == 1
    assert holdfast("runs", "--home", "elsewhere").code == 1


def test_the_token_may_stand_in_a_file(
    there: There, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "token").write_text(os.environ["HOLDFAST_TOKEN"] + "\n", encoding="utf-8")
    monkeypatch.delenv("HOLDFAST_TOKEN")
    unknown = there("runs", "--json")
    assert unknown.json["error"]["kind"] == "Unauthenticated"
    assert "--token-file" in unknown.json["error"]["message"]
    assert there("runs", "--token-file", "token").code == 0
    assert there("runs", "--token-file", "nowhere").err == (
        "error: nowhere: No such file or directory\n"
    )


def test_a_server_runs_the_plans_that_it_has(there: There) -> None:
    file = there("run", "plans/ask.yaml")
    assert (file.code, "by id" in file.err) == (1, True)
    assert "there is no plan" in there("run", "nothing").err
    assert there("graph", "call_pay").out.startswith("Call pay")


def test_a_server_that_is_not_there_is_said_to_be_so(holdfast: Command) -> None:
    ending = holdfast("runs", "--url", "http://127.0.0.1:9", "--json")
    assert (ending.code, ending.json["error"]["kind"]) == (1, "OperatorError")
    assert "is the server running there?" in ending.json["error"]["message"]


def test_a_chat_goes_over_http_too(
    place: Path, desk: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = holdfast_process("token", "create", "will", "--role", "admin", "--app", desk, "--json")
    monkeypatch.setenv("HOLDFAST_TOKEN", made.json["token"])
    with served(place, desk) as server:
        at = ("--url", server.url)
        assert holdfast_process("chat", "hello", "--agent", "clerk", *at) == Ending(
            0, "You said: hello\n", ""
        )
        asked = holdfast_process("chat", "please pay", "--session", "1", *at)
        assert (asked.code, "tool: pay" in asked.out) == (4, True)
        [question] = holdfast_process("inbox", *at, "--json").json
        words = ("--option", "approve", "--yes", *at, "--json")
        done = holdfast_process("answer", question["question_id"], *words)
        assert (done.code, done.json["answer"]) == (0, "Done: pay {'paid': 5}")
        assert "several agents" in holdfast_process("chat", "hello", *at).err


def test_tracebacks_are_told_to_operators(
    there: There, application: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    there("run", "call_shaky", "--set", "who=x")
    assert "│ RuntimeError: out of order" in there("history", "1").out
    made = there("token", "create", "guest", "--role", "viewer")
    monkeypatch.setenv("HOLDFAST_TOKEN", made.out.splitlines()[1].strip())
    seen = there("history", "1")
    assert (seen.code, "out of order" in seen.out) == (0, True)
    assert "Traceback" not in seen.out


def test_the_doctor_says_whether_a_server_can_write_and_who_is_asking(
    there: There, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = there("doctor")
    assert well.out.splitlines() == [f"{server.url}: ready", "  you are will (admin)"]
    told = there("doctor", "--json")
    you = {"id": "will", "roles": ["admin"]}
    assert told.json == {"url": server.url, "ok": True, "problem": None, "you": you}
    assert there("doctor", "--integrity").code == 2
    monkeypatch.setenv("HOLDFAST_TOKEN", "hf_nobody")
    assert (there("doctor").code, "$HOLDFAST_TOKEN" in there("doctor").err) == (1, True)


def test_a_run_is_drawn_by_its_server_in_lines_and_as_svg(there: There) -> None:
    there("run", "ask", "--no-wait")
    there("watch", "1")
    assert "waiting for a person" in there("graph", "1").out
    assert there("graph", "1", "--format", "svg").out.startswith("<svg")


def test_a_server_of_another_version_is_still_understood() -> None:
    told = {
        "seq": 7,
        "at": 1.0,
        "type": "OfTomorrow",
        "who": "plan",
        "what": "did what this version has no event for",
        "moves": [],
        "tone": "running",
        "took": None,
        "added_later": {"by": "a newer server"},
    }
    entry = from_json(TimelineEntry, told)
    assert entry.lines()[0].endswith("plan     did what this version has no event for")
    assert (entry.told, entry.status, entry.data) == (True, None, {})
