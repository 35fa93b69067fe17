"""Which steps of a run may start, the most urgent first.

The run's draft notes which steps have become ready (`readied`); this spares looking through all of
them. A step that is noted and no longer ready is dropped when its turn comes. Built from the
state whenever the run is loaded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

from holdfast.core.run.state import ANY_STEP, RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.runtime.machines import machine_of

_READY: Final = StepStatus.READY


class Readiness:
    __slots__ = ("_priority", "_pushed", "heap", "readied")

    def __init__(self, state: RunState, readied: list[str]) -> None:
        self.heap: list[tuple[int, int, str]] = []
        self.readied = readied
        self._pushed = 0
        self._priority = machine_of(state).priority
        self.rebuild(state)

    def rebuild(self, state: RunState) -> None:
        self.heap.clear()
        self.readied.clear()
        self._push(state, sorted(one for one in state.steps if is_ready(state, one)))

    def _push(self, state: RunState, step_ids: Iterable[str]) -> None:
        for step_id in step_ids:
            self._pushed += 1
            priority = self._priority(state, step_id)
            heapq.heappush(self.heap, (priority, self._pushed, step_id))

    def note(self, state: RunState) -> None:
        """Take over what has become ready."""
        if ANY_STEP in self.readied:
            self.rebuild(state)
        else:
            self._push(state, self.readied)
            self.readied.clear()

    def pop(self, state: RunState) -> tuple[str, StepState] | None:
        """The most urgent step that is really ready."""
        heap, readied = self.heap, self.readied
        while heap or readied:
            if len(readied) == 1 and not heap and readied[0] != ANY_STEP:
                step_id = readied.pop()  # there is no other to compare it with
            elif readied:
                self.note(state)
                continue
            else:
                step_id = heapq.heappop(heap)[2]
            try:
                step = state.steps[step_id]
            except KeyError:
                continue
            if step.status is _READY:
                return step_id, step
        return None


def is_ready(state: RunState, step_id: str) -> bool:
    step = state.steps.get(step_id)
    return step is not None and step.status is _READY
