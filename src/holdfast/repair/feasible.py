"""What of a patch can be judged where not all of it can be carried out.

An operation that cannot be read, or names what is not there, says nothing against the others: they
are judged without it. Only those that rest on what it would have brought wait until it is mended,
for what is wrong with them may be its fault.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.repair.operations import obstacles
from holdfast.core.repair.reading import readable
from holdfast.core.repair.records import Operation
from holdfast.errors import FormProblem
from holdfast.language.strict import canonical_json
from holdfast.model.plan import Plan
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject

_BRINGING: Final = ("task", "listener", "tasks", "listeners")
_IDS: Final = ("task_id", "listener_id")


@record
class Feasible:
    """By their places the operations that can be `read`, and of these the ones `left` that can be
    carried out; `problems` are why others cannot."""

    read: Mapping[int, Operation]
    left: Mapping[int, Operation]
    problems: tuple[str, ...]


def feasible(plan: Plan, raw: Sequence[JsonObject]) -> Feasible:
    known = {one.listener_id for one in plan.listeners} | {one.task_id for one in plan.tasks}
    brings = [frozenset(_brought(one)) - known for one in raw]
    read, unread = readable(raw)
    left = _without(read, raw, brings, [place for place in range(len(raw)) if place not in read])
    found = obstacles(plan, left)
    causes = _causes(found, raw, brings)
    problems = (*unread, *(str(one) for one in found if one.path[1] in causes))
    while found:
        left = _without(left, raw, brings, {int(one.path[1]) for one in found})
        found = obstacles(plan, left)  # what fails only now fails for want of the others
    return Feasible(read, left, problems)


def _causes(
    found: Sequence[FormProblem], raw: Sequence[JsonObject], brings: Sequence[Collection[str]]
) -> Collection[int]:
    """The operations that fail, and not for want of another that does."""
    causes, lost = list[int](), set[str]()
    for place in dict.fromkeys(int(one.path[1]) for one in found):
        if not _names(raw[place], lost):
            causes.append(place)
        lost |= {*brings[place]}
    return causes


def _without(
    operations: Mapping[int, Operation],
    raw: Sequence[JsonObject],
    brings: Sequence[Collection[str]],
    places: Collection[int],
) -> dict[int, Operation]:
    """Without those at the places, and without those that rest on them."""
    left = {place: one for place, one in operations.items() if place not in places}
    lost = {name for place in places for name in brings[place]} if left else set()
    resting = [place for place in left if _names(raw[place], lost)]
    return _without(left, raw, brings, resting) if resting else left


def _brought(raw: Json) -> Iterator[str]:
    """The ids of what an operation would bring, as far as they can be made out."""
    if not isinstance(raw, dict):
        return
    if raw.get("op") == "ask_first":
        yield str(raw.get("task_id", f"ask_{raw.get('listener_id')}"))
    for key in _BRINGING:
        part = raw.get(key)
        for one in part if isinstance(part, list) else [part]:
            if isinstance(one, dict):
                yield from (one[name] for name in _IDS if isinstance(one.get(name), str))


def _names(raw: JsonObject, ids: Collection[str]) -> bool:
    text = canonical_json(raw) if ids else ""
    return any(re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", text) for one in ids)
