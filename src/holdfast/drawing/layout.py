"""A layered layout, left to right, after Sugiyama: the same graph always looks the same.

1. *Cycles* are broken: a depth-first walk finds the links that lead back, and they count
   as reversed until they are drawn.
2. *Ranks*: every box stands one layer right of the last box that leads to it; a box that
   nothing leads to stands right before the first that it leads to.
3. *Bends*: a link across several layers passes through one invisible vertex in each.
4. *Order* within the layers is chosen for few crossings (`crossings`).
5. *Heights* are chosen for straight lines (`alignment`).

Nothing recurses: a chain of ten thousand boxes is as good as any other graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from holdfast.drawing.alignment import align
from holdfast.drawing.crossings import Web, order_layers

Link: TypeAlias = tuple[int, int]
Point: TypeAlias = tuple[float, float]

ROW_GAP: Final = 16.0
_BEND_HEIGHT: Final = 4.0
_LAYER_GAP: Final = 32.0
_STEEPEST_GAP: Final = 120.0
_RISE_PER_GAP: Final = 6.0


@dataclass(frozen=True, slots=True)
class Box:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, and for every link the points it passes.

    A link runs straight from its 2nd point to its 3rd, its 4th to its 5th, …, and curves
    in between. `layer_widths` has the room that each box may fill.
    """

    width: float
    height: float
    centres: tuple[Point, ...]
    paths: tuple[tuple[Point, ...], ...]
    layer_widths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The layer of every box, and which links lead back."""

    ranks: tuple[int, ...]
    backward: frozenset[int]

    def span(self, link: Link) -> int:
        return abs(self.ranks[link[1]] - self.ranks[link[0]])


def rank(count: int, links: Sequence[Link]) -> Ranking:
    """Ranks for `count` boxes; no link may join a box to itself."""
    backward = _backward(count, links)
    forward = [
        (target, source) if index in backward else (source, target)
        for index, (source, target) in enumerate(links)
    ]
    after = _successors(count, forward)
    ranks = _longest_paths(after)
    _pull_sources(ranks, after, {target for _, target in forward})
    return Ranking(tuple(ranks), backward)


def _successors(count: int, links: Sequence[Link]) -> list[list[int]]:
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in links:
        after[source].append(target)
    return after


def _backward(count: int, links: Sequence[Link]) -> frozenset[int]:
    """The links that close a cycle, seen on a walk that begins where nothing leads to."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for index, (source, _) in enumerate(links):
        leaving[source].append(index)
    entered = {target for _, target in links}
    found: set[int] = set()
    on_path, seen = [False] * count, [False] * count
    for start in sorted(range(count), key=lambda box: box in entered):
        if seen[start]:
            continue
        trail = [(start, iter(leaving[start]))]
        seen[start] = on_path[start] = True
        while trail:
            box, rest = trail[-1]
            link = next(rest, None)
            if link is None:
                on_path[box] = False
                trail.pop()
            elif on_path[target := links[link][1]]:
                found.add(link)
            elif not seen[target]:
                seen[target] = on_path[target] = True
                trail.append((target, iter(leaving[target])))
    return frozenset(found)


def _longest_paths(after: Sequence[Sequence[int]]) -> list[int]:
    ranks, missing = [0] * len(after), [0] * len(after)
    for targets in after:
        for target in targets:
            missing[target] += 1
    ready = [box for box, count in enumerate(missing) if not count]
    for box in ready:
        for target in after[box]:
            ranks[target] = max(ranks[target], ranks[box] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return ranks


def _pull_sources(ranks: list[int], after: Sequence[Sequence[int]], entered: set[int]) -> None:
    for box, targets in enumerate(after):
        if targets and box not in entered:
            ranks[box] = min(ranks[target] for target in targets) - 1


def arrange(
    boxes: Sequence[Box],
    links: Sequence[Link],
    ranking: Ranking,
    label_widths: Mapping[int, float] | None = None,
) -> Layout:
    """Places for all; a link with a label gets room for it right after its source."""
    if not boxes:
        return Layout(0.0, 0.0, (), (), ())
    chains, ranks = _chains(links, ranking)
    web = _weave(ranks, chains)
    layers = order_layers(web)
    heights = [box.height for box in boxes] + [_BEND_HEIGHT] * (len(ranks) - len(boxes))
    middles = align(layers, web, heights, real=len(boxes), gap=ROW_GAP)
    widths = [max([boxes[v].width for v in layer if v < len(boxes)]) for layer in layers]
    rooms = _label_rooms(links, ranking, label_widths or {})
    lefts = _lefts(widths, layers, web, middles, rooms)
    paths = [
        _path(chain, ranks, middles, lefts, widths, index in ranking.backward)
        for index, chain in enumerate(chains)
    ]
    return Layout(
        width=lefts[-1] + widths[-1],
        height=max(middle + height / 2 for middle, height in zip(middles, heights, strict=True)),
        centres=tuple(
            (lefts[ranks[box]] + widths[ranks[box]] / 2, middles[box]) for box in range(len(boxes))
        ),
        paths=tuple(paths),
        layer_widths=tuple(widths[ranks[box]] for box in range(len(boxes))),
    )


def _chains(links: Sequence[Link], ranking: Ranking) -> tuple[list[list[int]], list[int]]:
    """Each link as its vertices from left to right, and the ranks with the bends added."""
    ranks = list(ranking.ranks)
    chains: list[list[int]] = []
    for index, (source, target) in enumerate(links):
        left, right = (target, source) if index in ranking.backward else (source, target)
        inner = range(ranks[left] + 1, ranks[right])
        chains.append([left, *range(len(ranks), len(ranks) + len(inner)), right])
        ranks.extend(inner)
    return chains, ranks


def _weave(ranks: Sequence[int], chains: Sequence[Sequence[int]]) -> Web:
    before: list[list[int]] = [[] for _ in ranks]
    after: list[list[int]] = [[] for _ in ranks]
    for chain in chains:
        for left, right in pairwise(chain):
            after[left].append(right)
            before[right].append(left)
    return Web(ranks, before, after)


def _label_rooms(
    links: Sequence[Link], ranking: Ranking, label_widths: Mapping[int, float]
) -> dict[int, float]:
    """The room that labels need between a layer and the next."""
    rooms: dict[int, float] = {}
    for index, width in label_widths.items():
        layer = ranking.ranks[links[index][0]] - (index in ranking.backward)
        rooms[layer] = max(rooms.get(layer, 0.0), width)
    return rooms


def _lefts(
    widths: Sequence[float],
    layers: Sequence[Sequence[int]],
    web: Web,
    middles: Sequence[float],
    rooms: Mapping[int, float],
) -> list[float]:
    """The left edge of every layer; steep links get more room to turn."""
    lefts = [0.0]
    for number, layer in enumerate(layers[:-1]):
        rises = [abs(middles[v] - middles[w]) for v in layer for w in web.after[v]]
        gap = min(_LAYER_GAP + max(rises, default=0.0) / _RISE_PER_GAP, _STEEPEST_GAP)
        lefts.append(lefts[-1] + widths[number] + max(gap, rooms.get(number, 0.0)))
    return lefts


def _path(
    chain: Sequence[int],
    ranks: Sequence[int],
    middles: Sequence[float],
    lefts: Sequence[float],
    widths: Sequence[float],
    backward: bool,
) -> tuple[Point, ...]:
    points: list[Point] = []
    for vertex in chain:
        left = lefts[ranks[vertex]]
        points += [(left, middles[vertex]), (left + widths[ranks[vertex]], middles[vertex])]
    inner = points[1:-1]
    return tuple(reversed(inner)) if backward else tuple(inner)
