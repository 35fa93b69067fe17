"""What may reach the disk a little later than the answer that it belongs to.

Until it is written it is known here: the difference shows only after a crash in between.
Everything that gathers within `LAG_SECONDS` is one commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextvars import Context

from holdfast.errors import HoldfastError
from holdfast.model.rows import Attached, ExpiringValue
from holdfast.runtime.store import Store

log = logging.getLogger("holdfast")

LAG_SECONDS = 0.05


class WriteBehind:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._unwritten: dict[str, ExpiringValue] = {}
        self._writing: asyncio.Task[None] | None = None

    def known(self, key: str, now: float) -> ExpiringValue | None:
        """What was put under a key and is not on disk yet."""
        kept = self._unwritten.get(key)
        return kept if kept is None or kept.expires_at is None or kept.expires_at > now else None

    def put(self, kept: ExpiringValue) -> None:
        self._unwritten[kept.key] = kept
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon(), context=Context())

    async def close(self) -> None:
        """Write what has not been written; nothing more may come."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait((self._writing,))
        await self.flush()

    async def flush(self) -> None:
        """Everything that was put before is on disk, or could not be written."""
        kept = tuple(self._unwritten.values())
        if not kept:
            return
        try:
            await self._store.attach(Attached(kept=kept))
        except HoldfastError as error:
            log.warning("answers to %d requests could not be kept: %s", len(kept), error)
        self._forget(kept)

    def _forget(self, written: Iterable[ExpiringValue]) -> None:
        for one in written:
            if self._unwritten.get(one.key) is one:
                del self._unwritten[one.key]

    async def _write_soon(self) -> None:
        try:
            while self._unwritten:
                await asyncio.sleep(LAG_SECONDS)
                await self.flush()
        finally:
            self._writing = None
