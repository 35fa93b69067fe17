"""Fingerprints: what is different when a function does something different.

Consent is bound to a tool's version, so the version must change with whatever the tool would do:
its source, the defaults and the variables that it has taken along, and what a callable object
holds. Functions among these are looked into in turn. A value counts as far as it is plain JSON,
any other by the name of its type alone: addresses and hashes differ from process to process, and
a version must not. What stands elsewhere (globals, a library, a service) is not seen; for that an
author gives the tool a `version` of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeAlias

from holdfast.errors import InvalidValue
from holdfast.language.strict import strict_json
from holdfast.model.values import Json

_Within: TypeAlias = tuple[object, ...]
"""What is being looked into: a function may hold itself."""


def fingerprint(fn: Callable[..., Any]) -> Json:
    return _of_callable(fn, ())


def routine_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a callable object."""
    return fn if inspect.isroutine(fn) else type(fn).__call__


def _of_callable(fn: Any, within: _Within) -> Json:
    if any(fn is one for one in within):
        return "itself"
    within = (*within, fn)
    if isinstance(fn, functools.partial):
        held = [_held(one, within) for one in (fn.func, *fn.args)]
        return {"partial": held, "keywords": _all_held(fn.keywords, within)}
    if isinstance(fn, MethodType):
        return {"method": _of_callable(fn.__func__, within), "of": _state(fn.__self__, within)}
    if isinstance(fn, FunctionType):
        return _of_function(fn, within)
    if (wrapped := getattr(fn, "__wrapped__", None)) is not None:
        return {"type": _name(type(fn)), "wraps": _of_callable(wrapped, within)}
    if inspect.isroutine(fn):
        return str(getattr(fn, "__qualname__", type(fn).__qualname__))
    return {"call": _of_callable(routine_of(fn), within), "of": _state(fn, within)}


def _of_function(fn: FunctionType, within: _Within) -> Json:
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    return {
        "source": _source(fn.__code__),
        "defaults": [_held(one, within) for one in fn.__defaults__ or ()],
        "keyword_defaults": _all_held(fn.__kwdefaults__ or {}, within),
        "captured": {name: _in_cell(cell, within) for name, cell in cells},
    }


def _in_cell(cell: CellType, within: _Within) -> Json:
    try:
        return _held(cell.cell_contents, within)
    except ValueError:
        return "nothing yet"


def _all_held(values: Mapping[str, object], within: _Within) -> Json:
    return {name: _held(value, within) for name, value in values.items()}


def _held(value: object, within: _Within) -> Json:
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return {"function": _of_callable(value, within)}
    try:
        return {"value": strict_json(value)}
    except InvalidValue:
        return {"type": _name(type(value))}


def _state(holder: object, within: _Within) -> Json:
    if isinstance(holder, type):
        return _name(holder)
    return {"type": _name(type(holder)), "holds": _all_held(dict(_attributes(holder)), within)}


def _attributes(holder: object) -> Iterator[tuple[str, object]]:
    yield from getattr(holder, "__dict__", {}).items()
    for kind in type(holder).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name != "__dict__" and hasattr(holder, name):
                yield name, getattr(holder, name)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _source(code: CodeType) -> Json:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return _compiled(code)


def _compiled(code: CodeType) -> Json:
    """Without the source at hand: the byte code, and everything that it refers to by number."""
    return {
        "name": code.co_qualname,
        "code": code.co_code.hex(),
        "names": [*code.co_names],
        "constants": [_constant(one) for one in code.co_consts],
    }


def _constant(value: object) -> Json:
    match value:
        case CodeType():
            return _compiled(value)
        case tuple():
            return ["tuple", *map(_constant, value)]
        case frozenset():
            return ["frozenset", *sorted(map(repr, value))]
        case _:
            return repr(value)
