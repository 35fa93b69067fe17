"""A decision in the making: the state so far, and the events that led to it.

What a machine decides is emitted into a `DecisionBuilder`, which applies each event at once, so
that the next decision sees it. A replay emits recorded events in the same way.

A builder writes into a successor of its own. It makes another where the one it has may be held
elsewhere (`shared`); until then further decisions go into the same.

A timer is a name and a time in the state: `retry:L002`, `question:…`, `remind:…`, `escalate:…` and
`cancel`. When the clock jumps back nothing fires, because the time stays; when it jumps ahead each
timer fires once, because what has fired is removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from holdfast.core.run.state import CONTINUE, S, StepState, settle, successor
from holdfast.model.commands import Moment

E = TypeVar("E")
Reducer: TypeAlias = Callable[[Any, Any, float], object]

NO_MOMENT = Moment(0.0)


class DecisionBuilder(Generic[S, E]):
    REDUCERS: ClassVar[Mapping[type, Reducer]]
    """What each event does to the state: the one place where it changes."""

    def __init__(self, state: S, moment: Moment = NO_MOMENT) -> None:
        self.state = state
        self.shared = True
        self._reducers = self.REDUCERS
        self.now, self.entropy, self.wanted_by = moment.now, moment.entropy, moment.wanted_by
        self.events: list[tuple[float, E]] = []
        self.readied: list[str] = []
        """The steps that have become ready, for the scheduler to take."""

    @property
    def moment(self) -> Moment:
        """When it decides, for what another builder decides with it."""
        return Moment(self.now, self.entropy, self.wanted_by)

    @property
    def mark(self) -> tuple[int, int]:
        """Where it stands, for `rewind`."""
        return len(self.events), len(self.readied)

    def emit(self, event: E) -> None:
        state, now = self.state, self.now
        if self.shared:
            self.state = state = successor(state, self.readied)
            self.shared = False
        fields = state.__dict__
        self.events.append((now, event))
        fields["version"] += 1
        fields["updated_at"] = now
        self._reducers[type(event)](state, event, now)
        if fields["status"] is CONTINUE:
            settle(state, event)

    def replay(self, records: Iterable[tuple[float, E]]) -> S:
        """The state after `(at, event)` records."""
        for self.now, event in records:
            self.emit(event)
            self.events.clear()
        return self.state

    def rewind(self, base: S, mark: tuple[int, int]) -> None:
        """Undo what was decided since `mark`; the events began with `base`."""
        decided, readied = mark
        if len(self.events) > decided:
            kept, now = self.events[:decided], self.now
            self.state, self.shared = base, True
            self.replay(kept)
            self.events[:], self.now = kept, now
            del self.readied[readied:]

    def step(self, step_id: str) -> StepState:
        return self.state.steps[step_id]

    def unguessable(self) -> str:
        """An id that cannot be guessed, for what the next event brings into the world."""
        return self._drawn(16).hex()

    def jitter(self) -> float:
        """A number in [0, 1) that spreads retries."""
        return int.from_bytes(self._drawn(4), "big") / 2**32

    def _drawn(self, size: int) -> bytes:
        """Bytes that follow from the moment's secret and this place in this run's journal."""
        place = f"{self.state.run_id}:{self.state.version}".encode()
        return hashlib.blake2b(place, key=self.entropy[:64], digest_size=size).digest()
