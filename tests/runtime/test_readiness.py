"""What is noted as ready is all that is ready, whatever a run lives through."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import test_conversation_properties
import test_machine_properties
import test_react_properties

from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.journal.codec import decode
from holdfast.runtime.actor import Readiness
from holdfast.runtime.machines import blank, definition_of, machine_of

pytestmark = pytest.mark.own_store  # it opens none

KINDS: tuple[Any, ...] = (
    test_machine_properties,
    test_react_properties,
    test_conversation_properties,
)


def ready_in(state: RunState) -> set[str]:
    return {one for one, step in state.steps.items() if step.status is StepStatus.READY}


@pytest.mark.parametrize("kind", KINDS, ids=["plan", "session", "conversation"])
def test_every_ready_step_is_noted_after_every_event(kind: Any) -> None:
    seen = 0
    for number in range(150):
        chance = Random(number)
        lived = kind.play(chance.randbytes(chance.randrange(100, 600)))
        state = blank("run", definition_of(lived.state))
        noted, pulled = Readiness(state, []), machine_of(state).pulled
        for record in lived.records:
            event = decode(record)
            state = machine_of(state).replay(state, [(record.at, event)])
            noted.readied += state.readied
            noted.note(state)
            wanted = ready_in(state)
            if pulled:
                wanted = {one for one in wanted if one in state.tasks}  # type: ignore[attr-defined]
            assert wanted <= {step_id for _, _, step_id in noted.heap}, event
            seen += len(wanted)
    assert seen > 100


def test_the_most_urgent_comes_first_and_what_is_ready_no_longer_is_dropped() -> None:
    for number in range(100):
        lived = test_machine_properties.play(Random(number).randbytes(300))
        noted = Readiness(lived.state, [])
        found = []
        while (popped := noted.pop(lived.state)) is not None:
            found.append(popped[0])
        priorities = [lived.state.plan.listeners[one].listener.priority for one in found]
        assert sorted(found) == sorted(ready_in(lived.state))
        assert priorities == sorted(priorities)
