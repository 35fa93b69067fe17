"""Operations of a patch: what they make of a plan.

    set_args, set_output, set_retry, use_tool, skip     change a listener as it stands
    insert_before, ask_first                            put a new listener and its task before one
    add                                                 brings tasks and listeners

A patched plan is made anew from these operations wherever the run is replayed, so what each of them
makes of a plan may never change. A new listener stands right before the one that waits for it;
everything else that is new stands at the end.

`records` has the operations, `reading` reads them, `difference` finds those between two plans.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, assert_never

from holdfast.core.repair.reading import operations_from_json as operations_from_json
from holdfast.core.repair.reading import read_operations as read_operations
from holdfast.core.repair.reading import refuse
from holdfast.core.repair.records import (
    SKIPPING,
    Add,
    AskFirst,
    Change,
    Insertion,
    SetArgs,
    SetOutput,
    SetRetry,
    Skip,
    UseTool,
    gate,
)
from holdfast.core.repair.records import Operation as Operation
from holdfast.core.repair.records import added as added
from holdfast.core.repair.records import retriggered as retriggered
from holdfast.core.repair.records import touched as touched
from holdfast.errors import FormProblem
from holdfast.forms.problems import Problems
from holdfast.i18n.message import msg
from holdfast.language.spelling import nearest
from holdfast.model.plan import (
    Action,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    PlanAction,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.values import JsonObject

_task_id: Final = attrgetter("task_id")
_listener_id: Final = attrgetter("listener_id")


def patched(plan: Plan, operations: Sequence[Operation]) -> Plan:
    """The plan that they make, one after the other, or PatchRejected with every obstacle."""
    patching, problems = _carried_out(plan, dict(enumerate(operations)))
    refuse(problems)
    return patching.made()


def obstacles(plan: Plan, operations: Mapping[int, Operation]) -> tuple[FormProblem, ...]:
    """What keeps them from being carried out; they go by their places in the patch, as does the
    second part of an obstacle's path."""
    _, problems = _carried_out(plan, operations)
    return tuple(problems.found)


def _carried_out(plan: Plan, operations: Mapping[int, Operation]) -> tuple[_Patching, Problems]:
    patching, problems = _Patching(plan), Problems(path=("operations",))
    for place, operation in operations.items():
        patching.carry_out(operation, problems.at(place))
    return patching, problems


def frozen_problems(
    operations: Mapping[int, Operation], untouchable: Container[str]
) -> tuple[str, ...]:
    """The operations that would change a listener which has run already; they go by their places
    in the patch."""
    problems = Problems(path=("operations",))
    for place, one in operations.items():
        if not isinstance(one, Add) and one.listener_id in untouchable:
            ran = msg("{id} has run, and the past of a run stays as it is", id=one.listener_id)
            problems.at(place, "listener_id").add(ran)
    return tuple(map(str, problems.found))


class _Patching:
    """A plan in the making. It may be large, and be patched while other runs wait: whatever is done
    for each of its listeners is done by the interpreter's own loops."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tasks = dict(zip(map(_task_id, plan.tasks), plan.tasks, strict=True))
        of = map(_listener_id, plan.listeners)
        self.listeners = dict(zip(of, plan.listeners, strict=True))
        self.order = list(self.listeners)

    def made(self) -> Plan:
        listeners = tuple(map(self.listeners.__getitem__, self.order))
        return replace(self.plan, tasks=tuple(self.tasks.values()), listeners=listeners)

    def carry_out(self, operation: Operation, problems: Problems) -> None:
        if isinstance(operation, Add):
            self._add(operation, problems)
        elif operation.listener_id not in self.listeners:
            absent = _absent(operation.listener_id, self.order)
            problems.at("listener_id").add(absent)
        elif isinstance(operation, Insertion):
            self._insert(operation, problems)
        else:
            old = self.listeners[operation.listener_id]
            self.listeners[operation.listener_id] = changed(old, operation, problems)

    def _add(self, operation: Add, problems: Problems) -> None:
        for index, task in enumerate(operation.tasks):
            self._new_task(task, problems.at("tasks", index, "task_id"))
        for index, one in enumerate(operation.listeners):
            here = problems.at("listeners", index, "listener_id")
            self._new_listener(one, len(self.order), here)

    def _insert(self, operation: Insertion, problems: Problems) -> None:
        old = self.listeners[operation.listener_id]
        place = self.order.index(old.listener_id)
        if isinstance(operation, AskFirst):
            task, new = _question(operation, old)
            self._new_task(task, problems.at("task_id"))
            self._new_listener(new, place, problems.at("task_id"))
            old = _with_answers(operation, old, problems)
        else:
            task, new = operation.task, _before(old, operation.listener)
            self._new_task(task, problems.at("task", "task_id"))
            self._new_listener(new, place, problems.at("listener", "listener_id"))
        self.listeners[old.listener_id] = replace(
            old, trigger_task_id=(task.task_id,), trigger_condition=gate(task.task_id)
        )

    def _new_task(self, task: Task, problems: Problems) -> None:
        if task.task_id in self.tasks:
            problems.add(_taken("task_id", task.task_id))
        self.tasks[task.task_id] = task

    def _new_listener(self, listener: Listener, place: int, problems: Problems) -> None:
        if listener.listener_id in self.listeners:
            problems.add(_taken("listener_id", listener.listener_id))
        self.listeners[listener.listener_id] = listener
        self.order.insert(place, listener.listener_id)


def _absent(listener_id: str, known: Sequence[str]) -> str:
    kind, meant = msg("listener"), nearest(listener_id, known)
    if meant is None:
        return msg("there is no {kind} {name!r}", kind=kind, name=listener_id)
    return msg(
        "there is no {kind} {name!r}; did you mean {meant!r}?",
        kind=kind,
        name=listener_id,
        meant=meant,
    )


def _taken(key: str, taken: str) -> str:
    return msg("the {key} {id} is taken", key=key, id=taken)


def _before(old: Listener, new: Listener) -> Listener:
    """What fires again would wait in vain for something that does not."""
    return replace(
        new,
        trigger_task_id=old.trigger_task_id,
        trigger_condition=old.trigger_condition,
        repeat=old.repeat or new.repeat,
    )


def _question(operation: AskFirst, old: Listener) -> tuple[Task, Listener]:
    """A title with placeholders in it names no task: nobody would fill them in there."""
    task_id, title, form = operation.task_id, operation.asking.title, operation.form
    answers = {one.name: f"{{{{result.{one.name}}}}}" for one in form.fields}
    asks = Listener(
        task_id,
        old.trigger_task_id,
        old.trigger_condition,
        HumanAction(form, operation.asking),
        Output(task_id, TaskStatus.DONE, answers),
        repeat=old.repeat,
        priority=old.priority,
        max_firings=old.max_firings,
    )
    return Task(task_id, "" if "{" in title else title), asks


def _with_answers(operation: AskFirst, old: Listener, problems: Problems) -> Listener:
    names = [one.name for one in operation.form.fields]
    if not names:
        return old
    answers = {name: f"{{{operation.task_id}.context.{name}}}" for name in names}
    return changed(old, SetArgs(old.listener_id, answers), problems)


def changed(one: Listener, change: Change, problems: Problems) -> Listener:
    """The listener as the operation leaves it, or as it was where that cannot be."""
    match change:
        case SetArgs(given=given, dropped=dropped):
            return _with_args(one, given, dropped, problems)
        case SetOutput(context=context):
            if one.success_output is None:
                problems.add(msg("{id} has no success_output that takes it", id=one.listener_id))
                return one
            return replace(one, success_output=replace(one.success_output, context=context))
        case SetRetry(retry=retry):
            timeout = change.timeout if change.timed else one.timeout
            return replace(one, retry=replace(one.retry, **retry), timeout=timeout)
        case UseTool(tool=tool, args=args):
            if not isinstance(one.action, ToolAction):
                problems.add(msg("{id} calls no tool: it is of type {kind}", **_type_of(one)))
                return one
            return replace(one, action=replace(one.action, tool=tool, args=args))
        case Skip():
            output = one.success_output
            skipped = output and Output(output.task_id, TaskStatus.SKIPPED)
            nothing = CodeAction(SKIPPING)
            return replace(one, action=nothing, success_output=skipped, approval=False)
        case _:
            assert_never(change)


def _with_args(
    one: Listener, given: JsonObject, dropped: Sequence[str], problems: Problems
) -> Listener:
    args = _args_of(one.action)
    if args is None:
        problems.add(msg("{id} takes no arguments: it is of type {kind}", **_type_of(one)))
        return one
    for index, name in enumerate(dropped):
        if name not in args:
            absent = msg("{id} has no argument {name}", id=one.listener_id, name=name)
            problems.at("drop", index).add(absent)
    kept = {name: value for name, value in args.items() if name not in dropped}
    return replace(one, action=_given(one.action, {**kept, **given}))


def _args_of(action: Action) -> JsonObject | None:
    """What a tool or a plan is given; None where nothing is."""
    match action:
        case ToolAction(args=args) | PlanAction(values=args):
            return args
        case _:
            return None


def _given(action: Action, args: JsonObject) -> Action:
    if isinstance(action, PlanAction):
        return replace(action, values=args)
    return replace(action, args=args) if isinstance(action, ToolAction) else action


def _type_of(one: Listener) -> Mapping[str, str]:
    return {"id": one.listener_id, "kind": one.listener_type}
