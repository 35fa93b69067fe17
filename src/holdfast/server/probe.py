"""Readiness: the journal answers a read and takes a write.

Anybody may ask, so the journal is asked at most once a second, however many do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import OperatorError
from holdfast.journal.port import Attached, Journal, Kept

PROBE_SECONDS: Final = 1.0
_KIND: Final = "probe"


@dataclass(slots=True)
class Probe:
    """Asks the journal, and remembers for a moment what it said."""

    journal: Journal
    now: Callable[[], float]
    _asked_at: float | None = None
    _refusal: OperatorError | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def refusal(self) -> OperatorError | None:
        """Why the journal cannot be used now, or None."""
        async with self._turn:
            clock = asyncio.get_running_loop().time
            if self._asked_at is None or clock() >= self._asked_at + PROBE_SECONDS:
                self._refusal = await self._ask()
                self._asked_at = clock()
            return self._refusal

    async def _ask(self) -> OperatorError | None:
        kept = Kept(_KIND, "ready", "{}", self.now() + PROBE_SECONDS)
        try:
            await self.journal.last_commit()
            await self.journal.attach(Attached(kept=(kept,)))
        except OperatorError as error:
            return error
        return None
