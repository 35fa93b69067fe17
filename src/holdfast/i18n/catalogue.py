"""Languages, which of them a reader prefers, and the catalogues of messages in them.

A catalogue is a gettext file, `locale/<locale>/LC_MESSAGES/holdfast.po`, read as it is when its
language is first asked for: nothing has to be compiled, and no second file can be out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from holdfast.i18n.message import CONTEXT, Message, recalled

LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "zh": "中文"}
"""The languages, each as its speakers call it."""

LONGEST_USUAL: Final = 100
"""What is longer is not worth remembering."""

MOST_NAMED: Final = 50
"""How many languages of a header are looked at."""

LOCALES: Final[Mapping[str, str]] = {"zh": "zh_CN"}
"""The catalogue of each language but English, which messages have in themselves."""

_STRING: Final = re.compile(
    r'(?:(msgctxt|msgid_plural|msgid|msgstr)(?:\[0\])?\s+)?("(?:[^"\\]|\\.)*")'
)


def said(text: str, language: str) -> str:
    """A text in the reader's language: a message by its id, any other text line by line if it
    reads as one of our messages, as in records that have no ids."""
    if language not in LOCALES:
        return text
    found = catalogue(language)
    return recalled(text).worded(lambda msgid: found.get(msgid, msgid))


def worded(text: str, language: str) -> str:
    """As `said`; a text that is no message is another author's, and stays."""
    return said(text, language) if isinstance(text, Message) else text


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Translations by id."""
    place = files("holdfast.i18n").joinpath("locale", LOCALES[language], "LC_MESSAGES")
    read = dict(_entries(place.joinpath("holdfast.po").read_text(encoding="utf-8")))
    return {msgid: text for msgid, text in read.items() if msgid and text}


def _entries(po: str) -> Iterator[tuple[str, str]]:
    """The id of each message, with its context in front as gettext has it, and its text; of the
    plural forms the first one, which is the only one of our languages."""
    entry: dict[str, str] = {}
    inside = ""
    for line in po.splitlines():
        if (part := _STRING.match(line)) is None:
            continue
        if part[1] and inside == "msgstr":
            yield _id(entry), entry["msgstr"]
            entry = {}
        inside = part[1] or inside
        entry[inside] = entry.get(inside, "") + ast.literal_eval(part[2])
    yield _id(entry), entry["msgstr"]


def _id(entry: Mapping[str, str]) -> str:
    context = entry.get("msgctxt")
    return f"{context}{CONTEXT}{entry['msgid']}" if context else entry["msgid"]


def prepare() -> None:
    """Read every catalogue before a request waits for it."""
    for language in LOCALES:
        catalogue(language)


def preferred(accepted: str) -> str:
    """What an Accept-Language header wants most of what there is; else English."""
    return _usual(accepted) if len(accepted) <= LONGEST_USUAL else _wanted(accepted)


@lru_cache
def _usual(accepted: str) -> str:
    """Browsers and programs send the same few headers again and again."""
    return _wanted(accepted)


def preferred_in(environ: Mapping[str, str]) -> str:
    """What the locale of a process asks for: `LANGUAGE`, a list, else `LC_ALL`, `LC_MESSAGES` or
    `LANG`; as in gettext, a locale of C or POSIX is English whatever the list says."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environ[name] for name in names if environ.get(name)), "")
    if re.split(r"[.@]", locale)[0] in ("C", "POSIX"):
        return "en"
    listed = (environ.get("LANGUAGE") or locale).split(":")
    return preferred(",".join(re.split(r"[.@]", one)[0].replace("_", "-") for one in listed))


def _wanted(accepted: str) -> str:
    return next(filter(None, map(_offered, _by_preference(accepted))), "en")


def _offered(tag: str) -> str:
    primary = tag.partition("-")[0].lower()
    return primary if primary in LANGUAGES else ""


def _by_preference(accepted: str) -> list[str]:
    parts = accepted.split(",", MOST_NAMED)[:MOST_NAMED]
    weighed = [(part.partition(";"), place) for place, part in enumerate(parts)]
    order = sorted(weighed, key=lambda one: (-_weight(one[0][2]), one[1]))
    return [tag.strip() for (tag, _, _), _ in order]


def _weight(parameter: str) -> float:
    try:
        return float(parameter.strip().removeprefix("q="))
    except ValueError:
        return 1.0
