"""Which steps of a run may start, the most urgent first.

The state knows which steps are ready; this spares looking through all of them. An event names the
steps that it may have made ready, in its fields; a few name none and may concern any. A step that
is noted and no longer ready is dropped when its turn comes. Built from the state whenever the run
is loaded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Final

from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.model import conversation_events as v
from holdfast.model import events as e
from holdfast.model import react_events as r
from holdfast.model.recorded import Event
from holdfast.runtime.machines import machine_of

_READY: Final = StepStatus.READY

_ANY_STEP: Final = frozenset(
    {e.RunResumed, r.TurnResumed, v.ConversationResumed, v.SnapshotRestored}
)
_TAKEN_UP: Final = frozenset({e.ListenerStarted, r.CallStarted, v.TaskStarted})
"""After these their own step is under way."""
_ONE: Final = ("step_id", "listener_id")
_SEVERAL: Final = ("fired",)


class _Fields(dict[type[Any], tuple[tuple[str, ...], tuple[str, ...], bool]]):
    """By an event's class: its fields with one step, those with several, and whether it has
    moves."""

    def __missing__(self, kind: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        has = kind.__dataclass_fields__
        one = () if kind in _TAKEN_UP else tuple(name for name in _ONE if name in has)
        made = self[kind] = one, tuple(name for name in _SEVERAL if name in has), "moves" in has
        return made


_FIELDS: Final = _Fields()


class Readiness:
    __slots__ = ("_machine", "_pushed", "heap")

    def __init__(self, state: RunState) -> None:
        self.heap: list[tuple[int, int, str]] = []
        self._pushed = 0
        self._machine = machine_of(state)
        self.rebuild(state)

    def rebuild(self, state: RunState) -> None:
        self.heap.clear()
        self.push(state, sorted(state.steps))

    def push(self, state: RunState, step_ids: Iterable[str]) -> None:
        """Note those of the steps that are ready now."""
        steps = state.steps
        for step_id in step_ids:
            step = steps.get(step_id)
            if step is not None and step.status is _READY:
                self._pushed += 1
                priority = self._machine.priority(state, step_id)
                heapq.heappush(self.heap, (priority, self._pushed, step_id))

    def pop(self, state: RunState) -> str | None:
        """The most urgent step that is really ready."""
        steps = state.steps
        while self.heap:
            step_id = heapq.heappop(self.heap)[2]
            step = steps.get(step_id)
            if step is not None and step.status is _READY:
                return step_id
        return None

    def note(self, state: RunState, events: Iterable[Event]) -> None:
        """Follow a decision's events; `state` is the one after them."""
        named: list[str] = []
        for event in events:
            kind = type(event)
            if kind in _ANY_STEP:
                self.rebuild(state)
                continue
            one, several, moves = _FIELDS[kind]
            for name in one:
                named.append(getattr(event, name))
            for name in several:
                named.extend(getattr(event, name))
            if moves:
                for move in event.moves:  # type: ignore[union-attr]
                    named.extend(move.fired)
            if kind in _ELSEWHERE:
                named.extend(_named_elsewhere(state, event))
        named.extend(self._machine.own_steps)
        if named:
            self.push(state, named)


_ELSEWHERE: Final = frozenset(
    {e.QuestionAnswered, e.QuestionExpired, e.QuestionWithdrawn, r.CallProposed, r.ModelReplied}
)


def _named_elsewhere(state: RunState, event: Event) -> Iterable[str]:
    """The steps of events that name a question, or calls."""
    match event:
        case e.QuestionAnswered() | e.QuestionExpired() | e.QuestionWithdrawn():
            return (state.questions[event.question_id].step_id,)
        case r.CallProposed(call=call):
            return (call.step_id,)
        case r.ModelReplied(calls=calls):
            return [call.step_id for call in calls]
        case _:
            return ()


def is_ready(state: RunState, step_id: str) -> bool:
    step = state.steps.get(step_id)
    return step is not None and step.status is _READY
