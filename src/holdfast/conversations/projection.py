"""A conversation as its readers see it, from whatever thread, and what its consumer is yet to hear.

`_latest` is the last state that is on disk, `_view` the one up to which the consumer has heard.
Where the disk is ahead by events that are still `_untold`, the view is what is shown, until a
command of the engine's user is recorded (at version `_granted`), which shows at once. Commands that
are pending count as if they had been accepted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.conversations.events import narrate
from holdfast.core.conversation import snapshot as snapshots
from holdfast.core.conversation.briefing import final_answer
from holdfast.core.conversation.decide import blank, decide, replay
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.run.state import RunState
from holdfast.errors import CallerError, NotAllowed
from holdfast.i18n.message import msg
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.language.strict import copied
from holdfast.model import commands as c
from holdfast.model.conversation import EngineEvent, EngineEventType, EngineState, SubTask
from holdfast.model.conversation_events import SnapshotRestored, StartedOver
from holdfast.model.run import RunStatus, is_below

OVER = (EngineState.COMPLETED, EngineState.ERROR, EngineState.IDLE)
_CANCELLED = (RunStatus.CANCELLING, RunStatus.CANCELLED)


class PendingCommands:
    """Commands that were given and are not recorded yet, by whatever thread.

    A command stays first in line until it is recorded, so that no reader sees the conversation
    without it in between. A pause that is taken back before its recording has begun is dropped. One
    lock guards every look and every change: commands are given and recorded by different threads.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._line: deque[c.Command] = deque()
        self._begun = False

    def __len__(self) -> int:
        return len(self._line)

    def add(self, command: c.Command) -> None:
        with self.lock:
            if isinstance(command, c.Unhold) and self._has_not_held():
                self._line.pop()
            else:
                self._line.append(command)

    def begin(self) -> c.Command | None:
        """The first in line, which cannot be taken back from now on."""
        with self.lock:
            self._begun = bool(self._line)
            return self._line[0] if self._line else None

    def done(self) -> None:
        """The one that was begun is recorded, or refused."""
        with self.lock:
            self._line.popleft()
            self._begun = False

    def over(self, state: ConversationState, by: str) -> ConversationState:
        """The state if all of them are accepted; the caller holds the lock."""
        if state.version == 0 and self._line:
            state = decide(state, c.OpenConversation(by=by), c.Moment(0.0)).state
        for command in self._line:
            with suppress(CallerError):
                state = decide(state, command, c.Moment(state.updated_at)).state
        return state

    def _has_not_held(self) -> bool:
        """Whether the last one is a pause whose recording has not begun."""
        begun = 1 if self._begun else 0
        return len(self._line) > begun and isinstance(self._line[-1], c.Hold)


class Projection:
    def __init__(self, definition: ConversationDefinition, by: str) -> None:
        self.id = ""
        self._definition = definition
        self._by = by
        self._pending = PendingCommands()
        self._view = self._latest = blank(self.id, definition)
        self._untold: deque[tuple[EngineEvent, ConversationState]] = deque()
        self._granted = 0

    @property
    def state(self) -> EngineState:
        state = self._with_pending()
        return EngineState.ERROR if is_cancelled(state) else state.phase

    @property
    def will_pause(self) -> bool:
        """A pause is asked for that takes hold before the first task."""
        return self._with_pending().pausing

    @property
    def current_progress(self) -> float:
        return self._with_pending().progress

    @property
    def total_tasks(self) -> int:
        return self._with_pending().total

    @property
    def completed_tasks(self) -> int:
        return self._with_pending().completed

    @property
    def skipped_tasks(self) -> int:
        return self._with_pending().skipped

    @property
    def user_input(self) -> str:
        """What the current turn is about."""
        return self._with_pending().text

    @property
    def error(self) -> str:
        """Why the turn failed, in the state `error`."""
        state = self._with_pending()
        return "cancelled" if is_cancelled(state) else state.error

    @property
    def final_answer(self) -> str:
        """The last word of a completed turn: the model's, else a plain list of the results."""
        return final_answer(self._with_pending())

    @property
    def tasks(self) -> list[SubTask]:
        state = self._with_pending()
        tasks = (state.tasks[f"t{number}"] for number in range(1, state.total + 1))
        return [replace(one, args=copied(one.args), result=copied(one.result)) for one in tasks]

    def create_snapshot(self) -> dict[str, Any]:
        """Everything that another engine needs to go on, as plain JSON."""
        return snapshots.dump(self._with_pending())

    def _with_pending(self) -> ConversationState:
        """The state with the commands that are not yet recorded."""
        with self._pending.lock:
            return self._pending.over(self._shown(), self._by)

    def _shown(self) -> ConversationState:
        latest, view = self._latest, self._view
        behind = bool(self._untold) and self._granted <= view.version and not is_cancelled(latest)
        if behind and view.phase is EngineState.ERROR:
            told, state = self._untold[0]
            # A consumer that hears of the failure is shown why, one event early.
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
        """A failure that was not heard yet is told once."""
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
        """The same call again, before its consumer has heard that the turn was completed."""
        unheard = bool(self._untold) and state.phase is EngineState.COMPLETED
        return unheard and user_input == state.text

    def _hear(self, records: Sequence[Record], is_news: Callable[[EngineEvent], bool]) -> None:
        """Take the events of further records among what is to be told."""
        state, untold = self._view, self._untold
        for record in records:
            event, before = decode(record), state
            state = replay(before, [(record.at, event)])  # type: ignore[list-item]
            told = narrate(state, record.seq, record.at, event)
            if told is not None and is_news(told):
                if untold:
                    # With the event before, all up to this one is shown.
                    untold.append((untold.pop()[0], before))
                untold.append((told, state))
            elif isinstance(event, StartedOver | SnapshotRestored):
                self._see_from(state)
        if untold:
            untold.append((untold.pop()[0], state))
        else:
            self._view = state

    def _is_below(self, run_id: str) -> bool:
        return bool(self.id) and is_below(run_id, self.id)

    def _see(self, state: ConversationState) -> None:
        self._latest = state
        self._see_from(state)

    def _see_from(self, state: ConversationState) -> None:
        """Nothing that came before will be told."""
        self._view = state
        self._untold.clear()

    def _note(self, state: ConversationState) -> None:
        """What is on disk now, unless a later state has come first."""
        if state.version >= self._latest.version:
            self._latest = state


def is_cancelled(state: RunState) -> bool:
    return state.status in _CANCELLED
