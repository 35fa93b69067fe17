"""The body of an HTTP tool as a template: a text that is exactly `{name}` stands for a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from holdfast.model.values import Json

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_ABSENT: Final = object()


def fill(template: Json, values: Mapping[str, Json]) -> Json:
    """The template with its placeholders replaced, types kept; absent arguments drop out."""
    match template:
        case str() if name := _PLACEHOLDER.fullmatch(template):
            return values.get(name[1], _ABSENT)
        case dict():
            filled = {key: fill(item, values) for key, item in template.items()}
            return {key: item for key, item in filled.items() if item is not _ABSENT}
        case list():
            return [i for i in (fill(item, values) for item in template) if i is not _ABSENT]
    return template


def placeholders(template: Json) -> set[str]:
    """The names that the template reads."""
    match template:
        case str():
            name = _PLACEHOLDER.fullmatch(template)
            return {name[1]} if name else set()
        case dict():
            return set().union(*map(placeholders, template.values()))
        case list():
            return set().union(*map(placeholders, template))
    return set()
