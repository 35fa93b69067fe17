"""What a service has come to expect of its arguments: another name, a further one, other values.

A rule says it in words of JSON Schema: `type`, `enum`, `maxLength`, `pattern`, `minimum` and
`maximum`. An argument that has a rule must be given. What is wrong is refused with 422, which names
the argument: `field` and `code` are those of the first complaint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from holdfast.demo.services import TOOLS, Args, Complaint, Refusal

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


class WrongArguments(Refusal):
    """Refused for its arguments, the first of which is `field`."""

    def __init__(self, message: str, field: str, code: str) -> None:
        super().__init__(HTTPStatus.UNPROCESSABLE_ENTITY, message)
        self.field, self.code = field, code


class _Wrong(NamedTuple):
    field: str
    code: str
    text: str


def check_arguments(
    tool: str, args: Args, renamed: Mapping[str, str], expected: Mapping[str, Args]
) -> None:
    """Raises WrongArguments unless they are what the tool has come to expect."""
    wrong = [*_missing(tool, args, renamed, expected), *_unknown(args, renamed)]
    wrong += _unfit(args, expected)
    if wrong:
        told = "; ".join(f"{one.field} {one.text}" for one in wrong)
        raise WrongArguments(f"{tool}: {told}", wrong[0].field, wrong[0].code)


def _missing(
    tool: str, args: Args, renamed: Mapping[str, str], expected: Mapping[str, Args]
) -> Iterator[_Wrong]:
    new = [name for old, name in renamed.items() if old in TOOLS[tool].required]
    for name in dict.fromkeys((*new, *expected)):
        if name not in args:
            yield _Wrong(name, "missing_argument", "is missing")


def _unknown(args: Args, renamed: Mapping[str, str]) -> Iterator[_Wrong]:
    for name in renamed:
        if name in args:
            yield _Wrong(name, "unknown_argument", "is not an argument of this tool")


def _unfit(args: Args, expected: Mapping[str, Args]) -> Iterator[_Wrong]:
    for name in args:
        if text := _complaint(args[name], expected.get(name, {})):
            yield _Wrong(name, "invalid_argument", text)


def _complaint(value: object, rule: Args) -> Complaint:
    if "type" in rule and not _is(value, rule["type"]):
        return f"must be of type {rule['type']}"
    if "enum" in rule and value not in rule["enum"]:
        return f"must be one of {', '.join(map(json.dumps, rule['enum']))}"
    if isinstance(value, str):
        return _complaint_of_text(value, rule)
    if _is(value, "number"):
        return _complaint_of_number(value, rule)
    return None


def _complaint_of_text(value: str, rule: Args) -> Complaint:
    if len(value) > rule.get("maxLength", len(value)):
        return f"must have at most {rule['maxLength']} characters"
    if "pattern" in rule and not re.fullmatch(rule["pattern"], value):
        return f"must look like {rule['pattern']}"
    return None


def _complaint_of_number(value: Any, rule: Args) -> Complaint:
    if value < rule.get("minimum", value):
        return f"must be at least {rule['minimum']}"
    if value > rule.get("maximum", value):
        return f"must be at most {rule['maximum']}"
    return None


def _is(value: object, kind: str) -> bool:
    return type(value) in _TYPES[kind]


def rule_complaints(rule: object) -> list[str]:
    """What is wrong with a rule itself."""
    if not isinstance(rule, dict) or not rule:
        return [f"must be a rule made of {', '.join(_WORDS)}"]
    unknown = [f"{word} is no word of a rule" for word in rule if word not in _WORDS]
    known = [(word, _WORDS[word](rule[word])) for word in rule if word in _WORDS]
    return unknown + [f"{word} {wrong}" for word, wrong in known if wrong]


def _type_word(value: object) -> Complaint:
    return None if value in _TYPES else f"must be one of {', '.join(_TYPES)}"


def _values(value: object) -> Complaint:
    return None if isinstance(value, list) and value else "must be a list of values, not empty"


def _length(value: object) -> Complaint:
    return None if _is(value, "integer") and value > 0 else "must be a whole number from 1"  # type: ignore[operator]


def _pattern(value: object) -> Complaint:
    try:
        re.compile(value if isinstance(value, str) and len(value) <= 200 else "(")
    except re.error:
        return "must be a pattern of at most 200 characters"
    return None


def _number(value: object) -> Complaint:
    return None if _is(value, "number") else "must be a number"


_WORDS: Final[Mapping[str, Callable[[object], Complaint]]] = {
    "type": _type_word,
    "enum": _values,
    "maxLength": _length,
    "pattern": _pattern,
    "minimum": _number,
    "maximum": _number,
}
