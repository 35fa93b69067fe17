"""Pictures as SVG: one self-contained text, no scripts, no ids that could clash in a page.

Colours come from custom properties that follow the reader's light or dark preference; a
page that inlines the drawing may set them itself, and may leave the style sheet out
(`styled=False`) and serve `STYLE` as a file of its own. Arrow heads and icons are plain
paths, because markers and symbols would need ids. A node that will move by itself says when
(`data-due`) and has room for a page to say it.

An arrow that would cross very many layers, or go far back, is a line that no eye can follow. It
becomes a short one to a *reference* that names its target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from holdfast.drawing.layout import Box, Layout, Link, Point, arrange, rank
from holdfast.drawing.picture import Condition, Edge, Node, Picture, in_language
from holdfast.i18n.message import msg
from holdfast.language.display import clip, columns, visible

_LABEL_COLUMNS: Final = 28
_NOTE_COLUMNS: Final = 40
_LABEL_SIZE: Final = 12.0
_NOTE_SIZE: Final = 10.0
_NARROW: Final = 0.62
_HEIGHT: Final = 42.0
_NEXT_TRY: Final = 105.0
_REFERENCE_HEIGHT: Final = 18.0
_INSET: Final = 12.0
_ICON: Final = 17.0
_MARGIN: Final = 16.0
_HEAD: Final = 7.0
_PARALLEL: Final = 11.0
_LINE_BESIDE_LABEL: Final = 34.0
# Arrows that lead back end below the middle, where no other arrow begins.
_BACK: Final = 10.0

_REACH: Final = 14
_REACH_OF_LARGE: Final = 8
_REACH_OF_FAILURE: Final = 6
_LARGE: Final = 600

ICONS: Final[Mapping[Condition, str]] = {
    Condition.IDLE: "M11 6A5 5 0 1 1 1 6A5 5 0 1 1 11 6",
    Condition.RUNNING: "M6 1A5 5 0 0 1 6 11ZA5 5 0 0 0 6 11A5 5 0 0 1 6 1",
    Condition.RETRYING: "M10.2 3.2A5 5 0 1 0 11 6M10.6 .6V3.6H7.6",
    Condition.WAITING: "M3.8 1.5V10.5M8.2 1.5V10.5",
    Condition.DONE: "M1.5 6.5L4.7 9.7L10.5 2.5",
    Condition.FAILED: "M2 2L10 10M10 2L2 10",
    Condition.SKIPPED: "M1.5 2L5.5 6L1.5 10M6.5 2L10.5 6L6.5 10",
    Condition.CANCELLED: "M11 6A5 5 0 1 1 1 6A5 5 0 1 1 11 6M2.5 9.5L9.5 2.5",
}

_LIGHT: Final = """\
--canvas:#fff;--ink:#1b1f24;--muted:#57606a;--line:#b6bec8;--label:#57606a;\
--plain:#f6f8fa;--idle:#6b7280;--idle-fill:#f1f2f5;--running:#1a6fd0;--running-fill:#e5f0fd;\
--retrying:#7a3fc4;--retrying-fill:#f2eafd;--waiting:#8a5a00;--waiting-fill:#fdf3d3;\
--done:#1a7f43;--done-fill:#e4f5e9;--failed:#b3261e;--failed-fill:#fdeaea;"""

_DARK: Final = """\
--canvas:#1b1f25;--ink:#e8eaed;--muted:#a3acb8;--line:#56606d;--label:#a3acb8;\
--plain:#242a32;--idle:#98a2ae;--idle-fill:#272c34;--running:#79b1ff;--running-fill:#12294a;\
--retrying:#c7a2ff;--retrying-fill:#2e2047;--waiting:#f5c451;--waiting-fill:#3a2c08;\
--done:#6bd48f;--done-fill:#14301f;--failed:#ff8f86;--failed-fill:#3f1614;"""

_COLOURED: Final = "".join(
    f".holdfast-graph .{one}{{--edge:var(--{one});--fill:var(--{one}-fill)}}\n"
    for one in ("idle", "running", "retrying", "waiting", "done", "failed")
)

STYLE: Final = f"""\
.holdfast-graph{{{_LIGHT}
font-family:system-ui,"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}}
@media (prefers-color-scheme:dark){{.holdfast-graph{{{_DARK}}}}}
.holdfast-graph .canvas{{fill:var(--canvas)}}
.holdfast-graph .node{{--edge:var(--muted);--fill:var(--plain)}}
.holdfast-graph .skipped,.holdfast-graph .cancelled{{--edge:var(--idle);--fill:var(--idle-fill)}}
{_COLOURED}\
.holdfast-graph .node rect{{fill:var(--fill);stroke:var(--edge);stroke-width:1.25}}
.holdfast-graph .dashed rect{{stroke-dasharray:4 3}}
.holdfast-graph .reference rect{{fill:none;stroke:none}}
.holdfast-graph .icon{{fill:none;stroke:var(--edge);stroke-width:1.75;stroke-linecap:round;\
stroke-linejoin:round}}
.holdfast-graph .running .icon{{fill:var(--edge);stroke-width:1.25}}
.holdfast-graph .label{{font-size:12px;fill:var(--ink)}}
.holdfast-graph .note{{font-size:10px;fill:var(--edge)}}
.holdfast-graph .reference .label{{font-size:10px;font-weight:400;fill:var(--muted)}}
.holdfast-graph .skipped .label,.holdfast-graph .cancelled .label{{fill:var(--muted)}}
.holdfast-graph .edge .line{{fill:none;stroke:var(--line);stroke-width:1.25}}
.holdfast-graph .edge .head{{fill:var(--line)}}
.holdfast-graph .edge text{{font-size:10px;fill:var(--label);stroke:var(--canvas);\
stroke-width:3px;paint-order:stroke;text-anchor:middle}}
.holdfast-graph .failure .line{{stroke:var(--failed);stroke-dasharray:5 3;opacity:.75}}
.holdfast-graph .failure .head{{fill:var(--failed)}}
.holdfast-graph .failure text,.holdfast-graph .failure .label{{fill:var(--failed)}}
"""


def draw(
    picture: Picture,
    *,
    styled: bool = True,
    reach_back: int = 6,
    language: str = "en",
    style: str = STYLE,
) -> str:
    """The drawing; arrows that lead back over more than `reach_back` layers are cut short."""
    shown = in_language(_with_references(picture, reach_back), language)
    links = _links(shown)
    boxes = [_box(node) for node in shown.nodes]
    layout = arrange(boxes, links, rank(len(boxes), links), _label_widths(shown.edges))
    return "".join(_document(shown, layout, style if styled else ""))


def _label_widths(edges: Sequence[Edge]) -> dict[int, float]:
    return {
        index: _room(clip(edge.label, _LABEL_COLUMNS), _NOTE_SIZE) + _LINE_BESIDE_LABEL
        for index, edge in enumerate(edges)
        if edge.label
    }


def _links(picture: Picture) -> list[Link]:
    return [(edge.source, edge.target) for edge in picture.edges]


def _with_references(picture: Picture, reach_back: int) -> Picture:
    links = _links(picture)
    ranking = rank(len(picture.nodes), links)
    forward = _REACH if len(picture.nodes) < _LARGE else _REACH_OF_LARGE
    nodes, edges = list(picture.nodes), []
    for index, (edge, link) in enumerate(zip(picture.edges, links, strict=True)):
        reach = reach_back if index in ranking.backward else forward
        if ranking.span(link) <= (min(reach, _REACH_OF_FAILURE) if edge.failure else reach):
            edges.append(edge)
            continue
        edges.append(replace(edge, target=len(nodes), label=""))
        nodes.append(_reference(picture.nodes[edge.target], edge))
    return replace(picture, nodes=tuple(nodes), edges=tuple(edges))


def _reference(target: Node, edge: Edge) -> Node:
    label = f"{target.id} {edge.label}".strip()
    classes = "reference failure" if edge.failure else "reference"
    hint = msg("goes on at {place}", place=target.label)
    return Node(target.id, label, classes=classes, hint=hint)


def _is_reference(node: Node) -> bool:
    return node.classes.startswith("reference")


def _box(node: Node) -> Box:
    label = _room(clip(node.label, _LABEL_COLUMNS), _LABEL_SIZE)
    if _is_reference(node):
        return Box(label + 4, _REFERENCE_HEIGHT)
    note = _room(clip(node.note, _NOTE_COLUMNS), _NOTE_SIZE)
    note += _NEXT_TRY if node.due is not None else 0.0
    icon = _ICON if node.condition else 0.0
    return Box(max(label + icon, note) + 2 * _INSET, _HEIGHT)


def _room(text: str, size: float) -> float:
    """About the pixels a text takes in any common font; wide characters are square."""
    wide = max(columns(text) - len(text), 0)
    return (wide + (columns(text) - 2 * wide) * _NARROW) * size


def _document(picture: Picture, layout: Layout, style: str) -> Iterator[str]:
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    title = visible(picture.title)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="holdfast-graph" role="group"'
        f" aria-label={quoteattr(title)}"
        f' width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(visible(picture.description))}</desc>\n"
    )
    if style:
        yield f"<style>\n{style}</style>\n"
    yield f'<rect class="canvas" width="{_n(width)}" height="{_n(height)}"/>\n'
    yield f'<g transform="translate({_n(_MARGIN)} {_n(_MARGIN)})">\n<g aria-hidden="true">\n'
    yield from _edges(picture, layout)
    yield "</g>\n"
    for index in sorted(range(len(layout.centres)), key=layout.centres.__getitem__):
        yield _node(picture.nodes[index], layout.centres[index], layout.layer_widths[index])
    yield "</g>\n</svg>\n"


def _edges(picture: Picture, layout: Layout) -> Iterator[str]:
    shifts = _parallel_shifts(picture.edges)
    for edge, path, shift in zip(picture.edges, layout.paths, shifts, strict=True):
        way = 1.0 if path[-1][0] >= path[0][0] else -1.0
        lower = shift if way > 0 else max(shift, _BACK)
        yield _edge(picture, edge, [(x, y + lower) for x, y in path], way)


def _parallel_shifts(edges: Sequence[Edge]) -> list[float]:
    """Arrows between the same two nodes run side by side."""
    pairs = [frozenset((edge.source, edge.target)) for edge in edges]
    totals: dict[frozenset[int], int] = {}
    places = []
    for pair in pairs:
        places.append(totals.get(pair, 0))
        totals[pair] = places[-1] + 1
    return [
        (place - (totals[pair] - 1) / 2) * _PARALLEL
        for pair, place in zip(pairs, places, strict=True)
    ]


def _edge(picture: Picture, edge: Edge, path: Sequence[Point], way: float) -> str:
    source, target = picture.nodes[edge.source].id, picture.nodes[edge.target].id
    kind = " ".join(["edge", *["failure"] * edge.failure, *filter(None, [edge.classes])])
    return (
        f'<g class="{kind}" data-from={_attribute(source)} data-to={_attribute(target)}>'
        f'<path class="line" d="{_curve(path, way)}"/>'
        f'<path class="head" d="{_head(path[-1], way)}"/>{_edge_label(edge, path)}</g>\n'
    )


def _curve(path: Sequence[Point], way: float) -> str:
    """Curves between the layers, straight lines through them; the head covers the end."""
    last = (path[-1][0] - way * (_HEAD - 1), path[-1][1])
    points = [*path[:-1], last]
    parts = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for index in range(1, len(points)):
        (x0, y0), (x1, y1) = points[index - 1], points[index]
        if abs(y1 - y0) < 0.05:
            parts.append(f"H{_n(x1)}")
        else:
            middle = _n((x0 + x1) / 2)
            parts.append(f"C{middle} {_n(y0)} {middle} {_n(y1)} {_n(x1)} {_n(y1)}")
    return "".join(parts)


def _head(tip: Point, way: float) -> str:
    return f"M{_n(tip[0])} {_n(tip[1])}l{_n(-way * _HEAD)} -3.5v7z"


def _edge_label(edge: Edge, path: Sequence[Point]) -> str:
    if not edge.label:
        return ""
    (x0, y0), (x1, y1) = path[0], path[1]
    text = escape(clip(edge.label, _LABEL_COLUMNS))
    return f'<text x="{_n((x0 + x1) / 2)}" y="{_n((y0 + y1) / 2 + 3)}">{text}</text>'


def _node(node: Node, centre: Point, width: float) -> str:
    classes = " ".join(
        ["node", node.classes, *["dashed"] * node.dashed, *filter(None, [node.condition])]
    )
    told = visible(": ".join(filter(None, [node.label, node.note, node.hint])))
    due = "" if node.due is None else f' data-due="{node.due:.3f}"'
    return (
        f'<g class="{classes}" data-id={_attribute(node.id)}{due} role="img"'
        f' transform="translate({_n(centre[0] - width / 2)} {_n(centre[1])})">'
        f"<title>{escape(told)}</title>{_frame(node, width)}{_icon(node)}{_texts(node)}</g>\n"
    )


def _frame(node: Node, width: float) -> str:
    height = _REFERENCE_HEIGHT if _is_reference(node) else _HEIGHT
    corner = height / 2 if node.dashed else 6
    return (
        f'<rect y="{_n(-height / 2)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(corner)}"/>'
    )


def _icon(node: Node) -> str:
    if node.condition is None:
        return ""
    place = f"translate({_n(_INSET)} {-14 if node.note else -6})"
    return f'<path class="icon" transform="{place}" d="{ICONS[node.condition]}"/>'


def _texts(node: Node) -> str:
    left = 4.0 if _is_reference(node) else _INSET
    indent = left + (_ICON if node.condition else 0.0)
    label = escape(clip(node.label, _LABEL_COLUMNS))
    height = -4 if node.note else 4
    text = f'<text class="label" x="{_n(indent)}" y="{height}">{label}</text>'
    if not node.note:
        return text
    note = escape(clip(node.note, _NOTE_COLUMNS))
    return f'{text}<text class="note" x="{_n(left)}" y="12">{note}</text>'


def _attribute(text: str) -> str:
    return quoteattr(visible(text))


def _n(number: float) -> str:
    """Numbers as short as a tenth of a pixel allows."""
    return f"{number:.1f}".removesuffix(".0")
