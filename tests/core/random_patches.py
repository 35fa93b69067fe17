"""Random repairs: what rules, models and people may propose for a run, sound or not."""

from __future__ import annotations

from typing import Any

from dice import Dice
from machine import Machine

from holdfast.core.plan.fitting import values_at
from holdfast.core.plan.spent import called_by_now
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.storing import plan_digest
from holdfast.errors import CallerError, PatchRejected
from holdfast.model import commands as c
from holdfast.model.events import PlanPatched
from holdfast.model.interaction import REPAIR
from holdfast.model.message import Usage
from holdfast.model.repair import (
    Diagnosis,
    Level,
    Look,
    Mend,
    PlanPatch,
    Proposal,
    Thought,
    Verdict,
)
from holdfast.model.retry import Cause
from holdfast.model.values import JsonObject

GUESS = Diagnosis(Cause.UNKNOWN, "a guess", source="rule:chance")
PEOPLE = ("Will Zhang", "操作员")


def repair(machine: Machine, dice: Dice) -> None:
    """A word about a case, or a person's patch; most come at the wrong time."""
    proposal = random_proposal(machine, dice)
    if machine.diagnoses and not dice.chance(4):
        _tell(machine, dice, proposal)
    elif machine.consultations and proposal is not None and dice.chance(2):
        asked = machine.consultations.pop(0)
        machine.submit(c.Advise(asked.listener_id, asked.firing, Mend(GUESS, proposal)))
    elif proposal is not None:
        listener = dice.pick(("", *sorted(machine.state.steps), "L404"))
        machine.tries(c.ProposePatch(proposal, dice.pick(PEOPLE), listener))
    else:
        case_id = dice.pick(("case_1", "case_2", "case_404"))
        versions: dict[str, str] = dice.pick(({}, {}, {"plain": "2"}))
        machine.submit(c.ReviewProposal(case_id, versions, random_elsewhere(dice)))


def random_elsewhere(dice: Dice) -> frozenset[str]:
    """What other runs of the tree have called."""
    return frozenset(dice.pick(((), (), (), ("keyed",), ("plain", "guarded"))))


def answered(machine: Machine, command: c.Answer) -> None:
    """By a person, as other runs stand; no repair is made whose call another run has made."""
    question = machine.state.questions.get(command.question_id)
    told = machine.tries(command)
    if isinstance(told, CallerError) or question is None or question.purpose != REPAIR:
        return
    if any(isinstance(one, PlanPatched) for one in told.events):
        proposal = machine.auditor.proposed[str(question.request.context["case_id"])]
        assert not command.elsewhere.intersection(proposal.verdict.fresh)


def _tell(machine: Machine, dice: Dice, proposal: Proposal | None) -> None:
    asked = dice.pick(machine.diagnoses)
    if dice.number(4):
        machine.diagnoses.remove(asked)
    found: Look | Thought = Look(GUESS, proposal, thinks=dice.chance(2))
    if asked.number:
        usage = Usage(dice.number(9), dice.number(9))
        found = Thought(GUESS, proposal, "so it said", usage, dice.chance(2), "say it otherwise")
    machine.submit(c.ReportDiagnosis(asked.case_id, asked.number, found))


def random_proposal(machine: Machine, dice: Dice) -> Proposal | None:
    """As it would be judged, for the plan as it stands; None where it does not fit that plan."""
    operations = tuple(_operation(machine, dice) for _ in range(1 + dice.number(2)))
    plan = machine.state.plan
    try:
        digest = plan_digest(patched(plan.plan, read_operations(operations)))
    except PatchRejected:
        return None
    base = plan.digest if dice.number(8) else "another"
    by = dice.pick(("", *PEOPLE))
    level = dice.pick((Level.RENAME, Level.ACT))
    patch = PlanPatch(f"p{machine.state.version}", base, operations, "by chance", by=by)
    return Proposal(patch, Verdict(digest, level, consent="agreed", **_seen(machine, dice)))


def _seen(machine: Machine, dice: Dice) -> dict[str, Any]:
    """What the judge saw, as far as it was there."""
    tools = dice.pick(((), ("plain",), ("keyed", "guarded"), ("plain", "keyed")))
    called = called_by_now(machine.state, tools)
    reads = dice.pick(((), ("001.context.x",), ("001.context.name", "001.status")))
    fresh = tuple(one for one in tools if one not in called)
    return {"fresh": fresh, "reads": reads, "values": values_at(machine.state, reads)}


def _operation(machine: Machine, dice: Dice) -> JsonObject:
    listener = dice.pick([one.listener_id for one in machine.state.plan.plan.listeners])
    new = f"R{len(machine.records)}"
    tool = {"listener_id": new, "listener_type": "tool", "tool": dice.pick(("plain", "keyed"))}
    match dice.number(6):
        case 0:
            return {"op": "set_args", "listener_id": listener, "set": {"n": dice.number(9)}}
        case 1:
            return {"op": "set_retry", "listener_id": listener, "retry": {"attempts": 2}}
        case 2:
            return {"op": "skip", "listener_id": listener}
        case 3:
            task = {"task_id": new}
            return {"op": "insert_before", "listener_id": listener, "task": task, "listener": tool}
        case 4:
            asked = [{"name": "n"}]
            return {"op": "ask_first", "listener_id": listener, "fields": asked, "task_id": new}
        case _:
            trigger = {"trigger_task_id": "001", "trigger_condition": "001.status != Done"}
            output = {"success_output": {"task_id": new, "status": "Done"}}
            added = {**tool, **trigger, **output}
            return {"op": "add", "tasks": [{"task_id": new}], "listeners": [added]}
