"""What the JSON of an error says of it: the service's own word for it, and the argument it names.

    {"error": {"code": "model_not_found", "param": "model"}}           many
    {"error": "invalid_grant", "error_description": "…"}               OAuth
    {"error": {"code": 404, "status": "NOT_FOUND", "details": […]}}    gRPC over HTTP
    {"type": "https://example.com/out-of-credit", "title": "…"}        problem+json
    {"detail": [{"loc": ["body", "model"], "type": "missing"}]}        FastAPI
    {"errors": {"model": ["is unknown"]}}, {"model": ["…"]}            Laravel, Rails, Django
    {"errors": [{"source": {"pointer": "/data/attributes/model"}}]}    JSON:API

The object itself is looked at first, then the errors in it. A number that is the status over again
is no code, and a sentence neither code nor name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.model.values import Json

LONGEST_WORD: Final = 100
_MOST_HOLDERS: Final = 20
_MOST_ENTRIES: Final = 3
_MOST_NAMES: Final = 100

_WITHIN: Final = (
    *("error", "errors", "detail", "details", "fault", "extensions", "source", "violations"),
    *("fieldviolations", "invalidparams", "issues"),
)
_CODES: Final = ("code", "errorcode", "errcode", "faultcode", "__type")
_ARGUMENTS: Final = (
    *("param", "parameter", "field", "argument", "property", "fieldname", "propertyname"),
    *("attribute", "pointer", "instancepath"),
)
_WAYS: Final = ("loc", "path")
_BY_NAME: Final = ("fields", "fielderrors", "errors")
_LISTED: Final = ("fields", "invalidparams")
_NO_CODES: Final = frozenset({"0", "ok", "success", "error", "fail", "failed", "about:blank"})
_NO_NAMES: Final = frozenset(
    {"message", "messages", "code", "type", "detail", "errors", "non_field_errors"}
)
_PLACES: Final = frozenset(
    {"body", "query", "path", "header", "cookie", "data", "attributes", "", "#"}
)
_COMPOUND: Final = re.compile(
    r"[A-Za-z][A-Za-z\d]*(?:[_.][A-Za-z\d]+)+|[A-Z]+|[A-Za-z]+[a-z][A-Z]\w*"
)
_GRPC: Final = re.compile(r"[A-Z][A-Z_]+")
_ABOUT_INPUT: Final = (400, 422)


def code_in(body: Mapping[str, Json], status: int | None = None) -> str:
    """The service's own word for the error."""
    every = list(_holders(body))
    told = (code for one in every for code in _codes(one, status, one is every[0]))
    reasons = (code_word(one.get("reason")) for one in every[1:])
    return next((one for one in reasons if _COMPOUND.fullmatch(one)), "") or next(told, "")


def argument_in(body: Mapping[str, Json], status: int | None = None) -> str:
    """The argument that the service names, by its own name for it."""
    every = list(_holders(body))
    told = [argument_name(_argument(one)) for one in every]
    told += [_first_key(one) for holder in every for one in map(holder.get, _BY_NAME)]
    told += [_first_entry(one) for holder in every for one in map(holder.get, _LISTED)]
    if status in _ABOUT_INPUT and all(isinstance(one, list) for one in body.values()):
        told.append(_first_key(body))
    return next(filter(None, told), "")


def code_word(value: object, status: int | None = None) -> str:
    """A code as text; empty for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if value != status else ""
    if not isinstance(value, str) or value.casefold() in _NO_CODES or value == str(status):
        return ""
    return value if _is_word(value) else ""


def argument_name(value: object) -> str:
    """An argument's name; empty for what is none."""
    return value if isinstance(value, str) and _is_word(value) else ""


def _is_word(value: str) -> bool:
    return len(value) <= LONGEST_WORD and value.isprintable() and not re.search(r"[\s\"'<>]", value)


def _codes(holder: Mapping[str, Any], status: int | None, outermost: bool) -> Iterator[str]:
    yield from filter(None, (code_word(holder.get(one), status) for one in _CODES))
    for told, shape in ((holder.get("status"), _GRPC), (holder.get("error"), _COMPOUND)):
        if isinstance(told, str) and code_word(told) and shape.fullmatch(told):
            yield told
    kind = code_word(holder.get("type"))
    if kind and (not outermost or ":" in kind or "title" in holder):
        yield kind


def _holders(body: Mapping[str, Json]) -> Iterator[Mapping[str, Any]]:
    """The object and the errors in it, their names without hyphens, underscores and capitals."""
    waiting: list[object] = [body]
    for one in waiting:
        if isinstance(one, Mapping) and len(one) <= _MOST_NAMES:
            told = {str(key).replace("-", "").replace("_", "").lower(): one[key] for key in one}
            told |= {"__type": one.get("__type")}
            yield told
            within = [told[key] for key in _WITHIN if key in told]
            waiting += within[: _MOST_HOLDERS - len(waiting)]
        elif isinstance(one, list):
            waiting += one[: min(_MOST_ENTRIES, _MOST_HOLDERS - len(waiting))]


def _argument(holder: Mapping[str, Any]) -> object:
    """What an error says that it is about: a name, a pointer into the request, or the way there."""
    for told in map(holder.get, _ARGUMENTS):
        if isinstance(told, str) and told:
            return _joined(told.split("/")) if told.startswith(("/", "#/")) else told
    ways = (told for told in map(holder.get, _WAYS) if isinstance(told, list))
    return _joined(next(ways, []))


def _joined(way: list[Any]) -> str:
    parts = [str(one) for one in way[:_MOST_HOLDERS] if isinstance(one, str | int)]
    while len(parts) > 1 and parts[0] in _PLACES:
        parts = parts[1:]
    return ".".join(parts)


def _first_key(told: object) -> str:
    """Where errors stand under the names of what they are about."""
    names = told if isinstance(told, Mapping) else ()
    return next((str(one) for one in names if one not in _NO_NAMES and argument_name(one)), "")


def _first_entry(told: object) -> str:
    match told:
        case [Mapping() as entry, *_]:
            return argument_name(entry.get("name"))
        case [entry, *_]:
            return argument_name(entry)
    return ""
