"""What is judged sound stands: the core does not refuse it as stale while nothing has changed."""

from __future__ import annotations

import random

import pytest
from dice import Dice
from machine import Machine
from patch_cases import begun, brought, failed, known, patch_of, set_args, verdict_on
from random_patches import random_proposal
from random_plans import TOOLS
from small_plans import CODE, on
from test_machine_properties import play

from holdfast.core.plan.fitting import frozen, past_problems, standing_problems, why_stale
from holdfast.core.repair.operations import read_operations
from holdfast.core.run.state import evolve
from holdfast.model.plan import AgentAction
from holdfast.model.repair import Proposal, Verdict
from holdfast.model.values import JsonObject
from holdfast.repair.checks import PERSON, judge

SOUND, UNSOUND = 40, 40
"""How many of each there are at least, or the lives would say nothing."""


def test_what_is_sound_is_not_stale_and_what_is_stale_is_not_sound() -> None:
    sound = stale = 0
    for seed in range(220):
        dice = Dice(random.Random(seed).randbytes(240))
        machine = play(random.Random(seed).randbytes(240))
        proposal = random_proposal(machine, dice)
        if proposal is None:
            continue
        state, patch = machine.state, proposal.patch
        verdict = judge(state, patch, known(TOOLS), by_model=False, rehearse=dice.chance(3))
        why = why_stale(state, proposal)
        assert not (why and not verdict.problems), (seed, why)
        sound += not verdict.problems
        stale += bool(why)
    assert sound > SOUND, "few are sound"
    assert stale > UNSOUND, "few are stale"


def test_work_that_is_done_is_not_proposed_anew() -> None:
    """Its result is kept, and only what it means could not be worked out."""
    state = failed()
    step = evolve(state.steps["L2"], carried=({"order": 1},))
    kept = type(state)(**{**vars(state), "steps": state.steps.set("L2", step)})
    told = "L2 has done its work: only what its output is made of can be changed"
    assert verdict_on(kept, set_args(count=2), by=PERSON).problems == (told,)
    output: JsonObject = {"op": "set_output", "listener_id": "L2", "context": {"order": 1}}
    assert verdict_on(kept, output, by=PERSON).problems == ()


class TestAnAgentsCheck:
    def begun(self) -> Machine:
        """The agent has done its part, and is asked to look at the outcome."""
        machine = begun(
            on("L1", "001 Running", AgentAction("hr", "Look"), "002"),
            on("L2", "002 Done", CODE, "001"),
            verify=(),
        )
        machine.settle()
        return machine

    def test_goes_on_with_its_agent(self) -> None:
        machine = self.begun()
        assert "verify.hr" in machine.state.steps
        skip: JsonObject = {"op": "skip", "listener_id": "L1"}
        found = verdict_on(machine.state, skip, by=PERSON).problems
        assert "verify.hr checks the outcome already: its agent must stay in the plan" in found
        assert "checks the outcome already" in (
            why_stale(machine.state, Proposal(patch_of(machine.state, skip), Verdict("d"))) or ""
        )

    def test_which_may_come_with_another_listener_instead(self) -> None:
        """Of a plan that ended before the agent's only listener fired."""
        machine = begun(
            on("L1", "001 Running", CODE, "001"),
            on("L2", "404 Done", AgentAction("hr", "Look"), "002"),
            verify=(),
        )
        machine.settle()
        asks = {"listener_type": "agent", "agent_id": "hr", "action_prompt": "Look"}
        skip: JsonObject = {"op": "skip", "listener_id": "L2"}
        both = [skip, brought(asks)]
        told = [past_problems(machine.state, {0: one}) for one in read_operations([skip])]
        assert "its agent must stay" in str(told)
        assert past_problems(machine.state, dict(enumerate(read_operations(both)))) == ()


def test_a_listener_that_is_not_there_is_nobodys_past() -> None:
    state = failed()
    operations = dict(enumerate(read_operations([set_args("L99", x=1)])))
    assert past_problems(state, operations) == ()
    assert frozen(state) == {"L1"}


@pytest.mark.parametrize("base", ["now", "another"])
def test_against_any_patch_speaks_only_the_plan(base: str) -> None:
    state = failed()
    told = standing_problems(state, state.plan.digest if base == "now" else base)
    assert len(told) == (base != "now")
