"""How a conversation stands for whoever looks at it, from whatever thread.

`_latest` is the last state that is on disk, `_view` the one that the consumer has been told
of. Where the disk is ahead by events that are still `_untold`, the view is what is shown, until
a wish is recorded (at version `_granted`) that counts at once. What was wished counts as if it had
come true.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from holdfast.conversations.pending import PendingCommands
from holdfast.core.conversation import snapshot as snapshots
from holdfast.core.conversation.briefing import final_answer
from holdfast.core.conversation.decide import blank
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.run.state import RunState
from holdfast.errors import NotAllowed
from holdfast.i18n.message import msg
from holdfast.language.strict import copied
from holdfast.model.conversation import EngineEvent, EngineEventType, EngineState, SubTask
from holdfast.model.run import RunStatus

OVER = (EngineState.COMPLETED, EngineState.ERROR, EngineState.IDLE)
_CANCELLED = (RunStatus.CANCELLING, RunStatus.CANCELLED)


class Projection:
    def __init__(self, definition: ConversationDefinition, by: str) -> None:
        self.id = ""
        self._definition = definition
        self._by = by
        self._wishes = PendingCommands()
        self._view = self._latest = blank(self.id, definition)
        self._untold: deque[tuple[EngineEvent, ConversationState]] = deque()
        self._granted = 0

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
        tasks = (state.tasks[f"t{number}"] for number in range(1, state.total + 1))
        return [replace(one, args=copied(one.args), result=copied(one.result)) for one in tasks]

    def create_snapshot(self) -> dict[str, Any]:
        """Everything that another engine needs to go on, as plain JSON."""
        return snapshots.dump(self._wished())

    def _wished(self) -> ConversationState:
        """How it stands with what was wished and is not yet recorded."""
        with self._wishes.lock:
            return self._wishes.over(self._shown(), self._by)

    def _shown(self) -> ConversationState:
        latest, view = self._latest, self._view
        behind = bool(self._untold) and self._granted <= view.version and not is_cancelled(latest)
        if behind and view.phase is EngineState.ERROR:
            told, state = self._untold[0]
            # Whoever hears that it failed is shown why, one event early.
            return state if told.event_type is EngineEventType.ENGINE_ERROR else view
        return view if behind or view.version > latest.version else latest

    def _overtaken(self) -> bool:
        """The turn is over, and its consumer has yet to hear of it."""
        return bool(self._untold) and self._latest.phase in OVER

    def _refuse_cancelled(self) -> None:
        if is_cancelled(self._latest):
            raise NotAllowed(
                msg("{id} was cancelled for good; open a new conversation", id=self.id)
            )

    def _refuse_failed(self) -> None:
        """A failure that nobody has heard of is told once."""
        if not self._untold and self._view.phase is EngineState.ERROR:
            raise NotAllowed(
                f"the last turn failed ({self._latest.error}); resume(failed=…) goes on with what "
                "is left, reset() forgets what was done"
            )

    def _refuse_other(self, state: ConversationState, user_input: str | None) -> None:
        if user_input is not None and user_input != state.text and state.text:
            raise NotAllowed(
                f"{self.id} is still at {state.text!r:.200}; run() goes on, reset() ends it"
            )

    def _repeats(self, state: ConversationState, user_input: str) -> bool:
        """The same call, made again by one who has yet to hear that its turn was completed."""
        unheard = bool(self._untold) and state.phase is EngineState.COMPLETED
        return unheard and user_input == state.text

    def _is_below(self, run_id: str) -> bool:
        return bool(self.id) and f"{run_id}.".startswith(f"{self.id}.")

    def _see(self, state: ConversationState) -> None:
        self._latest = state
        self._see_from(state)

    def _see_from(self, state: ConversationState) -> None:
        """Nothing that came before is told any more."""
        self._view = state
        self._untold.clear()

    def _note(self, state: ConversationState) -> None:
        """What is on disk now, unless later word of it was faster."""
        if state.version >= self._latest.version:
            self._latest = state


def is_cancelled(state: RunState) -> bool:
    return state.status in _CANCELLED
