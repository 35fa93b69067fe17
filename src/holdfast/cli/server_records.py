"""What a server tells, as the journal of a home would tell it.

A run's rows, questions and events come as JSON; here they become what everything else is
written for. Nothing is guessed: what this version cannot read is said to be so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.core.interactions.wire import camel, request_from_wire
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.errors import JournalDamaged, OperatorError
from holdfast.journal.codec import VERSIONS, decode
from holdfast.journal.port import AuditEntry, AuditRecord, QuestionRow, Record, RunRow
from holdfast.model.adapters import adapter
from holdfast.model.interaction import InteractionRequest
from holdfast.model.run import JOURNAL_KINDS, RunKind
from holdfast.runtime.hub import Recorded
from holdfast.runtime.machines import Definition, definition_from

Told = Mapping[str, Any]

_REQUEST = (
    "request_id",
    "session_id",
    "type",
    "title",
    "message",
    "details",
    "context",
    "options",
    "required",
    "timeout_seconds",
    "default_option_id",
    "role",
    "reminders",
    "escalate_after",
    "escalate_to",
    "custom_type",
    "form",
)


def run_row(told: Told) -> RunRow:
    """Only what lists need: what a restart needs stays with the server."""
    summary = {name: value for name, value in told["summary"].items() if value is not None}
    return RunRow(
        run_id=told["id"],
        kind=JOURNAL_KINDS[RunKind(told["kind"])],
        name=told["name"],
        definition="",
        status=told["status"],
        active=False,
        wake_at=None,
        root_id=told["root_id"],
        parent_id=told["parent_id"],
        created_at=told["created_at"],
        updated_at=told["updated_at"],
        title=told["title"],
        summary=json.dumps(summary),
    )


def question_row(told: Told) -> QuestionRow:
    request = request_of(told)
    return QuestionRow(
        question_id=request.request_id,
        run_id=told["runId"],
        root_id=told["rootId"],
        status=told["status"],
        type=request.type.value,
        title=request.title,
        role=told["role"],
        opened_at=told["openedAt"],
        deadline=told["deadline"],
        closed_at=told["closedAt"],
        body=adapter(InteractionRequest).dump_json(request, exclude_defaults=True).decode(),
    )


def request_of(told: Told) -> InteractionRequest:
    named = {camel(name): told.get(camel(name)) for name in _REQUEST}
    return request_from_wire({name: value for name, value in named.items() if value is not None})


def recorded(told: Told) -> Recorded:
    name = told["type"]
    version = VERSIONS.get(name, 1)
    kind = name if version == 1 else f"{name}@{version}"
    record = Record(told["seq"], told["at"], kind, json.dumps(told["data"]))
    try:
        return Recorded(record.seq, record.at, decode(record))
    except JournalDamaged as error:
        raise OperatorError(
            f"the server tells what this Holdfast cannot read ({error}): "
            "use the same version on both sides"
        ) from None


def definition(told: Told) -> Definition:
    return definition_from(told["kind"], told["definition"], told["digest"])


def plan(told: Told) -> CompiledPlan:
    compiled = definition_from("plan", told["definition"], told["digest"])
    assert isinstance(compiled, CompiledPlan)
    return compiled


def audit_entry(told: Told) -> AuditEntry:
    deed = AuditRecord(
        at=told["at"],
        who=told["who"],
        action=told["action"],
        subject=told["subject"],
        run_id=told["run_id"],
        seen=told["seen"],
        origin=told["origin"],
        detail=json.dumps(told["detail"]),
    )
    return AuditEntry(told["number"], deed, told["previous"], told["digest"])
