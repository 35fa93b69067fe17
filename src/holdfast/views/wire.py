"""Views as JSON, and back: one adapter for every record.

Unknown keys are ignored and missing ones have their defaults, so that client and server may be of
different versions: a field that is added to a view has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from holdfast.i18n.catalogue import LOCALES, worded
from holdfast.model.conversation import SubTask
from holdfast.model.record import adapter
from holdfast.model.repair import Diagnosis, PlanPatch, Proposal, Rehearsal, Verdict
from holdfast.views.records import (
    CaseView,
    ChatLine,
    ConversationTask,
    ConversationView,
    PatchView,
    PlanView,
    RunView,
    SessionView,
    StepView,
    TaskView,
    TimelineEntry,
)

V = TypeVar("V")

_OURS: Final[Mapping[type, tuple[str, ...]]] = {
    RunView: ("error", "plan", "session", "conversation"),
    PlanView: ("tasks", "steps", "cases", "patches"),
    SessionView: ("steps", "error"),
    ConversationView: ("answer", "tasks", "steps", "error"),
    TaskView: ("words",),
    StepView: ("words", "error", "why"),
    CaseView: ("error", "reason", "diagnosis", "proposal"),
    Diagnosis: ("summary",),
    Proposal: ("patch", "verdict", "shown"),
    PlanPatch: ("reason",),
    Verdict: ("problems", "warnings", "success", "failure"),
    Rehearsal: ("questions", "stopped", "open_conditions"),
    PatchView: ("words",),
    ConversationTask: ("task", "words"),
    SubTask: ("skipped",),
    TimelineEntry: ("who", "what", "moves", "chat"),
    ChatLine: ("text",),
}
"""The fields that have messages, or records with messages."""


def in_language(view: V, language: str) -> V:
    """A run, a case or an entry of a timeline as its reader is told it: our messages in that
    language; what others wrote, contexts and the data of events stay."""
    told: V = view if language not in LOCALES else _told(view, language)
    return told


def _told(value: Any, language: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_told(one, language) for one in value)
    if isinstance(value, list):
        return [_told(one, language) for one in value]
    if isinstance(value, Mapping):
        return {name: _told(one, language) for name, one in value.items()}
    if names := _OURS.get(type(value)):
        return replace(value, **{name: _told(getattr(value, name), language) for name in names})
    return worded(value, language) if isinstance(value, str) else value


def to_json(view: object) -> dict[str, Any]:
    dumped: dict[str, Any] = adapter(type(view)).dump_python(view, mode="json")
    return dumped


def to_text(view: object) -> str:
    return adapter(type(view)).dump_json(view).decode()


def from_json(kind: type[V], body: Mapping[str, Any]) -> V:
    return adapter(kind).validate_python(body)
