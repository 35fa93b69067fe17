"""Strict JSON: the one gate through which a foreign value enters a run.

Live state and replayed state are equal only if a value survives the journal's codec unchanged, so
whatever JSON would bend (tuples, enums) is made plain here and whatever it would lose (NaN, bytes,
number keys, lone surrogates, integers beyond 64 bits) is refused, with its place. So is U+0000,
which databases do not keep in text.

The walk is one loop, because every result of every call passes here. It keeps the containers
around the one it is in, and the place of a refusal is read from them. A cycle always meets the
depth limit, and is told from depth by finding the value that met it among its own ancestors. Size
is counted on the way, so that a huge or multiply shared value is refused early. Messages name keys
and types, never values.

JSON text is measured before it is parsed (`extent`, `load_json`): parsing keeps the interpreter
until it has ended, and a short text may hold a great many values: a megabyte of `[],` took a third
of a second. It is refused by its depth and by how many values it holds, found in linear time and
without a single Python object for any of them.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import accumulate
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.errors import InvalidValue
from holdfast.i18n.message import Message, msg
from holdfast.model.values import Json

_SMALLEST_INT: Final = -(2**63)
_LARGEST_INT: Final = 2**63 - 1
_VALUE_SIZE: Final = 20
_ENTRY_SIZE: Final = 3 + _VALUE_SIZE
_CONTAINER_SIZE: Final = 100
"""What a value counts as at least: to look at a million takes time, however small they are."""
_LONGEST_KEY_SHOWN: Final = 40
_FEW: Final = 16
_CONTAINERS: Final = frozenset({dict, list})
_JSON_TYPES: Final = _CONTAINERS | {str, int, float, bool, type(None)}

MOST_VALUES: Final = 50_000

NUL: Final = "\0"
NO_NUL: Final = msg("text with the character U+0000, which no database keeps: leave it out")

_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(sorted(set(range(256)) - set(_BRACKETS)))
_STEPS: Final = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")

_REMEDIES: Final[dict[type, str]] = {
    bytes: msg("decode it to text, or send base64"),
    bytearray: msg("decode it to text, or send base64"),
    set: msg("make it a list"),
    frozenset: msg("make it a list"),
}

_Level: TypeAlias = tuple[Any, Any, Iterator[tuple[Any, Any]], Any]
"""A container, its copy, what is left of its entries, and the part of it that is looked at."""

_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


def strict_json(value: Any, *, max_depth: int = 64, max_bytes: int = 1_000_000) -> Json:
    """A fresh, plain copy of `value`, or InvalidValue saying what is wrong and where.

    `max_depth` counts nested lists and dicts, `max_bytes` the approximate serialised size, in
    which every value counts as at least 20, and a list or dict as 100.
    """
    left = max_bytes - _CONTAINER_SIZE
    if type(value) is dict and len(value) <= _FEW and max_depth > 0:
        # Most values are a few plain ones with names: what they are is all there is to look at.
        for key, item in value.items():
            kind = type(item)
            if type(key) is not str or not key.isascii() or NUL in key:
                break
            if kind is str and item.isascii() and NUL not in item:
                left -= len(item)
            elif kind is int and _SMALLEST_INT <= item <= _LARGEST_INT:
                pass
            elif kind is not bool and item is not None:
                break
            left -= _ENTRY_SIZE + len(key)
        else:
            if left >= 0:
                return {**value}
    # A plain dict is walked as it is; anything else as the only entry of a list.
    plain = type(value) is dict and max_depth > 0 and max_bytes >= _CONTAINER_SIZE
    source, part = value if plain else ..., None
    copied: Any = {} if plain else []
    entries = iter(value.items() if plain else [(None, value)])
    left = max_bytes - _CONTAINER_SIZE if plain else max_bytes
    around: list[_Level] = []
    try:
        while True:
            named = type(copied) is dict
            for part, item in entries:
                if named:
                    if type(part) is str and part.isascii() and NUL not in part:
                        left -= 3 + len(part)
                    else:
                        key, part = part, None
                        part, left = _odd_key(key, left)
                kind = type(item)
                if kind not in _JSON_TYPES:
                    kind, item = _plain(item)
                made = item
                if kind is str:
                    plainly = item.isascii() and NUL not in item
                    left -= len(item) if plainly else _utf8_size(item, left)
                elif kind is int:
                    if not _SMALLEST_INT <= item <= _LARGEST_INT:
                        raise _Refused(msg("an integer beyond 64 bits: send it as text"))
                elif kind in _CONTAINERS:
                    if len(around) + plain == max_depth:
                        raise _Refused(msg("nested too deep: flatten it"), at=item)
                    left, made = left + _VALUE_SIZE - _CONTAINER_SIZE, kind()
                elif kind is float and not isfinite(item):
                    raise _Refused(msg("NaN and Infinity are not JSON: send null or text"))
                left -= _VALUE_SIZE
                if left < 0:
                    raise _Refused(None)
                if named:
                    copied[part] = made
                else:
                    copied.append(made)
                if made is not item:
                    around.append((source, copied, entries, part))
                    source, copied = item, made
                    entries = iter(item.items() if kind is dict else enumerate(item))
                    break
            else:
                if not around:
                    return copied if plain else copied[0]
                source, copied, entries, part = around.pop()
    except _Refused as refused:
        raise refused.told([*around, (source, copied, entries, part)], max_bytes) from None


def copied(value: Json) -> Json:
    """The value in lists and dicts of its own, for code that may change what it is given."""
    if isinstance(value, Mapping):
        return {name: copied(one) for name, one in value.items()}
    if isinstance(value, list):
        return [copied(one) for one in value]
    if isinstance(value, tuple):
        return tuple(copied(one) for one in value)
    return value


def strict_text(text: object, what: str, *, longest: int = 10_000) -> str:
    """A caller's words as the journal can keep them, or InvalidValue."""
    if not isinstance(text, str):
        raise InvalidValue(msg("must be text, not {kind}", kind=type(text).__name__), what)
    if len(text) > longest:
        raise InvalidValue(msg("at most {n:,} characters are taken", n=longest), what)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(msg("half of a character (a lone surrogate)"), what) from None
    if NUL in text:
        raise InvalidValue(NO_NUL, what)
    return text


def canonical_json(value: Json) -> str:
    """The one spelling of a strict value: equal data gives equal text."""
    return _encode(value)


def digest(value: Json) -> str:
    """SHA-256 of the canonical form, in hex."""
    return sha256(_encode(value).encode()).hexdigest()


def json_path(parts: Iterable[str | int]) -> str:
    """A place inside a value, as `$.items[3].price`."""
    return "$" + "".join(map(_path_part, parts))


def _path_part(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if len(part) > _LONGEST_KEY_SHOWN:
        part = part[:_LONGEST_KEY_SHOWN] + "…"
    return f".{part}" if part.isidentifier() else f"[{json.dumps(part)}]"


class _Refused(Exception):
    """What is wrong, None for a value that is too large; `at` is one that is nested too deep."""

    def __init__(self, reason: str | None, at: object = None) -> None:
        self.reason = reason
        self.at = at

    def told(self, levels: list[_Level], max_bytes: int) -> InvalidValue:
        """With its place: the parts on the way."""
        path: list[str | int] = []
        for source, _, _, part in levels:
            if source is self.at:
                return InvalidValue(
                    msg("contains itself: JSON cannot hold a cycle"), json_path(path)
                )
            if part is not None:
                path.append(part)
        return InvalidValue(self.reason or _too_large(max_bytes), json_path(path))


def _too_large(most: int) -> str:
    return msg(
        "larger than {n:,} bytes in all, with at least {m} for every value: store it elsewhere, "
        "send a reference",
        n=most,
        m=_VALUE_SIZE,
    )


def _plain(value: object) -> tuple[type, Any]:
    """Its JSON type, and the value without what that type cannot carry; or it is refused."""
    match value:
        case str():
            return str, value if isinstance(value, Message) else str.__str__(value)
        case int():
            return int, int.__int__(value)
        case float():
            return float, float.__float__(value)
        case dict():
            return dict, value
        case list() | tuple():
            return list, value
    kind = type(value)
    remedy = _REMEDIES.get(kind, msg("convert it to text, a number, a list or a dict"))
    raise _Refused(msg("{kind} is not JSON: {remedy}", kind=kind.__name__, remedy=remedy))


def _odd_key(key: object, left: int) -> tuple[str, int]:
    """A key that is not plain ASCII, as text, and what it leaves of the allowed size."""
    if not isinstance(key, str):
        raise _Refused(
            msg("a key of type {kind}: JSON has only text keys", kind=type(key).__name__)
        )
    text = str.__str__(key)
    left -= _VALUE_SIZE + _utf8_size(text, left)
    if left < 0:
        raise _Refused(None)
    return text, left


def _utf8_size(text: str, left: int) -> int:
    if len(text) > left:
        raise _Refused(None)
    if NUL in text:
        raise _Refused(NO_NUL)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _Refused(msg("text with a lone surrogate: it is not valid Unicode")) from None


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
