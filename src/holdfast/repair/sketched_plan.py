"""The plan that a sketch makes.

Each step is a task and a listener of the step's id. Its output keeps what later steps and checks
read: fields by their names, or the whole result where one reads all of it. A listener without
steps before it fires with the main task; when all are done that no other waits for, `finish` says
that the main task is.

What a tool requires and nobody gave is an input of the plan, asked at the start. Every step that
does more than look asks for approval, whatever its tool's own rule: nobody but a model has thought
about it so far. An author who adopts the plan may take that off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from holdfast.core.interactions.calls import missing_arguments
from holdfast.forms.from_tools import form_from_schema
from holdfast.language.templates import literally
from holdfast.model.form import Field, Form
from holdfast.model.plan import (
    Check,
    CodeAction,
    Listener,
    Output,
    Plan,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.model.record import record
from holdfast.model.values import Json
from holdfast.repair.sketch import (
    FINISH,
    MAIN,
    REFERENCE,
    Reference,
    Sketch,
    SketchedStep,
    Tools,
    reference,
    references,
)

_SUCCESS: Final = "result = {'success': True}"
_WHOLE: Final = "result"
_NOT_IN_A_NAME: Final = re.compile(r"[^\w-]")


@record
class _Lack:
    """An argument that a person gives: the step and tool that need it, and the form's field."""

    step: str
    argument: str
    field: Field


def plan_of(sketch: Sketch, tools: Tools, plan_id: str) -> Plan:
    """The plan of a sketch that `read_sketch` accepted with the same tools."""
    wholes = frozenset(_read_as_a_whole(sketch))
    lacks = tuple(_named(_lacks(sketch, tools)))
    filled = partial(_template, wholes=wholes)
    return Plan(
        plan_id=plan_id,
        name=sketch.goal,
        main_task_id=MAIN,
        tasks=(Task(MAIN, sketch.goal, sketch.goal), *(Task(s.id, s.tool) for s in sketch.steps)),
        listeners=(
            *(_listener(one, sketch, tools, wholes, lacks) for one in sketch.steps),
            _finish(sketch),
        ),
        inputs=Form(tuple(one.field for one in lacks)),
        verify=tuple(Check(one.tool, filled(one.args), one.expect) for one in sketch.check),
    )


def _listener(
    step: SketchedStep,
    sketch: Sketch,
    tools: Tools,
    wholes: frozenset[str],
    lacks: tuple[_Lack, ...],
) -> Listener:
    asked = {
        one.argument: f"{{{MAIN}.context.{one.field.name}}}" for one in lacks if one.step == step.id
    }
    args = {**_template(dict(step.args), wholes), **asked}
    return Listener(
        listener_id=step.id,
        trigger_task_id=step.after or (MAIN,),
        trigger_condition=_all_done(step.after) or f"{MAIN}.status == {TaskStatus.RUNNING.value}",
        action=ToolAction(step.tool, args),
        success_output=Output(step.id, TaskStatus.DONE, _kept(step.id, sketch, wholes)),
        approval=not tools[step.tool].read_only,
    )


def _finish(sketch: Sketch) -> Listener:
    waited_for = {one for step in sketch.steps for one in step.after}
    last = tuple(one.id for one in sketch.steps if one.id not in waited_for)
    return Listener(
        listener_id=FINISH,
        trigger_task_id=last,
        trigger_condition=_all_done(last),
        action=CodeAction(_SUCCESS),
        success_output=Output(MAIN, TaskStatus.DONE),
    )


def _all_done(steps: tuple[str, ...]) -> str:
    return " && ".join(f"{one}.status == {TaskStatus.DONE.value}" for one in steps)


def _all_references(sketch: Sketch) -> Iterator[Reference]:
    for args in (*(one.args for one in sketch.steps), *(one.args for one in sketch.check)):
        yield from references(args)


def _read_as_a_whole(sketch: Sketch) -> Iterator[str]:
    """Steps whose whole result is read; a field `result` would stand in its place."""
    for one in _all_references(sketch):
        if one.path[:1] in ((), (_WHOLE,)):
            yield one.step


def _kept(step: str, sketch: Sketch, wholes: frozenset[str]) -> dict[str, str]:
    """The context of a step's task: what others read of its result."""
    if step in wholes:
        return {_WHOLE: "{{result}}"}
    read = (one.path[0] for one in _all_references(sketch) if one.step == step)
    return {name: f"{{{{result.{name}}}}}" for name in dict.fromkeys(read)}


def _template(value: Json, wholes: frozenset[str]) -> Json:
    """The value with references to steps as references to their tasks, and all else as it is."""
    match value:
        case str():
            return _text(value, wholes)
        case dict():
            return {name: _template(one, wholes) for name, one in value.items()}
        case list():
            return [_template(one, wholes) for one in value]
        case _:
            return value


def _text(text: str, wholes: frozenset[str]) -> str:
    if whole := REFERENCE.fullmatch(text.strip()):
        return _place(reference(whole), wholes)
    made, position = "", 0
    for found in REFERENCE.finditer(text):
        made += _before(text[position : found.start()]) + _place(reference(found), wholes)
        position = found.end()
    return made + literally(text[position:])


def _before(text: str) -> str:
    """Literal text in front of a place: a backslash at its end is none of the place's."""
    return literally(text + "{").removesuffix("\\{")


def _place(one: Reference, wholes: frozenset[str]) -> str:
    path = (_WHOLE, *one.path) if one.step in wholes else one.path
    return f"{{{'.'.join((one.step, 'context', *path))}}}"


def _lacks(sketch: Sketch, tools: Tools) -> Iterator[_Lack]:
    for step in sketch.steps:
        facts = tools[step.tool]
        for name in missing_arguments(facts.parameters, step.args):
            [field] = form_from_schema(facts.parameters, [name], facts.fields).fields
            asked = replace(field, label=field.label or name, required=True, visible_if=None)
            yield _Lack(step.id, name, asked)


def _named(lacks: Iterator[_Lack]) -> Iterator[_Lack]:
    """Each with a name of its own in the form: the argument's, where only one step lacks it."""
    found = list(lacks)
    counts: dict[str, int] = {}
    for one in found:
        counts[one.argument] = counts.get(one.argument, 0) + 1
    taken: set[str] = set()
    for one in found:
        wanted = one.argument if counts[one.argument] == 1 else f"{one.step}_{one.argument}"
        name = _NOT_IN_A_NAME.sub("_", wanted)
        while name in taken:
            name += "_"
        taken.add(name)
        yield replace(one, field=replace(one.field, name=name))
