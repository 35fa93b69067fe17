"""The chain of deeds: each entry's digest covers its deed, its number and the entry before.

Whoever changes, removes or moves an entry breaks the chain from there on, and whoever mends
the rest of it changes the newest digest, which somebody may have noted elsewhere. Of what is
cut off at the end the chain itself knows nothing: only such a note tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from holdfast.journal.port import AuditEntry, AuditRecord
from holdfast.language.strict import digest
from holdfast.model.values import Json

START = ""
"""What stands before the first entry."""

_FIELDS = tuple(field.name for field in fields(AuditRecord))


def link(previous: str, number: int, deed: AuditRecord) -> str:
    """The digest of the entry that follows the one whose digest is `previous`."""
    told: dict[str, Json] = {name: getattr(deed, name) for name in _FIELDS}
    told["at"] = float(deed.at)  # a database gives 5 back as 5.0
    return digest({"number": number, "previous": previous, "deed": told})


def verify(entries: Iterable[AuditEntry], last: AuditEntry | None = None) -> str | None:
    """What is wrong with the chain, or None; `last` is where the part before has ended."""
    number, previous = (last.number, last.digest) if last is not None else (0, START)
    for entry in entries:
        number += 1
        if entry.number != number:
            return f"entry {number} is missing: entry {entry.number} stands in its place"
        if entry.previous != previous:
            return f"entry {number} does not follow the entry before it"
        if link(previous, number, entry.deed) != entry.digest:
            return f"entry {number} has been changed since it was written"
        previous = entry.digest
    return None
