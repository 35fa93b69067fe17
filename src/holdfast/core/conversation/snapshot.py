"""A conversation as plain JSON, and back.

Version 1 is complete. Version 0 is the seed's five keys: state, progress, tasks (id,
description, status, priority), completed_tasks and total_tasks; it knows of no results,
dependencies or context. A snapshot that contradicts itself is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from holdfast.core.conversation.schedule import problem_with
from holdfast.core.conversation.state import ConversationState
from holdfast.core.language.strict import strict_json
from holdfast.errors import InvalidAnswer, InvalidValue
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.values import Json

VERSION = 1

_TASK_FIELDS = frozenset(one.name for one in fields(SubTask))
_WITH_TASKS = (
    EngineState.SCHEDULING,
    EngineState.EXECUTING,
    EngineState.PAUSED,
    EngineState.COMPLETED,
)


def dump(state: ConversationState) -> dict[str, Json]:
    """The seed's five keys, and what makes them complete."""
    ordered = sorted(state.tasks.items(), key=lambda one: int(one[0][1:]))
    return {
        "state": state.phase.value,
        "progress": state.progress,
        "tasks": [{**asdict(task), "dependencies": list(task.dependencies)} for _, task in ordered],
        "completed_tasks": state.completed,
        "total_tasks": state.total,
        "version": VERSION,
        "turn": state.turn,
        "user_input": state.text,
        "left": state.left.value,
        "scheduled": state.scheduled,
        "context": dict(state.context),
        "history": [{"text": one.text, "results": dict(one.results)} for one in state.history],
        "error": state.error,
    }


def checked(raw: object) -> dict[str, Json]:
    """The snapshot with nothing left to doubt, or InvalidAnswer with what is wrong."""
    if not isinstance(raw, Mapping):
        raise _damaged("it is no object")
    try:
        body: dict[str, Any] = strict_json(dict(raw))
    except InvalidValue as error:
        raise _damaged(str(error)) from None
    version = body.get("version", 0)
    if version not in (0, VERSION):
        raise _damaged(f"it has version {version!r}; this Holdfast reads 0 and {VERSION}")
    phase = _phase(body.get("state"))
    tasks = [_task(one) for one in _list(body, "tasks")]
    _check_counts(body, phase, tasks)
    left = _phase(body.get("left", _left(phase)))
    return {
        **body,
        "state": phase.value,
        "left": left.value,
        "tasks": [{**asdict(one), "dependencies": list(one.dependencies)} for one in tasks],
        "turn": body.get("turn", 1 if tasks else 0),
        "user_input": body.get("user_input", ""),
        "scheduled": body.get("scheduled", len(tasks)),
        "context": body.get("context", {}),
        "history": body.get("history", []),
        "error": body.get("error", ""),
    }


def _left(phase: EngineState) -> str:
    return EngineState.EXECUTING if phase is EngineState.PAUSED else EngineState.IDLE


def _phase(raw: object) -> EngineState:
    try:
        return EngineState(str(raw))
    except ValueError:
        names = ", ".join(one.value for one in EngineState)
        raise _damaged(f"its state is {raw!r}, not one of {names}") from None


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    found = body.get(name)
    if not isinstance(found, list):
        raise _damaged(f"its {name} are no list")
    return found


def _task(raw: object) -> SubTask:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("id"), str):
        raise _damaged(f"one of its tasks has no id: {raw!r}")
    known = {name: value for name, value in raw.items() if name in _TASK_FIELDS}
    known["dependencies"] = tuple(raw.get("dependencies", ()))
    task = SubTask(**known)
    sound = isinstance(task.priority, int) and all(isinstance(d, str) for d in task.dependencies)
    if not sound:
        raise _damaged(f"task {task.id!r} has a priority or dependencies of the wrong kind")
    return task


def _check_counts(body: Mapping[str, Any], phase: EngineState, tasks: list[SubTask]) -> None:
    total, completed = body.get("total_tasks"), body.get("completed_tasks")
    done = sum(task.status == "completed" for task in tasks)
    if total != len(tasks) or completed != done:
        told = f"{completed!r} of {total!r} tasks"
        raise _damaged(f"it speaks of {told}, but lists {done} of {len(tasks)} as completed")
    if not tasks and phase in _WITH_TASKS:
        raise _damaged(f"it is {phase} without any task")
    problem = problem_with(tasks) if tasks else None
    if problem is not None:
        raise _damaged(problem)
    if phase is EngineState.COMPLETED and done < len(tasks):
        raise _damaged("it is completed, but some of its tasks are not")


def _damaged(reason: str) -> InvalidAnswer:
    return InvalidAnswer(f"the snapshot cannot be restored: {reason}", {"snapshot": reason})
