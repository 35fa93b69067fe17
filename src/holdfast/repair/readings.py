"""What templates read of a run, where that is not there, and where it may be instead.

`{002.context.order_id}` may name a task that has no such value while another has it, or a name that
is spelled otherwise; `{{result.id}}` a field that a tool calls something else by now. What is read
instead is always a value that the run has: these functions only choose among its tasks' contexts,
or among the fields of one result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.errors import TemplateError
from holdfast.language.facts import ROOTS, Path, reader
from holdfast.language.templates import compile_template
from holdfast.model.record import record
from holdfast.model.values import Json
from holdfast.repair.leaves import paths_in
from holdfast.repair.mentions import only_near, stems

_DEEPEST: Final = 5
_MOST_NODES: Final = 200
_CONTEXT: Final = 2
"""How many words of a path lead to a task's context."""
_LONE: Final = re.compile(r"\{\s*[\w.-]+\s*\}|\{\{\s*[\w.-]+\s*\}\}")
_OF_THE_ENGINE: Final = frozenset(
    {
        *("error_info", "failed_listener_id", "failed_listener_ids"),
        *("max_retries", "retry_count", "retry_times"),
    }
)
"""What the engine itself keeps in contexts, among it the words of errors, which nobody gave."""
_NAME: Final = re.compile(r"[\w-]{1,100}")


@record
class Reading:
    """A value that could be read, and where."""

    path: Path
    value: Json


def absent(template: Json, facts: TaskFacts | PlanState) -> tuple[Path, ...]:
    """The paths of a template that lead nowhere."""
    return tuple(path for path in paths_in(template) if read(path, facts) is None)


def read(path: Path, facts: TaskFacts | PlanState) -> Reading | None:
    """What stands there, if anything does."""
    try:
        return Reading(path, reader(path, _nowhere)(facts))
    except LookupError:
        return None


def _nowhere(_: object) -> Json:
    raise LookupError


def rendered(template: Json, facts: TaskFacts | PlanState) -> tuple[Json] | None:
    """What a template comes to, in a tuple, as None is a value too; None where it does not."""
    try:
        return (compile_template(template).fill(facts),)
    except TemplateError:
        return None


def lone_path(template: Json) -> Path | None:
    """The path of a template that is one placeholder and nothing else."""
    found = _LONE.fullmatch(template) if isinstance(template, str) else None
    paths = paths_in(template) if found else ()
    return paths[0] if paths else None


def written(path: Path) -> str:
    """How a template reads it."""
    name = ".".join(path)
    return f"{{{{{name}}}}}" if path[0] == "result" else f"{{{name}}}"


def redirected(template: Json, changes: Mapping[Path, Path]) -> Json:
    """The same template, reading elsewhere."""
    match template:
        case str():
            for old, new in changes.items():
                template = _pattern(old).sub(rf"\g<slashes>{written(new)}", template)
            return template
        case Mapping():
            return {key: redirected(one, changes) for key, one in template.items()}
        case list() | tuple():
            return [redirected(one, changes) for one in template]
    return template


def _pattern(path: Path) -> re.Pattern[str]:
    """An odd number of backslashes before a brace makes it a text."""
    opening, closing = (r"\{\{", r"\}\}") if path[0] == "result" else (r"\{", r"\}")
    name = re.escape(".".join(path))
    return re.compile(rf"(?<!\\)(?P<slashes>(?:\\\\)*){opening}\s*{name}\s*{closing}")


def instead(path: Path, state: PlanState) -> list[Reading]:
    """Where else what a task lacks may be, the likeliest first: under the same name in another
    task, in the same one under a name spelled much the same, or deeper in one of them."""
    home = state.plan.main if path[0] in ROOTS else path[0]
    parts = path[1:] if path[0] in ROOTS else path[_CONTEXT:]
    if not parts:
        return []
    tasks = [home, *(one.task_id for one in state.plan.plan.tasks if one.task_id != home)]
    moved = [read((task, "context", *parts), state) for task in tasks]
    found = [one for one in moved if one is not None and parts[0] not in _OF_THE_ENGINE]
    found += _near((home, "context"), parts, data_of_task(state, home))
    for task in tasks:
        inside = nodes(data_of_task(state, task), (task, "context"))
        found += [one for one in inside if _called(one, path)]
    return _once(found, path)


def data_of_task(state: PlanState, task_id: str) -> Mapping[str, Json]:
    """A task's context, without what the engine keeps there."""
    context = state.context_of(task_id)
    return {name: one for name, one in context.items() if name not in _OF_THE_ENGINE}


def in_result(path: Path, result: Json, fits: Callable[[Json], bool]) -> list[Reading]:
    """Where in a result something may be that is not where the path looks for it."""
    every = [one for one in nodes(result, path[:1]) if fits(one.value)]
    found = [one for one in _near(path[:1], path[1:], result) if fits(one.value)]
    found += [one for one in every if _called(one, path)]
    plain = [one for one in every if not isinstance(one.value, Mapping)]
    close = only_near(path[-1], {one.path[-1] for one in plain})
    found += [one for one in plain if one.path[-1] == close]
    found += [one for one in plain if stems(one.path[-1]) & stems(path[-1])]
    return _once(found, path)


def _called(one: Reading, path: Path) -> bool:
    return one.path[-1] == path[-1]


def _near(root: Path, parts: Path, value: Json) -> list[Reading]:
    """Along the path with one name spelled otherwise, wherever that is."""
    for at, part in enumerate(parts):
        meant = None if not isinstance(value, Mapping) or part in value else only_near(part, value)
        if meant is not None:
            whole = (*root, *parts[:at], meant, *parts[at + 1 :])
            inside = _inside(value[meant], parts[at + 1 :])
            return [Reading(whole, inside[0])] if inside and _NAME.fullmatch(meant) else []
        inside = _inside(value, (part,))
        if inside is None:
            return []
        value = inside[0]
    return []


def _inside(value: Json, parts: Path) -> tuple[Json] | None:
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return (value,)


def nodes(value: Json, root: Path) -> list[Reading]:
    """What stands in nested dicts, as far as templates can name it."""
    return list(islice(_nodes(value, root), _MOST_NODES))


def _nodes(value: Json, path: Path) -> Iterator[Reading]:
    if not isinstance(value, Mapping) or len(path) > _DEEPEST:
        return
    for name, one in value.items():
        if _NAME.fullmatch(name):
            yield Reading((*path, name), one)
            yield from _nodes(one, (*path, name))


def _once(found: list[Reading], path: Path) -> list[Reading]:
    return list({one.path: one for one in found if one.path != path}.values())
