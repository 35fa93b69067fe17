"""What pydantic and Starlette find wrong with a request, as messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.i18n.message import Message, msg, msgid

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


def _filled(form: str, context: Mapping[str, Any]) -> str:
    try:
        return msg(form, **{name: _plain(value) for name, value in context.items()})
    except (KeyError, IndexError):
        return ""


def _plain(value: Any) -> str | int | float:
    return value if isinstance(value, int | float) else str(value)
