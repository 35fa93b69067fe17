"""A decision in the making: the state so far, and the events that led to it.

The functions of a machine's `decide` write their events through a `RunDraft`, which
applies each at once, so that what is decided next sees what was decided before. It has one
successor of the state that it was given, and writes all its events into that.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from holdfast.core.run.state import S, StepState, successor
from holdfast.model.commands import Moment

E = TypeVar("E")


class RunDraft(ABC, Generic[S, E]):
    def __init__(self, state: S, moment: Moment) -> None:
        self.state = state
        self.moment = moment
        self.now = moment.now
        self.events: list[E] = []

    def emit(self, event: E) -> None:
        if not self.events:
            self.state = successor(self.state)
        self.events.append(event)
        self.write(self.state, event, self.now)

    @staticmethod
    @abstractmethod
    def write(state: Any, event: Any, at: float) -> None:
        """Write `event` into a state that nobody else holds; each machine has its own way."""

    def step(self, step_id: str) -> StepState:
        return self.state.steps[step_id]

    def unguessable(self) -> str:
        """An id that nobody can guess, for what the next event brings into the world."""
        return self._drawn(16).hex()

    def jitter(self) -> float:
        """A number in [0, 1) that spreads retries."""
        return int.from_bytes(self._drawn(4), "big") / 2**32

    def _drawn(self, size: int) -> bytes:
        """Bytes that follow from the moment's secret and this place in this run's journal."""
        place = f"{self.state.run_id}:{self.state.version}".encode()
        return hashlib.blake2b(place, key=self.moment.entropy[:64], digest_size=size).digest()


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
