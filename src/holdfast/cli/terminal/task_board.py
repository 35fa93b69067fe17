"""A conversation as it moves, for a person at a terminal: its goal and phase, the tasks with their
state and result in a line each, and how many are done.

The keys that pause, resume and leave are read as long as the board is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.terminal.keys import KeyAction, Keys
from holdfast.cli.terminal.screen import console, status_text
from holdfast.model.conversation import EngineState
from holdfast.model.run import StepStatus
from holdfast.runtime.hub import Spoken
from holdfast.views.records import (
    ConversationTask,
    ConversationView,
    RunView,
    StepView,
    TimelineEntry,
)
from holdfast.views.results import spelled_result
from holdfast.views.stories.attempts import try_words
from holdfast.views.stories.conversations import PHASES, counted
from holdfast.views.stories.text import visible

_BAR = 40
_FEWEST = 5
_FRAME = 8
"""Lines around the tasks."""

_FRAMES = 12
"""Pictures a second; however many events there are, no more are drawn."""

_PAUSING = "; it will pause before the first task"

_QUIET = frozenset({"pending", "scheduled", "completed", "skipped"})
_AT_REST = frozenset({EngineState.COMPLETED, EngineState.ERROR, EngineState.IDLE})


class TaskBoard:
    """`actions` are what keys do; none where the conversation is only watched."""

    wants_views = True

    def __init__(self, run: RunView, actions: Mapping[str, KeyAction] | None = None) -> None:
        self._run = run
        self._actions = actions or {}
        self._live: Live | None = None
        self._shown = ExitStack()

    def show(self, entry: TimelineEntry) -> None:
        return

    def update(self, run: RunView) -> None:
        self._run = run

    def speak(self, spoken: Spoken) -> None:
        return

    def __enter__(self) -> Self:
        with ExitStack() as shown:
            if self._actions:
                shown.enter_context(Keys(self._actions))
            live = Live(get_renderable=self._picture, console=console(), refresh_per_second=_FRAMES)
            self._live = shown.enter_context(live)
            self._shown = shown.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._live = None
        self._shown.close()

    def _picture(self) -> RenderableType:
        keys = self._actions if self._live is not None else {}
        return picture(self._run, console().height - _FRAME, keys)


def picture(
    run: RunView, room: int = 1000, keys: Mapping[str, KeyAction] | None = None
) -> RenderableType:
    view = run.conversation
    assert view is not None
    told = f"is {run.status}" if run.over else PHASES[view.phase]
    titles = (
        Text(visible(view.text), style="bold"),
        Text(f"{run.run_id} {told}{_PAUSING if view.pausing else ''}"),
    )
    parts: list[RenderableType] = [_line(one) for one in titles if one.plain]
    if view.total:
        parts += [_task_table(run, view, room), _progress(view)]
    if words := key_words(view, keys or {}):
        parts.append(Text(words, style="dim"))
    return Group(*parts)


def key_words(view: ConversationView, keys: Mapping[str, KeyAction]) -> str:
    """The keys that mean something just now."""
    if not keys or view.phase in _AT_REST:
        return ""
    words = [
        "p pauses" if view.pausable else "",
        "r resumes" if view.phase is EngineState.PAUSED or view.pausing else "",
        "q leaves",
    ]
    return "   ".join(one for one in words if one)


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _progress(view: ConversationView) -> RenderableType:
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=view.total, completed=view.completed, width=_BAR)
    words = f"{view.progress:.0%}  {view.completed} of {counted(view.total)} done"
    row.add_row(bar, words + (f", {view.skipped} skipped" if view.skipped else ""))
    return row


def _task_table(run: RunView, view: ConversationView, room: int) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("task", "what", "state", ""):
        made.add_column(column, no_wrap=True, overflow="ellipsis")
    steps = {one.step_id: one for one in view.steps if not one.put_aside}
    for one in _shown_tasks(view, max(room, _FEWEST)):
        status, words = _standing(run, one, steps.get(one.step_id))
        task = one.task
        made.add_row(visible(task.id), visible(task.description), status_text(status), words)
    return made


def _shown_tasks(view: ConversationView, room: int) -> tuple[ConversationTask, ...]:
    """All of them; where there are too many for the screen, those that matter now."""
    tasks = view.tasks
    if len(tasks) > room:
        tasks = tuple(one for one in tasks if one.task.status not in _QUIET)
    return tasks[:room]


def _standing(run: RunView, shown: ConversationTask, step: StepView | None) -> tuple[str, Text]:
    """A task's state in one word, and what is to be said about it."""
    task = shown.task
    if task.skipped:
        return "skipped", Text(visible(task.skipped))
    if task.status in ("completed", "finished"):
        return task.status, Text(visible(spelled_result(task.result)))
    if run.over:
        return shown.words, Text("")
    if step is None:
        return task.status, Text("")
    if step.status is StepStatus.WAITING or step.child_status == "pause":
        return task.status, Text("waits for a person", style="magenta")
    style = "red" if step.status is StepStatus.FAILED else "yellow"
    return task.status, Text("; ".join(_troubles(run, step)), style=style)


def _troubles(run: RunView, step: StepView) -> Iterator[str]:
    if step.error is not None:
        yield visible(step.error)
    if words := try_words(run, step):
        yield words
