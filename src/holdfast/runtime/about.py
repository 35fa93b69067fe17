"""What a run is about, by its row; apart from `views`, so that a listing loads no machine."""

from __future__ import annotations

import json

from holdfast.journal.port import Journal, QuestionRow, RunRow
from holdfast.model.run import JOURNAL_KINDS, RunKind


def about_row(row: RunRow) -> str:
    """What a run is about in one line, beyond its name; empty where its row does not say."""
    if row.kind == JOURNAL_KINDS[RunKind.CONVERSATION]:
        return row.title
    summary = json.loads(row.summary)
    prompt = summary.get("prompt") or ""
    return str((prompt not in (row.name, row.title) and prompt) or summary.get("facts") or "")


async def about_question(journal: Journal, row: QuestionRow) -> str:
    """What the run that it stands under is about."""
    root = await journal.run(row.root_id)
    return "" if root is None else about_row(root)
