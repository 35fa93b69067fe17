"""Patches in files: operations as JSON or YAML, and where in the file each part of them stands.

What operations mean is judged where the run is. What is found there names a part
(`operations[2].set: …`); here it is told with the line and column of that part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast.errors import PatchRejected, Problem
from holdfast.model.repair import MOST_OPERATIONS
from holdfast.source import nodes
from holdfast.source.locations import Finding, Locations, repeats
from holdfast.source.locations import Path as Place
from holdfast.source.nodes import Node, Scalar
from holdfast.source.shape import ShapeReader
from holdfast.source.yaml import read_document

LONGEST: Final = 500_000
"""Bytes; of operations a server takes less."""

_WHAT: Final = "a patch is a list of operations, or a mapping with the key operations"
_NAMED: Final = re.compile(r"operations((?:\[\d+\]|\.[^\s:.\[\]]+)*)")
_PART: Final = re.compile(r"\[(\d+)\]|\.([^\s:.\[\]]+)")
_NO_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab]..)\\u(d[c-f]..)|.)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class PatchFile:
    """What stands in a file: `below` is the path of the list of operations in it, `problems` are
    mistakes that leave the rest readable, `broken` the paths that have them."""

    file: str
    operations: list[Any]
    locations: Locations
    below: Place
    problems: tuple[Problem, ...] = ()
    broken: frozenset[Place] = frozenset()

    def placed(self, problems: Iterable[str]) -> list[str]:
        """Everything that is wrong: what was found in reading, and what was found in judging it,
        with the place of each part that is named; the rest comes last."""
        found, elsewhere = list(self.problems), []
        for one in problems:
            path = self._path(one)
            if path is None:
                elsewhere.append(one)
            elif not repeats(Finding(path, one), self.broken):
                found.append(Problem(one, self.file, *self.locations.value(path)))
        return [*map(str, sorted(found, key=_place)), *elsewhere]

    def _path(self, problem: str) -> Place | None:
        part = _NAMED.match(problem)
        if part is None:
            return None
        steps = (int(one[1]) if one[1] else one[2] for one in _PART.finditer(part[1]))
        return (*self.below, *steps)


def read_patch(file: Path) -> PatchFile:
    """PatchRejected where there is no list of operations to be found in it."""
    text, name = _text(file), str(file)
    if file.suffix == ".json":
        _refuse_broken_json(text, name)
    text = _whole_characters(text)
    document = read_document(text, name, "a list of operations")
    shape = ShapeReader(name, Locations(text), list(document.problems), whole="the patch")
    if document.root is None:
        raise _rejected(shape.problems)
    shape.locations.record((), document.root)
    value = shape.json(document.root, ())
    for one in _no_numbers(document.root):
        shape.note(one, f"{one.text} is not a number that JSON knows; quote it if text is meant")
    operations, below = _operations(shape, document.root, value)
    if not isinstance(operations, list):
        raise _rejected(shape.problems)
    problems, broken = tuple(shape.problems), frozenset(shape.broken)
    return PatchFile(name, operations, shape.locations, below, problems, broken)


def _place(problem: Problem) -> tuple[int, int]:
    return problem.line, problem.column


def _rejected(problems: Sequence[Problem]) -> PatchRejected:
    return PatchRejected([str(one) for one in sorted(problems, key=_place)])


def _text(file: Path) -> str:
    with file.open("rb") as opened:
        raw = opened.read(LONGEST + 1)
    if len(raw) > LONGEST:
        told = f"larger than {LONGEST:,} bytes: a patch has at most {MOST_OPERATIONS} operations"
        raise _rejected([Problem(told, str(file), 1, 1)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _rejected([Problem("this is not UTF-8 text", str(file), 1, 1)]) from None


def _refuse_broken_json(text: str, name: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        told = f"not valid JSON: {error.msg}"
        raise _rejected([Problem(told, name, error.lineno, error.colno)]) from None
    except (ValueError, RecursionError):
        return  # the reader of YAML has bounds, and says which was exceeded


def _whole_characters(text: str) -> str:
    """JSON spells what lies beyond 16 bits in two halves, and YAML as one."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _ESCAPE.sub(_joined, text)


def _joined(escape: re.Match[str]) -> str:
    high, low = escape.groups()
    if high is None:
        return escape[0]
    both = bytes.fromhex(high + low).decode("utf-16-be")
    return f"\\U{ord(both):08x}"


def _no_numbers(node: Node) -> Iterator[Scalar]:
    """What other programs write into JSON for want of a number."""
    match node:
        case Scalar(text=text, style=""):
            yield from (node,) if text in _NO_NUMBERS else ()
        case nodes.Sequence(items=items):
            for one in items:
                yield from _no_numbers(one)
        case nodes.Mapping(entries=entries):
            for _, one in entries:
                yield from _no_numbers(one)


def _operations(shape: ShapeReader, root: Node, value: Any) -> tuple[Any, Place]:
    if isinstance(root, nodes.Sequence):
        return value, ()
    if not isinstance(root, nodes.Mapping):
        shape.note(root, _WHAT)
        return None, ()
    found = shape.entries(root, (), known=("operations",), required=("operations",))
    shape.items(found.get("operations"), ("operations",))
    return value.get("operations"), ("operations",)
