"""`lazy`: an attribute that is worked out when it is first read.

As `functools.cached_property`, except that it sets the attribute instead of writing into the
instance's `__dict__`. An instance whose dict was once touched keeps all its attributes there, and
on Python 3.11 each further reading of any of them takes 270 instructions more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801
    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out

    def __get__(self, instance: Any, owner: type) -> T:
        value = self._work_out(instance)
        object.__setattr__(instance, self._work_out.__name__, value)
        return value
