"""Views as JSON, and back: one adapter for every record.

Unknown keys are ignored and missing ones have their defaults, so that client and server may be of
different versions: a field that is added to a view has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.i18n.catalogue import worded
from holdfast.model.record import adapter
from holdfast.views.records import TimelineEntry

V = TypeVar("V")


def in_language(entry: TimelineEntry, language: str) -> TimelineEntry:
    """The entry as its reader is told it; other authors' words stay."""
    chat = entry.chat and replace(entry.chat, text=worded(entry.chat.text, language))
    return replace(
        entry,
        who=worded(entry.who, language),
        what=worded(entry.what, language),
        moves=tuple(worded(one, language) for one in entry.moves),
        chat=chat,
    )


def to_json(view: object) -> dict[str, Any]:
    dumped: dict[str, Any] = adapter(type(view)).dump_python(view, mode="json")
    return dumped


def to_text(view: object) -> str:
    return adapter(type(view)).dump_json(view).decode()


def from_json(kind: type[V], body: Mapping[str, Any]) -> V:
    return adapter(kind).validate_python(body)
