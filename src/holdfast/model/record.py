"""How records are made: `record`, `state`, their adapters, and what makes reading them cheap.

`record` is a frozen, slotted dataclass whose freezing costs nothing at run time. A step of a plan
makes some thirty small values. Python's own frozen dataclass sets each field through
`object.__setattr__`, which makes construction four times slower (1.05 against 0.24 µs for six
fields). A record is frozen for the type checker, which sees every assignment in this package; with
`HOLDFAST_FROZEN=1`, as in our tests of the core, it is frozen at run time too.

All records share one `__repr__`, and have their name for a docstring where they have none:
compiling and composing these took a third of the time in which a class is made, and every
program that imports this package makes hundreds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    TypeVar,
    dataclass_transform,
    overload,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    TextEnum = StrEnum
else:

    class TextEnum(StrEnum):
        """A `StrEnum` whose values are read without a call of Python: its own `value` takes two,
        and every event and row that is written reads several."""

        value = property(attrgetter("_value_"))


_FROZEN = os.environ.get("HOLDFAST_FROZEN") == "1"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    cls.__doc__ = cls.__doc__ or cls.__name__
    cls.__repr__ = _repr  # type: ignore[method-assign]
    return dataclass(slots=True, frozen=_FROZEN, unsafe_hash=not _FROZEN, repr=False)(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def state(cls: type[T]) -> type[T]:
    """A frozen dataclass that keeps a `__dict__` and no defaults in its class: an attribute that
    the class has too, as an enum's member or a map, is three times as dear to read."""
    made = dataclass(frozen=True)(cls)
    _STATES.append(made)
    without_defaults()
    return made


_STATES: list[type[Any]] = []


def without_defaults() -> None:
    """Take the defaults out of the classes of states; making an adapter of one puts them back."""
    for made in _STATES:
        for one in fields(made):
            if one.name in made.__dict__:
                delattr(made, one.name)


@overload
def adapter(kind: type[T]) -> TypeAdapter[T]: ...
@overload
def adapter(kind: Any) -> TypeAdapter[Any]: ...
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Pydantic's view of a type, made when it is first asked for.

    Pydantic and the adapters of all events take longer to load than everything else that a
    program needs to list its runs.
    """
    return _made(kind)


@cache
def _made(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    made: TypeAdapter[Any] = TypeAdapter(kind)
    without_defaults()
    return made


class lazy(Generic[T]):  # noqa: N801
    """An attribute that is computed when it is first read.

    As `functools.cached_property`, except that it sets the attribute instead of writing into the
    instance's `__dict__`. An instance whose dict was once touched keeps all its attributes there,
    and on Python 3.11 each further reading of any of them takes 270 instructions more.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out

    def __get__(self, instance: Any, owner: type) -> T:
        value = self._work_out(instance)
        object.__setattr__(instance, self._work_out.__name__, value)
        return value


def constructor(cls: Callable[P, T]) -> Callable[P, T]:
    """A function that makes a record as calling its class does, for those that every step makes.

    Python 3.11 calls a function within its interpreter's loop, but leaves it for a class: 1,000
    instructions instead of 2,800 for seven fields.
    """
    if _FROZEN:
        return cls
    scope: dict[str, Any] = {"new": object.__new__, "cls": cls}
    taken, body = [], ["made = new(cls)"]
    for one in fields(cls):  # type: ignore[arg-type]
        taken.append(one.name)
        body.append(f"made.{one.name} = {one.name}")
        if one.default is not MISSING:
            scope[f"default_{one.name}"] = one.default
            taken[-1] += f"=default_{one.name}"
        elif one.default_factory is not MISSING:
            scope[f"default_{one.name}"] = one.default_factory
            taken[-1] += "=new"
            body[-1] += f" if {one.name} is not new else default_{one.name}()"
    exec(f"def make({', '.join(taken)}):\n " + "\n ".join([*body, "return made"]), scope)  # noqa: S102
    made: Callable[P, T] = scope["make"]
    return made


def replacing(cls: type[T]) -> Callable[..., T]:
    """`dataclasses.replace` for one class, whose fields are looked up once."""
    names = tuple(one.name for one in fields(cls))  # type: ignore[arg-type]
    values = attrgetter(*names)

    def replaced(before: T, **changes: Any) -> T:
        return cls(**(dict(zip(names, values(before), strict=True)) | changes))

    return replaced


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
