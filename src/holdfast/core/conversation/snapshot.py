"""A conversation as plain JSON, and back.

Version 1 is complete. Version 0 is the seed's five keys: state, progress, tasks (id,
description, status, priority), completed_tasks and total_tasks; it knows of no results,
dependencies or context. A snapshot that contradicts itself is refused, with the reason.

A task is `doubtful` if it was under way and must not be repeated: its process may still be
at it, so the person who restores the snapshot is asked what became of it. The child run of an agent
or a plan is such a task too, because it is not known how far it has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from holdfast.core.conversation.former import PUT_ASIDE, is_doubtful
from holdfast.core.conversation.schedule import problem_with
from holdfast.core.conversation.state import ConversationState, told_turn
from holdfast.core.conversation.tables import PAUSABLE, THINKING
from holdfast.core.run.state import StepState
from holdfast.core.run.steps import repeatable
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer, InvalidValue
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_json
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.values import Json

VERSION = 1

_DEEPEST = 80
_LARGEST = 1_000_000_000
"""Deeper and larger than any value inside it may be: what a conversation holds, it can restore."""
_LAST_TURN = 2**31

_KINDS = {
    "id": str,
    "description": str,
    "type": str,
    "priority": int,
    "dependencies": list,
    "args": dict,
    "route": str,
    "status": str,
    "skipped": str,
}
_ROUTES = ("default", "callable", "once", "tool", "agent", "plan")
_HARMLESS = ("default", "callable")
_BEGUN = ("running", "finished", "completed", "skipped", "failed")
_STATUSES = ("pending", "scheduled", *_BEGUN)
_WITH_RESULT = ("finished", "completed", "skipped")
_TOLD = ("completed", "skipped")
_CONTEXT = ("rules", "knowledge", "tools")
AS_THEY_ARE = ("error", "kept", "pausing", "confirmed", "feedback", "by_model", "answer")
"""What a state and its snapshot both have under one name, and a new turn has not yet."""
_NEAR = 0.01
"""How far a progress may be from the counts: another program may have rounded it."""
_BEFORE_TASKS = (EngineState.IDLE, EngineState.RECEIVING, EngineState.CONTEXT_FETCHING)
_NEEDS_GOAL = THINKING
_BEFORE_WORK = (EngineState.DECOMPOSING, EngineState.SCHEDULING)
_MAY_DOUBT = (EngineState.EXECUTING, EngineState.ERROR)
_WITH_TASKS = (EngineState.SCHEDULING, EngineState.EXECUTING, EngineState.COMPLETED)


def dump(state: ConversationState) -> dict[str, Json]:
    """The seed's five keys, and what makes them complete."""
    ordered = sorted(state.tasks.items(), key=lambda one: int(one[0][1:]))
    return {
        "state": state.phase.value,
        "progress": state.progress,
        "tasks": [_dump_task(state, step_id, task) for step_id, task in ordered],
        "completed_tasks": state.completed,
        "total_tasks": state.total,
        "version": VERSION,
        "turn": state.turn,
        "user_input": state.text,
        "pending": state.pending,
        "left": state.left.value,
        "scheduled": state.scheduled,
        "context": dict(state.context),
        "complaint": state.complaint,
        "history": [told_turn(one) for one in state.history],
        **{name: getattr(state, name) for name in AS_THEY_ARE},
    }


def _dump_task(state: ConversationState, step_id: str, task: SubTask) -> dict[str, Json]:
    """A doubtful one with the arguments that were sent, which a person may have given."""
    if state.phase in PUT_ASIDE:
        step, doubtful = state.former.get(step_id), is_doubtful(state, step_id)
    else:
        step = state.steps.get(step_id)
        doubtful = step is not None and _doubtful(state, step)
    if step is None or not doubtful:
        return _plain(task, doubtful=False)
    sent = task.args if step.args is None else step.args
    return _plain(replace(task, status="running", args=sent), doubtful=True)


def _doubtful(state: ConversationState, step: StepState) -> bool:
    if step.question_id is not None:
        under_way = state.questions[step.question_id].purpose == "unknown"
    else:
        under_way = step.status is StepStatus.RUNNING
    return under_way and (step.awaits_child or not repeatable(step))


def _plain(task: SubTask, *, doubtful: bool) -> dict[str, Json]:
    return {**asdict(task), "dependencies": list(task.dependencies), "doubtful": doubtful}


def checked(raw: object) -> dict[str, Json]:
    """The snapshot with nothing left to doubt, or InvalidAnswer with what is wrong."""
    if not isinstance(raw, Mapping):
        raise _damaged("it is no object")
    try:
        body: dict[str, Any] = strict_json(dict(raw), max_depth=_DEEPEST, max_bytes=_LARGEST)
    except InvalidValue as error:
        raise _damaged(str(error)) from None
    version = body.get("version", 0)
    if type(version) is not int or version not in (0, VERSION):
        raise _damaged(f"it has version {version!r}; this Holdfast reads 0 and {VERSION}")
    phase = _phase(body.get("state"))
    usual = EngineState.EXECUTING if phase is EngineState.PAUSED else EngineState.IDLE
    left = _phase(body.get("left", usual))
    at = left if phase is EngineState.PAUSED else phase
    listed = _list(body.get("tasks"), "its tasks")
    tasks = [_task(one) for one in listed]
    _check_counts(body, tasks)
    kept = _flag(body, "kept")
    _check_phase(phase, left, tasks, kept=kept)
    text = _text(body.get("user_input", ""), "user_input")
    pending = _pending(body, phase)
    if not text.strip() and (pending or (at in _NEEDS_GOAL and not tasks)):
        raise _damaged(f"it is {phase}, but nothing was kept of its goal; start it anew")
    scheduled = 0 if at in _BEFORE_WORK else len(tasks)
    return {
        **body,
        "state": phase.value,
        "left": left.value,
        "tasks": [
            _plain(task, doubtful=_was_doubtful(one, task) and (kept or at in _MAY_DOUBT))
            for one, task in zip(listed, tasks, strict=True)
        ],
        "turn": _number(body.get("turn", 1 if tasks else 0), "turn", _LAST_TURN),
        "user_input": text,
        "pending": pending,
        "scheduled": _number(body.get("scheduled", scheduled), "scheduled", len(tasks)),
        "context": _context(body.get("context", {})),
        "complaint": _text(body.get("complaint", ""), "complaint"),
        "history": [_turn(one) for one in _list(body.get("history", []), "its history")],
        "error": _text(body.get("error", ""), "error"),
        "kept": kept,
        "pausing": _flag(body, "pausing") and (pending or at in THINKING),
        "confirmed": _flag(body, "confirmed"),
        "feedback": _text(body.get("feedback", ""), "feedback"),
        "by_model": _flag(body, "by_model"),
        "answer": _text(body.get("answer", ""), "answer"),
    }


def _phase(raw: object) -> EngineState:
    try:
        return EngineState(str(raw))
    except ValueError:
        names = ", ".join(one.value for one in EngineState)
        raise _damaged(f"its state is {raw!r}, not one of {names}") from None


def _list(raw: object, what: str) -> list[Any]:
    if not isinstance(raw, list):
        raise _damaged(f"{what} are no list")
    return raw


def _object(raw: object, what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise _damaged(f"{what} is no object")
    return raw


def _text(raw: object, name: str) -> str:
    if not isinstance(raw, str):
        raise _damaged(f"its {name} is no text")
    return raw


def _number(raw: object, name: str, most: int) -> int:
    if type(raw) is not int or not 0 <= raw <= most:
        raise _damaged(f"its {name} is {raw!r}, not a number from 0 to {most}")
    return raw


def _pending(body: Mapping[str, Any], phase: EngineState) -> bool:
    """A goal that is given and not yet begun with."""
    pending = body.get("pending", False)
    if type(pending) is not bool or (pending and phase is not EngineState.IDLE):
        raise _damaged(f"it is {phase}, where its pending cannot be {pending!r}")
    return pending


def _flag(body: Mapping[str, Any], name: str) -> bool:
    given = body.get(name, False)
    if type(given) is not bool:
        raise _damaged(f"its {name} is {given!r}, not true or false")
    return given


def _context(raw: object) -> dict[str, Any]:
    context = _object(raw, "its context")
    for part in _CONTEXT:
        _list(context.get(part, []), f"its context's {part}")
    return context


def _turn(raw: object) -> dict[str, Json]:
    turn = _object(raw, "one turn of its history")
    text = _text(turn.get("text"), "history's text")
    results = _object(turn.get("results"), "one result of its history")
    unfinished = _object(turn.get("unfinished", {}), "what is unfinished in its history")
    answer = _text(turn.get("answer", ""), "history's answer")
    return {"text": text, "results": results, "unfinished": unfinished, "answer": answer}


def _task(raw: object) -> SubTask:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("id"), str):
        raise _damaged(f"one of its tasks has no id: {raw!r}")
    known = {name: value for name, value in raw.items() if name in _KINDS or name == "result"}
    for name, kind in _KINDS.items():
        if type(known.get(name, kind())) is not kind:
            raise _damaged(f"task {raw['id']!r}: its {name} is of the wrong kind")
    depends = known.pop("dependencies", [])
    if not all(isinstance(one, str) for one in depends):
        raise _damaged(f"task {raw['id']!r}: its dependencies are of the wrong kind")
    task = SubTask(**known, dependencies=tuple(depends))
    problem = _task_problem(task)
    if problem is not None:
        raise _damaged(f"task {task.id!r}: {problem}")
    return task


def _task_problem(task: SubTask) -> str | None:
    if task.status not in _STATUSES:
        return f"its status is {task.status!r}, not one of {', '.join(_STATUSES)}"
    if task.route not in _ROUTES:
        return f"its route is {task.route!r}, not one of {', '.join(_ROUTES)}"
    if task.result is not None and task.status not in _WITH_RESULT:
        return f"it is {task.status}, but has a result"
    if task.status == "skipped" and not task.skipped:
        return "it is skipped, but does not say why"
    if task.skipped and task.status not in ("finished", "skipped"):
        return f"it is {task.status}, but says why it is skipped"
    return None


def _was_doubtful(raw: Mapping[str, Any], task: SubTask) -> bool:
    """Where nothing is said of it, whatever might do harm is doubtful."""
    running = task.status == "running"
    doubtful = raw.get("doubtful", running and task.route not in _HARMLESS)
    if type(doubtful) is not bool or (doubtful and not running):
        raise _damaged(f"task {task.id!r}: it is {task.status}, and its doubtful is {doubtful!r}")
    return doubtful


def _check_counts(body: Mapping[str, Any], tasks: Sequence[SubTask]) -> None:
    total, completed = body.get("total_tasks"), body.get("completed_tasks")
    done = sum(task.status == "completed" for task in tasks)
    kinds = {type(total), type(completed)}
    if kinds != {int} or total != len(tasks) or completed != done:
        told = f"{completed!r} of {total!r} tasks"
        raise _damaged(f"it speaks of {told}, but lists {done} of {len(tasks)} as completed")
    _check_progress(body.get("progress", done / max(total, 1)), done / max(total, 1))
    problem = (problem_with(tasks) or _out_of_order(tasks)) if tasks else None
    if problem is not None:
        raise _damaged(problem)


def _check_progress(told: object, counted: float) -> None:
    fits = type(told) in (int, float) and abs(cast(float, told) - counted) <= _NEAR
    if not fits:
        raise _damaged(f"its progress is {told!r}, but its tasks make {counted:g}")


def _out_of_order(tasks: Sequence[SubTask]) -> str | None:
    """A task that is done cannot have been waiting for one that is not."""
    done = {task.id for task in tasks if task.status in _TOLD}
    for task in tasks:
        begun = task.status in _BEGUN and not _is_skipped(task)
        if begun and not done.issuperset(task.dependencies):
            return f"task {task.id!r} is {task.status} before the tasks that it depends on"
    return None


def _is_skipped(task: SubTask) -> bool:
    """Skipping a task skips what depends on it, whatever else that waits for. Snapshots of
    old say so in the result alone."""
    result = task.result
    return bool(task.skipped) or (isinstance(result, Mapping) and result.get("skipped") is True)


def _check_phase(
    phase: EngineState, left: EngineState, tasks: Sequence[SubTask], *, kept: bool
) -> None:
    """What the tasks say of the phase: where there are none, and where none can have begun."""
    if phase is EngineState.PAUSED and left not in PAUSABLE:
        raise _damaged(f"it was paused while {left}, which nothing can be")
    at = left if phase is EngineState.PAUSED else phase
    if not tasks and at in _WITH_TASKS:
        raise _damaged(f"it is {phase} without any task")
    if tasks and at in _BEFORE_TASKS and not kept:
        raise _damaged(f"it is {phase}, but has tasks already")
    if at in _BEFORE_WORK and not kept and any(task.status in _BEGUN for task in tasks):
        raise _damaged(f"it is {phase}, but some of its tasks have begun")
    if phase is EngineState.COMPLETED and any(task.status not in _TOLD for task in tasks):
        raise _damaged("it is completed, but some of its tasks are not")


def _damaged(reason: str) -> InvalidAnswer:
    return InvalidAnswer(
        msg("the snapshot cannot be restored: {reason}", reason=reason), {"snapshot": reason}
    )
