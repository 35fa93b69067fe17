"""Text as a screen shows it: its columns, clipped to a width, with nothing hidden in it.

A column is one cell of a terminal. Chinese, Japanese and Korean characters take two,
combining marks none; characters of ambiguous width count as one, as terminals do by
default. Control and direction characters would change what the reader sees elsewhere,
so they are spelled out.
"""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from typing import Final

from holdfast.model.values import Json

_CONTROL_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F
_JOINERS: Final = frozenset("\u200c\u200d")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MARKS: Final = frozenset({"Mn", "Me"})
# A heap of combining marks has no columns, yet it must not grow without bound.
_CHARACTERS_PER_COLUMN: Final = 4


def visible(text: str) -> str:
    """The text with its control, direction and non-characters spelled out."""
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == _DELETE:
        return "␡"
    return f"⟨{code:04X}⟩" if _is_hidden(character) else character


def _is_hidden(character: str) -> bool:
    if character in _JOINERS:
        return False
    return unicodedata.category(character) in _HIDDEN or ord(character) & 0xFFFE == 0xFFFE


def indented(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def pretty(value: Json, longest: int = 20_000) -> str:
    """JSON for the eye; of a very long one the beginning."""
    text = indented(value)
    return text if len(text) <= longest else f"{text[:longest]}…"


def columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_columns_of, text))


@lru_cache(maxsize=4096)
def _columns_of(character: str) -> int:
    if character in _JOINERS or unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, limit: int) -> str:
    """The visible text in at most `limit` columns; an ellipsis stands for what is cut."""
    shown = visible(text)
    if columns(shown) <= limit and len(shown) <= limit * _CHARACTERS_PER_COLUMN:
        return text if shown == text else shown
    return _head(shown, limit - 1) + "…" if limit > 0 else ""


def _head(text: str, limit: int) -> str:
    used = 0
    for index, character in enumerate(text[: limit * _CHARACTERS_PER_COLUMN]):
        used += _columns_of(character)
        if used > limit:
            return text[:index].rstrip()
    return text[: limit * _CHARACTERS_PER_COLUMN]


def unquoted(text: str) -> str:
    """Without quotation marks around all of it: the sentence around it has its own."""
    return text[1:-1] if len(text) > 1 and text[0] == "“" and text[-1] == "”" else text


def pad(text: str, width: int) -> str:
    """The text clipped, then filled with blanks to exactly `width` columns."""
    clipped = clip(text, width)
    return clipped + " " * (width - columns(clipped))
