"""Operations apart from the run that they were made for, and for another run of the plan.

What differs from run to run, and from one edition of the plan to the next, stands relative to the
listener that failed:

    @main @target @trigger1 @trigger2 …   tasks, by what they are to the listener
    @listener @ask                        the listener, and the task in which its answers are kept
    @new1 @new2 …                         tasks and listeners that the operations bring along

In a text they stand where a template or a condition names a task, as `{@main.context.name}`. A
value that the run's tasks have too becomes a template that reads it there. Operations that use such
signs themselves are not made relative.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState
from holdfast.core.storing import record_to_json
from holdfast.language.facts import ROOTS
from holdfast.model.values import Json, JsonObject

SHORTEST_TEXT: Final = 4
SMALLEST_NUMBER: Final = 1_000
"""Shorter and smaller values stand in many places by chance."""

_IDS: Final = {"listener_id": "listener_id", "task_id": "task_id", "trigger_task_id": "task_id"}
_WITHIN: Final = ("task", "tasks", "listener", "listeners", "success_output", "failure_output")
_WORDS: Final = ("op", "tool", "listener_type", "status", "code_snippet", "functions", "drop")
_IN_TEMPLATE: Final = re.compile(r"(?<=\{)(\s*)(@?[\w-]+)(?=\.)")
_IN_CONDITION: Final = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(@?[\w-]+)(?=\.(?:status|context)(?![\w-]))""", re.S
)

_Rename: TypeAlias = Callable[[str, str], str]
"""The other name of what a key, `task_id` or `listener_id`, names."""


class _Roles:
    """What tasks, and the listener itself, are to a listener; and what a patch brings along."""

    def __init__(self, state: PlanState, compiled: CompiledListener) -> None:
        asks, triggers = f"ask_{compiled.id}", compiled.listener.trigger_task_id
        tasks = {one: f"@trigger{n}" for n, one in reversed([*enumerate(triggers, 1)])}
        tasks |= {compiled.target: "@target"} if compiled.target else {}
        self._signs = {
            "listener_id": {asks: "@ask", compiled.id: "@listener"},
            "task_id": {asks: "@ask", **tasks, state.plan.main: "@main"},
        }

    def bring(self, names: Mapping[str, str]) -> None:
        """These are new, by name the sign of each."""
        self._signs = {key: {**names, **known} for key, known in self._signs.items()}

    def sign(self, name: str, key: str) -> str:
        return self._signs[key].get(name, name)

    def names(self) -> Mapping[str, Mapping[str, str]]:
        """By key, the name behind each sign."""
        return {key: {v: k for k, v in known.items()} for key, known in self._signs.items()}


def content_of(state: PlanState, listener_id: str) -> JsonObject:
    """What a listener is, whatever it and its tasks are called."""
    compiled = state.plan.listeners[listener_id]
    roles = _Roles(state, compiled)
    content: JsonObject = _renamed(record_to_json(compiled.listener), roles.sign)
    return content


def relative(
    operations: Sequence[JsonObject], state: PlanState, listener_id: str
) -> tuple[JsonObject, ...] | None:
    """Operations of a run's patch as a lesson keeps them; None where they cannot be kept."""
    if any(name.startswith("@") for name, _ in _named(operations)):
        return None
    roles = _Roles(state, state.plan.listeners[listener_id])
    brought = dict.fromkeys(_brought(operations))
    roles.bring({name: f"@new{n}" for n, name in enumerate(brought, 1)})
    placed = (_with_places(one, state) for one in operations)
    return tuple(_renamed(one, roles.sign) for one in placed)


def absolute(
    operations: Sequence[JsonObject], state: PlanState, listener_id: str
) -> tuple[JsonObject, ...] | None:
    """A lesson's operations for a listener of this run; None where its plan lacks what they
    name."""
    roles, named = _Roles(state, state.plan.listeners[listener_id]), _named(operations)
    new = dict.fromkeys(name for name, _ in named if name.startswith("@new"))
    roles.bring(dict(zip(_free_names(state), new, strict=False)))
    there = {"task_id": {*state.plan.task_ids, *ROOTS}, "listener_id": {*state.plan.listeners}}
    known = roles.names()
    if any(name not in known[key] and name not in there[key] for name, key in named):
        return None
    return tuple(_renamed(one, lambda name, key: known[key].get(name, name)) for one in operations)


def _free_names(state: PlanState) -> Iterator[str]:
    """Ids that no task and no listener of the run's plan has."""
    taken, number = {*state.plan.task_ids, *state.plan.listeners}, 0
    while True:
        number += 1
        if (name := f"R{number}") not in taken:
            yield name


def _renamed(value: Any, rename: _Rename) -> Any:
    """A record's JSON with other names for tasks and listeners."""
    return {key: _renamed_at(key, one, rename) for key, one in value.items()}


def _renamed_at(key: str, value: Any, rename: _Rename) -> Any:
    if key in _WORDS:
        return value
    if key in _IDS:
        kind = _IDS[key]
        return rename(value, kind) if isinstance(value, str) else [rename(v, kind) for v in value]
    if key == "trigger_condition":
        return _IN_CONDITION.sub(lambda one: one[1] or rename(one[2], "task_id"), value)
    if key in _WITHIN:
        if isinstance(value, Mapping):
            return _renamed(value, rename)
        return [_renamed(one, rename) for one in value]
    return _in_texts(value, rename)


def _in_texts(value: Json, rename: _Rename) -> Json:
    match value:
        case str():
            return _IN_TEMPLATE.sub(lambda one: one[1] + rename(one[2], "task_id"), value)
        case Mapping():
            return {key: _in_texts(one, rename) for key, one in value.items()}
        case list() | tuple():
            return [_in_texts(one, rename) for one in value]
    return value


def _named(operations: Sequence[JsonObject]) -> list[tuple[str, str]]:
    """All names in them, each with what it is a name of, in order."""
    found: list[tuple[str, str]] = []

    def note(name: str, key: str) -> str:
        found.append((name, key))
        return name

    for one in operations:
        _renamed(one, note)
    return found


def _brought(operations: Sequence[JsonObject]) -> Iterator[str]:
    for one in operations:
        if one["op"] == "ask_first" and "task_id" in one:
            yield one["task_id"]
        single = (one[key] for key in ("task", "listener") if key in one)
        for new in (*single, *one.get("tasks", ()), *one.get("listeners", ())):
            yield from (new[key] for key in ("task_id", "listener_id") if key in new)


_GIVEN: Final = ("set", "args", "context", "values")


def _with_places(operation: JsonObject, state: PlanState) -> JsonObject:
    """Values that the run's tasks have are read there."""
    return {key: _placed_at(key, one, state) for key, one in operation.items()}


def _placed_at(key: str, value: Any, state: PlanState) -> Any:
    if key in _GIVEN and isinstance(value, Mapping):
        return _placed(value, state)
    if key in _WITHIN:
        if isinstance(value, Mapping):
            return _with_places(value, state)
        return [_with_places(one, state) for one in value]
    return value


def _placed(value: Json, state: PlanState) -> Json:
    match value:
        case Mapping():
            return {key: _placed(one, state) for key, one in value.items()}
        case list() | tuple():
            return [_placed(one, state) for one in value]
        case str() if len(value) < SHORTEST_TEXT or "{" in value:
            return value
        case bool() | None:
            return value
        case int() | float() if abs(value) < SMALLEST_NUMBER:
            return value
    return _place(value, state) or value


def _place(value: Json, state: PlanState) -> str | None:
    """A template that reads this very value, from the main task if it has it."""
    tasks = sorted(state.tasks, key=lambda one: (one != state.plan.main, one))
    for task_id in tasks:
        for name, one in state.tasks[task_id].context.items():
            if type(one) is type(value) and one == value and re.fullmatch(r"[\w-]+", name):
                return f"{{{task_id}.context.{name}}}"
    return None
