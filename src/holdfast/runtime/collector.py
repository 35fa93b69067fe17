"""The garbage collector of the process, set for what an open application holds.

States, plans and records live long, refer only to what is older than they are, and are freed by
their reference counts. Python's usual setting looks at the young objects after every 700 new ones
and at all of them again and again: 80 µs of each step, and up to 90 ms at once, in which it found
nothing. While an application is open the young may be 50,000, and what was there when it opened
is not looked at.

The collector belongs to the whole process. So it is set only where it is still as Python sets it,
and put back when the last application closes; `Holdfast(tune_collector=False)` leaves it alone.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

USUAL: Final = frozenset({(700, 10, 10), (2_000, 10, 10), (2_000, 10, 0)})
"""As Python sets it, by its version."""

TUNED: Final = (50_000, 10, 10)


class Collector:
    def __init__(self) -> None:
        self._lock = Lock()
        self._opened = 0
        self._before: tuple[int, int, int] | None = None
        self._frozen = False
        self._pauses = 0

    def opened(self) -> None:
        """An application has opened."""
        with self._lock:
            self._opened += 1
            collects = self._pauses > 0 or gc.isenabled()
            if self._before is None and collects and gc.get_threshold() in USUAL:
                self._before = gc.get_threshold()
                gc.set_threshold(*TUNED)
                self._freeze()

    def closed(self) -> None:
        """An application that had opened has closed."""
        with self._lock:
            self._opened -= 1
            if self._opened or self._before is None:
                return
            if gc.get_threshold() == TUNED:
                gc.set_threshold(*self._before)
            if self._frozen:
                gc.unfreeze()
            self._before, self._frozen = None, False

    def keep_for_good(self) -> None:
        """What is there by now stays until the end: a server has begun to serve."""
        with self._lock:
            if self._before is not None:
                gc.collect()
                self._freeze()

    def _freeze(self) -> None:
        """Unless the program has frozen what it had: that could not be put back."""
        if self._frozen or not gc.get_freeze_count():
            self._frozen = True
            gc.freeze()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While much is made that stays, as a plan of ten thousand tasks.

        While an application is open, so much of it is not looked at afterwards either: one look
        at all of it would hold the process for a tenth of a second.
        """
        with self._lock:
            pauses = self._pauses > 0 or gc.isenabled()
            self._pauses += pauses
            gc.disable()
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= pauses
                if pauses and self._frozen and gc.get_count()[0] > TUNED[0]:
                    gc.freeze()
                if pauses and not self._pauses:
                    gc.enable()


COLLECTOR: Final = Collector()
"""There is one in a process."""
