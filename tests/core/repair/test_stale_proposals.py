"""A proposal counts for what was seen: where a tool that it would have been the first to call has
been called since, or a value that it reads has changed, consent is refused and it is judged anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from case_stories import EVE, GUESS, answer, asked, proposal, the_case
from machine import Machine
from small_plans import (
    CALLING_CODE,
    CODE,
    GUARDED,
    KEYED,
    PERMANENT,
    WILL,
    events,
    on,
    only,
    started,
)

from holdfast.core.plan.fitting import values_at, why_stale
from holdfast.core.plan.state import PlanState
from holdfast.errors import NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import Action, TaskStatus
from holdfast.model.repair import CaseStatus, Level, Look, Proposal
from holdfast.model.retry import GiveUp
from holdfast.model.values import JsonObject

NAME = "001.context.name"


BRANCHES = (
    on("L000", "001 Running", GUARDED, "003"),
    on("L001", "001 Running", KEYED, "002"),
    on("L002", "002 Done", CODE, "001"),
)


def before(listener_id: str, tool: str) -> JsonObject:
    listener = {"listener_id": "R1", "listener_type": "tool", "tool": tool}
    task = {"task_id": "R1", "name": "Prepared"}
    return {"op": "insert_before", "listener_id": listener_id, "task": task, "listener": listener}


def work_of(machine: Machine, listener_id: str) -> Any:
    return next(one for one in machine.flying.values() if one.work.step_id == listener_id)


def reading(state: PlanState, *paths: str) -> dict[str, Any]:
    """What a judge notes of the values that a patch reads."""
    return {"reads": paths, "values": values_at(state, paths)}


def beside(action: Action = GUARDED, **more: Any) -> Machine:
    """L001 has failed, while L000 has yet to do its work."""
    machine = started(on("L000", "001 Running", action, "003", **more), *BRANCHES[1:])
    machine.report(work_of(machine, "L001"), PERMANENT)
    return machine


def told(machine: Machine, tool: str = "guarded", **judged: Any) -> Proposal:
    """The planner gives up, and calling `tool` before L001 is proposed; the question is open."""
    given = {"fresh": (tool,), "level": Level.ACT, **judged}
    made = proposal(machine.state, before("L001", tool), **given)
    asking = machine.consultations.pop(0)
    look = Look(GUESS, made)
    machine.submit(c.Advise(asking.listener_id, asking.firing, GiveUp(), look))
    assert len(asked(machine)) == 1
    return made


def approved(machine: Machine) -> None:
    """A person lets L000 make its call."""
    questions = machine.state.questions
    (question,) = (one for one in questions if questions[one].purpose == "approval")
    machine.submit(c.Answer(question, WILL, "approve"))
    machine.start_ready()


def refused(machine: Machine, match: str, **more: Any) -> None:
    """Consent is refused, and the failure looked at anew; the plan is what it was."""
    before = machine.state
    with pytest.raises(NotAllowed, match=match):
        answer(machine, **more)
    assert machine.state == before
    machine.submit(c.ReviewProposal("case_1", {}, more.get("elsewhere", frozenset())))
    assert asked(machine) == []
    assert events(machine, e.PlanPatched) == []
    assert the_case(machine).status is CaseStatus.CLOSED
    assert the_case(machine, "case_2").busy
    assert [one.case_id for one in machine.diagnoses] == ["case_2"]


class TestCalledInThisRun:
    """A person proposes something about work that is yet to come, and the run goes on."""

    def going_on(self, **judged: Any) -> Machine:
        """L001 works, and L000 waits for consent to its call; before L002 comes another one."""
        machine = started(*BRANCHES)
        given = {"fresh": ("guarded",), "level": Level.ACT, **judged}
        made = proposal(machine.state, before("L002", "guarded"), **given)
        machine.submit(c.ProposePatch(made, EVE))
        return machine

    def under_way(self, **judged: Any) -> Machine:
        machine = self.going_on(**judged)
        approved(machine)
        return machine

    def done(self) -> Machine:
        machine = self.under_way()
        machine.report(work_of(machine, "L000"), c.Succeeded({"x": 1}, ()))
        return machine

    def unknown(self) -> Machine:
        machine = self.under_way()
        machine.report(work_of(machine, "L000"), c.Lost("the line went dead"))
        return machine

    @pytest.mark.parametrize("how", [under_way, done, unknown])
    def test_a_call_that_has_begun_since_is_not_made_once_more(
        self, how: Callable[[TestCalledInThisRun], Machine]
    ) -> None:
        machine = how(self)
        before = machine.state
        told = "guarded was called since the repair was proposed: nothing was changed"
        with pytest.raises(NotAllowed, match=told):
            answer(machine)
        assert machine.state == before
        machine.submit(c.ReviewProposal("case_1", {}))
        assert (asked(machine), the_case(machine).status) == ([], CaseStatus.CLOSED)
        assert machine.diagnoses == [], "nothing has failed that could be looked at anew"
        assert events(machine, e.PlanPatched) == []

    def test_one_that_came_to_nothing_has_had_no_effect(self) -> None:
        machine = self.under_way()
        machine.report(work_of(machine, "L000"), PERMANENT)
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_nor_has_one_that_a_person_has_yet_to_allow(self) -> None:
        machine = self.going_on()
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_what_had_been_called_by_then_was_seen(self) -> None:
        """The judge warned of it, so that it is none of those that nothing had called."""
        machine = self.under_way(fresh=())
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_what_was_judged_before_and_is_proposed_after_the_call_is_not_asked_about(self) -> None:
        machine = started(*BRANCHES)
        judged = proposal(machine.state, before("L002", "guarded"), fresh=("guarded",))
        approved(machine)
        with pytest.raises(NotAllowed, match="guarded was called since"):
            machine.submit(c.ProposePatch(judged, EVE))
        assert not machine.state.repair.cases

    def test_the_same_holds_for_what_the_rules_had_found_when_the_planner_gave_up(self) -> None:
        machine = started(*BRANCHES)
        machine.report(work_of(machine, "L001"), PERMANENT)
        judged = proposal(machine.state, before("L001", "guarded"), fresh=("guarded",))
        approved(machine)
        asking = machine.consultations.pop(0)
        look = Look(GUESS, judged)
        machine.submit(c.Advise(asking.listener_id, asking.firing, GiveUp(), look))
        assert (asked(machine), the_case(machine).status) == ([], CaseStatus.OPEN)

    def test_a_call_of_a_snippet_counts_as_soon_as_it_is_made(self) -> None:
        machine = beside(CALLING_CODE)
        told(machine, "plain")
        machine.report(only(machine), c.CallWanted(0, "plain", {"n": 1}, False))
        refused(machine, "plain was called since")

    def test_a_snippet_that_has_ended_may_have_called_whatever_it_names(self) -> None:
        machine = beside(CALLING_CODE)
        told(machine, "plain")
        machine.report(only(machine), machine.outcome(only(machine), {"x": 1}))
        refused(machine, "plain was called since")


class TestCalledElsewhere:
    def test_a_call_of_another_run_is_not_made_once_more(self) -> None:
        machine = beside()
        told(machine)
        refused(machine, "guarded was called since", elsewhere=frozenset({"guarded", "keyed"}))

    def test_what_else_is_called_there_does_not_matter(self) -> None:
        machine = beside()
        told(machine)
        answer(machine, elsewhere=frozenset({"keyed"}))
        assert len(events(machine, e.PlanPatched)) == 1

    def test_a_review_finds_it_by_itself(self) -> None:
        machine = beside()
        told(machine)
        assert not machine.submit(c.ReviewProposal("case_1", {}, frozenset({"keyed"}))).events
        machine.submit(c.ReviewProposal("case_1", {}, frozenset({"guarded"})))
        assert (the_case(machine).status, asked(machine)) == (CaseStatus.CLOSED, [])

    def test_whoever_refuses_it_is_not_told_that_it_is_stale(self) -> None:
        machine = beside()
        told(machine)
        answer(machine, "refuse", feedback="never", elsewhere=frozenset({"guarded"}))
        assert len(events(machine, e.PatchRefused)) == 1


class TestValues:
    def named(self, name: str = "Zhang", action: Action = GUARDED, **more: Any) -> Machine:
        machine = beside(action, **more)
        machine.submit(c.EditContext("001", {"name": name}, WILL))
        return machine

    def test_what_is_proposed_with_a_value_goes_with_it(self) -> None:
        machine = self.named()
        told(machine, **reading(machine.state, NAME))
        machine.submit(c.EditContext("001", {"name": "Mallory"}, EVE))
        assert asked(machine) == []
        assert "a value that the repair reads has changed" in the_case(machine).reason
        assert the_case(machine, "case_2").busy

    def test_so_does_what_is_told_of_work_that_a_person_did_by_hand(self) -> None:
        machine = self.named()
        told(machine, **reading(machine.state, NAME))
        machine.submit(c.MarkDone("001", EVE, {"name": "Mallory"}))
        assert asked(machine) == []

    @pytest.mark.parametrize("edit", [{"name": "Zhang"}, {"other": "Mallory"}])
    def test_an_edit_of_what_it_does_not_read_leaves_it_open(self, edit: JsonObject) -> None:
        machine = self.named()
        told(machine, **reading(machine.state, NAME))
        machine.submit(c.EditContext("001", edit, EVE))
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_so_does_one_beside_a_proposal_that_reads_nothing(self) -> None:
        machine = self.named()
        told(machine)
        machine.submit(c.EditContext("001", {"name": "Mallory"}, EVE))
        assert len(asked(machine)) == 1

    def test_a_value_that_stands_there_for_the_first_time_has_changed_as_well(self) -> None:
        """By the plan's own course, of which nobody hears at once."""
        machine = beside(CODE, context={"x": "{{result.x}}"})
        told(machine, **reading(machine.state, "003.context.x"))
        machine.report(only(machine), machine.outcome(only(machine), {"x": 1}))
        refused(machine, "a value that the repair reads has changed since it was proposed")

    def test_so_has_a_status_that_it_reads(self) -> None:
        machine = beside(CODE)
        told(machine, **reading(machine.state, "003.status"))
        machine.report(only(machine), machine.outcome(only(machine), {"x": 1}))
        refused(machine, "a value that the repair reads has changed since it was proposed")

    def test_a_value_that_is_back_is_the_one_that_was_seen(self) -> None:
        machine = self.named()
        seen = reading(machine.state, NAME)
        machine.submit(c.EditContext("001", {"name": "Mallory"}, EVE))
        machine.submit(c.EditContext("001", {"name": "Zhang"}, EVE))
        told(machine, **seen)
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1

    def test_nothing_and_null_are_not_the_same(self) -> None:
        machine = self.named()
        seen = reading(machine.state, "001.context.gone")
        machine.submit(c.EditContext("001", {"gone": None}, EVE))
        made = proposal(machine.state, before("L001", "guarded"), **seen)
        assert "has changed" in (why_stale(machine.state, made) or "")

    def test_all_reasons_are_told_at_once(self) -> None:
        machine = self.named()
        seen = reading(machine.state, NAME)
        made = proposal(machine.state, before("L001", "guarded"), fresh=("guarded",), **seen)
        machine.submit(c.EditContext("001", {"name": "Mallory"}, EVE))
        why = why_stale(machine.state, made, frozenset({"guarded"})) or ""
        assert why.startswith("guarded was called since the repair was proposed; a value that")

    def test_a_task_that_is_done_says_so(self) -> None:
        machine = self.named()
        told(machine, **reading(machine.state, "003.status"))
        machine.submit(c.MarkDone("003", WILL))
        assert machine.state.task("003").status is TaskStatus.DONE
        assert asked(machine) == []
        assert "a value that the repair reads" in the_case(machine).reason


class TestLookingAnew:
    """It takes a person each time: by itself nothing is proposed over and over."""

    def stale(self) -> Machine:
        """The snippet beside it has called `plain`."""
        machine = beside(CALLING_CODE)
        told(machine, "plain")
        machine.report(only(machine), c.CallWanted(0, "plain", {"n": 1}, False))
        machine.submit(c.ReviewProposal("case_1", {}))
        return machine

    def test_a_look_that_says_the_same_as_before_asks_nothing_and_goes_no_further(self) -> None:
        machine = self.stale()
        same = the_case(machine).proposal
        machine.diagnose(Look(GUESS, same))
        assert (asked(machine), machine.diagnoses) == ([], [])
        case = the_case(machine, "case_2")
        assert (case.status, case.busy) == (CaseStatus.OPEN, False)
        machine.crash()
        assert machine.diagnoses == []

    def test_one_that_is_judged_by_what_there_is_now_is_asked_about(self) -> None:
        machine = self.stale()
        anew = proposal(machine.state, before("L001", "plain"), level=Level.ACT)
        machine.diagnose(Look(GUESS, anew))
        answer(machine)
        assert len(events(machine, e.PlanPatched)) == 1
        assert the_case(machine, "case_2").status is CaseStatus.APPLIED

    def test_it_survives_a_restart_at_each_step(self) -> None:
        machine = beside()
        told(machine, **reading(machine.state, NAME))
        machine.crash()
        with pytest.raises(NotAllowed, match="guarded was called since"):
            answer(machine, elsewhere=frozenset({"guarded"}))
        machine.crash()
        machine.submit(c.ReviewProposal("case_1", {}, frozenset({"guarded"})))
        machine.crash()
        assert [one.case_id for one in machine.diagnoses] == ["case_2"]

    def test_reviewing_what_is_not_proposed_any_more_changes_nothing(self) -> None:
        machine = self.stale()
        for case_id in ("case_1", "case_2", "case_404"):
            review = c.ReviewProposal(case_id, {}, frozenset({"plain"}))
            assert not machine.submit(review).events


def test_a_journal_of_before_has_proposals_that_say_nothing_of_it() -> None:
    """They are answered as they were."""
    machine = beside()
    made = told(machine, fresh=())
    (record,) = (one for one in machine.records if one.type.startswith("PatchProposed"))
    verdict = json.loads(record.payload)["proposal"]["verdict"]
    assert not {"fresh", "reads", "values", "repeats"} & verdict.keys()
    assert (made.verdict.fresh, made.verdict.reads, made.verdict.values) == ((), (), "")
    answer(machine, elsewhere=frozenset({"guarded"}))
    assert len(events(machine, e.PlanPatched)) == 1
