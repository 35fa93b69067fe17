"""Writes a plan as YAML, where its source text is not stored."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import LiteralScalarString

_ORDER: Final = ("plan_id", "name", "description", "main_task_id", "while_paused", "inputs")
"""The keys that come first."""


def plan_text(definition: Mapping[str, Any]) -> str:
    """YAML that reads back as the same plan."""
    first = [key for key in _ORDER if key in definition]
    rest = [key for key in definition if key not in first]
    ordered = {key: _written(definition[key]) for key in (*first, *rest)}
    stream = StringIO()
    _yaml().dump(ordered, stream)
    return stream.getvalue()


def _yaml() -> YAML:
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 1_000_000
    yaml.allow_unicode = True
    yaml.Representer = RoundTripRepresenter
    return yaml


def _written(value: Any) -> Any:
    """Texts of several lines become literal blocks."""
    match value:
        case Mapping():
            return {key: _written(one) for key, one in value.items()}
        case list() | tuple():
            return [_written(one) for one in value]
        case str() if "\n" in value:
            return LiteralScalarString(value)
    return value
