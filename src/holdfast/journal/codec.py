"""Events to JSON and back, for ever.

A record's type is the event's class name, with `@2`, `@3`, … once its shape has
changed; an upcaster turns each old shape into the next, so a journal written by
any earlier version replays. Defaults are left out: they cost bytes at every step.

Beside the English texts of a value stands how those that are messages were made, as the member
`messages`: `[[path, id, parameters], …]`, and a parameter that is a message as `[id, parameters]`.
So what is decoded has the same messages as what was encoded, and whatever message takes one of
them as a parameter is put into words as a whole. Records without that member hold plain texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from immutables import Map

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.i18n.message import Message, Params, remade
from holdfast.journal.port import Record, Written
from holdfast.model.record import adapter
from holdfast.model.recorded import Event

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

RENAMED: Mapping[str, str] = {"ListenerWoken": "StepWoken", "ListenerReleased": "StepReleased"}
"""Event classes that had another name when they were written."""

VERSIONS: Mapping[str, int] = dict.fromkeys(
    (
        "RunStarted",
        "AttemptFailed",
        "StepWoken",
        "StepReleased",
        "OutcomeLost",
        "LateResultKept",
        "QuestionOpened",
        "ChildHeard",
    ),
    2,
)
"""Event classes whose shape has changed, with their current version; all others are 1."""


def _of_a_step(body: dict[str, Any]) -> dict[str, Any]:
    """What happens to any run's step was once said of a plan's listener."""
    return {("step_id" if name == "listener_id" else name): body[name] for name in body}


def _with_parent_step(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "parent": _of_a_step(body["parent"])} if body.get("parent") else body


UPCASTERS: Mapping[tuple[str, int], Upcaster] = {
    **{(name, 1): _of_a_step for name in VERSIONS},
    ("RunStarted", 1): _with_parent_step,
}
"""From `(class name, version)` to the shape of the next version."""

_EVENTS: Mapping[str, type[Event]] = {one.__name__: one for one in get_args(Event)}


class _Adapters(dict[str, "TypeAdapter[Any]"]):
    """By the names of events, each made when the first such event is written or read."""

    def __missing__(self, name: str) -> TypeAdapter[Any]:
        made = self[name] = adapter(_EVENTS[name])
        return made


_ADAPTERS = _Adapters()


def prepare(kinds: Iterable[type[Event]] = tuple(_EVENTS.values())) -> None:
    """Make the adapters of these events now: no run waits for them."""
    for kind in kinds:
        assert _ADAPTERS[kind.__name__] is not None


class _Encoders(dict[type[Any], tuple[str, Callable[..., bytes]]]):
    """By an event's class, the type of its records and what writes their payloads."""

    def __missing__(self, kind: type[Any]) -> tuple[str, Callable[..., bytes]]:
        name = kind.__name__
        version = VERSIONS.get(name, 1)
        written = name if version == 1 else f"{name}@{version}"
        made = self[kind] = written, _with_messages(kind, _ADAPTERS[name].serializer.to_json)
        return made


_ENCODERS = _Encoders()

_TEXTS = ("error", "failure", "message", "reason", "request", "skipped", "why")
"""Where events have messages, and in the moves that such events make."""


def _with_messages(kind: type[Any], to_json: Callable[..., bytes]) -> Callable[..., bytes]:
    """Writes the messages of an event too; other classes of events pay nothing for it."""
    names = [one.name for one in fields(kind) if one.name in (*_TEXTS, "moves")]
    if not {*names} & {*_TEXTS}:
        return to_json

    def written(event: Any, *, exclude_defaults: bool) -> bytes:
        payload = to_json(event, exclude_defaults=exclude_defaults)
        found = dump_messages({name: getattr(event, name) for name in names})
        return payload[:-1] + f',"{MESSAGES}":{found}}}'.encode() if found else payload

    return written


def encode(event: Event) -> tuple[str, str]:
    """The record's type and payload."""
    [(_, _, written, payload)], _ = encode_all([(0.0, event)], 1)
    return written, payload


def decode(record: Record) -> Event:
    name, _, version = record.type.partition("@")
    name = RENAMED.get(name, name)
    if name not in _EVENTS:
        raise JournalDamaged(f"record {record.seq} has the unknown type {record.type!r}")
    current = VERSIONS.get(name, 1)
    try:
        written = int(version or 1)
        if written == current:
            event: Event = _ADAPTERS[name].validate_json(record.payload)
            held = MARK in record.payload
            return restored(event, record.payload) if held else event
        if written < current:
            upcast = _upcast(name, written, record.payload)
            return _ADAPTERS[name].validate_python(upcast)  # type: ignore[no-any-return]
    except (KeyError, ValueError, TypeError) as error:
        raise JournalDamaged(f"record {record.seq} ({record.type}) is damaged: {error}") from error
    raise JournalTooNew(f"record {record.seq} is a {record.type}; this Holdfast reads {current}")


def current_payload(record: Record) -> tuple[str, str]:
    """The event's class name and its payload in today's shape, without looking into it if it
    was written that way."""
    name, _, version = record.type.partition("@")
    name = RENAMED.get(name, name)
    if int(version or 1) == VERSIONS.get(name, 1):
        return name, record.payload
    upcast = _upcast(name, int(version or 1), record.payload)
    return name, json.dumps(upcast, ensure_ascii=False)


def _upcast(name: str, version: int, payload: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(payload)
    while version < VERSIONS.get(name, 1):
        body = UPCASTERS[name, version](body)
        version += 1
    return body


def encode_all(timed: Sequence[tuple[float, Event]], seq: int) -> tuple[list[Written], int]:
    """Records from `seq` on, and how long their payloads are together."""
    records, size = [], 0
    for at, event in timed:
        written, to_json = _ENCODERS[type(event)]
        payload = to_json(event, exclude_defaults=True).decode()
        records.append((seq, at, written, payload))
        seq += 1
        size += len(payload)
    return records, size


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
