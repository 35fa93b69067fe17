"""What a machine decides: the events, the effects they call for, and the state after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.state import EMPTY, RunState, S
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


def decided(builder: DecisionBuilder[S, E], effects: Sequence[Effect]) -> Decision[S, E]:
    return Decision(builder.state, tuple(event for _, event in builder.events), tuple(effects))


SAID: Final[Mapping[str, str]] = {
    "Converse": "Another message",
    "Say": "Another message",
    "Hold": "A pause",
    "Unhold": "Going on",
    "GoOn": "Going on",
    "Abort": "Ending the turn",
    "StartOver": "Starting over",
    "RestoreSnapshot": "A snapshot",
    "RerunFrom": "Running again",
    "MarkDone": "Marking as done",
    "EditContext": "Changing a context",
}
"""Commands by words of the field, where their names are ours."""


Commands: TypeAlias = Mapping[type, Mapping[RunStatus, Verdict]]


def unwelcome(state: RunState, command: object, table: Commands) -> tuple[Effect, ...]:
    """Of a command that is not accepted: a word that comes too late decides nothing, any other
    is refused."""
    if table.get(type(command), EMPTY).get(state.status) is Verdict.IGNORE:
        return ()
    name = SAID.get(type(command).__name__, type(command).__name__)
    raise NotAllowed(f"{name} is not possible: {state.run_id} is {state.status}")
