"""Units of numbers, as far as texts name them: `5 kg`, `weight_g`, `duration (hours)`, 金额（分）.

A unit counts where a text leaves no doubt: a word such as `hours` anywhere, a sign such as `g` in
brackets, behind `in` or 单位, at the end of a name, or behind a number. A text that names two
units names none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from holdfast.model.values import Json


class Unit(NamedTuple):
    """`size` counts in the smallest unit of its kind."""

    kind: str
    size: Fraction


_TABLE: Final = (
    ("mass", "1", "mg 毫克", "milligram milligrams"),
    ("mass", "1000", "g 克", "gram grams gramme grammes"),
    ("mass", "1000000", "kg 千克 公斤", "kilogram kilograms kilo kilos"),
    ("mass", "1000000000", "t 吨", "tonne tonnes"),
    ("length", "1", "mm 毫米", "millimetre millimetres millimeter millimeters"),
    ("length", "10", "cm 厘米", "centimetre centimetres centimeter centimeters"),
    ("length", "1000", "m 米", "metre metres meter meters"),
    ("length", "1000000", "km 千米 公里", "kilometre kilometres kilometer kilometers"),
    ("time", "1", "ms 毫秒", "millisecond milliseconds"),
    ("time", "1000", "s 秒", "seconds"),
    ("time", "60000", "min 分钟", "minute minutes"),
    ("time", "3600000", "h 小时", "hour hours"),
    ("time", "86400000", "d 天", "days"),
    ("time", "604800000", "w 周", "week weeks"),
    ("money", "1", "分", "fen"),
    ("money", "100", "¥ 元", "yuan cny rmb"),
    ("dollars", "1", "¢", "cent cents"),
    ("dollars", "100", "$", "dollar dollars usd"),
)
_SIGNS: Final = {
    sign: Unit(kind, Fraction(size)) for kind, size, signs, _ in _TABLE for sign in signs.split()
}
_WORDS: Final = {
    word: Unit(kind, Fraction(size)) for kind, size, _, words in _TABLE for word in words.split()
}
_ANY: Final = "|".join(sorted(map(re.escape, (*_SIGNS, *_WORDS)), key=len, reverse=True))
_WORD: Final = re.compile(r"(?<![a-z])(" + "|".join(sorted(_WORDS, reverse=True)) + r")(?![a-z])")
_SIGN: Final = re.compile(
    rf"[(（\[]\s*({_ANY})\s*[)）\]]|\bin ({_ANY})(?![\w])|单位[:：为是]?\s*({_ANY})(?![a-z])"
)
_ENDING: Final = re.compile(rf"[\w-]*[a-z0-9][_-]({_ANY})")
_QUANTITY: Final = re.compile(rf"\s*([+-]?\d{{1,15}}(?:\.\d{{1,9}})?)\s*({_ANY})\s*")


def unit_of(*texts: str) -> Unit | None:
    """The one unit that a name, a title and a description speak of."""
    found = {unit for text in texts for unit in _units_in(text.lower())}
    return found.pop() if len(found) == 1 else None


def quantity(text: str) -> tuple[Fraction, Unit] | None:
    """A number with its unit, where the text is that and nothing else."""
    found = _QUANTITY.fullmatch(text.lower())
    return (Fraction(found[1]), _unit(found[2])) if found else None


def in_unit(number: Fraction, given: Unit, wanted: Unit) -> Json:
    """The same quantity in another unit of its kind, else None."""
    if given.kind != wanted.kind:
        return None
    same = number * given.size / wanted.size
    return int(same) if same.denominator == 1 else float(same)


def _units_in(text: str) -> Iterator[Unit]:
    for found in (*_WORD.finditer(text), *_SIGN.finditer(text)):
        yield _unit(next(filter(None, found.groups())))
    if ending := _ENDING.fullmatch(text):
        yield _unit(ending[1])


def _unit(word: str) -> Unit:
    return _SIGNS.get(word) or _WORDS[word]
