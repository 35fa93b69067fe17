"""Progress: a run as it moves. In a terminal a plan is a live table, a session its transcript
and a conversation a board; elsewhere all are lines.

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

from holdfast.cli.shell import Settings
from holdfast.cli.terminal.screen import console, say, status_text, table
from holdfast.cli.terminal.task_board import Board
from holdfast.cli.terminal.transcript import Transcript
from holdfast.cli.terminal.untrusted_text import told
from holdfast.core.conversation.state import CONFIRM, ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.graph import task_standing
from holdfast.model.plan import TaskStatus
from holdfast.model.run import RunStatus
from holdfast.runtime.hub import AskedBelow, Recorded, Spoken
from holdfast.runtime.machines import machine_of, replay
from holdfast.views.stories.attempts import try_words
from holdfast.views.stories.lines import Line
from holdfast.views.stories.storyteller import storyteller
from holdfast.views.stories.text import visible

_LINES_KEPT = 5
_QUIET = frozenset({TaskStatus.NOT_STARTED, TaskStatus.DONE, TaskStatus.SKIPPED})
_OVER = frozenset({RunStatus.DONE, RunStatus.CANCELLED})
_STUCK = frozenset({RunStatus.PAUSE, RunStatus.ERROR})


class View(Protocol):
    """Shows a run as it moves; used as a context, within which it owns the screen."""

    def show(self, state: RunState, recorded: Recorded) -> None: ...

    def speak(self, spoken: Spoken) -> None:
        """Words of a model that has not finished."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Silence:
    """For --json, where the last word is the only one."""

    def show(self, state: RunState, recorded: Recorded) -> None:
        return

    def speak(self, spoken: Spoken) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class Lines(Silence):
    """Every event as a line, for pipes and logs."""

    def __init__(self, state: RunState) -> None:
        self._teller = storyteller(state)

    def show(self, state: RunState, recorded: Recorded) -> None:
        for line in self._teller.tell(recorded):
            say(*told(str(line)))


class LiveTable:
    """The tasks with their status, and below them the last things that happened."""

    def __init__(self, state: PlanState) -> None:
        self._teller = storyteller(state)
        self._told: deque[Line] = deque(maxlen=_LINES_KEPT)
        self._live: Live | None = None
        self._state = state

    def show(self, state: RunState, recorded: Recorded) -> None:
        assert isinstance(state, PlanState)
        self._state = state
        self._told.extend(line for line in self._teller.tell(recorded) if line.who)
        if self._live is not None:
            self._live.update(self._picture())

    def speak(self, spoken: Spoken) -> None:
        return

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
        _, status = task_standing(state, task.task_id)
        made.add_row(
            task.task_id, visible(task.name), status_text(status), _note(state, task.task_id)
        )
    made.add_row("", f"{state.done_tasks} of {len(plan.tasks)} tasks done", Text(""), "")
    return made


def _note(state: PlanState, task_id: str) -> Text:
    """What the task's listener is at, where that is more than the status says."""
    for listener_id, step in state.steps.items():
        if state.plan.listener(listener_id).target != task_id:
            continue
        if step.status is StepStatus.RUNNING and step.child_id is not None:
            return _child_note(step)
        most = state.plan.listener(listener_id).listener.retry.attempts
        if words := try_words(state, listener_id, most):
            return Text(words, style="yellow" if step.status is StepStatus.BACKOFF else "dim")
        if step.status is StepStatus.WAITING:
            return Text("waits for a person", style="magenta")
        if step.status is StepStatus.FAILED:
            return Text("failed", style="red")
    return Text("")


def _child_note(step: StepState) -> Text:
    if step.child_status == RunStatus.PAUSE:
        return Text("waits for a person", style="magenta")
    return Text(f"as {step.child_id}", style="dim")


def view_of(settings: Settings, state: RunState) -> View:
    """How the run is shown to whoever is there."""
    if settings.as_json:
        return Silence()
    if not settings.interactive:
        return Lines(state)
    if isinstance(state, ConversationState):
        return Board(state)
    return LiveTable(state) if isinstance(state, PlanState) else Transcript(state)


async def follow(
    state: RunState,
    events: AsyncGenerator[Recorded | Spoken | AskedBelow, None],
    view: View,
    at_rest: Callable[[RunState], Awaitable[bool]],
) -> RunState:
    """Show the events as they come until the run rests; its state then."""
    async with aclosing(events) as coming:
        async for one in coming:
            if isinstance(one, Spoken):
                view.speak(one)
                continue
            if isinstance(one, Recorded):
                state = replay(state, [(one.at, one.event)])
                view.show(state, one)
            if await at_rest(state):
                return state
    return state


def rests(state: RunState) -> bool:
    """Nothing more will happen by itself: the run is over, or waits for a person."""
    if state.status in _OVER:
        return True
    if state.status not in _STUCK or machine_of(state).goes_on_by_itself(state):
        return False
    if isinstance(state, ConversationState) and _has_more(state):
        return False
    return not any(_moves(state, step) for step in state.steps.values())


def _has_more(state: ConversationState) -> bool:
    """What its consumer has yet to hear of, or may have started beside what waits."""
    confirm = state.steps.get(CONFIRM)
    shown = confirm is not None and confirm.status is StepStatus.WAITING
    if state.held or shown or state.status is RunStatus.ERROR:
        return False
    ready = any(step.status is StepStatus.READY for step in state.steps.values())
    return ready or bool(state.untold) or (state.queue is not None and state.places > 0)


def _moves(state: RunState, step: StepState) -> bool:
    if step.status is StepStatus.RUNNING:
        return step.child_status not in _STUCK
    if step.status is StepStatus.BACKOFF:
        return state.status is not RunStatus.ERROR
    return step.status is StepStatus.CONSULTING


def asks_or_rests(state: RunState) -> bool:
    """As `rests`, and also as soon as a person is asked."""
    return state.status is RunStatus.PAUSE or rests(state)
