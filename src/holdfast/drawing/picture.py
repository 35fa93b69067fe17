"""What a drawing shows, before it is decided where or in which medium.

Boxes are of two kinds: *solid* ones (tasks, states) and *dashed* ones between them
(listeners, moves). A box's condition is one of a few words that every medium shows thrice:
as a colour, as an icon, and in the note that says it in full. Texts of ours are messages, which
`in_language` puts into the reader's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from holdfast.i18n.catalogue import worded


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
    """An arrow between two nodes, named by their places in the picture; `classes` as a node's."""

    source: int
    target: int
    label: str = ""
    failure: bool = False
    classes: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def in_language(picture: Picture, language: str) -> Picture:
    return replace(
        picture,
        title=worded(picture.title, language),
        description=worded(picture.description, language),
        nodes=tuple(_in_language(one, language) for one in picture.nodes),
    )


def _in_language(node: Node, language: str) -> Node:
    label, note, hint = (worded(one, language) for one in (node.label, node.note, node.hint))
    return replace(node, label=label, note=note, hint=hint)
