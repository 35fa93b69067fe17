"""Tasks of a conversation: their order, their failures and what they ask people."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conversation_machine import (
    DISABLED,
    PERMANENT,
    TOOLS,
    TRANSIENT,
    UNKNOWN,
    WILL,
    Talk,
    chain,
    executing,
    several,
)

from holdfast.core.run.tables import StepStatus
from holdfast.errors import AlreadyAnswered, InvalidAnswer, TooLate
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.conversation import EngineState, OnFailure, SubTask
from holdfast.model.form import Field, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import RunStatus

ONCE = RetryPolicy(attempts=1)
PAY = SubTask("pay it", type="pay", args={"amount": 5}, route="tool")
SEND = SubTask("send it", type="send", route="tool")


def last_error(talk: Talk) -> v.EngineFailed:
    return talk.happened(v.EngineFailed)[-1]


def test_the_most_urgent_goes_first_and_equals_in_the_order_they_were_listed() -> None:
    tasks = [SubTask(name, priority=len(name)) for name in ("ccc", "a", "bb", "aa", "c")]
    talk = executing(*tasks)
    talk.settle()
    scheduled = [talk.state.tasks[one.step_id].id for one in talk.happened(v.TaskScheduled)]
    assert scheduled == ["a", "c", "bb", "aa", "ccc"]
    assert [one.task.id for one in talk.past if isinstance(one, f.RunTask)] == scheduled


def test_dependencies_come_before_urgency() -> None:
    talk = executing(SubTask("late", priority=-9, dependencies=("early",)), SubTask("early"))
    talk.fill()
    assert talk.running() == ["early"]
    talk.done("early", 42)
    talk.fill()
    assert talk.out("late").results == {"early": 42}


def test_a_dependency_named_twice_is_waited_for_once() -> None:
    talk = executing(SubTask("a"), SubTask("b", dependencies=("a", "a")))
    assert talk.settle().phase is EngineState.COMPLETED


@pytest.mark.parametrize("many", [1, 3, 50])
def test_so_many_tasks_run_at_once_and_no_more(many: int) -> None:
    talk = executing(*several("abcdefg"), max_parallel=many).fill()
    assert len(talk.running()) == min(many, 7)
    talk.done("a")
    assert talk.state.progress == 0.0
    talk.fill()
    assert len(talk.running()) == min(many, 6)


def test_what_has_come_of_tasks_is_told_before_another_starts() -> None:
    talk = executing(*several("abc"), max_parallel=2).fill()
    talk.done("b")
    talk.done("a")
    assert talk.advance().events == (v.TaskCompleted("t2"),)
    assert talk.advance().events == (v.TaskCompleted("t1"),)
    assert talk.advance().events == (v.TaskChosen("t3"),)


def test_a_task_that_waits_for_a_person_takes_no_place_and_holds_only_its_dependents() -> None:
    talk = executing(PAY, SubTask("after", dependencies=("pay it",)), SubTask("free")).fill()
    assert talk.question("pay it").type is InteractionType.TOOL_APPROVAL
    assert (talk.running(), talk.state.status) == (["free"], RunStatus.PAUSE)
    talk.answer("approve")
    talk.fill()
    assert talk.running() == ["free"], "there is only one place"
    talk.done("free")
    talk.fill()
    assert talk.running() == ["pay it"]
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_step_that_is_not_ready_cannot_be_started() -> None:
    talk = executing(*several("ab")).fill()
    for step_id in ("t1", "t2", "t9", "decompose"):
        assert not talk.start(step_id).events


def test_a_failure_is_tried_again_by_the_policy_under_a_new_key() -> None:
    talk = executing(retry=RetryPolicy(attempts=2, jitter=0)).fill()
    first = talk.out("only").work
    talk.fails("only", TRANSIENT)
    assert talk.told()[-1] == (
        "task_retrying",
        {"task_id": "only", "error": "out of order", "retry_at": talk.now + 0.5},
    )
    talk.wait(0.4)
    assert not talk.pull()
    talk.wait(0.1)
    talk.fill()
    second = talk.out("only").work
    assert (second.attempt, second.key != first.key) == (2, True)
    talk.fails("only", TRANSIENT)
    talk.advance()
    assert last_error(talk) == v.EngineFailed("out of order", EngineState.EXECUTING, "t1")
    error = {"error": "out of order", "phase": "executing", "task_id": "only"}
    assert talk.told()[-1] == ("engine_error", error)


def test_a_lost_outcome_of_what_may_be_repeated_keeps_its_key() -> None:
    talk = executing().fill()
    first = talk.out("only").work
    talk.fails("only", c.Lost("no answer"))
    talk.wait(60)
    talk.fill()
    assert talk.out("only").work.key == first.key
    talk.fails("only", UNKNOWN)
    talk.wait(60)
    assert talk.settle().phase is EngineState.COMPLETED


def asked_about_failure(outcome: c.Outcome = PERMANENT, task: SubTask | None = None) -> Talk:
    first = task or SubTask("a")
    settings = {"on_failure": OnFailure.ASK, "retry": ONCE}
    talk = executing(first, SubTask("b", dependencies=(first.id,)), **settings).fill()
    talk.fails(first.id, outcome)
    assert not talk.state.open_questions, "told when the consumer asks"
    talk.advance()
    return talk


def test_a_person_may_be_asked_what_shall_become_of_a_failure() -> None:
    talk = asked_about_failure()
    assert talk.told()[-2] == ("task_failed", {"task_id": "a", "error": "no such thing"})
    asked = talk.question("a")
    assert (asked.title, asked.context) == ("Task a failed", {"error": "no such thing"})
    assert [one.option_id for one in asked.options] == ["run_again", "skip", "stop"]
    assert talk.state.failed == ()


@pytest.mark.parametrize(("outcome", "same_key"), [(PERMANENT, False), (UNKNOWN, True)])
def test_a_failed_task_runs_again_when_a_person_says_so(outcome: c.Outcome, same_key: bool) -> None:
    talk = asked_about_failure(outcome)
    before = talk.past[-1].work
    talk.answer("run_again")
    talk.fill()
    again = talk.out("a").work
    assert (again.attempt, again.key == before.key) == (1, same_key)
    assert talk.settle().phase is EngineState.COMPLETED


def test_a_failed_task_may_be_done_without() -> None:
    talk = asked_about_failure()
    talk.answer("skip")
    assert talk.settle().phase is EngineState.COMPLETED
    why = f"{WILL} went on without it"
    assert (talk.task("a").status, talk.task("a").skipped) == ("skipped", why)
    assert talk.task("a").result == {"skipped": True, "by": WILL, "reason": why}
    told = [data for name, data in talk.told() if name == "task_completed"]
    assert [one.get("reason") for one in told if one["task_id"] == "a"] == [why]


def test_a_failed_task_may_stop_the_conversation() -> None:
    talk = asked_about_failure()
    talk.answer("stop", "it is late")
    failed = last_error(talk)
    assert failed == v.EngineFailed("ended by Will Zhang: it is late", EngineState.EXECUTING)
    assert talk.state.status is RunStatus.ERROR


def test_what_a_person_has_refused_is_not_asked_again() -> None:
    talk = executing(PAY, on_failure=OnFailure.ASK).fill()
    talk.answer("reject", "too much")
    talk.advance()
    assert last_error(talk).error == "rejected by Will Zhang: too much"
    assert not talk.flying
    assert not talk.happened(v.TaskFailed)


def test_an_unknown_tool_fails_its_task() -> None:
    talk = executing(replace(PAY, type="absent")).fill()
    assert last_error(talk) == v.EngineFailed(
        "there is no tool absent in the process that runs this: add it there, then have this run "
        "again",
        EngineState.EXECUTING,
        "t1",
    )


def test_a_disabled_tool_never_runs() -> None:
    talk = executing(replace(PAY, type="shut")).fill()
    assert last_error(talk).error == "the tool shut is disabled"
    assert not talk.happened(v.TaskStarted)


def test_missing_arguments_are_asked_for_and_then_consented_to() -> None:
    talk = executing(replace(PAY, args={"note": "soon"})).fill()
    asked = talk.question()
    assert (asked.type, asked.message) == (InteractionType.MISSING_INFO, "Needed to go on: amount")
    with pytest.raises(InvalidAnswer):
        talk.answer("provide", amount="much")
    talk.answer("provide", amount=7)
    talk.fill()
    assert talk.question().context["args"] == {"note": "soon", "amount": 7}
    talk.answer("approve")
    talk.fill()
    assert talk.out("pay it").args == {"note": "soon", "amount": 7}


def test_an_approved_call_runs_with_the_very_arguments_and_their_consent() -> None:
    talk = executing(PAY).fill()
    asked = talk.question()
    assert (asked.title, asked.context["tool"], asked.context["args"]) == (
        "Run pay?",
        "pay",
        {"amount": 5},
    )
    assert [one.action for one in asked.options] == [
        InteractionAction.APPROVE_AND_EXECUTE,
        InteractionAction.RETRY_WITH_FEEDBACK,
        InteractionAction.REJECT_WITH_REASON,
        InteractionAction.TERMINATE,
    ]
    talk.answer("approve")
    talk.fill()
    call = talk.out("pay it")
    assert (call.tool, call.args, call.idempotent) == ("pay", {"amount": 5}, False)
    assert call.consent is not None


def test_edited_arguments_are_what_runs_also_at_the_next_attempt() -> None:
    talk = executing(PAY).fill()
    talk.answer("approve", amount=3)
    talk.fill()
    assert talk.out("pay it").args == {"amount": 3}
    talk.fails("pay it", TRANSIENT)
    talk.wait(60)
    talk.fill()
    assert talk.out("pay it").args == {"amount": 3}, "consent covers the attempts of one firing"


def test_feedback_asks_again_and_shows_it() -> None:
    talk = executing(PAY).fill()
    talk.answer("retry", "smaller, please")
    talk.fill()
    assert talk.question().message == "Feedback on the last answer: smaller, please"
    assert not talk.flying


def test_a_call_may_stop_the_conversation_and_the_other_questions_with_it() -> None:
    talk = executing(PAY, replace(PAY, id="other"), max_parallel=2).fill()
    open_one = talk.question("other").request_id
    talk.answer("terminate", at="pay it")
    assert last_error(talk).error == "ended by Will Zhang"
    with pytest.raises(TooLate):
        talk.submit(c.Answer(open_one, WILL, "approve"))
    assert not talk.flying


def test_a_tool_that_changed_after_consent_is_asked_about_anew() -> None:
    talk = executing(PAY).fill()
    talk.answer("approve", amount=3)
    talk.tools["pay"] = replace(TOOLS["pay"], version="2")
    talk.fill()
    asked = talk.question()
    assert "is another version" in asked.details
    assert asked.context["args"] == {"amount": 3}, "what the person had made of it"
    assert asked.context["before"]["tool_version"] == "1"
    assert not talk.flying


def test_a_tool_that_is_disabled_after_consent_does_not_run() -> None:
    talk = executing(PAY).fill()
    talk.answer("approve")
    talk.tools["pay"] = replace(TOOLS["pay"], approval=DISABLED)
    talk.fill()
    assert last_error(talk).error == "the tool pay is disabled"
    assert not talk.flying


def test_work_that_lacks_something_is_given_it_under_a_new_key() -> None:
    talk = executing(SubTask("own", type="own", args={"n": 1}, route="callable")).fill()
    first = talk.out("own").work
    talk.fails("own", c.Missing(Form((Field("size", label="Size"),))))
    assert talk.question().message == "Needed to go on: Size"
    talk.answer("provide", size="XL")
    talk.fill()
    again = talk.out("own")
    assert again.task.args == {"n": 1, "size": "XL"}
    assert again.work.key != first.key


def test_what_the_journal_could_not_keep_cannot_be_asked_for() -> None:
    talk = executing().fill()
    talk.fails("only", c.Missing(Form((Field("word", label="\ud800"),))))
    talk.advance()
    assert "this question cannot be asked" in last_error(talk).error


def test_of_a_call_that_was_cut_off_only_a_person_can_tell() -> None:
    talk = executing(SEND, SubTask("b", dependencies=("send it",))).fill()
    talk.fails("send it", UNKNOWN)
    asked = talk.question()
    assert asked.title == "Did send happen?"
    assert "its outcome is unknown: cut off" in asked.message
    talk.answer("happened", result="receipt 7")
    talk.fill()
    assert talk.out("b").results == {"send it": {"result": "receipt 7"}}


def test_a_lost_callable_that_must_not_be_repeated_is_called_by_its_name() -> None:
    talk = executing(SubTask("mine", route="once")).fill()
    talk.fails("mine", c.Lost("no answer"))
    assert talk.question().title == "Did mine happen?"


def test_a_call_that_did_not_happen_is_run_again_under_its_key() -> None:
    talk = executing(SEND).fill()
    first = talk.out("send it").work
    talk.fails("send it", c.Lost("no answer"))
    talk.answer("run_again")
    talk.fill()
    assert talk.out("send it").work.key == first.key


@pytest.mark.parametrize("outcome", [c.Succeeded("receipt"), PERMANENT])
def test_a_late_word_answers_the_question_whether_it_happened(outcome: c.Outcome) -> None:
    talk = executing(SEND).fill()
    work = talk.out("send it").work
    talk.fails("send it", UNKNOWN)
    talk.submit(c.ReportOutcome("t1", 1, work.claim, outcome))
    assert not talk.state.open_questions
    succeeded = isinstance(outcome, c.Succeeded)
    assert talk.settle().phase is (EngineState.COMPLETED if succeeded else EngineState.ERROR)


def test_a_deadline_that_passes_fails_the_task_or_takes_the_default() -> None:
    """Conversations set none themselves; a journal may hold one all the same."""
    for default, phase in ((None, EngineState.ERROR), ("skip", EngineState.COMPLETED)):
        talk = executing().fill()
        talk.report(talk.out("only"), c.NotSent())
        skip = InteractionOption("skip", "Skip", InteractionAction.SKIP)
        request = InteractionRequest(
            "q1",
            talk.state.run_id,
            InteractionType.USER_CHOICE,
            "Well?",
            options=(skip,),
            timeout_seconds=5,
            default_option_id=default,
        )
        deadline = talk.now + 5
        opened = e.QuestionOpened(request, "t1", 1, "failed", deadline)
        talk.record(opened)
        talk.wait(5)
        assert talk.settle().phase is phase
        assert talk.happened(e.QuestionExpired)
        told = talk.task("only").result if default else talk.state.error
        assert "nobody answered in time" in str(told)


def test_the_same_answer_again_changes_nothing() -> None:
    talk = executing(PAY).fill()
    asked = talk.question().request_id
    talk.submit(c.Answer(asked, WILL, "approve"))
    assert not talk.submit(c.Answer(asked, WILL, "approve")).events
    with pytest.raises(AlreadyAnswered):
        talk.submit(c.Answer(asked, WILL, "reject", feedback="no"))


def test_a_draft_is_kept_with_its_question() -> None:
    talk = executing(PAY).fill()
    asked = talk.question().request_id
    talk.submit(c.KeepDraft(asked, WILL, {"amount": 4}))
    assert talk.state.questions[asked].drafts == {WILL: {"amount": 4}}


def test_a_task_never_runs_twice_for_one_answer() -> None:
    talk = executing(*chain("a", "b")).fill()
    work = talk.out("a").work
    talk.done("a", 1)
    talk.submit(c.ReportOutcome("t1", 1, work.claim, c.Succeeded(2)))
    assert talk.state.steps["t1"].status is StepStatus.DONE
    talk.settle()
    assert talk.task("a").result == 1
    assert [one.step_id for one in talk.happened(v.TaskCompleted)] == ["t1", "t2"]
