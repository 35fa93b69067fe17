"""Messages in JSON: how stored texts were made, for readers of every language.

Beside the English texts of a value stands how those that are messages were made, as the member
`messages`: `[[path, id, parameters], …]`, and a parameter that is a message as `[id, parameters]`.
So what is read has the same messages as what was written, and whatever message takes one of
them as a parameter is put into words as a whole. A value without that member holds plain texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from immutables import Map

from holdfast.i18n.message import Message, Params, remade

MESSAGES: Final = "messages"
MARK: Final = f'"{MESSAGES}":[['
"""What the JSON of a value has in it if it has messages, and seldom otherwise."""

_Path = tuple[str | int, ...]
_Found = tuple[_Path, str, Any]

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class _Names(dict[type[Any], tuple[str, ...]]):
    """The fields of a dataclass; none of any other class."""

    def __missing__(self, kind: type[Any]) -> tuple[str, ...]:
        named = fields(kind) if is_dataclass(kind) else ()
        made = self[kind] = tuple(one.name for one in named)
        return made


_NAMES = _Names()


def dump_messages(value: object) -> str:
    """The messages in a value as JSON, empty where there are none."""
    found: list[_Found] = []
    _collect(value, (), found)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) if found else ""


def beside(payload: str, value: object) -> str:
    """A value's JSON object, and its messages as one more member."""
    found = dump_messages(value)
    return f'{payload[:-1]},"{MESSAGES}":{found}}}' if found else payload


def restored(value: Any, payload: str) -> Any:
    """The value with the messages that stand beside it in `payload`."""
    if MARK not in payload:
        return value
    return place_messages(value, json.loads(payload).get(MESSAGES, ()))


def place_messages(value: Any, found: Iterable[Sequence[Any]]) -> Any:
    """The value with messages at their paths, each `(path, id, parameters)`."""
    inside: dict[str | int, list[Sequence[Any]]] = {}
    for path, msgid, params in found:
        if not path:
            return remade(value, msgid, _read(params)) if type(value) is str else value
        inside.setdefault(path[0], []).append((path[1:], msgid, params))
    if not inside:
        return value
    changed = {
        name: place_messages(part, inside[name]) for name, part in _parts(value) if name in inside
    }
    if isinstance(value, Map):
        return value.update(changed)
    if isinstance(value, Mapping):
        return {**value, **changed}
    if isinstance(value, list | tuple):
        made = getattr(value, "_make", type(value))  # a named tuple takes its parts one by one
        return made(changed.get(place, part) for place, part in enumerate(value))
    return replace(value, **changed) if changed else value


def _collect(value: object, path: _Path, found: list[_Found]) -> None:
    for name, part in _parts(value):
        kind = type(part)
        if kind is Message:
            found.append(((*path, name), part.id, _written(part.params)))
        elif kind not in _PLAIN:
            _collect(part, (*path, name), found)


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping | Map):
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    return [(name, getattr(value, name)) for name in _NAMES[type(value)]]


def _written(params: Params) -> Any:
    if isinstance(params, tuple):
        return [_parameter(one) for one in params]
    return {name: _parameter(one) for name, one in params.items()}


def _parameter(value: Any) -> Any:
    if isinstance(value, Message):
        return [value.id, _written(value.params)]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _read(params: Any) -> Params:
    if isinstance(params, list):
        return tuple(_value(one) for one in params)
    return {name: _value(one) for name, one in params.items()}


def _value(given: Any) -> Any:
    """The text of a message within another is made anew: it is not stored twice."""
    if not isinstance(given, list):
        return given
    msgid, params = given[0], _read(given[1])
    text = msgid.join(params) if isinstance(params, tuple) else msgid.format_map(params)
    return remade(text, msgid, params)
