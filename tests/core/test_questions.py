"""Questions and answers: once, in time, by the form, and never more than was consented to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine import Machine
from random_plans import TOOLS
from small_plans import (
    ASK,
    CALL,
    CALLING_CODE,
    COLOUR,
    CONFIRM,
    GUARDED,
    TRANSIENT,
    WILL,
    compiled,
    events,
    fail,
    give_up,
    on,
    only,
    question,
    reply,
    started,
    statuses,
    succeed,
)

from holdfast.core.run.tables import StepStatus
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotFound, TooLate
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.plan import HumanAction, Listener, Output, TaskStatus, ToolAction

SIZE = Form((Field("size"),))


def asking(action: HumanAction = ASK, **more: Output) -> Machine:
    return started(on("L001", "001 Running", action, "001", **more))


def approving() -> Machine:
    return started(on("L001", "001 Running", GUARDED, "001"))


class TestAnswers:
    def test_the_first_valid_answer_wins_and_the_same_again_is_harmless(self) -> None:
        machine = asking()
        answer = c.Answer(question(machine).request_id, WILL, None, {"colour": "red"})
        assert machine.submit(answer).events
        assert machine.state.status == "continue"
        assert machine.state.provided_params == {"colour": "red"}
        assert not machine.submit(answer).events
        assert not machine.submit(replace(answer, option_id="provide")).events

    @pytest.mark.parametrize(
        "change",
        [{"by": "操作员"}, {"data": {"colour": "blue"}}, {"feedback": "?"}, {"option_id": "no"}],
    )
    def test_a_different_answer_is_told_who_won(self, change: dict[str, object]) -> None:
        machine = asking()
        answer = c.Answer(question(machine).request_id, WILL, None, {"colour": "red"})
        machine.submit(answer)
        with pytest.raises(AlreadyAnswered, match=WILL) as refusal:
            machine.submit(replace(answer, **change))
        told = refusal.value
        assert (told.by, told.at, told.option_id) == (WILL, machine.now, "provide")

    def test_an_answer_to_nothing_is_not_found(self) -> None:
        with pytest.raises(NotFound):
            asking().submit(c.Answer("404", WILL))

    def test_an_answer_that_does_not_fit_names_each_field_and_leaves_the_question_open(
        self,
    ) -> None:
        machine = asking()
        with pytest.raises(InvalidAnswer) as refusal:
            reply(machine, data={"colour": 3, "shape": "round"})
        assert set(refusal.value.fields) == {"colour", "shape"}
        assert machine.state.status == "pause"

    def test_late_is_judged_by_the_clock_even_before_the_timer(self) -> None:
        machine = asking(replace(ASK, asking=Asking(timeout_seconds=30.0)))
        machine.now += 30.0
        with pytest.raises(TooLate, match="expired"):
            reply(machine, data={"colour": "red"})

    def test_a_closed_question_takes_no_answer(self) -> None:
        machine = asking()
        asked = question(machine).request_id
        machine.submit(c.Skip("L001", WILL))
        with pytest.raises(TooLate, match="withdrawn"):
            machine.submit(c.Answer(asked, WILL, None, {"colour": "red"}))

    def test_an_option_must_be_one_of_those_offered(self) -> None:
        for option_id in (None, "maybe"):
            with pytest.raises(InvalidAnswer, match="confirm, reject"):
                reply(asking(CONFIRM), option_id)

    def test_an_option_may_need_words_and_may_take_no_data(self) -> None:
        with pytest.raises(InvalidAnswer, match="Why not") as refusal:
            reply(approving(), "reject")
        assert "feedback" in refusal.value.fields
        with pytest.raises(InvalidAnswer, match="takes no data") as refusal:
            reply(asking(CONFIRM), "confirm", data={"n": 2})
        assert "n" in refusal.value.fields

    def test_a_confirmation_goes_on_with_the_option(self) -> None:
        machine = asking(CONFIRM)
        reply(machine, "confirm", feedback="fine")
        conclusion = only(machine)
        assert isinstance(conclusion, f.Conclude)
        assert conclusion.result == {"option": "confirm", "feedback": "fine"}

    def test_a_rejection_is_a_branch_when_the_plan_has_one(self) -> None:
        machine = asking(CONFIRM, failure_output=Output("001", TaskStatus.SKIPPED))
        reply(machine, "reject")
        assert machine.state.status == "done"
        assert statuses(machine) == {"001": "Skipped"}

    def test_what_the_journal_could_not_keep_is_not_asked(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001"))
        fail(machine, c.Missing(Form((Field("colour", label="\ud800"),))))
        assert "cannot be asked" in machine.consultations[0].failure.message
        assert not machine.state.open_questions

    def test_a_secret_goes_on_as_a_reference(self) -> None:
        form = Form((Field("password", FieldType.SECRET),))
        machine = asking(replace(ASK, form=form))
        with pytest.raises(InvalidAnswer, match="a secret must be sealed"):
            reply(machine, "provide", data={"password": "hunter2"})
        reply(machine, "provide", data={"password": f"secret:{'0' * 32}"})
        assert not machine.state.open_questions

    def test_a_custom_option_without_a_handler_is_refused(self) -> None:
        machine = asked_elsewhere(InteractionAction.CUSTOM)
        with pytest.raises(InvalidAnswer, match="no handler"):
            reply(machine, "it")

    def test_skip_as_an_answer_skips_the_listener(self) -> None:
        machine = asked_elsewhere(InteractionAction.SKIP)
        reply(machine, "it")
        assert machine.state.steps["L001"].status is StepStatus.SKIPPED


def asked_elsewhere(
    action: InteractionAction,
    *,
    purpose: str = "human",
    dangerous: bool = False,
    beside: tuple[Listener, ...] = (),
) -> Machine:
    """A question that this version would not ask: a single option, which is the default."""
    machine = Machine(compiled(on("L001", "001 Running", CALL, "001"), *beside))
    machine.submit(c.StartRun("small"))
    option = InteractionOption("it", "It", action, is_dangerous=dangerous)
    request = InteractionRequest(
        "q1",
        machine.run_id,
        InteractionType.CUSTOM,
        "It?",
        options=(option,),
        timeout_seconds=30.0,
        default_option_id="it",
    )
    deadline = machine.now + 30.0
    machine.append(e.QuestionOpened(request, "L001", 1, purpose, deadline, {"n": 1}, "digest"))
    return machine


class TestDeadlines:
    def test_without_a_default_nobody_answered_and_that_is_not_a_rejection(self) -> None:
        machine = asking(replace(ASK, asking=Asking(timeout_seconds=30.0)))
        asked = question(machine).request_id
        machine.fire_timer()
        assert machine.state.questions[asked].status == "expired"
        assert machine.state.status == "error"
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.final
        assert failed.failure.message == "nobody answered in time"

    def test_a_harmless_default_is_taken_by_the_clock(self) -> None:
        machine = asked_elsewhere(InteractionAction.APPROVE_AND_EXECUTE)
        machine.fire_timer()
        machine.start_ready()
        conclusion = only(machine)
        assert isinstance(conclusion, f.Conclude)
        assert conclusion.result == {"option": "it"}

    def test_a_default_that_rejects_is_carried_out(self) -> None:
        machine = asked_elsewhere(InteractionAction.REJECT_WITH_REASON, purpose="approval")
        machine.fire_timer()
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "rejected by clock: nobody answered in time"

    def test_a_default_that_ends_the_run_silences_the_timers_that_rang_with_it(self) -> None:
        side = on("L002", "001 Running", CALL, "002")
        machine = asked_elsewhere(InteractionAction.TERMINATE, beside=(side,))
        machine.start("L002")
        fail(machine, TRANSIENT)
        deadline = machine.state.timers["question:q1"]
        machine.append(e.StepWoken("L002", 1))
        machine.start("L002")
        machine.now = deadline - 0.001
        fail(machine, TRANSIENT)
        machine.now += 100.0
        machine.submit(c.Tick())
        assert machine.state.status == "cancelled"
        assert machine.state.cancelled_by == "clock"

    @pytest.mark.parametrize(
        ("action", "purpose", "dangerous"),
        [
            (InteractionAction.APPROVE_AND_EXECUTE, "approval", False),
            (InteractionAction.PROVIDE_INFO, "approval", False),
            (InteractionAction.APPROVE_AND_EXECUTE, "unknown", False),
            (InteractionAction.APPROVE_AND_EXECUTE, "human", True),
            (InteractionAction.CUSTOM, "human", False),
        ],
    )
    def test_a_timeout_never_approves(
        self, action: InteractionAction, purpose: str, dangerous: bool
    ) -> None:
        machine = asked_elsewhere(action, purpose=purpose, dangerous=dangerous)
        machine.fire_timer()
        machine.start_ready()
        assert machine.state.status == "error"
        assert not machine.flying


class TestConsent:
    def test_what_runs_is_what_was_shown(self) -> None:
        machine = approving()
        assert question(machine).context["args"] == {"n": 1}
        assert not machine.flying
        reply(machine, "approve")
        call = only(machine)
        assert isinstance(call, f.CallTool)
        assert call.args == {"n": 1}
        assert call.consent is not None

    def test_it_covers_the_attempts_of_one_firing_and_nothing_more(self) -> None:
        machine = approving()
        reply(machine, "approve")
        fail(machine, TRANSIENT)
        machine.fire_timer()
        machine.start_ready()
        assert only(machine).work.attempt == 2
        give_up(machine)
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        assert question(machine).type is InteractionType.TOOL_APPROVAL
        assert not machine.flying

    def test_other_arguments_need_a_new_consent(self) -> None:
        machine = approving()
        reply(machine, "approve")
        fail(machine, c.Missing(SIZE))
        reply(machine, data={"size": "XL"})
        assert question(machine).context["args"] == {"n": 1, "size": "XL"}
        reply(machine, "approve")
        call = only(machine)
        assert isinstance(call, f.CallTool)
        assert call.args == {"n": 1, "size": "XL"}

    def test_another_version_of_the_tool_needs_a_new_consent(self) -> None:
        machine = approving()
        reply(machine, "approve")
        fail(machine, TRANSIENT)
        machine.fire_timer()
        machine.tools["guarded"] = replace(TOOLS["guarded"], version="2")
        machine.start_ready()
        assert question(machine).context["tool_version"] == "2"

    def test_a_consent_that_is_no_longer_needed_does_not_stand_in_the_way(self) -> None:
        machine = approving()
        reply(machine, "approve")
        fail(machine, TRANSIENT)
        machine.fire_timer()
        machine.tools["guarded"] = replace(
            TOOLS["guarded"], version="2", approval=ApprovalRule(ApprovalMode.AUTO)
        )
        machine.start_ready()
        call = only(machine)
        assert isinstance(call, f.CallTool)
        assert call.consent is None

    def test_feedback_is_shown_with_the_next_proposal(self) -> None:
        machine = started(on("L001", "001 Running", GUARDED, "002"))
        reply(machine, "retry", feedback="smaller, please")
        assert statuses(machine)["002"] == "Pending"
        assert "smaller, please" in question(machine).message
        assert not machine.flying

    def test_a_rejection_ends_the_listener_without_a_retry(self) -> None:
        machine = approving()
        reply(machine, "reject", feedback="too dear")
        assert machine.state.status == "error"
        assert not machine.flying
        assert not machine.consultations
        info = machine.state.main_task.context["error_info"]
        assert info["message"] == f"L001 failed: rejected by {WILL}: too dear"

    def test_terminate_cancels_the_run_and_says_who(self) -> None:
        machine = approving()
        reply(machine, "terminate")
        assert machine.state.status == "cancelled"
        assert machine.state.cancelled_by == WILL

    def test_missing_arguments_are_asked_for_first(self) -> None:
        listener = on("L001", "001 Running", ToolAction("picky"), "001", approval=True)
        machine = started(listener)
        assert question(machine).type is InteractionType.MISSING_INFO
        reply(machine, data={"size": "XL"})
        assert question(machine).type is InteractionType.TOOL_APPROVAL

    def test_who_is_asked_for_more_sees_the_tool_and_what_it_knows_already(self) -> None:
        action = ToolAction("picky", {"colour": "red", "size": None, "note": None})
        machine = started(on("L001", "001 Running", action, "001"))
        asked = question(machine)
        assert asked.title == "picky needs more"
        shown = {"tool": "picky", "args": {"colour": "red", "note": None}}
        assert asked.context == {**shown, "tool_version": TOOLS["picky"].version}

    def test_a_tool_that_asks_for_more_shows_what_it_was_called_with(self) -> None:
        action = replace(CALL, args={"colour": "red"})
        machine = started(on("L001", "001 Running", action, "001"))
        fail(machine, c.Missing(Form((Field("size"),))))
        assert question(machine).context == {"tool": CALL.tool, "args": {"colour": "red"}}

    def test_a_snippet_that_asks_for_more_is_named_by_its_task(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "002"))
        fail(machine, c.Missing(Form((Field("size"),))))
        assert question(machine).title.startswith("Small")
        assert question(machine).context == {}


class TestUnknownOutcomes:
    def lost(self) -> Machine:
        machine = started(on("L001", "001 Running", CALL, "001", context={"x": "{{result.x}}"}))
        fail(machine, c.Lost("no answer within 5 s"))
        return machine

    def test_it_happened_and_here_is_the_result(self) -> None:
        machine = self.lost()
        reply(machine, "happened", data={"x": "7"})
        assert isinstance(only(machine), f.Conclude)
        succeed(machine)
        assert machine.state.status == "done"
        assert machine.state.main_task.context["x"] == "7"

    def test_run_it_again_keeps_the_key(self) -> None:
        machine = self.lost()
        (first,) = machine.past
        reply(machine, "run_again")
        assert only(machine).work.key == first.work.key

    def test_stop_cancels_the_run(self) -> None:
        machine = self.lost()
        reply(machine, "stop")
        assert machine.state.status == "cancelled"

    def test_a_late_result_answers_the_question_itself(self) -> None:
        machine = self.lost()
        asked = question(machine).request_id
        machine.report(machine.past[0], c.Succeeded({"x": 1}))
        assert machine.state.questions[asked].status == "withdrawn"
        assert machine.state.steps["L001"].status is StepStatus.DONE

    def test_a_late_failure_is_tried_again(self) -> None:
        machine = self.lost()
        machine.report(machine.past[0], TRANSIENT)
        assert machine.state.steps["L001"].status is StepStatus.BACKOFF
        assert machine.state.status == "running"

    def test_a_late_word_that_tells_nothing_changes_nothing(self) -> None:
        machine = self.lost()
        machine.report(machine.past[0], c.Lost("still nothing"))
        assert machine.state.status == "pause"

    def test_a_late_result_does_not_answer_another_question(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001"))
        fail(machine, c.Missing(SIZE))
        machine.report(machine.past[0], c.Succeeded({"x": 1}))
        assert machine.state.status == "pause"
        assert events(machine, e.LateResultKept)

    def test_a_lost_function_is_answered_with_its_result(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
        fail(machine, c.CallWanted(0, "plain", {"n": 1}))
        fail(machine, c.Lost("no answer"))
        assert question(machine).title == "Did plain happen?"
        reply(machine, "happened", data={"result": "42"})
        snippet = only(machine)
        assert isinstance(snippet, f.RunSnippet)
        assert [one.result for one in snippet.recorded] == ["42"]

    def test_a_lost_function_is_called_again_under_its_key(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
        fail(machine, c.CallWanted(0, "plain", {}))
        first = only(machine)
        fail(machine, c.Lost("no answer"))
        reply(machine, "run_again")
        again = only(machine)
        assert isinstance(again, f.CallFunction)
        assert again.work.key == first.work.key

    def test_a_late_answer_of_a_function_lets_the_snippet_go_on(self) -> None:
        machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
        fail(machine, c.CallWanted(0, "plain", {}))
        call = only(machine)
        fail(machine, c.Lost("no answer"))
        machine.report(call, c.CallReturned(0, 42))
        machine.start_ready()
        snippet = only(machine)
        assert isinstance(snippet, f.RunSnippet)
        assert [one.result for one in snippet.recorded] == [42]

    def test_work_without_a_tool_is_named_by_its_listener(self) -> None:
        machine = started(on("L001", "001 Running", replace(CALL, tool="plain"), None))
        fail(machine, c.Lost("no answer"))
        assert question(machine).form == Form()


def test_a_question_shows_what_it_is_for() -> None:
    machine = started(on("L001", "001 Running", HumanAction(form=COLOUR), "002"))
    assert question(machine).title == "Small: task 002"
    assert statuses(machine)["002"] == "Pending"
    nameless = started(on("L001", "001 Running", HumanAction(form=COLOUR), None))
    assert question(nameless).title == "Small"


def test_words_filled_into_a_question_hide_nothing() -> None:
    said = Asking(
        title="{001.context.who}?", message="So:\n{001.context.who}", details="\u200fours"
    )
    machine = Machine(compiled(on("L001", "001 Running", HumanAction(asking=said), "002")))
    machine.submit(c.StartRun("small", values={"who": "a\nb\u202ec"}, by=WILL))
    machine.start_ready()
    asked = question(machine)
    assert asked.title == "a␊b⟨202E⟩c?"
    assert asked.message == "So:\na\nb⟨202E⟩c"
    assert asked.details == "\u200fours", "the author's own words stay as they are"
