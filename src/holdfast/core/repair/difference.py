"""The difference of two plans, as operations: what brings a run from one version to another.

Where a listener has another trigger, new ones must have been put before it: a chain of them, each
of which leads to the task that the next one waits for, and whose first has the old trigger. What
no operation changes is a reason to refuse.

The order of tasks and listeners is no difference, nor is how a trigger is spelled: `Done` of the
only task and `002.status == Done` wait for the same. What these leave as it is in the run's plan
means what the other plan means, under a digest of its own. Of a plan that was patched, the
operations found here make the very same plan, order and all: new tasks come in their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final

from holdfast.core.repair.operations import changed
from holdfast.core.repair.reading import operations_from_json, refuse
from holdfast.core.repair.records import SKIPPING, Change, gate
from holdfast.core.storing import record_to_json
from holdfast.forms.problems import Problems
from holdfast.i18n.message import msg
from holdfast.language.condition_nodes import (
    STATUSES,
    Compare,
    Literal,
    Misread,
    Read,
    Status,
    read_nodes,
)
from holdfast.language.strict import canonical_json
from holdfast.model.plan import (
    Action,
    CodeAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.values import Json, JsonObject

_UNCHANGEABLE: Final = msg("no operation changes this")
_IRREMOVABLE: Final = msg("no operation removes this")


def difference(before: Plan, after: Plan) -> tuple[JsonObject, ...]:
    """Operations that make `after` of `before`, none where they are the same, or PatchRejected with
    every reason why there are none. They may be more than one patch may have."""
    problems = Problems()
    _same_keys(_alone(before), _alone(after), problems)
    tasks = {one.task_id: one for one in after.tasks}
    for task in before.tasks:
        _same_task(task, tasks.pop(task.task_id, None), problems.at("tasks", task.task_id))
    new = {one.listener_id: one for one in after.listeners}
    kept = list(_kept(before, new, problems))
    chains = list(_chains(kept, _leading(tasks, new.values()), problems))
    operations = [*_arrivals(tasks, new, chains)]
    for old, one in kept:
        operations += _changes(old, one, problems.at("listeners", one.listener_id))
    refuse(problems)
    return tuple(operations)


def _alone(plan: Plan) -> JsonObject:
    return record_to_json(replace(plan, tasks=(), listeners=()))


def _same_keys(one: JsonObject, other: JsonObject, problems: Problems) -> None:
    """By the spelling that digests are made of: in Python 1 is True."""
    for key in dict.fromkeys((*one, *other)):
        if canonical_json(one.get(key)) != canonical_json(other.get(key)):
            problems.at(key).add(_UNCHANGEABLE)


def _same_task(before: Task, after: Task | None, problems: Problems) -> None:
    if after is None:
        problems.add(_IRREMOVABLE)
    else:
        _same_keys(record_to_json(before), record_to_json(after), problems)


def _kept(
    before: Plan, listeners: dict[str, Listener], problems: Problems
) -> Iterator[tuple[Listener, Listener]]:
    """Each listener as it was and as it is, taken out of `listeners`, where the new ones stay."""
    for old in before.listeners:
        one = listeners.pop(old.listener_id, None)
        if one is None:
            problems.at("listeners", old.listener_id).add(_IRREMOVABLE)
        else:
            yield old, one


def _leading(tasks: Mapping[str, Task], listeners: Iterable[Listener]) -> dict[str, Listener]:
    """By a new task, the first of the new listeners that makes it Done."""
    found: dict[str, Listener] = {}
    for one in listeners:
        match one.success_output:
            case Output(task_id=task_id, status=TaskStatus.DONE) if task_id in tasks:
                found.setdefault(task_id, one)
    return found


def _chains(
    kept: Iterable[tuple[Listener, Listener]], leading: dict[str, Listener], problems: Problems
) -> Iterator[list[Listener]]:
    """Of each listener that has another trigger, those that were put before it, and itself."""
    for old, one in kept:
        if _wait_alike(old, one):
            continue
        if chain := _chain(old, one, leading):
            yield chain
        else:
            _same_keys(_trigger(old), _trigger(one), problems.at("listeners", one.listener_id))


def _chain(old: Listener, one: Listener, leading: dict[str, Listener]) -> list[Listener]:
    chain = [one]
    while not _wait_alike(chain[0], old):
        before = leading.pop(_gate(chain[0]), None)
        # Before what fires again stands what fires again.
        if before is None or before.repeat < one.repeat:
            return []
        chain.insert(0, before)
    return chain


def _trigger(one: Listener) -> JsonObject:
    return {
        "trigger_task_id": list(one.trigger_task_id),
        "trigger_condition": one.trigger_condition,
    }


def _gate(one: Listener) -> str:
    """The task for which a listener waits before which another was put, if one was."""
    task_ids, condition = _awaited(one)
    first = "".join(task_ids[:1])
    return first if (task_ids, condition) == ((first,), gate(first)) else ""


def _wait_alike(one: Listener, other: Listener) -> bool:
    return _trigger(one) == _trigger(other) or _awaited(one) == _awaited(other)


def _awaited(one: Listener) -> tuple[tuple[str, ...], str]:
    """The trigger, however its author spells that its only task has a status."""
    task_ids, condition = one.trigger_task_id, one.trigger_condition.strip()
    if len(task_ids) == 1:
        status = _status_of(task_ids[0], condition)
        condition = f"{task_ids[0]}.status == {status}" if status else condition
    return task_ids, condition


def _status_of(task_id: str, condition: str) -> str:
    """The one status that a condition asks of the task, if that is all it asks."""
    try:
        node = read_nodes(condition)
    except Misread:
        return ""
    match node:
        case Status(name=name):
            return name
        case Compare(Read(path=path), "==", Status(name=name) | Literal(value=name)):
            asked = path == (task_id, "status") and name in STATUSES
            return str(name) if asked else ""
        case _:
            return ""


def _arrivals(
    tasks: Mapping[str, Task], new: Mapping[str, Listener], chains: Iterable[Sequence[Listener]]
) -> Iterator[JsonObject]:
    """What brings everything that is new, in the order of the tasks."""
    links = dict(_links(chains))
    waiting = {one.listener_id for one, _ in links.values()}
    alone = [one for one in new.values() if one.listener_id not in waiting]
    together: list[Task] = []
    for task in tasks.values():
        if task.task_id not in links:
            together.append(task)
            continue
        if together:
            yield _add(together, alone)
            together, alone = [], []
        one, following = links[task.task_id]
        waiting.remove(one.listener_id)
        there = next(each for each in following if each.listener_id not in waiting)
        yield _insert_before(there, task, one)
    if together or alone:
        yield _add(together, alone)


def _links(
    chains: Iterable[Sequence[Listener]],
) -> Iterator[tuple[str, tuple[Listener, Sequence[Listener]]]]:
    """By its task, each listener that is put before another, and those that come after it."""
    for chain in chains:
        for place, one in enumerate(chain[:-1], 1):
            assert one.success_output is not None
            yield one.success_output.task_id, (one, chain[place:])


def _add(tasks: Iterable[Task], listeners: Iterable[Listener]) -> JsonObject:
    parts = {"tasks": [*map(record_to_json, tasks)], "listeners": [*map(record_to_json, listeners)]}
    return {"op": "add", **{key: part for key, part in parts.items() if part}}


def _insert_before(there: Listener, task: Task, one: Listener) -> JsonObject:
    brought = {k: v for k, v in record_to_json(one).items() if k not in _trigger(one)}
    named = {"op": "insert_before", "listener_id": there.listener_id}
    return {**named, "task": record_to_json(task), "listener": brought}


def _changes(old: Listener, one: Listener, problems: Problems) -> Iterator[JsonObject]:
    """Operations that leave nothing different but the trigger, or problems."""
    old = replace(old, trigger_task_id=one.trigger_task_id, trigger_condition=one.trigger_condition)
    for find in (_skipped, _called, _concluded, _retried):
        for found in find(old, one):
            operation = {**found, "listener_id": one.listener_id}
            old = _applied(old, operation)
            yield operation
    _same_keys(record_to_json(old), record_to_json(one), problems)


def _applied(old: Listener, operation: JsonObject) -> Listener:
    (change,) = operations_from_json([operation])
    assert isinstance(change, Change)
    return changed(old, change, Problems())


def _skipped(old: Listener, one: Listener) -> Iterator[JsonObject]:
    if one.action == CodeAction(SKIPPING) and _end(old) != _end(one):
        yield {"op": "skip"}


def _end(one: Listener) -> tuple[Action, TaskStatus | None]:
    return one.action, one.success_output.status if one.success_output else None


def _called(old: Listener, one: Listener) -> Iterator[JsonObject]:
    match old.action, one.action:
        case ToolAction(tool=before), ToolAction(tool=tool, args=args) if tool != before:
            yield {"op": "use_tool", "tool": tool, "args": dict(args)}
        case (ToolAction(args=before), ToolAction(args=args)) | (
            PlanAction(values=before),
            PlanAction(values=args),
        ):
            given = {name: one for name, one in args.items() if not _has(before, name, one)}
            dropped = [name for name in before if name not in args]
            parts = {"set": given, "drop": dropped}
            if given or dropped:
                yield {"op": "set_args", **{key: part for key, part in parts.items() if part}}


def _has(args: JsonObject, name: str, value: Json) -> bool:
    return name in args and canonical_json(args[name]) == canonical_json(value)


def _concluded(old: Listener, one: Listener) -> Iterator[JsonObject]:
    match old.success_output, one.success_output:
        case Output(context=before), Output(context=context):
            if canonical_json(dict(before)) != canonical_json(dict(context)):
                yield {"op": "set_output", "context": dict(context)}


def _retried(old: Listener, one: Listener) -> Iterator[JsonObject]:
    before, after = asdict(old.retry), asdict(one.retry)
    retry = {key: number for key, number in after.items() if number != before[key]}
    found: JsonObject = {"retry": retry} if retry else {}
    if old.timeout != one.timeout:
        found = {**found, "timeout": one.timeout}
    if found:
        yield {"op": "set_retry", **found}
