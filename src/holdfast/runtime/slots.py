"""How many calls may be in flight where many workers share a journal.

The limit is the installation's: each call has a slot, which is a row that its worker holds. A
worker keeps as many idle ones as are its share, so that a run that goes on step by step asks for
none; what it has beyond that it returns when a call ends, though its own runs may want it, and asks
again behind the others. So the limit is never exceeded, and no worker is left without for ever.

A worker that is gone holds nothing: others take its slots.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from holdfast.errors import OperatorError
from holdfast.journal.shared import SlotStore
from holdfast.runtime.actor import Actor
from holdfast.runtime.executor import ConcurrencyLimit

log = logging.getLogger("holdfast")

LOOK_SECONDS: Final = 2.0
"""How often it is asked how many workers share the slots."""

ASK_SECONDS: Final = 0.03
"""How soon slots are asked for again that others have."""

RETRY_SECONDS: Final = 0.5
"""How soon a database is asked again that did not answer."""


class _Waiting(deque[Actor]):
    """Tells when a run waits that none was waiting before."""

    def __init__(self, told: Callable[[], None]) -> None:
        super().__init__()
        self._told = told

    def append(self, actor: Actor) -> None:
        super().append(actor)
        self._told()


class SharedLimit(ConcurrencyLimit):
    """Permits of this process, as many as it holds slots. Of the slots that are held, `_due` are to
    be returned."""

    def __init__(self, limit: int) -> None:
        self._moved = asyncio.Event()
        self._free = self._held = self._due = 0
        self._share = self.most = limit
        self._task: asyncio.Task[None] | None = None
        super().__init__(limit)
        self._free = 0  # nothing is held yet
        self.waiting = _Waiting(self._moved.set)

    @property
    def free(self) -> int:
        return self._free

    @free.setter
    def free(self, free: int) -> None:
        """What becomes free beyond the share is returned, and not used again here at once."""
        beyond = self._held - self._share - self._due
        risen = free - max(self._free, 0)
        if risen > 0 and beyond > 0:
            returned = min(risen, beyond)
            self._due += returned
            free -= returned
            self._moved.set()
        self._free = free

    def start(
        self, store: SlotStore, worker: Callable[[], int | None], grant: Callable[[], None]
    ) -> None:
        """Hold slots from now on; `grant` hands free permits to the runs that wait."""
        self._task = asyncio.get_running_loop().create_task(self._keep(store, worker, grant))

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep(
        self, store: SlotStore, worker: Callable[[], int | None], grant: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        look_at, known = 0.0, None
        while True:
            self._moved.clear()
            number, pause = worker(), ASK_SECONDS
            try:
                if number is not None:
                    if number != known or loop.time() >= look_at:
                        await self._look(store, number)
                        known, look_at = number, loop.time() + LOOK_SECONDS
                    await self._balance(store, number)
            except OperatorError as error:
                log.info("slots wait for the journal: %s", error)
                pause = RETRY_SECONDS
            except Exception:
                log.exception("slots could not be asked for: they are asked for again")
                pause = RETRY_SECONDS
            if self.waiting and self._free > 0:
                grant()
            await self._rest(pause)

    async def _rest(self, pause: float) -> None:
        """Until something has moved; while runs wait in vain for a pause."""
        wanting = bool(self.waiting) and self._free <= 0
        try:
            async with asyncio.timeout(pause if wanting else LOOK_SECONDS):
                await (asyncio.sleep(pause) if wanting else self._moved.wait())
        except TimeoutError:
            return

    async def _look(self, store: SlotStore, worker: int) -> None:
        """What is really held: another may have taken us for gone."""
        held, workers = await store.held(worker)
        self._free += held - self._held
        self._held = held
        self._share = self.most // max(workers, 1)
        idle, self._free = self._free, min(self._free, 0)
        self.free = idle  # what is beyond the share by now is due

    async def _balance(self, store: SlotStore, worker: int) -> None:
        if self._due:
            due, self._due = self._due, 0
            self._held -= due
            await store.give_back(worker, due)
            return  # the others first
        wanted = max(len(self.waiting) - max(self._free, 0), self._share - self._held)
        if wanted > 0:
            taken = await store.take(worker, wanted, self.most)
            self._held += taken
            self._free += taken
