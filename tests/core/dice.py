"""Chance for tests: a string of bytes decides everything, so Hypothesis can shrink it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Face = TypeVar("Face")


class Dice:
    """Reads its bytes one by one; when they run out every throw is 0, the tamest choice."""

    def __init__(self, script: bytes) -> None:
        self._script = iter(script)

    def number(self, faces: int) -> int:
        return next(self._script, 0) % faces

    def pick(self, faces: Sequence[Face]) -> Face:
        return faces[self.number(len(faces))]

    def chance(self, one_in: int) -> bool:
        """True once in `one_in` throws, and never when the bytes have run out."""
        return self.number(one_in) == one_in - 1
