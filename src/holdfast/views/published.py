"""Events as they are published: what is told of a run to all who may read it.

What a person has begun to fill in is theirs alone: of a draft all others learn that it was
kept.
"""

from __future__ import annotations

import json

from holdfast.journal.codec import current_payload, prepare
from holdfast.journal.port import Record
from holdfast.journal.port import Record as StoredEvent
from holdfast.views.records import EventRecord

__all__ = ["StoredEvent", "event_record", "prepare", "published"]

_DRAFT = "DraftKept"


def published(record: Record) -> tuple[str, str]:
    """A record's type and payload, in today's shape."""
    kind, payload = current_payload(record)
    if kind != _DRAFT:
        return kind, payload
    shown = {name: value for name, value in json.loads(payload).items() if name != "data"}
    return kind, json.dumps(shown, ensure_ascii=False)


def event_record(run_id: str, record: Record) -> EventRecord:
    kind, payload = published(record)
    return EventRecord(run_id, record.seq, record.at, kind, payload)
