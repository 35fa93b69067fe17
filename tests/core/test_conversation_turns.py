"""One turn of a conversation from goal to completion, and the turn after it."""

from __future__ import annotations

import re

import pytest
from conversation_machine import (
    PERMANENT,
    Talk,
    at_phase,
    chain,
    executing,
    opened,
    several,
    wanted,
)

from holdfast.core.conversation.state import CONTEXT, DECOMPOSE
from holdfast.core.conversation.turn_reducers import MOST_HISTORY
from holdfast.core.run.tables import StepStatus
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.run import RunStatus


def test_a_turn_tells_the_seeds_events_in_the_seeds_order() -> None:
    talk = wanted(SubTask("a", "sum up", priority=2), SubTask("b", "read", priority=1))
    talk.settle()
    assert talk.told() == [
        ("state_changed", {"from": "idle", "to": "receiving"}),
        ("state_changed", {"from": "receiving", "to": "context_fetching"}),
        ("context_received", {"rules_count": 1, "tools_count": 1, "knowledge_count": 0}),
        ("state_changed", {"from": "context_fetching", "to": "decomposing"}),
        (
            "task_decomposed",
            {
                "task_count": 2,
                "tasks": [
                    {"id": "a", "description": "sum up"},
                    {"id": "b", "description": "read"},
                ],
            },
        ),
        ("state_changed", {"from": "decomposing", "to": "scheduling"}),
        ("task_scheduled", {"task_id": "b", "priority": 1}),
        ("task_scheduled", {"task_id": "a", "priority": 2}),
        ("state_changed", {"from": "scheduling", "to": "executing"}),
        ("task_started", {"task_id": "b"}),
        ("task_completed", {"task_id": "b", "result": {"did": "b"}, "progress": 0.5}),
        ("task_started", {"task_id": "a"}),
        ("task_completed", {"task_id": "a", "result": {"did": "a"}, "progress": 1.0}),
        ("state_changed", {"from": "executing", "to": "completed"}),
        ("engine_completed", {"total_tasks": 2, "completed_tasks": 2}),
    ]
    assert (talk.state.status, talk.state.phase) == (RunStatus.DONE, EngineState.COMPLETED)


def test_each_step_forward_brings_at_most_one_event_until_the_turn_ends() -> None:
    talk = wanted(*chain("a", "b"))
    while talk.state.phase is not EngineState.COMPLETED:
        seen = len(talk.told())
        talk.advance()
        told = [name for name, _ in talk.told()[seen:]]
        assert len(told) <= 1 or told == ["state_changed", "engine_completed"]
        talk.start_ready()
        assert len(talk.told()) <= seen + 2
        talk.answer_phase()
        for effect in list(talk.flying.values()):
            talk.report(effect, c.Succeeded())
    assert not talk.advance().events


def test_work_under_way_is_not_begun_again_by_asking_for_the_next_event() -> None:
    talk = wanted().until(EngineState.CONTEXT_FETCHING)
    assert isinstance(talk.advance().effects[0], f.FetchContext)
    assert not talk.advance().events
    talk.answer_phase()
    talk.until(EngineState.DECOMPOSING)
    assert isinstance(talk.advance().effects[0], f.Decompose)
    assert not talk.advance().events


def test_nothing_is_asked_for_where_nothing_is_wanted() -> None:
    assert not opened().advance().events


def test_the_context_reaches_the_decomposition_and_the_tasks() -> None:
    talk = wanted().until(EngineState.CONTEXT_FETCHING)
    talk.advance()
    asked = talk.out(CONTEXT)
    assert asked.text == "Go."
    talk.report(asked, c.Fetched(("be brief",), ({"title": "sales"},), ("look",)))
    context = {"rules": ["be brief"], "knowledge": [{"title": "sales"}], "tools": ["look"]}
    talk.until(EngineState.DECOMPOSING).advance()
    asked = talk.out(DECOMPOSE)
    assert (asked.text, asked.context, asked.history, asked.complaint) == ("Go.", context, (), "")
    talk.answer_phase()
    talk.until(EngineState.EXECUTING).fill()
    assert (talk.out("only").text, talk.out("only").context) == ("Go.", context)


BAD = {
    "empty": ((), "there are no tasks at all"),
    "nameless": ((SubTask(""),), "a task has no id"),
    "duplicate": (several("aba"), "these ids are used more than once: a"),
    "unknown": ((SubTask("a", dependencies=("reed",)), SubTask("read")), "did you mean 'read'"),
    "strange": ((SubTask("a", dependencies=("quite another",)),), "which is no task$"),
    "alone": ((SubTask("a", dependencies=("a",)),), "these tasks wait for each other: a"),
    "cyclic": (
        (SubTask("a", dependencies=("b",)), SubTask("b", dependencies=("a",)), SubTask("c")),
        "these tasks wait for each other: a, b",
    ),
    "many": (several("abcdefg" * 2), "more than once: a, b, c, d, e and 2 more"),
}


@pytest.mark.parametrize("made", BAD)
def test_a_bad_decomposition_is_asked_for_once_more_with_the_complaint(made: str) -> None:
    tasks, complaint = BAD[made]
    talk = wanted().until(EngineState.DECOMPOSING)
    talk.advance()
    talk.report(talk.out(DECOMPOSE), c.Decomposed(tasks))
    (refused,) = talk.happened(v.DecompositionRefused)
    assert re.search(complaint, refused.reason)
    assert talk.state.complaint == refused.reason
    talk.advance()
    assert talk.out(DECOMPOSE).complaint == refused.reason
    talk.answer_phase()
    assert talk.settle().phase is EngineState.COMPLETED


@pytest.mark.parametrize("made", BAD)
def test_a_decomposition_that_is_bad_twice_fails_with_its_phase(made: str) -> None:
    tasks, complaint = BAD[made]
    talk = wanted().until(EngineState.DECOMPOSING)
    for _ in range(2):
        talk.advance()
        talk.report(talk.out(DECOMPOSE), c.Decomposed(tasks))
    (failed,) = talk.happened(v.EngineFailed)
    assert failed.phase is EngineState.DECOMPOSING
    assert failed.error.startswith("the goal could not be decomposed: ")
    assert re.search(complaint, failed.error)
    assert talk.told()[-2:] == [
        ("state_changed", {"from": "decomposing", "to": "error"}),
        ("engine_error", {"error": failed.error, "phase": "decomposing"}),
    ]


def test_what_is_no_list_of_tasks_is_asked_for_once_more_too() -> None:
    talk = wanted().until(EngineState.DECOMPOSING)
    for _ in range(2):
        talk.advance()
        talk.report(talk.out(DECOMPOSE), c.Undecomposed("it is a poem"))
    assert talk.happened(v.DecompositionRefused) == [v.DecompositionRefused("it is a poem")]
    assert talk.state.error == "the goal could not be decomposed: it is a poem"


@pytest.mark.parametrize("step", [CONTEXT, DECOMPOSE])
@pytest.mark.parametrize("outcome", [PERMANENT, c.Lost("no such thing")])
def test_a_phase_whose_work_fails_fails_the_turn(step: str, outcome: c.Outcome) -> None:
    phase = EngineState.CONTEXT_FETCHING if step == CONTEXT else EngineState.DECOMPOSING
    talk = at_phase(phase)
    talk.report(talk.out(step), outcome)
    assert talk.happened(v.EngineFailed) == [v.EngineFailed("no such thing", phase)]
    assert (talk.state.status, talk.state.error) == (RunStatus.ERROR, "no such thing")
    assert not talk.advance().events


@pytest.mark.parametrize("step", [CONTEXT, DECOMPOSE])
def test_a_phase_whose_work_was_never_handed_over_begins_it_again(step: str) -> None:
    phase = EngineState.CONTEXT_FETCHING if step == CONTEXT else EngineState.DECOMPOSING
    talk = at_phase(phase)
    talk.report(talk.out(step), c.NotSent())
    assert talk.state.steps[step].status is StepStatus.READY
    talk.advance()
    assert talk.out(step)
    assert talk.settle().phase is EngineState.COMPLETED


def test_the_next_turn_passes_idle_and_knows_what_was_said_before() -> None:
    talk = wanted(*several("ab"))
    talk.settle()
    seen = len(talk.told())
    talk.converse("And now?")
    assert talk.told()[seen:] == [("state_changed", {"from": "completed", "to": "idle"})]
    assert (talk.state.total, talk.state.progress, talk.state.turn) == (0, 0.0, 2)
    talk.until(EngineState.DECOMPOSING).advance()
    results = {"a": {"did": "a"}, "b": {"did": "b"}}
    assert talk.out(DECOMPOSE).history == ({"text": "Go.", "results": results},)
    talk.answer_phase()
    assert talk.settle().progress == 1.0
    assert len(talk.happened(v.EngineCompleted)) == 2


def test_only_so_many_turns_are_remembered() -> None:
    talk = opened()
    for number in range(MOST_HISTORY + 3):
        talk.converse(f"turn {number}")
        talk.settle()
    assert [one.text for one in talk.state.history] == [f"turn {n}" for n in range(2, 22)]


def test_a_turn_that_failed_is_not_remembered_and_another_can_follow_its_reset() -> None:
    talk = executing().fill()
    talk.fails("only")
    talk.advance()
    assert talk.state.phase is EngineState.ERROR
    talk.submit(c.StartOver())
    talk.converse("Better.")
    assert talk.state.history == ()
    assert talk.settle().phase is EngineState.COMPLETED
    assert talk.state.turn == 2


def test_the_same_task_of_two_turns_is_two_pieces_of_work() -> None:
    talk = Talk().open()
    talk.goal = (SubTask("a", type="order", route="plan"), SubTask("b"))
    for text in ("first", "second"):
        talk.converse(text)
        talk.settle()
    keys = [one.work.key for one in talk.past if isinstance(one, f.RunTask)]
    assert (len(keys), len(set(keys)), len(talk.children)) == (2, 2, 2)


def test_a_late_word_from_the_turn_before_counts_for_nothing() -> None:
    talk = executing().fill()
    talk.done("only", "right")
    late = talk.past[-1].work
    talk.settle()
    talk.submit(c.ReportOutcome(late.step_id, 1, late.claim, c.Succeeded("wrong")))
    assert talk.happened(e.LateResultKept) == [e.LateResultKept("t1", 1, "wrong")]
    assert talk.task("only").result == "right"
