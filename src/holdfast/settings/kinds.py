"""Kinds of settings: how text, and a value in TOML, become a value of ours.

A reader raises `Unfit`; where the value stood is said by `sources` and `file`, which know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

Value: TypeAlias = str | int | float | bool | Path | tuple[str, ...] | None

YES: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
NO: Final = frozenset({"0", "false", "f", "no", "n", "off"})
HIDDEN: Final = "…"


class Unfit(ValueError):
    """A value that a setting cannot have."""


class Kind(StrEnum):
    """What a value is; the words are those of the documentation's table."""

    TEXT = "text"
    CHOICE = "one of"
    PATH = "path"
    URL = "URL"
    WHOLE = "whole number"
    NUMBER = "number"
    SWITCH = "yes or no"
    NAMES = "names"
    NETWORKS = "networks"
    TEXTS = "texts"


LISTS: Final = frozenset({Kind.NAMES, Kind.NETWORKS, Kind.TEXTS})


@dataclass(frozen=True, slots=True)
class Limits:
    """What a value of a kind must keep to."""

    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("http", "https")


def from_text(kind: Kind, limits: Limits, text: str) -> Value:
    """As a variable or an option has it; lists have blanks or commas between their items."""
    if kind in LISTS:
        parts = [text] if kind is Kind.TEXTS else text.replace(",", " ").split()
        return from_texts(kind, limits, parts)
    if kind is Kind.SWITCH:
        return _switch(text)
    if kind in (Kind.WHOLE, Kind.NUMBER):
        return _number(kind, limits, text)
    return _worded(kind, limits, text)


def from_texts(kind: Kind, limits: Limits, texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(_network(one) if kind is Kind.NETWORKS else one for one in texts)


def from_toml(kind: Kind, limits: Limits, value: Any) -> Value:
    """As the file has it: TOML has types of its own, so 8420 is a number there and no text."""
    if kind in LISTS:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise Unfit('it must be a list of texts, as ["a", "b"]')
        return from_texts(kind, limits, value)
    if kind is Kind.SWITCH:
        if not isinstance(value, bool):
            raise Unfit("it must be true or false")
        return value
    if kind in (Kind.WHOLE, Kind.NUMBER):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unfit("it must be a number, without quotation marks")
        return _number(kind, limits, str(value))
    if not isinstance(value, str):
        raise Unfit("it must be a text, in quotation marks")
    return _worded(kind, limits, value)


def _worded(kind: Kind, limits: Limits, text: str) -> Value:
    match kind:
        case Kind.PATH:
            return Path(text)
        case Kind.CHOICE:
            return _choice(limits, text)
        case Kind.URL:
            return _url(limits, text)
        case _:
            return text


def _switch(text: str) -> bool:
    word = text.strip().lower()
    if word not in YES | NO:
        raise Unfit(f"it must be yes or no (1, true, on; 0, false, off), not {_shown(text)}")
    return word in YES


def _number(kind: Kind, limits: Limits, text: str) -> int | float:
    read: Callable[[str], int | float] = int if kind is Kind.WHOLE else float
    try:
        value = read(text)
    except ValueError:
        raise Unfit(f"it is no {kind}") from None
    if not isfinite(value):
        raise Unfit(f"it is no {kind}")
    if limits.least is not None and value < limits.least:
        raise Unfit(f"it must be at least {limits.least:g}")
    if limits.most is not None and value > limits.most:
        raise Unfit(f"it must be at most {limits.most:g}")
    return value


def _choice(limits: Limits, text: str) -> str:
    word = text.strip().lower()
    if word not in limits.choices:
        raise Unfit(f"it must be one of {', '.join(limits.choices)}, not {_shown(text)}")
    return word


def _url(limits: Limits, text: str) -> str:
    scheme, separator, _ = text.partition("://")
    if not separator or scheme.lower() not in limits.schemes:
        wanted = " or ".join(f"{one}://" for one in limits.schemes)
        raise Unfit(f"it must be a URL that begins with {wanted}")
    return text


def _network(text: str) -> str:
    from ipaddress import ip_network

    try:
        network = ip_network(text)
    except ValueError as error:
        try:
            meant = ip_network(text, strict=False)
        except ValueError:
            raise Unfit(f"it must be networks as 10.0.0.0/8 or ::1, not {_shown(text)}") from error
        raise Unfit(f"it must be networks: {text} has host bits set, write {meant}") from error
    if network.prefixlen == 0:
        raise Unfit(f"it must be networks of your own: {text} is everybody")
    return str(network)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def has_password(text: str) -> bool:
    """Whether a URL has one, in its user part or in its query as libpq takes it."""
    return without_password(text) != text


def without_password(text: str) -> str:
    """A URL that may be shown. Of an address of PostgreSQL, whose passwords need not be encoded,
    all that may be part of one is left out."""
    scheme, separator, rest = text.partition("://")
    signs = ".*" if scheme.strip().lower() in ("postgresql", "postgres") else "[^/?#]*"
    rest = re.sub(f"^([^:/?#@]*):{signs}@", rf"\1:{HIDDEN}@", rest, flags=re.DOTALL)
    place, mark, query = rest.partition("?")
    pairs = (_without_secret(one) for one in query.split("&"))
    return f"{scheme}{separator}{place}{mark}{'&'.join(pairs)}"


def _without_secret(pair: str) -> str:
    name, _, value = pair.partition("=")
    secret = unquote(name).lower() in ("password", "sslpassword", "passwd", "token", "api_key")
    return f"{name}={HIDDEN}" if value and secret else pair
