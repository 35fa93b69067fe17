"""Plan and agent files as JSON Schema (draft 2020-12), which editors complete and check by.

Derived from what reads the files: the keys are the readers' tables, the type of a value is the
annotation of the record's attribute that it fills. A schema sees no more than shape: it refuses no
file that `load_plan` or `load_agents` takes, and takes files that they refuse for what they mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from holdfast.core.approval import RULE_KEYS, SHORT_RULE_KEY, SPELLINGS
from holdfast.forms.schemas import FIELD_KEYS
from holdfast.forms.schemas import RULE_KEYS as VALIDATION_KEYS
from holdfast.forms.shapes import MOST_FIELDS, MOST_OPTIONS, OPTION_KEYS
from holdfast.model.approval import ApprovalRule
from holdfast.model.form import Field, FieldType, Form, Option, Validation
from holdfast.model.interaction import (
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.plan import Check, Listener, Output, Task
from holdfast.model.repair import RepairLimits, RepairMode, RepairPolicy
from holdfast.model.retry import RetryPolicy
from holdfast.model.values import Json, JsonObject
from holdfast.source import agentfile, planfile
from holdfast.source.asking import ACTIONS, ASKING, ESCALATE_KEYS, OPTION, TYPES
from holdfast.source.records import Keys
from holdfast.source.repairs import LIMITS, POLICY
from holdfast.source.retry import RETRY

Schema: TypeAlias = dict[str, Any]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> Schema:
    names = (
        "task",
        "listener",
        "output",
        "check",
        "asking",
        "option",
        "form",
        "field",
        "retry",
        "repair",
        "repair_limits",
    )
    listeners = [f"{kind}_listener" for kind in planfile.ACTIONS]
    return document("A Holdfast plan", reference("plan"), ("plan", *names, *listeners))


def agent_schema() -> Schema:
    """One agent at the top, or `agents`: a list, or a mapping by id."""
    many = {
        "type": "object",
        "properties": {
            "agents": either(
                {"type": "array", "items": reference("agent")},
                {"type": "object", "additionalProperties": reference("agent_by_id")},
            )
        },
        "required": ["agents"],
        "additionalProperties": False,
    }
    names = ("agent", "agent_by_id", "rule", "asking", "option", "retry")
    return document("Holdfast agents", either(reference("agent"), many), names)


def document(title: str, shape: Schema, names: Iterable[str]) -> Schema:
    """A document whose `shape` refers to the definitions called `names`."""
    known = _definitions()
    return {
        "$schema": DRAFT,
        "title": title,
        **shape,
        "$defs": {name: known[name] for name in names},
    }


@dataclass(frozen=True, slots=True)
class Values:
    """How one reader takes values: what it takes for text, and whether null counts as absent."""

    text: Schema
    null: bool = False

    def of(self, hint: Any) -> Schema:
        """The schema of what fills an attribute with this annotation."""
        shape = self._shape(hint)
        return either(shape, {"type": "null"}) if self.null and shape else shape

    def _shape(self, hint: Any) -> Schema:
        if hint in _SHAPES:
            return _SHAPES[hint]
        if hint is str:
            return self.text
        if hint == tuple[str, ...]:
            return either(self.text, {"type": "array", "items": self.text})
        if get_origin(hint) in (Union, UnionType):
            return either(*(self._shape(one) for one in get_args(hint) if one is not NoneType))
        if get_origin(hint) is tuple:
            return {"type": "array", "items": self._shape(get_args(hint)[0])}
        return {"enum": [getattr(one, "value", one) for one in get_args(hint) or hint]}

    def shapes(self, hints: Mapping[str, Any]) -> dict[str, Schema]:
        return {key: self.of(hint) for key, hint in hints.items()}

    def mapping(self, keys: Keys[Any], **special: Schema) -> Schema:
        """A mapping with these keys and no others.

        `special` has the keys that fill no attribute, or fill one in a way of their own.
        """
        hints = {key: one.hint for key, one in keys.attributes.items() if key not in special}
        shapes = self.shapes(hints) | special
        return closed({key: shapes[key] for key in keys.known}, keys.required, keys.short)


def closed(
    shapes: Mapping[str, Schema],
    required: Collection[str] = (),
    short: Mapping[str, str] | None = None,
) -> Schema:
    """A mapping with these keys and no others; `short` are second spellings of some."""
    spelled = {other: shapes[key] for other, key in (short or {}).items() if key in shapes}
    by_key = {key: [other for other in spelled if (short or {})[other] == key] for key in required}
    schema: Schema = {
        "type": "object",
        "properties": {**shapes, **spelled},
        "required": [key for key, others in by_key.items() if not others],
        "additionalProperties": False,
    }
    choices = [[{"required": [one]} for one in (key, *by_key[key])] for key in by_key]
    either_way = [{"anyOf": each} for each in choices if len(each) > 1]
    return schema | ({"allOf": either_way} if either_way else {})


def either(*shapes: Schema) -> Schema:
    return shapes[0] if len(shapes) == 1 else {"anyOf": list(shapes)}


def words_in_any_case(words: Iterable[str]) -> Schema:
    """The words, offered as they are and taken however they are spelled."""
    offered = list(words)
    parts = ("".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in w) for w in offered)
    return either({"enum": offered}, {"type": "string", "pattern": f"^({'|'.join(parts)})$"})


def reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


_SHAPES: Final[dict[Any, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Json: {},
    JsonObject: {"type": "object"},
    InteractionType: words_in_any_case(TYPES),
    InteractionAction: words_in_any_case(ACTIONS),
    Form: reference("form"),
    Asking: reference("asking"),
    InteractionOption: reference("option"),
    RetryPolicy: reference("retry"),
    RepairPolicy: reference("repair"),
    RepairLimits: reference("repair_limits"),
    ApprovalRule: reference("rule"),
    Task: reference("task"),
    Listener: reference("listener"),
    Check: reference("check"),
    Output: reference("output"),
}

SCALARS: Final = Values({"type": ["string", "number", "boolean"]})
"""A plan or agent file: the source text of any scalar is text, so that 010 stays 010."""

STRICT: Final = Values({"type": "string"}, null=True)
"""A form, or a tool's declaration: text is text, and null is the same as nothing."""


def _definitions() -> dict[str, Schema]:
    agent = SCALARS.mapping(agentfile.AGENT, agent_id=SCALARS.text, approval=_approval())
    return {
        "plan": SCALARS.mapping(planfile.PLAN),
        "task": SCALARS.mapping(planfile.TASK),
        "output": SCALARS.mapping(planfile.OUTPUT),
        "check": SCALARS.mapping(planfile.CHECK),
        "listener": _listener(),
        **{f"{kind}_listener": _listener_of(kind) for kind in planfile.ACTIONS},
        "asking": _asking(),
        "option": SCALARS.mapping(OPTION, handler=SCALARS.text),
        "retry": either({"type": "integer"}, SCALARS.mapping(RETRY)),
        "repair": either({"enum": [one.value for one in RepairMode]}, SCALARS.mapping(POLICY)),
        "repair_limits": SCALARS.mapping(LIMITS),
        "form": _form(),
        "field": _field(),
        "rule": _rule(),
        "agent": agent,
        "agent_by_id": {key: agent[key] for key in agent if key != "allOf"},
    }


def _listener() -> Schema:
    """One definition per type, so that an editor names what the chosen type lacks."""
    types: Schema = {"enum": list(planfile.ACTIONS)}
    return {
        "type": "object",
        "properties": {"listener_type": types},
        "required": ["listener_type"],
        "allOf": [
            {
                "if": {"properties": {"listener_type": {"const": kind}}},
                "then": reference(f"{kind}_listener"),
            }
            for kind in planfile.ACTIONS
        ],
    }


def _listener_of(kind: str) -> Schema:
    special = {
        "listener_type": {"const": kind},
        "approval": either({"type": "boolean"}, reference("asking")),
    }
    asked: Schema = _asking()["properties"] if kind == "human" else {}
    shapes = {
        **SCALARS.mapping(planfile.LISTENER, **special)["properties"],
        **SCALARS.mapping(planfile.ACTIONS[kind])["properties"],
        **asked,
    }
    return closed(shapes, (*planfile.LISTENER.required, *planfile.ACTIONS[kind].required))


def _asking() -> Schema:
    escalate = closed({"after": SCALARS.of(float), "role": SCALARS.text}, ESCALATE_KEYS)
    return SCALARS.mapping(ASKING, escalate=escalate)


def _form() -> Schema:
    """Fields by name, a list of names, or a list of fields with their names."""
    named = _field()
    named["properties"] = {"name": SCALARS.text, **named["properties"]}
    return either(
        {
            "type": "object",
            "additionalProperties": either(reference("field"), {"type": "null"}),
            "maxProperties": MOST_FIELDS,
        },
        {"type": "array", "items": {"type": "string"}, "maxItems": MOST_FIELDS},
        {"type": "array", "items": named | {"required": ["name"]}, "maxItems": MOST_FIELDS},
    )


def _field() -> Schema:
    hints = get_type_hints(Option)
    option = {
        "type": "object",
        "properties": {key: STRICT.of(hints[key]) for key in OPTION_KEYS} | {"value": _VALUE},
        "required": ["value"],
    }
    ruled = get_type_hints(Validation)
    rules = STRICT.shapes({key: ruled[name] for key, name in VALIDATION_KEYS.items()})
    rules |= {"type": {"enum": ["enum", None]}, "values": _ALLOWED}
    options = {"type": "array", "items": either(_VALUE, option), "maxItems": MOST_OPTIONS}
    nothing: Schema = {"type": "null"}
    special = {
        # An empty type is none.
        "type": {"enum": [*(each.value for each in FieldType), "", None]},
        "options": either(options, nothing),
        "validation": either(closed(rules), nothing),
    }
    asked = get_type_hints(Field)
    hints = {key: asked[key] for key in FIELD_KEYS if key not in special}
    shapes = STRICT.shapes(hints) | special
    return closed({key: shapes[key] for key in FIELD_KEYS})


_VALUE: Final[Schema] = {"type": "string", "minLength": 1}
_ALLOWED: Final[Schema] = either({"type": "array", "minItems": 1}, {"type": "null"})


def _rule() -> Schema:
    mode = either({"const": True}, words_in_any_case(SPELLINGS))
    by_key = {"mode": mode, "when": STRICT.text, "otherwise": mode}
    return either(
        mode,
        closed({key: by_key[key] for key in RULE_KEYS}, ("mode",)),
        closed({SHORT_RULE_KEY: STRICT.text}, (SHORT_RULE_KEY,)),
    )


def _approval() -> Schema:
    """One rule for every tool, or rules by tool."""
    by_tool = {"type": "object", "additionalProperties": reference("rule")}
    return either(reference("rule"), by_tool)
