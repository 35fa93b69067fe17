"""The store: values that an application's parts keep by name beside the runs.

A journal is one. Tokens, answered requests and registered plans are kept there, and what a person
did goes into the audit with them. Nothing of it belongs to a run.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.journal.port import StoredDefinition as StoredDefinition
from holdfast.journal.port import verify as verify
from holdfast.model.rows import Attached, AuditEntry, ExpiringValue


class Store(Protocol):
    @property
    def shared(self) -> bool:
        """Whether other processes may write to it too."""

    @property
    def epoch(self) -> int:
        """Rises whenever appends were refused because the store failed."""

    async def attach(self, attached: Attached) -> None: ...

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        """What is kept under a name, unless it has expired."""

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        """Everything of one kind that has not expired, in order of the keys."""

    async def audit(self, after: int = 0, limit: int = 1000) -> list[AuditEntry]: ...

    async def last_commit(self) -> int: ...
