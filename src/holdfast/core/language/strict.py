"""Strict JSON: the one gate through which a foreign value enters a run.

Live state and replayed state are equal only if a value survives the journal's codec unchanged, so
whatever JSON would bend (tuples, enums) is made plain here and whatever it would lose (NaN, bytes,
number keys, lone surrogates, integers beyond 64 bits) is refused, with its place.

The walk carries no path and no set of ancestors, because almost every value is accepted: a refusal
collects its path while it unwinds. A cycle always meets the depth limit, and is told from depth
by finding the value that met it again among its own ancestors. Size is counted on the way, so that
a huge or multiply shared value is refused early. Messages name keys and types, never values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from math import isfinite
from typing import Any, Final

from holdfast.errors import InvalidValue
from holdfast.model.values import Json

_SMALLEST_INT: Final = -(2**63)
_LARGEST_INT: Final = 2**63 - 1
_VALUE_SIZE: Final = 20
_CONTAINER_SIZE: Final = 100
"""What a value counts as at least: to look at a million takes time, however small they are."""
_LONGEST_KEY_SHOWN: Final = 40

_REMEDIES: Final[dict[type, str]] = {
    bytes: "decode it to text, or send base64",
    bytearray: "decode it to text, or send base64",
    set: "make it a list",
    frozenset: "make it a list",
}

_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


def strict_json(value: object, *, max_depth: int = 64, max_bytes: int = 1_000_000) -> Json:
    """A fresh, plain copy of `value`, or InvalidValue saying what is wrong and where.

    `max_depth` counts nested lists and dicts, `max_bytes` the approximate serialised size, in
    which every value counts as at least 20, and a list or dict as 100.
    """
    try:
        return _Copier(max_bytes).copy(value, max_depth)
    except _Refused as refused:
        raise InvalidValue(refused.reason, json_path(reversed(refused.trail))) from None


def strict_text(text: object, what: str, *, longest: int = 10_000) -> str:
    """A caller's words as the journal can keep them, or InvalidValue."""
    if not isinstance(text, str):
        raise InvalidValue(f"must be text, not {type(text).__name__}", what)
    if len(text) > longest:
        raise InvalidValue(f"at most {longest:,} characters are taken", what)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("half of a character (a lone surrogate)", what) from None
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
    """What is wrong; `trail` grows from the place outwards, `at` is set when too deep."""

    def __init__(self, reason: str, at: object = None) -> None:
        self.reason = reason
        self.at = at
        self.trail: list[str | int] = []

    def passing(self, container: object, part: str | int) -> None:
        self.trail.append(part)
        if self.at is container:
            self.reason = "contains itself: JSON cannot hold a cycle"
            self.trail.clear()


class _Copier:
    """Copies one value; `left` is what remains of the allowed size."""

    __slots__ = ("left", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.left = max_bytes

    def copy(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if kind is str:
            self.left -= _VALUE_SIZE + (len(value) if value.isascii() else self.utf8_size(value))
        elif kind is int:
            if not _SMALLEST_INT <= value <= _LARGEST_INT:
                raise _Refused("an integer beyond 64 bits: send it as text")
            self.left -= _VALUE_SIZE
        elif kind is bool or value is None:
            self.left -= _VALUE_SIZE
        elif kind is dict:
            return self.mapping(value, depth)
        elif kind is list:
            return self.sequence(value, depth)
        elif kind is float:
            if not isfinite(value):
                raise _Refused("NaN and Infinity are not JSON: send null or text")
            self.left -= _VALUE_SIZE
        else:
            return self.plain(value, depth)
        if self.left < 0:
            raise self.too_large()
        return value

    def plain(self, value: object, depth: int) -> Json:
        """Subclasses lose what JSON cannot carry; anything else is refused."""
        match value:
            case str():
                return self.copy(str.__str__(value), depth)
            case int():
                return self.copy(int.__int__(value), depth)
            case float():
                return self.copy(float.__float__(value), depth)
            case dict():
                return self.mapping(value, depth)
            case list() | tuple():
                return self.sequence(value, depth)
        kind = type(value)
        remedy = _REMEDIES.get(kind, "convert it to text, a number, a list or a dict")
        raise _Refused(f"{kind.__name__} is not JSON: {remedy}")

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Json]:
        if not depth:
            raise _Refused("nested too deep: flatten it", at=value)
        copied = {}
        self.spend(_CONTAINER_SIZE)
        for key, item in value.items():
            if type(key) is str and key.isascii():
                self.left -= 3 + len(key)
                name = key
            else:
                name = self.key(key)
            try:
                copied[name] = self.copy(item, depth - 1)
            except _Refused as refused:
                refused.passing(value, name)
                raise
        return copied

    def sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Json]:
        if not depth:
            raise _Refused("nested too deep: flatten it", at=value)
        copied: list[Json] = []
        self.spend(_CONTAINER_SIZE)
        try:
            for item in value:
                copied.append(self.copy(item, depth - 1))
        except _Refused as refused:
            refused.passing(value, len(copied))
            raise
        return copied

    def key(self, key: object) -> str:
        if isinstance(key, str):
            text: str = self.copy(key, 0)
            return text
        raise _Refused(f"a key of type {type(key).__name__}: JSON has only text keys")

    def utf8_size(self, text: str) -> int:
        if len(text) > self.left:
            raise self.too_large()
        try:
            return len(text.encode())
        except UnicodeEncodeError:
            raise _Refused("text with a lone surrogate: it is not valid Unicode") from None

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise self.too_large()

    def too_large(self) -> _Refused:
        return _Refused(
            f"larger than {self.max_bytes:,} bytes in all, with at least {_VALUE_SIZE} for every "
            "value: store it elsewhere, send a reference"
        )
