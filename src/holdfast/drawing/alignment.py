"""Heights within layers, after Brandes and Köpf: straight where it can be, balanced elsewhere.

Every vertex wants to stand level with the median of its neighbours. Vertices that get their
wish form *blocks*, which are then packed as closely as their sizes allow. Done four times
(towards the left or the right neighbours, from above or from below), this gives four extreme
drawings; each vertex takes the average of its two middle heights.

Bends of one long link are always aligned: where a straight inner piece and another link
cross, the other one gives way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from holdfast.drawing.crossings import Web


def align(
    layers: Sequence[Sequence[int]], web: Web, heights: Sequence[float], *, real: int, gap: float
) -> list[float]:
    """The middle of every vertex, from 0 downwards; vertices from `real` on are bends."""
    yielding = frozenset(_yielding(layers, web, real))
    drawings = []
    for from_left in (True, False):
        for from_above in (True, False):
            blocks = _turned(layers, from_left, from_above)
            neighbours = web.before if from_left else web.after
            roots = _blocks(blocks, neighbours, yielding)
            middles = _pack(blocks, roots, heights, gap)
            drawings.append(middles if from_above else [-middle for middle in middles])
    return _balance(drawings, heights)


def _yielding(layers: Sequence[Sequence[int]], web: Web, real: int) -> Iterator[tuple[int, int]]:
    """Links, as (left, right), that cross a piece between two bends."""
    for left_layer, layer in pairwise(layers):
        place = {vertex: index for index, vertex in enumerate(left_layer)}
        low, done = -1, 0
        for index, vertex in enumerate(layer):
            bend = _bend_before(vertex, web, real)
            if bend is None and index < len(layer) - 1:
                continue
            high = len(left_layer) if bend is None else place[bend]
            for other in layer[done : index + 1]:
                for left in web.before[other]:
                    inner = left >= real and other >= real
                    if not inner and not low <= place[left] <= high:
                        yield left, other
            low, done = high, index + 1


def _bend_before(vertex: int, web: Web, real: int) -> int | None:
    """The bend that a bend continues, if the piece between them is an inner one."""
    before = web.before[vertex]
    return before[0] if vertex >= real and before[0] >= real else None


def _turned(
    layers: Sequence[Sequence[int]], from_left: bool, from_above: bool
) -> list[Sequence[int]]:
    ordered = list(layers) if from_left else list(reversed(layers))
    return ordered if from_above else [list(reversed(layer)) for layer in ordered]


def _blocks(
    layers: Sequence[Sequence[int]],
    neighbours: Sequence[Sequence[int]],
    yielding: frozenset[tuple[int, int]],
) -> list[int]:
    """The root of every vertex: vertices with one root stand on one height."""
    count = len(neighbours)
    roots, taken, places = list(range(count)), [False] * count, [0] * count
    for layer in layers:
        last = -1
        for place, vertex in enumerate(layer):
            places[vertex] = place
            for other in _medians(neighbours[vertex], places):
                free = roots[vertex] == vertex and not taken[other] and places[other] > last
                gives_way = (other, vertex) in yielding or (vertex, other) in yielding
                if free and not gives_way:
                    roots[vertex], taken[other] = roots[other], True
                    last = places[other]
    return roots


def _medians(vertices: Sequence[int], places: Sequence[int]) -> Sequence[int]:
    ordered = sorted(vertices, key=places.__getitem__)
    return ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]


def _pack(
    layers: Sequence[Sequence[int]], roots: Sequence[int], heights: Sequence[float], gap: float
) -> list[float]:
    below, above = _neighbouring_blocks(layers, roots, heights, gap)
    order = _downwards(below, above, roots)
    middles = [0.0] * len(roots)
    for block in order:
        middles[block] = max((middles[other] + room for other, room in above[block]), default=0.0)
    for block in reversed(order):
        lowest = min((middles[other] - room for other, room in below[block]), default=0.0)
        middles[block] = max(middles[block], lowest)
    return [middles[root] for root in roots]


def _neighbouring_blocks(
    layers: Sequence[Sequence[int]], roots: Sequence[int], heights: Sequence[float], gap: float
) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
    """For every block the blocks right below and above it, with the room between middles."""
    below: list[list[tuple[int, float]]] = [[] for _ in roots]
    above: list[list[tuple[int, float]]] = [[] for _ in roots]
    for layer in layers:
        for upper, lower in pairwise(layer):
            room = (heights[upper] + heights[lower]) / 2 + gap
            below[roots[upper]].append((roots[lower], room))
            above[roots[lower]].append((roots[upper], room))
    return below, above


def _downwards(
    below: Sequence[Sequence[tuple[int, float]]],
    above: Sequence[Sequence[tuple[int, float]]],
    roots: Sequence[int],
) -> list[int]:
    missing = [len(others) for others in above]
    order = [vertex for vertex, root in enumerate(roots) if vertex == root and not missing[vertex]]
    for block in order:
        for other, _ in below[block]:
            missing[other] -= 1
            if not missing[other]:
                order.append(other)
    return order


def _balance(drawings: Sequence[Sequence[float]], heights: Sequence[float]) -> list[float]:
    """Moves the drawings onto the flattest one, then takes the average of the two middles."""
    extents = [_extent(drawing, heights) for drawing in drawings]
    flattest = min(extents, key=lambda one: one[1] - one[0])
    shifts = [flattest[one % 2] - extent[one % 2] for one, extent in enumerate(extents)]
    balanced = []
    for middles in zip(*drawings, strict=True):
        ordered = sorted(middle + shift for middle, shift in zip(middles, shifts, strict=True))
        balanced.append((ordered[1] + ordered[2]) / 2)
    top, _ = _extent(balanced, heights)
    return [middle - top for middle in balanced]


def _extent(middles: Sequence[float], heights: Sequence[float]) -> tuple[float, float]:
    """Where a drawing begins and where it ends."""
    halves = [(middle, height / 2) for middle, height in zip(middles, heights, strict=True)]
    return min(at - half for at, half in halves), max(at + half for at, half in halves)
