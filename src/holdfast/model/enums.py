"""`TextEnum`: a `StrEnum` whose values are read without a call of Python.

Python's own `value` takes two, and every event and row that is written reads several.
"""

from __future__ import annotations

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    TextEnum = StrEnum
else:

    class TextEnum(StrEnum):
        value = property(attrgetter("_value_"))
