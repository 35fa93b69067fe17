"""Parts of listeners, as patches are judged by them; a listener that is not there has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from holdfast.language.facts import Path
from holdfast.model.form import Form
from holdfast.model.interaction import Asking
from holdfast.model.plan import (
    AgentAction,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    PlanAction,
    ToolAction,
)
from holdfast.model.values import Json, JsonObject
from holdfast.repair.leaves import paths_in

Writes: TypeAlias = tuple[str, str]
"""A task and the name of what is written of it: a part of its context, or `STATUS`."""

STATUS: Final = "\0status"


def outputs_of(listener: Listener | None) -> tuple[Output, ...]:
    outputs = (listener.success_output, listener.failure_output) if listener else ()
    return tuple(one for one in outputs if one is not None)


def written(listener: Listener | None) -> frozenset[Writes]:
    """What of which task the outputs of a listener set."""
    outputs = outputs_of(listener)
    names = ((one.task_id, name) for one in outputs for name in one.context)
    return frozenset([*names, *((one.task_id, f"{STATUS}{one.status}") for one in outputs)])


def askings_of(listener: Listener | None) -> Mapping[str, Asking]:
    """How a listener asks people, by what for."""
    match listener.action if listener else None:
        case ToolAction(missing=missing, consent=consent):
            return {"missing": missing, "consent": consent}
        case HumanAction(asking=asking):
            return {"asking": asking}
        case _:
            return {}


def form_of(listener: Listener | None) -> Form:
    """The fields that a listener's author has written."""
    match listener.action if listener else None:
        case ToolAction(fields=form) | HumanAction(form=form):
            return form
        case _:
            return Form()


def data_of(listener: Listener | None) -> JsonObject:
    """What a listener hands to a tool or a plan."""
    match listener.action if listener else None:
        case ToolAction(args=given) | PlanAction(values=given):
            return given
        case _:
            return {}


def tools_called(listener: Listener | None) -> tuple[str, ...]:
    """The tools that it calls, or whose snippet may."""
    match listener.action if listener else None:
        case ToolAction(tool=tool):
            return (tool,)
        case CodeAction(functions=functions):
            return functions
        case _:
            return ()


def read_by(listener: Listener | None) -> frozenset[Path]:
    """Everything that its templates read."""
    words: list[Json] = [data_of(listener), *(one.context for one in outputs_of(listener))]
    match listener.action if listener else None:
        case AgentAction(action_prompt=prompt):
            words.append(prompt)
        case HumanAction(asking=asking):
            words += [asking.title, asking.message, asking.details]
    return frozenset(path for one in words for path in paths_in(one))
