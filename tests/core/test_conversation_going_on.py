"""Going on after a failure: nothing done is done again, and nothing in doubt is tried unasked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversation_machine import (
    PERMANENT,
    UNKNOWN,
    WILL,
    Talk,
    at_phase,
    executing,
    opened,
    several,
    wanted,
)

from holdfast.core.conversation import phases, snapshot
from holdfast.core.conversation.briefing import final_answer
from holdfast.core.conversation.state import CONTEXT, DECOMPOSE
from holdfast.core.run.state import changed
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.conversation import EngineState, OnFailure, SubTask
from holdfast.model.retry import Failure, FailureKind, RetryPolicy
from holdfast.model.run import RunStatus

PAY = SubTask("pay", "Pay it", "own", args={"amount": 5}, route="once")
MAIL = SubTask("mail", "Mail it", "own", dependencies=("pay",), route="callable")
REPORT = SubTask("report", dependencies=("mail",))
FILE = SubTask("file", dependencies=("report",))
OTHER = SubTask("other")
ORDER = SubTask("order", type="order", route="plan")
ONCE = RetryPolicy(attempts=1)
THE_SEEDS_WAY = [
    ("error", "idle"),
    ("idle", "receiving"),
    ("receiving", "context_fetching"),
    ("context_fetching", "decomposing"),
    ("decomposing", "scheduling"),
    ("scheduling", "executing"),
]


def ran(talk: Talk) -> list[str]:
    return [one.task.id for one in talk.past if isinstance(one, f.RunTask)]


def mail_failed(*more: SubTask, **settings: Any) -> Talk:
    """`pay` is done, `mail` has failed, and so has the turn."""
    talk = executing(PAY, MAIL, *more, retry=ONCE, **settings).fill()
    talk.done("pay", {"receipt": 7})
    talk.fill()
    talk.fails("mail")
    talk.advance()
    assert talk.state.phase is EngineState.ERROR
    return talk


def carried_over(talk: Talk, **settings: Any) -> Talk:
    body = json.loads(json.dumps(talk.snapshot(), ensure_ascii=False))
    other = opened(**settings)
    other.goal = talk.goal
    other.submit(c.RestoreSnapshot(snapshot.checked(body)))
    return other


def phases_from(talk: Talk, seen: int) -> list[tuple[str, str]]:
    told = [data for name, data in talk.told()[seen:] if name == "state_changed"]
    return [(one["from"], one["to"]) for one in told]


def test_retry_passes_the_seeds_phases_with_what_is_done_kept_and_asks_no_model() -> None:
    talk = mail_failed(REPORT)
    seen, before = len(talk.told()), len(talk.past)
    talk.go_on("retry")
    assert (talk.state.status, talk.state.error) == (RunStatus.RUNNING, "")
    assert talk.settle().phase is EngineState.COMPLETED
    assert phases_from(talk, seen)[:6] == THE_SEEDS_WAY
    assert not [one for one in talk.past[before:] if isinstance(one, f.FetchContext | f.Decompose)]
    assert ran(talk) == ["pay", "mail", "mail", "report"]
    scheduled = [data["task_id"] for name, data in talk.told()[seen:] if name == "task_scheduled"]
    assert scheduled == ["mail", "report"]
    assert talk.task("pay").result == {"receipt": 7}
    assert talk.told()[-1] == ("engine_completed", {"total_tasks": 3, "completed_tasks": 3})


def test_what_failed_is_tried_again_as_a_new_piece_of_work() -> None:
    talk = mail_failed()
    talk.go_on()
    talk.settle()
    keys = [one.work.key for one in talk.past if isinstance(one, f.RunTask)]
    assert [one.split(":", 1)[1] for one in keys] == ["1.t1:1:0", "1.t2:1:0", "1.t2:2:0"]
    assert talk.happened(v.TaskStarted)[-1].firing == 2


def test_what_may_have_happened_keeps_its_key_when_it_is_tried_again() -> None:
    talk = executing(SubTask("own", type="own", route="callable"), retry=ONCE).fill()
    talk.fails("own", UNKNOWN)
    talk.advance()
    talk.go_on()
    talk.settle()
    first, again = (one.work.key for one in talk.past if isinstance(one, f.RunTask))
    assert first == again


def test_skip_leaves_out_what_failed_and_whatever_depends_on_it_and_says_which() -> None:
    talk = mail_failed(REPORT, FILE, OTHER, max_parallel=1)
    assert phases.to_skip(talk.state) == ["t2", "t3", "t4"]
    talk.go_on("skip")
    assert talk.happened(v.ConversationResumed)[-1].skipped == ("t2", "t3", "t4")
    assert talk.settle().phase is EngineState.COMPLETED
    assert ran(talk) == ["pay", "mail", "other"]
    why = {
        "mail": "it failed: no such thing",
        "report": "it depends on mail, which failed",
        "file": "it depends on report, skipped as well",
    }
    assert {one.id: one.skipped for one in talk.state.tasks.values() if one.skipped} == why
    for name, reason in why.items():
        assert talk.task(name).status == "skipped"
        assert talk.task(name).result == {"skipped": True, "by": WILL, "reason": reason}
    told = [data for name, data in talk.told() if name == "task_completed"]
    assert {one["task_id"]: one["reason"] for one in told if one.get("skipped")} == why
    counts = {"total_tasks": 5, "completed_tasks": 2, "skipped_tasks": 3}
    assert talk.told()[-1] == ("engine_completed", counts)
    assert talk.state.progress == 2 / 5


def test_what_was_done_and_what_was_skipped_is_told_in_words() -> None:
    talk = mail_failed(REPORT, FILE, OTHER, max_parallel=1)
    talk.go_on("skip")
    talk.settle()
    assert final_answer(talk.state).splitlines() == [
        'Pay it: {"receipt":7}',
        "Mail it: skipped (it failed: no such thing)",
        "report: skipped (it depends on mail, which failed)",
        "file: skipped (it depends on report, skipped as well)",
        'other: {"did":"other"}',
    ]


def test_the_model_that_writes_the_answer_is_told_what_was_skipped_and_why() -> None:
    talk = mail_failed(REPORT)
    talk.state = talk.replayed = changed(talk.state, by_model=True)
    talk.go_on("skip")
    talk.settle()
    [asked] = [one for one in talk.past if isinstance(one, f.WriteAnswer)]
    assert {one["id"]: one.get("skipped", "") for one in asked.tasks} == {
        "pay": "",
        "mail": "it failed: no such thing",
        "report": "it depends on mail, which failed",
    }
    assert all(("result" in one) != ("skipped" in one) for one in asked.tasks)


def test_what_was_skipped_in_a_turn_that_failed_later_was_not_done() -> None:
    talk = mail_failed(SubTask("last", priority=9))
    talk.go_on("skip")
    talk.until(EngineState.EXECUTING).fill()
    talk.fails("last")
    talk.advance()
    talk.go_on("stop")
    talk.converse("and now?")
    [turn] = talk.state.history
    assert [one["id"] for one in turn.unfinished["done"]] == ["pay"]
    assert [one["id"] for one in turn.unfinished["not_done"]] == ["mail", "last"]


def test_what_is_skipped_already_is_not_skipped_again() -> None:
    late = SubTask("late", dependencies=("first", "other"))
    other = SubTask("other", priority=5)
    talk = executing(SubTask("first"), late, other, retry=ONCE).fill()
    talk.fails("first")
    talk.advance()
    talk.go_on("skip")
    talk.until(EngineState.EXECUTING).fill()
    talk.fails("other")
    talk.advance()
    assert phases.to_skip(talk.state) == ["t3"]
    talk.go_on("skip")
    assert talk.settle().phase is EngineState.COMPLETED
    told = [data["task_id"] for name, data in talk.told() if name == "task_completed"]
    assert sorted(told) == ["first", "late", "other"]
    assert talk.task("late").skipped == "it depends on first, which failed"


def test_skipping_again_after_some_of_the_skipped_were_told_leaves_nothing_stuck() -> None:
    first = SubTask("first", priority=9)
    late = SubTask("late", priority=0, dependencies=("first",))
    talk = executing(first, late, SubTask("z", priority=10), retry=ONCE).fill()
    talk.fails("first")
    talk.advance()
    talk.go_on("skip")
    talk.until(EngineState.EXECUTING).advance()
    assert [one.step_id for one in talk.happened(v.TaskCompleted)] == ["t2"]
    talk.submit(c.Abort())
    for one in (talk, carried_over(talk)):
        one.go_on("retry")
        assert one.settle().phase is EngineState.COMPLETED
        assert one.task("late").result["skipped"] is True


@pytest.mark.parametrize("phase", [EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING])
def test_where_no_task_has_failed_there_is_none_to_skip(phase: EngineState) -> None:
    talk = at_phase(phase)
    talk.report(
        talk.out(CONTEXT if phase is EngineState.CONTEXT_FETCHING else DECOMPOSE), PERMANENT
    )
    recorded = len(talk.records)
    with pytest.raises(NotAllowed, match=r"no task of conversation has failed.*retry or stop"):
        talk.go_on("skip")
    assert len(talk.records) == recorded
    talk.go_on("retry")
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_context_that_was_fetched_is_not_fetched_again_for_a_new_decomposition() -> None:
    talk = at_phase(EngineState.DECOMPOSING)
    talk.report(talk.out(DECOMPOSE), PERMANENT)
    talk.go_on("retry")
    before = len(talk.past)
    talk.settle()
    kinds = [type(one) for one in talk.past[before:] if not isinstance(one, f.RunTask)]
    assert kinds == [f.Decompose]


def test_stop_ends_the_turn_and_the_next_decomposition_is_told_what_was_done() -> None:
    talk = mail_failed()
    seen = len(talk.told())
    talk.go_on("stop")
    assert phases_from(talk, seen) == [("error", "idle")]
    state = talk.state
    assert (state.phase, state.status, state.error) == (
        EngineState.IDLE,
        RunStatus.DONE,
        "no such thing",
    )
    assert talk.task("pay").status == "completed"
    assert not talk.advance().events
    talk.converse("And now the mail.")
    talk.until(EngineState.DECOMPOSING).advance()
    [told] = talk.out(DECOMPOSE).history
    assert told["results"] == {"pay": {"receipt": 7}}
    unfinished = told["unfinished"]
    assert unfinished["error"] == "no such thing"
    assert [one["id"] for one in unfinished["done"]] == ["pay"]
    assert unfinished["done"][0]["args"] == {"amount": 5}
    assert [one["id"] for one in unfinished["not_done"]] == ["mail"]
    assert unfinished["perhaps_done"] == []


def test_a_stopped_turn_survives_a_snapshot_and_is_still_told_of() -> None:
    talk = executing(PAY, OTHER, retry=ONCE, max_parallel=2).fill()
    talk.fails("other")
    talk.advance()
    talk.go_on("stop")
    other = carried_over(talk)
    assert (other.state.phase, other.state.status) == (EngineState.IDLE, RunStatus.DONE)
    other.converse("Next.")
    other.until(EngineState.DECOMPOSING).advance()
    [told] = other.out(DECOMPOSE).history
    assert [one["id"] for one in told["unfinished"]["not_done"]] == ["other"]
    assert [one["id"] for one in told["unfinished"]["perhaps_done"]] == ["pay"]
    third = carried_over(other)
    assert third.state.history == other.state.history


def test_a_turn_that_failed_before_it_had_tasks_is_told_of_too() -> None:
    talk = at_phase(EngineState.DECOMPOSING)
    talk.report(talk.out(DECOMPOSE), PERMANENT)
    talk.go_on("stop")
    talk.converse("Again.")
    [turn] = talk.state.history
    assert (turn.text, turn.results, turn.unfinished["error"]) == ("Go.", {}, "no such thing")


@pytest.mark.parametrize("choice", ["retry", "skip"])
def test_what_was_under_way_and_must_not_be_repeated_is_asked_about_first(choice: str) -> None:
    talk = executing(PAY, OTHER, retry=ONCE, max_parallel=2).fill()
    talk.fails("other")
    talk.advance()
    assert phases.doubtful(talk.state) == ["t1"]
    talk.flying.clear()
    talk.go_on(choice)
    asked = talk.question()
    assert (asked.title, asked.context["args"]) == ("Did own happen?", {"amount": 5})
    assert talk.state.status is RunStatus.PAUSE
    talk.settle()
    assert ran(talk).count("pay") == 0, "nobody has told yet what became of it"
    assert talk.task("other").status == {"retry": "completed", "skip": "skipped"}[choice]
    talk.answer("happened", result="paid")
    assert talk.settle().phase is EngineState.COMPLETED
    assert talk.task("pay").result == {"result": "paid"}
    assert "pay" not in ran(talk)


def test_a_question_about_something_in_doubt_that_was_answered_with_stop_is_asked_again() -> None:
    talk = executing(PAY, OTHER).fill()
    talk.crash()
    for _ in range(2):
        assert talk.question().title == "Did own happen?"
        talk.answer("stop")
        assert talk.state.phase is EngineState.ERROR
        talk.go_on()
    talk.answer("run_again")
    assert talk.settle().phase is EngineState.COMPLETED
    assert ran(talk).count("pay") == 1


def test_an_open_question_about_something_in_doubt_is_asked_again_after_a_failure() -> None:
    talk = executing(PAY, OTHER, retry=ONCE, max_parallel=2).fill()
    talk.fails("pay", c.Lost("no answer"))
    talk.fails("other")
    talk.advance()
    assert not talk.state.open_questions
    talk.go_on()
    talk.answer("happened")
    assert talk.settle().phase is EngineState.COMPLETED
    assert ran(talk).count("pay") == 1


def test_what_a_person_had_told_to_run_again_is_not_asked_about_twice() -> None:
    talk = executing(PAY, OTHER).fill()
    talk.crash()
    talk.hold()
    talk.answer("run_again")
    talk.submit(c.Abort())
    assert phases.doubtful(talk.state) == []
    talk.go_on()
    assert not talk.state.open_questions
    assert talk.settle().phase is EngineState.COMPLETED


def test_what_may_be_repeated_and_was_under_way_simply_runs_again_under_its_key() -> None:
    talk = executing(SubTask("own", type="own", route="callable")).fill()
    lost = talk.out("own").work.key
    talk.submit(c.Abort())
    talk.flying.clear()
    talk.go_on()
    talk.settle()
    assert [one.work.key for one in talk.past if isinstance(one, f.RunTask)] == [lost]


def test_word_that_comes_after_the_failure_is_kept_for_going_on() -> None:
    talk = executing(PAY, OTHER, retry=ONCE, max_parallel=2).fill()
    late = talk.out("pay")
    talk.fails("other")
    talk.advance()
    assert not talk.report(late, c.Failed(Failure(FailureKind.UNKNOWN, "?"))).events
    stale = c.ReportOutcome("t1", 1, late.work.claim + 1, c.Succeeded("wrong"))
    assert talk.submit(stale).events == (e.LateResultKept("t1", 1, "wrong", stale=True),)
    assert phases.doubtful(talk.state) == ["t1"]
    assert talk.report(late, c.Succeeded("paid")).events == (e.LateResultKept("t1", 1, "paid"),)
    assert phases.doubtful(talk.state) == []
    talk.go_on("skip")
    assert not talk.state.open_questions
    assert talk.settle().phase is EngineState.COMPLETED
    assert talk.task("pay").result == "paid"


def test_a_failure_that_is_heard_of_after_the_turns_is_no_doubt_any_more() -> None:
    talk = executing(PAY, OTHER, retry=ONCE, max_parallel=2).fill()
    late = talk.out("pay")
    talk.fails("other")
    talk.advance()
    talk.report(late, PERMANENT)
    assert phases.to_skip(talk.state) == ["t1", "t2"]
    talk.go_on("retry")
    assert not talk.state.open_questions
    assert talk.settle().phase is EngineState.COMPLETED
    assert ran(talk).count("pay") == 2


def test_a_result_that_nobody_was_told_of_is_kept() -> None:
    talk = executing(*several("ab"), retry=ONCE, max_parallel=2).fill()
    talk.fails("a")
    talk.done("b", "done")
    talk.advance()
    assert (talk.state.phase, talk.task("b").status) == (EngineState.ERROR, "finished")
    talk.go_on()
    assert talk.settle().phase is EngineState.COMPLETED
    assert ran(talk) == ["a", "b", "a"]


def test_a_rejected_call_is_asked_about_anew_and_an_old_consent_is_not_enough() -> None:
    talk = executing(
        SubTask("pay", type="pay", args={"amount": 5}, route="tool"), retry=ONCE
    ).fill()
    talk.answer("approve")
    talk.fill()
    talk.fails("pay")
    talk.advance()
    talk.go_on()
    talk.until(EngineState.EXECUTING).fill()
    assert talk.question().title == "Run pay?"
    assert not talk.flying
    talk.answer("reject", "too much")
    talk.advance()
    assert talk.state.error == f"rejected by {WILL}: too much"
    talk.go_on()
    talk.until(EngineState.EXECUTING).fill()
    talk.answer("approve")
    assert talk.settle().phase is EngineState.COMPLETED


def test_what_a_person_gave_is_not_asked_for_again() -> None:
    talk = executing(SubTask("pay", type="pay", route="tool"), retry=ONCE).fill()
    talk.answer("provide", amount=9)
    talk.fill()
    talk.answer("approve")
    talk.fill()
    talk.fails("pay")
    talk.advance()
    talk.go_on()
    talk.until(EngineState.EXECUTING).fill()
    assert talk.question().context["args"] == {"amount": 9}


def child_failed(**settings: Any) -> tuple[Talk, str]:
    talk = executing(ORDER, OTHER, **settings).fill()
    child = talk.child()
    talk.hear(child, "error")
    talk.advance()
    assert talk.state.phase is EngineState.ERROR
    assert talk.children[child].status == "error", "it may yet go on"
    return talk, child


def test_a_child_run_that_failed_goes_on_where_it_stopped() -> None:
    talk, child = child_failed()
    talk.go_on()
    talk.until(EngineState.EXECUTING)
    talk.advance()
    decision = talk.start("t1")
    assert decision.effects == (f.ResumeChild(child, WILL),)
    assert talk.crash().effects == (f.ResumeChild(child, WILL),), "it may not have heard"
    talk.hear(child, "running")
    assert not talk.crash().effects
    talk.hear(child, "done", {"order": 7})
    assert talk.settle().phase is EngineState.COMPLETED
    assert len(talk.children) == 1
    assert talk.task("order").result == {"order": 7}


@pytest.mark.parametrize("choice", ["skip", "stop"])
def test_a_child_run_that_nobody_will_have_go_on_is_ended(choice: str) -> None:
    talk, child = child_failed()
    talk.go_on(choice)
    assert talk.children[child].status == "cancelling"


@pytest.mark.parametrize("command", [c.StartOver(WILL), c.Cancel(WILL)])
def test_a_failed_child_run_ends_with_the_turn_or_the_conversation(command: c.Command) -> None:
    talk, child = child_failed()
    talk.submit(command)
    assert talk.children[child].status == "cancelling"


def test_a_child_run_that_is_mended_by_itself_has_done_its_task() -> None:
    talk, child = child_failed()
    talk.hear(child, "running")
    talk.hear(child, "done", {"order": 7})
    assert not talk.submit(c.HearChild(child, 1, "t1", 1, "error")).events
    assert not talk.submit(c.HearChild("stranger", 9, "t2", 1, "done")).events
    talk.go_on()
    assert talk.settle().phase is EngineState.COMPLETED
    assert len(talk.children) == 1
    assert talk.task("order").result == {"order": 7}


@pytest.mark.parametrize("phase", [EngineState.RECEIVING, EngineState.EXECUTING])
def test_a_child_run_that_ends_before_its_task_starts_again_is_heard(phase: EngineState) -> None:
    talk, child = child_failed()
    talk.go_on()
    talk.until(phase)
    talk.hear(child, "done", {"order": 7})
    assert talk.settle().phase is EngineState.COMPLETED
    assert (len(talk.children), talk.task("order").result) == (1, {"order": 7})
    again, gone = child_failed()
    again.go_on()
    again.hear(gone, "running")
    again.hear(gone, "cancelled")
    assert again.settle().phase is EngineState.COMPLETED
    assert len(again.children) == 2


@pytest.mark.parametrize("word", ["cancelled", "done"])
def test_a_child_run_that_is_gone_is_begun_anew(word: str) -> None:
    talk, child = child_failed()
    talk.hear(child, word, {"success": False})
    talk.go_on()
    talk.settle()
    assert len(talk.children) == 2
    assert talk.state.phase is EngineState.COMPLETED


def test_a_child_run_under_way_is_ended_with_the_turn_and_asked_about() -> None:
    talk = executing(ORDER, OTHER, retry=ONCE, max_parallel=2).fill()
    child = talk.child()
    talk.fails("other")
    talk.advance()
    assert talk.children[child].status == "cancelling"
    assert not talk.hear(child, "cancelled").events
    talk.go_on()
    assert talk.question().title == "Did order happen?"
    talk.answer("run_again")
    assert talk.settle().phase is EngineState.COMPLETED
    assert len(talk.children) == 2


def test_a_second_failure_keeps_what_the_first_had_put_aside() -> None:
    talk = executing(*several("ab"), retry=ONCE, max_parallel=2).fill()
    talk.fails("a")
    talk.fails("b")
    talk.advance()
    talk.go_on()
    talk.until(EngineState.SCHEDULING).submit(c.Abort())
    talk.go_on()
    talk.settle()
    keys = [one.work.key for one in talk.past if isinstance(one, f.RunTask)]
    assert len(keys) == len(set(keys)) == 4


def test_a_snapshot_in_error_restores_and_can_go_on() -> None:
    talk = executing(
        PAY, MAIL, REPORT, OTHER, SubTask("mine", type="own", route="once"), retry=ONCE
    )
    talk.fill()
    talk.done("pay", {"receipt": 7})
    talk.fill()
    talk.fails("mail")
    talk.advance()
    for choice, left in (
        ("retry", ["mail", "mine", "other", "report"]),
        ("skip", ["mine", "other"]),
    ):
        other = carried_over(talk)
        assert (other.state.phase, other.state.error) == (EngineState.ERROR, "no such thing")
        other.go_on(choice)
        assert other.settle().phase is EngineState.COMPLETED
        assert sorted(ran(other)) == left


def test_a_snapshot_in_error_keeps_what_is_in_doubt() -> None:
    talk = executing(PAY, OTHER, retry=ONCE, max_parallel=2).fill()
    talk.fails("other")
    talk.advance()
    assert [one["doubtful"] for one in talk.snapshot()["tasks"]] == [True, False]
    third = carried_over(carried_over(talk))
    assert third.snapshot()["tasks"] == talk.snapshot()["tasks"]
    third.go_on()
    assert third.question().context["args"] == {"amount": 5}
    third.answer("happened")
    assert third.settle().phase is EngineState.COMPLETED
    assert ran(third) == ["other"]


@pytest.mark.parametrize(
    "phase",
    [
        EngineState.RECEIVING,
        EngineState.CONTEXT_FETCHING,
        EngineState.DECOMPOSING,
        EngineState.SCHEDULING,
        EngineState.EXECUTING,
    ],
)
def test_a_snapshot_on_the_way_back_goes_on_too(phase: EngineState) -> None:
    talk = executing(PAY, OTHER, MAIL, SubTask("third"), retry=ONCE, max_parallel=2).fill()
    talk.done("pay")
    talk.fails("other")
    talk.advance()
    talk.advance()
    assert talk.state.phase is EngineState.ERROR
    talk.go_on()
    talk.until(phase)
    other = carried_over(talk)
    assert other.settle().phase is EngineState.COMPLETED
    assert not [one for one in other.past if isinstance(one, f.FetchContext | f.Decompose)]
    assert sorted(ran(other)) == ["mail", "other", "third"]


def test_a_snapshot_whose_kept_is_no_truth_value_is_refused() -> None:
    with pytest.raises(InvalidAnswer, match="its kept is 1, not true or false"):
        snapshot.checked({**opened().snapshot(), "kept": 1})


def test_going_on_is_for_a_turn_that_failed() -> None:
    for talk in (opened(), wanted(), executing()):
        with pytest.raises(NotAllowed, match="it has not failed"):
            talk.go_on()


def test_with_a_person_to_ask_a_failure_is_still_theirs_to_decide() -> None:
    talk = executing(OTHER, retry=ONCE, on_failure=OnFailure.ASK).fill()
    talk.fails("other")
    talk.advance()
    talk.answer("stop")
    assert talk.state.error == f"ended by {WILL}"
    talk.go_on()
    assert talk.settle().phase is EngineState.COMPLETED


def test_the_choices_are_told_and_a_task_that_two_depend_on_is_skipped_once() -> None:
    both = SubTask("both", dependencies=("mail", "report"))
    talk = mail_failed(REPORT, both)
    assert phases.choices(talk.state) == ["retry", "skip", "stop"]
    assert phases.to_skip(talk.state) == ["t2", "t3", "t4"]
    assert phases.choices(at_phase(EngineState.ERROR).state) == ["retry", "stop"]


@pytest.mark.parametrize("word", [c.Succeeded("late"), PERMANENT])
def test_late_word_of_an_earlier_try_changes_nothing_of_a_task_that_is_done(
    word: c.Outcome,
) -> None:
    """`first` failed, went well at the second try, and then another task ended the turn."""
    talk = executing(SubTask("first"), SubTask("second"), retry=ONCE).fill()
    earlier = talk.out("first")
    talk.fails("first")
    talk.advance()
    talk.go_on()
    talk.until(EngineState.EXECUTING).fill()
    talk.done("first", "well")
    talk.fill()
    talk.fails("second")
    talk.advance()
    assert talk.state.phase is EngineState.ERROR
    talk.report(earlier, word)
    assert (talk.task("first").status, talk.task("first").result) == ("completed", "well")
    assert talk.state.completed == 1
