"""Spelling: which known word an unknown one may stand for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from holdfast.i18n.message import msg

_LIKENESS: Final = 0.7
_LONGEST_WORD: Final = 100
_MOST_WORDS: Final = 200
LONGEST_NAME_SHOWN: Final = 100
MOST_UNKNOWN: Final = 10
"""Of how many unknown words in one thing it is said what may have been meant."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, if any is close; the same letters in another case first."""
    candidates = sorted(known)
    if len(word) > _LONGEST_WORD or len(candidates) > _MOST_WORDS:
        return None
    for candidate in candidates:
        if candidate.lower() == word.lower():
            return candidate
    close = get_close_matches(word, candidates, n=1, cutoff=_LIKENESS)
    return close[0] if close else None


def remedy(word: str, known: Iterable[str], otherwise: str) -> str:
    """What to tell who wrote an unknown word: the one that was meant, if any is close."""
    meant = nearest(word, known)
    return msg("did you mean {meant}?", meant=meant) if meant else otherwise


def printable(name: str) -> str:
    """As much of an unknown name as a message shows; it may be no text at all."""
    return name[:LONGEST_NAME_SHOWN].encode("utf-8", "backslashreplace").decode()
