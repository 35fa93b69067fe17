"""What a patch changes: the plan before and after, listener by listener.

Levels, provenance and forbidden touches are read from the two plans and not from the operations, so
that no way of writing an operation gets past them. The operations only say which of them brought
about what, for messages that name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.core.repair.records import (
    Add,
    InsertBefore,
    Insertion,
    Operation,
    Skip,
    added,
    touched,
)
from holdfast.i18n.message import msg
from holdfast.model.plan import HumanAction, Listener, Plan, Task
from holdfast.model.record import record
from holdfast.model.values import JsonObject
from holdfast.repair.parts import outputs_of


@record
class Changed:
    """A listener before and after; `before` is None for a new one. `ahead_of` is the one that it
    was put before."""

    before: Listener | None
    after: Listener
    ahead_of: Listener | None = None

    @property
    def id(self) -> str:
        return self.after.listener_id


@record
class Changes:
    """`skipped` are listeners whose work is left out."""

    before: Plan
    after: Plan
    listeners: tuple[Changed, ...]
    tasks: tuple[Task, ...]
    skipped: frozenset[str]

    @property
    def new_tasks(self) -> frozenset[str]:
        return frozenset(one.task_id for one in self.tasks)

    @property
    def answered(self) -> frozenset[str]:
        """New tasks that have what a person answers."""
        asking = (one for one in self.listeners if isinstance(one.after.action, HumanAction))
        new = (one.after for one in asking if one.before is None)
        return self.new_tasks & {output.task_id for one in new for output in outputs_of(one)}


def changes_of(before: Plan, after: Plan, operations: Sequence[Operation]) -> Changes:
    known = {one.listener_id: one for one in before.listeners}
    tasks = {one.task_id for one in before.tasks}
    ahead_of = dict(_ahead_of(operations))
    listeners = (
        Changed(known.get(one.listener_id), one, known.get(ahead_of.get(one.listener_id, "")))
        for one in after.listeners
    )
    return Changes(
        before,
        after,
        tuple(one for one in listeners if one.before != one.after),
        tuple(one for one in after.tasks if one.task_id not in tasks),
        frozenset(one.listener_id for one in operations if isinstance(one, Skip)),
    )


def _ahead_of(operations: Sequence[Operation]) -> Iterator[tuple[str, str]]:
    for one in operations:
        if isinstance(one, Insertion):
            (new,) = added([one])
            yield new, one.listener_id


def places_of(raw: Sequence[JsonObject], operations: Mapping[int, Operation]) -> Mapping[str, str]:
    """By the id of each listener and task that an operation concerns, the last such operation, as
    its proposer finds it again: they go by their places in the patch. What comes before a listener
    hardly concerns it itself."""
    found: dict[str, str] = {}
    ordered = sorted(operations.items(), key=lambda one: not isinstance(one[1], Insertion))
    for index, one in ordered:
        ids = [*touched([one]), *added([one]), *_new_tasks(one)]
        name = msg("operations[{index}] ({op})", index=index, op=str(raw[index]["op"]))
        found |= dict.fromkeys(ids, name)
    return found


def _new_tasks(operation: Operation) -> Iterator[str]:
    match operation:
        case InsertBefore(task=task):
            yield task.task_id
        case Add(tasks=tasks):
            yield from (one.task_id for one in tasks)
        case _:
            pass
