"""What a condition is made of, and where in its text a mistake stands.

The parser (`condition_grammar`) is loaded with the first condition that is read: a program that
asks nothing of conditions starts faster.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.errors import ConditionError
from holdfast.language.facts import Path
from holdfast.model.plan import TaskStatus
from holdfast.model.values import Json

MAX_LENGTH: Final = 2_000
ARGUMENTS: Final = "args"
STATUSES: Final = frozenset(status.value for status in TaskStatus)

_COLUMNS_SHOWN_BEFORE: Final = 60
_COLUMNS_SHOWN_AFTER: Final = 20


@dataclass(frozen=True, slots=True)
class Literal:
    value: Json
    column: int


@dataclass(frozen=True, slots=True)
class Status:
    name: str
    column: int


@dataclass(frozen=True, slots=True)
class Read:
    path: Path
    column: int


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]
    column: int


@dataclass(frozen=True, slots=True)
class Compare:
    left: Node
    operator: str
    right: Node
    column: int


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node
    column: int


@dataclass(frozen=True, slots=True)
class Both:
    operands: tuple[Node, ...]
    column: int


@dataclass(frozen=True, slots=True)
class Either:
    operands: tuple[Node, ...]
    column: int


Node: TypeAlias = Literal | Status | Read | Items | Compare | Not | Both | Either


class Misread(Exception):
    """A mistake and its column; becomes a ConditionError where the whole text is known."""

    def __init__(self, reason: str, column: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.column = column

    def within(self, text: str) -> ConditionError:
        return ConditionError(self.reason, self.column, _excerpt(text, self.column))


def read_nodes(text: str, *, of_arguments: bool = False) -> Node:
    """The condition as nodes, or Misread; `of_arguments`, every path starts with `args`."""
    from holdfast.language import condition_grammar

    return condition_grammar.read_nodes(text, of_arguments=of_arguments)


def _excerpt(text: str, column: int) -> str:
    start = max(0, column - 1 - _COLUMNS_SHOWN_BEFORE)
    before = _one_line(text[start : column - 1])
    after = _one_line(text[column - 1 : column - 1 + _COLUMNS_SHOWN_AFTER])
    return f"  {before}{after}\n  {' ' * _display_width(before)}^"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _display_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
