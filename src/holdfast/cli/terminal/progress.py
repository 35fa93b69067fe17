"""A run as it moves. In a terminal a plan is a live table, a chat its transcript and a
conversation a board of tasks; without one every event is a line.

`follow` takes the updates of a backend and ends when the run rests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.backend import Updates
from holdfast.cli.shell import Settings
from holdfast.cli.terminal.screen import console, say, status_text, table
from holdfast.cli.terminal.task_board import TaskBoard
from holdfast.cli.terminal.transcript import Transcript
from holdfast.cli.terminal.untrusted_text import told
from holdfast.language.moments import utc_text
from holdfast.model.plan import TaskStatus
from holdfast.model.run import RunKind, RunStatus, StepStatus
from holdfast.runtime.hub import Spoken
from holdfast.views.records import PlanView, RunView, StepView, TimelineEntry
from holdfast.views.stories.attempts import try_words
from holdfast.views.stories.text import visible

_LINES_KEPT = 5
_FRAMES = 12
"""Pictures a second; however many events there are, no more are drawn."""

_QUIET = frozenset({TaskStatus.NOT_STARTED, TaskStatus.DONE, TaskStatus.SKIPPED})


class Display(Protocol):
    """Shows a run as it moves; used as a context, within which it owns the screen."""

    @property
    def wants_views(self) -> bool:
        """Whether the run itself is shown, beside its events."""

    def show(self, entry: TimelineEntry) -> None: ...

    def update(self, run: RunView) -> None: ...

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
    """For --json, where the report at the end is all."""

    wants_views = False

    def show(self, entry: TimelineEntry) -> None:
        return

    def update(self, run: RunView) -> None:
        return

    def speak(self, spoken: Spoken) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class Lines(Silence):
    """Every event as a line, for pipes and logs."""

    def show(self, entry: TimelineEntry) -> None:
        for line in entry.lines() if entry.told else ():
            say(*told(line))


class LiveTable(Silence):
    """The tasks of a plan with their status, and below them the last events."""

    wants_views = True

    def __init__(self, run: RunView) -> None:
        self._run = run
        self._told: deque[str] = deque(maxlen=_LINES_KEPT)
        self._live: Live | None = None

    def show(self, entry: TimelineEntry) -> None:
        if entry.told and entry.who:
            self._told.append(entry.lines()[0])

    def update(self, run: RunView) -> None:
        self._run = run

    def __enter__(self) -> Self:
        picture, screen = self._picture, console()
        self._live = Live(get_renderable=picture, console=screen, refresh_per_second=_FRAMES)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._told.clear()
            self._live.refresh()
            self._live.stop()
            self._live = None

    def _picture(self) -> RenderableType:
        lines = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self._told]
        return Group(task_table(self._run, console().height - _LINES_KEPT - 4), *lines)


def task_table(run: RunView, room: int = 1000) -> Table:
    """The tasks of a plan; where there are too many for the screen, those that matter now."""
    plan = run.plan
    assert plan is not None
    tasks = plan.tasks
    if len(tasks) > max(room, 5):
        tasks = tuple(one for one in tasks if one.status not in _QUIET)[: max(room, 5)]
    made = table("task", "name", "status", "")
    for task in tasks:
        note = _note(run, plan, task.task_id)
        status = status_text(task.condition.value, visible(task.words))
        made.add_row(task.task_id, visible(task.name), status, note)
    made.add_row("", f"{plan.done} of {len(plan.tasks)} tasks done", Text(""), "")
    return made


def _note(run: RunView, plan: PlanView, task_id: str) -> Text:
    """What the task's listener is at, where that is more than the status says."""
    for step in plan.steps:
        if step.target == task_id and (note := _step_note(run, step)).plain:
            return note
    return Text("")


def _step_note(run: RunView, step: StepView) -> Text:
    if step.status is StepStatus.RUNNING and step.child_id is not None:
        waits = step.child_status == RunStatus.PAUSE
        return _WAITS.copy() if waits else Text(f"as {step.child_id}", style="dim")
    if words := try_words(run, step):
        return Text(words, style="yellow" if step.status is StepStatus.BACKOFF else "dim")
    if step.waits_until is not None:
        return Text(f"waits until {utc_text(step.waits_until)}", style="magenta")
    if step.status is StepStatus.WAITING:
        return _WAITS.copy()
    return Text("failed", style="red") if step.status is StepStatus.FAILED else Text("")


_WAITS = Text("waits for a person", style="magenta")


def display_of(settings: Settings, run: RunView) -> Display:
    """How the run is shown: nothing for JSON, lines without a terminal, else by its kind."""
    if settings.as_json:
        return Silence()
    if not settings.interactive:
        return Lines()
    match run.kind:
        case RunKind.PLAN:
            return LiveTable(run)
        case RunKind.CHAT:
            return Transcript()
        case RunKind.CONVERSATION:
            return TaskBoard(run)


@dataclass(frozen=True, slots=True)
class Point:
    """How far a run was followed: what it was like after event `version`."""

    run_id: str
    version: int
    status: RunStatus = RunStatus.NOT_STARTED
    rests: bool = False

    @classmethod
    def of(cls, run: RunView) -> Self:
        return cls(run.run_id, run.version, run.status, run.rests)

    def after(self, entry: TimelineEntry) -> Point:
        return Point(self.run_id, entry.seq, entry.status or self.status, entry.rests)

    @property
    def asks_or_rests(self) -> bool:
        """As `rests`, and also as soon as a person is asked."""
        return self.status is RunStatus.PAUSE or self.rests


async def follow(
    point: Point,
    updates: Updates,
    display: Display,
    at_rest: Callable[[Point], Awaitable[bool]],
) -> Point:
    """Show the updates as they come until the run rests; how far it was followed then."""
    async with aclosing(updates) as coming:
        async for one in coming:
            match one:
                case Spoken():
                    display.speak(one)
                    continue
                case RunView():
                    display.update(one)
                    continue
                case TimelineEntry():
                    point = point.after(one)
                    display.show(one)
            if await at_rest(point):
                return point
    return point
