"""Which steps of a run may start, the most urgent first.

The state knows which steps are ready; this only spares looking through all of them.
It may hold a step that is ready no longer, which is dropped when its turn comes,
and is rebuilt from the state whenever the run is loaded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.runtime.machines import PLAN, machine_of

_FREEING = (
    e.RunResumed,
    e.QuestionAnswered,
    e.QuestionExpired,
    e.QuestionWithdrawn,
    e.ChildHeard,
)
"""Events after which steps that were held back may start."""


class Readiness:
    __slots__ = ("_heap", "_pushed")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._pushed = 0

    @classmethod
    def of(cls, state: RunState) -> Readiness:
        ready = cls()
        ready.rebuild(state)
        return ready

    def rebuild(self, state: RunState) -> None:
        self._heap.clear()
        self.push(state, [one for one, _ in sorted(state.steps.items())])

    def push(self, state: RunState, step_ids: Iterable[str]) -> None:
        """Note those of the steps that are ready now."""
        priority_of = machine_of(state).priority
        for step_id in step_ids:
            if is_ready(state, step_id):
                self._pushed += 1
                priority = priority_of(state, step_id)
                heapq.heappush(self._heap, (priority, self._pushed, step_id))

    def pop(self, state: RunState) -> str | None:
        """The most urgent step that is really ready."""
        while self._heap:
            step_id = heapq.heappop(self._heap)[2]
            if is_ready(state, step_id):
                return step_id
        return None

    def note(self, state: RunState, event: Event) -> None:
        """Follow an event; `state` is the one after the decision that brought it."""
        match event:
            case e.ListenerStarted(moves=moves) | e.QuestionOpened(moves=moves):
                self._push_fired(state, moves)
            case e.ListenerSucceeded(moves=moves) | e.ListenerFailed(moves=moves):
                self.push(state, (event.listener_id,))
                self._push_fired(state, moves)
            case _ if isinstance(event, _FREEING) or machine_of(state) is not PLAN:
                self.rebuild(state)
            case _:
                self.push(state, _touched(event))

    def _push_fired(self, state: RunState, moves: tuple[e.Move, ...]) -> None:
        for move in moves:
            if move.fired:
                self.push(state, move.fired)


def is_ready(state: RunState, step_id: str) -> bool:
    step = state.steps.get(step_id)
    return step is not None and step.status is StepStatus.READY


def _touched(event: Event) -> Iterable[str]:
    """The listeners that one of the rarer events may have made ready."""
    match event:
        case e.StepWoken() | e.StepReleased():
            yield event.step_id
        case e.FunctionReturned() | e.PlannerRetried() | e.ListenerSkipped():
            yield event.listener_id
        case e.RunStarted() | e.ListenersReset() | e.VerificationStarted():
            yield from event.fired
        case _:
            pass
    for move in getattr(event, "moves", ()):
        yield from move.fired
