"""Rows of the projection as views; loads none of the machines."""

from __future__ import annotations

import json
from typing import Any

from holdfast.model.interaction import InteractionRequest, InteractionStatus, InteractionType
from holdfast.model.record import adapter
from holdfast.model.rows import QuestionRow, RunRow
from holdfast.model.run import JOURNAL_KINDS, KINDS, RunKind, RunStatus
from holdfast.views.records import InteractionView, RunLine

_FOUR_EYES = "four_eyes"


def run_line(row: RunRow) -> RunLine:
    return RunLine(**line_fields(row))


def line_fields(row: RunRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "kind": KINDS[row.kind],
        "name": row.name,
        "title": row.title,
        "status": RunStatus(row.status),
        "root_id": row.root_id,
        "parent_id": row.parent_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "about": about_row(row),
        "summary": json.loads(row.summary),
        "definition": row.definition,
    }


def about_row(row: RunRow) -> str:
    """What a run is about in one line, beyond its name; empty where its row does not say."""
    if row.kind == JOURNAL_KINDS[RunKind.CONVERSATION]:
        return row.title
    summary = json.loads(row.summary)
    prompt = summary.get("prompt") or ""
    return str((prompt not in (row.name, row.title) and prompt) or summary.get("facts") or "")


def interaction_view(
    row: QuestionRow, about: str = "", request: InteractionRequest | None = None
) -> InteractionView:
    body = json.loads(row.body)
    return InteractionView(
        question_id=row.question_id,
        run_id=row.run_id,
        root_id=row.root_id,
        status=InteractionStatus(row.status),
        type=InteractionType(row.type),
        title=row.title,
        role=row.role,
        opened_at=row.opened_at,
        deadline=row.deadline,
        closed_at=row.closed_at,
        request=request or adapter(InteractionRequest).validate_python(body),
        four_eyes=_FOUR_EYES in body,
        about=about,
    )
