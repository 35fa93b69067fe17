"""Ids that look like other ids: letters of another alphabet, marks, and invisible signs.

Chinese, Japanese and Korean stand beside Latin letters in honest ids, and cannot be taken for them.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_UNLIKE_OTHERS: Final = ("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HANGUL SYLLABLE")
_STROKED: Final = str.maketrans("đħıłøŧĐĦŁØŦ", "dhilotDHLOT")
"""Latin letters that no normal form takes apart."""
_COMMON: Final = frozenset("əɛɔƏƐƆ")
"""Letters of living languages beyond the first Latin blocks, where small capitals are too."""
_RARE: Final = "\u0180"


def plain(text: str) -> str:
    """As it is read at a glance: without marks, and wide or ornate letters as common ones."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    seen = (one for one in parts if not unicodedata.category(one).startswith("M"))
    return "".join(seen).translate(_STROKED)


def disguised(text: str) -> bool:
    """Whether it has invisible signs, letters of two alphabets, or rare Latin ones."""
    if text.isascii():
        return not text.isprintable()
    letters = [one for one in unicodedata.normalize("NFKC", text) if one.isalpha()]
    names = {one: unicodedata.name(one, "") for one in letters}
    names = {one: name for one, name in names.items() if not name.startswith(_UNLIKE_OTHERS)}
    alphabets = {name.partition(" ")[0] for name in names.values()}
    rare = any(name.startswith("LATIN") and _is_rare(one) for one, name in names.items())
    return rare or len(alphabets) > 1 or not text.isprintable()


def _is_rare(letter: str) -> bool:
    return plain(letter) >= _RARE and letter not in _COMMON
