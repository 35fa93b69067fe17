"""Pictures as text for a terminal: what is solid in order, what is dashed beneath it.

A dashed box stands under the last of the solid boxes that lead to it, where it can happen;
under the others a line points there. Every line fits the width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.drawing.layout import rank
from holdfast.drawing.picture import GLYPHS, Edge, Node, Picture
from holdfast.language.display import clip, columns, pad

_GAP: Final = "  "
_LEAST_LABEL: Final = 16


@dataclass(frozen=True, slots=True)
class _Line:
    label: str
    note: str
    leads_to: str = ""


def outline(picture: Picture, width: int) -> str:
    lines = list(_lines(picture))
    table = _align(lines, width)
    head = [clip(picture.title, width), clip(picture.description, width), ""]
    return "\n".join([*head, *table]) + "\n"


def _align(lines: Sequence[_Line], width: int) -> list[str]:
    """Three columns; the last two keep their width as long as the first keeps a little."""
    leads_to = max((columns(line.leads_to) for line in lines), default=0)
    note = max((columns(line.note) for line in lines), default=0)
    gaps = len(_GAP) * 2
    label = max((columns(line.label) for line in lines), default=0)
    label = min(label, max(width - gaps - note - leads_to, _LEAST_LABEL, width // 3))
    note = min(note, max(width - gaps - label - leads_to, width // 4))
    return [
        clip(
            _GAP.join([pad(line.label, label), pad(line.note, note), line.leads_to]).rstrip(), width
        )
        for line in lines
    ]


def _lines(picture: Picture) -> Iterator[_Line]:
    order = _order(picture)
    before, after = _ends(picture)
    place = {index: number for number, index in enumerate(order)}
    homes = [max(sources, key=place.__getitem__, default=-1) for sources in before]
    for index in order:
        node = picture.nodes[index]
        if node.dashed and homes[index] >= 0:
            continue
        yield _line("", node, picture, after[index] if node.dashed else [])
        if not node.dashed:
            yield from _beneath(index, picture, homes, after)


def _order(picture: Picture) -> list[int]:
    links = [(edge.source, edge.target) for edge in picture.edges]
    ranks = rank(len(picture.nodes), links).ranks
    return sorted(range(len(picture.nodes)), key=lambda index: (ranks[index], index))


def _ends(picture: Picture) -> tuple[list[list[int]], list[list[Edge]]]:
    before: list[list[int]] = [[] for _ in picture.nodes]
    after: list[list[Edge]] = [[] for _ in picture.nodes]
    for edge in picture.edges:
        before[edge.target].append(edge.source)
        after[edge.source].append(edge)
    return before, after


def _beneath(
    index: int,
    picture: Picture,
    homes: Sequence[int],
    after: Sequence[Sequence[Edge]],
) -> Iterator[_Line]:
    children = [edge.target for edge in after[index]]
    for number, child in enumerate(children, 1):
        branch = "└─ " if number == len(children) else "├─ "
        if homes[child] == index:
            yield _line(branch, picture.nodes[child], picture, after[child])
        else:
            there = picture.nodes[homes[child]].id
            yield _Line(f"{branch}{picture.nodes[child].id}", "", f"↓ at {there}")


def _line(branch: str, node: Node, picture: Picture, leaving: Sequence[Edge]) -> _Line:
    icon = f"{GLYPHS[node.condition]} " if node.condition else ""
    leads_to = ", ".join(_target(edge, picture) for edge in leaving)
    return _Line(f"{branch}{icon}{node.label}", node.note, leads_to)


def _target(edge: Edge, picture: Picture) -> str:
    arrow = "✕→" if edge.failure else "→"
    return f"{arrow} {picture.nodes[edge.target].id} {edge.label}".strip()
