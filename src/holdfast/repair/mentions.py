"""What a foreign text names, among names and values that are known already.

An error text is written by others, and may be meant to mislead. Nothing is ever taken out of it:
it is only asked whether a name of the plan or of a tool's schema, or a value that was sent, stands
in it. Words of everyday language, such as `name` or `to`, stand in many texts by chance: they count
as *named* where the error's own field says so, in quotes, or where a clause is about them
(`amount must be …`, `content: too long`), and otherwise only as mentioned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from holdfast.i18n.message import Message
from holdfast.language.spelling import nearest
from holdfast.model.values import Json

_OF_OTHERS: Final = ("reason", "problem", "fields", "error", "text")
"""Parameters of our messages that have the words of a service or a tool."""
_LONGEST_TEXT: Final = 2_000
_LONGEST_NAME: Final = 100
_SHORTEST_VALUE: Final = 2
_SHORTEST_WORD: Final = 4
_QUOTES: Final = "\"'`“”‘’「」《》"
_CLAUSE: Final = re.compile(r"(?:^|[:;,.(\[{!?，。；：（、\n])\s*$")
_ABOUT: Final = re.compile(
    r"\s*(?:[:=：]|(?:is|are|was|must|has|should|cannot|can't|may|needs?|not|field)\b"
    r"|[不必缺须需应超无未为是过格])"
)
_NOUN: Final = "(?:keyword )?(?:argument|parameter|param|field|property|key|input|propertie)s?"
_ANY_NOUN: Final = rf"(?:\b{_NOUN}|参数|字段|属性)"
_UNKNOWN: Final = re.compile(
    rf"(?i)(?:unknown|unexpected|unrecogni[sz]ed|undeclared|extra)[ _-]?{_NOUN}(?! ?value|[a-z])"
    r"|(?:extra|additional) \w+ (?:is|are) not (?:permitted|allowed)"
    rf"|(?:is|are) (?:not an?|no) (?:known |valid )?{_NOUN}(?![a-z])"
    "|(?:未知|多余|不支持)的?(?:参数|字段|属性)(?!值)"
)
"""What says that an argument is not known, whatever its value is."""
_NOT_KNOWN: Final = (
    r"(?:(?:is|was) (?:unknown|unexpected|not (?:known|recogni[sz]ed|expected|permitted))"
    "|does not exist|未知|不存在|不支持)"
)
_PART: Final = re.compile(r"[^\w-]+")
_WORDS: Final = re.compile(r"[a-z]+|[^\W\d_a-z]+")
_STEM: Final = 5


def said(text: str) -> str:
    """What others said in a message of ours; what is no message of ours is all theirs."""
    if not isinstance(text, Message):
        return text
    params = text.params
    parts = params if isinstance(params, tuple) else [params.get(one) for one in _OF_OTHERS]
    told = "; ".join(said(one) for one in parts if isinstance(one, str))
    return told or str(text)


def field_names(field: str) -> list[str]:
    """The names of which the path to a field is made: `body.args.amount` has three."""
    return [part for part in _PART.split(field[:_LONGEST_TEXT]) if part]


def named(field: str, text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that a failure is about, by its field or in its words."""
    known = tuple(names)
    by_field = [one for part in field_names(field) for one in known if one == part]
    in_words = (one for one in known if _is_named(text, one))
    return tuple(dict.fromkeys((*by_field, *in_words)))


def mentioned(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that stand in the text as words, but for the shortest."""
    return tuple(
        one for one in names if len(one) >= _SHORTEST_WORD and _places(text, one) is not None
    )


def cited(text: str, values: Mapping[str, Json]) -> tuple[str, ...]:
    """The names of those values that stand in the text."""
    return tuple(name for name, value in values.items() if _stands_in(text, value))


def accused(field: str, text: str, values: Mapping[str, Json]) -> list[str]:
    """The arguments that a failure is about, by the first sign that tells: its field, a value that
    it cites, a name in its words."""
    parts = field_names(field)
    signs = (
        [one for one in values if one in parts],
        list(cited(text, values)),
        list(named(field, text, values)),
    )
    return next(filter(None, signs), [])


def disowned(field: str, text: str, names: Iterable[str]) -> list[str]:
    """Those of the names of which an error says that nobody knows them: the one of its field, else
    those that stand right beside the words that say so."""
    text, parts = text[:_LONGEST_TEXT], field_names(field)
    signs = [(text[: one.start()], text[one.end() :]) for one in _UNKNOWN.finditer(text)]
    if parts:
        return [one for one in names if one == parts[-1] and (signs or _unknown(text, one))]
    return [
        one
        for one in names
        if _unknown(text, one) or any(_ends(was, one) or _begins(rest, one) for was, rest in signs)
    ]


def _unknown(text: str, name: str) -> bool:
    return (
        re.search(rf"(?i){_ANY_NOUN}\W{{0,4}}{re.escape(name)}\W{{0,3}}{_NOT_KNOWN}", text)
        is not None
    )


def _ends(text: str, name: str) -> bool:
    return re.search(rf"(?i){_whole(name)}\W*\Z", text) is not None


def _begins(text: str, name: str) -> bool:
    return re.match(rf"(?i)\W*{_whole(name)}", text) is not None


def only_near(word: str, known: Iterable[str]) -> str | None:
    """The one name that is spelled much like the word; none where a second is as well."""
    names = list(known)
    meant = nearest(word, names)
    if meant is None or meant.lower() == word.lower():
        return meant
    return None if nearest(word, [one for one in names if one != meant]) else meant


def has_word(text: str, words: re.Pattern[str]) -> bool:
    return words.search(text[:_LONGEST_TEXT]) is not None


def likeness(name: str, text: str) -> float:
    """How much of a tool's name the text repeats, word by word: 1 is all of it."""
    own = stems(name)
    return len(own & stems(text[:_LONGEST_TEXT])) / len(own) if own else 0.0


def stems(text: str) -> frozenset[str]:
    """The beginnings of its words: `apply_computer` and `applying for a computer` share theirs."""
    return frozenset(word[:_STEM] for word in _WORDS.findall(text.lower()) if len(word) > 2)


def _is_named(text: str, name: str) -> bool:
    """A name that is no word of everyday language is meant wherever it stands."""
    found = _places(text, name)
    if found is None:
        return False
    if "_" in name or any(one.isdigit() for one in name):
        return True
    return any(_is_subject(text, place) for place in _pattern(name).finditer(text[:_LONGEST_TEXT]))


def _is_subject(text: str, place: re.Match[str]) -> bool:
    before, after = text[: place.start()], text[place.end() :]
    if before[-1:] and before[-1] in _QUOTES:
        return bool(after[:1]) and after[0] in _QUOTES
    return _CLAUSE.search(before) is not None and _ABOUT.match(after) is not None


def _stands_in(text: str, value: Json) -> bool:
    match value:
        case bool() | None:
            return False
        case str() | int() | float():
            spelled = str(value).strip()
            return len(spelled) >= _SHORTEST_VALUE and _places(text, spelled) is not None
        case _:
            return False


def _places(text: str, word: str) -> Any:
    if not word or len(word) > _LONGEST_NAME:
        return None
    return _pattern(word).search(text[:_LONGEST_TEXT])


@lru_cache(maxsize=1024)
def _pattern(word: str) -> re.Pattern[str]:
    """Letters of other scripts may stand right beside it: Chinese puts no blanks between words."""
    return re.compile(_whole(word), re.IGNORECASE)


def _whole(word: str) -> str:
    return rf"(?<![A-Za-z0-9_-]){re.escape(word)}(?![A-Za-z0-9_-])"
