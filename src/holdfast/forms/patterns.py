"""Patterns of fields: regular expressions that are bounded before anything runs them.

They mean what JSON Schema means by them, a match anywhere unless anchored, and run on pydantic's
engine, whose time is linear in the text, at the price of look-around and back-references, which it
does not know. It is linear in the pattern too: in what the pattern becomes once its counted repeats
are written out. No other thread runs during a match, so a pattern's size, its repeats
and the text that it is matched with are bounded together, in steps of about 7 µs to compile
(`program`) and 20 ns for a character (`width`).

A pattern is measured without being compiled. What cannot be read here is either refused by the
engine as well or counted as more than it is. Verbose mode (`(?x)`) hides what is counted, and
is counted as endless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from holdfast.i18n.message import msg

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

LONGEST_PATTERN: Final = 200
LARGEST_PROGRAM: Final = 4_000
LARGEST_PROGRAMS: Final = 6_000
"""How large all patterns of one form may be together."""

MATCH_BUDGET: Final = 1_200_000
"""Width times characters, of all texts that are matched at once."""

_TOKEN: Final = re.compile(
    r"""
    (?P<open> \((?:\?(?:P?<[^>]*>|(?P<flags>[a-zA-Z-]*)(?P<whole>[:)]))?)? )
  | (?P<close> \) )
  | (?P<either> \| )
  | \{\s*(?P<least>[0-9]*)\s*(?P<range>,\s*(?P<most>[0-9]*)\s*)?\}
  | (?P<loop> [*+?] )
  | (?P<large> \\[wWbB] | \\[pP](?:\{[^}]*\}|.) )
  | (?P<nodigit> \\D )
  | (?P<digit> \\d )
  | (?P<allbut> \\S )
  | (?P<wide> \. | \\s | \\[xuU]\{[^}]*\} | [^\x00-\x7f] )
  | (?P<set> \[ )
  | \\.
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_VERBOSE: Final = re.compile(r"\(\?[a-zA-Z]*x")
_IN_SET: Final = re.compile(
    r"(?P<large>\\[wW]|\\[pP](?:\{[^}]*\}|.))|(?P<nodigit>\\D)|(?P<digit>\\d)|(?P<open>\[\^?\]?)|(?P<close>\])|\\.|.",
    re.DOTALL,
)
_WITHOUT: Final = re.compile(r"\^|--|~~")


@dataclass(frozen=True, slots=True)
class Size:
    """What a pattern becomes: its program, and how much of it one character may wake."""

    program: int
    width: int

    def __add__(self, other: Size) -> Size:
        return Size(self.program + other.program, self.width + other.width)

    def times(self, count: int) -> Size:
        return Size(self.program * count, self.width * count)


_NOTHING: Final = Size(0, 0)
_PLAIN: Final = Size(1, 1)
_WIDE: Final = Size(5, 4)
_ALL_BUT: Final = Size(5, 10)
_DIGIT: Final = Size(7, 4)
_NO_DIGIT: Final = Size(20, 20)
"""Digits of all scripts are some sixty ranges, and what lies between them is twice as much."""
_LARGE: Final = Size(80, 12)
"""A class of Unicode's letters has some hundred ranges, and so has a word's border."""
_ENDLESS: Final = Size(10**12, 10**12)
_CLASSES: Final = {
    "large": _LARGE,
    "nodigit": _NO_DIGIT,
    "digit": _DIGIT,
    "allbut": _ALL_BUT,
    "wide": _WIDE,
}
"""The costliest first."""


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> SchemaValidator:
    """Raises ValueError with the reason why the pattern cannot be used."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(msg("it has more than {n} characters", n=LONGEST_PATTERN))
    if _VERBOSE.search(pattern):
        raise ValueError(msg("write it without (?x): verbose mode cannot be used here"))
    if (size := measure(pattern).program) > LARGEST_PROGRAM:
        raise ValueError(
            msg(
                "with its repeats written out it has {n:,} steps, and {most:,} are allowed: "
                "let max_length bound the text instead of counting, or write [A-Za-z0-9_] for "
                "\\w",
                n=size,
                most=LARGEST_PROGRAM,
            )
        )
    return _compiled(pattern)


def _compiled(pattern: str) -> SchemaValidator:
    from pydantic_core import SchemaError, SchemaValidator
    from pydantic_core.core_schema import str_schema

    try:
        return SchemaValidator(str_schema(pattern=pattern))
    except SchemaError as error:
        raise ValueError(str(error).strip().rpartition("rror: ")[2]) from None


def is_usable(pattern: str) -> bool:
    return len(pattern) <= LONGEST_PATTERN and measure(pattern).program <= LARGEST_PROGRAM


def most_text(pattern: str) -> int:
    """How many characters may be matched with the pattern."""
    return MATCH_BUDGET // measure(pattern).width


def match_cost(pattern: str, text: str) -> int:
    """What a match takes; nothing where the text is too long to be tried."""
    return measure(pattern).width * len(text) if len(text) <= most_text(pattern) else 0


def programs(patterns: Iterable[str]) -> int:
    """How large these patterns are together; one that stands there twice is compiled once."""
    return sum(measure(one).program for one in set(patterns))


@lru_cache(maxsize=1024)
def measure(pattern: str) -> Size:
    """How large the pattern is with its counted repeats written out; never less than it is."""
    return _Reader(pattern[: LONGEST_PATTERN + 1]).read()


class _Reader:
    """Reads a pattern from left to right; `groups` are those that are open, with what they have."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.literal = _PLAIN
        self.groups: list[Size] = []
        self.whole = _PLAIN
        self.last = _NOTHING

    def read(self) -> Size:
        while match := _TOKEN.match(self.pattern, self.position):
            self.position = match.end()
            self._take(match)
        while self.groups:
            self._close()
        return self.whole + self.last

    def _take(self, match: re.Match[str]) -> None:
        kind = match.lastgroup
        if match["open"]:
            self._open(match["flags"] or "", match["whole"])
        elif match["close"]:
            self._close()
        elif match["either"]:
            self._add(_PLAIN)
        elif match["least"] is not None:
            self.last = self.last.times(_count(match["least"], match["most"]))
        elif kind == "loop":
            self.last += _PLAIN
        elif kind == "set":
            self._add(self._set())
        else:
            self._add(_CLASSES.get(kind or "", self.literal))

    def _add(self, size: Size) -> None:
        """Repeats that follow are of this."""
        self.whole += self.last
        self.last = size

    def _open(self, flags: str, end: str | None) -> None:
        if "x" in flags:
            self._add(_ENDLESS)
        if "i" in flags:
            self.literal = _WIDE
        if end != ")":
            self._add(_NOTHING)
            self.groups.append(self.whole)
            self.whole = _PLAIN

    def _close(self) -> None:
        within = self.whole + self.last
        if self.groups:
            self.whole, self.last = self.groups.pop(), within

    def _set(self) -> Size:
        """From behind a `[` to its end, with the sets that stand in it."""
        found, start, depth = {"wide"}, self.position, 1
        if self.pattern.startswith(("]", "^]"), start):
            self.position = self.pattern.index("]", start) + 1
        while depth and (match := _IN_SET.match(self.pattern, self.position)):
            self.position = match.end()
            depth += bool(match["open"]) - bool(match["close"])
            found.add(match.lastgroup or "")
        if _WITHOUT.search(self.pattern, start, self.position):
            found.add("nodigit" if "digit" in found else "allbut")
        ranges = (self.position - start) // 2
        costliest = next(kind for kind in _CLASSES if kind in found)
        return _CLASSES[costliest] + Size(ranges, ranges)


def _count(least: str, most: str | None) -> int:
    return max(int(most or 0), int(least or 0), 1)
