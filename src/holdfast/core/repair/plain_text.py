"""Texts of failures without what differs from one call to the next.

A `#` stands for each quotation, URL, mail or network address, path, date, number and id, and for
several of them in a row. An id is a name with a digit in it, or at least eight letters that are
hexadecimal digits. Of an object, in JSON or as Python writes it, only what it says counts. Texts
may be cut off, with an ellipsis, in the middle of a quotation.

Fingerprints are made of what comes out: see `causes`.
"""

from __future__ import annotations

import re
from typing import Final

MOST_READ: Final = 2_048
"""Longer than any message that an attempt leaves; the patterns take a few milliseconds at worst."""

_KEYS: Final = "message|msg|errmsg|details?|title|reason|error|error_description|description"
_SAYS: Final = re.compile(rf"""["'](?:{_KEYS})["']\s*:\s*(["'])((?:\\.|(?!\1)[^\\])*+)""")

_A: Final = r"[a-z_\d]"
_QUOTED: Final = re.compile(
    r'"(?:\\.|[^"\\])*+(?:"|(?<=…)\Z)'
    rf"|(?<!{_A})'(?:\\.|[^'\\]|(?<={_A})'(?={_A}))*+(?:'|(?<=…)\Z)"
    r"|`[^`]*+`|“[^”]*+”|‘[^’]*+’|「[^」]*+」|『[^』]*+』|《[^》]*+》|«[^»]*+»"
)
_ADDRESS: Final = re.compile(
    r"(?<![a-z\d+.-])[a-z][a-z\d+.-]*+://[!#-&*-;=?-_a-~]+(?<![.,;:!?])"
    r"|(?<![a-z\d_.%+-])[a-z\d._%+-]++@[a-z\d-]++(?:\.[a-z\d-]+)*+"
    r"|(?<![a-z\d_:])(?:[a-f\d]*+:){2,}+[a-f\d]*+(?![a-z\d_])"
    r"|(?<![a-z\d_./~])(?:[a-z]:)?(?:[/\\][a-z\d_.~-]++){2,}+[/\\]?"
)
_NAME: Final = re.compile(rf"{_A}++(?:[-.:/@+]{_A}++)*+")
_ID: Final = re.compile(r".*\d|[a-f]{8,}\Z")
_SIGNED: Final = re.compile(r"(?<![a-z_\d#.+-])[-+.]++#")

_DAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_MONTH: Final = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    "|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_OF_DAY: Final = "(?:上午|下午|早上|晚上|凌晨)"
_DATE: Final = re.compile(
    rf"(?:\b{_DAY},? )?(?:\b{_MONTH}\.?,? )?(?:{_OF_DAY} ?)?#(?:,? {_MONTH}\b\.?(?:,? #)?)?"
    r"(?: ?(?:gmt|utc|[ap]\.?m\.?)(?![a-z]))?"
)
_CHINESE_DATE: Final = re.compile(rf"#(?: ?[年月日号时点分秒](?: ?{_OF_DAY})?(?: ?#)?)+")
_SEVERAL: Final = re.compile(r"#(?:[\s,;:/+&|.-]*+#)++")


def plain(text: str) -> str:
    text = _of_object(text[:MOST_READ].casefold().strip())
    text = _NAME.sub(_without_id, _ADDRESS.sub("#", _QUOTED.sub("#", text)))
    text = _SEVERAL.sub("#", _SIGNED.sub("#", " ".join(text.split())))
    return _SEVERAL.sub("#", _DATE.sub("#", _CHINESE_DATE.sub("#", text)))


def _of_object(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text
    said = [found[2] for found in _SAYS.finditer(text)]
    return "; ".join(said) or text


def _without_id(found: re.Match[str]) -> str:
    return "#" if _ID.match(found[0]) else found[0]
