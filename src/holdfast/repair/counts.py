"""Counts that fade: what was counted thirty days ago weighs half.

They stand by the ten days in which they were made, and are whole numbers. So a sum is exact,
whatever its order: what several processes have learned, and what is read again from the journals,
comes to the same figures. They are weighed when they are read, and kept for 120 days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

DAY: Final = 86_400.0
HALF_LIFE: Final = 30 * DAY
SPAN: Final = 10 * DAY
KEPT_SPANS: Final = 12

Counts: TypeAlias = Mapping[int, tuple[int, ...]]
"""By the number of the span, as many counts as there are kinds."""


def counted(counts: Counts, at: float, more: Sequence[int]) -> Counts:
    """With what was counted at a moment."""
    return added(counts, {int(at // SPAN): tuple(more)})


def added(counts: Counts, others: Counts) -> Counts:
    summed = dict(counts)
    for span, more in others.items():
        before = summed.get(span)
        summed[span] = more if before is None else _sum((before, more))
    oldest = max(summed, default=0) - KEPT_SPANS
    return {span: one for span, one in sorted(summed.items()) if span > oldest}


def total(counts: Counts, kinds: int) -> tuple[int, ...]:
    """All that is remembered, unweighed."""
    return _sum((*counts.values(), (0,) * kinds))


def weighed(counts: Counts, kinds: int, now: float) -> tuple[float, ...]:
    """What the counts weigh by now."""
    sums = [0.0] * kinds
    for span, one in counts.items():
        weight = 0.5 ** (max(0, now // SPAN - span) * SPAN / HALF_LIFE)
        for place, count in enumerate(one):
            sums[place] += weight * count
    return tuple(sums)


def _sum(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))
