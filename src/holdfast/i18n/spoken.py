"""Holdfast's own messages in the reader's language.

What Holdfast says is written in English where it comes about: in the core, in the journal, in a
refusal. It stays so there, and is put into another language only when somebody reads it. The
catalogue has every message as a pattern; what varies stands in braces:

    {name}           any text; it is kept as it is
    {name:word}      any text without a space
    {name:number}    a number, as `1,000`
    {name:quoted}    a value as messages quote it: "text", 'text', 12, true, a list
    {name:title}     a question's title, quoted
    {name:option}    the label of an option, quoted
    {name:moment}    a time in UTC, as 2026-01-31T08:30:00.000+00:00
    {name:condition} a condition of a plan
    {name:place}     a part of a file or a value: a path, or the whole of it
    {name:term}      a word or phrase of ours, or any text, which is kept
    {name:kind}      what a value is: null, text, true or false, a number
    {name:phrase}    a phrase of ours, else the pattern does not fit
    {name:said}      a message of ours, or any text, which is kept
    {name:known}     a message of ours, else the pattern does not fit

A message fits a pattern as a whole or not at all, and the pattern with the most words of its own
is tried first. Values are never read as patterns: only where a pattern says that another message
of ours stands in it, that one is looked up. Several messages joined by `; `, or one in each line,
are each said. What is not in the catalogue (a tool's own words, an author's, a person's) is given
back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Final

from holdfast.i18n import (
    words_cards,
    words_checks,
    words_failures,
    words_forms,
    words_refusals,
    words_sources,
    words_terms,
)

SENTENCES: Final[Mapping[str, str]] = {
    **words_forms.SENTENCES,
    **words_sources.SENTENCES,
    **words_checks.SENTENCES,
    **words_failures.SENTENCES,
    **words_refusals.SENTENCES,
}
"""Whole messages."""

PHRASES: Final[Mapping[str, str]] = {
    **words_forms.PHRASES,
    **words_sources.PHRASES,
    **words_checks.PHRASES,
    **words_failures.PHRASES,
    **words_refusals.PHRASES,
    **words_terms.PHRASES,
}
"""What stands within messages, and titles."""

LONGEST: Final = 4_000
"""Longer texts are no messages of ours, but something that was handed through."""

LONGEST_MESSAGE: Final = 1_000
"""So is a longer message; and nobody's words take long to be compared with ours."""

MOST_LINES: Final = 100
MOST_PARTS: Final = 40
"""Neither do messages of ours have more lines, or more messages in one line."""

_DEEPEST: Final = 5
_JOINT: Final = "; "
_QUOTED: Final = (
    r"""(?>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|-?[0-9][0-9.eE+-]*+|true|false|null|"""
    r"a\ list|an\ object|a\ mapping)"
)
_SHAPES: Final[Mapping[str, str]] = {
    "word": r"\S+?",
    "number": r"-?[0-9][0-9,.eE+-]*",
    "quoted": _QUOTED,
    "title": _QUOTED,
    "option": _QUOTED,
    "moment": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\S*?",
    "condition": r"[^,]*?(?:[=<>]|\ in\ ).+|\w+",
    "kind": r"null|text|true\ or\ false|a\ number",
    "place": r"the\ plan|the\ agent|\$.+?|\S+?",
}


def said(text: str, language: str) -> str:
    """A message in the reader's language; what is not ours stays as it is."""
    if language != "zh" or len(text) > LONGEST or text.count("\n") > MOST_LINES:
        return text
    lines = [(_message(line, _DEEPEST), line) for line in text.split("\n")]
    each = "\n".join(known or line for known, line in lines)
    if all(known for known, _ in lines):
        return each
    return _message(text, _DEEPEST) or each


def term(text: str, language: str) -> str:
    """A word or a phrase of ours, such as a title, in the reader's language."""
    return (language == "zh" and _phrase(text, _DEEPEST)) or text


def asked(text: str, language: str) -> str:
    """What a card asks, each line in the reader's language where it is one of ours."""
    if language != "zh" or len(text) > LONGEST or text.count("\n") > MOST_LINES:
        return text
    found = ((_found(_lines(), line, _DEEPEST), line) for line in text.split("\n"))
    return "\n".join(chinese or line for chinese, line in found)


def labelled(text: str, language: str) -> str:
    """The label of an option or a field that is offered by custom."""
    return (language == "zh" and _found(_labels(), text, _DEEPEST)) or text


@dataclass(frozen=True, slots=True)
class Pattern:
    """One message; `head` and `tail` are the words it begins and ends with."""

    shape: re.Pattern[str]
    kinds: Mapping[str, str]
    head: str
    tail: str
    weight: int
    chinese: str

    def say(self, text: str, depth: int) -> str | None:
        if not (text.startswith(self.head) and text.endswith(self.tail)):
            return None
        fitting = self.shape.fullmatch(text)
        return None if fitting is None else self._filled(fitting.groupdict(), depth)

    def _filled(self, values: Mapping[str, str], depth: int) -> str | None:
        told = {}
        for name, value in values.items():
            part = _PARTS.get(self.kinds[name])
            spoken = part(value, depth - 1) if part else value
            if spoken is None:
                return None
            told[name] = spoken
        return self.chinese.format_map(told)


def _message(text: str, depth: int) -> str | None:
    return _found(_sentences(), text, depth) or _joined(text, depth)


def _joined(text: str, depth: int) -> str | None:
    """Each of several messages; they are ours only if all of them are."""
    parts = _parts(text, depth)
    known = [part for part, _ in parts if part]
    return "；".join(known) if len(parts) > 1 and len(known) == len(parts) else None


def _parts(text: str, depth: int) -> list[tuple[str | None, str]]:
    """None where there are too many."""
    if text.count(_JOINT) > MOST_PARTS:
        return []
    return [(_found(_sentences(), part, depth), part) for part in text.split(_JOINT)]


def _phrase(text: str, depth: int) -> str | None:
    return _found(_phrases(), text, depth)


def _message_or_text(text: str, depth: int) -> str:
    """What is not ours is kept, also where a message of ours follows it."""
    whole = _found(_sentences(), text, depth)
    parts = [] if whole else _parts(text, depth)
    if not any(known for known, _ in parts):
        return whole or text
    return "；".join(known or part for known, part in parts)


def _phrase_or_text(text: str, depth: int) -> str:
    return _phrase(text, depth) or text


def _title_or_text(text: str, depth: int) -> str:
    return _requoted(_found(_lines(), text[1:-1], depth), text)


def _option_or_text(text: str, depth: int) -> str:
    return _requoted(_found(_labels(), text[1:-1], depth) or _phrase(text[1:-1], depth), text)


def _requoted(chinese: str | None, text: str) -> str:
    return f"“{chinese}”" if chinese else text


def _place(text: str, depth: int) -> str:
    """Parts of a file have phrases, such as the whole of it; a name is a name in any language."""
    return _phrase_or_text(text, depth) if " " in text else text


def _moment(text: str, _: int) -> str:
    return f"{text[:10]} {text[11:19]} (UTC)"


_PARTS: Final[Mapping[str, Callable[[str, int], str | None]]] = {
    "phrase": _phrase,
    "kind": _phrase,
    "known": _message,
    "said": _message_or_text,
    "term": _phrase_or_text,
    "quoted": _phrase_or_text,
    "title": _title_or_text,
    "option": _option_or_text,
    "moment": _moment,
    "place": _place,
}
"""What becomes of a value by its kind; None where the pattern does not fit."""


def _found(patterns: Iterable[Pattern], text: str, depth: int) -> str | None:
    if not depth or len(text) > LONGEST_MESSAGE:
        return None
    return next(filter(None, (one.say(text, depth) for one in patterns)), None)


def prepare() -> None:
    """Have every pattern compiled before somebody waits for it."""
    for patterns in (_sentences, _phrases, _lines, _labels):
        patterns()


@cache
def _sentences() -> tuple[Pattern, ...]:
    return compiled(SENTENCES)


@cache
def _phrases() -> tuple[Pattern, ...]:
    return compiled(PHRASES)


@cache
def _lines() -> tuple[Pattern, ...]:
    return compiled(words_cards.LINES)


@cache
def _labels() -> tuple[Pattern, ...]:
    return compiled({**words_cards.LABELS, **words_terms.OPTIONS})


def compiled(words: Mapping[str, str]) -> tuple[Pattern, ...]:
    """The patterns, those with most words of their own first."""
    return tuple(sorted((_pattern(*one) for one in words.items()), key=lambda one: -one.weight))


def _pattern(english: str, chinese: str) -> Pattern:
    shape, kinds, literals = "", {}, [""]
    for literal, name, kind, _ in Formatter().parse(english):
        shape += re.escape(literal)
        literals[-1] += literal
        if name is not None:
            kinds[name] = kind or ""
            shape += f"(?P<{name}>{_SHAPES.get(kind or '', '.+?')})"
            literals.append("")
    return Pattern(
        shape=re.compile(shape, re.DOTALL),
        kinds=kinds,
        head=literals[0],
        tail=literals[-1],
        weight=sum(map(len, literals)),
        chinese=chinese,
    )
