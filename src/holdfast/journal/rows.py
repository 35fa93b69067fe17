"""What the rows of the SQLite journal mean."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from holdfast.journal.database import NoText
from holdfast.journal.port import (
    DAMAGED_RUN,
    AuditEntry,
    AuditRecord,
    Committed,
    RunRow,
    StoredDefinition,
)
from holdfast.model.run import KINDS, RunStatus

_STATUSES = frozenset(one.value for one in RunStatus)
_ANY_KIND = "plan"

SHORT_BODY = 1_000
"""Up to so many characters a definition is stored as it is."""


def run_row(row: tuple[Any, ...]) -> RunRow:
    """A damaged one is told as such, in words that any list takes."""
    run_id, kind, name, definition, status, active, *rest = row
    found = RunRow(run_id, kind, name, definition, status, bool(active), *rest)
    if not any(isinstance(one, NoText) for one in row) and _is_told(found):
        return found
    kind = kind if kind in KINDS else _ANY_KIND
    return replace(found, kind=kind, status=RunStatus.ERROR.value, title=DAMAGED_RUN, summary="{}")


def _is_told(row: RunRow) -> bool:
    try:
        told = isinstance(json.loads(row.summary), dict)
    except ValueError:
        return False
    return told and row.status in _STATUSES and row.kind in KINDS


def packed(body: str) -> bytes | str:
    """A definition's body as it is stored: a long one takes a tenth of its size."""
    return zlib.compress(body.encode()) if len(body) > SHORT_BODY else body


def definition_of(row: tuple[Any, ...]) -> StoredDefinition:
    digest, kind, name, body, stored_at, meta = row
    text = zlib.decompress(body).decode() if isinstance(body, bytes) else body
    return StoredDefinition(digest, kind, name, text, stored_at, json.loads(meta))


def entry_of(row: tuple[Any, ...]) -> AuditEntry:
    number, *deed, previous, digest = row
    return AuditEntry(number, AuditRecord(*deed), previous, digest)


def stretches_of(rows: Iterable[tuple[int, str, int]]) -> list[Committed]:
    """Records that one run committed in a row are one stretch, unless there is a hole."""
    found: list[Committed] = []
    before = None
    for position, run_id, seq in rows:
        goes_on = before == (position - 1, run_id, seq - 1)
        first = found.pop().first if goes_on else seq
        found.append(Committed(position, run_id, first, seq))
        before = position, run_id, seq
    return found
