"""Failures and what becomes of them: branches, retries, giving up, resuming, verifying."""

from __future__ import annotations

import pytest
from machine import Machine
from small_plans import (
    ASK,
    CALL,
    CODE,
    KEYED,
    PERMANENT,
    WILL,
    events,
    fail,
    give_up,
    on,
    only,
    reply,
    started,
    statuses,
    succeed,
)

from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.events import TaskUpdate
from holdfast.model.plan import Check, Output, TaskStatus, ToolAction
from holdfast.model.retry import Failure, FailureKind, Retry

CHAIN = (on("L001", "001 Running", CALL, "002"), on("L002", "002 Done", CODE, "001"))


def error_info(machine: Machine) -> dict[str, object]:
    return dict(machine.state.main_task.context["error_info"])


class TestFailures:
    def test_a_failure_output_that_is_no_error_is_a_branch_of_the_plan(self) -> None:
        branch = Output("003", TaskStatus.DONE, {"why": "{{result.error}}"})
        machine = started(
            on("L001", "001 Running", CALL, "002", failure_output=branch),
            on("L002", "003 Done", CODE, "001"),
        )
        fail(machine)
        assert not machine.consultations
        assert machine.state.task("003").context == {"why": "no such thing"}
        machine.settle()
        assert machine.state.status == "done"

    def test_an_error_that_a_listener_waits_for_is_a_branch_too(self) -> None:
        broken = Output("002", TaskStatus.ERROR)
        machine = started(
            on("L001", "001 Running", CALL, "002", failure_output=broken),
            on("L002", "002 Error", CODE, "001"),
        )
        fail(machine)
        assert not machine.consultations
        machine.settle()
        assert machine.state.status == "done"

    def test_an_error_that_nobody_waits_for_is_brought_before_the_planner(self) -> None:
        broken = Output("002", TaskStatus.ERROR)
        machine = started(on("L001", "001 Running", CALL, "002", failure_output=broken))
        fail(machine)
        assert machine.consultations
        assert statuses(machine) == {"001": "Running", "002": "Error"}

    def test_without_a_failure_output_the_main_task_names_the_listener(self) -> None:
        machine = started(*CHAIN)
        fail(machine)
        assert statuses(machine) == {"001": "Error", "002": "Error"}
        named = machine.state.main_task.context["failed_listener_id"]
        assert named == "inst_000001_L001"

    def test_a_failure_output_that_does_not_render_counts_as_none(self) -> None:
        broken = Output("003", TaskStatus.DONE, {"x": "{{result.nowhere}}"})
        machine = started(on("L001", "001 Running", CALL, "002", failure_output=broken))
        fail(machine)
        assert statuses(machine) == {"001": "Error", "002": "Error"}

    def test_a_driver_may_say_itself_what_a_failure_does(self) -> None:
        machine = started(*CHAIN)
        update = TaskUpdate("002", TaskStatus.SKIPPED)
        fail(machine, c.Failed(Failure(FailureKind.PERMANENT, "no"), (update,)))
        assert statuses(machine)["002"] == "Skipped"
        assert machine.state.status == "error", "nothing listens for Skipped"


class TestRetries:
    def test_the_planner_fires_the_listener_again_and_counts(self) -> None:
        machine = started(*CHAIN)
        first = only(machine).work
        fail(machine)
        machine.consult(2)
        assert statuses(machine) == {"001": "Retrying", "002": "NotStarted"}
        context = machine.state.main_task.context
        assert (context["retry_count"], context["max_retries"]) == (1, 2)
        assert len(context["retry_times"]) == 1
        assert "failed_listener_id" not in context
        machine.start_ready()
        assert only(machine).work.key != first.key
        succeed(machine)
        assert statuses(machine)["001"] == "Running"

    def test_beyond_its_retries_the_run_waits_for_a_person(self) -> None:
        machine = started(*CHAIN)
        for _ in range(2):
            fail(machine)
            machine.consult(1)
            machine.start_ready()
        assert machine.state.status == "error"
        assert error_info(machine) == {
            "failed_retries": 1,
            "status": "waiting_for_resume",
            "message": "L001 failed after 1 retry: no such thing",
        }

    def test_a_verdict_on_another_firing_is_ignored(self) -> None:
        machine = started(*CHAIN)
        fail(machine)
        assert not machine.submit(c.Advise("L001", 7, Retry(3))).events
        assert machine.submit(c.Advise("L001", 1, Retry(3))).events
        assert not machine.submit(c.Advise("L001", 1, Retry(3))).events

    def test_a_side_branch_that_is_retried_leaves_a_finished_main_task_finished(self) -> None:
        machine = started(
            on("L001", "001 Running", CODE, "001"), on("L002", "001 Running", CALL, "002")
        )
        code, call = sorted(machine.flying.values(), key=lambda one: one.work.step_id)
        machine.report(code, machine.outcome(code, {"x": 1}))
        assert statuses(machine)["001"] == "Done"
        machine.report(call, PERMANENT)
        machine.consult(1)
        machine.settle()
        assert machine.state.status == "done"

    def test_what_fails_beside_a_run_that_gave_up_is_listed_with_it(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "001 Running", KEYED, "003"),
            on("L003", "001 Running", CODE, "004"),
        )
        one, two, three = sorted(machine.flying.values(), key=lambda work: work.work.step_id)
        machine.report(one, PERMANENT)
        machine.report(two, PERMANENT)
        machine.consult(0)
        assert set(machine.state.failed) == {"L001", "L002"}, "the second is not consulted on"
        assert not machine.submit(c.Advise("L002", 1, Retry(3))).events
        machine.report(three, PERMANENT)
        context = machine.state.main_task.context
        assert context["failed_listener_id"] == "inst_000001_L001"
        assert context["failed_listener_ids"] == [f"inst_000001_L00{n}" for n in (1, 2, 3)]
        assert str(error_info(machine)["message"]).count("failed") == 3


class TestResuming:
    def test_only_what_failed_runs_again(self) -> None:
        machine = started(*CHAIN)
        succeed(machine)
        give_up(machine)
        machine.submit(c.Resume(WILL))
        assert error_info(machine)["status"] == "resuming"
        assert machine.ready() == ["L002"]
        machine.settle()
        assert machine.state.status == "done"
        assert "error_info" not in machine.state.main_task.context
        with pytest.raises(NotAllowed):
            machine.submit(c.Resume(WILL))

    def test_what_was_triggered_meanwhile_starts_at_the_resume(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "001 Running", KEYED, "003"),
            on("L003", "003 Done", CODE, "001"),
        )
        one, two = sorted(machine.flying.values(), key=lambda work: work.work.step_id)
        machine.report(one, PERMANENT)
        machine.consult(0)
        machine.report(two, machine.outcome(two, {"x": 1}))
        assert machine.ready() == ["L003"]
        assert not machine.start_ready()
        machine.submit(c.Resume(WILL))
        machine.settle()
        assert machine.state.status == "done"

    def test_an_open_question_is_answerable_in_error_and_pauses_again_after_it(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"), on("L002", "001 Running", ASK, "003")
        )
        give_up(machine)
        assert machine.state.status == "error"
        machine.submit(c.Resume(WILL))
        assert machine.state.status == "pause"
        machine.start_ready()
        give_up(machine)
        reply(machine, data={"colour": "red"})
        assert machine.state.status == "error"
        assert machine.ready() == ["L002"]

    def test_a_context_that_people_wrote_into_does_not_stop_the_resume(self) -> None:
        machine = started(*CHAIN)
        give_up(machine)
        machine.submit(c.EditContext("001", {"error_info": "see the wiki"}, WILL))
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        give_up(machine)
        machine.submit(c.EditContext("001", {"error_info": {"failed_retries": "many"}}, WILL))
        machine.submit(c.Resume(WILL))
        machine.settle()
        assert machine.state.status == "done"


class TestNothingLeft:
    def test_the_run_says_which_conditions_are_false(self) -> None:
        machine = started(*CHAIN[:1], on("L002", "002 Skipped", CODE, "001"))
        succeed(machine)
        assert machine.state.status == "error"
        assert "L002: Skipped (002 is Done)" in str(error_info(machine)["message"])

    def test_a_long_list_is_cut(self) -> None:
        others = [on(f"L1{n:02d}", "002 Skipped", CODE, "001") for n in range(10)]
        machine = started(*CHAIN[:1], *others)
        succeed(machine)
        assert "and 2 more" in str(error_info(machine)["message"])

    def test_every_listener_may_have_fired(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "002"))
        succeed(machine)
        assert "every listener has fired" in str(error_info(machine)["message"])

    def test_a_condition_that_a_person_made_true_fires_at_the_resume(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "003 002.context.paid==true", CODE, "001"),
        )
        succeed(machine)
        assert machine.state.status == "error"
        machine.submit(c.EditContext("002", {"paid": True}, WILL))
        machine.submit(c.Resume(WILL))
        assert machine.ready() == ["L002"]
        machine.settle()
        assert machine.state.status == "done"

    def test_a_resume_that_changes_nothing_gives_up_again(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "002"))
        succeed(machine)
        machine.submit(c.Resume(WILL))
        assert machine.state.status == "error"


class TestVerification:
    PLAN = (on("L001", "001 Running", CODE, "001"),)

    def checked(self, *checks: Check) -> Machine:
        machine = started(*self.PLAN, verify=checks)
        succeed(machine)
        machine.start_ready()
        return machine

    def test_each_check_is_recorded(self) -> None:
        machine = self.checked(Check("keyed"), Check("keyed", {}, "result.x == 1"))
        machine.settle()
        assert machine.state.status == "done"
        assert machine.state.verification == {"verify.1": "verified", "verify.2": "verified"}

    @pytest.mark.parametrize("result", [{"x": 2}, {"success": False, "x": 1}])
    def test_only_a_failed_check_turns_the_run_into_an_error(self, result: dict[str, int]) -> None:
        machine = self.checked(Check("keyed", {}, "result.x == 1"))
        for _ in range(3):
            if machine.flying:
                succeed(machine, result)
                machine.fire_timer()
                machine.start_ready()
        assert machine.state.status == "error"
        assert machine.state.failed == ("verify.1",)
        assert "verification failed: keyed" in str(error_info(machine)["message"])

    def test_after_a_resume_the_check_is_made_again_and_the_goal_is_still_reached(self) -> None:
        machine = self.checked(Check("keyed", {}, "result.x == 1"))
        succeed(machine, {"x": 2})
        assert statuses(machine)["001"] == "Error"
        machine.submit(c.Resume(WILL))
        assert statuses(machine)["001"] == "Done"
        machine.settle()
        assert machine.state.status == "done"

    def test_a_person_may_waive_a_failed_check(self) -> None:
        machine = self.checked(Check("keyed", {}, "result.x == 1"))
        succeed(machine, {"x": 2})
        machine.submit(c.Skip("verify.1", WILL))
        machine.submit(c.Resume(WILL))
        assert machine.state.status == "done"

    def test_a_person_may_make_one_check_again(self) -> None:
        machine = self.checked(Check("keyed"), Check("keyed", {}, "result.x == 1"))
        first, second = sorted(machine.flying.values(), key=lambda one: one.work.step_id)
        machine.report(first, machine.outcome(first, {"x": 1}))
        machine.report(second, machine.outcome(second, {"x": 2}))
        machine.submit(c.RerunFrom("verify.2", WILL))
        machine.settle()
        assert machine.state.status == "done"
        assert len(events(machine, e.VerificationStarted)) == 1

    def test_a_check_is_not_made_before_there_is_an_outcome(self) -> None:
        machine = started(*self.PLAN, verify=(Check("keyed"),))
        with pytest.raises(NotAllowed, match="once the main task is Done"):
            machine.submit(c.RerunFrom("verify.1", WILL))

    @pytest.mark.parametrize("tool", ["absent", "disabled"])
    def test_what_cannot_be_checked_is_recorded_as_such(self, tool: str) -> None:
        machine = self.checked(Check(tool))
        assert machine.state.status == "done"
        assert machine.state.verification == {"verify.1": "unable_to_verify"}

    def test_a_check_that_fails_without_an_answer_is_no_failed_check(self) -> None:
        machine = self.checked(Check("keyed"))
        fail(machine, PERMANENT)
        assert machine.state.status == "done"
        assert machine.state.verification == {"verify.1": "unable_to_verify"}


def test_a_repeating_listener_follows_every_trigger_one_after_the_other() -> None:
    machine = started(
        on("L001", "001 Running", CODE, "002"),
        on("L002", "001 Running", CODE, "003"),
        on("L003", "002 003 002.status==Done||003.status==Done", CALL, "004", repeat=True),
    )
    for effect in list(machine.flying.values()):
        machine.report(effect, machine.outcome(effect, {"x": 1}))
    machine.start_ready()
    assert machine.state.steps["L003"].pending == 1
    give_up(machine)
    assert machine.state.steps["L003"].status is StepStatus.FAILED
    machine.submit(c.Resume(WILL))
    machine.start_ready()
    succeed(machine)
    step = machine.state.steps["L003"]
    assert (step.firing, step.pending) == (3, 0)
    assert only(machine).work.firing == 3


def test_a_tool_that_nobody_registered_can_be_mended_and_resumed() -> None:
    machine = started(on("L001", "001 Running", ToolAction("absent"), "001"))
    machine.consult(0)
    machine.tools["absent"] = machine.tools["plain"]
    machine.submit(c.Resume(WILL))
    machine.start_ready()
    effect = only(machine)
    assert effect.work.firing == 2


class TestCycles:
    """Two listeners that fire each other, by a condition of which nobody can tell that it ends."""

    CYCLE = (
        on("L001", "001 Running", CODE, "002"),
        on("L002", "002 002.status==Done&&001.context.stop!=true", CODE, "003", repeat=True),
        on("L003", "003 Done", CODE, "002", repeat=True, max_firings=5),
    )

    def turning(self) -> Machine:
        machine = started(*self.CYCLE)
        machine.settle()
        return machine

    def test_a_cycle_without_end_waits_for_a_person(self) -> None:
        machine = self.turning()
        assert machine.state.status == "error"
        assert error_info(machine)["message"] == "L003 has fired 5 times (max_firings)"
        started_by = [one.listener_id for one in events(machine, e.ListenerStarted)]
        assert (started_by.count("L002"), started_by.count("L003")) == (6, 5)
        assert machine.state.failed == ("L003",)

    def test_a_resume_lets_it_fire_as_often_again(self) -> None:
        machine = self.turning()
        machine.submit(c.Resume(WILL))
        machine.settle()
        assert machine.state.status == "error"
        started_by = [one.listener_id for one in events(machine, e.ListenerStarted)]
        assert (started_by.count("L002"), started_by.count("L003")) == (11, 10)

    def test_a_resume_counts_anew_for_every_listener_of_the_cycle(self) -> None:
        machine = self.turning()
        machine.submit(c.Resume(WILL))
        assert {step.repeats for step in machine.state.steps.values()} == {0}

    def test_a_person_may_end_it(self) -> None:
        machine = self.turning()
        machine.submit(c.EditContext("001", {"stop": True}, WILL))
        machine.submit(c.Resume(WILL))
        machine.settle()
        assert "nothing is left to do" in str(error_info(machine)["message"])

    def test_what_the_planner_tries_again_is_no_repetition(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "001", max_firings=1))
        fail(machine)
        machine.consult(1)
        machine.start_ready()
        succeed(machine)
        assert machine.state.status == "done"

    def test_what_a_person_runs_again_is_none_either(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "002", max_firings=1))
        succeed(machine)
        machine.submit(c.RerunFrom("L001", WILL))
        machine.start_ready()
        assert only(machine).work.firing == 2


def test_a_listener_has_the_id_that_the_seeds_call_it_by() -> None:
    assert CHAIN[0].id == CHAIN[0].listener_id == "L001"
