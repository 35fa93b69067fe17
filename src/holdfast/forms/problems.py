"""Form problems: what is wrong in a form's shape, all of it, each with its path.

`Problems` walks along while a shape is read. It knows the path so far and shares one list, so that
a mistake in one field never hides the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from holdfast.errors import FormProblem
from holdfast.forms.values import echo
from holdfast.i18n.message import msg
from holdfast.language.spelling import MOST_UNKNOWN, remedy
from holdfast.model.values import Json

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problems:
    """What is found wrong, in one list, and the path at which the reading is."""

    found: list[FormProblem] = field(default_factory=list)
    path: Path = ()

    def at(self, *parts: str | int) -> Problems:
        return Problems(self.found, self.path + parts)

    def add(self, message: str) -> None:
        self.found.append(FormProblem(self.path, message))

    def text(self, raw: Mapping[str, Json], key: str, default: str = "") -> str:
        value = raw.get(key)
        if value is not None and not isinstance(value, str):
            self.at(key).add(msg("must be text, not {value}", value=echo(value)))
        return value if isinstance(value, str) else default

    def flag(self, raw: Mapping[str, Json], key: str, default: bool = False) -> bool:
        value = raw.get(key)
        if value is not None and not isinstance(value, bool):
            self.at(key).add(msg("must be true or false, not {value}", value=echo(value)))
        return value if isinstance(value, bool) else default

    def known_keys(self, raw: Mapping[str, Json], known: Collection[str]) -> None:
        for key in islice((key for key in raw if key not in known), MOST_UNKNOWN):
            hint = remedy(key, known, msg("known are {names}", names=", ".join(known)))
            self.at(key).add(msg("unknown key: {hint}", hint=hint))
