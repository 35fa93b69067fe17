"""What has been called: while it works, when it is done, in doubt, and also what a repair has
brought in and has yet to be called."""

from __future__ import annotations

import random

from case_stories import BEFORE, EVE, GUESS, PLAN, answer, given_up, proposal
from machine import Machine
from small_plans import (
    CALLING_CODE,
    CODE,
    KEYED,
    PERMANENT,
    WILL,
    events,
    on,
    only,
    started,
    succeed,
)
from test_machine_properties import play

from holdfast.core.plan.spent import called_by_now, spent_calls
from holdfast.core.run.tables import StepStatus
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.repair import Look
from holdfast.model.values import JsonObject

TOOLS = ("plain", "keyed", "guarded", "picky", "disabled", "absent")


def test_asked_for_one_tool_or_for_all_it_says_the_same() -> None:
    """In runs of every kind, repaired ones among them; the first costs what that tool's listeners
    cost."""
    found = repaired = 0
    for seed in range(200):
        state = play(random.Random(seed).randbytes(320)).state
        spent = set(spent_calls(state))
        assert called_by_now(state, TOOLS) == spent & set(TOOLS), seed
        for tool in TOOLS:
            assert called_by_now(state, (tool,)) == spent & {tool}, (seed, tool)
        found += bool(spent)
        repaired += state.origin is not None
    assert found > 60
    assert repaired > 10


def test_of_no_tool_nothing_is_asked() -> None:
    assert called_by_now(given_up().state, ()) == frozenset()


class TestBroughtIn:
    def repaired(self) -> Machine:
        """Before L003, which nothing has reached, comes a call that nothing has made."""
        machine = started(*PLAN)
        listener: JsonObject = {"listener_id": "R1", "listener_type": "tool", "tool": "guarded"}
        first: JsonObject = {**BEFORE, "listener_id": "L003", "listener": listener}
        machine.submit(c.ProposePatch(proposal(machine.state, first), EVE))
        answer(machine)
        return machine

    def test_it_counts_before_it_has_fired(self) -> None:
        machine = self.repaired()
        assert spent_calls(machine.state)["guarded"] == ("R1",)
        assert called_by_now(machine.state, ("guarded",)) == {"guarded"}
        machine.reload()
        assert called_by_now(machine.state, ("guarded",)) == {"guarded"}

    def test_it_counts_while_it_is_ready_and_until_it_has_come_to_nothing(self) -> None:
        machine = self.repaired()
        while "R1" not in machine.state.steps:
            succeed(machine)
        (question,) = machine.state.open_questions
        assert called_by_now(machine.state, ("guarded",)) == {"guarded"}
        machine.submit(c.Answer(question, WILL, "approve"))
        assert called_by_now(machine.state, ("guarded",)) == {"guarded"}
        machine.start_ready()
        assert called_by_now(machine.state, ("guarded",)) == {"guarded"}
        machine.report(only(machine), PERMANENT)
        assert called_by_now(machine.state, ("guarded",)) == frozenset()

    def test_the_second_repair_is_told_of_the_first(self) -> None:
        machine = self.repaired()
        other: JsonObject = {
            **BEFORE,
            "task": {"task_id": "R2"},
            "listener": {"listener_id": "R2", "listener_type": "tool", "tool": "guarded"},
        }
        made = proposal(machine.state, other, fresh=("guarded",))
        refused = machine.tries(c.ProposePatch(made, EVE))
        assert "guarded was called since the repair was proposed" in str(refused)

    def test_so_does_another_tool_of_a_listener_that_was_there(self) -> None:
        """L002 has failed, and is to call another tool; it has yet to start."""
        machine = given_up(Look(GUESS))
        other: JsonObject = {"op": "use_tool", "listener_id": "L002", "tool": "keyed", "args": {}}
        machine.submit(c.ProposePatch(proposal(machine.state, other), EVE, "L002"))
        answer(machine)
        assert machine.state.steps["L002"].status is StepStatus.READY
        assert called_by_now(machine.state, ("keyed",)) == {"keyed"}
        machine.start_ready()
        machine.report(only(machine), PERMANENT)
        assert called_by_now(machine.state, ("keyed",)) == frozenset()

    def test_one_that_was_brought_in_and_skipped_does_not(self) -> None:
        machine = self.repaired()
        skip: JsonObject = {"op": "skip", "listener_id": "R1"}
        machine.submit(c.ProposePatch(proposal(machine.state, skip, patch_id="k2"), EVE))
        answer(machine)
        assert called_by_now(machine.state, ("guarded",)) == frozenset()

    def test_what_calls_nothing_does_not_count(self) -> None:
        machine = started(*PLAN)
        ask: JsonObject = {"op": "ask_first", "listener_id": "L003", "fields": [{"name": "n"}]}
        machine.submit(c.ProposePatch(proposal(machine.state, ask), EVE))
        answer(machine)
        assert dict(spent_calls(machine.state)) == {"plain": ("L001",)}


class TestSnippets:
    def done(self) -> Machine:
        machine = started(
            on("L000", "001 Running", CODE, "002"),
            on("L001", "002 Done", CALLING_CODE, "003"),
            on("L002", "003 Done", KEYED, "001"),
        )
        succeed(machine)
        succeed(machine)
        return machine

    def test_one_that_has_ended_may_have_called_whatever_it_names(self) -> None:
        assert called_by_now(self.done().state, ("plain",)) == {"plain"}

    def test_what_it_called_is_not_forgotten_when_a_person_runs_it_again(self) -> None:
        machine = self.done()
        machine.report(only(machine), PERMANENT)
        machine.consult(0)
        machine.submit(c.RerunFrom("L001", WILL))
        machine.start_ready()
        machine.report(only(machine), PERMANENT)
        assert machine.state.steps["L001"].firing == 2
        assert called_by_now(machine.state, ("plain", "guarded")) == {"plain"}

    def test_nor_while_it_has_yet_to_run_again(self) -> None:
        machine = self.done()
        machine.report(only(machine), PERMANENT)
        machine.consult(0)
        machine.submit(c.RerunFrom("L000", WILL))
        assert called_by_now(machine.state, ("plain",)) == {"plain"}


def test_a_repair_that_was_refused_has_brought_in_nothing() -> None:
    machine = given_up(Look(GUESS))
    listener: JsonObject = {"listener_id": "R1", "listener_type": "tool", "tool": "guarded"}
    made = proposal(machine.state, {**BEFORE, "listener": listener}, fresh=("guarded",))
    machine.submit(c.ProposePatch(made, EVE, "L002"))
    answer(machine, "refuse", feedback="no")
    assert events(machine, e.PlanPatched) == []
    assert called_by_now(machine.state, ("guarded",)) == frozenset()
