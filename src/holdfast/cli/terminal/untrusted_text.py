"""Foreign text: what a model, a tool or a person wrote, laid out so that it cannot pass for ours.

A terminal that wraps a long line begins the next row at its edge, where only our own lines
begin; a text with the right padding would forge one. So nothing foreign is left to the
terminal to wrap: it is broken here, at the screen's width, and every row that it reaches
begins with a bar.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from rich.cells import cell_len

from holdfast.views.stories.text import visible, visible_lines

BAR = "│ "
WITHOUT_TERMINAL = 78
"""Columns of 80, less what tools that count bytes make of the bar."""

_NARROWEST = 20
_USUAL = 80
_LEAST_ROOM = 10
_TAB = "    "
_BELOW_THE_CLOCK = " " * 10 + BAR
_WIDENS = "\ufe0f"


def screen_width() -> int:
    """The columns that a row may take; the last is left free, as terminals differ there.

    The terminal itself is asked: COLUMNS in the environment may be stale, and a row that is
    too long would be wrapped where no bar stands.
    """
    if not sys.stdout.isatty():
        return WITHOUT_TERMINAL
    columns = os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL
    return max(columns, _NARROWEST) - 1


def rows(text: str, first: str = BAR, rest: str = BAR) -> Iterator[str]:
    """`text` with its lines, broken at the screen's width; `rest` begins all rows but one."""
    head = first
    for line in _printable(text).split("\n"):
        for piece in _pieces(line, head, rest):
            yield head + piece
            head = rest


def told(line: str, rest: str = _BELOW_THE_CLOCK) -> Iterator[str]:
    """A line of ours with foreign words in it: one line for pipes and logs, rows for a terminal."""
    return rows(line, "", rest) if sys.stdout.isatty() else iter((visible(line, len(line)),))


def _pieces(line: str, head: str, rest: str) -> Iterator[str]:
    piece, room = "", _room(head)
    for character in line:
        width = _cells(character)
        if width > room:
            yield piece
            piece, room = "", _room(rest)
        piece += character
        room -= width
    yield piece


def _room(prefix: str) -> int:
    return max(screen_width() - cell_len(prefix), _LEAST_ROOM)


def _cells(character: str) -> int:
    """The selector that asks for a picture makes its neighbour a column wider."""
    return 1 if character == _WIDENS else cell_len(character)


def _printable(text: str) -> str:
    return visible_lines(text.replace("\t", _TAB))


class Speech:
    """Foreign text that comes in pieces, with the bar on each row as soon as it begins."""

    def __init__(self) -> None:
        self._room: int | None = None

    def write(self, text: str) -> None:
        sys.stdout.write("".join(self._laid_out(_printable(text))))
        sys.stdout.flush()

    def end(self) -> None:
        """Finish the row that is begun."""
        if self._room is not None:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._room = None

    def _laid_out(self, text: str) -> Iterator[str]:
        for character in text:
            if character == "\n":
                yield "\n" if self._room is not None else f"{BAR}\n"
                self._room = None
                continue
            width = _cells(character)
            if self._room is not None and width > self._room:
                yield "\n"
                self._room = None
            if self._room is None:
                yield BAR
                self._room = _room(BAR)
            yield character
            self._room -= width
