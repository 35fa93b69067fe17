"""Readiness: the journal answers a read and takes a write.

No credentials are needed to ask, so the journal is asked at most once a second. After a commit that
failed it is asked at once. From then on only a commit that needs room says that the journal is
ready again: on a full disk what is small may still find some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import OperatorError
from holdfast.model.rows import Attached, ExpiringValue
from holdfast.runtime.store import Store

PROBE_SECONDS: Final = 1.0
ROOM: Final = 64 * 1024
_KIND: Final = "probe"


@dataclass(slots=True)
class Probe:
    """Asks the journal, and remembers for a moment what it said."""

    store: Store
    now: Callable[[], float]
    _asked_at: float | None = None
    _refusal: OperatorError | None = None
    _sound: int = field(init=False)
    """The journal's epoch when it last took what was asked of it."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._sound = self.store.epoch

    async def refusal(self) -> OperatorError | None:
        """Why the journal cannot be used now, or None."""
        async with self._turn:
            if self._must_ask():
                self._refusal = await self._ask()
                self._asked_at = asyncio.get_running_loop().time()
            return self._refusal

    def _must_ask(self) -> bool:
        if self._asked_at is None or (self._refusal is None and self._has_failed()):
            return True
        return asyncio.get_running_loop().time() >= self._asked_at + PROBE_SECONDS

    def _has_failed(self) -> bool:
        return self.store.epoch != self._sound

    async def _ask(self) -> OperatorError | None:
        body = f'"{"x" * ROOM}"' if self._has_failed() else "{}"
        kept = ExpiringValue(_KIND, "ready", body, self.now() + PROBE_SECONDS)
        try:
            await self.store.last_commit()
            await self.store.attach(Attached(kept=(kept,)))
        except OperatorError as error:
            return error
        self._sound = self.store.epoch
        return None
