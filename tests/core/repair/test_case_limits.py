"""What one run may spend on repairs, and one case: patches, cases, requests, time."""

from __future__ import annotations

import pytest
from case_stories import (
    EVE,
    GUESS,
    PLAN,
    RENAME,
    answer,
    asked,
    given_up,
    proposal,
    the_case,
    thinking,
    thought,
)
from machine import Machine
from small_plans import CALL, PERMANENT, WILL, events, give_up, on, started

from holdfast.errors import NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.message import Usage
from holdfast.model.repair import (
    LONGEST_DIAGNOSIS,
    LONGEST_REQUEST,
    MOST_CASES,
    MOST_PATCHES,
    MOST_REQUESTS,
    MOST_REQUESTS_OF_A_CASE,
    MOST_TOKENS,
    CaseStatus,
    Look,
    RepairLimits,
    RepairPolicy,
    Thought,
)
from holdfast.model.values import JsonObject

LAST_MOMENT = LONGEST_DIAGNOSIS - LONGEST_REQUEST


def later(machine: Machine, seconds: float) -> None:
    machine.now += seconds


def test_the_limits_are_those_of_the_design() -> None:
    assert (MOST_PATCHES, MOST_CASES, MOST_REQUESTS, MOST_REQUESTS_OF_A_CASE) == (8, 16, 6, 3)
    assert (LONGEST_DIAGNOSIS, LONGEST_REQUEST) == (300.0, 60.0)


class TestFiveMinutes:
    @pytest.mark.parametrize(("after", "requests"), [(LAST_MOMENT, 2), (LAST_MOMENT + 0.1, 1)])
    def test_a_reply_is_asked_for_again_where_that_can_end_in_time(
        self, after: float, requests: int
    ) -> None:
        machine = given_up()
        thinking(machine, proposal(machine.state, RENAME))
        later(machine, after)
        thought(machine, again=True)
        assert machine.state.repair.requests == requests
        best_stands = the_case(machine).status is CaseStatus.PROPOSED
        assert best_stands is (requests == 1)

    def test_what_was_found_too_late_for_another_request_is_proposed(self) -> None:
        machine = thinking()
        later(machine, LONGEST_DIAGNOSIS)
        thought(machine, again=True, proposal=proposal(machine.state, RENAME))
        assert len(asked(machine)) == 1

    def test_they_begin_with_the_first_request_and_not_with_the_failure(self) -> None:
        machine = given_up()
        later(machine, 86_400.0)
        thinking(machine)
        assert the_case(machine).asked_at == machine.now
        assert the_case(machine).status is CaseStatus.THINKING

    def test_a_restart_does_not_begin_them_anew(self) -> None:
        machine = given_up()
        kept = proposal(machine.state, RENAME)
        thinking(machine, kept)
        began = machine.now
        later(machine, 100.0)
        machine.crash()
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, kept, thinks=True)))
        assert (the_case(machine).number, the_case(machine).asked_at) == (2, began)
        later(machine, 200.0)
        machine.crash()
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, kept, thinks=True)))
        assert machine.state.repair.requests == 2
        assert the_case(machine).status is CaseStatus.PROPOSED, "the rules' best stands"

    def test_a_process_that_was_away_for_a_night_asks_no_more(self) -> None:
        machine = thinking()
        later(machine, 30_000.0)
        machine.crash()
        machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, thinks=True)))
        assert (the_case(machine).status, the_case(machine).number) == (CaseStatus.OPEN, 1)

    def test_a_clock_that_was_put_back_costs_no_request_more(self) -> None:
        machine = thinking()
        for _ in range(5):
            machine.now -= 1_000.0
            if the_case(machine).status is CaseStatus.THINKING:
                thought(machine, again=True)
        assert machine.state.repair.requests == MOST_REQUESTS_OF_A_CASE

    def test_a_repair_that_did_not_help_is_a_failure_of_its_own(self) -> None:
        machine = given_up()
        thinking(machine, proposal(machine.state, RENAME))
        thought(machine)
        answer(machine)
        machine.start_ready()
        later(machine, 86_400.0)
        give_up(machine)
        assert the_case(machine).asked_at is None
        thinking(machine)
        assert (the_case(machine).number, the_case(machine).asked_at) == (2, machine.now)


class TestRequests:
    @pytest.mark.parametrize("most", [6, 99])
    def test_a_run_has_six_in_all_its_cases_whatever_its_plan_says(self, most: int) -> None:
        machine = given_up(policy=RepairPolicy(most=RepairLimits(requests=most)))
        for number in range(1, 6):
            case_id = f"case_{number}"
            machine.submit(c.ReportDiagnosis(case_id, 0, Look(GUESS, thinks=True)))
            while machine.state.repair.cases[case_id].status is CaseStatus.THINKING:
                asked_for = machine.state.repair.cases[case_id].number
                told = Thought(usage=Usage(1, 1), again=True)
                machine.submit(c.ReportDiagnosis(case_id, asked_for, told))
            machine.submit(c.Resume(WILL))
            machine.settle_with(PERMANENT)
        assert [one.number for one in machine.state.repair.in_order()] == [3, 3, 0, 0, 0, 0]
        assert machine.state.repair.requests == MOST_REQUESTS

    def test_a_plan_may_lower_them(self) -> None:
        most = RepairPolicy(most=RepairLimits(requests=1))
        machine = thinking(given_up(policy=most))
        thought(machine, again=True)
        assert machine.state.repair.requests == 1

    @pytest.mark.parametrize("most", [MOST_TOKENS, 10**9])
    def test_nor_are_more_tokens_spent_on_a_further_one(self, most: int) -> None:
        machine = thinking(given_up(policy=RepairPolicy(most=RepairLimits(tokens=most))))
        spent = Thought(usage=Usage(MOST_TOKENS - 1, 1), again=True)
        machine.submit(c.ReportDiagnosis("case_1", 1, spent))
        assert (machine.state.repair.requests, machine.state.repair.tokens) == (1, MOST_TOKENS)


def patch_again(machine: Machine, number: int) -> None:
    changed: JsonObject = {"op": "set_args", "listener_id": "L003", "set": {"n": number}}
    own = proposal(machine.state, changed, by=EVE, patch_id=f"p{number}")
    machine.submit(c.ProposePatch(own, EVE))
    answer(machine)


class TestPatches:
    PLAN = (PLAN[0], PLAN[1], on("L003", "003 Done", CALL, "001"))

    @pytest.mark.parametrize(("most", "takes"), [(2, 2), (99, MOST_PATCHES)])
    def test_a_run_takes_eight_or_what_its_author_allows(self, most: int, takes: int) -> None:
        machine = started(*self.PLAN, repair=RepairPolicy(most=RepairLimits(patches=most)))
        for number in range(takes):
            patch_again(machine, number)
        with pytest.raises(NotAllowed, match=f"has been repaired {takes} times already"):
            patch_again(machine, takes)
        assert len(events(machine, e.PlanPatched)) == takes

    def test_each_says_by_which_event_and_when_it_was_made(self) -> None:
        machine = started(*self.PLAN)
        for number in range(3):
            later(machine, 60.0)
            patch_again(machine, number)
        machine.reload()
        by_type = [one.seq for one in machine.records if one.type.startswith("PlanPatched")]
        at = {one.seq: one.at for one in machine.records}
        assert machine.state.repair.applied == tuple((seq, at[seq]) for seq in by_type)
        assert len(by_type) == 3
