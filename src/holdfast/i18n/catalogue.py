"""Catalogues: messages in the reader's language.

A catalogue is a gettext file, `locale/<locale>/LC_MESSAGES/holdfast.po`, read as it is when its
language is first asked for: nothing has to be compiled, and no second file can be out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from holdfast.i18n.message import Message

LOCALES: Final[Mapping[str, str]] = {"zh": "zh_CN"}
"""The catalogue of each language but English, which messages have in themselves."""

_STRING: Final = re.compile(r'(msgid|msgstr)?\s*("(?:[^"\\]|\\.)*")')


def said(text: str, language: str) -> str:
    """A text in the reader's language: a message by its id, any other text line by line if it
    reads as one of our messages, as in records that have no ids."""
    if language not in LOCALES:
        return text
    found = catalogue(language)
    if isinstance(text, Message):
        return text.worded(lambda msgid: found.get(msgid, msgid))
    return "\n".join(_recalled(line, found) for line in text.split("\n"))


def _recalled(line: str, found: Mapping[str, str]) -> str:
    """A few words in lower case are a part of a message: alone they are another author's."""
    ours = "{" not in line and (line[:1].isupper() or line.count(" ") > 2)
    return found.get(line, line) if ours else line


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Translations by id."""
    place = files("holdfast.i18n").joinpath("locale", LOCALES[language], "LC_MESSAGES")
    read = dict(_entries(place.joinpath("holdfast.po").read_text(encoding="utf-8")))
    return {msgid: text for msgid, text in read.items() if msgid and text}


def _entries(po: str) -> Iterator[tuple[str, str]]:
    msgid = text = inside = ""
    for line in po.splitlines():
        if (part := _STRING.match(line)) is None:
            continue
        keyword, string = part[1], ast.literal_eval(part[2])
        if keyword == "msgid":
            yield msgid, text
            msgid, text, inside = string, "", "id"
        elif keyword == "msgstr":
            text, inside = string, "text"
        elif inside == "id":
            msgid += string
        else:
            text += string
    yield msgid, text


def prepare() -> None:
    """Read every catalogue before a request waits for it."""
    for language in LOCALES:
        catalogue(language)
