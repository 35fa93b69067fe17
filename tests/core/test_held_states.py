"""A decision writes into a successor of its own: no state that others hold is ever touched."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import ModuleType
from typing import Any

import conversation_machine
import machine
import pytest
import react_machine
import test_conversation_properties
import test_machine_properties
import test_react_properties

from holdfast.core.run.state import RunState
from holdfast.journal.snapshots import dump_state

KINDS: Sequence[tuple[ModuleType, Any]] = (
    (machine, test_machine_properties),
    (react_machine, test_react_properties),
    (conversation_machine, test_conversation_properties),
)


@pytest.mark.parametrize("number", range(60))
def test_every_state_of_a_life_stays_as_it_was_decided(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator, kind = KINDS[number % len(KINDS)]
    decide, held = simulator.decide, list[tuple[RunState, object]]()

    def deciding(state: RunState, *more: Any) -> Any:
        before = dump_state(state)
        try:
            decision = decide(state, *more)
        finally:
            assert dump_state(state) == before
        held.append((decision.state, dump_state(decision.state)))
        return decision

    monkeypatch.setattr(simulator, "decide", deciding)
    chance = Random(number)
    kind.live_on(kind.play(chance.randbytes(chance.randrange(100, 400))))
    assert held
    assert all(dump_state(state) == written for state, written in held)
