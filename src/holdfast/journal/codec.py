"""Events to JSON and back, for ever.

A record's type is the event's class name, with `@2`, `@3`, … once its shape has
changed; an upcaster turns each old shape into the next, so a journal written by
any earlier version replays. Defaults are left out: they cost bytes at every step.

What is decoded has the same messages as what was encoded (`i18n.journaled`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

from holdfast.errors import JournalDamaged, JournalTooNew
from holdfast.i18n.journaled import MESSAGES, dump_messages, restored
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

_TEXTS = (
    *("complaint", "diagnosis", "error", "failure", "meanwhile", "message", "proposal", "reason"),
    *("request", "skipped", "why"),
)
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
            return restored(event, record.payload)  # type: ignore[no-any-return]
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
