"""What a machine decides: the events, the effects they call for, and the state after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

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


def welcome(
    state: RunState, command: object, table: Mapping[type, Mapping[RunStatus, Verdict]]
) -> bool:
    """Whether the command is to be carried out; a refusal raises and changes nothing."""
    row: Mapping[Any, Verdict] = table.get(type(command), {})
    verdict = row.get(state.status, Verdict.REFUSE)
    if verdict is Verdict.REFUSE:
        name = SAID.get(type(command).__name__, type(command).__name__)
        raise NotAllowed(f"{name} is not possible: {state.run_id} is {state.status}")
    return verdict is Verdict.ACCEPT
