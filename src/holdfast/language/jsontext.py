"""JSON text, measured before it is parsed.

No other thread runs until parsing has ended, and a short text may hold a great many values: a
megabyte of `[],` took a third of a second. So a text is refused by its depth and by how many values
it holds, found in linear time and without a single Python object for any of them.
"""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from typing import Any, Final, NamedTuple

from holdfast.errors import InvalidValue
from holdfast.i18n.message import msg

MOST_VALUES: Final = 50_000

_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(sorted(set(range(256)) - set(_BRACKETS)))
_STEPS: Final = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")


class Extent(NamedTuple):
    """How deep a text is nested, and how many values it holds; 0 deep where those are too many."""

    depth: int
    values: int


def extent(text: bytes, most_values: int = MOST_VALUES) -> Extent:
    """Stops measuring where there are more values than `most_values`."""
    if _borders(text) > 4 * most_values + 4:
        return Extent(0, most_values + 1)
    bare = _STRING.sub(b"", text)
    brackets = bare.translate(_STEPS, _OTHERS)
    values = bare.count(b",") + (len(brackets) + 1) // 2 + 1
    if values > most_values:
        return Extent(0, values)
    return Extent(max(accumulate(array("b", brackets), initial=0)), values)


def _borders(text: bytes) -> int:
    """How many quotation marks may begin or end a string: four for each value, with its key."""
    return text.count(b'"') - text.count(rb"\"") + text.count(rb"\\" + b'"')


def load_json(text: str | bytes, most_values: int = MOST_VALUES) -> Any:
    """As `json.loads`, and InvalidValue for a text with more values than may be parsed at once."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if extent(raw, most_values).values > most_values:
        raise InvalidValue(msg("more than {n:,} values: send less at once", n=most_values))
    return json.loads(text)
