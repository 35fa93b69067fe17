"""How stored texts were made: messages beside the English texts that records keep.

`[[path, id, parameters], …]` stands for each message with parameters in a value; one without
needs none, since its text is its id. A parameter that is a message is `[id, parameters]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from immutables import Map

from holdfast.i18n.message import Message, Params, remade

FIELD: Final = "messages"
MARK: Final = f'"{FIELD}":[['
"""What the JSON of a value has in it if it has messages, and seldom otherwise."""

Path = tuple[str | int, ...]


def dumped(value: object) -> str:
    """The messages in a value as JSON, empty where there are none."""
    found = [[path, one.id, _written(one.params)] for path, one in _messages(value, ())]
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) if found else ""


def beside(payload: str, value: object) -> str:
    """A value's JSON object, and its messages as one more member."""
    found = dumped(value)
    return f'{payload[:-1]},"{FIELD}":{found}}}' if found else payload


def restored(value: Any, payload: str) -> Any:
    """The value with the messages that stand beside it in `payload`."""
    return placed(value, json.loads(payload).get(FIELD, ()))


def placed(value: Any, found: Iterable[list[Any]]) -> Any:
    for path, msgid, params in found:
        value = _placed(value, path, msgid, params)
    return value


def _messages(value: object, path: Path) -> Iterator[tuple[Path, Message]]:
    if isinstance(value, Message):
        if value.params:
            yield path, value
    else:
        for name, part in _parts(value):
            yield from _messages(part, (*path, name))


def _parts(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, Mapping | Map):
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    if is_dataclass(value):
        return ((one.name, getattr(value, one.name)) for one in fields(value))
    return ()


def _written(params: Params) -> Any:
    if isinstance(params, tuple):
        return [_parameter(one) for one in params]
    return {name: _parameter(one) for name, one in params.items()}


def _parameter(value: Any) -> Any:
    if isinstance(value, Message):
        return [value.id, _written(value.params)]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _placed(value: Any, path: list[str | int], msgid: str, params: Any) -> Any:
    if not path:
        return remade(value, msgid, _read(params)) if type(value) is str else value
    name, *rest = path
    inner = dict(_parts(value)).get(name)
    part = _placed(inner, rest, msgid, params)
    if isinstance(value, Map):
        return value.set(name, part)
    if isinstance(value, Mapping):
        return {**value, name: part}
    if isinstance(value, list | tuple):
        made = getattr(value, "_make", type(value))  # a named tuple takes its parts one by one
        return made(part if place == name else one for place, one in enumerate(value))
    return replace(value, **{str(name): part})


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
