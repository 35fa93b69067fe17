"""One run from its start to its end: starting, working, crashing, cancelling."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine import Machine
from small_plans import (
    ASK,
    CALL,
    CALLING_CODE,
    CODE,
    COLOUR,
    KEYED,
    PERMANENT,
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

from holdfast.core.plan.decide import blank, effects_in_flight, goes_on_by_itself, replay
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.events import TaskUpdate
from holdfast.model.form import Field, Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import HumanAction, TaskStatus, ToolAction, WhilePaused
from holdfast.model.retry import Failure, FailureKind, Retry, RetryPolicy

CHAIN = (on("L001", "001 Running", CALL, "002"), on("L002", "002 Done", CODE, "001"))
SIZE = Form((Field("size"),))


def test_a_chain_runs_to_its_end_and_its_journal_is_the_run() -> None:
    machine = started(*CHAIN)
    assert statuses(machine) == {"001": "Running", "002": "Running"}
    succeed(machine)
    succeed(machine)
    assert machine.state.status == "done"
    assert statuses(machine) == {"001": "Done", "002": "Done"}
    records = [(record.at, decode(record)) for record in machine.records]
    assert replay(blank(machine.run_id, machine.plan), records) == machine.state


def test_a_failed_attempt_is_tried_again_later_under_a_new_key() -> None:
    machine = started(*CHAIN)
    first = only(machine).work
    fail(machine, TRANSIENT)
    assert machine.state.steps["L001"].status is StepStatus.BACKOFF
    machine.submit(c.Tick())
    assert not machine.start_ready(), "it is not yet time"
    machine.fire_timer()
    machine.start_ready()
    second = only(machine).work
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.key != second.key


@pytest.mark.parametrize(
    "lost", [c.Lost("no answer"), c.Failed(Failure(FailureKind.UNKNOWN, "no answer"))]
)
def test_a_lost_answer_of_an_idempotent_call_is_asked_for_again_under_the_same_key(
    lost: c.Outcome,
) -> None:
    machine = started(on("L001", "001 Running", KEYED, "001"))
    first = only(machine).work
    fail(machine, lost)
    machine.fire_timer()
    machine.start_ready()
    assert only(machine).work.key == first.key
    assert only(machine).work.claim != first.claim


def test_a_lost_answer_that_stays_lost_is_brought_before_the_planner() -> None:
    listener = on("L001", "001 Running", KEYED, "001", retry=RetryPolicy(attempts=1))
    machine = started(listener)
    fail(machine, c.Lost("no answer"))
    assert machine.consultations[0].failure.message == "no answer"


def test_a_call_that_cannot_start_fails_unsent_and_says_why() -> None:
    for action, why in (
        (ToolAction("absent"), "there is no tool absent"),
        (ToolAction("disabled"), "the tool disabled is disabled"),
        (ToolAction("plain", {"x": "{001.context.nowhere}"}), "nowhere"),
        (HumanAction(asking=Asking(message="Is {001.context.nowhere} right?")), "nowhere"),
    ):
        machine = started(on("L001", "001 Running", action, "002"))
        assert not machine.flying
        assert why in machine.consultations[0].failure.message


def test_work_that_was_never_handed_over_is_ready_as_if_it_had_not_started() -> None:
    machine = started(*CHAIN)
    first = only(machine).work
    fail(machine, c.NotSent())
    machine.start_ready()
    second = only(machine).work
    assert (second.key, second.attempt) == (first.key, first.attempt)


def test_a_snippet_keeps_the_results_of_the_functions_it_has_called() -> None:
    machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
    fail(machine, c.CallWanted(0, "plain", {"n": 1}))
    call = only(machine)
    assert isinstance(call, f.CallFunction)
    assert (call.index, call.args) == (0, {"n": 1})
    machine.report(call, c.CallReturned(0, 42))
    snippet = only(machine)
    assert isinstance(snippet, f.RunSnippet)
    assert [one.result for one in snippet.recorded] == [42]
    give_up(machine)
    machine.submit(c.Resume(WILL))
    machine.start_ready()
    again = only(machine)
    assert isinstance(again, f.RunSnippet)
    assert [one.result for one in again.recorded] == [42], "the call is not made again"


def test_a_function_that_failed_is_called_again_with_the_next_attempt() -> None:
    machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
    fail(machine, c.CallWanted(0, "plain", {}))
    fail(machine, TRANSIENT)
    machine.fire_timer()
    machine.start_ready()
    assert isinstance(only(machine), f.RunSnippet)


def test_an_output_that_cannot_be_rendered_never_runs_the_work_again() -> None:
    machine = started(on("L001", "001 Running", CALL, "001", context={"o": "{{result.order}}"}))
    succeed(machine, {"x": 1})
    machine.consult(0)
    machine.submit(c.Resume(WILL))
    machine.start_ready()
    again = only(machine)
    assert isinstance(again, f.Conclude)
    assert again.result == {"x": 1}


@pytest.mark.parametrize("update", [{"target_task": "404"}, {"target_status": "Cancelled"}])
def test_an_update_that_the_plan_does_not_allow_fails_the_listener_not_the_engine(
    update: dict[str, str],
) -> None:
    machine = started(on("L001", "001 Running", CODE, "002"))
    succeed(machine, update)
    (failed,) = events(machine, e.ListenerFailed)
    assert failed.kept
    assert "task" in failed.failure.message


def test_a_word_about_an_unknown_listener_is_ignored() -> None:
    machine = started(*CHAIN)
    assert not machine.submit(c.ReportOutcome("L404", 1, 1, c.Succeeded())).events
    assert not machine.submit(c.StartStep("L404")).events
    assert not machine.submit(c.Advise("L404", 1, Retry(3))).events


def test_a_result_under_an_old_claim_is_kept_for_audit_and_changes_nothing() -> None:
    machine = started(*CHAIN)
    old = only(machine)
    fail(machine, TRANSIENT)
    machine.report(old, c.Succeeded({"x": 2}))
    machine.report(old, PERMANENT)
    assert [event.result for event in events(machine, e.LateResultKept)] == [{"x": 2}]
    assert machine.state.steps["L001"].status is StepStatus.BACKOFF
    machine.fire_timer()
    machine.start_ready()
    machine.report(old, c.Succeeded({"x": 3}))
    assert machine.state.steps["L001"].status is StepStatus.RUNNING


def test_inputs_that_are_missing_are_asked_for_and_the_rest_is_kept() -> None:
    form = Form((Field("name"), Field("colour"), Field("note", required=False, default="-")))
    machine = Machine(compiled(*CHAIN, inputs=form))
    machine.submit(c.StartRun("small", values={"name": "张三"}))
    assert machine.state.main_task.status == "NotStarted"
    machine.start_ready()
    assert [field.name for field in question(machine).form.fields] == ["colour", "note"]
    reply(machine, data={"colour": "red"})
    succeed(machine)
    assert machine.state.main_task.context == {"name": "张三", "colour": "red", "note": "-"}
    assert machine.state.main_task.status == "Running"


def test_an_input_that_was_given_settles_which_others_are_asked() -> None:
    form = Form(
        (
            Field("kind"),
            Field("reason", visible_if="values.kind == 'other'"),
            Field("size", visible_if="values.kind == 'computer'"),
            Field("colour"),
            Field("shade", visible_if="values.colour == 'red'"),
        )
    )
    machine = Machine(compiled(*CHAIN, inputs=form))
    machine.submit(c.StartRun("small", values={"kind": "other"}))
    machine.start_ready()
    asked = question(machine).form.fields
    assert [field.name for field in asked] == ["reason", "colour", "shade"]
    with pytest.raises(InvalidAnswer) as refusal:
        reply(machine, data={"colour": "red"})
    assert set(refusal.value.fields) == {"reason", "shade"}
    reply(machine, data={"reason": "so", "colour": "blue"})
    succeed(machine)
    context = machine.state.main_task.context
    assert context == {"kind": "other", "reason": "so", "colour": "blue"}


def test_inputs_that_are_complete_ask_nobody() -> None:
    machine = Machine(compiled(*CHAIN, inputs=COLOUR))
    machine.submit(c.StartRun("small", values={"colour": "red"}))
    assert machine.state.main_task.context == {"colour": "red"}
    assert machine.ready() == ["L001"]


def test_inputs_that_do_not_fit_start_no_run() -> None:
    machine = Machine(compiled(*CHAIN, inputs=COLOUR))
    with pytest.raises(InvalidAnswer) as refusal:
        machine.submit(c.StartRun("small", values={"colour": 3, "shape": "round"}))
    assert set(refusal.value.fields) == {"colour", "shape"}
    assert machine.state.version == 0


def test_held_branches_wait_for_the_open_question() -> None:
    plan = (on("L001", "001 Running", ASK, "002"), on("L002", "001 Running", CALL, "003"))
    machine = started(*plan, while_paused=WhilePaused.HOLD)
    assert machine.ready() == ["L002"]
    assert not machine.flying
    reply(machine, data={"colour": "red"})
    assert {place[0] for place in machine.flying} == {"L001", "L002"}


def test_only_a_run_with_something_to_do_is_taken_up_at_a_restart() -> None:
    machine = started(on("L001", "001 Running", CODE, "001"))
    assert goes_on_by_itself(machine.state)
    machine.settle()
    assert not goes_on_by_itself(machine.state)


def test_a_journal_that_says_nonsense_is_not_acted_upon() -> None:
    machine = Machine(compiled(on("L001", "001 Running", ASK, "001")))
    machine.submit(c.StartRun("small"))
    machine.append(e.ListenerStarted("L001", 1))
    with pytest.raises(AssertionError, match="no work to do outside"):
        effects_in_flight(machine.state)


class TestCrashes:
    def test_an_idempotent_call_starts_anew_under_its_key(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001"))
        before = only(machine)
        machine.crash()
        assert not machine.flying
        last = [type(decode(record)) for record in machine.records[-2:]]
        assert last == [e.StepReleased, e.RunRecovered]
        machine.start_ready()
        again = only(machine)
        assert (again.work.key, again.work.attempt) == (before.work.key, before.work.attempt)

    def test_a_tool_that_was_disabled_since_does_not_run_again(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001"))
        machine.crash()
        disabled = ApprovalRule(ApprovalMode.DISABLED)
        machine.tools["keyed"] = replace(machine.tools["keyed"], approval=disabled)
        machine.start_ready()
        assert not machine.flying
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.message == "the tool keyed is disabled"

    def test_a_tool_that_requires_consent_since_asks_for_it(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001"))
        key = only(machine).work.key
        machine.crash()
        required = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)
        machine.tools["keyed"] = replace(machine.tools["keyed"], approval=required)
        machine.start_ready()
        assert not machine.flying
        reply(machine, "approve")
        assert only(machine).work.key == key

    def test_what_was_consented_to_runs_again_as_it_was(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001", approval=True))
        reply(machine, "approve")
        before = only(machine)
        machine.crash()
        machine.start_ready()
        assert (only(machine).work.key, only(machine).consent) == (before.work.key, before.consent)

    def test_another_version_of_what_was_consented_to_is_asked_about_again(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001", approval=True))
        reply(machine, "approve")
        machine.crash()
        machine.tools["keyed"] = replace(machine.tools["keyed"], version="another")
        machine.start_ready()
        assert not machine.flying
        assert "the tool keyed itself is another version" in question(machine).details

    def test_the_same_key_carries_the_same_arguments(self) -> None:
        """What other branches found meanwhile does not change what may have been sent."""
        keyed = ToolAction("keyed", {"seen": "{003.status}"})
        machine = started(
            on("L001", "001 Running", keyed, "002"),
            on("L002", "001 Running", CALL, "003", context={"x": "{{result.x}}"}),
        )
        sent, plain = sorted(machine.flying.values(), key=lambda one: one.work.step_id)
        machine.report(
            plain, c.Succeeded({"x": 7}, (TaskUpdate("003", TaskStatus.DONE, {"x": 7}),))
        )
        machine.crash()
        machine.start_ready()
        assert only(machine).args == sent.args

    def test_any_other_call_is_in_doubt_and_asks_a_person(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001", context={"x": "{{result.x}}"}))
        machine.crash()
        asked = question(machine)
        assert asked.title == "Did plain happen?"
        assert [field.name for field in asked.form.fields] == ["x"]
        assert not machine.flying

    def test_a_function_in_flight_is_judged_by_its_own_idempotency(self) -> None:
        for idempotent in (True, False):
            machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
            fail(machine, c.CallWanted(0, "plain", {}, idempotent))
            machine.crash()
            assert bool(machine.flying) == idempotent
            assert bool(machine.state.open_questions) != idempotent

    def test_a_run_that_only_waits_lost_nothing(self) -> None:
        machine = started(on("L001", "001 Running", ASK, "001"))
        before = machine.state
        for _ in range(5):
            machine.crash()
        assert machine.state == before

    def test_a_held_run_survives_any_number_of_restarts(self) -> None:
        plan = (on("L001", "001 Running", ASK, "002"), on("L002", "001 Running", CALL, "003"))
        machine = started(*plan, while_paused=WhilePaused.HOLD)
        for _ in range(5):
            machine.crash()
        assert machine.state.status == "pause"

    def test_a_run_that_keeps_taking_its_process_down_is_quarantined(self) -> None:
        machine = started(
            on("L001", "001 Running", KEYED, "002"), on("L002", "001 Running", CALL, "003")
        )
        (doomed,) = [one for one in machine.flying.values() if one.work.step_id == "L002"]
        machine.report(doomed, PERMANENT)
        for _ in range(3):
            machine.start_ready()
            machine.crash()
        assert machine.state.status == "error"
        assert set(machine.state.failed) == {"L001", "L002"}
        assert "went down 3 times" in machine.state.main_task.context["error_info"]["message"]
        assert not machine.flying
        assert not machine.consultations

    def test_progress_makes_earlier_crashes_forgotten(self) -> None:
        machine = started(
            on("L001", "001 Running", KEYED, "002"), on("L002", "002 Done", KEYED, "001")
        )
        for _ in range(2):
            machine.crash()
            machine.start_ready()
        succeed(machine)
        machine.crash()
        assert machine.state.recoveries == 1
        assert machine.state.status == "running"


class TestCancelling:
    def test_nothing_new_starts_and_what_is_in_flight_may_finish(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "002"), *CHAIN[1:])
        machine.submit(c.Cancel(WILL, "changed my mind"))
        assert machine.state.status == "cancelling"
        succeed(machine)
        assert machine.state.status == "cancelled"
        assert statuses(machine) == {"001": "Cancelled", "002": "Done"}

    @pytest.mark.parametrize("outcome", [c.Missing(SIZE), c.NotSent(), c.Lost("?")])
    def test_whatever_would_need_more_simply_stops(self, outcome: c.Outcome) -> None:
        machine = started(*CHAIN)
        machine.submit(c.Cancel(WILL))
        fail(machine, outcome)
        assert machine.state.status == "cancelled"
        assert machine.state.steps["L001"].status is StepStatus.STOPPED

    def test_a_failure_is_not_tried_again(self) -> None:
        machine = started(*CHAIN)
        machine.submit(c.Cancel(WILL))
        fail(machine, TRANSIENT)
        assert machine.state.status == "cancelled"
        assert statuses(machine)["002"] == "Cancelled"

    def test_a_snippet_calls_nothing_more(self) -> None:
        wanted = c.CallWanted(0, "plain", {})
        for before, then in (((), wanted), ((wanted,), c.CallReturned(0, 1))):
            machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
            for outcome in before:
                fail(machine, outcome)
            machine.submit(c.Cancel(WILL))
            fail(machine, then)
            assert not machine.flying
            assert machine.state.status == "cancelled"

    def test_after_the_grace_the_outcome_is_recorded_as_unknown(self) -> None:
        machine = started(*CHAIN)
        succeed(machine)
        late = only(machine)
        machine.submit(c.Cancel(WILL, grace=5.0))
        machine.now += 4.9
        machine.submit(c.Tick())
        assert machine.state.status == "cancelling"
        machine.now += 0.2
        machine.submit(c.Tick())
        assert machine.state.status == "cancelled"
        assert events(machine, e.OutcomeLost)
        machine.report(late, c.Succeeded({"x": 1}))
        assert events(machine, e.LateResultKept)

    def test_a_crash_meanwhile_leaves_nothing_to_run(self) -> None:
        machine = started(on("L001", "001 Running", KEYED, "001"))
        machine.submit(c.Cancel(WILL))
        machine.crash()
        assert machine.state.status == "cancelled"
        assert not machine.flying

    def test_what_only_waits_stops_at_once(self) -> None:
        machine = started(on("L001", "001 Running", ASK, "001"))
        asked = question(machine).request_id
        machine.submit(c.Cancel(WILL))
        assert machine.state.status == "cancelled"
        assert machine.state.questions[asked].status == "withdrawn"
