"""Run numbers: `inst_000001`, `inst_000002` and so on, given without a commit.

A number is only a proposal until the run is created, so it needs no place on disk:
the counter starts behind the highest run that exists and rises in memory.
"""

from __future__ import annotations

from holdfast.journal.port import Append

SHORTEST = 6
"""Digits in the shortest number; larger numbers simply grow longer."""


class Numbers:
    """The counters of one open journal, one per series."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def knows(self, series: str) -> bool:
        return series in self._last

    def begin(self, series: str, highest: int) -> None:
        """Start a series behind the highest number in use."""
        self._last[series] = max(highest, self._last.get(series, 0))

    def next(self, series: str) -> int:
        self._last[series] += 1
        return self._last[series]

    def note(self, append: Append) -> None:
        """Remember the number of a run that somebody else named."""
        series, number = split(append.run_id)
        if number is not None and series in self._last:
            self._last[series] = max(self._last[series], number)


def split(run_id: str) -> tuple[str, int | None]:
    """The series and number in a run id; no number when it does not end in one."""
    series, _, digits = run_id.rpartition("_")
    if len(digits) >= SHORTEST and digits.isascii() and digits.isdigit():
        return series, int(digits)
    return run_id, None
