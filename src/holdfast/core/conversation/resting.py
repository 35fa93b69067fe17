"""Whether a conversation has anything to do for which it needs a consumer."""

from __future__ import annotations

from typing import Final

from holdfast.core.conversation.state import ConversationState
from holdfast.model.conversation import EngineState
from holdfast.model.run import RunStatus

_UNDER_WAY: Final = frozenset({RunStatus.RUNNING, RunStatus.CONTINUE, RunStatus.PAUSE})
_RESTS: Final = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)
_OF_QUESTIONS: Final = ("question:", "remind:", "escalate:")


def is_over(state: ConversationState) -> bool:
    """Nothing is left to ask it for."""
    resting = state.phase in _RESTS and not state.pending
    return resting or state.status not in _UNDER_WAY


def may_rest(state: ConversationState) -> bool:
    """Nothing of it is done here, and no clock but that of its questions runs."""
    waits = state.status is RunStatus.PAUSE or state.phase is EngineState.PAUSED
    clocks = all(name.startswith(_OF_QUESTIONS) for name in state.timers)
    return waits and clocks and state.in_flight <= state.paused_children


def moves_unattended(state: ConversationState) -> bool:
    """It has no consumer of its own, and would go on if it were asked to."""
    return state.unattended and not is_over(state) and not may_rest(state)
