"""Samples: the smallest JSON that a schema takes, with placeholders for its texts.

What may be left out or null is, unless the plan reads it. What the schema does not know of is not
there, however it is read; a schema that says nothing of an object's properties, or lets there be
further ones, leaves that open. A sample is bounded in its values and its depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import Final, TypeAlias, TypeGuard

from holdfast.language.display import clip
from holdfast.language.facts import Path
from holdfast.model.values import Json, JsonObject

Paths: TypeAlias = Sequence[Path]
"""What is read of a value, without the name of the value itself."""

_LONGEST: Final = 120
_DEEPEST: Final = 16
_MOST_VALUES: Final = 1_000
_MOST_ITEMS: Final = 32
_MOST_FIELDS: Final = 64
_MOST_DIGITS: Final = 3
_MOST_TURNS: Final = 16
_ASIDE: Final = ("$ref", "allOf", "anyOf", "oneOf")


def placeholder(*place: str) -> str:
    """What stands for a value that is not known: whose it is, and where it will be found."""
    return f"‹{clip('.'.join(place), _LONGEST)}›"


def sample(schema: JsonObject, name: str, paths: Paths) -> Json:
    return _Sampler(schema).fitting(schema, (name,), paths)


def likeness(value: Json, name: str, paths: Paths) -> Json:
    """The same with placeholders for its texts; of what is large, what is read and some more."""
    return _Sampler({}).alike(value, (name,), paths)


class _Sampler:
    def __init__(self, root: JsonObject) -> None:
        self.root = root
        self.left = _MOST_VALUES

    def fitting(self, source: Json, place: Path, paths: Paths) -> Json:
        self.left -= 1
        if self.left < 0 or len(place) > _DEEPEST:
            return placeholder(*place)
        schema = _resolved(source, self.root, read=bool(paths))
        if "const" in schema:
            return schema["const"]
        if values := _list(schema.get("enum")):
            return values[0]
        match _kind(schema, paths):
            case "object":
                return self._object(schema, place, paths)
            case "array":
                return self._array(schema, place, paths)
            case "integer" | "number" as kind:
                return _number(schema, whole=kind == "integer")
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return placeholder(*place)

    def _object(self, schema: JsonObject, place: Path, paths: Paths) -> Json:
        """What is required, and what is read of it and may be there."""
        known = _mapping(schema.get("properties"))
        required = [one for one in _list(schema.get("required")) if isinstance(one, str)]
        further = schema.get("additionalProperties", not known)
        made = {}
        for name in dict.fromkeys((*required, *_firsts(paths))):
            if name in known or name in required or further is not False:
                source = known.get(name, further)
                made[name] = self.fitting(source, (*place, name), _within(paths, name))
        return made

    def _array(self, schema: JsonObject, place: Path, paths: Paths) -> Json:
        least, items = schema.get("minItems"), schema.get("items")
        indexes = [int(one) for one in _firsts(paths) if _is_index(one)]
        count = max([int(least) if _is_number(least) else 0, *(one + 1 for one in indexes)])
        return [
            self.fitting(items, (*place, one), _within(paths, one))
            for one in map(str, range(min(count, _MOST_ITEMS)))
        ]

    def alike(self, value: Json, place: Path, paths: Paths) -> Json:
        self.left -= 1
        if isinstance(value, str) or self.left < 0:
            return placeholder(*place)
        if isinstance(value, list):
            items = zip(map(str, range(_MOST_ITEMS)), value, strict=False)
            return [self.alike(each, (*place, one), _within(paths, one)) for one, each in items]
        if not isinstance(value, Mapping):
            return value
        read = (one for one in _firsts(paths) if one in value)
        names = dict.fromkeys((*read, *islice(value, _MOST_FIELDS)))
        return {one: self.alike(value[one], (*place, one), _within(paths, one)) for one in names}


def _number(schema: JsonObject, *, whole: bool) -> float:
    """The one nearest to 0."""
    number: float = 0
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if _is_number(most):
        number = min(number, most)
    if _is_number(below) and number >= below:
        number = below - 1
    if _is_number(least):
        number = max(number, least)
    if _is_number(above) and number <= above:
        number = above + 1
    return ceil(number) if whole else number


def _kind(schema: JsonObject, paths: Paths) -> Json:
    """The one type that a value has; that of a schema without one shows in what else it says."""
    stated = schema.get("type")
    if isinstance(stated, list):
        nothing = "null" in stated and not paths
        stated = next((one for one in stated if (one == "null") is nothing), "null")
    if stated is not None:
        return stated
    if "items" in schema:
        return "array"
    return "object" if any(paths) or "properties" in schema or "required" in schema else None


def _resolved(source: Json, root: JsonObject, *, read: bool) -> JsonObject:
    """The schema behind references, parts that hold together, and alternatives."""
    schema = _mapping(source)
    for _ in range(_MOST_TURNS):
        key = next((one for one in _ASIDE if one in schema), None)
        if key is None:
            return schema
        beside = {name: one for name, one in schema.items() if name != key}
        schema = _joined((*_ahead(key, schema[key], root, read), beside))
    return {}


def _ahead(key: str, value: Json, root: JsonObject, read: bool) -> Iterable[JsonObject]:
    if key == "$ref":
        return (_referred(str(value), root),)
    parts = [_mapping(one) for one in _list(value)]
    if key == "allOf":
        return parts
    return sorted(parts, key=lambda one: (one.get("type") == "null") is read)[:1]


def _referred(reference: str, root: JsonObject) -> JsonObject:
    """The definition inside the same schema; what stands elsewhere could be anything."""
    found: Json = root if reference.startswith("#") else {}
    for part in reference.split("/")[1:]:
        found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return _mapping(found)


def _joined(parts: Iterable[JsonObject]) -> JsonObject:
    joined: dict[str, Json] = {}
    for part in parts:
        properties = {**_mapping(joined.get("properties")), **_mapping(part.get("properties"))}
        required = [*_list(joined.get("required")), *_list(part.get("required"))]
        joined |= part
        joined |= {"properties": properties} if properties else {}
        joined |= {"required": required} if required else {}
    return joined


def _firsts(paths: Paths) -> Iterable[str]:
    return dict.fromkeys(path[0] for path in paths if path)


def _within(paths: Paths, name: str) -> Paths:
    return [path[1:] for path in paths if path[:1] == (name,)]


def _is_index(name: str) -> bool:
    return name.isdecimal() and len(name) <= _MOST_DIGITS


def _mapping(value: Json) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
