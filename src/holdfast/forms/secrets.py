"""Secrets: references that stand for what people typed, and texts rid of the values themselves.

A reference is a string, `secret:` and 32 hex digits, so it travels through contexts, templates,
snippets, prompts and arguments like any other text, also in the middle of one ("Bearer secret:…").
Only the executor of a call puts the value in its place (`fill`), and takes it out again of whatever
comes back (`Scrubber`).

Where a value comes back as it was sent, its reference takes its place: a token that one tool
returns can still be handed to the next. In another spelling (escaped, percent-encoded, base64) the
reference would not stand for the same text, so a mark does. A value of fewer than four characters
is only recognised where it is the whole text: "12" stands in too many others by chance.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Final, TypeGuard

from holdfast.model.values import Json

HIDDEN: Final = "(secret)"

PREFIX: Final = "secret:"
_REFERENCE: Final = re.compile(r"secret:[0-9a-f]{32}")
_SHORTEST_PART: Final = 4
_SHORTEST_BASE64: Final = 6


def reference_of(digest: bytes) -> str:
    """The reference that a keyed digest makes; 16 bytes of it are enough."""
    return f"{PREFIX}{digest[:16].hex()}"


def is_reference(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def references_in(value: Json) -> frozenset[str]:
    """Every reference anywhere in it, inside longer texts and names as well."""
    found: list[str] = []
    inside = [value]
    for one in inside:
        if isinstance(one, str):
            found += _REFERENCE.findall(one)
        elif isinstance(one, list | tuple):
            inside += one
        elif isinstance(one, Mapping):
            inside += (*one, *one.values())
    return frozenset(found)


def fill(value: Json, values: Mapping[str, str]) -> Json:
    """The same with values in place of the references that are known."""
    return _each_text(value, lambda text: _REFERENCE.sub(lambda one: _known(one, values), text))


class Scrubber:
    """Takes the same values out of many texts."""

    def __init__(self, values: Mapping[str, str], nameless: Iterable[str] = ()) -> None:
        """`values` are keyed by their references; for the `nameless`, which have none, a mark
        stands in any spelling."""
        self._references = {
            **{value: HIDDEN for value in nameless if len(value) >= _SHORTEST_PART},
            **{value: reference for reference, value in values.items() if value},
        }
        # The longest first: what begins with another value must not be cut apart by it.
        ordered = sorted(self._references, key=len, reverse=True)
        patterns = [one for value in ordered for one in _spellings(value)]
        self._pattern = re.compile("|".join(patterns)) if patterns else None
        self._numbers = frozenset(map(_spelled, self._references)) - {None}

    def value(self, value: Json) -> Json:
        return _each_text(value, self.text, self._number)

    def text(self, text: str) -> str:
        if text in self._references:
            return self._references[text]
        return text if self._pattern is None else self._pattern.sub(self._instead, text)

    def _number(self, number: float) -> Json:
        """A number that spells a value is that value: a code of digits comes back as one."""
        if number not in self._numbers:
            return number
        spelled = json.dumps(number)
        known = len(spelled) >= _SHORTEST_PART and spelled in self._references
        return self._references[spelled] if known else number

    def _instead(self, found: re.Match[str]) -> str:
        return self._references.get(found[0], HIDDEN)


def _spelled(text: str) -> float | None:
    """The number that a text spells."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, int | float) else None


def _known(found: re.Match[str], values: Mapping[str, str]) -> str:
    return values.get(found[0], found[0])


def _each_text(
    value: Json, text: Callable[[str], str], number: Callable[[float], Json] = lambda one: one
) -> Json:
    match value:
        case str():
            return text(value)
        case bool():
            return value
        case int() | float():
            return number(value)
        case Mapping():
            return {text(name): _each_text(one, text, number) for name, one in value.items()}
        case list() | tuple():
            return [_each_text(one, text, number) for one in value]
    return value


def _spellings(value: str) -> Iterator[str]:
    """Patterns of a value as it is, and as it is written in addresses, JSON, Python, HTML
    and base64."""
    if len(value) < _SHORTEST_PART:
        return
    yield re.escape(value)
    yield "".join(map(_percent_encoded, value))
    escaped = (json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value))
    yield from (
        re.escape(one) for one in dict.fromkeys((*(e[1:-1] for e in escaped), escape(value)))
    )
    raw = value.encode()
    for shift in range(3):
        yield from (one for one in _base64(raw, shift) if len(one) >= _SHORTEST_BASE64)


def _percent_encoded(character: str) -> str:
    """Which characters are encoded differs from one library to the next: any may be."""
    encoded = "".join(f"%{byte:02x}" for byte in character.encode())
    plus = r"|\+" if character == " " else ""
    return f"(?:{re.escape(character)}|(?i:{encoded}){plus})"


def _base64(raw: bytes, shift: int) -> Iterator[str]:
    """What a value looks like behind `shift` other bytes, without the letters it shares."""
    first, last = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
    for encode in (b64encode, urlsafe_b64encode):
        yield re.escape(encode(bytes(shift) + raw).decode()[first:last])
