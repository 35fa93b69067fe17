"""One active run: its state, its mailbox and what it has in flight.

`state` may be ahead of the journal by events of pure work; `committed` never is.
The heap holds listeners that may be ready, the most urgent first; it is rebuilt
from the state whenever the run is loaded.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.core.plan.state import PlanState
from holdfast.core.plan.tables import StepStatus
from holdfast.journal.port import Append
from holdfast.model import events as e
from holdfast.model.commands import Command


@dataclass(slots=True)
class Letter:
    """A command on its way to a run; `reply` is None when nobody waits for it.

    What a `lazy` one decides could be decided again at no cost, so it may wait for
    company on its way to disk.
    """

    command: Command
    reply: asyncio.Future[PlanState] | None = None
    notice: tuple[str, int] | None = None
    lazy: bool = False


@dataclass(slots=True, eq=False)
class Actor:
    run_id: str
    state: PlanState
    committed: PlanState
    mailbox: deque[Letter] = field(default_factory=deque)
    unsaved: list[tuple[float, e.Event]] = field(default_factory=list)
    births: list[tuple[Append, Actor]] = field(default_factory=list)
    flying: dict[tuple[str, int], asyncio.Task[None] | None] = field(default_factory=dict)
    heap: list[tuple[int, int, str]] = field(default_factory=list)
    draining: bool = False
    stale: bool = False
    hungry: bool = False
    permits: int = 0
    retry: asyncio.Handle | None = None
    flush_timer: asyncio.TimerHandle | None = None
    row_at: float = 0.0
    snapshot_size: int = 0
    bytes_since: int = 0
    _pushed: int = 0

    @property
    def idle(self) -> bool:
        busy = self.mailbox or self.unsaved or self.flying or self.draining or self.hungry
        return not busy and not self.stale

    def push_ready(self, listener_ids: Iterable[str]) -> None:
        for listener_id in listener_ids:
            self._pushed += 1
            priority = self.state.plan.listener(listener_id).listener.priority
            heapq.heappush(self.heap, (priority, self._pushed, listener_id))

    def pop_ready(self) -> str | None:
        """The most urgent listener that is really ready; stale entries are dropped."""
        while self.heap:
            _, _, listener_id = heapq.heappop(self.heap)
            step = self.state.steps.get(listener_id)
            if step is not None and step.status is StepStatus.READY:
                return listener_id
        return None

    def rebuild_heap(self) -> None:
        self.heap.clear()
        self.push_ready(
            listener_id
            for listener_id, step in sorted(self.state.steps.items())
            if step.status is StepStatus.READY
        )


def touched(event: e.Event) -> Iterable[str]:
    """The listeners that an event may have made ready."""
    match event:
        case e.ListenerSucceeded() | e.ListenerFailed() | e.ListenerSkipped():
            yield event.listener_id
            yield from _fired(event.moves)
        case e.ListenerStarted() | e.QuestionOpened() | e.TasksEdited():
            yield from _fired(event.moves)
        case e.RunStarted() | e.ListenersReset():
            yield from event.fired
            yield from _fired(event.moves)
        case e.ListenerWoken() | e.ListenerReleased() | e.FunctionReturned() | e.ChildHeard():
            yield event.listener_id
        case e.PlannerRetried():
            yield event.listener_id
        case e.VerificationStarted():
            yield from event.fired
        case _:
            return


def _fired(moves: tuple[e.Move, ...]) -> Iterable[str]:
    for move in moves:
        yield from move.fired


def frees_all(event: e.Event) -> bool:
    """Events after which listeners that were held back may start."""
    return isinstance(
        event,
        e.RunResumed | e.QuestionAnswered | e.QuestionExpired | e.QuestionWithdrawn | e.ChildHeard,
    )
