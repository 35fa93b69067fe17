"""How a conversation stands for whoever looks at it, from whatever thread.

`_latest` is the last state that is on disk, `_view` the one that the consumer has been told
of, and what was wished counts as if it had come true.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.conversation import snapshot as snapshots
from holdfast.core.conversation.briefing import final_answer
from holdfast.core.conversation.decide import blank
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.run.state import RunState
from holdfast.errors import NotAllowed
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.run import RunStatus
from holdfast.wishes import Wishes

_CANCELLED = (RunStatus.CANCELLING, RunStatus.CANCELLED)


class Standing:
    def __init__(self, definition: ConversationDefinition, by: str) -> None:
        self.id = ""
        self._definition = definition
        self._by = by
        self._wishes = Wishes()
        self._view = self._latest = blank(self.id, definition)

    @property
    def state(self) -> EngineState:
        state = self._wished()
        return EngineState.ERROR if is_cancelled(state) else state.phase

    @property
    def will_pause(self) -> bool:
        """Somebody has wished for a pause that takes hold before the first task."""
        return self._wished().pausing

    @property
    def current_progress(self) -> float:
        return self._wished().progress

    @property
    def total_tasks(self) -> int:
        return self._wished().total

    @property
    def completed_tasks(self) -> int:
        return self._wished().completed

    @property
    def skipped_tasks(self) -> int:
        return self._wished().skipped

    @property
    def user_input(self) -> str:
        """What the current turn is about."""
        return self._wished().text

    @property
    def error(self) -> str:
        """Why the turn failed, in the state `error`."""
        state = self._wished()
        return "cancelled" if is_cancelled(state) else state.error

    @property
    def final_answer(self) -> str:
        """The last word of a completed turn: the model's, else a plain list of the results."""
        return final_answer(self._wished())

    @property
    def tasks(self) -> list[SubTask]:
        state = self._wished()
        return [state.tasks[f"t{number}"] for number in range(1, state.total + 1)]

    def create_snapshot(self) -> dict[str, Any]:
        """Everything that another engine needs to go on, as plain JSON."""
        return snapshots.dump(self._wished())

    def _wished(self) -> ConversationState:
        """How it stands with what was wished and is not yet recorded."""
        with self._wishes.lock:
            latest, view = self._latest, self._view
            return self._wishes.over(latest if latest.version >= view.version else view, self._by)

    def _refuse_cancelled(self) -> None:
        if is_cancelled(self._latest):
            raise NotAllowed(f"{self.id} was cancelled for good; open a new conversation")

    def _refuse_other(self, state: ConversationState, user_input: str | None) -> None:
        if user_input is not None and user_input != state.text and state.text:
            raise NotAllowed(
                f"{self.id} is still at {state.text!r:.200}; run() goes on, reset() ends it"
            )

    def _is_below(self, run_id: str) -> bool:
        return bool(self.id) and f"{run_id}.".startswith(f"{self.id}.")

    def _see(self, state: ConversationState) -> None:
        self._view = self._latest = state

    def _note(self, state: ConversationState) -> None:
        """What is on disk now, unless later word of it was faster."""
        if state.version >= self._latest.version:
            self._latest = state


def is_cancelled(state: RunState) -> bool:
    return state.status in _CANCELLED
