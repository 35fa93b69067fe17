"""Text of other authors in a story: on one line, and nothing hidden in it."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Final

from holdfast.i18n.message import Message, remade
from holdfast.language.strict import canonical_json

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_PLAIN_NAME: Final = re.compile(r"[\w.-]{1,64}")
_LONGEST_NAME: Final = 60


def visible(text: object, limit: int = 400) -> str:
    """Text of other authors on one line, with what would not be seen made visible; of a message
    that holds for its parameters."""
    whole = str(text)
    short = whole if len(whole) <= limit else whole[: limit - 1] + "…"
    shown = "".join(map(_shown, short))
    if not isinstance(text, Message):
        return shown
    if isinstance(text.params, tuple):
        parts = tuple(visible(one, limit) for one in text.params)
        return remade(shown, visible(text.id), parts)
    named = {k: visible(v, limit) if isinstance(v, str) else v for k, v in text.params.items()}
    return remade(shown, text.id, named)


def visible_lines(text: str) -> str:
    """As `visible`, whole and with its lines."""
    return "".join(one if one in "\n\t" else _shown(one) for one in text)


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return " "
    if unicodedata.category(character) in _HIDDEN:
        return f"\\u{ord(character):04x}"
    return character


def named(name: str) -> str:
    """Another author's name: as it is if it looks like one, else as a quotation."""
    return name if _PLAIN_NAME.fullmatch(name) else visible(canonical_json(name), _LONGEST_NAME)


def clock(at: float, *, date: bool = False) -> str:
    moment = datetime.fromtimestamp(at).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")
