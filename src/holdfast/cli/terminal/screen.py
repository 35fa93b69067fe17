"""The screen: everything people read goes through here.

What a plan, a tool or a person wrote is shown as text and never interpreted: no
markup, and control and direction characters made visible, so that nothing in a run
can move the cursor or reorder a line. rich measures wide characters rightly.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.model.plan import PlanInstanceStatus

WHOLE = frozenset({"question", "run", "task", "status", "lesson"})
"""Columns that are never broken: an id in two pieces cannot be copied."""

_PIPE_WIDTH = 200
_READABLE = 10

COLOURS: dict[str, str] = {
    PlanInstanceStatus.RUNNING: "cyan",
    PlanInstanceStatus.CONTINUE: "cyan",
    PlanInstanceStatus.PAUSE: "magenta",
    PlanInstanceStatus.DONE: "green",
    PlanInstanceStatus.ERROR: "bold red",
    PlanInstanceStatus.CANCELLED: "dim",
    "retrying": "yellow",
    "waiting": "magenta",
    "idle": "dim",
    "skipped": "dim",
    "pending": "dim",
    "scheduled": "dim",
    "finished": "green",
    "completed": "green",
    "failed": "bold red",
}


class Screen(Console):
    def on_broken_pipe(self) -> None:
        """Called while the error is handled; `main` knows what to do about it. The SystemExit
        that rich raises instead would stop the event loop before its tasks have ended."""
        raise


def console() -> Console:
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Screen(highlight=False, markup=False, emoji=False, width=width)


def say(*lines: str | Text) -> None:
    screen = console()
    for line in lines:
        screen.print(line if isinstance(line, Text) else Text(line), soft_wrap=True)


def status_text(status: str, words: str = "") -> Text:
    """In the status's colour; its name, where nothing more is to be said."""
    return Text(words or status, style=COLOURS.get(status, ""))


def table(*columns: str) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in WHOLE)
    return made


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """A table; where the screen is too narrow for one, a paragraph for each row."""
    cells = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    if _needed_width(columns, cells) > console().width:
        for row in cells:
            _print_paragraph(columns, row)
        return
    made = table(*columns)
    for row in cells:
        made.add_row(*row)
    console().print(made)


def _needed_width(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
    """What it takes to keep ids whole and the other columns readable."""
    widths = [
        max([cell_len(column), *(row[i].cell_len for row in rows)])
        for i, column in enumerate(columns)
    ]
    pairs = zip(columns, widths, strict=True)
    return sum(2 + (width if name in WHOLE else min(width, _READABLE)) for name, width in pairs)


def _print_paragraph(columns: Sequence[str], row: Sequence[Text]) -> None:
    first, *others = zip(columns, row, strict=True)
    say(first[1])
    for name, cell in others:
        if cell.plain:
            _print_pair(name, cell)


def _print_pair(name: str, cell: Text) -> None:
    """An id is left to the terminal to wrap, so that it can be copied; all else stays aside."""
    if name in WHOLE:
        say(Text.assemble(f"  {name}: ", cell))
        return
    pair = Table.grid()
    pair.add_column(no_wrap=True)
    pair.add_column(overflow="fold")
    pair.add_row(f"  {name}: ", cell)
    console().print(pair)
