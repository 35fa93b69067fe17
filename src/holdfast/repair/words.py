"""Operations in plain words, for people who are to consent to them.

Names and values may come from a model: they are shown with nothing hidden in them, and cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never

from holdfast.core.repair.operations import operations_from_json, patched
from holdfast.core.repair.records import (
    Add,
    AskFirst,
    InsertBefore,
    Operation,
    SetArgs,
    SetOutput,
    SetRetry,
    Skip,
    UseTool,
)
from holdfast.i18n.message import joined, msg
from holdfast.language.conditions import equal
from holdfast.language.display import clip
from holdfast.language.strict import canonical_json
from holdfast.model.plan import (
    Action,
    AgentAction,
    CodeAction,
    HumanAction,
    Listener,
    Plan,
    PlanAction,
    ToolAction,
    WaitAction,
)
from holdfast.model.values import Json, JsonObject
from holdfast.repair.parts import data_of

_LONGEST: Final = 200
_SEPARATOR: Final = "; "


def described(plan: Plan, operations: Sequence[JsonObject]) -> tuple[str, ...]:
    """What each of them changes; all of them can be carried out."""
    told = []
    for one in operations_from_json(operations):
        before, plan = plan, patched(plan, [one])
        told.append(joined(_SEPARATOR, _told(one, before, plan)))
    return tuple(told)


def _told(operation: Operation, before: Plan, after: Plan) -> Iterator[str]:
    match operation:
        case SetArgs(listener_id=id_):
            yield from _arguments(id_, _data(before, id_), _data(after, id_))
        case SetOutput(listener_id=id_):
            yield from _outputs(_listener(before, id_), _listener(after, id_))
        case SetRetry():
            yield from _delays(operation)
        case UseTool(listener_id=id_):
            work, instead = _work(_action(after, id_)), _work(_action(before, id_))
            yield msg("{id} {work}, and not: {instead}", id=id_, work=work, instead=instead)
        case InsertBefore(listener_id=id_, listener=listener):
            yield msg("before {id} comes {new}: {work}", id=id_, **_new(listener))
        case AskFirst(listener_id=id_, form=form):
            if names := ", ".join(one.name for one in form.fields):
                yield msg("before {id} a person is asked for {names}", id=id_, names=_shown(names))
            else:
                title = _shown(operation.asking.title)
                yield msg("before {id} a person is asked to confirm: {title}", id=id_, title=title)
        case Add(tasks=tasks, listeners=listeners):
            for task in tasks:
                yield msg("task {id} is new: {name}", id=task.task_id, name=_shown(task.name))
            for one in listeners:
                when = {
                    "tasks": ", ".join(one.trigger_task_id),
                    "when": _shown(one.trigger_condition),
                }
                yield msg("{new} is new, on {tasks} when {when}: {work}", **when, **_new(one))
        case Skip(listener_id=id_):
            work = _work(_action(before, id_))
            yield msg("{id} is skipped, so this is not done: {work}", id=id_, work=work)
        case _:
            assert_never(operation)


def _arguments(id_: str, old: JsonObject, new: JsonObject) -> Iterator[str]:
    gone = {name: value for name, value in old.items() if name not in new}
    for name, value in new.items():
        to = {"id": id_, "name": _shown(name), "value": _spelled(value)}
        if name in old:
            if not equal(old[name], value):
                before = _spelled(old[name])
                yield msg("{id} passes {name} = {value} instead of {before}", **to, before=before)
        elif (former := _same(gone, value)) is not None:
            del gone[former]
            was = _shown(former)
            yield msg("{id} passes {name} = {value} instead of {was} = {value}", **to, was=was)
        else:
            yield msg("{id} passes {name} = {value} as well", **to)
    for name, value in gone.items():
        of = {"id": id_, "name": _shown(name), "value": _spelled(value)}
        yield msg("{id} does not pass {name} = {value} any more", **of)


def _same(values: Mapping[str, Json], value: Json) -> str | None:
    return next((name for name, one in values.items() if equal(one, value)), None)


def _outputs(before: Listener, after: Listener) -> Iterator[str]:
    assert before.success_output is not None
    assert after.success_output is not None
    old, new = before.success_output.context, after.success_output.context
    where = {"id": after.listener_id, "task": after.success_output.task_id}
    for name, value in new.items():
        to = {**where, "name": _shown(name), "value": _spelled(value)}
        if name not in old:
            yield msg("{id} sets {name} of task {task} to {value} as well", **to)
        elif not equal(old[name], value):
            was = _spelled(old[name])
            yield msg("{id} sets {name} of task {task} to {value} instead of {was}", **to, was=was)
    for name in (one for one in old if one not in new):
        yield msg("{id} does not set {name} of task {task} any more", **where, name=_shown(name))


def _delays(operation: SetRetry) -> Iterator[str]:
    id_ = operation.listener_id
    for key, value in operation.retry.items():
        yield msg("{id} is retried with {key} = {value}", id=id_, key=key, value=_spelled(value))
    if operation.timed and operation.timeout is None:
        yield msg("{id} has no time limit of its own any more", id=id_)
    elif operation.timed:
        yield msg("{id} has {n:g} s each time", id=id_, n=operation.timeout)


def _new(listener: Listener) -> dict[str, str]:
    return {"new": listener.listener_id, "work": _work(listener.action)}


def _work(action: Action) -> str:
    """What a listener does."""
    match action:
        case ToolAction(tool=tool, args=args):
            return msg("calls {tool} with {args}", tool=_shown(tool), args=_spelled(dict(args)))
        case CodeAction(code_snippet=snippet):
            return msg("runs the snippet {code}", code=_shown(snippet))
        case HumanAction(form=form, asking=asking):
            asked = ", ".join(one.name for one in form.fields) or asking.title
            return msg("asks a person: {what}", what=_shown(asked))
        case PlanAction(plan_id=plan_id, values=values):
            given = _spelled(dict(values))
            return msg("runs the plan {plan} with {values}", plan=_shown(plan_id), values=given)
        case AgentAction(agent_id=agent_id, action_prompt=prompt):
            return msg(
                "asks the agent {agent}: {prompt}", agent=_shown(agent_id), prompt=_shown(prompt)
            )
        case WaitAction(until=until, after=after, clock=clock):
            return msg("waits for {moment}", moment=_shown(until or after or clock))
        case _:
            assert_never(action)


def _listener(plan: Plan, listener_id: str) -> Listener:
    return next(one for one in plan.listeners if one.listener_id == listener_id)


def _action(plan: Plan, listener_id: str) -> Action:
    return _listener(plan, listener_id).action


def _data(plan: Plan, listener_id: str) -> JsonObject:
    return data_of(_listener(plan, listener_id))


def _spelled(value: Json) -> str:
    return _shown(canonical_json(value))


def _shown(text: str) -> str:
    return clip(text, _LONGEST)
