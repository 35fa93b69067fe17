"""The operations of which a patch consists, and which listeners they concern.

Operations name ids, never positions. Some change a listener as it stands, some put a new one before
it, and one adds what is new. A listener before which another is put fires when that one's task is
Done; the new one has the trigger that was the old one's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from holdfast.model.form import Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import Listener, Task
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject


@record
class SetArgs:
    """Arguments of a tool, or values that a plan is given."""

    listener_id: str
    given: JsonObject = field(default_factory=dict)
    dropped: tuple[str, ...] = ()


@record
class SetOutput:
    """What the listener's task gets for a context when it succeeds."""

    listener_id: str
    context: JsonObject


@record
class SetRetry:
    """`retry` has the attributes of the policy that change; the timeout stays unless `timed`."""

    listener_id: str
    retry: Mapping[str, Json] = field(default_factory=dict)
    timeout: float | None = None
    timed: bool = False


@record
class UseTool:
    """Another tool is called; how people are asked about the call stays."""

    listener_id: str
    tool: str
    args: JsonObject


@record
class InsertBefore:
    """`listener` has no trigger of its own, and its success makes `task` Done."""

    listener_id: str
    task: Task
    listener: Listener


@record
class Add:
    """Stands behind everything that is there."""

    tasks: tuple[Task, ...] = ()
    listeners: tuple[Listener, ...] = ()


@record
class AskFirst:
    """A person is asked before the listener fires: for the values of `form`, which become arguments
    of the same name, or, where it is empty, whether to go on at all."""

    listener_id: str
    task_id: str
    form: Form = Form()
    asking: Asking = Asking()


@record
class Skip:
    """Nothing is done, and the listener's task is Skipped."""

    listener_id: str


Change: TypeAlias = SetArgs | SetOutput | SetRetry | UseTool | Skip
"""Changes a listener and leaves its trigger alone."""

Insertion: TypeAlias = InsertBefore | AskFirst
"""Puts a new listener before one."""

Operation: TypeAlias = Change | Insertion | Add

SKIPPING: Final = "result = {}"
"""The snippet of a listener that is skipped."""


def gate(task_id: str) -> str:
    """The condition under which a listener fires before which another was put."""
    return f"{task_id}.status == Done"


def touched(operations: Sequence[Operation]) -> frozenset[str]:
    """The listeners of the plan that are changed; not those that the operations bring along."""
    named = {one.listener_id for one in operations if not isinstance(one, Add)}
    return frozenset(named.difference(added(operations)))


def retriggered(operations: Sequence[Operation]) -> frozenset[str]:
    """The listeners of the plan that wait for another trigger than before."""
    return touched([one for one in operations if isinstance(one, Insertion | Add)])


def added(operations: Sequence[Operation]) -> tuple[str, ...]:
    """The ids of the new listeners, in the order in which they come."""
    return tuple(listener_id for one in operations for listener_id in _brought(one))


def _brought(operation: Operation) -> Iterator[str]:
    match operation:
        case InsertBefore(listener=listener):
            yield listener.listener_id
        case AskFirst(task_id=task_id):
            yield task_id
        case Add(listeners=listeners):
            yield from (one.listener_id for one in listeners)
