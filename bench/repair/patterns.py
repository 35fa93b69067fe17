"""What a person accepts of a proposal: patterns that its operations must fit.

A pattern is JSON in which some places are open. An object must have the keys of its pattern, but
for those that may be left out, and no others, so that nothing slips through that nobody has thought
of; an `Open` one may have others too. Of a list each element must fit one of the pattern's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of these; with None among them it may be left out."""

    values: tuple[Any, ...]


class Open(dict[str, Any]):
    """An object that may have further keys."""


class _Anything:
    """Whatever it is, and also if it is left out."""

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Anything()


def fits(value: Any, pattern: Any) -> bool:
    match pattern:
        case _Anything():
            return True
        case OneOf(values):
            return any(fits(value, one) for one in values)
        case Mapping():
            return isinstance(value, Mapping) and _fits_object(value, pattern)
        case list():
            return isinstance(value, list) and all(
                fits(one, OneOf(tuple(pattern))) for one in value
            )
    return type(value) is type(pattern) and bool(value == pattern)


def _fits_object(value: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    known = isinstance(pattern, Open) or value.keys() <= pattern.keys()
    return known and all(fits(value.get(name), part) for name, part in pattern.items())


def accepted(operations: Sequence[Any], alternatives: Sequence[Any]) -> bool:
    """Whether they are one of the alternatives, each a pattern or several that go together."""
    for one in alternatives:
        together = one if isinstance(one, tuple) else (one,)
        if len(operations) == len(together) and all(map(fits, operations, together)):
            return True
    return False


def sets(listener_id: str, **values: Any) -> dict[str, Any]:
    """Arguments given otherwise; a tuple has the values that are right."""
    right = {name: OneOf(one) if isinstance(one, tuple) else one for name, one in values.items()}
    return {"op": "set_args", "listener_id": listener_id, "set": right, "drop": ANY}


def reads(listener_id: str, **context: Any) -> dict[str, Any]:
    """The result read otherwise."""
    return {"op": "set_output", "listener_id": listener_id, "context": context}


def retries(listener_id: str) -> dict[str, Any]:
    return {"op": "set_retry", "listener_id": listener_id, "retry": ANY, "timeout": ANY}


def asks(listener_id: str, *names: str) -> dict[str, Any]:
    """A person asked first: for these arguments, or just whether to go on."""
    fields = OneOf(([Open({"name": one}) for one in names], None))
    said = {"task_id": ANY, "title": ANY, "choice": ANY}
    return {"op": "ask_first", "listener_id": listener_id, "fields": fields, **said}


def inserts(listener_id: str, tool: str, **args: Any) -> dict[str, Any]:
    """A call before another; a tuple has the values that are right."""
    right = {name: OneOf(one) if isinstance(one, tuple) else one for name, one in args.items()}
    listener: dict[str, Any] = {"listener_type": "tool", "tool": tool, "args": right}
    listener |= {"listener_id": ANY, "success_output": ANY, "name": ANY}
    return {"op": "insert_before", "listener_id": listener_id, "task": ANY, "listener": listener}
