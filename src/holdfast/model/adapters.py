"""`adapter`: pydantic's view of a type, made when it is first asked for.

Pydantic and the adapters of all events take longer to load than everything else that a program
needs to list its runs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.model.record import without_defaults

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


@overload
def adapter(kind: type[T]) -> TypeAdapter[T]: ...
@overload
def adapter(kind: Any) -> TypeAdapter[Any]: ...
def adapter(kind: Any) -> TypeAdapter[Any]:
    return _made(kind)


@cache
def _made(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    made: TypeAdapter[Any] = TypeAdapter(kind)
    without_defaults()
    return made
