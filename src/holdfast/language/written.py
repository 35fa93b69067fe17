"""JSON in a model's words: bare, in a fenced block, or in the middle of a sentence.

What is no strict JSON is passed over. How much text is looked at is for the caller to bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from holdfast.errors import InvalidValue
from holdfast.language.strict import load_json, strict_json
from holdfast.model.values import Json

MOST_BRACES: Final = 40
"""How many opening braces are tried: each may take time in proportion to the text behind it."""

_FENCED: Final = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def written_json(text: str) -> Iterator[Json]:
    """The whole text, and each fenced block of it, where that is JSON."""
    for candidate in (text, *_FENCED.findall(text)):
        with suppress(ValueError, RecursionError, InvalidValue):
            yield strict_json(load_json(candidate))


def objects_within(text: str) -> Iterator[dict[str, Json]]:
    """The objects among the words, from left to right; none that is a part of another."""
    decoder, position = json.JSONDecoder(), 0
    for _ in range(MOST_BRACES):
        position = text.find("{", position)
        if position < 0:
            return
        try:
            found, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        position = end
        with suppress(InvalidValue):
            yield strict_json(found)
