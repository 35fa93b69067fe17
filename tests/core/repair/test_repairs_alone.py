"""What is repaired without a person: nothing that was refused, and where several runs belong
together, nothing that calls what none of them has called."""

from __future__ import annotations

import pytest
from case_stories import (
    BEFORE,
    EVE,
    GUESS,
    RENAME,
    answer,
    asked,
    machine_updates,
    proposal,
    the_case,
)
from machine import Machine
from small_plans import (
    CALL,
    CHILD,
    CODE,
    KEYED,
    PERMANENT,
    WILL,
    compiled,
    events,
    on,
    only,
    started,
    succeed,
)

from holdfast.core.plan.fitting import brings_calls
from holdfast.core.plan.spent import is_alone
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import ToolAction
from holdfast.model.repair import CaseStatus, Mend
from holdfast.model.retry import GiveUp
from holdfast.model.run import Parent
from holdfast.model.values import JsonObject

PLAN = (
    on("L001", "001 Running", CODE, "002"),
    on("L002", "002 Done", ToolAction("plain", {"old": "x"}), "003"),
    on("L003", "003 Done", KEYED, "001"),
)
OTHER_TOOL: JsonObject = {"op": "use_tool", "listener_id": "L002", "tool": "keyed", "args": {}}
NUMBERED: JsonObject = {"op": "set_args", "listener_id": "L002"}
ADDED: JsonObject = {
    "op": "add",
    "tasks": [{"task_id": "R1"}],
    "listeners": [
        {
            "listener_id": "R1",
            "trigger_task_id": "001",
            "trigger_condition": "001.status == Running",
            "listener_type": "tool",
            "tool": "plain",
            "success_output": {"task_id": "R1", "status": "Done"},
        }
    ],
}


def failed(machine: Machine) -> Machine:
    """L002 has failed, and the planner is asked."""
    machine.report(only(machine), c.Succeeded({"x": 1}, machine_updates(machine)))
    machine.start_ready()
    machine.report(only(machine), PERMANENT)
    return machine


def by_itself() -> Machine:
    return failed(started(*PLAN))


def beside_a_child() -> Machine:
    return failed(started(*PLAN, on("L900", "001 Running", CHILD, "900")))


def of_a_parent() -> Machine:
    machine = Machine(compiled(*PLAN), run_id="inst_000001.P1.1")
    parent = Parent("inst_000001", "P1", 1)
    machine.submit(c.StartRun("small", "go", root_id="inst_000001", parent=parent, by=WILL))
    machine.start_ready()
    return failed(machine)


def mended(machine: Machine, *operations: JsonObject, **judged: object) -> Machine:
    """The author's policy covers the repair."""
    made = proposal(machine.state, *operations, **judged)  # type: ignore[arg-type]
    asking = machine.consultations.pop(0)
    machine.submit(c.Advise(asking.listener_id, asking.firing, Mend(GUESS, made)))
    return machine


def applied(machine: Machine) -> int:
    return len(events(machine, e.PlanPatched))


class TestATreeOfRuns:
    @pytest.mark.parametrize("made", [beside_a_child, of_a_parent])
    @pytest.mark.parametrize("operation", [BEFORE, OTHER_TOOL, ADDED])
    def test_a_new_call_waits_for_a_person_in_it(self, made: object, operation: JsonObject) -> None:
        machine = made()  # type: ignore[operator]
        assert not is_alone(machine.state)
        mended(machine, operation, fresh=("plain",))
        assert (applied(machine), len(asked(machine))) == (0, 1)
        answer(machine)
        assert applied(machine) == 1

    @pytest.mark.parametrize("made", [beside_a_child, of_a_parent])
    def test_the_plans_own_call_with_other_arguments_does_not(self, made: object) -> None:
        machine = mended(made(), RENAME, fresh=("plain",))  # type: ignore[operator]
        assert (applied(machine), asked(machine)) == (1, [])

    def test_nor_does_one_that_may_be_made_twice(self) -> None:
        machine = mended(beside_a_child(), BEFORE)
        assert (applied(machine), asked(machine)) == (1, [])

    def test_a_run_by_itself_needs_nobody(self) -> None:
        machine = by_itself()
        assert is_alone(machine.state)
        mended(machine, BEFORE, fresh=("plain",))
        assert (applied(machine), asked(machine)) == (1, [])

    def test_a_run_whose_child_was_begun_anew_is_not_by_itself(self) -> None:
        """Which of the steps that have come to life anew had a child, nobody asks them."""
        machine = started(
            on("L001", "001 Running", CALL, "002"),
            on("L002", "002 Done", CHILD, "003"),
            on("L003", "003 Done", CALL, "001"),
        )
        succeed(machine)
        (child_id,) = machine.children
        machine.hear(child_id, "done", {"x": 1})
        machine.submit(c.RerunFrom("L002", WILL))
        assert machine.state.steps["L002"].child_id is None
        assert not is_alone(machine.state)


@pytest.mark.parametrize(
    ("operation", "fresh", "brings"),
    [
        (BEFORE, ("plain",), True),
        (ADDED, ("plain",), True),
        (OTHER_TOOL, ("keyed",), True),
        (BEFORE, (), False),
        (OTHER_TOOL, (), False),
        (RENAME, ("plain",), False),
    ],
)
def test_a_repair_brings_calls_where_the_plan_had_none_like_them(
    operation: JsonObject, fresh: tuple[str, ...], brings: bool
) -> None:
    assert brings_calls(proposal(by_itself().state, operation, fresh=fresh)) is brings


def test_what_was_called_while_it_was_judged_is_not_called_once_more() -> None:
    """L000 has called `keyed` by the time of the planner's advice: a person decides."""
    machine = started(
        on("L000", "001 Running", CODE, "004"),
        on("L004", "004 Done", KEYED, "005"),
        on("L001", "001 Running", ToolAction("plain", {"old": "x"}), "001"),
    )
    works = {one.work.step_id: one for one in machine.flying.values()}
    machine.report(works["L001"], PERMANENT)
    first = {**BEFORE, "listener_id": "L001", "listener": {**BEFORE["listener"], "tool": "keyed"}}
    made = proposal(machine.state, first, fresh=("keyed",))
    machine.report(works["L000"], machine.outcome(works["L000"], {"x": 1}))
    machine.start_ready()
    asking = machine.consultations.pop(0)
    machine.submit(c.Advise(asking.listener_id, asking.firing, Mend(GUESS, made)))
    assert (applied(machine), asked(machine)) == (0, [])
    assert the_case(machine).status is CaseStatus.OPEN


class TestRefused:
    def once(self, *operations: JsonObject) -> Machine:
        """A person has refused it, and resumed the run, which fails alike."""
        machine = by_itself()
        asking = machine.consultations.pop(0)
        made = proposal(machine.state, *operations)
        machine.submit(c.ProposePatch(made, EVE, ""))
        answer(machine, "refuse", feedback="never")
        machine.submit(c.Advise(asking.listener_id, asking.firing, GiveUp("no")))
        machine.submit(c.Resume(WILL))
        machine.start_ready()
        machine.report(only(machine), PERMANENT)
        return machine

    def test_no_policy_makes_it_by_itself_in_any_case_of_the_run(self) -> None:
        machine = mended(self.once(RENAME), RENAME)
        assert (applied(machine), asked(machine)) == (0, [])
        assert machine.state.status == "error"

    def test_another_repair_is_made(self) -> None:
        machine = mended(self.once(RENAME), BEFORE)
        assert applied(machine) == 1

    def test_what_did_not_help_counts_as_refused(self) -> None:
        one, other = ({**NUMBERED, "set": {"n": number}} for number in (1, 2))
        machine = by_itself()
        for number, operation in enumerate((one, other, one)):
            mended(machine, operation, patch_id=f"k{number}")
            if machine.start_ready():
                machine.report(only(machine), PERMANENT)
        assert (applied(machine), asked(machine)) == (2, [])
        assert machine.state.status == "error"
