"""What a machine decides: the events, the effects they call for, and the state after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from holdfast.core.run.state import RunState, S
from holdfast.core.run.tables import Verdict
from holdfast.errors import NotAllowed
from holdfast.model.effects import Effect
from holdfast.model.record import record
from holdfast.model.run import RunStatus

E = TypeVar("E")

MAX_RECOVERIES = 3
"""A run that took its process down so often without progress is left to a person."""


@record
class Decision(Generic[S, E]):
    state: S
    events: tuple[E, ...] = ()
    effects: tuple[Effect, ...] = ()


def welcome(
    state: RunState, command: object, table: Mapping[type, Mapping[RunStatus, Verdict]]
) -> bool:
    """Whether the command is to be carried out; a refusal raises and changes nothing."""
    row: Mapping[Any, Verdict] = table.get(type(command), {})
    verdict = row.get(state.status, Verdict.REFUSE)
    if verdict is Verdict.REFUSE:
        name = type(command).__name__
        raise NotAllowed(f"{name} is not possible: {state.run_id} is {state.status}")
    return verdict is Verdict.ACCEPT
