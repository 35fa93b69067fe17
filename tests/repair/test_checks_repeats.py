"""Calls that would have an effect once more are shown, and always need an approver."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine import Machine
from patch_cases import (
    LISTENERS,
    TOOLS,
    begun,
    failed,
    inserted,
    set_args,
    succeed,
    verdict_on,
    work_of,
)
from small_plans import PERMANENT, on

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.spent import spent_calls
from holdfast.core.plan.state import PlanState
from holdfast.core.storing import plan_digest
from holdfast.model import commands as c
from holdfast.model.plan import CodeAction, Listener, Output, TaskStatus, ToolAction
from holdfast.model.repair import Level
from holdfast.model.retry import Failure, FailureKind

NAME = "{001.context.name}"
RENAMED = set_args(computer_model="{001.context.model}", drop=("model",))
CALLING = CodeAction("result = order(employee='x')", ("order", "send_email"))


def beside(action: ToolAction | CodeAction, **more: object) -> Listener:
    return on("L0", "001 Running", action, "000", **more)


ORDER = ToolAction("order", {"employee": NAME})


def run_with(*listeners: Listener) -> Machine:
    return begun(*listeners, *LISTENERS)


def repeated(state: PlanState, **more: object) -> tuple[str, ...]:
    """The warnings about repeats, where the arguments of L2 are renamed."""
    verdict = verdict_on(state, RENAMED, **more)  # type: ignore[arg-type]
    assert (verdict.level is Level.ACT) is bool(verdict.warnings)
    return verdict.warnings


BY_L0 = ("L2 would call order again: by L0 it has taken effect, or may have",)


def test_what_has_not_been_called_repeats_nothing() -> None:
    assert repeated(failed()) == ()


def test_a_tool_that_has_succeeded_elsewhere_in_the_run_does() -> None:
    machine = run_with(beside(ORDER))
    succeed(machine, "L0", {"order_id": "O-1"})
    assert repeated(failed(machine)) == BY_L0


def test_so_does_one_that_is_under_way() -> None:
    assert repeated(failed(run_with(beside(ORDER)))) == BY_L0


def test_so_does_one_of_which_nobody_knows_what_became() -> None:
    machine = run_with(beside(ORDER))
    machine.report(work_of(machine, "L0"), c.Lost("the line went dead"))
    state = failed(machine)
    assert [one.purpose for one in state.questions.values()] == ["unknown"]
    assert repeated(state) == BY_L0


def test_once_a_person_knows_that_it_did_not_happen_it_does_not() -> None:
    machine = run_with(beside(ORDER))
    machine.report(work_of(machine, "L0"), c.Lost("the line went dead"))
    (question,) = machine.state.open_questions
    machine.submit(c.Answer(question, "will", "run_again"))
    machine.start_ready()
    machine.report(work_of(machine, "L0"), PERMANENT)
    machine.consult(0)
    assert "order" not in spent_calls(machine.state)


def test_an_idempotent_tool_may_be_called_again() -> None:
    again = {**TOOLS, "order": replace(TOOLS["order"], idempotent=True)}
    machine = run_with(beside(ORDER))
    succeed(machine, "L0", {"order_id": "O-1"})
    assert repeated(failed(machine), tools=again) == ()


def test_so_may_one_that_only_looks() -> None:
    machine = begun()
    look = inserted("query_profile", args={"name": NAME})
    assert verdict_on(failed(machine), look).warnings == ()


def test_a_call_that_failed_has_not_taken_effect() -> None:
    machine = run_with(beside(ORDER))
    machine.report(work_of(machine, "L0"), PERMANENT)
    assert repeated(failed(machine)) == ()


def test_a_failure_that_the_plan_has_a_branch_for_is_one() -> None:
    branch = Output("000", TaskStatus.DONE)
    machine = run_with(beside(ORDER, failure_output=branch))
    machine.report(work_of(machine, "L0"), PERMANENT)
    assert repeated(failed(machine)) == ()


def test_an_unknown_outcome_that_was_given_up_stays_a_doubt() -> None:
    idempotent = ToolAction("order_again", {"employee": NAME})
    machine = run_with(beside(idempotent))
    doubt = c.Failed(Failure(FailureKind.UNKNOWN, "no answer"))
    while ("L0", work_of(machine, "L0").work.claim) in machine.flying:
        machine.report(work_of(machine, "L0"), doubt)
        if machine.consultations:
            break
        machine.fire_timer()
        machine.start_ready()
    assert "order_again" in spent_calls(machine.state)


class TestItsOwnResult:
    """The order is made, but what is read of its result is not there."""

    @pytest.fixture
    def state(self) -> PlanState:
        machine = begun()
        succeed(machine, "L1", {"employee_id": "WZ001"})
        machine.report(work_of(machine, "L2"), c.OutputBroken({"id": 7}, "no order_id"))
        machine.consult(0)
        return machine.state

    def test_to_read_it_otherwise_calls_nothing(self, state: PlanState) -> None:
        read = {"op": "set_output", "listener_id": "L2", "context": {"order": "{{result.id}}"}}
        verdict = verdict_on(state, read)
        assert (verdict.level, verdict.warnings) == (Level.RENAME, ())

    def test_to_change_the_call_may_make_it_again(self, state: PlanState) -> None:
        assert repeated(state) == (
            "L2 would call order again: by L2 it has taken effect, or may have",
        )

    def test_another_listener_would_make_it_again(self, state: PlanState) -> None:
        verdict = verdict_on(state, inserted("order", "L3", args={"employee": NAME}), by="person")
        assert verdict.warnings == (
            "R1 would call order again: by L2 it has taken effect, or may have",
        )


class TestSnippets:
    def test_while_one_works_its_calls_are_known(self) -> None:
        machine = run_with(beside(CALLING))
        effect = work_of(machine, "L0")
        machine.report(effect, c.CallWanted(0, "order", {"employee": "x"}, False))
        assert spent_calls(machine.state)["order"] == ("L0",)
        machine.report(work_of(machine, "L0"), c.CallReturned(0, {"order_id": 1}))
        assert spent_calls(machine.state)["order"] == ("L0",)

    def test_afterwards_it_may_have_called_whatever_it_names(self) -> None:
        machine = run_with(beside(CALLING))
        succeed(machine, "L0", {"x": 1})
        assert spent_calls(machine.state)["send_email"] == ("L0",)


class TestRepetition:
    def test_an_earlier_firing_has_taken_effect(self) -> None:
        again = on("L0", "002 Done", ORDER, "000", repeat=True)
        machine = run_with(again)
        succeed(machine, "L1", {"employee_id": "WZ001"})
        succeed(machine, "L0", {"order_id": 1})
        assert spent_calls(machine.state)["order"][0] == "L0"
        step = machine.state.steps["L0"]
        failure = Failure(FailureKind.PERMANENT, "no")
        later = replace(step, firing=2, failure=failure)
        state = replace(machine.state, steps=machine.state.steps.set("L0", later))
        assert spent_calls(state)["order"][0] == "L0"
        first = replace(state, steps=state.steps.set("L0", replace(later, firing=1)))
        assert "L0" not in spent_calls(first)["order"]

    def test_without_an_output_nothing_is_left_of_it(self) -> None:
        again = on("L0", "001 Running", ORDER, None)
        machine = run_with(again)
        machine.report(work_of(machine, "L0"), PERMANENT)
        assert "order" not in spent_calls(machine.state)

    def test_what_a_patched_listener_called_at_its_birth_counts(self) -> None:
        machine = run_with(beside(ORDER))
        succeed(machine, "L0", {"order_id": 1})
        state = machine.state
        plan = state.plan.plan
        other = replace(plan.listeners[0], action=ToolAction("order_again"))
        now = replace(plan, listeners=(other, *plan.listeners[1:]))
        patched = replace(state, plan=CompiledPlan(now, plan_digest(now)), origin=state.plan)
        assert set(spent_calls(patched)) >= {"order", "order_again"}

    def test_a_listener_that_came_with_a_patch_was_not_there_at_birth(self) -> None:
        machine = run_with(beside(ORDER))
        state = machine.state
        plan = state.plan.plan
        before = replace(plan, listeners=plan.listeners[1:])
        born = replace(state, origin=CompiledPlan(before, plan_digest(before)))
        assert spent_calls(born) == spent_calls(state)


def test_what_other_runs_of_the_tree_have_called_counts() -> None:
    told = (
        "L2 would call order again: another run of this tree, or of which it is a fork, has called "
        "it"
    )
    assert repeated(failed(), elsewhere=("order",)) == (told,)


def test_and_both_together_name_those_of_this_run() -> None:
    assert repeated(failed(run_with(beside(ORDER))), elsewhere=("order",)) == BY_L0
