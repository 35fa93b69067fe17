"""What conditions and templates may ask about a run, and the paths they ask with.

A path is words joined by dots. It starts at a task, `002.status` or `002.context.items.0.price`,
or at one of the named roots: `result` (what the listener's work returned) and `values` (what the
plan was started with). A number steps into a list, counting from 0. A task called `result` or
`values` would be shadowed by the root of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from holdfast.i18n.message import msg
from holdfast.model.values import Json

Path: TypeAlias = tuple[str, ...]

ROOTS: Final = frozenset({"result", "values"})

_MOST_INDEX_DIGITS: Final = 9


class Facts(Protocol):
    """A run as conditions and templates see it; an unknown task raises KeyError."""

    @property
    def names(self) -> Mapping[str, Json]:
        """The values of the named roots; one that does not apply is absent."""

    def status_of(self, task_id: str) -> str: ...

    def context_of(self, task_id: str) -> Mapping[str, Json]: ...


Reader: TypeAlias = Callable[[Facts], Json]


def split_path(text: str) -> Path:
    """The parts of a path, or ValueError saying why nothing can be there."""
    path = tuple(text.split("."))
    if path[0] in ROOTS:
        return path
    if len(path) < 2 or path[1] not in ("status", "context"):
        raise ValueError(msg("after the task id {id!r} comes .status or .context", id=path[0]))
    if path[1] == "status" and len(path) > 2:
        raise ValueError(msg("{id}.status is one word: nothing can follow it", id=path[0]))
    return path


def reader(path: Path, absent: Reader) -> Reader:
    """A function that reads the path from facts; where it leads nowhere, `absent` is asked."""
    root = path[0]
    named = root in ROOTS
    if not named and path[1] == "status":
        return _status(root, absent)
    parts = path[1 if named else 2 :]
    whole = not named and not parts

    def read(facts: Facts) -> Json:
        try:
            value = facts.names[root] if named else facts.context_of(root)
            for part in parts:
                value = value[part] if type(value) is dict else step_into(value, part)
            return dict(value) if whole else value
        except LookupError:
            return absent(facts)

    return read


def step_into(value: Json, part: str) -> Json:
    """The part of a list or dict that one word of a path names; LookupError when absent."""
    try:
        if type(value) is not list:
            return value[part]
    except TypeError:
        raise LookupError(part) from None
    # A longer number is beyond any list, and int() refuses thousands of digits.
    if not part.isdecimal() or len(part) > _MOST_INDEX_DIGITS:
        raise LookupError(part)
    return value[int(part)]


def _status(task_id: str, absent: Reader) -> Reader:
    def read(facts: Facts) -> Json:
        try:
            return str(facts.status_of(task_id))
        except LookupError:
            return absent(facts)

    return read
