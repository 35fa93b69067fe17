"""What a tool's function takes, as pydantic reads its annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, Required, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

from holdfast.errors import CallerError, InvalidValue
from holdfast.language.strict import strict_json
from holdfast.model.values import Json
from holdfast.work.fingerprints import routine_of
from holdfast.work.tools import CallInfo


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: a validator for its arguments and their JSON Schema."""

    adapter: TypeAdapter[dict[str, Any]]
    schema: dict[str, Any]
    call_parameter: str | None

    @classmethod
    def of(cls, fn: Callable[..., Any], name: str) -> Signature:
        try:
            return cls._read(fn, name)
        except (NameError, PydanticUserError) as error:
            raise CallerError(
                f"tool {name!r}: its annotations cannot be read: {error}; "
                "use JSON-like types that its module knows by name"
            ) from None

    @classmethod
    def _read(cls, fn: Callable[..., Any], name: str) -> Signature:
        hints = get_type_hints(routine_of(fn), include_extras=True)
        parameters = inspect.signature(fn).parameters.values()
        for parameter in parameters:
            _refuse_unnamed(parameter, name)
        taken = [p for p in parameters if hints.get(p.name) is not CallInfo]
        given = [p.name for p in parameters if hints.get(p.name) is CallInfo]
        adapter = TypeAdapter(_arguments_type(name, taken, hints))
        return cls(adapter, _schema(adapter, taken), given[0] if given else None)


def _refuse_unnamed(parameter: inspect.Parameter, name: str) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise CallerError(
            f"tool {name!r}: {parameter} has no name of its own to call it by; "
            "a tool's parameters are all passed by name"
        )


def _arguments_type(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any]
) -> type[dict[str, Any]]:
    """A TypedDict, which unlike a model allows any name and leaves defaults to the function."""
    make: Any = TypedDict
    fields = {p.name: _presence(p)[hints.get(p.name, Any)] for p in parameters}
    kind: type[dict[str, Any]] = make(name, fields)
    kind.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
    return kind


def _presence(parameter: inspect.Parameter) -> Any:
    return Required if parameter.default is parameter.empty else NotRequired


def _schema(
    adapter: TypeAdapter[dict[str, Any]], parameters: list[inspect.Parameter]
) -> dict[str, Any]:
    schema = adapter.json_schema()
    for parameter in parameters:
        default = _json_default(parameter)
        if default is not parameter.empty:
            schema["properties"][parameter.name].setdefault("default", default)
    return schema


def _json_default(parameter: inspect.Parameter) -> Json:
    try:
        return strict_json(parameter.default)
    except InvalidValue:
        return parameter.empty
