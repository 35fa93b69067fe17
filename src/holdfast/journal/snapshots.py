"""A run's state as JSON: a disposable cache, so that loading costs the tail only.

`SCHEMA` changes with the shape of the state; a snapshot of another schema is
simply not used, because the journal has everything. Most fields are JSON as they
are; how the others are written and read stands in one table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from immutables import Map
from rpds import HashTrieSet, List

from holdfast.core.conversation import schedule
from holdfast.core.conversation.state import ConversationState, Turn
from holdfast.core.plan.case_reducers import with_patches
from holdfast.core.plan.state import Forked, PlanState, TaskState
from holdfast.core.repair.state import NO_REPAIRS, CaseState, Repairs
from holdfast.core.run.state import QuestionState, RunState, StepState
from holdfast.i18n.journaled import dump_messages, place_messages
from holdfast.model.agent_events import Call
from holdfast.model.approval import ApprovalRule, Grant
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.events import PlanPatched
from holdfast.model.message import Message, ModelSaid, ToolReturned, Usage, UserSaid
from holdfast.model.plan import TaskStatus
from holdfast.model.record import adapter
from holdfast.model.run import Parent, RunStatus
from holdfast.model.values import Json

SCHEMA = 17

S = TypeVar("S", bound=RunState)

Form = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""How a field is written, and how it is read."""


def _adapted(kind: Any) -> Form:
    def write(value: Any) -> Any:
        return adapter(kind).dump_python(value, mode="json", exclude_defaults=True)

    def read(value: Any) -> Any:
        return adapter(kind).validate_python(value)

    return write, read


def _mapped(kind: Any) -> Form:
    write, read = _adapted(dict[str, kind])
    return lambda value: write(dict(value)), lambda value: Map(read(value))


_SPEAKERS: Mapping[str, type] = {"user": UserSaid, "model": ModelSaid, "tool": ToolReturned}
_SPEAKER_OF = {kind: name for name, kind in _SPEAKERS.items()}
_MESSAGES = {name: _adapted(kind) for name, kind in _SPEAKERS.items()}


def _dump_messages(messages: List[Message]) -> list[Any]:
    """Each with its speaker: words alone do not tell whose they are."""
    return [[name := _SPEAKER_OF[type(one)], _MESSAGES[name][0](one)] for one in messages]


def _load_messages(body: list[Any]) -> List[Message]:
    return List([_MESSAGES[name][1](value) for name, value in body])


def _dump_tasks(tasks: Map[str, TaskState]) -> dict[str, Any]:
    return {
        task_id: [
            task.status.value,
            task.context,
            [[status.value, reason, at] for status, reason, at in task.moves],
        ]
        for task_id, task in tasks.items()
    }


def _load_tasks(body: dict[str, Any]) -> Map[str, TaskState]:
    return Map({task_id: _load_task(value) for task_id, value in body.items()})


def _load_task(value: list[Any]) -> TaskState:
    status, context, moves = value
    entries = [(TaskStatus(one), reason, at) for one, reason, at in moves]
    return TaskState(TaskStatus(status), context, List(entries))


def _dump_repairs(repairs: Repairs) -> dict[str, Any]:
    if repairs == NO_REPAIRS:
        return {}
    return {
        "cases": _CASES[0](repairs.cases),
        "patches": _PATCHES[0](repairs.patches),
        "applied": repairs.applied,
        "requests": repairs.requests,
        "tokens": repairs.tokens,
    }


def _load_repairs(body: dict[str, Any]) -> Repairs:
    if not body:
        return NO_REPAIRS
    read = {
        "cases": _CASES[1](body["cases"]),
        "patches": _PATCHES[1](body["patches"]),
        "applied": tuple((seq, at) for seq, at in body["applied"]),
    }
    return Repairs(**{**body, **read})


_CASES, _PATCHES = _mapped(CaseState), _adapted(tuple[PlanPatched, ...])

_FORMS: Mapping[str, Form] = {
    "status": (str, RunStatus),
    "parent": _adapted(Parent | None),
    "steps": _mapped(StepState),
    "questions": _mapped(QuestionState),
    "open_questions": (sorted, HashTrieSet),
    "timers": (dict, Map),
    "heard": (dict, Map),
    "wanting": (dict, Map),
    "failed": (list, tuple),
    "tasks": (_dump_tasks, _load_tasks),
    "approval": _adapted(dict[str, ApprovalRule]),
    "only": _adapted(tuple[str, ...] | None),
    "messages": (_dump_messages, _load_messages),
    "calls": _mapped(Call),
    "did": _adapted(tuple[tuple[str, str, Json], ...]),
    "asides": (list, tuple),
    "usage": _adapted(Usage),
    "grants": _mapped(Grant),
    "repair": (_dump_repairs, _load_repairs),
    "forked": _adapted(Forked | None),
}

_CONVERSATION_FORMS: Mapping[str, Form] = {
    **_FORMS,
    "phase": (str, EngineState),
    "left": (str, EngineState),
    "history": _adapted(tuple[Turn, ...]),
    "tasks": _mapped(SubTask),
    "steps_of": (dict, Map),
    "order": (list, tuple),
    "waits_for": (dict, Map),
    "frees": _mapped(tuple[str, ...]),
    "queue": (schedule.heap_items, lambda body: schedule.heap_of(tuple(one) for one in body)),
    "untold": (list, tuple),
    "former": _mapped(StepState),
    "filling": (dict, Map),
}

_PINNED = frozenset({"plan", "definition", "origin"})
"""What a run is pinned to is stored by content, not in its snapshots."""

_MADE = "made"
_TEXTS = frozenset({"error", "failure", "questions", "repair", "steps", "tasks"})
"""Where states have messages; how they were made stands beside the state."""

_LEFT_OUT = _PINNED | {"readied"}


def dump_state(state: RunState) -> str:
    forms = _forms_of(state)
    names = (one.name for one in fields(state) if one.name not in _LEFT_OUT)
    body = {name: _write(forms, name, getattr(state, name)) for name in names}
    texts = {one.name: getattr(state, one.name) for one in fields(state) if one.name in _TEXTS}
    if found := dump_messages(texts):
        body[_MADE] = json.loads(found)
    from pydantic_core import to_json

    return to_json(body).decode()


def load_state(payload: str, blank: S) -> S:
    """The state that `payload` is a snapshot of, for a run that `blank` is the beginning of."""
    body: dict[str, Any] = json.loads(payload)
    found = body.pop(_MADE, ())
    forms = _forms_of(blank)
    pinned = {name: getattr(blank, name) for name in _PINNED if hasattr(blank, name)}
    read = {name: _read(forms, name, value) for name, value in body.items()}
    state = type(blank)(**place_messages(read, found), **pinned)
    if isinstance(state, PlanState):
        return cast(S, with_patches(state))
    return state


def _forms_of(state: RunState) -> Mapping[str, Form]:
    return _CONVERSATION_FORMS if isinstance(state, ConversationState) else _FORMS


def _write(forms: Mapping[str, Form], name: str, value: Any) -> Any:
    form = forms.get(name)
    return value if form is None else form[0](value)


def _read(forms: Mapping[str, Form], name: str, value: Any) -> Any:
    form = forms.get(name)
    return value if form is None else form[1](value)
