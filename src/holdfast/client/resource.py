"""What is sent and what comes back: strict JSON, checked before it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from holdfast.client.transport import Transport
from holdfast.language.strict import strict_json

Answer: TypeAlias = dict[str, Any]
"""JSON as the server's OpenAPI describes it."""

Values: TypeAlias = Mapping[str, Any] | None


class Resource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport


def given(**body: Any) -> Answer:
    """What was given, as strict JSON: InvalidValue says what cannot be sent."""
    return {name: strict(value) for name, value in body.items() if value is not None}


def strict(value: Any) -> Any:
    return strict_json(dict(value) if isinstance(value, Mapping) else value)


def answered(found: Any) -> Answer:
    assert isinstance(found, dict), "the server answers with objects"
    return found
