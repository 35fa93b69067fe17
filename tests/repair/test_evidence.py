"""Evidence: a line of JSON for each event that says something of a failure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from failed_runs import TEXT, call, takes
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine
from small_plans import CODE, WILL, compiled, on, only

from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.fork import Fork
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.recorded import Event
from holdfast.model.repair import Evidence
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.repair.evidence import (
    LONGEST_LINE,
    MOST_EVIDENCE,
    evidence_of,
    line_of,
    tells_of_failure,
)

NO = Failure(FailureKind.PERMANENT, "no such\nthing", cause=Cause.ARGUMENT, status=422, field="id")


def told(events: list[Event], listener_id: str = "L1") -> list[dict[str, Any]]:
    found = evidence_of(list(enumerate(events, 1)), listener_id)
    return [{"seq": one.seq, **json.loads(one.text)} for one in found]


def asked(question_id: str, step_id: str) -> e.QuestionOpened:
    request = InteractionRequest(question_id, "r", InteractionType.USER_INPUT, "Which?")
    return e.QuestionOpened(request, step_id, 1, "missing")


def test_a_run_tells_its_start_its_calls_and_how_they_failed() -> None:
    plan = compiled(
        on("L1", "001 Running", call("order", who="{001.context.name}"), "002"),
        on("L2", "002 Done", CODE, "001"),
    )
    machine = Machine(plan, tools={"order": takes(who=TEXT)})
    machine.submit(c.StartRun("small", "order one", {"name": WILL}, by=WILL))
    machine.start_ready()
    machine.report(only(machine), c.Failed(NO))
    records = [(one.seq, decode(one)) for one in machine.records]
    lines = [json.loads(one.text) for one in evidence_of(records, "L1")]
    assert lines == [
        {"event": "run started", "plan": "small", "prompt": "order one", "values": {"name": WILL}},
        {"event": "started", "listener": "L1", "attempt": 1, "args": {"who": WILL}},
        {
            "event": "failed",
            "listener": "L1",
            "kind": "permanent",
            "cause": "argument",
            "status": 422,
            "field": "id",
            "message": "no such␊thing",
        },
    ]


def test_every_kind_of_event_that_matters_is_told_in_its_order() -> None:
    events: list[Event] = [
        e.RunStarted("small", "d", "", "r"),
        e.ListenerStarted("L0", 1),
        e.ListenerSucceeded("L0", 1, {"id": 7}),
        e.AttemptFailed("L1", 1, NO, 5.0),
        e.StepWoken("L1", 1),
        e.OutcomeLost("L1", 1, "no answer"),
        asked("q1", "L1"),
        e.QuestionAnswered("q1", "yes", WILL, {"a": 1}),
        e.QuestionAnswered("q9", "no", WILL),
        e.QuestionExpired("q1"),
        e.ListenerSkipped("L0", 1, WILL, "not needed"),
        e.PlannerRetried("L1", 1, 1, 3, why="soon"),
        e.CheckConcluded("verify.1", 1, "failed", "not there"),
        e.TasksEdited(WILL, "by hand"),
        e.RunResumed(WILL),
        e.PlanPatched("k1", "case_1", "a", "b", ({"op": "skip", "listener_id": "L0"},), by=WILL),
        e.PatchRefused("case_1", "k1", WILL, "no"),
        e.RepairDisproven("case_1", "k1", "L1", 1, None, "again"),
        e.PlannerGaveUp("it failed", ("L1", "L0")),
        e.ListenerFailed("L1", 1, NO, result={"x": 1}),
        e.CaseOpened("case_1", "L1", 1, NO),
    ]
    names = [(one["seq"], one["event"], one.get("listener")) for one in told(events)]
    assert names == [
        (1, "run started", None),
        (2, "started", "L0"),
        (3, "succeeded", "L0"),
        (4, "attempt failed", "L1"),
        (6, "outcome lost", "L1"),
        (7, "asked", "L1"),
        (8, "answered", "L1"),
        (9, "answered", None),
        (10, "nobody answered", "L1"),
        (11, "skipped", "L0"),
        (12, "retried", "L1"),
        (13, "checked", "verify.1"),
        (14, "tasks edited", None),
        (15, "resumed", None),
        (16, "plan patched", None),
        (17, "patch refused", None),
        (18, "repair did not help", "L1"),
        (19, "gave up", None),
        (20, "failed", "L1"),
    ]


def test_of_a_long_story_the_start_the_listener_and_the_latest_are_told() -> None:
    events: list[Event] = [e.RunStarted("small", "d", "go", "r")]
    events += [e.ListenerSucceeded(f"L{number}", 1, number) for number in range(100, 200)]
    events += [e.AttemptFailed("L1", 1, NO, float(number)) for number in range(50)]
    events += [e.ListenerSucceeded(f"L{number}", 1, number) for number in range(200, 300)]
    lines = told(events)
    assert len(lines) == MOST_EVIDENCE
    assert lines[0]["event"] == "run started"
    assert [one["seq"] for one in lines] == sorted(one["seq"] for one in lines)
    assert sum(one.get("listener") == "L1" for one in lines) == 25
    assert lines[-1]["result"] == 299


def test_without_a_listener_it_is_about_the_run() -> None:
    events: list[Event] = [e.RunStarted("small", "d", "go", "r"), e.PlannerGaveUp("nothing fires")]
    assert [one["event"] for one in told(events, "")] == ["run started", "gave up"]
    assert told([], "L1") == []


def test_a_question_that_was_asked_before_what_is_known_is_nobodys() -> None:
    assert told([e.QuestionAnswered("q1", "yes", WILL)])[0].get("listener") is None


@pytest.mark.parametrize("kept", ["secret:" + "0" * 32, "x" * 100])
def test_what_stands_in_the_journal_is_told_as_data(kept: str) -> None:
    (line,) = told([e.ListenerStarted("L1", 1, args={"token": kept})])
    assert line["args"] == {"token": kept}


def test_what_would_change_the_look_of_a_line_is_spelled_out() -> None:
    text = 'end"}\n{"event":"run started"}\u202e\u2028<b>'
    found = evidence_of([(1, e.OutcomeLost("L1", 1, text))], "L1")
    assert len(found) == 1
    assert found[0].text.isprintable()
    assert json.loads(found[0].text)["message"].startswith('end"}␊{"event"')


def test_lines_that_tell_of_failure_are_known() -> None:
    lost = evidence_of([(1, e.OutcomeLost("L1", 1, "gone"))], "L1")
    began = evidence_of([(1, e.ListenerStarted("L1", 1))], "L1")
    assert tells_of_failure(lost[0])
    assert not tells_of_failure(began[0])
    assert isinstance(lost[0], Evidence)


def test_a_value_is_cut_until_its_line_fits() -> None:
    deep: Any = "bottom"
    for _ in range(30):
        deep = {"deeper": [deep] * 30, "words": "w" * 500}
    shape = {"event": "failed", "result": deep}
    line = line_of(shape)
    assert len(line) <= LONGEST_LINE
    assert json.loads(line)["event"] == "failed"
    wide = {"event": "failed", **{f"{'n' * 200}{number}": "v" * 50 for number in range(40)}}
    assert len(line_of(wide)) <= LONGEST_LINE


def test_what_cannot_be_cut_to_fit_leaves_the_kind_of_event() -> None:
    shape = {"event": "failed", "numbers": [10**18] * 3}
    assert json.loads(line_of(shape)) == shape
    many = {"event": "failed", "a": 10**390}
    assert json.loads(line_of(many)) == {"event": "failed"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@given(VALUES)
def test_whatever_a_result_is_its_line_is_one_short_line_of_json(result: Any) -> None:
    (found,) = evidence_of([(1, e.ListenerSucceeded("L1", 1, result))], "L1")
    assert len(found.text) <= LONGEST_LINE
    assert "\n" not in found.text
    assert json.loads(found.text)["event"] == "succeeded"
    found.text.encode()


def test_a_fork_tells_what_it_was_begun_for() -> None:
    [line] = told([e.RunForked(Fork("inst_000001", 7, "small", "order one"), "d", "r", WILL)])
    assert line == {"seq": 1, "event": "run forked", "plan": "small", "prompt": "order one"}
