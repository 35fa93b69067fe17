"""When a failed call is worth another attempt, as learned from how others like it recovered.

What `Moments` say is looked up where a retry is advised, and stands in the event of that retry: a
replay asks no statistics.

Time since the first failure is divided into buckets. An attempt stands for the bucket that it
falls into, and one that comes up to a tenth after its end still for that one, so that a planned
attempt may be spread.
"""

from __future__ import annotations

from typing import Final

from holdfast.i18n.message import msg
from holdfast.model.record import record

EDGES: Final = (0.5, 2.0, 8.0, 30.0, 120.0, 600.0, 1_800.0)
"""Where the buckets end, in seconds since the first failure."""

TOLERANCE: Final = 1.1


def bucket_of(since: float) -> int:
    """The bucket of a moment; `len(EDGES)` is what comes after the last."""
    return next((one for one, edge in enumerate(EDGES) if since <= edge * TOLERANCE), len(EDGES))


def passed_at(since: float) -> int:
    """How many buckets are behind a call that failed then, or at first (0)."""
    return min(bucket_of(since) + 1, len(EDGES)) if since > 0 else 0


@record
class Moments:
    """`due` says by the number of buckets that are behind a call, at which second since its first
    failure the next attempt belongs, or None where another is not worth it; `chances` what it has
    for itself then. Both are empty while too few `cases` are known: the author's backoff goes on.
    `explored` is the moment that this run tries to learn of it.
    """

    due: tuple[float | None, ...] = ()
    chances: tuple[float, ...] = ()
    cases: int = 0
    explored: float | None = None

    @property
    def known(self) -> bool:
        return bool(self.due)

    def wait(self, tried: float, since: float) -> float | None:
        """Seconds until the next attempt of a call that failed `since` seconds after its first
        failure, in an attempt that began `tried` seconds after it; None where it is to be left.
        Only of what is `known`."""
        due = self.due[passed_at(tried)]
        return None if due is None else max(0.0, due - since)

    def why(self, tried: float) -> str:
        """The numbers behind `wait`, for people."""
        passed = passed_at(tried)
        due, percent = self.due[passed], round(100 * self.chances[passed])
        if due is None:
            return msg(
                "of failures like it, {n} known, {percent} % are over within half an hour",
                n=self.cases,
                percent=percent,
            )
        if due == self.explored:
            return msg("tried after {seconds:g} s to learn when it recovers", seconds=due)
        return msg(
            "of failures like it, {n} known, {percent} % are over {seconds:g} s after they began",
            n=self.cases,
            percent=percent,
            seconds=due,
        )
