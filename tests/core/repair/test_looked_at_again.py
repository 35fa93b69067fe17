"""A failure that is looked at once more counts once, what was given up for another proposal comes
back when that is refused, and what people refused is proposed by nobody but people."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_stories import (
    BEFORE,
    EVE,
    GUESS,
    PLAN,
    RENAME,
    answer,
    asked,
    given_up,
    proposal,
    the_case,
)
from forked import FORK, origin_of
from machine import Machine
from small_plans import PERMANENT, WILL, events, started, succeed

from holdfast.core.plan.fitting import refused_in, values_at
from holdfast.core.plan.forking import fork_of
from holdfast.core.repair.state import operations_digest
from holdfast.errors import NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.repair import (
    MOST_CASES,
    MOST_LOOKS,
    CaseStatus,
    Diagnosis,
    Evidence,
    Look,
    Proposal,
    Thought,
)
from holdfast.model.retry import Cause
from holdfast.model.values import JsonObject

NAME = "001.context.name"
OTHERWISE: JsonObject = {"op": "set_args", "listener_id": "L002", "set": {"new": "y"}}
SEEN = (Evidence(7, "L002 failed"), Evidence(9, "it said so"))


def found(machine: Machine, *operations: JsonObject, **more: object) -> Proposal:
    """What a look finds, which reads who it is about."""
    seen = {"reads": (NAME,), "values": values_at(machine.state, (NAME,))}
    return proposal(machine.state, *(operations or (RENAME,)), **{**seen, **more})  # type: ignore[arg-type]


def looked(machine: Machine, *operations: JsonObject) -> None:
    """The rules propose it, with evidence, for the newest case."""
    del machine.diagnoses[:-1]
    machine.diagnose(Look(replace(GUESS, evidence=SEEN), found(machine, *operations)))


def waiting() -> Machine:
    """The rules' repair of L002 waits for consent."""
    machine = given_up()
    looked(machine)
    return machine


def edited(machine: Machine, name: str) -> None:
    machine.submit(c.EditContext("001", {"name": name}, EVE))


def fails_again(machine: Machine) -> None:
    machine.submit(c.Resume(WILL))
    machine.settle_with(PERMANENT)


def own(machine: Machine, *operations: JsonObject, by: str = EVE) -> None:
    made = proposal(machine.state, *(operations or (BEFORE,)), by=by, patch_id=f"of {by}")
    machine.submit(c.ProposePatch(made, by, "L002"))


def proposed_now(machine: Machine) -> str:
    (question,) = asked(machine)
    return str(machine.state.questions[question].request.context["patch_id"])


class TestCounting:
    def test_the_looks_of_one_failure_are_one_case_of_sixteen(self) -> None:
        machine = waiting()
        for number in range(20):
            edited(machine, f"Zhang {number}")
            looked(machine)
        assert len(machine.state.repair.cases) == 21
        for _ in range(MOST_CASES - 1):
            fails_again(machine)
        assert len(machine.state.repair.cases) == 21 + MOST_CASES - 1
        fails_again(machine)
        assert len(machine.state.repair.cases) == 21 + MOST_CASES - 1

    def test_the_last_failure_of_sixteen_is_looked_at_anew_as_well(self) -> None:
        machine = given_up()
        for _ in range(MOST_CASES - 1):
            fails_again(machine)
        looked(machine)
        edited(machine, "Zhang")
        assert the_case(machine, f"case_{MOST_CASES + 1}").busy

    def test_beyond_the_most_looks_a_stale_proposal_only_goes(self) -> None:
        machine = waiting()
        for number in range(MOST_LOOKS - 1):
            edited(machine, f"Zhang {number}")
            looked(machine)
        assert (len(machine.state.repair.cases), len(asked(machine))) == (MOST_LOOKS, 1)
        edited(machine, "Will")
        assert (asked(machine), machine.diagnoses) == ([], [])
        assert len(machine.state.repair.cases) == MOST_LOOKS
        assert machine.state.status == "error"
        with pytest.raises(NotAllowed, match="this run has had 64 cases"):
            own(machine)
        machine.reload()
        machine.submit(c.Resume(WILL))
        assert machine.settle().status == "done"

    def test_requests_are_counted_over_all_looks(self) -> None:
        machine = given_up()
        for number in range(4):
            thinking_of(machine, f"case_{number + 1}")
            edited(machine, f"Zhang {number}")
        assert machine.state.repair.requests == 4
        assert the_case(machine, "case_5").busy


def thinking_of(machine: Machine, case_id: str) -> None:
    """A model is asked once, and what it answers is proposed."""
    machine.diagnose(Look(GUESS, found(machine), thinks=True))
    assert machine.diagnoses[-1].case_id == case_id
    machine.diagnose(Thought(proposal=found(machine)))


class TestWhatComesBack:
    def test_the_rules_proposal_where_a_persons_own_is_refused(self) -> None:
        machine = waiting()
        own(machine)
        assert proposed_now(machine) == f"of {EVE}"
        answer(machine, "refuse", feedback="not so")
        assert proposed_now(machine) == "k1"
        answer(machine)
        assert machine.settle().status == "done"
        (patched,) = events(machine, e.PlanPatched)
        assert patched.operations == (RENAME,)

    def test_it_comes_back_after_a_restart_too(self) -> None:
        machine = waiting()
        own(machine)
        machine.crash()
        answer(machine, "refuse", feedback="not so")
        machine.crash()
        assert proposed_now(machine) == "k1"

    def test_a_persons_proposal_has_the_evidence_that_was_found_before(self) -> None:
        machine = waiting()
        own(machine)
        told = the_case(machine, "case_2").diagnosis
        assert told == Diagnosis(Cause.PRECONDITION, "It might help.", SEEN, source="person")

    def test_without_one_before_there_is_neither(self) -> None:
        machine = given_up(Look(GUESS))
        machine.submit(c.ProposePatch(found(machine, by=EVE), EVE, "L002"))
        case = the_case(machine, "case_2")
        assert case.diagnosis is not None
        assert (case.diagnosis.evidence, case.kept) == ((), None)
        answer(machine, "refuse", feedback="not so")
        assert asked(machine) == []

    def test_nothing_comes_back_that_does_not_fit_any_more(self) -> None:
        machine = waiting()
        own(machine)
        edited(machine, "Zhang")
        answer(machine, "refuse", feedback="not so")
        assert asked(machine) == []

    def test_what_came_back_and_is_refused_as_well_comes_no_more(self) -> None:
        machine = waiting()
        own(machine)
        for _ in range(2):
            answer(machine, "refuse", feedback="not so")
        assert (asked(machine), machine.diagnoses) == ([], [])
        assert machine.state.status == "error"

    def test_of_two_people_the_first_ones_comes_back(self) -> None:
        machine = waiting()
        own(machine, BEFORE)
        own(machine, OTHERWISE, by=WILL)
        answer(machine, "refuse", feedback="not so")
        assert proposed_now(machine) == f"of {EVE}"

    def test_another_failure_has_nothing_of_it(self) -> None:
        machine = waiting()
        own(machine)
        fails_again(machine)
        assert the_case(machine, "case_3").kept is None


class TestRefused:
    def refused(self) -> Machine:
        machine = waiting()
        answer(machine, "refuse", feedback="never")
        fails_again(machine)
        assert the_case(machine, "case_2").busy
        return machine

    def test_in_no_case_of_the_run_is_it_proposed_again(self) -> None:
        machine = self.refused()
        looked(machine)
        assert asked(machine) == []
        assert the_case(machine, "case_2").status is CaseStatus.OPEN

    def test_nor_by_a_model_nor_as_what_stands_beside_it(self) -> None:
        machine = self.refused()
        asking = machine.diagnoses.pop(0)
        again = found(machine)
        told = Look(GUESS, again, thinks=True)
        machine.submit(c.ReportDiagnosis(asking.case_id, 0, told))
        told_again = Thought(proposal=again)
        machine.submit(c.ReportDiagnosis(asking.case_id, 1, told_again))
        assert asked(machine) == []

    def test_what_was_not_refused_is(self) -> None:
        machine = self.refused()
        looked(machine, OTHERWISE)
        assert len(asked(machine)) == 1

    def test_a_person_may_propose_it_again(self) -> None:
        machine = self.refused()
        own(machine, RENAME)
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_a_restart_forgets_none(self) -> None:
        machine = self.refused()
        machine.crash()
        looked(machine)
        assert asked(machine) == []


class TestFork:
    def forked(self, machine: Machine, called: tuple[str, ...] = ()) -> Machine:
        """It goes on from where L001 is done, and fails alike."""
        (done,) = (
            number
            for number, one in enumerate(machine.records, 1)
            if one.type.startswith("ListenerSucceeded")
        )
        origin = origin_of(machine, done)
        fork = fork_of(origin, refused=refused_in(machine.state), called=called)
        made = Machine(origin.state.plan, run_id=FORK, now=machine.now + 60)
        made.submit(c.StartFork(fork, WILL))
        made.start_ready()
        made.settle_with(PERMANENT)
        return made

    def origin(self) -> Machine:
        machine = started(*PLAN)
        succeed(machine)
        machine.settle_with(PERMANENT)
        looked(machine)
        answer(machine, "refuse", feedback="never")
        return machine

    def test_what_was_refused_in_its_origin_is_refused_in_it(self) -> None:
        machine = self.forked(self.origin())
        assert machine.state.forked is not None
        assert machine.state.forked.refused == (operations_digest((RENAME,)),)
        looked(machine)
        assert asked(machine) == []
        machine.crash()
        assert refused_in(machine.state) == {operations_digest((RENAME,))}

    def test_and_in_a_fork_of_the_fork(self) -> None:
        fork = self.forked(self.origin(), ("elsewhere",))
        looked(fork, OTHERWISE)
        answer(fork, "refuse", feedback="nor this")
        assert refused_in(fork.state) == {
            operations_digest((RENAME,)),
            operations_digest((OTHERWISE,)),
        }

    def test_a_person_may_propose_it_there(self) -> None:
        machine = self.forked(self.origin())
        own(machine, RENAME)
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_what_the_origins_tree_has_called_is_known_after_a_restart(self) -> None:
        machine = self.forked(self.origin(), ("guarded", "plain"))
        machine.crash()
        assert machine.state.forked is not None
        assert machine.state.forked.called == ("guarded", "plain")

    def test_a_fork_of_before_knows_neither(self) -> None:
        machine = self.forked(given_up())
        assert machine.state.forked is not None
        assert (machine.state.forked.refused, machine.state.forked.called) == ((), ())
        assert b"refused" not in bytes(str(machine.records[0].payload), "utf-8")
