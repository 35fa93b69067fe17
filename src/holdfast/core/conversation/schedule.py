"""Tasks put in order: what waits for what, whether it can ever be done, and what is most urgent.

The queue is a leftist heap of tuples `(rank, item, left, right)`; `rank` is the length of the
rightmost way down, which merging keeps short. It is never changed, only succeeded: the next task
costs the logarithm of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias, cast

from immutables import Map

from holdfast.i18n.message import msg
from holdfast.language.spelling import nearest
from holdfast.model.conversation import SubTask

Item: TypeAlias = tuple[int, int]
Heap: TypeAlias = tuple[int, Item, "Heap", "Heap"] | None

KEPT = ("completed", "skipped", "finished", "running")
_SHOWN = 5


def problem_with(tasks: Sequence[SubTask]) -> str | None:
    """Why these tasks cannot be run, in words that a model can mend them by."""
    if not tasks:
        return msg("there are no tasks at all")
    ids = [task.id for task in tasks]
    if not all(ids):
        return msg("a task has no id")
    if len(set(ids)) < len(ids):
        twice = sorted(one for one, count in Counter(ids).items() if count > 1)
        return msg("these ids are used more than once: {names}", names=listed(twice))
    return _unknown_dependency(tasks) or _circle(tasks)


def _unknown_dependency(tasks: Sequence[SubTask]) -> str | None:
    known = {task.id for task in tasks}
    for task in tasks:
        for one in task.dependencies:
            if one not in known:
                return _no_task(task.id, one, nearest(one, known))
    return None


def _no_task(task_id: str, dependency: str, meant: str | None) -> str:
    if meant is None:
        return msg(
            "task {id!r} depends on {other!r}, which is no task", id=task_id, other=dependency
        )
    return msg(
        "task {id!r} depends on {other!r}, which is no task (did you mean {meant!r}?)",
        id=task_id,
        other=dependency,
        meant=meant,
    )


def _circle(tasks: Sequence[SubTask]) -> str | None:
    waits = {task.id: len(set(task.dependencies)) for task in tasks}
    frees = dependents(tasks)
    free = [one for one, count in waits.items() if not count]
    while free:
        for one in frees.get(free.pop(), ()):
            waits[one] -= 1
            if not waits[one]:
                free.append(one)
    stuck = sorted(one for one, count in waits.items() if count)
    return msg("these tasks wait for each other: {names}", names=listed(stuck)) if stuck else None


def listed(names: Sequence[str]) -> str:
    shown, more = ", ".join(names[:_SHOWN]), len(names) - _SHOWN
    return msg("{names} and {n} more", names=shown, n=more) if more > 0 else shown


def dependents(tasks: Sequence[SubTask]) -> dict[str, list[str]]:
    """Who waits for each task, by their own ids."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        for one in dict.fromkeys(task.dependencies):
            found.setdefault(one, []).append(task.id)
    return found


def with_dependents(
    frees: Mapping[str, Sequence[str]] | Map[str, tuple[str, ...]], steps: Sequence[str]
) -> list[str]:
    """These steps and all that wait for one of them, directly or not."""
    found, left = dict.fromkeys(steps), list(steps)
    while left:
        for one in frees.get(left.pop(), ()):
            if one not in found:
                found[one] = None
                left.append(one)
    return list(found)


def step_ids(tasks: Sequence[SubTask]) -> dict[str, str]:
    """Steps have names of their own: a task's id may be any text."""
    return {task.id: f"t{number}" for number, task in enumerate(tasks, 1)}


def by_priority(tasks: Sequence[SubTask]) -> list[SubTask]:
    """What a turn that goes on has kept need not be scheduled again, and stands first."""
    return sorted(tasks, key=lambda task: (task.status not in KEPT, task.priority))


def rank(tasks: Mapping[str, SubTask], step_id: str) -> tuple[int, int]:
    """The most urgent first, then as they were listed."""
    return tasks[step_id].priority, int(step_id[1:])


def queued(tasks: Mapping[str, SubTask], step_ids: Sequence[str]) -> Heap:
    return heap_of(rank(tasks, one) for one in step_ids)


def heap_of(items: Iterable[Item]) -> Heap:
    return reduce(push, items, cast(Heap, None))


def push(heap: Heap, item: Item) -> Heap:
    return _merge(heap, (1, item, None, None))


def pop(heap: tuple[int, Item, Heap, Heap]) -> Heap:
    """The heap without its smallest item, which is `heap[1]`."""
    return _merge(heap[2], heap[3])


def heap_items(heap: Heap) -> list[Item]:
    """All of them, the smallest first."""
    found: list[Item] = []
    left = [heap]
    while left:
        one = left.pop()
        if one is not None:
            found.append(one[1])
            left += one[2:]
    return sorted(found)


def _merge(one: Heap, other: Heap) -> Heap:
    if one is None:
        return other
    if other is None:
        return one
    if other[1] < one[1]:
        one, other = other, one
    left, right = one[2], _merge(one[3], other)
    if _length(left) < _length(right):
        left, right = right, left
    return _length(right) + 1, one[1], left, right


def _length(heap: Heap) -> int:
    return 0 if heap is None else heap[0]
