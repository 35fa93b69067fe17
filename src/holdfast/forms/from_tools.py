"""Tool forms: the form that asks a person for what a tool's call lacks.

The fields come from the tool's JSON Schema. The tool stays the judge of the whole call, so what a
form cannot say (an exclusive bound of a fraction, a foreign pattern, a multiple) is left out, and
so are values of an enum that are of another type. What no field can hold (objects, free lists,
unions) is asked as JSON in a textarea, and the tool gets the value that the text spells. The
tool's default fills a text or a number. A choice it does not preselect: that is for the plan to
say, and the tool applies its own default if nothing is given.

A tool's author may declare fields beside its schema, and a plan's author further ones. Such a field
enriches the one below it: it replaces what it sets and keeps what it leaves alone. Plain text, a
field's usual type, never widens a narrower one, and a list stays a list. Whether the field is
required is the last author's word. What does not go together is left out of the form, because a run
must be able to ask; `check_enrichment` tells the author beforehand. So is a `visible_if`
over arguments that the form does not ask for: what the call lacks is then asked in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from holdfast.errors import FormRejected
from holdfast.forms.problems import Problems
from holdfast.forms.rules import applicable_rules, check_rules, make_validation, rule_problem
from holdfast.forms.schemas import KEYWORDS, rules_of
from holdfast.forms.shapes import answer_problem, default_problem, type_of_choice
from holdfast.forms.validation import answers_asked
from holdfast.forms.values import is_empty, longest
from holdfast.i18n.message import msg
from holdfast.language.spelling import remedy
from holdfast.model.form import CHOICES, Field, FieldType, Form, Option, Validation
from holdfast.model.values import Json, JsonObject

_LONGEST_LINE: Final = 200
_MOST_REFERENCES: Final = 16
_UNIONS: Final = ("anyOf", "oneOf")
_ANYTHING: Final[JsonObject] = {"type": []}
_FORMATS: Final = {
    "date": FieldType.DATE,
    "date-time": FieldType.DATETIME,
    "password": FieldType.SECRET,
}
_NEVER_PRESELECTED: Final = CHOICES | {FieldType.BOOLEAN, FieldType.SECRET}
_AS_JSON: Final = msg("Write it as JSON.")


def form_from_schema(schema: JsonObject, names: Sequence[str], *enrich: Form) -> Form:
    """Fields for the named properties of a tool's schema, with what each `enrich` says of them."""
    return Form(tuple(_fields(schema, names, enrich, Problems())))


def check_enrichment(schema: JsonObject, enrich: Form) -> None:
    """Raises FormRejected if `enrich` says what the tool's schema cannot have meant."""
    problems = Problems()
    if schema.get("additionalProperties") is not True:
        known = _mapping(schema.get("properties"))
        for field in enrich.fields:
            _check_argument(field.name, known, problems.at(field.name))
            for name in sorted(answers_asked(field)):
                _check_argument(name, known, problems.at(field.name, "visible_if"))
    list(_fields(schema, [field.name for field in enrich.fields], (enrich,), problems))
    if problems.found:
        raise FormRejected(problems.found)


def takes(schema: JsonObject, name: str, value: Json) -> bool:
    """Whether the tool takes the value, as far as a form can tell; JSON it judges itself."""
    field = _field_from(schema, name)
    return bool(field.json) or answer_problem(field, value) is None


def allows_null(schema: JsonObject, name: str) -> bool:
    """Whether the tool says in so many words that null is a value of that property."""
    said = list(_says_of_null(_mapping(_mapping(schema.get("properties")).get(name)), schema))
    return bool(said) and all(said)


def _says_of_null(
    source: JsonObject, root: JsonObject, followed: frozenset[str] = frozenset()
) -> Iterator[bool]:
    """What each keyword says; one that is silent about null says nothing."""
    if isinstance(kind := source.get("type"), str | list):
        yield "null" in ([kind] if isinstance(kind, str) else kind)
    if isinstance(values := source.get("enum"), list):
        yield None in values
    if "const" in source:
        yield source["const"] is None
    for key in _UNIONS:
        if isinstance(source.get(key), list):
            parts = (list(_says_of_null(one, root, followed)) for one in _parts(source, key))
            yield any(said and all(said) for said in parts)
    for part in _parts(source, "allOf"):
        yield from _says_of_null(part, root, followed)
    reference = source.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        yield from _says_of_null(_referred(reference, root), root, followed | {reference})


def _check_argument(name: str, known: JsonObject, problems: Problems) -> None:
    if name not in known:
        problems.add(no_such_argument(name, known))


def no_such_argument(name: str, known: JsonObject) -> str:
    hint = remedy(
        name, known, msg("it has {names}", names=", ".join(known)) if known else msg("it has none")
    )
    return msg("the tool has no argument {name}: {hint}", name=name, hint=hint)


def _fields(
    schema: JsonObject, names: Sequence[str], enrich: Sequence[Form], problems: Problems
) -> Iterator[Field]:
    for name in names:
        full = _field_from(schema, name)
        for own in (one for form in enrich for one in form.fields if one.name == name):
            full = _enriched(full, own, problems.at(name))
        full = _told(full)
        # A condition on what the form does not ask could never become true.
        yield full if answers_asked(full) <= set(names) else replace(full, visible_if=None)


def _field_from(schema: JsonObject, name: str) -> Field:
    source = _resolve(_mapping(_mapping(schema.get("properties")).get(name)), schema)
    required = schema.get("required")
    field = Field(
        name=name,
        label=_text(source.get("title")),
        description=_text(source.get("description")),
        required=isinstance(required, list) and name in required,
    )
    typed = _typed(field, source, schema)
    ruled = _with_rules(typed, _rules_from(typed, source), Problems())
    return _with_default(ruled, _preselected(ruled, source.get("default")), Problems())


def _resolve(source: JsonObject, root: JsonObject, left: int = _MOST_REFERENCES) -> JsonObject:
    """The schema behind references, single alternatives and an optional null."""
    for key, inner in _inner_schemas(source, root):
        beside = {other: each for other, each in source.items() if other != key}
        return _resolve({**inner, **beside}, root, left - 1) if left else _ANYTHING
    return source


def _inner_schemas(source: JsonObject, root: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    if isinstance(source.get("$ref"), str):
        yield "$ref", _referred(source["$ref"], root)
    if isinstance(source.get("allOf"), list):
        parts = _alternatives(source, "allOf")
        yield "allOf", {key: each for part in parts for key, each in part.items()}
    for key in _UNIONS:
        alternatives = _alternatives(source, key)
        if len(alternatives) == 1:
            yield key, alternatives[0]


def _referred(reference: str, root: JsonObject) -> JsonObject:
    """The definition inside the same schema; what stands elsewhere could be anything."""
    found: Json = root if reference.startswith("#") else _ANYTHING
    for part in reference.split("/")[1:]:
        found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found if isinstance(found, Mapping) else _ANYTHING


def _alternatives(source: JsonObject, key: str) -> list[JsonObject]:
    return [one for one in _parts(source, key) if one.get("type") != "null"]


def _parts(source: JsonObject, key: str) -> list[JsonObject]:
    found = source.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _typed(field: Field, source: JsonObject, root: JsonObject) -> Field:
    options = _options(source)
    if options:
        return replace(field, type=type_of_choice(options), options=options)
    match _kind(source):
        case "string":
            return replace(field, type=_text_type(source))
        case "integer" | "number" as kind:
            return replace(field, type=FieldType.NUMBER, integer=kind == "integer")
        case "boolean":
            return replace(field, type=FieldType.BOOLEAN)
        case "array" if items := _options(_resolve(_mapping(source.get("items")), root)):
            return replace(field, type=FieldType.MULTISELECT, options=items)
        case "array" | "object" as kind if "type" in source:
            return replace(field, type=FieldType.TEXTAREA, json=kind)
        case _:
            return replace(field, type=FieldType.TEXTAREA, json=True)


def _kind(source: JsonObject) -> str | None:
    """The one type a value must have; None if there are several, or none is known."""
    stated = source.get("type")
    if isinstance(stated, str):
        return stated
    if isinstance(stated, list):
        kinds = [kind for kind in stated if kind != "null"]
    else:
        kinds = [_kind_of(value) for value in _enum(source)] or _kinds_implied(source)
    distinct = set(map(str, kinds))
    if distinct == {"integer", "number"}:
        return "number"
    return distinct.pop() if len(distinct) == 1 else None


def _kind_of(value: Json) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return kinds.get(type(value), "object")


def _kinds_implied(source: JsonObject) -> list[str]:
    if "items" in source:
        return ["array"]
    structured = ("properties", "not", *_UNIONS)
    return [] if any(key in source for key in structured) else ["string"]


def _text_type(source: JsonObject) -> FieldType:
    if source.get("writeOnly") is True:
        return FieldType.SECRET
    by_format = _FORMATS.get(_text(source.get("format")))
    if by_format is not None:
        return by_format
    most = source.get("maxLength")
    is_long = isinstance(most, int) and most > _LONGEST_LINE
    return FieldType.TEXTAREA if is_long else FieldType.TEXT


def _options(source: JsonObject) -> tuple[Option, ...]:
    """Options for an enum of texts, plain or as titled constants; none for anything else."""
    titled = next(filter(None, (_alternatives(source, key) for key in _UNIONS)), [])
    choices = titled or [{"const": value} for value in _enum(source)]
    labels = {value: label for value, label in map(_constant, choices) if value is not None}
    if len(labels) < len(choices):
        return ()
    return tuple(Option(value, label) for value, label in labels.items() if value.strip())


def _constant(choice: JsonObject) -> tuple[str | None, str]:
    value = choice.get("const")
    if not isinstance(value, str):
        return None, ""
    return value, _text(choice.get("title")) or value


def _enum(source: JsonObject) -> list[Json]:
    values = [source["const"]] if "const" in source else source.get("enum")
    return [value for value in values if value is not None] if isinstance(values, list) else []


def _rules_from(field: Field, source: JsonObject) -> dict[str, Any]:
    stated: dict[str, Any] = {key: source.get(keyword) for key, keyword in KEYWORDS.items()}
    if field.type not in CHOICES:
        stated["values"] = [one for one in _enum(source) if answer_problem(field, one) is None]
    stated |= _exclusive_bounds(source, 1 if field.integer else 0)
    usable = applicable_rules(field)
    rules: dict[str, Any] = {
        key: tuple(rule) if key == "values" else rule
        for key, rule in stated.items()
        if key in usable and rule_problem(key, rule) is None
    }
    if rules.get("max_length", 0) > longest(field):
        del rules["max_length"]
    return rules


def _exclusive_bounds(source: JsonObject, step: int) -> dict[str, Any]:
    """Exclusive bounds as inclusive ones, exact for whole numbers."""
    bounds = {"min": ("exclusiveMinimum", step), "max": ("exclusiveMaximum", -step)}
    return {
        key: source[keyword] + inwards
        for key, (keyword, inwards) in bounds.items()
        if rule_problem(key, source.get(keyword)) is None
    }


def _with_rules(field: Field, rules: Mapping[str, Any], problems: Problems) -> Field:
    """The field with its rules, or without any if they do not go together."""
    ruled = replace(field, validation=make_validation(rules))
    known_before = len(problems.found)
    check_rules(ruled, problems.at("validation"))
    return ruled if len(problems.found) == known_before else field


def _with_default(field: Field, default: Json, problems: Problems) -> Field:
    if is_empty(field, default):
        return field
    problem = default_problem(field, default)
    if problem is None:
        return replace(field, default=default)
    problems.at("default").add(problem)
    return field


def _enriched(field: Field, own: Field, problems: Problems) -> Field:
    merged = replace(
        _retyped(field, own),
        label=own.label or field.label,
        description=own.description or field.description,
        required=own.required,
        visible_if=own.visible_if,
        validation=Validation(),
        default=None,
    )
    suitable = applicable_rules(merged)
    kept = {key: rule for key, rule in rules_of(field).items() if key in suitable}
    ruled = _with_rules(merged, kept | rules_of(own), problems)
    if own.default is not None:
        return _with_default(ruled, own.default, problems)
    return _with_default(ruled, _preselected(ruled, field.default), Problems())


def _retyped(field: Field, own: Field) -> Field:
    kind = _merged_type(field, own)
    return replace(
        field,
        type=kind,
        options=(own.options or field.options) if kind in CHOICES else (),
        integer=kind is FieldType.NUMBER and (field.integer or own.integer),
        json=kind is FieldType.TEXTAREA and (field.json or own.json),
    )


def _merged_type(field: Field, own: Field) -> FieldType:
    if own.type in CHOICES:
        stays = field.type is FieldType.MULTISELECT or not (own.options or field.options)
    else:
        stays = own.type is FieldType.TEXT
    return field.type if stays else own.type


def _preselected(field: Field, default: Json) -> Json:
    return None if field.type in _NEVER_PRESELECTED else default


def _told(field: Field) -> Field:
    """How to write what only JSON can say; a field of another type says nothing of it."""
    if not field.json or _AS_JSON in field.description:
        return field
    told = (
        msg("{text} Write it as JSON.", text=field.description) if field.description else _AS_JSON
    )
    return replace(field, description=told)


def _mapping(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
