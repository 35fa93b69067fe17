"""Drafts: what a rule would have changed, before it is checked and rehearsed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import count
from typing import Final

from holdfast.forms.schemas import dump_form
from holdfast.model.form import Field, Form
from holdfast.model.plan import Plan, TaskStatus
from holdfast.model.record import record
from holdfast.model.values import Json, JsonObject


class Rank(IntEnum):
    """How sure a rule may be, the surest first: what the plan itself shows to be wrong; the same
    value in another form or under another name; another value that the run has; a call more; what
    only a person knows; and whether a person has seen to it."""

    EVIDENT = 0
    SAME_VALUE = 1
    OTHER_VALUE = 2
    CALL = 3
    ASK = 4
    CONFIRM = 5


@record
class Draft:
    """`named`: the error itself says as much, so that nobody need be asked what it means.
    `guessed`: something else might be meant as well."""

    rule: str
    rank: Rank
    operations: tuple[JsonObject, ...]
    reason: str
    named: bool = False
    guessed: bool = False


DONE: Final = TaskStatus.DONE.value


def set_args(
    listener_id: str, values: Mapping[str, Json], drop: Iterable[str] = ()
) -> tuple[JsonObject, ...]:
    """No operation where nothing changes."""
    parts = {"set": dict(values), "drop": list(drop)}
    given = {key: part for key, part in parts.items() if part}
    return ({"op": "set_args", "listener_id": listener_id, **given},) if given else ()


def set_output(listener_id: str, context: JsonObject) -> tuple[JsonObject, ...]:
    return ({"op": "set_output", "listener_id": listener_id, "context": dict(context)},)


def ask_first(listener_id: str, fields: Iterable[Field]) -> tuple[JsonObject, ...]:
    """No operation where nothing is asked."""
    asked = tuple(fields)
    shapes = dump_form(Form(asked))
    listed = [_plain({"name": one.name, **shapes[one.name]}) for one in asked]
    return ({"op": "ask_first", "listener_id": listener_id, "fields": listed},) if listed else ()


def confirm_first(listener_id: str, title: str, message: str) -> tuple[JsonObject, ...]:
    choice = _plain({"title": title, "message": message})
    return ({"op": "ask_first", "listener_id": listener_id, "choice": choice},)


def _plain(value: JsonObject) -> Json:
    """Without the ids of messages: operations are plain JSON. A message that has no parameters is
    known again by its words."""
    return json.loads(json.dumps(value))


def insert_before(
    listener_id: str, new_id: str, name: str, tool: str, args: JsonObject, context: JsonObject
) -> tuple[JsonObject, ...]:
    """Its task is called as it is; `context` is what of the result others read."""
    listener: dict[str, Json] = {"listener_id": new_id, "listener_type": "tool", "tool": tool}
    listener["args"] = dict(args)
    if context:
        listener["success_output"] = {"task_id": new_id, "status": DONE, "context": dict(context)}
    task = {"task_id": new_id, "name": name}
    named = {"op": "insert_before", "listener_id": listener_id}
    return ({**named, "task": task, "listener": listener},)


def free_id(plan: Plan) -> str:
    """An id that neither a task nor a listener of the plan has."""
    taken = {one.task_id for one in plan.tasks} | {one.listener_id for one in plan.listeners}
    return next(one for number in count(1) if (one := f"R{number}") not in taken)
