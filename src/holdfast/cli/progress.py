"""Progress: a run as it moves, in a terminal as a live table, elsewhere as lines.

Events come from the engine of this process or from the journal of another; `follow`
folds them, so the state shown is always that of the event shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Protocol, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.screen import console, say, status_text, table, visible
from holdfast.cli.timeline import Line, Storyteller
from holdfast.core.plan.decide import replay
from holdfast.core.plan.state import PlanState
from holdfast.core.plan.tables import StepStatus
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.runtime.hub import Recorded

LOOK_AGAIN = 0.25
"""Seconds between two looks at a journal that another process writes."""

_LINES_KEPT = 5
_QUIET = frozenset({TaskStatus.NOT_STARTED, TaskStatus.DONE, TaskStatus.SKIPPED})
_OVER = frozenset({PlanInstanceStatus.DONE, PlanInstanceStatus.CANCELLED})


class View(Protocol):
    """Shows a run as it moves; used as a context, within which it owns the screen."""

    def show(self, state: PlanState, recorded: Recorded) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Silence:
    """For --json, where the last word is the only one."""

    def show(self, state: PlanState, recorded: Recorded) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


def _teller(state: PlanState) -> Storyteller:
    return Storyteller(state.plan, (one.request for one in state.questions.values()))


class Lines(Silence):
    """Every event as a line, for pipes and logs."""

    def __init__(self, state: PlanState) -> None:
        self._teller = _teller(state)

    def show(self, state: PlanState, recorded: Recorded) -> None:
        say(*(str(line) for line in self._teller.tell(recorded)))


class LiveTable:
    """The tasks with their status, and below them the last things that happened."""

    def __init__(self, state: PlanState) -> None:
        self._teller = _teller(state)
        self._told: deque[Line] = deque(maxlen=_LINES_KEPT)
        self._live: Live | None = None
        self._state = state

    def show(self, state: PlanState, recorded: Recorded) -> None:
        self._state = state
        self._told.extend(line for line in self._teller.tell(recorded) if line.who)
        if self._live is not None:
            self._live.update(self._picture())

    def __enter__(self) -> Self:
        self._live = Live(self._picture(), console=console(), refresh_per_second=12)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._told.clear()
            self._live.update(self._picture(), refresh=True)
            self._live.stop()
            self._live = None

    def _picture(self) -> RenderableType:
        lines = [
            Text(str(line), style="dim", no_wrap=True, overflow="ellipsis") for line in self._told
        ]
        return Group(task_table(self._state, console().height - _LINES_KEPT - 4), *lines)


def task_table(state: PlanState, room: int = 1000) -> Table:
    """The tasks of a run; in a plan too long for the screen, those that matter now."""
    plan = state.plan.plan
    tasks = plan.tasks
    if len(tasks) > max(room, 5):
        tasks = tuple(one for one in tasks if state.task(one.task_id).status not in _QUIET)
        tasks = tasks[: max(room, 5)]
    made = table("task", "name", "status", "")
    for task in tasks:
        status = state.task(task.task_id).status
        made.add_row(
            task.task_id, visible(task.name), status_text(status.value), _note(state, task.task_id)
        )
    made.add_row("", f"{state.done_tasks} of {len(plan.tasks)} tasks done", Text(""), "")
    return made


def _note(state: PlanState, task_id: str) -> Text:
    """What the task's listener is at, where that is more than the status says."""
    for listener_id, step in state.steps.items():
        if state.plan.listener(listener_id).target != task_id:
            continue
        if step.status is StepStatus.RUNNING and step.attempt > 1:
            return Text(f"attempt {step.attempt}", style="dim")
        if step.status is StepStatus.BACKOFF and step.failure is not None:
            return Text(f"attempt {step.attempt} failed, trying again", style="yellow")
        if step.status is StepStatus.WAITING:
            return Text("waits for a person", style="magenta")
        if step.status is StepStatus.FAILED:
            return Text("failed", style="red")
    return Text("")


async def follow(
    state: PlanState,
    events: AsyncGenerator[Recorded, None],
    view: View,
    at_rest: Callable[[PlanState], Awaitable[bool]],
) -> PlanState:
    """Show the events as they come until the run rests; its state then."""
    async with aclosing(events) as coming:
        async for recorded in coming:
            state = replay(state, [(recorded.at, recorded.event)])
            view.show(state, recorded)
            if await at_rest(state):
                return state
    return state


def rests(state: PlanState) -> bool:
    """Nothing more will happen by itself: the run is over, or waits for a person."""
    if state.status in _OVER:
        return True
    if state.status not in (PlanInstanceStatus.PAUSE, PlanInstanceStatus.ERROR):
        return False
    return not any(_moves(state, listener_id) for listener_id in state.steps)


def _moves(state: PlanState, listener_id: str) -> bool:
    step = state.steps[listener_id]
    if step.status is StepStatus.RUNNING:
        return step.child_status not in (PlanInstanceStatus.PAUSE, PlanInstanceStatus.ERROR)
    if step.status is StepStatus.BACKOFF:
        return state.status is not PlanInstanceStatus.ERROR
    return step.status is StepStatus.CONSULTING


def asks_or_rests(state: PlanState) -> bool:
    """As `rests`, and also as soon as a person is asked."""
    return state.status is PlanInstanceStatus.PAUSE or rests(state)
