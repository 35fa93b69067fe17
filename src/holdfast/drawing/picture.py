"""What a drawing shows, before it is decided where or in which medium.

Boxes are of two kinds: *solid* ones (tasks, states) and *dashed* ones between them
(listeners, moves). A box's condition is one of a few words that every medium shows thrice:
as a colour, as an icon, and in the note that says it in full. Notes are said in English, or
as the caller wants them said: the English phrase is the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol


class Condition(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    RETRYING = "retrying"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


GLYPHS: Final[Mapping[Condition, str]] = {
    Condition.IDLE: "○",
    Condition.RUNNING: "◐",
    Condition.RETRYING: "↻",
    Condition.WAITING: "‖",
    Condition.DONE: "✓",
    Condition.FAILED: "✕",
    Condition.SKIPPED: "»",
    Condition.CANCELLED: "⊘",
}


class Say(Protocol):
    """Says an English phrase, perhaps in another language; `values` fill its braces."""

    def __call__(self, phrase: str, /, **values: object) -> str: ...


def english(phrase: str, /, **values: object) -> str:
    return phrase.format_map(values)


@dataclass(frozen=True, slots=True)
class Node:
    """One box; `classes` are the words that style sheets may use, without the condition.

    `due` is when it will move by itself, in seconds since the epoch.
    """

    id: str
    label: str
    note: str = ""
    classes: str = "task"
    dashed: bool = False
    condition: Condition | None = None
    hint: str = ""
    due: float | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow between two nodes, named by their places in the picture."""

    source: int
    target: int
    label: str = ""
    failure: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
