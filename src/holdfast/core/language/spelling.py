"""Spelling: what somebody who wrote an unknown word may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LIKENESS: Final = 0.7


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, if any is close; the same letters in another case first."""
    candidates = sorted(known)
    for candidate in candidates:
        if candidate.lower() == word.lower():
            return candidate
    close = get_close_matches(word, candidates, n=1, cutoff=_LIKENESS)
    return close[0] if close else None
