"""Tallies: how many rows there are of each pair of values, known without looking at them all.

The rows are counted once, inside a transaction; from then on every commit brings the changes that
it has made. After a rollback the tally is forgotten, and counted anew when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from holdfast.journal.database import Transaction

Pair: TypeAlias = tuple[str, str]


class Tally:
    def __init__(self, query: str) -> None:
        self._query = query
        self.known: Mapping[Pair, int] | None = None
        """As of the last commit; None where nobody has asked yet. Replaced, never changed: it is
        read by the event loop while another thread commits."""
        self.kept = False
        """Whether changes are to be noted."""

    def count(self, transaction: Transaction) -> Mapping[Pair, int]:
        rows = transaction.execute(self._query).fetchall()
        self.kept = True
        return {(one, other): count for one, other, count in rows}

    def begin(self, counted: Mapping[Pair, int]) -> None:
        self.known = counted

    def move(self, before: Pair | None, after: Pair) -> None:
        """A row has changed, or is new."""
        if self.known is None:
            return
        known = dict(self.known)
        if before is not None:
            known[before] = known.get(before, 0) - 1
        known[after] = known.get(after, 0) + 1
        self.known = {pair: count for pair, count in known.items() if count > 0}

    def forget(self) -> None:
        self.known, self.kept = None, False
