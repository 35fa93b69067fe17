"""Keeping: what of a question the journal could not give back as it was.

Python lets a caller put anything anywhere. What JSON would bend or lose would come back otherwise
after a restart, or not at all, so every text must be sound text, every flag a flag, and what users
attach strict JSON. The bounds are wide: a call's arguments, twice, are among what is attached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from holdfast.errors import InvalidValue
from holdfast.language.strict import strict_json, strict_text
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionType,
)
from holdfast.model.values import Json

Problems: TypeAlias = Iterator[tuple[str, str]]
"""What is wrong: the field, and the remedy."""

_LARGEST: Final = 8_000_000
_DEEPEST: Final = 80

_TEXTS: Final = ("request_id", "session_id", "title", "message", "details")
_OPTIONAL_TEXTS: Final = ("default_option_id", "role", "escalate_to", "custom_type")
_OPTION_TEXTS: Final = ("option_id", "label", "description", "input_prompt")
_OPTION_FLAGS: Final = ("is_default", "is_dangerous", "requires_input")


def journal_problems(
    request: InteractionRequest, options: tuple[InteractionOption, ...]
) -> Problems:
    """Those of a request, and of such options of it as are to be looked at."""
    yield from _text_problems("", request, _TEXTS)
    given = [one for one in _OPTIONAL_TEXTS if getattr(request, one) is not None]
    yield from _text_problems("", request, given)
    yield from _kind_problems("type", request.type, InteractionType)
    yield from _kind_problems("required", request.required, bool)
    if request.context or type(request.context) is not dict:
        yield from _json_problems("context", request.context)
    for index, option in enumerate(options):
        yield from _option_problems(f"options[{index}].", option)


def kept(attached: Mapping[str, Json]) -> dict[str, Json]:
    """What users attached, as the journal will give it back; InvalidValue if it cannot."""
    plain: dict[str, Json] = strict_json(dict(attached), max_depth=_DEEPEST, max_bytes=_LARGEST)
    return plain


def _option_problems(place: str, option: InteractionOption) -> Problems:
    yield from _text_problems(place, option, _OPTION_TEXTS)
    for name in _OPTION_FLAGS:
        yield from _kind_problems(place + name, getattr(option, name), bool)
    yield from _kind_problems(f"{place}action", option.action, InteractionAction)
    if option.metadata or type(option.metadata) is not dict:
        yield from _json_problems(f"{place}metadata", option.metadata)


def _text_problems(place: str, one: object, names: Iterable[str]) -> Problems:
    for name in names:
        text = getattr(one, name)
        if type(text) is str and text.isascii() and len(text) <= _LARGEST:
            continue
        try:
            strict_text(text, place + name, longest=_LARGEST)
        except InvalidValue as refused:
            yield place + name, str(refused).removeprefix(f"{place}{name}: ")


def _kind_problems(name: str, value: object, kind: type) -> Problems:
    if not isinstance(value, kind):
        yield name, f"must be of {kind.__name__}, not {type(value).__name__}"


def _json_problems(name: str, value: object) -> Problems:
    if not isinstance(value, Mapping):
        yield name, f"must be a mapping, not {type(value).__name__}"
        return
    try:
        kept(value)
    except InvalidValue as refused:
        yield name, str(refused)
