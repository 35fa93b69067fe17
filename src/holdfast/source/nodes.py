"""What a document is made of: nodes that know where they stand, and what a scalar stands for.

A scalar keeps its source text: whether `010` is an id or a number is decided by who asks.
`plain_value` follows YAML 1.2, except that a number with a leading zero stays text: it is an id
whose quotes were forgotten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from holdfast.i18n.message import msg
from holdfast.model.values import Json

MAX_INTEGER = 2**63 - 1

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar; `style` is its quote or block sign, empty for a plain one."""

    text: str
    style: str
    line: int
    column: int

    @property
    def is_null(self) -> bool:
        return not self.style and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Mapping:
    entries: tuple[tuple[Scalar, Node], ...]
    line: int
    column: int


Node: TypeAlias = Scalar | Sequence | Mapping


class Unreadable(Exception):
    """A plain scalar that stands for no JSON value; the message says what to write instead."""


def scalar_value(scalar: Scalar) -> Json:
    """The JSON value that a scalar stands for; raises Unreadable."""
    return scalar.text if scalar.style else plain_value(scalar.text)


def plain_value(text: str) -> Json:
    """What an unquoted scalar stands for."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _NOT_FINITE.fullmatch(text):
        raise Unreadable(
            msg("{text} is not a number that JSON knows; quote it if text is meant", text=text)
        )
    return _number(text) if _FLOAT.fullmatch(text) else text


def _number(text: str) -> int | float:
    value = float(text)
    if _INTEGER.fullmatch(text) and abs(value) < MAX_INTEGER:
        return int(text)
    if _INTEGER.fullmatch(text) or not isfinite(value):
        raise Unreadable(
            msg("{text} is too large for a number; quote it if text is meant", text=text)
        )
    return value
