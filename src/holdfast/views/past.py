"""A run as it was: its journal folded up to some event.

Folding from the beginning costs what the run has been through, so states on the way are kept: one
of every `STRIDE` events, for the runs that were looked at last. They share what they have in
common, and the next look folds at most a stride. The work is done beside the loop.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from holdfast.core.run.state import RunState
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Record
from holdfast.runtime.machines import blank, definition_of, replay

STRIDE: Final = 250
MOST_RUNS: Final = 8


class Past:
    """The states of the runs that were looked at last, a stride apart."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, list[RunState]] = OrderedDict()

    async def state(self, journal: Journal, now: RunState, seq: int) -> RunState:
        """The run of which `now` is the present, after its event `seq`."""
        if seq >= now.version:
            return now
        kept = self._of(now)
        while True:
            nearest = kept[bisect_right(kept, seq, key=_version) - 1]
            wanted = min(nearest.version + STRIDE, seq)
            if nearest.version == seq:
                return nearest
            records = await journal.read(now.run_id, nearest.version, wanted - nearest.version)
            state = await asyncio.to_thread(_folded, nearest, records)
            if state.version == seq:
                return state
            if state.version > kept[-1].version:
                kept.append(state)

    def _of(self, now: RunState) -> list[RunState]:
        kept = self._kept.setdefault(now.run_id, [blank(now.run_id, definition_of(now))])
        self._kept.move_to_end(now.run_id)
        while len(self._kept) > MOST_RUNS:
            self._kept.popitem(last=False)
        return kept


def _version(state: RunState) -> int:
    return state.version


def _folded(state: RunState, records: Sequence[Record]) -> RunState:
    return replay(state, ((record.at, decode(record)) for record in records))
