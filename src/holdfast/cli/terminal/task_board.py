"""The board: a conversation as it moves, for a person at a terminal.

Its goal and phase, the tasks with their state and what came of them in a line each, and
how far it is. Whoever drives it has keys, which are heard as long as the board is shown.
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
from holdfast.core.conversation.briefing import spelled_result
from holdfast.core.conversation.state import ConversationState
from holdfast.core.conversation.tables import PAUSABLE, THINKING
from holdfast.core.run.state import RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.model.conversation import EngineState, SubTask
from holdfast.runtime.hub import Recorded, Spoken
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


class Board:
    """`actions` are what keys do; none where somebody only looks."""

    def __init__(
        self, state: ConversationState, actions: Mapping[str, KeyAction] | None = None
    ) -> None:
        self._state = state
        self._actions = actions or {}
        self._live: Live | None = None
        self._shown = ExitStack()

    def show(self, state: RunState, recorded: Recorded) -> None:
        assert isinstance(state, ConversationState)
        self._state = state

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
        keys = self._actions if self._live is not None else ()
        return picture(self._state, console().height - _FRAME, key_words(self._state, keys))


def picture(state: ConversationState, room: int = 1000, keys: str = "") -> RenderableType:
    titles = (
        Text(visible(state.text), style="bold"),
        Text(f"{state.run_id} {PHASES[state.phase]}{_PAUSING if state.pausing else ''}"),
    )
    parts: list[RenderableType] = [_line(one) for one in titles if one.plain]
    if state.total:
        parts += [_task_table(state, room), _progress(state)]
    if keys:
        parts.append(Text(keys, style="dim"))
    return Group(*parts)


def key_words(state: ConversationState, keys: Mapping[str, KeyAction] | tuple[()]) -> str:
    """The keys that mean something just now."""
    if not keys or state.phase in _AT_REST:
        return ""
    words = [
        "p pauses" if state.phase in (*PAUSABLE, *THINKING) and not state.pausing else "",
        "r resumes" if state.phase is EngineState.PAUSED or state.pausing else "",
        "q leaves",
    ]
    return "   ".join(one for one in words if one)


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _progress(state: ConversationState) -> RenderableType:
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=state.total, completed=state.completed, width=_BAR)
    words = f"{state.progress:.0%}  {state.completed} of {counted(state.total)} done"
    row.add_row(bar, words + (f", {state.skipped} skipped" if state.skipped else ""))
    return row


def _task_table(state: ConversationState, room: int) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("task", "what", "state", ""):
        made.add_column(column, no_wrap=True, overflow="ellipsis")
    for step_id, task in _shown_tasks(state, max(room, _FEWEST)):
        status, words = _standing(state, step_id, task)
        made.add_row(visible(task.id), visible(task.description), status_text(status), words)
    return made


def _shown_tasks(state: ConversationState, room: int) -> list[tuple[str, SubTask]]:
    """All of them; where there are too many for the screen, those that matter now."""
    named = [f"t{number}" for number in range(1, state.total + 1)]
    tasks = [(step_id, state.tasks[step_id]) for step_id in named]
    if len(tasks) > room:
        tasks = [one for one in tasks if one[1].status not in _QUIET]
    return tasks[:room]


def _standing(state: ConversationState, step_id: str, task: SubTask) -> tuple[str, Text]:
    """A task's state in one word, and what is to be said about it."""
    if task.skipped:
        return "skipped", Text(visible(task.skipped))
    if task.status in ("completed", "finished"):
        return task.status, Text(visible(spelled_result(task.result)))
    step = state.steps.get(step_id)
    if step is None:
        return task.status, Text("")
    if step.status is StepStatus.WAITING or step.child_status == "pause":
        return task.status, Text("waits for a person", style="magenta")
    words = "; ".join(_troubles(state, step_id, step))
    style = "red" if step.status is StepStatus.FAILED else "yellow"
    return task.status, Text(words, style=style)


def _troubles(state: ConversationState, step_id: str, step: StepState) -> Iterator[str]:
    if step.failure is not None:
        yield visible(step.failure.message)
    if words := try_words(state, step_id, state.settings.retry.attempts):
        yield words
