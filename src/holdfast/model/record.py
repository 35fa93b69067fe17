"""`record`: a frozen, slotted dataclass whose freezing costs nothing at run time.

A step of a plan makes some thirty small values. Python's own frozen dataclass sets
each field through `object.__setattr__`, which makes construction four times slower
(1.05 against 0.24 µs for six fields). A record is frozen for the type checker, which
sees every assignment in this package; with `HOLDFAST_FROZEN=1`, as in our tests of
the core, it is frozen at run time too.

All records share one `__repr__`, and have their name for a docstring where they have none:
compiling and composing these took a third of the time in which a class is made, and every
program that imports this package makes hundreds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_FROZEN = os.environ.get("HOLDFAST_FROZEN") == "1"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    cls.__doc__ = cls.__doc__ or cls.__name__
    cls.__repr__ = _repr  # type: ignore[method-assign]
    return dataclass(slots=True, frozen=_FROZEN, unsafe_hash=not _FROZEN, repr=False)(cls)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
