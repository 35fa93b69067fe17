"""The order of vertices within their layers, chosen so that few links cross.

Crossing reduction is hard, so it is done by habit: the first order comes from a walk along
the links; then layers are sorted by the average position of their neighbours, sweeping to
and fro, and after that adjacent vertices trade places where it helps. The best order seen
is kept, and it depends on nothing but the graph.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_MOST_SWEEPS: Final = 24
_PATIENCE: Final = 4
# Beyond this many vertices the finer work would cost seconds and change little.
_SMALL: Final = 1500
_LARGE: Final = 12000


@dataclass(frozen=True, slots=True)
class Web:
    """Vertices with their ranks and their neighbours in the layers before and after."""

    ranks: Sequence[int]
    before: Sequence[Sequence[int]]
    after: Sequence[Sequence[int]]


def order_layers(web: Web) -> list[list[int]]:
    layers = _first_order(web)
    best, fewest = [list(layer) for layer in layers], count_crossings(layers, web)
    patience, sweep = _PATIENCE, 0
    most = _MOST_SWEEPS if len(web.ranks) < _LARGE else _PATIENCE
    while fewest and patience and sweep < most:
        _sweep(layers, web, sweep)
        crossings = count_crossings(layers, web)
        sweep, patience = sweep + 1, patience - 1
        if crossings < fewest:
            best, fewest, patience = [list(layer) for layer in layers], crossings, _PATIENCE
    return best


def _first_order(web: Web) -> list[list[int]]:
    """Vertices in the order in which a depth-first walk from the left meets them."""
    layers: list[list[int]] = [[] for _ in range(max(web.ranks) + 1)]
    met = [False] * len(web.ranks)
    starts = sorted(range(len(web.ranks)), key=lambda vertex: web.ranks[vertex])
    trail = list(reversed(starts))
    while trail:
        vertex = trail.pop()
        if not met[vertex]:
            met[vertex] = True
            layers[web.ranks[vertex]].append(vertex)
            trail.extend(reversed(web.after[vertex]))
    return layers


def _sweep(layers: list[list[int]], web: Web, number: int) -> None:
    """Even sweeps go right, odd ones left; every second pair turns ties around."""
    positions = [0] * len(web.ranks)
    for layer in layers:
        _note_positions(layer, positions)
    rightward, turn_ties = number % 2 == 0, number % 4 >= 2
    neighbours = web.before if rightward else web.after
    for layer in layers if rightward else reversed(layers):
        _sort_by_average(layer, neighbours, positions, turn_ties)
        _note_positions(layer, positions)
    if len(web.ranks) < _SMALL:
        for layer in layers:
            _trade_places(layer, web, positions)


def _note_positions(layer: Sequence[int], positions: list[int]) -> None:
    for position, vertex in enumerate(layer):
        positions[vertex] = position


def _sort_by_average(
    layer: list[int], neighbours: Sequence[Sequence[int]], positions: Sequence[int], turn: bool
) -> None:
    """Sorts the vertices that have neighbours among themselves; the others keep their places."""
    free = [place for place, vertex in enumerate(layer) if neighbours[vertex]]
    moved = [layer[place] for place in free]
    if turn:
        moved.reverse()
    moved.sort(key=lambda vertex: _average(positions, neighbours[vertex]))
    for place, vertex in zip(free, moved, strict=True):
        layer[place] = vertex


def _average(positions: Sequence[int], vertices: Sequence[int]) -> float:
    return sum(positions[vertex] for vertex in vertices) / len(vertices)


def _trade_places(layer: list[int], web: Web, positions: list[int]) -> None:
    for place in range(len(layer) - 1):
        upper, lower = layer[place], layer[place + 1]
        if _gain(upper, lower, web, positions) > 0:
            layer[place], layer[place + 1] = lower, upper
            positions[lower], positions[upper] = place, place + 1


def _gain(upper: int, lower: int, web: Web, positions: Sequence[int]) -> int:
    """How many crossings fewer there are when the two trade places."""
    return sum(
        _crossings(side[upper], side[lower], positions)
        - _crossings(side[lower], side[upper], positions)
        for side in (web.before, web.after)
    )


def _crossings(upper: Iterable[int], lower: Sequence[int], positions: Sequence[int]) -> int:
    return sum(positions[one] > positions[other] for one in upper for other in lower)


def count_crossings(layers: Sequence[Sequence[int]], web: Web) -> int:
    positions = [0] * len(web.ranks)
    for layer in layers:
        _note_positions(layer, positions)
    return sum(_crossings_after(layer, web, positions) for layer in layers)


def _crossings_after(layer: Sequence[int], web: Web, positions: Sequence[int]) -> int:
    """Pairs of links to the next layer whose ends stand the other way round."""
    seen: list[int] = []
    crossings = 0
    for vertex in layer:
        ends = sorted(positions[other] for other in web.after[vertex])
        crossings += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return crossings
