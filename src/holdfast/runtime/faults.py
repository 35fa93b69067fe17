"""Named points at which a test may bring the process down."""

from __future__ import annotations

from typing import Protocol


class FaultPoints(Protocol):
    def reach(self, point: str) -> None:
        """Called at `append.before`, `append.after`, `effect.before` and `effect.after`."""
