"""What the YAML parser says of broken syntax, as messages.

The parser has only texts; those that plans run into are recognised here, the longest first.
"""

from __future__ import annotations

import re
from functools import cache
from string import Formatter
from typing import Final

from holdfast.i18n.message import msg, msgid, term

_PROBLEMS: Final = (
    msgid("mapping values are not allowed here"),
    msgid("mapping keys are not allowed here"),
    msgid("sequence entries are not allowed here"),
    msgid("could not find expected ':'"),
    msgid("found unexpected ':'"),
    msgid("found character '\\t' that cannot start any token"),
    msgid("found character {found} that cannot start any token"),
    msgid("found unexpected end of stream"),
    msgid("found unexpected document separator"),
    msgid("found unknown escape character {found}"),
    msgid("expected escape sequence of {n} hexdecimal numbers, but found {found}"),
    msgid("expected the node content, but found '{found}'"),
    msgid("expected <block end>, but found '{found}'"),
    msgid("expected <block end>, but found '?'"),
    msgid("expected ',' or ']', but got '{found}'"),
    msgid("expected ',' or '}}', but got '{found}'"),
    msgid("expected chomping or indentation indicators, but found {found}"),
    msgid("expected indentation indicator in the range 1-9, but found 0"),
    msgid("expected a comment or a line break, but found {found}"),
    msgid("expected alphabetic or numeric character, but found {found}"),
    msgid("expected '<document start>', but found ('{found}',)"),
    msgid("found non-comment content after document end marker, ('{found}',)"),
    msgid("found undefined tag handle {found}"),
    msgid("duplicate tag handle {found}"),
    msgid("found duplicate YAML directive"),
    msgid("found incompatible YAML document (version 1.* is required)"),
    msgid("expected a digit, but found {found}"),
    msgid("expected a digit or '.', but found {found}"),
)

_PARTS: Final = (
    msg("<stream end>"),
    msg("<document start>"),
    msg("<document end>"),
    msg("<block sequence start>"),
    msg("<block mapping start>"),
    msg("<block end>"),
    msg("<scalar>"),
    msg("<alias>"),
    msg("<anchor>"),
    msg("<tag>"),
)
"""What the parser calls the parts of a text."""


def parser_message(text: str) -> str:
    """The text as a message, or as it is."""
    for shape, form in _shapes():
        if found := shape.fullmatch(text):
            return msg(form, **{name: _part(value) for name, value in found.groupdict().items()})
    return text


def _part(text: str) -> str:
    return term(text) if text in _PARTS else text


@cache
def _shapes() -> list[tuple[re.Pattern[str], str]]:
    return [(_shape(form), form) for form in sorted(_PROBLEMS, key=len, reverse=True)]


def _shape(form: str) -> re.Pattern[str]:
    parts = Formatter().parse(form)
    return re.compile(
        "".join(re.escape(text) + (f"(?P<{name}>.+)" if name else "") for text, name, _, _ in parts)
    )
