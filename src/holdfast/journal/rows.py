"""What journals in SQL share: their named queries, and what rows mean.

Each query of `sql/` has a name, its purpose in one line, and its text.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from holdfast.journal.port import (
    DAMAGED_RUN,
    AuditEntry,
    AuditRecord,
    Committed,
    RunRow,
    StoredDefinition,
)
from holdfast.model.run import KINDS, RunStatus

_HEADING = re.compile(r"^-- name: (\w+)\n-- .+\n", re.MULTILINE)
_STATUSES = frozenset(one.value for one in RunStatus)
_ANY_KIND = "plan"

SHORT_BODY = 1_000
"""Up to so many characters a definition is stored as it is."""


def load_script(name: str) -> str:
    """The text of one file in `sql/`."""
    return files("holdfast.journal").joinpath("sql", name).read_text(encoding="utf-8")


def load_queries(name: str) -> Mapping[str, str]:
    """The queries of one file, by name."""
    _, *parts = _HEADING.split(load_script(name))
    bodies = (body.strip().rstrip(";") for body in parts[1::2])
    return MappingProxyType(dict(zip(parts[0::2], bodies, strict=True)))


class NoText(str):
    """What could be read of text that is not UTF-8: the rest of its row, and other rows, stay."""


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
    number, *fields, previous, digest = row
    return AuditEntry(number, AuditRecord(*fields), previous, digest)


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
