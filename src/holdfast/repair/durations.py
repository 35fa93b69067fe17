"""How long a tool's calls take: counts by octaves of their duration, from a millisecond on.

A call is far beyond its usual duration when it took more than four times as long as nineteen of
twenty calls do, and more than ten seconds: nobody wants to hear of less.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field
from itertools import accumulate
from math import log2
from typing import Final

from holdfast.model.record import record
from holdfast.repair.counts import Counts, added, counted, total, weighed

OCTAVES: Final = 24
"""The last one holds all that took longer than two hours."""

SHORTEST: Final = 0.001
MOST: Final = 0.95
FAR: Final = 4.0
WORTH_TELLING: Final = 10.0
FEWEST_CALLS: Final = 20


@record
class Durations:
    counts: Counts = field(default_factory=dict)
    last: float = 0.0


NO_DURATIONS: Final = Durations()


def took(durations: Durations, seconds: float, at: float) -> Durations:
    octave = _octave(seconds)
    more = [int(one == octave) for one in range(OCTAVES)]
    return Durations(counted(durations.counts, at, more), max(durations.last, at))


def _octave(seconds: float) -> int:
    return min(max(0, int(log2(max(seconds, SHORTEST) / SHORTEST))), OCTAVES - 1)


def together(one: Durations, other: Durations) -> Durations:
    return Durations(added(one.counts, other.counts), max(one.last, other.last))


def usual(durations: Durations, now: float) -> float | None:
    """Seconds within which nineteen of twenty calls are over, rounded up to an octave; None while
    fewer than twenty are known."""
    if sum(total(durations.counts, OCTAVES)) < FEWEST_CALLS:
        return None
    up_to = tuple(accumulate(weighed(durations.counts, OCTAVES, now)))
    return SHORTEST * 2.0 ** (bisect_left(up_to, MOST * up_to[-1]) + 1)


def far_beyond(durations: Durations, seconds: float, now: float) -> bool:
    known = usual(durations, now)
    return known is not None and seconds > max(FAR * known, WORTH_TELLING)
