"""Records of plans and agents as JSON, by the annotations of their attributes.

An attribute's key has its name, but for `_FLAG_KEYS`; `source.records` reads files by the same.

The keys are those of the YAML file and what has its usual value is left out, so a plan in JSON is
also a plan file. Lists stand wherever order means something; a form is therefore a list of fields
with their names, and the canonical spelling, which sorts keys, loses nothing.

`record_from_json` trusts its input and checks nothing: what was accepted once must load for ever,
whatever later versions think of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from holdfast.core.approval import rule_from_json, rule_to_json
from holdfast.forms.rules import make_validation
from holdfast.forms.schemas import dump_form
from holdfast.language.strict import digest
from holdfast.model import form
from holdfast.model.agent import Agent
from holdfast.model.approval import Rules
from holdfast.model.interaction import Asking, InteractionOption
from holdfast.model.plan import Action, HumanAction, Listener, Plan
from holdfast.model.values import JsonObject

Record = TypeVar("Record")

_Way: TypeAlias = Callable[[Any], Any]

_FLAG_KEYS: Final = {"is_default": "default", "is_dangerous": "dangerous"}
_ACTIONS: Final[Mapping[str, type]] = {each.kind: each for each in get_args(Action)}


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    key: str
    hint: Any
    usual: Any
    """Its default, or MISSING."""


def _attributes_of(record: Any) -> tuple[Attribute, ...]:
    hints = get_type_hints(record)
    usual = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(record)
    }
    return tuple(
        Attribute(name, _FLAG_KEYS.get(name, name), hints[name], usual[name]) for name in usual
    )


attributes: Final[Callable[[Any], tuple[Attribute, ...]]] = cache(_attributes_of)


def plan_digest(plan: Plan) -> str:
    """The plan's name by content: SHA-256 of its canonical JSON, in hex."""
    return digest(record_to_json(plan))


def agent_digest(agent: Agent) -> str:
    """The agent's name by content."""
    return digest(record_to_json(agent))


def record_to_json(record: Any) -> dict[str, Any]:
    """What of a record does not go without saying; what has no default is always there."""
    shape = {}
    for one, write, _ in _ways_of(type(record)):
        value = getattr(record, one.name)
        if one.usual is MISSING or value != one.usual:
            shape[one.key] = write(value)
    match record:
        case Listener():
            return dict(_flattened(record, shape))
        case HumanAction():
            return {**shape.pop("asking", {}), **shape}
        case Asking():
            return _with_escalation(shape)
        case InteractionOption() if record.label == record.option_id:
            del shape["label"]
    return shape


def record_from_json(kind: type[Record], raw: JsonObject) -> Record:
    """The record behind `record_to_json`'s answer; other keys of its owner are left alone."""
    given = {one.name: read(raw[one.key]) for one, _, read in _ways_of(kind) if one.key in raw}
    if kind is Listener:
        given["action"] = record_from_json(_ACTIONS[raw["listener_type"]], raw)
    elif kind is HumanAction:
        given["asking"] = record_from_json(Asking, raw)
    elif kind is Asking:
        escalate = raw.get("escalate", {})
        given |= {"escalate_after": escalate.get("after"), "escalate_to": escalate.get("role")}
    elif kind is InteractionOption:
        given["label"] = raw.get("label", raw["option_id"])
    return kind(**given)


def _flattened(listener: Listener, shape: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """A listener's action has no level of its own, and one trigger is no list."""
    for key, value in shape.items():
        if key == "action":
            yield "listener_type", listener.listener_type
            yield from value.items()
        else:
            yield key, value[0] if key == "trigger_task_id" and len(value) == 1 else value


def _with_escalation(shape: dict[str, Any]) -> dict[str, Any]:
    named = {"escalate_after": "after", "escalate_to": "role"}
    escalate = {key: shape.pop(name) for name, key in named.items() if name in shape}
    return shape | ({"escalate": escalate} if escalate else {})


def _made(kind: Any) -> tuple[tuple[Attribute, _Way, _Way], ...]:
    return tuple((one, *_ways(one.hint)) for one in attributes(kind))


_ways_of: Final[Callable[[Any], tuple[tuple[Attribute, _Way, _Way], ...]]] = cache(_made)


def _ways(hint: Any) -> tuple[_Way, _Way]:
    """How a value of this type is written, and read."""
    if get_origin(hint) is UnionType:
        write, read = _ways(get_args(hint)[0])
        return write, lambda raw: None if raw is None else read(raw)
    if get_origin(hint) is tuple:
        write, read = _ways(get_args(hint)[0])
        return lambda value: [write(one) for one in value], lambda raw: _tuple(raw, read)
    if hint in _SPECIAL:
        return _SPECIAL[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value: value.value, hint
    if isinstance(hint, type) and is_dataclass(hint):
        return record_to_json, partial(record_from_json, hint)
    return _itself, _itself


def _itself(value: Any) -> Any:
    return value


def _tuple(raw: Any, read: _Way) -> tuple[Any, ...]:
    return tuple(read(one) for one in ([raw] if isinstance(raw, str) else raw))


def _form_field(field: form.Field) -> dict[str, Any]:
    return {"name": field.name, **dump_form(form.Form((field,)))[field.name]}


def _option(raw: Mapping[str, Any]) -> form.Option:
    extras = dict(raw)
    value, label = extras.pop("value"), extras.pop("label")
    return form.Option(value, label, extras.pop("requires_input", False), extras)


def _validation(raw: Mapping[str, Any]) -> form.Validation:
    rules = {key: rule for key, rule in raw.items() if key != "type"}
    if "values" in rules:
        rules["values"] = tuple(rules["values"])
    return make_validation(rules)


_SPECIAL: Final[Mapping[Any, tuple[_Way, _Way]]] = {
    # 1 and 1.0 are equal plans and must have one spelling.
    float: (float, _itself),
    JsonObject: (dict, _itself),
    form.Form: (
        lambda value: [_form_field(one) for one in value.fields],
        lambda raw: form.Form(tuple(record_from_json(form.Field, one) for one in raw)),
    ),
    form.Option: (_itself, _option),
    form.Validation: (_itself, _validation),
    Rules: (
        lambda rules: {tool: rule_to_json(rule) for tool, rule in rules.items()},
        lambda raw: {tool: rule_from_json(rule) for tool, rule in raw.items()},
    ),
}
