"""Cases under attack: what was done is not done again, and nothing stays open for ever."""

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
)
from small_plans import (
    CALL,
    CALLING_CODE,
    CHILD,
    PERMANENT,
    WILL,
    events,
    on,
    only,
    started,
    succeed,
)

from holdfast.errors import NotAllowed
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.effects import RunSnippet
from holdfast.model.plan import AgentAction
from holdfast.model.repair import Look

ASK_FIRST = {"op": "ask_first", "listener_id": "L001", "choice": {"title": "Go on?", "message": ""}}


@pytest.mark.parametrize("operation", ["insert_before", "ask_first"])
def test_what_a_snippet_has_called_is_not_called_again_after_a_patch(operation: str) -> None:
    """A resume, and a planner's retry, keep the recorded calls; a patch that has the listener wait
    for an inserted task loses them, and `plain` (not idempotent) is called once more. It is not
    even told: `repeats` looks at tool listeners only."""
    machine = started(on("L001", "001 Running", CALLING_CODE, "001"))
    snippet = only(machine)
    machine.report(snippet, c.CallWanted(0, "plain", {"n": 1}, False))
    machine.report(only(machine), c.CallReturned(0, {"order": 1}))
    (snippet,) = machine.flying.values()
    assert isinstance(snippet, RunSnippet)
    assert [one.result for one in snippet.recorded] == [{"order": 1}]
    machine.report(snippet, PERMANENT)
    machine.consult(0)
    inserted = {
        "op": "insert_before",
        "listener_id": "L001",
        "task": {"task_id": "R1"},
        "listener": {"listener_id": "R1", "listener_type": "tool", "tool": "keyed"},
    }
    operations = inserted if operation == "insert_before" else ASK_FIRST
    machine.submit(c.ProposePatch(proposal(machine.state, operations), EVE, "L001"))
    answer(machine)
    machine.start_ready()
    if operation == "insert_before":
        succeed(machine)
    else:
        (question,) = machine.state.open_questions
        machine.submit(c.Answer(question, WILL, "confirm"))
        machine.start_ready()
        succeed(machine)
    machine.start_ready()
    again = only(machine)
    assert isinstance(again, RunSnippet)
    assert [one.result for one in again.recorded] == [{"order": 1}], "plain is called again"


def test_a_patch_does_not_take_away_a_check_that_is_under_way() -> None:
    """The plan ended early, so L002, the agent's only listener, never fired; `verify.agent` looks
    at the outcome. Skipping L002 takes `verify.agent` out of the plan while its step is there."""
    machine = started(
        on("L001", "001 Running", CALL, "001"),
        on("L002", "404 Done", AgentAction("clerk", "Do it."), "003"),
    )
    succeed(machine)
    assert machine.state.verifying
    skip = {"op": "skip", "listener_id": "L002"}
    proposed = proposal(machine.state, skip)
    with pytest.raises(NotAllowed, match=r"verify\.clerk checks the outcome already"):
        machine.submit(c.ProposePatch(proposed, EVE, ""))


def test_another_listener_of_its_agent_keeps_the_check_in_the_plan() -> None:
    machine = started(
        on("L001", "001 Running", CALL, "001"),
        on("L002", "404 Done", AgentAction("clerk", "Do it."), "003"),
        on("L003", "404 Done", CALL, "005"),
    )
    succeed(machine)
    listener = {
        "listener_id": "R1",
        "listener_type": "agent",
        "agent_id": "clerk",
        "action_prompt": "Do it.",
    }
    first = {"op": "insert_before", "listener_id": "L003", "task": {"task_id": "R1"}}
    skip = {"op": "skip", "listener_id": "L002"}
    made = proposal(machine.state, {**first, "listener": listener}, skip)
    machine.submit(c.ProposePatch(made, EVE, ""))
    answer(machine)
    assert len(events(machine, e.PlanPatched)) == 1


def test_a_repair_that_has_not_failed_is_not_disproven_by_another_proposal() -> None:
    """A person patches a run that goes on, and then proposes another change, about nothing that
    failed: the first repair counts as disproven (and will be unlearned)."""
    machine = given_up(Look(GUESS))
    machine.submit(c.ProposePatch(proposal(machine.state, RENAME), EVE, "L002"))
    answer(machine)
    assert machine.state.status == "running"
    other = {"op": "set_retry", "listener_id": "L003", "retry": {"attempts": 2}}
    machine.submit(c.ProposePatch(proposal(machine.state, other, patch_id="k2"), EVE, "L002"))
    assert events(machine, e.RepairDisproven) == []


def test_nor_are_two_changes_of_a_plan_as_a_whole() -> None:
    machine = started(*PLAN)
    for number, attempts in enumerate((2, 3)):
        other = {"op": "set_retry", "listener_id": "L003", "retry": {"attempts": attempts}}
        made = proposal(machine.state, other, patch_id=f"k{number}")
        machine.submit(c.ProposePatch(made, EVE, ""))
        answer(machine)
    assert events(machine, e.RepairDisproven) == []


def test_looking_at_a_case_does_not_take_the_process_down_for_ever() -> None:
    """Rules, a rehearsal or a provider's client kill the process (memory, a C extension): after
    three crashes a run is quarantined, but its case is looked at at every start anew."""
    machine = given_up()
    for _ in range(12):
        machine.crash()
    assert machine.diagnoses == [], "it is looked at once more, and goes down once more"
    assert not machine.goes_on


def test_a_proposal_that_became_stale_does_not_stay_open() -> None:
    """Proposed while L002 had yet to fire; it has fired since. Consent is refused, rightly, but the
    question stays: nobody can ever consent to it, and it holds the run's status at `pause`."""
    machine = started(*PLAN)
    machine.submit(c.ProposePatch(proposal(machine.state, RENAME), EVE, ""))
    succeed(machine)
    (question,) = asked(machine)
    with pytest.raises(NotAllowed):
        machine.submit(c.Answer(question, WILL, "apply", versions={}))
    machine.submit(c.ReviewProposal("case_1", {}))
    assert asked(machine) == []


def test_a_child_that_was_mended_takes_its_parent_along_also_where_only_its_end_is_heard() -> None:
    """Words of a child may overtake each other while the journal is away (`TurnLoop.post` waits for
    it, one task per word); the older one is dropped then, and the parent stays in error."""
    machine = started(on("L001", "001 Running", CHILD, "001"))
    (kid,) = machine.children
    machine.hear(kid, "error")
    machine.hear(kid, "done", {"x": 1})
    machine.settle()
    assert machine.state.status == "done"
