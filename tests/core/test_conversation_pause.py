"""Pausing, aborting, starting over, recovering and cancelling, in whatever phase."""

from __future__ import annotations

import pytest
from conversation_machine import (
    PERMANENT,
    TRANSIENT,
    WILL,
    Talk,
    at_phase,
    chain,
    executing,
    several,
    wanted,
)

from holdfast.core.conversation.decide import ConversationDecider, effects_in_flight
from holdfast.core.conversation.state import CONTEXT, DECOMPOSE
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed, TooLate
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.conversation import EngineState, OnFailure, SubTask
from holdfast.model.form import Field, Form
from holdfast.model.run import RunStatus

PAY = SubTask("pay it", type="pay", args={"amount": 5}, route="tool")
SEND = SubTask("send it", type="send", route="tool")
LOOK = SubTask("look at it", type="look", route="tool")
ORDER = SubTask("order", type="order", route="plan")
AT_REST = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)
AT_WORK = tuple(one for one in EngineState if one not in AT_REST)


def busy() -> Talk:
    """One task runs, one is a child run, one asks, one sleeps before its next attempt."""
    tasks = (SubTask("runs"), ORDER, PAY, SubTask("sleeps"), SubTask("idle"))
    talk = executing(*tasks, max_parallel=3).fill()
    talk.fails("sleeps", TRANSIENT)
    assert (len(talk.state.open_questions), len(talk.state.timers)) == (1, 1)
    assert (talk.running(), len(talk.children)) == (["runs"], 1)
    return talk


def test_a_pause_is_told_with_the_progress_and_so_is_the_resume() -> None:
    talk = executing(*several("ab")).fill()
    talk.done("a")
    talk.fill()
    seen = len(talk.told())
    talk.hold()
    assert (talk.state.phase, talk.state.status) == (EngineState.PAUSED, RunStatus.PAUSE)
    talk.unhold()
    assert talk.told()[seen:] == [
        ("state_changed", {"from": "executing", "to": "paused"}),
        ("engine_paused", {"progress": 0.5}),
        ("state_changed", {"from": "paused", "to": "executing"}),
        ("engine_resumed", {"progress": 0.5}),
    ]
    assert talk.state.status is RunStatus.RUNNING
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_resume_returns_to_the_phase_that_was_left() -> None:
    talk = wanted(*several("ab")).until(EngineState.SCHEDULING)
    talk.advance()
    talk.hold()
    talk.unhold()
    assert talk.state.phase is EngineState.SCHEDULING
    talk.settle()
    assert [one.step_id for one in talk.happened(v.TaskScheduled)] == ["t1", "t2"]


def test_nothing_starts_while_paused_neither_chosen_nor_answered_nor_awake() -> None:
    talk = busy()
    talk.advance()
    talk.hold()
    talk.answer("approve")
    talk.wait(60)
    assert not talk.pull()
    assert talk.running() == ["runs"]
    assert talk.state.status is RunStatus.PAUSE
    talk.unhold()
    talk.fill()
    assert len(talk.running()) == 2, "three places, one of them the child's"
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_task_that_was_chosen_before_the_pause_starts_after_it() -> None:
    talk = executing()
    assert talk.advance().events == (v.TaskChosen("t1"),)
    talk.hold()
    assert not talk.start("t1").events
    talk.unhold()
    assert talk.start("t1").effects


def test_results_that_come_while_paused_count_after_the_resume() -> None:
    talk = executing(SubTask("a"), ORDER, SubTask("c"), max_parallel=2).fill()
    talk.hold()
    talk.done("a", 1)
    talk.hear(talk.child(), "done", 2)
    assert (talk.state.progress, talk.state.completed) == (0.0, 0)
    assert not talk.pull()
    assert [one["result"] for one in talk.snapshot()["tasks"]] == [1, 2, None]
    talk.unhold()
    talk.fill()
    assert talk.state.completed == 2
    assert talk.running() == ["c"]


@pytest.mark.parametrize("on_failure", OnFailure)
def test_a_failure_that_comes_while_paused_is_held_until_the_resume(on_failure: OnFailure) -> None:
    talk = executing(on_failure=on_failure).fill()
    talk.hold()
    seen = len(talk.told())
    talk.fails("only", PERMANENT)
    assert not talk.pull()
    assert len(talk.told()) == seen
    talk.unhold()
    talk.advance()
    last = {"error": "engine_error", "ask": "interaction"}[on_failure]
    assert talk.told()[-1][0] == last


def test_a_person_may_end_a_paused_conversation_by_an_answer() -> None:
    talk = executing(PAY).fill()
    talk.hold()
    talk.answer("terminate")
    assert talk.state.phase is EngineState.ERROR
    assert talk.happened(v.EngineFailed)[0].phase is EngineState.EXECUTING


def test_a_question_that_is_open_keeps_it_waiting_after_the_resume() -> None:
    talk = executing(PAY).fill()
    talk.hold()
    talk.unhold()
    assert (talk.state.phase, talk.state.status) == (EngineState.EXECUTING, RunStatus.PAUSE)


@pytest.mark.parametrize("phase", AT_WORK)
def test_an_abort_ends_the_turn_in_every_phase_and_says_which(phase: EngineState) -> None:
    talk = at_phase(phase)
    talk.submit(c.Abort())
    left = EngineState.EXECUTING if phase is EngineState.PAUSED else phase
    assert talk.told()[-2:] == [
        ("state_changed", {"from": left.value, "to": "error"}),
        ("engine_error", {"error": "cancelled", "phase": left.value}),
    ]
    assert talk.state.status is RunStatus.ERROR
    talk.submit(c.StartOver(WILL))
    talk.converse("Again.")
    talk.flying.clear()
    assert talk.settle().phase is EngineState.COMPLETED


@pytest.mark.parametrize("step", [CONTEXT, DECOMPOSE])
@pytest.mark.parametrize("outcome", [PERMANENT, c.Fetched(), c.Decomposed(()), c.Lost("?")])
def test_what_comes_after_an_abort_changes_nothing(step: str, outcome: c.Outcome) -> None:
    phase = EngineState.CONTEXT_FETCHING if step == CONTEXT else EngineState.DECOMPOSING
    talk = at_phase(phase)
    talk.submit(c.Abort())
    assert not talk.report(talk.out(step), outcome).events
    assert talk.state.error == "cancelled"


def test_an_abort_leaves_no_question_no_timer_and_no_child_behind() -> None:
    talk = busy()
    question_id = talk.question().request_id
    work = talk.out("runs")
    talk.submit(c.Abort("enough"))
    assert not talk.state.open_questions
    assert not talk.state.timers
    assert [child.status for child in talk.children.values()] == ["cancelling"]
    with pytest.raises(TooLate):
        talk.submit(c.Answer(question_id, WILL, "approve"))
    assert talk.report(work, c.Succeeded(1)).events == (e.LateResultKept("t1", 1, 1),)
    assert not talk.wait(1_000).events
    assert not talk.crash().events
    assert not talk.hear(next(iter(talk.children)), "cancelled").events


@pytest.mark.parametrize("phase", EngineState)
def test_it_starts_over_from_every_phase_and_runs_again(phase: EngineState) -> None:
    talk = at_phase(phase)
    talk.submit(c.StartOver(WILL))
    state = talk.state
    assert (state.phase, state.status, state.total) == (EngineState.IDLE, RunStatus.DONE, 0)
    assert (state.text, state.history, state.pending) == ("", (), False)
    assert (state.active, state.in_flight, len(state.steps)) == (0, 0, 0)
    assert not talk.advance().events
    talk.flying.clear()
    talk.converse("Again.")
    assert talk.settle().phase is EngineState.COMPLETED


def test_starting_over_forgets_what_is_in_flight_what_is_asked_and_what_is_timed() -> None:
    talk = busy()
    question_id = talk.question().request_id
    work = talk.out("runs")
    talk.submit(c.StartOver(WILL))
    assert not talk.state.open_questions
    assert not talk.state.timers
    assert [child.status for child in talk.children.values()] == ["cancelling"]
    with pytest.raises(TooLate):
        talk.submit(c.Answer(question_id, WILL, "approve"))
    talk.converse("Again.")
    assert talk.report(work, c.Succeeded(1)).events == (e.LateResultKept("t1", 1, 1),)
    assert talk.state.total == 0


def test_what_may_be_repeated_is_begun_again_after_a_crash_under_its_key() -> None:
    own = SubTask("own", type="own", route="callable")
    talk = executing(LOOK, own, max_parallel=3).fill()
    keys = {one.work.key for one in talk.flying.values()}
    decision = talk.crash()
    assert {type(event) for event in decision.events} == {e.StepReleased, e.RunRecovered}
    talk.fill()
    assert {one.work.key for one in talk.flying.values()} == keys
    assert {one.work.attempt for one in talk.flying.values()} == {1}


@pytest.mark.parametrize("task", [SEND, SubTask("mine", route="once")])
def test_what_must_not_be_repeated_becomes_a_question_after_a_crash(task: SubTask) -> None:
    talk = executing(task).fill()
    talk.crash()
    assert "its outcome is unknown: the process that ran it went down" in talk.question().message
    assert talk.fill().running() == []
    talk.answer("happened")
    assert talk.settle().phase is EngineState.COMPLETED


@pytest.mark.parametrize("phase", [EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING])
def test_a_phase_that_was_interrupted_asks_again(phase: EngineState) -> None:
    talk = at_phase(phase)
    talk.crash()
    assert len(talk.advance().effects) == 1
    assert talk.settle().phase is EngineState.COMPLETED


def crashing() -> SubTask:
    return SubTask("crashes", type="mine", route="callable")


QUARANTINED = "quarantined: the process went down 3 times while this ran"


@pytest.mark.parametrize("paused", [False, True])
def test_work_that_takes_its_process_down_three_times_is_not_begun_again(paused: bool) -> None:
    talk = executing(crashing(), ORDER, max_parallel=2).fill()
    for count in (1, 2):
        talk.crash()
        assert talk.happened(e.RunRecovered)[-1].count == count
        talk.fill()
        assert talk.running() == ["crashes"]
    if paused:
        talk.hold()
    talk.crash()
    assert (talk.state.phase, talk.state.error) == (EngineState.ERROR, QUARANTINED)
    assert talk.told()[-1] == ("engine_error", {"error": QUARANTINED, "phase": "executing"})
    assert [one.status for one in talk.children.values()] == ["cancelling"]


@pytest.mark.parametrize("phase", [EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING])
def test_a_phase_that_crashes_three_times_is_quarantined_until_a_reset(phase: EngineState) -> None:
    talk = at_phase(phase)
    for _ in range(3):
        talk.advance()
        talk.crash()
    assert talk.state.error == QUARANTINED
    talk.submit(c.StartOver())
    assert talk.state.recoveries == 0
    talk.converse()
    assert talk.settle().phase is EngineState.COMPLETED


def test_crashes_between_which_something_was_done_do_not_add_up() -> None:
    talk = wanted(*chain(*"abcd"))
    for phase in (EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING):
        talk.until(phase).advance()
        talk.crash()
        assert talk.state.recoveries == 1
    talk.until(EngineState.EXECUTING)
    for name in "abcd":
        talk.fill()
        talk.crash()
        talk.crash()
        talk.fill().done(name)
    assert talk.settle().phase is EngineState.COMPLETED


def test_what_a_person_has_run_again_is_quarantined_as_well() -> None:
    talk = executing(SEND).fill()
    for _ in range(2):
        talk.crash()
        talk.answer("run_again")
        talk.fill()
        assert talk.running() == ["send it"]
    talk.crash()
    assert (talk.state.error, len(talk.state.open_questions)) == (QUARANTINED, 0)


def test_a_consumer_that_leaves_is_no_crash() -> None:
    talk = executing(SEND, crashing(), max_parallel=2).fill()
    for _ in range(5):
        talk.flying.clear()
        talk.submit(c.Recover(crashed=False))
        talk.answer("run_again")
        talk.fill()
        assert len(talk.running()) == 2
    assert not talk.happened(e.RunRecovered)


def test_a_run_that_is_being_cancelled_is_not_quarantined_besides() -> None:
    talk = executing(SEND, crashing(), max_parallel=2).fill()
    talk.submit(c.Cancel(WILL))
    talk.crash()
    assert talk.state.status is RunStatus.CANCELLED
    assert not talk.happened(e.RunRecovered)


def test_a_crash_disturbs_no_child_run_and_no_finished_task() -> None:
    talk = executing(SubTask("a"), ORDER, max_parallel=2).fill()
    talk.done("a", 1)
    assert not talk.crash().events
    assert talk.settle().phase is EngineState.COMPLETED
    assert len(talk.children) == 1


def test_a_new_owner_takes_up_what_is_in_flight_but_child_runs() -> None:
    talk = busy()
    (effect,) = effects_in_flight(talk.state)
    assert effect == talk.out("runs")
    assert not ConversationDecider.goes_on_by_itself(talk.state)


def test_cancelling_lets_what_is_in_flight_end_and_starts_nothing_more() -> None:
    talk = busy()
    talk.submit(c.Cancel(WILL, "enough", grace=10))
    assert talk.state.status is RunStatus.CANCELLING
    assert not talk.state.open_questions
    assert not talk.pull()
    talk.done("runs", 1)
    assert talk.state.status is RunStatus.CANCELLING
    talk.hear(next(iter(talk.children)), "done", 2)
    assert (talk.state.status, talk.state.cancelled_by) == (RunStatus.CANCELLED, WILL)
    assert not talk.state.timers
    with pytest.raises(NotAllowed):
        talk.converse("Again.")


@pytest.mark.parametrize("step", [CONTEXT, DECOMPOSE])
@pytest.mark.parametrize(
    "outcome", [PERMANENT, c.Lost("?"), c.Undecomposed("?"), c.Fetched(), c.NotSent()]
)
def test_a_phase_that_ends_while_cancelling_ends_the_run(step: str, outcome: c.Outcome) -> None:
    phase = EngineState.CONTEXT_FETCHING if step == CONTEXT else EngineState.DECOMPOSING
    talk = at_phase(phase)
    talk.submit(c.Cancel(WILL))
    talk.report(talk.out(step), outcome)
    assert talk.state.status is RunStatus.CANCELLED
    assert talk.state.phase is phase


@pytest.mark.parametrize(
    "outcome",
    [
        PERMANENT,
        TRANSIENT,
        c.Lost("?"),
        c.NotSent(),
        c.Missing(Form((Field("size"),))),
        c.Succeeded({"x": 1}),
    ],
)
def test_a_task_that_ends_while_cancelling_asks_nobody(outcome: c.Outcome) -> None:
    talk = executing(on_failure=OnFailure.ASK).fill()
    talk.submit(c.Cancel(WILL))
    talk.report(talk.out("only"), outcome)
    assert talk.state.status is RunStatus.CANCELLED
    assert not talk.state.questions


@pytest.mark.parametrize("word", ["error", "cancelled", "done"])
@pytest.mark.parametrize("ended_by", ["", WILL])
def test_a_child_that_ends_while_cancelling_ends_the_run(word: str, ended_by: str) -> None:
    talk = executing(ORDER).fill()
    talk.submit(c.Cancel(WILL))
    talk.hear(next(iter(talk.children)), word, {"success": False}, ended_by=ended_by)
    assert talk.state.status is RunStatus.CANCELLED


def test_what_has_not_ended_when_the_grace_is_over_stays_unknown() -> None:
    talk = busy()
    talk.submit(c.Cancel(WILL, grace=10))
    talk.wait(10)
    assert [one.step_id for one in talk.happened(e.OutcomeLost)] == ["t1", "t2"]
    assert talk.state.status is RunStatus.CANCELLED
    assert not talk.state.questions[next(iter(talk.state.questions))].by


def test_a_conversation_at_rest_is_cancelled_at_once() -> None:
    for phase in (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR):
        talk = at_phase(phase)
        talk.submit(c.Cancel(WILL))
        assert talk.state.status is RunStatus.CANCELLED


def test_a_thousand_pauses_change_no_result() -> None:
    tasks = (*chain("a", "b", "c"), *several("defg"))
    calm = executing(*tasks)
    calm.settle()
    talk = executing(*tasks)
    for number in range(1_000):
        if number % 90 == 0:
            talk.pull()
        talk.hold()
        if number % 70 == 0 and talk.running():
            name = talk.running()[0]
            talk.done(name, {"did": name})
        talk.unhold()
    talk.settle()
    assert talk.state.tasks == calm.state.tasks
    assert talk.state.phase is EngineState.COMPLETED
    assert talk.past[-1].work.attempt == 1
    assert all(isinstance(one, f.RunTask | f.FetchContext | f.Decompose) for one in talk.past)
    assert not [one for one in talk.state.steps.values() if one.status is StepStatus.RUNNING]


def test_a_failed_child_run_that_waits_again_is_nothing_to_a_conversation_that_is_cancelled() -> (
    None
):
    talk = executing(ORDER, SubTask("runs"), max_parallel=2).fill()
    child = talk.child()
    talk.submit(c.Cancel(WILL, "enough", grace=5))
    talk.hear(child, "error")
    talk.hear(child, "pause")
    assert (talk.state.paused_children, talk.state.status) == (0, RunStatus.CANCELLING)
