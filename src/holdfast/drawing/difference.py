"""Two versions of a plan in one picture: what is new, what is changed, what is gone.

Whatever both have stands once. A box or an arrow that only one of them has is marked, and so is a
listener that does something else than before: by a sign and a word, then by its line, and only
then by a colour. Boxes are the same where they stand for the same task or listener, arrows where
they join the same boxes and mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final, TypeAlias

from holdfast.core.storing import record_to_json
from holdfast.drawing.graph import picture_of
from holdfast.drawing.picture import Edge, Node, Picture
from holdfast.drawing.svg import STYLE, draw
from holdfast.i18n.message import joined, msg
from holdfast.language.strict import canonical_json
from holdfast.model.plan import Listener, Plan, Task


class Mark(StrEnum):
    """The values are the words that style sheets may use."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


SIGNS: Final[Mapping[Mark, str]] = {Mark.ADDED: "+", Mark.CHANGED: "~", Mark.REMOVED: "−"}
WORDS: Final[Mapping[Mark, str]] = {
    Mark.ADDED: msg("new"),
    Mark.CHANGED: msg("changed"),
    Mark.REMOVED: msg("gone"),
}

MARKED_STYLE: Final = """\
.holdfast-graph .node.added{--edge:var(--done);--fill:var(--done-fill)}
.holdfast-graph .node.changed{--edge:var(--waiting);--fill:var(--waiting-fill)}
.holdfast-graph .node.removed{--edge:var(--failed);--fill:var(--failed-fill)}
.holdfast-graph .node.added rect,.holdfast-graph .node.changed rect{stroke-width:2.5}
.holdfast-graph .node.removed rect{stroke-dasharray:1 3}
.holdfast-graph .node.removed .label{text-decoration:line-through}
.holdfast-graph .edge.added .line{stroke:var(--done);stroke-width:2.5}
.holdfast-graph .edge.added .head,.holdfast-graph .edge.added text{fill:var(--done)}
.holdfast-graph .edge.removed .line{stroke:var(--failed);stroke-width:1.75;stroke-dasharray:2 3}
.holdfast-graph .edge.removed .head,.holdfast-graph .edge.removed text{fill:var(--failed)}
"""
"""What a picture with marks needs beside `STYLE`."""

_Box: TypeAlias = tuple[str, bool, bool]
"""What a node stands for: its id, whether it is a listener, and whether it is the goal."""

_Arrow: TypeAlias = tuple[_Box, _Box, str, bool]


def render_difference(
    before: Plan, after: Plan, *, styled: bool = True, language: str = "en"
) -> str:
    """Both plans in one drawing, with its style sheet unless `styled` is false."""
    picture = picture_of_difference(before, after)
    return draw(picture, styled=styled, language=language, style=STYLE + MARKED_STYLE)


def picture_of_difference(before: Plan, after: Plan) -> Picture:
    old, new = picture_of(before), picture_of(after)
    known, kept, changed = set(_boxes(old)), set(_boxes(new)), _changed(before, after)
    gone = [node for node in old.nodes if _box(node) not in kept]
    marks = [_mark(box, known, changed) for box in _boxes(new)] + [Mark.REMOVED] * len(gone)
    nodes = tuple(map(_marked, (*new.nodes, *gone), marks))
    title = msg("{name}: what changes", name=new.title)
    return Picture(title, _description(marks), nodes, _edges(old, new, gone))


def _boxes(picture: Picture) -> Iterable[_Box]:
    return map(_box, picture.nodes)


def _box(node: Node) -> _Box:
    return node.id, node.dashed, "goal" in node.classes.split()


def _mark(box: _Box, known: set[_Box], changed: set[tuple[str, bool]]) -> Mark | None:
    if box not in known:
        return Mark.ADDED
    return Mark.CHANGED if box[:2] in changed else None


def _changed(before: Plan, after: Plan) -> set[tuple[str, bool]]:
    """The tasks and listeners that both have, and that are not the same in both."""
    tasks = {one.task_id: one for one in before.tasks}
    listeners = {one.listener_id: one for one in before.listeners}
    found = {(one.task_id, False) for one in after.tasks if _differs(tasks.get(one.task_id), one)}
    return found | {
        (one.listener_id, True)
        for one in after.listeners
        if _differs(listeners.get(one.listener_id), one)
    }


def _differs(old: Task | Listener | None, new: Task | Listener) -> bool:
    """By the spelling that digests are made of: in Python 1 is True."""
    if old is None or old is new:
        return False
    return canonical_json(record_to_json(old)) != canonical_json(record_to_json(new))


def _marked(node: Node, mark: Mark | None) -> Node:
    if mark is None:
        return node
    note = joined(", ", filter(None, [node.note, WORDS[mark]]))
    label = joined(" ", (SIGNS[mark], node.label))
    return replace(node, label=label, note=note, classes=f"{node.classes} {mark}")


def _description(marks: Iterable[Mark | None]) -> str:
    counts = Counter(marks)
    told = [joined(" ", (f"{counts[one]}", WORDS[one])) for one in Mark if counts[one]]
    return joined(", ", told) if told else msg("nothing changes")


def _edges(old: Picture, new: Picture, gone: Iterable[Node]) -> tuple[Edge, ...]:
    """The arrows of both; those that are gone lead between the boxes that stand for theirs."""
    places = {box: place for place, box in enumerate((*_boxes(new), *map(_box, gone)))}
    before = {_arrow(old, edge): edge for edge in old.edges}
    after = {_arrow(new, edge) for edge in new.edges}
    kept = (
        edge if _arrow(new, edge) in before else _signed(edge, Mark.ADDED) for edge in new.edges
    )
    lost = (
        replace(_signed(edge, Mark.REMOVED), source=places[arrow[0]], target=places[arrow[1]])
        for arrow, edge in before.items()
        if arrow not in after
    )
    return (*kept, *lost)


def _arrow(picture: Picture, edge: Edge) -> _Arrow:
    source, target = picture.nodes[edge.source], picture.nodes[edge.target]
    return _box(source), _box(target), edge.label, edge.failure


def _signed(edge: Edge, mark: Mark) -> Edge:
    return replace(edge, label=f"{SIGNS[mark]} {edge.label}".strip(), classes=mark.value)
