"""Snapshots of conversations: what is left goes on elsewhere, and what is damaged is refused."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from conversation_machine import (
    PERMANENT,
    TRANSIENT,
    Talk,
    at_phase,
    chain,
    executing,
    opened,
    several,
    wanted,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.conversation import snapshot
from holdfast.core.conversation.state import CONTEXT, DECOMPOSE
from holdfast.errors import InvalidAnswer
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def carried_over(talk: Talk, **settings: Any) -> Talk:
    """Through real JSON into an engine that has never heard of it."""
    body = json.loads(json.dumps(talk.snapshot(), ensure_ascii=False))
    other = opened(**settings)
    other.goal = talk.goal
    other.submit(c.RestoreSnapshot(snapshot.checked(body)))
    return other


def ran(talk: Talk) -> list[str]:
    return [one.task.id for one in talk.past if isinstance(one, f.RunTask)]


def halfway() -> Talk:
    """Of five one is told, one is finished, one runs, one waits for that and one is free."""
    talk = executing(
        SubTask("told"),
        SubTask("finished", priority=1),
        SubTask("runs", priority=1),
        SubTask("waits", dependencies=("runs", "finished")),
        SubTask("free", priority=2, args={"n": 1}),
        max_parallel=2,
    ).fill()
    talk.done("told", {"n": 1})
    talk.fill()
    talk.done("finished", {"n": 2})
    return talk


def test_a_snapshot_has_the_seeds_five_keys_and_is_complete() -> None:
    body = halfway().snapshot()
    assert (body["state"], body["progress"]) == ("executing", 0.2)
    assert (body["completed_tasks"], body["total_tasks"]) == (1, 5)
    assert body["tasks"][0] == {
        "id": "told",
        "description": "",
        "type": "",
        "priority": 0,
        "dependencies": [],
        "args": {},
        "route": "default",
        "status": "completed",
        "result": {"n": 1},
        "skipped": "",
        "doubtful": False,
    }
    assert [one["status"] for one in body["tasks"]] == [
        "completed",
        "finished",
        "running",
        "scheduled",
        "scheduled",
    ]
    assert (body["version"], body["turn"], body["user_input"]) == (1, 1, "Go.")


def test_what_is_left_and_only_that_runs_elsewhere() -> None:
    other = carried_over(halfway())
    assert (other.state.status, other.state.progress) == (RunStatus.RUNNING, 0.2)
    assert other.settle().phase is EngineState.COMPLETED
    assert sorted(ran(other)) == ["free", "runs", "waits"]
    assert other.task("waits").dependencies == ("runs", "finished")
    assert other.task("told").result == {"n": 1}
    assert other.state.progress == 1.0


def test_a_result_that_nobody_heard_of_is_told_but_not_made_again() -> None:
    other = carried_over(halfway())
    assert other.advance().events == (v.TaskCompleted("t2"),)
    assert other.told()[-1] == (
        "task_completed",
        {"task_id": "finished", "result": {"n": 2}, "progress": 0.4},
    )
    other.settle()
    assert "finished" not in ran(other)
    waited = [one for one in other.past if isinstance(one, f.RunTask) and one.task.id == "waits"]
    assert waited[0].results == {"runs": {"did": "runs"}, "finished": {"n": 2}}


@pytest.mark.parametrize("done", range(5))
def test_after_some_of_so_many_exactly_the_others_run(done: int) -> None:
    talk = executing(*chain(*"abcd"))
    for name in "abcd"[:done]:
        talk.fill().done(name, name)
        talk.advance()
    other = carried_over(talk)
    assert other.settle().phase is EngineState.COMPLETED
    assert ran(other) == list("abcd"[done:])


@pytest.mark.parametrize("left", [EngineState.SCHEDULING, EngineState.EXECUTING])
def test_a_paused_one_stays_paused_until_somebody_resumes_it(left: EngineState) -> None:
    talk = wanted(*several("abc")).until(left)
    talk.advance()
    talk.hold()
    other = carried_over(talk)
    assert (other.state.phase, other.state.status) == (EngineState.PAUSED, RunStatus.PAUSE)
    assert not other.pull()
    other.unhold()
    assert other.state.phase is left
    assert other.settle().phase is EngineState.COMPLETED
    told = [name for name, _ in other.told()].count("task_scheduled")
    assert told == (2 if left is EngineState.SCHEDULING else 0)


@pytest.mark.parametrize("phase", EngineState)
def test_a_snapshot_of_every_phase_is_the_same_snapshot_again(phase: EngineState) -> None:
    talk = at_phase(phase)
    other = carried_over(talk)
    assert other.state.phase is phase
    begun = {"running": "scheduled", "failed": "scheduled"}
    body = talk.snapshot()
    for task in body["tasks"]:
        task["status"] = begun.get(task["status"], task["status"])
    assert other.snapshot() == body


PAY = SubTask("pay it", type="pay", route="tool")
SEND = SubTask("send it", type="send", args={"to": "Will Zhang"}, route="tool")
MINE = SubTask("mine", type="mine", route="once")
ORDER = SubTask("order", type="order", route="plan")
NOT_REPEATED = pytest.mark.parametrize("task", [SEND, MINE, ORDER], ids=lambda one: one.id)


@NOT_REPEATED
def test_what_must_not_be_repeated_becomes_a_question_elsewhere(task: SubTask) -> None:
    talk = executing(task, SubTask("other"), max_parallel=2).fill()
    assert [one["doubtful"] for one in talk.snapshot()["tasks"]] == [True, False]
    other = carried_over(talk)
    assert other.fill().running() == ["other"]
    assert not other.children
    asked = other.question()
    assert "unknown: it was under way when the snapshot was taken" in asked.message
    assert asked.context["args"] == dict(task.args)
    other.answer("happened", result="sent")
    assert other.settle().phase is EngineState.COMPLETED
    assert other.task(task.id).result == {"result": "sent"}
    assert ran(other) == ["other"]


@NOT_REPEATED
def test_a_person_may_have_what_is_doubtful_run_again_or_stop(task: SubTask) -> None:
    other = carried_over(executing(task).fill())
    third = carried_over(other)
    assert third.question().title == other.question().title, "an open question is carried over"
    third.answer("run_again")
    assert third.settle().phase is EngineState.COMPLETED
    assert len(third.past) + len(third.children) == 1
    other.answer("stop")
    assert other.state.phase is EngineState.ERROR
    assert not other.past


def test_a_call_whose_outcome_is_unknown_is_asked_about_elsewhere_too() -> None:
    talk = executing(SEND).fill()
    talk.fails("send it", c.Lost("no answer"))
    talk.hold()
    other = carried_over(talk)
    assert (other.state.phase, other.state.status) == (EngineState.PAUSED, RunStatus.PAUSE)
    assert other.question().title == "Did send happen?"
    other.unhold()
    assert not other.fill().flying
    other.answer("happened")
    assert other.settle().phase is EngineState.COMPLETED


def test_other_questions_are_simply_asked_again() -> None:
    talk = executing(PAY).fill()
    other = carried_over(talk).fill()
    assert other.question().title == talk.question().title
    talk.answer("provide", amount=7)
    talk.fill().answer("approve")
    talk.fill()
    assert talk.snapshot()["tasks"][0]["args"] == {"amount": 7}
    doubting = carried_over(talk)
    doubting.answer("run_again")
    assert doubting.fill().question().type == "TOOL_APPROVAL", "consent is not carried over"
    assert doubting.question().context["args"] == {"amount": 7}


def test_what_answered_and_waits_for_its_next_attempt_is_not_in_doubt() -> None:
    talk = executing(MINE).fill()
    talk.fails("mine", TRANSIENT)
    body = talk.snapshot()
    assert (body["tasks"][0]["status"], body["tasks"][0]["doubtful"]) == ("running", False)
    assert carried_over(talk).settle().phase is EngineState.COMPLETED


@pytest.mark.parametrize("route", ["default", "callable", "once", "tool", "agent", "plan"])
def test_where_nothing_is_said_of_doubt_what_might_do_harm_is_doubtful(route: str) -> None:
    body = with_task(2, route=route)
    del body["tasks"][2]["doubtful"]
    doubtful = snapshot.checked(body)["tasks"][2]["doubtful"]
    assert doubtful == (route not in ("default", "callable"))


def test_a_failed_conversation_asks_nothing_when_it_is_restored() -> None:
    body = with_task(2, doubtful=True)
    body["state"] = "error"
    talk = opened()
    talk.submit(c.RestoreSnapshot(snapshot.checked(body)))
    assert (talk.state.status, len(talk.state.questions)) == (RunStatus.ERROR, 0)


def test_a_goal_that_was_not_yet_begun_with_is_begun_with_elsewhere() -> None:
    talk = wanted()
    talk.settle()
    talk.converse("And now?")
    other = carried_over(talk)
    assert (other.state.pending, other.state.status) == (True, RunStatus.RUNNING)
    assert other.settle().phase is EngineState.COMPLETED
    assert (other.state.text, len(other.state.history)) == ("And now?", 1)


def test_a_complaint_counts_elsewhere_too() -> None:
    talk = at_phase(EngineState.DECOMPOSING)
    talk.report(talk.out(DECOMPOSE), c.Undecomposed("no list"))
    other = carried_over(talk)
    other.advance()
    assert other.out(DECOMPOSE).complaint == "no list"
    other.report(other.out(DECOMPOSE), c.Undecomposed("still none"))
    assert other.state.phase is EngineState.ERROR


def test_a_context_and_a_decomposition_are_not_asked_for_again() -> None:
    talk = at_phase(EngineState.CONTEXT_FETCHING)
    talk.report(talk.out(CONTEXT), c.Fetched(("be brief",)))
    other = carried_over(talk)
    assert other.advance().events[0] == v.PhaseChanged(
        EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING
    )
    assert other.state.context["rules"] == ["be brief"]
    other.advance()
    other.report(other.out(DECOMPOSE), c.Decomposed(several("ab")))
    third = carried_over(other)
    assert isinstance(third.advance().events[0], v.PhaseChanged)
    assert third.settle().completed == 2


def test_a_failed_one_can_be_started_over() -> None:
    talk = executing().fill()
    talk.fails("only", PERMANENT)
    talk.advance()
    other = carried_over(talk)
    assert (other.state.status, other.state.error) == (RunStatus.ERROR, "no such thing")
    other.submit(c.StartOver())
    other.converse()
    assert other.settle().phase is EngineState.COMPLETED


def test_a_completed_one_takes_the_next_turn_with_its_history() -> None:
    talk = wanted()
    talk.settle()
    other = carried_over(carried_over(talk))
    assert other.state.status is RunStatus.DONE
    other.converse("And now?")
    assert [one.text for one in other.state.history] == ["Go."]
    again = carried_over(other.until(EngineState.RECEIVING))
    assert again.state.history == other.state.history
    assert again.state.turn == 2


@pytest.mark.parametrize("taken", [EngineState.COMPLETED, EngineState.IDLE, EngineState.EXECUTING])
@pytest.mark.parametrize("phase", [EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR])
def test_a_snapshot_takes_the_place_of_whatever_was_there(
    phase: EngineState, taken: EngineState
) -> None:
    body = at_phase(taken).snapshot()
    talk = at_phase(phase)
    if phase is EngineState.IDLE:
        talk.converse("Never begun.")
    turn = talk.state.turn
    talk.submit(c.RestoreSnapshot(snapshot.checked(body)))
    assert (talk.state.phase, talk.state.pending) == (taken, False)
    assert talk.state.turn > turn, "what was done in a turn is not taken for another's work"
    running = taken is EngineState.EXECUTING
    assert talk.state.status is (RunStatus.RUNNING if running else RunStatus.DONE)


SEEDS: dict[str, Json] = {
    "state": "executing",
    "progress": 0.5,
    "tasks": [
        {"id": "1", "description": "读数据", "status": "completed", "priority": 1},
        {"id": "2", "description": "分析", "status": "running", "priority": 2},
    ],
    "completed_tasks": 1,
    "total_tasks": 2,
}


def test_the_seeds_five_keys_load_as_version_0() -> None:
    talk = opened()
    talk.submit(c.RestoreSnapshot(snapshot.checked(SEEDS)))
    assert (talk.state.progress, talk.state.turn) == (0.5, 1)
    assert talk.settle().phase is EngineState.COMPLETED
    assert ran(talk) == ["2"]
    assert snapshot.checked({**SEEDS, "progress": 0.5001})
    paused = snapshot.checked({**SEEDS, "state": "paused"})
    assert paused["left"] == "executing"
    assert snapshot.checked({**SEEDS, "state": "idle", **NOTHING})["turn"] == 0


@pytest.mark.parametrize("phase", ["scheduling", "decomposing"])
def test_version_0_in_the_midst_of_scheduling_schedules_from_the_start(phase: str) -> None:
    task = {"id": "1", "description": "读数据", "status": "pending", "priority": 1}
    body = {"state": phase, "progress": 0.0, "tasks": [task]}
    talk = opened()
    talk.submit(c.RestoreSnapshot({**body, "completed_tasks": 0, "total_tasks": 1}))
    assert talk.settle().phase is EngineState.COMPLETED
    assert len(talk.happened(v.TaskScheduled)) == 1


NOTHING: dict[str, Json] = {"tasks": [], "completed_tasks": 0, "total_tasks": 0, "progress": 0}
GOOD = halfway().snapshot()


def with_task(number: int, **changes: Json) -> dict[str, Json]:
    body = copy.deepcopy(GOOD)
    body["tasks"][number] = {**body["tasks"][number], **changes}
    return body


DAMAGED: dict[str, tuple[object, str]] = {
    "a list": ([], "it is no object"),
    "not JSON": ({**GOOD, "context": {"n": float("nan")}}, "NaN"),
    "of tomorrow": ({**GOOD, "version": 2}, "it has version 2; this Holdfast reads 0 and 1"),
    "odd version": ({**GOOD, "version": []}, "it has version []"),
    "true version": ({**GOOD, "version": True}, "it has version True"),
    "odd state": ({**GOOD, "state": "dreaming"}, "its state is 'dreaming', not one of idle, "),
    "no state": ({**NOTHING}, "its state is None"),
    "odd left": ({**GOOD, "left": 3}, "its state is 3"),
    "impossible pause": ({**GOOD, "state": "paused", "left": "idle"}, "paused while idle"),
    "no tasks": ({"state": "idle"}, "its tasks are no list"),
    "nameless task": ({**GOOD, "tasks": [{}]}, "one of its tasks has no id: {}"),
    "task of text": ({**GOOD, "tasks": ["a"]}, "one of its tasks has no id: 'a'"),
    "empty id": (with_task(4, id=""), "a task has no id"),
    "odd priority": (with_task(0, priority="high"), "task 'told': its priority is of the wrong"),
    "true priority": (with_task(0, priority=True), "its priority is of the wrong kind"),
    "odd description": (with_task(0, description=None), "its description is of the wrong kind"),
    "odd args": (with_task(0, args=[]), "its args is of the wrong kind"),
    "odd status": (with_task(2, status=1), "its status is of the wrong kind"),
    "unknown status": (with_task(2, status="lost"), "its status is 'lost', not one of pending, "),
    "unknown route": (with_task(2, route="mail"), "its route is 'mail', not one of default, "),
    "early result": (with_task(3, result=1), "task 'waits': it is scheduled, but has a result"),
    "unsaid skip": (with_task(1, status="skipped"), "it is skipped, but does not say why"),
    "early skip": (with_task(3, skipped="no"), "it is scheduled, but says why it is skipped"),
    "odd skip": (with_task(3, skipped=True), "its skipped is of the wrong kind"),
    "odd doubt": (with_task(2, doubtful=1), "task 'runs': it is running, and its doubtful is 1"),
    "early doubt": (with_task(3, doubtful=True), "it is scheduled, and its doubtful is True"),
    "no dependencies": (with_task(3, dependencies=None), "its dependencies is of the wrong kind"),
    "text dependencies": (with_task(3, dependencies="ab"), "dependencies is of the wrong kind"),
    "odd dependency": (with_task(3, dependencies=[1]), "dependencies are of the wrong kind"),
    "unknown dependency": (with_task(3, dependencies=["x"]), "depends on 'x', which is no task"),
    "circle": (with_task(2, dependencies=["waits"]), "these tasks wait for each other"),
    "twice": (with_task(2, id="told"), "these ids are used more than once: told"),
    "too many": ({**GOOD, "completed_tasks": 2}, "2 of 5 tasks, but lists 1 of 5 as completed"),
    "true count": ({**SEEDS, "completed_tasks": True}, "it speaks of True of 2 tasks"),
    "odd progress": ({**GOOD, "progress": "x"}, "its progress is 'x', but its tasks make 0.2"),
    "true progress": ({**NOTHING, "state": "idle", "progress": False}, "its progress is False"),
    "far progress": ({**GOOD, "progress": 0.5}, "its progress is 0.5, but its tasks make 0.2"),
    "too far": ({**GOOD, "progress": 7.5}, "its progress is 7.5"),
    "too few": ({**GOOD, "total_tasks": 4}, "it speaks of 1 of 4 tasks, but lists 1 of 5"),
    "no counts": ({"state": "idle", "tasks": []}, "it speaks of None of None tasks"),
    "out of order": (with_task(3, status="finished"), "is finished before the tasks that it"),
    "nothing to do": ({**NOTHING, "state": "executing"}, "it is executing without any task"),
    "nothing paused": ({**NOTHING, "state": "paused"}, "it is paused without any task"),
    "too early": ({**GOOD, "state": "receiving"}, "it is receiving, but has tasks already"),
    "begun early": ({**GOOD, "state": "scheduling"}, "some of its tasks have begun"),
    "incomplete": ({**GOOD, "state": "completed"}, "it is completed, but some of its tasks are"),
    "odd turn": ({**GOOD, "turn": -1}, "its turn is -1, not a number from 0 to"),
    "true turn": ({**GOOD, "turn": True}, "its turn is True"),
    "odd count": ({**GOOD, "scheduled": 6}, "its scheduled is 6, not a number from 0 to 5"),
    "odd input": ({**GOOD, "user_input": None}, "its user_input is no text"),
    "odd error": ({**GOOD, "error": {}}, "its error is no text"),
    "odd context": ({**GOOD, "context": []}, "its context is no object"),
    "odd rules": ({**GOOD, "context": {"rules": 5}}, "its context's rules are no list"),
    "odd complaint": ({**GOOD, "complaint": 1}, "its complaint is no text"),
    "odd pending": ({**GOOD, "pending": 1}, "where its pending cannot be 1"),
    "late pending": ({**GOOD, "pending": True}, "it is executing, where its pending cannot be"),
    "wordless": ({**NOTHING, "state": "receiving"}, "nothing was kept of its goal"),
    "blank": ({**NOTHING, "state": "decomposing", "user_input": " "}, "nothing was kept of its"),
    "pending without words": ({**NOTHING, "state": "idle", "pending": True}, "nothing was kept"),
    "odd history": ({**GOOD, "history": {}}, "its history are no list"),
    "odd turn before": ({**GOOD, "history": [1]}, "one turn of its history is no object"),
    "wordless turn": ({**GOOD, "history": [{"results": {}}]}, "its history's text is no text"),
    "no results": ({**GOOD, "history": [{"text": "a"}]}, "one result of its history is no object"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_snapshot_is_refused_with_the_reason(what: str) -> None:
    body, reason = DAMAGED[what]
    with pytest.raises(InvalidAnswer, match="the snapshot cannot be restored: ") as refusal:
        snapshot.checked(body)
    assert re.search(re.escape(reason), str(refusal.value))
    assert list(refusal.value.fields) == ["snapshot"]


def test_the_machine_itself_refuses_a_damaged_snapshot_and_changes_nothing() -> None:
    talk = opened()
    before = talk.state
    with pytest.raises(InvalidAnswer):
        talk.submit(c.RestoreSnapshot({"state": "executing"}))
    assert talk.state is before


def test_results_as_deep_and_large_as_any_come_back() -> None:
    deep: Json = "bottom"
    for _ in range(63):
        deep = [deep]
    talk = executing(*several("ab")).fill()
    talk.done("a", {"deep": deep, "large": "x" * 990_000})
    talk.fill().done("b", "y" * 990_000)
    talk.advance()
    assert carried_over(talk).task("a").result == talk.task("a").result


PLACES = st.sampled_from(
    [(name,) for name in GOOD]
    + [("tasks", number, name) for number in range(5) for name in GOOD["tasks"][0]]
    + [("tasks", number) for number in range(5)]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 7),
    st.sampled_from([*EngineState, "pending", "running", "finished", "completed", "told", "runs"]),
    st.lists(st.sampled_from(["told", "finished", "runs", "waits", "free", "x", 1]), max_size=3),
    st.dictionaries(st.sampled_from(["text", "results", "id", "status"]), st.text(max_size=2)),
    st.just("gone"),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(PLACES, VALUES), min_size=1, max_size=4), st.booleans())
def test_a_snapshot_that_was_tampered_with_is_refused_or_runs_soundly(
    changes: list[tuple[tuple[Any, ...], Json]], mended: bool
) -> None:
    body = copy.deepcopy(GOOD)
    for place, value in changes:
        tamper(body, place, value)
    if mended:
        mend_counts(body)
    try:
        checked = snapshot.checked(body)
    except InvalidAnswer:
        return
    talk = opened()
    talk.submit(c.RestoreSnapshot(checked))
    talk.reload()
    left = {one.id for one in talk.state.tasks.values() if one.status not in KEPT}
    lives_on(talk, left)


KEPT = ("completed", "finished")


def lives_on(talk: Talk, left: set[str]) -> None:
    if talk.state.phase is EngineState.PAUSED:
        talk.unhold()
    resting = talk.state.phase in (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)
    with_tasks = bool(talk.state.tasks)
    for question_id in talk.state.open_questions:
        talk.submit(c.Answer(question_id, "Will Zhang", "run_again"))
    talk.settle()
    if resting:
        assert not talk.past
    else:
        assert talk.state.phase is EngineState.COMPLETED
        assert not with_tasks or set(ran(talk)) == left
    assert snapshot.checked(talk.snapshot())


def tamper(body: Any, place: tuple[Any, ...], value: Json) -> None:
    *way, last = place
    for part in way:
        body = body[part] if isinstance(body, dict | list) and holds(body, part) else {}
    if value == "gone" and isinstance(body, dict):
        body.pop(last, None)
    elif isinstance(body, dict) or (isinstance(body, list) and holds(body, last)):
        body[last] = value


def holds(body: Any, part: Any) -> bool:
    return part in body if isinstance(body, dict) else isinstance(part, int) and part < len(body)


def mend_counts(body: Any) -> None:
    """So that the damage lies deeper."""
    tasks = body.get("tasks")
    if isinstance(tasks, list):
        done = [one for one in tasks if isinstance(one, dict) and one.get("status") == "completed"]
        body.update(total_tasks=len(tasks), completed_tasks=len(done))
