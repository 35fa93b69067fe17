"""Lists of tasks and results in the details of a question.

What the details list stands in the question's context for programs; a person is not shown it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from holdfast.i18n.message import joined, msg
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json
from holdfast.model.interaction import InteractionRequest
from holdfast.model.values import Json

_LONGEST_LINE: Final = 300
_MOST_LINES: Final = 30


def listed_tasks(tasks: Json) -> str:
    objects = isinstance(tasks, Sequence) and all(isinstance(one, Mapping) for one in tasks)
    return _listed(map(_task_line, tasks)) if objects and not isinstance(tasks, str) else ""


def listed_results(results: Json) -> str:
    """By the tasks that they are of."""
    if not isinstance(results, Mapping):
        return ""
    return _listed(f"{one}: {canonical_json(result)}" for one, result in results.items())


def shown_context(request: InteractionRequest) -> dict[str, Json]:
    """What a question is about, but for what its details list."""
    return {
        name: value
        for name, value in request.context.items()
        if name not in _LISTS or _LISTS[name](value) != request.details
    }


_LISTS: Final[Mapping[str, Callable[[Json], str]]] = {
    "tasks": listed_tasks,
    "results": listed_results,
}


def _listed(lines: Iterable[str]) -> str:
    """One line for each, and no more than a person reads."""
    shown = [clip(one, _LONGEST_LINE) for one in islice(lines, _MOST_LINES + 1)]
    more = ["…"] if len(shown) > _MOST_LINES else []
    return joined("\n", shown[:_MOST_LINES] + more)


def _task_line(task: Mapping[str, Json]) -> str:
    args = canonical_json(task["args"]) if task.get("args") else ""
    call = " ".join(filter(None, (str(task.get("type", "")), args)))
    told = ": ".join(
        filter(None, (str(task.get("id", "")), str(task.get("description", "")), call))
    )
    first = task.get("dependencies")
    return (
        msg("{task}; needs first: {names}", task=told, names=", ".join(map(str, first)))
        if first
        else told
    )
