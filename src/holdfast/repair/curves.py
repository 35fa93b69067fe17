"""Recovery curves: how likely a failure is over by a moment, and when to try again.

For each tool and fingerprint a curve counts, by buckets of the time since a call first failed, how
often that bucket was lived through and how often the call recovered in it. Of a bucket b

    h_b = (w_b + 2·p_b) / (n_b + 2)

is the chance to recover in it, having failed before. p_b is the same of all failures of that cause
together, 0.25 where nothing is known. The next attempt belongs to the end of the earliest bucket by
which the chance since the last attempt is at least 0.35; where there is none such, to the last
bucket, or nowhere when the whole chance is below 0.08.

An attempt that fails has lived through every bucket since the one before it. One that succeeds has
recovered in any of these: each gets an equal share of the win, and counts as lived through as far
as the call had not recovered yet. The shares are 840ths, so that counts are whole numbers.

One run of twenty explores, chosen by a keyed hash: it tries once at any of the buckets, so that a
curve which says never, or not so soon, can be found wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from hashlib import blake2b
from typing import Final

from holdfast.model.record import record
from holdfast.model.recovery import EDGES, Moments, bucket_of, passed_at
from holdfast.repair.counts import Counts, added, counted, total, weighed

BUCKETS: Final = len(EDGES)
KINDS: Final = 2 * BUCKETS + 1
"""Wins and tries of each bucket, and the cases."""

WHOLE: Final = 840
UNKNOWN: Final = 0.25
PRIOR: Final = 2.0
ENOUGH: Final = 0.35
HOPELESS: Final = 0.08
FEWEST_CASES: Final = 5
ONE_OF: Final = 20


@record
class Curve:
    """`last` is when it was last added to, `cause` what its failures are of."""

    counts: Counts = field(default_factory=dict)
    last: float = 0.0
    cause: str = ""

    @property
    def cases(self) -> int:
        return total(self.counts, KINDS)[-1]


NO_CURVE: Final = Curve()


def tried(curve: Curve, passed: int, since: float, at: float, *, won: bool) -> Curve:
    """With one more attempt, made `since` seconds after the first failure, when `passed` buckets
    were behind it already."""
    more = (_won if won else _failed)(passed, bucket_of(since))
    cases = 0 if passed else 1
    return Curve(counted(curve.counts, at, [*more, cases]), max(curve.last, at), curve.cause)


def _failed(passed: int, bucket: int) -> list[int]:
    lived = [WHOLE if passed <= one <= bucket else 0 for one in range(BUCKETS)]
    return [0] * BUCKETS + lived


def _won(passed: int, bucket: int) -> list[int]:
    first = min(passed, bucket)
    share = WHOLE // (bucket - first + 1)
    wins, tries = [0] * BUCKETS, [0] * BUCKETS
    for place, one in enumerate(range(first, min(bucket, BUCKETS - 1) + 1)):
        wins[one] = share
        tries[one] = WHOLE - place * share if one >= passed else 0
    return wins + tries


def together(one: Curve, other: Curve) -> Curve:
    cause = max(one.cause, other.cause)
    return Curve(added(one.counts, other.counts), max(one.last, other.last), cause)


def hazards(curve: Curve, pooled: Curve, now: float) -> tuple[float, ...]:
    """h of each bucket."""
    expected = _chances(pooled, (UNKNOWN,) * BUCKETS, now)
    return _chances(curve, expected, now)


def _chances(curve: Curve, expected: Sequence[float], now: float) -> tuple[float, ...]:
    weights = [one / WHOLE for one in weighed(curve.counts, KINDS, now)]
    wins, tries = weights[:BUCKETS], weights[BUCKETS : 2 * BUCKETS]
    known = zip(wins, tries, expected, strict=True)
    return tuple((w + PRIOR * p) / (n + PRIOR) for w, n, p in known)


def moments_of(curve: Curve, pooled: Curve, now: float, run_id: str = "") -> Moments:
    """When calls that fail like this are tried again; nothing while fewer than five are known."""
    if curve.cases < FEWEST_CASES:
        return Moments(cases=curve.cases)
    found = hazards(curve, pooled, now)
    plan = [_next(found, passed) for passed in range(BUCKETS + 1)]
    bucket = explored_bucket(run_id, curve.cause)
    if bucket is not None:
        explored = range(bucket + 1)
        plan[: bucket + 1] = [(EDGES[bucket], _chance(found[one : bucket + 1])) for one in explored]
    due, chances = zip(*plan, strict=True)
    return Moments(due, chances, curve.cases, None if bucket is None else EDGES[bucket])


def _next(found: Sequence[float], passed: int) -> tuple[float | None, float]:
    """When to try next, and the chance of having recovered by then."""
    for bucket in range(passed, BUCKETS):
        if (chance := _chance(found[passed : bucket + 1])) >= ENOUGH:
            return EDGES[bucket], chance
    whole = _chance(found[passed:])
    return (EDGES[-1] if whole >= HOPELESS else None), whole


def _chance(found: Sequence[float]) -> float:
    failing = 1.0
    for one in found:
        failing *= 1 - one
    return 1 - failing


def next_wait(
    curve: Curve, since_first: float, since_last: float, pooled: Curve, now: float
) -> float | None:
    """Seconds from now to the next attempt of a call that first failed `since_first` seconds ago
    and was last tried `since_last` seconds ago; None: leave it. By the curve alone, however few
    cases it knows."""
    due, _ = _next(hazards(curve, pooled, now), passed_at(since_first - since_last))
    return None if due is None else max(0.0, due - since_first)


def explored_bucket(run_id: str, salt: str = "") -> int | None:
    """The bucket that this run tries to learn of it, if it is one of those that explore."""
    if not run_id:
        return None
    hashed = blake2b(run_id.encode(), digest_size=8, key=b"explore", salt=salt.encode()[:16])
    number = int.from_bytes(hashed.digest())
    return None if number % ONE_OF else number // ONE_OF % BUCKETS
