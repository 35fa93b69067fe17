"""What an author lets be repaired without a person, where other runs may have called, or may be
about to call, the same."""

from __future__ import annotations

import pytest

from holdfast.model.repair import (
    Level,
    PlanPatch,
    Proposal,
    Rehearsal,
    RehearsedCall,
    RepairMode,
    RepairPolicy,
    Verdict,
)
from holdfast.model.values import JsonObject
from holdfast.repair.looking import auto_covers

EVERYTHING = RepairPolicy(RepairMode.AUTO, ("rename", "look", "lesson"))
FIRST: JsonObject = {
    "op": "insert_before",
    "listener_id": "L1",
    "task": {"task_id": "R1"},
    "listener": {"listener_id": "R1", "listener_type": "tool", "tool": "order"},
}
RENAME: JsonObject = {"op": "set_args", "listener_id": "L1", "set": {"model": 8}}


def learned(operation: JsonObject, **judged: tuple[str, ...]) -> Proposal:
    success = Rehearsal((RehearsedCall("L1", "order"),))
    patch = PlanPatch("k1", "b", (operation,), source="lesson:abc")
    shown: JsonObject = {"lesson": {"id": "abc", "wins": 3, "level": Level.ACT.value}}
    return Proposal(patch, Verdict("d", Level.ACT, success=success, **judged), shown)  # type: ignore[arg-type]


@pytest.mark.parametrize("alone", [True, False])
def test_a_call_that_another_run_has_made_is_never_made_again_without_a_person(
    alone: bool,
) -> None:
    """The rehearsal of a run knows its own calls only; the verdict knows of the others."""
    assert not auto_covers(EVERYTHING, learned(FIRST, repeats=("order",)), alone=alone)


def test_a_new_call_that_none_has_made_is_made_in_a_run_by_itself_only() -> None:
    assert auto_covers(EVERYTHING, learned(FIRST, fresh=("order",)), alone=True)
    assert not auto_covers(EVERYTHING, learned(FIRST, fresh=("order",)), alone=False)


def test_what_brings_in_no_call_of_its_own_is_repaired_in_a_tree_too() -> None:
    assert auto_covers(EVERYTHING, learned(RENAME, fresh=("order",)), alone=False)
    assert auto_covers(EVERYTHING, learned(FIRST), alone=False)
