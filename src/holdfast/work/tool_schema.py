"""Tool files as JSON Schema, derived from the table that reads their declarations."""

from __future__ import annotations

from holdfast.source.schemas import (
    STRICT,
    Schema,
    closed,
    document,
    either,
    reference,
    words_in_any_case,
)
from holdfast.work.http_tools import FIELDS, METHODS


def tool_schema() -> Schema:
    """A list of declarations, at the top or under `tools`."""
    many: Schema = {"type": "array", "items": reference("tool")}
    under = {"type": "object", "properties": {"tools": many}, "required": ["tools"]}
    schema = document("Holdfast tools", either(under, many), ("form", "field", "rule"))
    schema["$defs"]["tool"] = _declaration()
    return schema


def _declaration() -> Schema:
    text, nothing = STRICT.text, {"type": "null"}
    special: dict[str, Schema] = {
        "name": {"type": "string", "minLength": 1},
        "endpoint": text,
        "method": either(words_in_any_case(METHODS), nothing),
        "envelope": {"enum": ["tool", None]},
        "headers": either({"type": "object", "additionalProperties": text}, nothing),
        "parameters": either(_PARAMETERS, nothing),
        "returns": either({"type": "object"}, nothing),
        "timeout": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 86400},
    }
    shapes = {name: special.get(name) or STRICT.of(kind) for name, kind in FIELDS.items()}
    return closed(shapes, ("name", "endpoint"))


_PARAMETERS: Schema = {
    "type": "object",
    "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
    "required": ["type"],
}
