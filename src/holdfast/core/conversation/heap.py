"""A heap that is never changed, only succeeded: the next task costs the logarithm of all.

A leftist heap of tuples `(rank, item, left, right)`; `rank` is the length of the
rightmost way down, which merging keeps short.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias, cast

Item: TypeAlias = tuple[int, int]
Heap: TypeAlias = tuple[int, Item, "Heap", "Heap"] | None


def of(items: Iterable[Item]) -> Heap:
    return reduce(push, items, cast(Heap, None))


def push(heap: Heap, item: Item) -> Heap:
    return _merge(heap, (1, item, None, None))


def pop(heap: tuple[int, Item, Heap, Heap]) -> Heap:
    """The heap without its smallest item, which is `heap[1]`."""
    return _merge(heap[2], heap[3])


def items(heap: Heap) -> list[Item]:
    """All of them, the smallest first."""
    found: list[Item] = []
    left = [heap]
    while left:
        one = left.pop()
        if one is not None:
            found.append(one[1])
            left += one[2:]
    return sorted(found)


def _merge(one: Heap, other: Heap) -> Heap:
    if one is None:
        return other
    if other is None:
        return one
    if other[1] < one[1]:
        one, other = other, one
    left, right = one[2], _merge(one[3], other)
    if _rank(left) < _rank(right):
        left, right = right, left
    return _rank(right) + 1, one[1], left, right


def _rank(heap: Heap) -> int:
    return 0 if heap is None else heap[0]
