"""Proposing a tool call to a person: what is shown, what may be changed, what has changed.

Everything shown comes from the executor's own data: the tool's name, its version and the
very arguments that would run. What a model says never reaches a title or a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from holdfast.core.run.state import QuestionState
from holdfast.forms.from_tools import allows_null, form_from_schema
from holdfast.language.strict import canonical_json
from holdfast.model.commands import ToolFacts
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.values import Json, JsonObject


def shown_call(tool: str, args: Mapping[str, Json], facts: ToolFacts) -> dict[str, Json]:
    """`defaults` is what takes effect of the arguments that are not given, if the tool says so."""
    shown = {"tool": tool, "args": dict(args), "tool_version": facts.version}
    defaults = _defaults(facts.parameters, args)
    return {**shown, "defaults": defaults} if defaults else shown


def _defaults(parameters: JsonObject, args: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: schema["default"]
        for name, schema in parameters.get("properties", {}).items()
        if name not in args and isinstance(schema, Mapping) and "default" in schema
    }


def change_form(parameters: JsonObject, *enrich: Form) -> Form:
    """Every argument as an optional field: what is left out stays as it was shown."""
    names = list(parameters.get("properties", {}))
    asked = form_from_schema(parameters, names, *enrich).fields
    fields = (one for one in asked if one.type is not FieldType.SECRET)
    return Form(tuple(_changeable(parameters, one) for one in fields))


def _changeable(parameters: JsonObject, field: Field) -> Field:
    null = allows_null(parameters, field.name)
    return replace(field, required=False, default=None, visible_if=None, nullable=null)


def missing_arguments(parameters: JsonObject, args: Mapping[str, Json]) -> list[str]:
    """What is required and absent, or null where the tool does not say that it takes null."""
    empty = (name for name in parameters.get("required", ()) if args.get(name) is None)
    return [name for name in empty if name not in args or not allows_null(parameters, name)]


def unknown_arguments(facts: ToolFacts, args: Mapping[str, Json]) -> list[str]:
    """What the tool's schema shuts out."""
    return [] if facts.known is None else [name for name in args if name not in facts.known]


def differences(
    questions: Iterable[QuestionState], consent: str, shown: Mapping[str, Json]
) -> tuple[str, Mapping[str, Json]]:
    """What has changed since somebody consented: in words, and what was consented to."""
    before = next((one for one in questions if one.consent == consent), None)
    if before is None:
        return "What was consented to has changed.", {}
    context = {**before.request.context, "args": dict(before.args or {})}
    lines = list(_changes(context, shown))
    return "\n".join([_heading(before, bool(lines)), *lines]), context


def _heading(before: QuestionState, differs: bool) -> str:
    if before.wish:
        return f"{before.by} wants it changed, and somebody else must approve that:"
    if differs:
        return "This was consented to, but it has changed since:"
    return "This was consented to before, and is to be called once more."


def _changes(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterable[str]:
    if before.get("tool_version") != now.get("tool_version"):
        yield f"- the tool {now['tool']} itself is another version"
    old, new = _taking_effect(before), _taking_effect(now)
    for name in sorted({*old, *new}):
        if name not in old:
            yield f"- {name}: new, {canonical_json(new[name])}"
        elif name not in new:
            yield f"- {name}: gone, was {canonical_json(old[name])}"
        elif (was := canonical_json(old[name])) != (is_now := canonical_json(new[name])):
            yield f"- {name}: {was} has become {is_now}"


def _taking_effect(shown: Mapping[str, Json]) -> Mapping[str, Json]:
    """The arguments as the tool gets them: what is not given, it fills in."""
    return {**shown.get("defaults", {}), **shown["args"]}
