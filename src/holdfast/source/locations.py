"""Locations: where in its file each part of a plan stands.

A part is named by its path, such as `("listeners", 2, "success_output", "task_id")`; a
listener's action has no level of its own, as in the file. What the file does not spell
out is located where its nearest spelled-out owner stands, so every mistake has a location.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from holdfast.errors import Problem
from holdfast.i18n.message import msg
from holdfast.source.nodes import Mapping, Node, Scalar, Sequence

Path: TypeAlias = tuple[str | int, ...]
Location: TypeAlias = tuple[int, int]

MOST_REPORTED: Final = 100
LONGEST_MESSAGE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake and the part that has it; `line` and `column` lead further into a text."""

    path: Path
    message: str
    at_key: bool = False
    line: int = 0
    column: int = 0


_LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class Locations:
    """Lines and columns of a plan's keys and values, both from 1."""

    source: str = ""
    _values: dict[Path, Node] = field(default_factory=dict)
    _keys: dict[Path, Scalar] = field(default_factory=dict)
    _lines: list[str] | None = None

    def record(self, path: Path, node: Node) -> None:
        """Remember a node and everything below it."""
        self._values[path] = node
        if isinstance(node, Sequence):
            for index, item in enumerate(node.items):
                self.record((*path, index), item)
        elif isinstance(node, Mapping):
            for key, value in node.entries:
                self._keys[(*path, key.text)] = key
                self.record((*path, key.text), value)

    def value(self, path: Path) -> Location:
        node = self._nearest(path)
        return (node.line, node.column) if node else (1, 1)

    def key(self, path: Path) -> Location:
        """Where the key stands; that of its owner when there is no such key."""
        key = self._keys.get(path)
        return (key.line, key.column) if key else self.value(path)

    def inside(self, path: Path, line: int, column: int) -> Location:
        """A location within a text; its beginning when the text is folded or has escapes."""
        node = self._values.get(path)
        if not isinstance(node, Scalar):
            return self.value(path)
        first = node.line - 1 if node.style != "|" else node.line
        shift = self._shift(node, first + line - 1, line)
        if shift is None:
            return node.line, node.column
        return first + line, shift + max(column, 1)

    def _shift(self, node: Scalar, source_line: int, line: int) -> int | None:
        """How many columns stand before the text's line in the source."""
        wanted = node.text.split("\n")
        if self._lines is None:
            self._lines = _LINE_BREAK.split(self.source)
        if not 0 < line <= len(wanted) or source_line >= len(self._lines):
            return None
        start = node.column - 1 + len(node.style) if node.style != "|" else 0
        found = self._lines[source_line].find(wanted[line - 1], start)
        in_place = node.style == "|" or (line == 1 and found == start)
        return found if found >= 0 and in_place else None

    def _nearest(self, path: Path) -> Node | None:
        while path not in self._values:
            if not path:
                return None
            path = path[:-1]
        return self._values[path]


def to_problem(finding: Finding, file: str, locations: Locations | None) -> Problem:
    """What is reported of a finding; without locations its path says where."""
    if locations is None:
        return Problem(f"{_owner(finding.path)}{finding.message}", file)
    if finding.line:
        location = locations.inside(finding.path, finding.line, finding.column)
    else:
        location = locations.key(finding.path) if finding.at_key else locations.value(finding.path)
    return Problem(finding.message, file, *location)


def reported(problems: Iterable[Problem]) -> list[Problem]:
    """As many mistakes as a reader can use, in the file's order; the last says how many more."""
    found = sorted(problems, key=lambda one: (one.line, one.column))
    shown = found if len(found) <= MOST_REPORTED else found[: MOST_REPORTED - 1]
    return [*map(_shortened, shown), *_left_out(found[len(shown) :])]


def _shortened(problem: Problem) -> Problem:
    """A message may quote a name, and a name may be as long as the file."""
    if len(problem.message) <= LONGEST_MESSAGE:
        return problem
    return replace(problem, message=problem.message[: LONGEST_MESSAGE - 1] + "…")


def _left_out(others: list[Problem]) -> list[Problem]:
    message = msg("{n:,} more mistakes from here on; mend those above first", n=len(others))
    return [replace(one, message=message) for one in others[:1]]


def repeats(finding: Finding, broken: Set[Path]) -> bool:
    """Whether it only says again that a broken part is broken."""
    return any(finding.path[:length] in broken for length in range(len(finding.path) + 1))


def _owner(path: Path) -> str:
    words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(words).removeprefix(".") + ": "
