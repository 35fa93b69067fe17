"""Runs that have failed, and patches for them."""

from __future__ import annotations

from typing import Any

from machine import Machine
from small_plans import CALL, PERMANENT, WILL, on, only, started

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.repair.state import CaseState
from holdfast.core.storing import plan_digest
from holdfast.model import commands as c
from holdfast.model.interaction import REPAIR
from holdfast.model.message import Usage
from holdfast.model.plan import ToolAction
from holdfast.model.repair import (
    Diagnosis,
    Level,
    Look,
    PlanPatch,
    Proposal,
    RepairPolicy,
    Thought,
    Verdict,
)
from holdfast.model.retry import Cause, GiveUp
from holdfast.model.values import JsonObject

EVE = "Eve"

PLAN = (
    on("L001", "001 Running", CALL, "002"),
    on("L002", "002 Done", ToolAction("plain", {"old": "x"}), "003"),
    on("L003", "003 Done", CALL, "001"),
)

RENAME: JsonObject = {"op": "set_args", "listener_id": "L002", "set": {"new": "x"}, "drop": ["old"]}
BEFORE: JsonObject = {
    "op": "insert_before",
    "listener_id": "L002",
    "task": {"task_id": "R1", "name": "Prepared"},
    "listener": {"listener_id": "R1", "listener_type": "tool", "tool": "plain"},
}

GUESS = Diagnosis(Cause.ARGUMENT, "an argument has another name", source="rule:renamed")


def proposal(
    state: PlanState,
    *operations: JsonObject,
    level: Level = Level.RENAME,
    by: str = "",
    versions: dict[str, str] | None = None,
    patch_id: str = "k1",
    **judged: Any,
) -> Proposal:
    """As it would be judged for the run as it stands."""
    plan = patched(state.plan.plan, read_operations(operations))
    patch = PlanPatch(patch_id, state.plan.digest, operations, "It might help.", by=by)
    named = versions or {}
    verdict = Verdict(plan_digest(plan), level, versions=named, consent="agreed", **judged)
    return Proposal(patch, verdict, {"words": ["L002 passes new instead of old"]})


def consulted(policy: RepairPolicy | None = None) -> Machine:
    """L002 has failed, and the planner is asked."""
    machine = started(*PLAN, **({} if policy is None else {"repair": policy}))
    machine.report(only(machine), c.Succeeded({"x": 1}, machine_updates(machine)))
    machine.start_ready()
    machine.report(only(machine), PERMANENT)
    return machine


def machine_updates(machine: Machine) -> Any:
    outcome = machine.outcome(only(machine), {"x": 1})
    assert isinstance(outcome, c.Succeeded)
    return outcome.updates


def given_up(look: Look | None = None, policy: RepairPolicy | None = None) -> Machine:
    """The planner gave up on L002; `look` is what it knew by then."""
    machine = consulted(policy)
    asked = machine.consultations.pop(0)
    machine.submit(c.Advise(asked.listener_id, asked.firing, GiveUp("no"), look))
    return machine


def proposed(*operations: JsonObject, **more: Any) -> Machine:
    """A repair of L002 waits for consent."""
    machine = consulted()
    asked = machine.consultations.pop(0)
    look = Look(GUESS, proposal(machine.state, *(operations or (RENAME,)), **more))
    machine.submit(c.Advise(asked.listener_id, asked.firing, GiveUp(), look))
    return machine


def thinking(machine: Machine | None = None, meanwhile: Proposal | None = None) -> Machine:
    """A model is asked about L002's failure."""
    machine = machine or given_up()
    machine.submit(c.ReportDiagnosis("case_1", 0, Look(GUESS, meanwhile, thinks=True)))
    return machine


def thought(machine: Machine, **found: Any) -> None:
    case = the_case(machine)
    told = Thought(usage=Usage(10, 5), **found)
    machine.submit(c.ReportDiagnosis(case.case_id, case.number, told))


def the_case(machine: Machine, case_id: str = "case_1") -> CaseState:
    return machine.state.repair.cases[case_id]


def asked(machine: Machine) -> list[str]:
    """The open questions about repairs."""
    questions = machine.state.questions
    return [one for one in sorted(machine.state.open_questions) if questions[one].purpose == REPAIR]


def answer(machine: Machine, option: str = "apply", by: str = WILL, **more: Any) -> None:
    (question,) = asked(machine)
    machine.submit(c.Answer(question, by, option, **more))
