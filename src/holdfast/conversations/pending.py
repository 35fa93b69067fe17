"""Wishes about a conversation that are made and not yet recorded, by whatever thread.

A wish stays first in line until it is recorded, so that nobody who looks in between sees
the conversation without it. A pause that is taken back before anybody began to record it
has never been. One lock guards every look and every change: whoever wishes and whoever
records are different threads.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress

from holdfast.core.conversation.decide import decide
from holdfast.core.conversation.state import ConversationState
from holdfast.errors import CallerError
from holdfast.model import commands as c


class PendingCommands:
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
        """How it stands if all of them come true; whoever calls holds the lock."""
        if state.version == 0 and self._line:
            state = decide(state, c.OpenConversation(by=by), c.Moment(0.0)).state
        for wish in self._line:
            with suppress(CallerError):
                state = decide(state, wish, c.Moment(state.updated_at)).state
        return state

    def _has_not_held(self) -> bool:
        """Whether the last wish is a pause that nobody has begun to record."""
        begun = 1 if self._begun else 0
        return len(self._line) > begun and isinstance(self._line[-1], c.Hold)
