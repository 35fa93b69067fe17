"""Cases: from a failure to a patch that a person accepts, and whatever else may become of it."""

from __future__ import annotations

import pytest
from case_stories import (
    BEFORE,
    EVE,
    GUESS,
    PLAN,
    RENAME,
    answer,
    asked,
    consulted,
    given_up,
    proposal,
    proposed,
    the_case,
    thinking,
    thought,
)
from machine import Machine
from small_plans import (
    CALL,
    PERMANENT,
    TRANSIENT,
    WILL,
    events,
    give_up,
    on,
    only,
    started,
    statuses,
    succeed,
)

from holdfast.core.plan.advice import as_patched
from holdfast.core.plan.cases import case_id_for
from holdfast.core.repair.operations import patched, read_operations
from holdfast.errors import AlreadyAnswered, NotAllowed, NotPermitted
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.effects import CallTool, Diagnose
from holdfast.model.interaction import Asking
from holdfast.model.plan import Check, HumanAction
from holdfast.model.repair import CaseStatus, Level, Look, Mend, RepairLimits, RepairMode
from holdfast.model.repair import RepairPolicy as Policy
from holdfast.model.retry import Cause, GiveUp
from holdfast.model.values import JsonObject


def status(machine: Machine, case_id: str = "case_1") -> CaseStatus:
    return the_case(machine, case_id).status


def sent(machine: Machine) -> list[tuple[str, dict[str, object]]]:
    """The calls that were handed out, with their arguments."""
    calls = [*machine.past, *machine.flying.values()]
    return [(one.work.step_id, dict(one.args)) for one in calls if isinstance(one, CallTool)]


def verified_badly() -> Machine:
    """The main task is Done, and the check of the outcome says that it is not."""
    machine = started(on("L001", "001 Running", CALL, "001"), verify=(Check("plain"),))
    succeed(machine)
    machine.report(only(machine), c.Succeeded({"success": False}))
    return machine


class TestOpening:
    def test_a_listener_that_failed_for_good_has_a_case_that_is_to_be_looked_at(self) -> None:
        machine = given_up()
        case = the_case(machine)
        assert (case.listener_id, case.firing, case.status) == ("L002", 1, CaseStatus.OPEN)
        assert case.failure is not None
        assert case.failure.message == "no such thing"
        assert machine.diagnoses == [Diagnose(machine.run_id, "case_1", 0)]

    def test_what_is_known_beforehand_needs_no_further_look(self) -> None:
        machine = given_up(Look(GUESS))
        assert the_case(machine).diagnosis == GUESS
        assert machine.diagnoses == []

    def test_a_plan_whose_author_wants_no_repairs_has_no_cases(self) -> None:
        machine = given_up(Look(GUESS), Policy(mode=RepairMode.OFF))
        assert machine.state.status == "error"
        assert not machine.state.repair.cases

    def test_a_refusal_by_a_person_has_none(self) -> None:
        machine = started(on("L001", "001 Running", HumanAction(), "001"))
        (question,) = machine.state.open_questions
        machine.submit(c.Answer(question, WILL, "reject", feedback="never"))
        assert machine.state.status == "error"
        (failed,) = events(machine, e.ListenerFailed)
        assert failed.failure.cause is Cause.REFUSED
        assert not machine.state.repair.cases

    def test_nobody_answered_has_one(self) -> None:
        asking = Asking(timeout_seconds=5)
        machine = started(on("L001", "001 Running", HumanAction(asking=asking), "001"))
        machine.fire_timer()
        assert status(machine) is CaseStatus.OPEN

    def test_a_plan_of_which_nothing_fires_has_one_without_a_listener(self) -> None:
        machine = started(on("L001", "001 Running", CALL, "002"))
        machine.settle()
        case = the_case(machine)
        assert (case.listener_id, case.firing) == ("", 0)
        assert case.failure is not None
        assert case.failure.cause is Cause.PLAN

    def test_a_check_that_failed_has_one(self) -> None:
        machine = verified_badly()
        case = the_case(machine)
        assert case.listener_id == "verify.1"
        assert case.failure is not None
        assert case.failure.cause is Cause.WRONG_RESULT

    def test_a_quarantined_run_has_none(self) -> None:
        machine = started(*PLAN)
        for _ in range(3):
            machine.crash()
            for question in sorted(machine.state.open_questions):
                machine.submit(c.Answer(question, WILL, "run_again"))
        assert machine.state.status == "error"
        assert not machine.state.repair.cases

    def test_both_of_two_that_failed_have_one_and_only_one_each(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"), on("L2", "001 Running", CALL, "3")
        )
        for effect in list(machine.flying.values()):
            machine.report(effect, PERMANENT)
        first, second = machine.consultations
        machine.consult(0)
        assert sorted(machine.state.repair.cases) == ["case_1", "case_2"]
        machine.submit(c.Advise(second.listener_id, second.firing, GiveUp(), Look(GUESS)))
        assert len(machine.state.repair.cases) == 2
        assert first.listener_id == the_case(machine).listener_id

    def test_a_run_has_no_more_than_sixteen(self) -> None:
        machine = given_up()
        for _ in range(20):
            machine.submit(c.Resume(WILL))
            machine.settle_with(PERMANENT)
        assert len(machine.state.repair.cases) == 16


class TestLooking:
    def test_a_look_that_comes_later_is_taken_once(self) -> None:
        machine = given_up()
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS)))
        before = machine.state
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, proposal(before, RENAME))))
        assert machine.state == before

    @pytest.mark.parametrize(("case_id", "number"), [("case_9", 0), ("case_1", 1)])
    def test_a_word_about_another_case_or_request_changes_nothing(
        self, case_id: str, number: int
    ) -> None:
        machine = given_up()
        before = machine.state
        machine.submit(c.ReportDiagnosis(case_id, number, Look(GUESS)))
        assert machine.state == before

    def test_a_new_owner_looks_again_where_nothing_was_told(self) -> None:
        machine = given_up()
        machine.crash()
        assert machine.diagnoses == [Diagnose(machine.run_id, "case_1", 0)]

    def test_it_goes_on_by_itself_until_it_was_looked_at(self) -> None:
        machine = given_up()
        assert machine.goes_on
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS)))
        assert not machine.goes_on


class TestThinking:
    def test_a_request_is_on_disk_before_it_is_made(self) -> None:
        machine = thinking()
        assert status(machine) is CaseStatus.THINKING
        assert machine.diagnoses[-1] == Diagnose(machine.run_id, "case_1", 1)
        assert machine.state.repair.requests == 1

    def test_what_a_model_found_is_proposed_and_what_it_cost_is_kept(self) -> None:
        machine = thinking()
        thought(machine, diagnosis=GUESS, proposal=proposal(machine.state, RENAME))
        assert status(machine) is CaseStatus.PROPOSED
        assert machine.state.repair.tokens == 15

    def test_an_unusable_reply_is_asked_about_again_with_a_complaint(self) -> None:
        machine = thinking()
        thought(machine, again=True, complaint="cite something", reason="prose")
        assert the_case(machine).complaint == "cite something"
        assert machine.diagnoses[-1].number == 2

    def test_a_case_has_three_requests_and_then_the_rules_best_stands(self) -> None:
        machine = given_up()
        thinking(machine, proposal(machine.state, RENAME))
        for _ in range(3):
            thought(machine, again=True)
        assert status(machine) is CaseStatus.PROPOSED
        assert machine.state.repair.requests == 3

    def test_without_anything_better_it_stays_open(self) -> None:
        machine = thinking()
        thought(machine, reason="the model could not be reached")
        assert status(machine) is CaseStatus.OPEN
        assert the_case(machine).reason == "the model could not be reached"
        assert asked(machine) == []

    def test_a_stale_proposal_of_a_model_leaves_the_rules_best(self) -> None:
        machine = given_up()
        kept = proposal(machine.state, RENAME)
        thinking(machine, kept)
        other = proposal(as_patched(machine.state, kept.patch, kept.verdict.digest, 0), BEFORE)
        thought(machine, proposal=other)
        assert the_case(machine).proposal == kept

    def test_a_stale_proposal_without_another_is_not_asked_about(self) -> None:
        machine = given_up()
        kept = proposal(machine.state, RENAME)
        other = proposal(as_patched(machine.state, kept.patch, kept.verdict.digest, 0), BEFORE)
        thought(thinking(machine), proposal=other)
        assert status(machine) is CaseStatus.OPEN

    @pytest.mark.parametrize(
        "most", [RepairLimits(requests=0), RepairLimits(tokens=0)], ids=["requests", "tokens"]
    )
    def test_a_budget_that_is_spent_asks_no_model(self, most: RepairLimits) -> None:
        machine = thinking(given_up(policy=Policy(most=most)))
        assert status(machine) is CaseStatus.OPEN
        assert machine.state.repair.requests == 0

    def test_a_crash_counts_the_request_and_looks_anew(self) -> None:
        machine = thinking()
        machine.crash()
        (ended,) = events(machine, e.DiagnosisReceived)
        assert ended.lost
        assert machine.diagnoses == [Diagnose(machine.run_id, "case_1", 0)]

    def test_crashes_spend_no_more_than_the_budget(self) -> None:
        machine = thinking()
        for _ in range(8):
            machine.crash()
            machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, thinks=True)))
        assert machine.state.repair.requests == 3

    def test_a_resume_meanwhile_closes_the_case_and_the_thought_is_late(self) -> None:
        machine = thinking()
        machine.submit(c.Resume(WILL))
        assert status(machine) is CaseStatus.CLOSED
        before = machine.state
        machine.submit(c.ReportDiagnosis("case_1", 1, Look(GUESS)))
        assert machine.state == before


class TestConsent:
    def test_a_proposal_is_a_question_for_an_operator_or_an_approver(self) -> None:
        machine = proposed()
        (question,) = asked(machine)
        request = machine.state.questions[question].request
        assert (request.role, request.title) == ("operator", "Repair L002?")
        assert request.context["words"] == ["L002 passes new instead of old"]
        acting = proposed(BEFORE, level=Level.ACT)
        (question,) = asked(acting)
        assert acting.state.questions[question].request.role == "approver"

    def test_the_authors_role_wins(self) -> None:
        machine = given_up(policy=Policy(role="hr_lead"))
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, proposal(machine.state, RENAME))))
        (question,) = asked(machine)
        assert machine.state.questions[question].request.role == "hr_lead"

    def test_the_run_is_in_error_and_the_listener_has_failed_meanwhile(self) -> None:
        machine = proposed()
        assert machine.state.status == "error"
        assert machine.state.steps["L002"].status == "failed"
        assert not machine.goes_on

    def test_accepted_it_patches_the_plan_and_resumes(self) -> None:
        machine = proposed()
        answer(machine)
        machine.settle()
        assert machine.state.status == "done"
        assert sent(machine)[1:3] == [("L002", {"old": "x"}), ("L002", {"new": "x"})]
        assert [one for one, _ in sent(machine)].count("L001") == 1

    def test_the_patch_names_who_agreed_and_to_what(self) -> None:
        machine = proposed()
        base = machine.state.plan.digest
        answer(machine)
        (patch,) = events(machine, e.PlanPatched)
        assert (patch.by, patch.consent, patch.base) == (WILL, "agreed", base)
        assert machine.state.plan.digest == patch.digest != base

    def test_who_agreed_and_who_proposed_want_what_the_run_does(self) -> None:
        machine = proposed(by=EVE)
        answer(machine)
        assert {WILL, EVE} <= set(machine.state.wanting)

    def test_an_inserted_listener_runs_first_and_the_old_one_waits_for_it(self) -> None:
        machine = proposed(BEFORE, level=Level.ACT)
        answer(machine)
        assert machine.ready() == ["R1"]
        assert machine.state.failed == ()
        machine.settle()
        assert machine.state.status == "done"
        assert [one for one, _ in sent(machine)] == ["L001", "L002", "R1", "L002", "L003"]
        assert statuses(machine)["R1"] == "Done"

    def test_the_failed_task_has_not_been_tried_while_another_goes_first(self) -> None:
        machine = proposed(BEFORE, level=Level.ACT)
        assert statuses(machine)["003"] == "Error"
        answer(machine)
        assert statuses(machine)["003"] == "NotStarted"

    def test_refused_nothing_changes_and_it_is_not_proposed_again(self) -> None:
        machine = proposed()
        before = machine.state.plan
        answer(machine, "refuse", feedback="not like this")
        assert (status(machine), machine.state.plan) == (CaseStatus.OPEN, before)
        assert machine.state.status == "error"
        (refused,) = events(machine, e.PatchRefused)
        assert (refused.by, refused.reason) == (WILL, "not like this")
        assert asked(machine) == []

    def test_the_first_answer_wins_and_the_other_is_told_who_and_how(self) -> None:
        machine = proposed()
        (question,) = asked(machine)
        answer(machine)
        with pytest.raises(AlreadyAnswered, match=f"answered by {WILL} .* 'Repair and go on'"):
            machine.submit(c.Answer(question, EVE, "refuse"))
        assert len(events(machine, e.PlanPatched)) == 1

    def test_who_proposed_what_acts_does_not_approve_it(self) -> None:
        machine = proposed(BEFORE, level=Level.ACT, by=WILL)
        with pytest.raises(NotPermitted, match="another person"):
            answer(machine)
        answer(machine, by=EVE)
        assert events(machine, e.PlanPatched)

    def test_consent_to_a_patch_is_none_to_a_call(self) -> None:
        raw = {**BEFORE, "listener": {**BEFORE["listener"], "approval": True}}  # type: ignore[dict-item]
        machine = proposed(raw, level=Level.ACT)
        answer(machine)
        machine.settle()
        (question,) = machine.state.open_questions
        assert machine.state.questions[question].purpose == "approval"
        assert "R1" not in [one for one, _ in sent(machine)]

    def test_a_changed_tool_makes_it_stale_and_nothing_is_applied(self) -> None:
        machine = proposed(versions={"plain": "1"})
        before = machine.state
        with pytest.raises(NotAllowed, match=r"has changed since .*: nothing was changed"):
            answer(machine, versions={"plain": "2"})
        assert machine.state == before
        answer(machine, versions={"plain": "1"})
        assert events(machine, e.PlanPatched)

    def test_a_changed_tool_has_it_looked_at_anew(self) -> None:
        machine = proposed(versions={"plain": "1"})
        machine.submit(c.ReviewProposal("case_1", {"plain": "1"}))
        assert status(machine) is CaseStatus.PROPOSED
        machine.submit(c.ReviewProposal("case_1", {"plain": "2"}))
        assert (status(machine), asked(machine)) == (CaseStatus.CLOSED, [])
        assert machine.diagnoses == [Diagnose(machine.run_id, "case_2", 0)]
        machine.submit(c.ReviewProposal("case_1", {"plain": "3"}))
        machine.submit(c.ReviewProposal("case_9", {"plain": "3"}))
        assert len(machine.state.repair.cases) == 2

    def test_a_question_that_cannot_be_asked_is_not_proposed(self) -> None:
        machine = given_up()
        bad = proposal(machine.state, RENAME)
        shown = {"words": float("nan")}
        unsound = type(bad)(bad.patch, bad.verdict, shown)
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, unsound)))
        assert status(machine) is CaseStatus.OPEN


class TestDealtWithOtherwise:
    def test_a_plain_resume_withdraws_the_proposal(self) -> None:
        machine = proposed()
        machine.submit(c.Resume(WILL))
        assert (asked(machine), status(machine)) == ([], CaseStatus.CLOSED)
        machine.settle()
        assert machine.state.status == "done"
        assert not events(machine, e.PlanPatched)

    @pytest.mark.parametrize(
        "command",
        [c.Skip("L002", WILL), c.MarkDone("003", WILL), c.RerunFrom("L001", WILL)],
        ids=["skip", "mark done", "run again"],
    )
    @pytest.mark.parametrize("begin", [proposed, given_up], ids=["proposed", "open"])
    def test_so_does_whatever_a_person_does_about_the_listener(
        self, begin: object, command: c.Command
    ) -> None:
        machine: Machine = begin()  # type: ignore[operator]
        machine.submit(command)
        assert (asked(machine), status(machine)) == ([], CaseStatus.CLOSED)

    def test_a_cancel_withdraws_it_too(self) -> None:
        machine = proposed()
        machine.submit(c.Cancel(WILL))
        assert (machine.state.status, asked(machine)) == ("cancelled", [])

    def test_a_cancelled_run_looks_at_nothing_any_more(self) -> None:
        machine = given_up()
        machine.submit(c.Cancel(WILL))
        machine.crash()
        assert machine.diagnoses == []

    def test_a_verification_that_is_run_again_closes_its_case(self) -> None:
        machine = verified_badly()
        machine.submit(c.RerunFrom("verify.1", WILL))
        assert status(machine) is CaseStatus.CLOSED


class TestPeoplesPatches:
    def test_a_patch_of_a_person_takes_the_place_of_what_was_proposed(self) -> None:
        machine = proposed()
        own = proposal(machine.state, BEFORE, level=Level.ACT, by=EVE, patch_id="own")
        machine.submit(c.ProposePatch(own, EVE, "L002"))
        assert status(machine) is CaseStatus.CLOSED
        assert status(machine, "case_2") is CaseStatus.PROPOSED
        assert the_case(machine, "case_2").diagnosis.source == "person"  # type: ignore[union-attr]
        answer(machine)
        machine.settle()
        assert machine.state.status == "done"

    def test_a_run_that_goes_well_may_be_patched_where_it_has_not_been_yet(self) -> None:
        machine = started(*PLAN)
        own = proposal(machine.state, RENAME, by=EVE)
        machine.submit(c.ProposePatch(own, EVE))
        assert machine.state.status == "pause"
        answer(machine)
        assert machine.state.status == "running"
        machine.settle()
        assert ("L002", {"new": "x"}) in sent(machine)
        assert machine.state.status == "done"

    def test_what_has_happened_stays(self) -> None:
        machine = proposed()
        past = {"op": "set_args", "listener_id": "L001", "set": {"x": 1}}
        with pytest.raises(NotAllowed, match="L001"):
            machine.submit(c.ProposePatch(proposal(machine.state, past), EVE))

    def test_one_that_was_made_for_another_plan_is_refused(self) -> None:
        machine = proposed()
        later = proposal(machine.state, BEFORE)
        answer(machine)
        with pytest.raises(NotAllowed, match=r"has changed since"):
            machine.submit(c.ProposePatch(later, EVE))

    def test_a_run_that_had_its_most_cases_takes_no_more(self) -> None:
        machine = given_up()
        for _ in range(20):
            machine.submit(c.Resume(WILL))
            machine.settle_with(PERMANENT)
        with pytest.raises(NotAllowed, match="16 cases"):
            machine.submit(c.ProposePatch(proposal(machine.state, RENAME), EVE, "L002"))

    def test_one_that_cannot_be_asked_about_is_refused(self) -> None:
        machine = proposed()
        before = machine.state
        own = proposal(machine.state, BEFORE, patch_id="own")
        unsound = type(own)(own.patch, own.verdict, {"words": float("nan")})
        with pytest.raises(NotAllowed, match="cannot be asked about"):
            machine.submit(c.ProposePatch(unsound, EVE, "L002"))
        assert machine.state == before

    def test_a_listener_that_waits_for_its_trigger_may_be_made_to_wait_once_more(self) -> None:
        machine = proposed(BEFORE, level=Level.ACT)
        answer(machine)
        task = {"task_id": "R2", "name": "Looked at"}
        second = {**BEFORE, "task": task, "listener": {**BEFORE["listener"], "listener_id": "R2"}}  # type: ignore[dict-item]
        own = proposal(machine.state, second, by=EVE, patch_id="own")
        machine.submit(c.ProposePatch(own, EVE))
        answer(machine)
        machine.settle()
        assert machine.state.status == "done"
        assert [one for one, _ in sent(machine)][-4:] == ["R1", "R2", "L002", "L003"]

    def test_an_applied_patch_withdraws_the_other_proposals(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"), on("L2", "001 Running", CALL, "3")
        )
        for effect in list(machine.flying.values()):
            machine.report(effect, PERMANENT)
        machine.consult(0)
        args = {"op": "set_args", "set": {"new": 1}}
        for case_id, listener_id in (("case_1", "L001"), ("case_2", "L2")):
            found = proposal(machine.state, {**args, "listener_id": listener_id})
            machine.submit(c.ReportDiagnosis(case_id, 0, Look(GUESS, found)))
        first, _ = asked(machine)
        machine.submit(c.Answer(first, WILL, "apply"))
        assert asked(machine) == []
        assert sorted(one.status for one in machine.state.repair.cases.values()) == [
            CaseStatus.APPLIED,
            CaseStatus.CLOSED,
        ]


class TestPolicy:
    def mend(self, *operations: object, policy: Policy | None = None) -> Machine:
        machine = consulted(policy)
        found = proposal(machine.state, *(operations or (RENAME,)))  # type: ignore[arg-type]
        failed = machine.consultations.pop(0)
        machine.submit(c.Advise(failed.listener_id, failed.firing, Mend(GUESS, found, "renamed")))
        return machine

    def test_what_the_author_allows_is_repaired_before_the_planner_gives_up(self) -> None:
        machine = self.mend()
        assert (machine.state.status, status(machine)) == ("running", CaseStatus.APPLIED)
        (patch,) = events(machine, e.PlanPatched)
        assert patch.by == ""
        machine.settle()
        assert machine.state.status == "done"
        assert sent(machine)[2] == ("L002", {"new": "x"})
        assert not events(machine, e.PlannerGaveUp)

    def test_one_that_waits_for_a_new_listener_is_not_fired_at_once(self) -> None:
        machine = self.mend(BEFORE)
        assert machine.ready() == ["R1"]
        assert statuses(machine)["001"] == "Retrying"
        machine.settle()
        assert machine.state.status == "done"

    def test_a_patch_that_does_not_fit_leaves_it_to_a_person(self) -> None:
        machine = self.mend(policy=Policy(most=RepairLimits(patches=0)))
        assert machine.state.status == "error"
        assert status(machine) is CaseStatus.OPEN
        assert not events(machine, e.PlanPatched)

    def test_a_repair_that_did_not_help_is_disproven_and_the_case_open_again(self) -> None:
        setting: JsonObject = {"op": "set_args", "listener_id": "L002", "set": {"new": "x"}}
        machine = self.mend(setting)
        machine.start_ready()
        give_up(machine)
        (disproven,) = events(machine, e.RepairDisproven)
        assert (disproven.case_id, disproven.listener_id) == ("case_1", "L002")
        assert machine.diagnoses == [Diagnose(machine.run_id, "case_1", 0)]
        again = proposal(machine.state, setting)
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, again)))
        assert status(machine) is CaseStatus.OPEN

    def test_a_failure_is_named_beforehand_as_its_case_will_be(self) -> None:
        assert case_id_for(consulted().state, "L002") == "case_1"
        machine = self.mend()
        assert case_id_for(machine.state, "L002") == "case_1"
        assert case_id_for(machine.state, "L003") == "case_2"

    def test_so_is_one_whose_new_listener_fails(self) -> None:
        machine = self.mend(BEFORE)
        machine.start_ready()
        give_up(machine)
        (disproven,) = events(machine, e.RepairDisproven)
        assert disproven.listener_id == "R1"
        assert the_case(machine).listener_id == "R1"

    def test_a_run_of_the_most_cases_is_not_mended_any_more(self) -> None:
        machine = given_up()
        for _ in range(20):
            machine.submit(c.Resume(WILL))
            machine.settle_with(PERMANENT)
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        machine.report(only(machine), PERMANENT)
        found = proposal(machine.state, RENAME)
        failed = machine.consultations.pop(0)
        machine.submit(c.Advise(failed.listener_id, failed.firing, Mend(GUESS, found)))
        assert not events(machine, e.PlanPatched)

    def test_a_run_that_is_done_has_proven_its_repairs(self) -> None:
        machine = proposed()
        answer(machine)
        machine.settle()
        assert status(machine) is CaseStatus.PROVEN
        assert [type(one) for one in events(machine, e.RunCompleted)] == [e.RunCompleted]


class TestWakingEarly:
    def test_a_delayed_attempt_is_made_at_once(self) -> None:
        machine = started(*PLAN)
        machine.report(only(machine), TRANSIENT)
        assert machine.state.steps["L001"].status == "backoff"
        machine.submit(c.WakeEarly("L001"))
        assert machine.state.steps["L001"].status == "ready"

    def test_what_is_not_delayed_is_left_alone(self) -> None:
        machine = started(*PLAN)
        before = machine.state
        machine.submit(c.WakeEarly("L001"))
        machine.submit(c.WakeEarly("L404"))
        assert machine.state == before


class TestThePlanAtEachMoment:
    def test_the_run_stays_pinned_to_the_plan_of_its_birth(self) -> None:
        machine = proposed()
        born = machine.state.plan
        answer(machine)
        assert machine.state.origin == born
        machine.reload()
        assert machine.state.origin == born
        assert machine.state.plan.plan == patched(born.plan, read_operations([RENAME]))

    def test_a_second_patch_follows_the_first(self) -> None:
        machine = proposed()
        born = machine.state.plan
        answer(machine)
        own = proposal(machine.state, {"op": "skip", "listener_id": "L003"}, by=EVE, patch_id="p2")
        machine.submit(c.ProposePatch(own, EVE))
        answer(machine)
        machine.reload()
        assert machine.state.origin == born
        assert len(machine.state.repair.patches) == 2
        machine.settle()
        assert statuses(machine)["001"] == "Skipped"

    def test_a_rehearsed_run_stands_as_the_real_one_will(self) -> None:
        machine = proposed(BEFORE, level=Level.ACT)
        found = the_case(machine).proposal
        assert found is not None
        rehearsed = as_patched(machine.state, found.patch, found.verdict.digest, machine.now)
        answer(machine)
        assert rehearsed.plan == machine.state.plan
        assert {one: step.status for one, step in rehearsed.steps.items()} == {
            one: step.status for one, step in machine.state.steps.items()
        }
        assert rehearsed.status == machine.state.status

    def test_so_does_one_that_the_planner_is_asked_about(self) -> None:
        machine = consulted()
        found = proposal(machine.state, RENAME)
        rehearsed = as_patched(machine.state, found.patch, found.verdict.digest, machine.now)
        assert rehearsed.steps["L002"].status == "ready"
        assert machine.state.steps["L002"].status == "consulting"

    def test_of_several_that_are_asked_about_what_the_patch_changes_is_tried_again(self) -> None:
        both = [on(one, "001 Running", CALL, f"{one}2") for one in ("A", "L002")]
        machine = started(*both, on("C", "002 Done", CALL, "001"))
        for effect in tuple(machine.flying.values()):
            machine.report(effect, PERMANENT)
        found = proposal(machine.state, {"op": "set_retry", "listener_id": "L002", "timeout": 9})
        rehearsed = as_patched(machine.state, found.patch, found.verdict.digest, machine.now)
        standing = {one: rehearsed.steps[one].status.value for one in ("A", "L002")}
        assert standing == {"A": "consulting", "L002": "ready"}
