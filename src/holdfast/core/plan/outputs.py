"""What a listener's result means for the plan's tasks.

Pure, and the default of `TaskDriver.determine_task_updates`. A snippet's own
`target_task`, `target_status` and `context` override the listener's output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.plan.compiled import INPUTS, CompiledListener
from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.errors import TemplateError
from holdfast.i18n.message import msg
from holdfast.model.events import TaskUpdate
from holdfast.model.plan import TaskStatus
from holdfast.model.values import Json


def succeeded(result: Json) -> bool:
    """A result that says `success: false` is a failure, whoever returned it."""
    if type(result) is not dict and not isinstance(result, Mapping):
        return True
    return result.get("success") is not False


def updates_for(
    listener: CompiledListener, success: bool, result: Json, facts: PlanState | TaskFacts
) -> tuple[TaskUpdate, ...]:
    """The updates of a finished listener; TemplateError when its output does not render."""
    named = TaskFacts(facts.tasks, {"result": result})
    return tuple(TaskUpdate(**one) for one in told_updates(listener, success, result, named))


def told_updates(
    listener: CompiledListener, success: bool, result: Json, facts: TaskFacts
) -> list[dict[str, Any]]:
    """The same in the words of a driver; the facts know the result by its name."""
    if listener.is_code and (own := _own_output(listener, result)):
        return [own]
    output = listener.listener.success_output if success else listener.listener.failure_output
    if output is None:
        return []
    reason = listener.id
    if reason == INPUTS:
        context, reason = dict(result or {}), "start"
    else:
        context = (listener.success if success else listener.failure).fill(facts)
    return [
        {"task_id": output.task_id, "status": output.status, "context": context, "reason": reason}
    ]


def _own_output(listener: CompiledListener, result: Json) -> dict[str, Any] | None:
    """The update that a snippet names itself; a part it leaves out comes from the listener."""
    if not isinstance(result, Mapping):
        return None
    if not result.keys() & {"target_task", "target_status", "context"}:
        return None
    output = (
        listener.listener.success_output if succeeded(result) else listener.listener.failure_output
    )
    task_id = result.get("target_task", output.task_id if output else None)
    if task_id is None:
        return None
    fallback = output.status if output else TaskStatus.DONE
    status = _status(result.get("target_status", fallback))
    named = {"task_id": str(task_id), "status": status}
    return {**named, "context": _context(result), "reason": listener.id}


def _status(value: Json) -> TaskStatus:
    try:
        return TaskStatus(value)
    except ValueError:
        names = ", ".join(status.value for status in TaskStatus)
        raise TemplateError(
            msg("target_status {value!r} is not one of {names}", value=value, names=names)
        ) from None


def _context(result: Mapping[str, Json]) -> dict[str, Json]:
    context = result.get("context", {})
    if not isinstance(context, Mapping):
        raise TemplateError(msg("the snippet's context must be a dict"))
    return dict(context)
