"""What pydantic and Starlette find wrong with a request, as messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from holdfast.i18n.message import Message, msg, msgid
from holdfast.language.spelling import MOST_UNKNOWN, remedy

_FORMS: Final[Mapping[str, str]] = {
    "missing": msgid("Field required"),
    "extra_forbidden": msgid("Extra inputs are not permitted"),
    "string_too_short": msgid("String should have at least {min_length} characters"),
    "string_too_long": msgid("String should have at most {max_length} characters"),
    "string_pattern_mismatch": msgid("String should match pattern '{pattern}'"),
    "too_short": msgid(
        "List should have at least {min_length} items after validation, not {actual_length}"
    ),
    "too_long": msgid(
        "List should have at most {max_length} items after validation, not {actual_length}"
    ),
    "value_error": msgid("Value error, {error}"),
}
_SINGULAR: Final[Mapping[str, str]] = {
    "string_too_short": msgid("String should have at least {min_length} character"),
    "string_too_long": msgid("String should have at most {max_length} character"),
    "too_short": msgid(
        "List should have at least {min_length} item after validation, not {actual_length}"
    ),
    "too_long": msgid(
        "List should have at most {max_length} item after validation, not {actual_length}"
    ),
}
_WANTED: Final = "Input should be "
OF_STARLETTE: Final = (msgid("Not Found"), msgid("Method Not Allowed"))
"""What the framework refuses requests with."""


def validation_message(found: Mapping[str, Any]) -> str:
    """The finding's text, as a message where it is one that requests run into."""
    text = found["msg"]
    if isinstance(text, Message):
        return text
    for forms in (_FORMS, _SINGULAR):
        made = _filled(forms.get(found["type"], ""), found.get("ctx") or {})
        if made == text:
            return made
    if text.startswith(_WANTED):
        return msg("Input should be {wanted}", wanted=text.removeprefix(_WANTED))
    return str(text)


def with_hints(found: Iterable[Any], known: Collection[str]) -> Iterator[Any]:
    """The findings about a body that knows these keys; of an unknown one what may be meant."""
    unknown = 0
    for one in found:
        if one["type"] == "extra_forbidden" and len(one["loc"]) == 2 and unknown < MOST_UNKNOWN:
            unknown += 1
            hint = remedy(
                str(one["loc"][1]), known, msg("known are {names}", names=", ".join(known))
            )
            yield {**one, "msg": msg("unknown key: {hint}", hint=hint)}
        else:
            yield one


def _filled(form: str, context: Mapping[str, Any]) -> str:
    try:
        return msg(form, **{name: _plain(value) for name, value in context.items()})
    except (KeyError, IndexError):
        return ""


def _plain(value: Any) -> str | int | float:
    return value if isinstance(value, int | float) else str(value)
