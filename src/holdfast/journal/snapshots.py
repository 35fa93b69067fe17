"""A plan's state as JSON: a disposable cache, so that loading costs the tail only.

`SCHEMA` changes with the shape of the state; a snapshot of another schema is
simply not used, because the journal has everything.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter
from rpds import HashTrieMap, HashTrieSet, List

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState, QuestionState, StepState, TaskState, TraceEntry
from holdfast.model.events import Parent
from holdfast.model.plan import PlanInstanceStatus, TaskStatus

SCHEMA = 2

_STEPS = TypeAdapter(dict[str, StepState])
_QUESTIONS = TypeAdapter(dict[str, QuestionState])
_PARENT = TypeAdapter(Parent | None)

_SPECIAL = frozenset(
    {"plan", "tasks", "steps", "questions", "open_questions", "timers", "heard", "parent", "status"}
)
_PLAIN = tuple(field.name for field in fields(PlanState) if field.name not in _SPECIAL)


def dump_state(state: PlanState) -> str:
    body: dict[str, Any] = {name: getattr(state, name) for name in _PLAIN}
    body["status"] = state.status.value
    body["parent"] = _PARENT.dump_python(state.parent, mode="json")
    body["tasks"] = {
        task_id: [task.status.value, task.context, [_dump_entry(one) for one in task.trace]]
        for task_id, task in state.tasks.items()
    }
    body["steps"] = _STEPS.dump_python(dict(state.steps), mode="json", exclude_defaults=True)
    questions = dict(state.questions)
    body["questions"] = _QUESTIONS.dump_python(questions, mode="json", exclude_defaults=True)
    body["open_questions"] = sorted(state.open_questions)
    body["timers"] = dict(state.timers)
    body["heard"] = dict(state.heard)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def load_state(payload: str, plan: CompiledPlan) -> PlanState:
    body: dict[str, Any] = json.loads(payload)
    plain = {name: body[name] for name in _PLAIN}
    plain["failed"] = tuple(plain["failed"])
    return PlanState(
        plan=plan,
        status=PlanInstanceStatus(body["status"]),
        parent=_PARENT.validate_python(body["parent"]),
        tasks=HashTrieMap({key: _load_task(value) for key, value in body["tasks"].items()}),
        steps=HashTrieMap(_STEPS.validate_python(body["steps"])),
        questions=HashTrieMap(_QUESTIONS.validate_python(body["questions"])),
        open_questions=HashTrieSet(body["open_questions"]),
        timers=HashTrieMap(body["timers"]),
        heard=HashTrieMap(body["heard"]),
        **plain,
    )


def _dump_entry(entry: TraceEntry) -> list[Any]:
    return [entry.status.value, entry.reason, entry.at]


def _load_task(value: list[Any]) -> TaskState:
    status, context, trace = value
    entries = [TraceEntry(TaskStatus(one), reason, at) for one, reason, at in trace]
    return TaskState(TaskStatus(status), context, List(entries))
