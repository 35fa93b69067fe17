"""What a run knows of its failures and of what was done to its plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from immutables import Map

from holdfast.core.repair.operations import added, operations_from_json
from holdfast.core.repair.records import Add, InsertBefore
from holdfast.core.repair.tables import CaseMove, next_case
from holdfast.language.strict import canonical_json, digest
from holdfast.model.events import PlanPatched
from holdfast.model.record import record, replacing
from holdfast.model.repair import CaseStatus, Diagnosis, Proposal
from holdfast.model.retry import Failure
from holdfast.model.values import JsonObject


@record
class CaseState:
    """One failure, until it is mended or a person has dealt with it.

    `looked`: rules and lessons have said what they know. `number` counts the requests to a model,
    `asked_at` is when the first about this failure was made, `complaint` is what was wrong with the
    last reply. `proposal` is what a person is asked about,
    `kept` what rules and lessons had to offer when a model was asked. `covers` are the listeners
    whose failure disproves the patch that was applied; `refused` are digests of operations that
    were refused or did not help.
    """

    case_id: str
    listener_id: str
    firing: int
    opened_at: float
    opened_seq: int
    failure: Failure | None = None
    status: CaseStatus = CaseStatus.OPEN
    looked: bool = False
    number: int = 0
    asked_at: float | None = None
    complaint: str = ""
    diagnosis: Diagnosis | None = None
    proposal: Proposal | None = None
    kept: Proposal | None = None
    patch_id: str = ""
    covers: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    reason: str = ""

    @property
    def busy(self) -> bool:
        """It goes on by itself: it is looked at, or a model is asked."""
        if self.status is CaseStatus.THINKING:
            return True
        return self.status is CaseStatus.OPEN and not self.looked

    @property
    def pending(self) -> bool:
        return self.status in (CaseStatus.OPEN, CaseStatus.THINKING, CaseStatus.PROPOSED)


@record
class Repairs:
    """`requests` and `tokens` are what models were asked and used in this run; `applied` has the
    number and the moment of the event that each of the patches is."""

    cases: Map[str, CaseState] = Map()
    patches: tuple[PlanPatched, ...] = ()
    requests: int = 0
    tokens: int = 0
    applied: tuple[tuple[int, float], ...] = ()

    def in_order(self) -> list[CaseState]:
        """The oldest first."""
        return sorted(self.cases.values(), key=_opened)

    def pending(self) -> Iterator[CaseState]:
        return (one for one in self.in_order() if one.pending)

    def busy(self) -> Iterator[CaseState]:
        return (one for one in self.in_order() if one.busy)

    def in_status(self, status: CaseStatus) -> Iterator[CaseState]:
        return (one for one in self.in_order() if one.status is status)

    def applied_for(self, listener_id: str) -> CaseState | None:
        """The case whose patch has this listener's failure disproves."""
        applied = self.in_status(CaseStatus.APPLIED)
        return next((one for one in applied if listener_id in one.covers), None)

    def pending_for(self, listener_id: str) -> CaseState | None:
        return next((one for one in self.pending() if one.listener_id == listener_id), None)


def _opened(case: CaseState) -> int:
    return case.opened_seq


NO_REPAIRS: Final = Repairs()

case_with = replacing(CaseState)
repairs_with = replacing(Repairs)


def operations_digest(operations: tuple[JsonObject, ...]) -> str:
    """What names operations whatever plan they are for, and whatever their new ids are."""
    text = canonical_json(list(operations))
    for number, new in enumerate(_new_ids(operations)):
        text = re.sub(rf"(?<![\w-]){re.escape(new)}(?![\w-])", f"#{number}", text)
    return digest(text)


def _new_ids(operations: tuple[JsonObject, ...]) -> tuple[str, ...]:
    parsed = operations_from_json(operations)
    inserted = (one.task.task_id for one in parsed if isinstance(one, InsertBefore))
    tasks = (task.task_id for one in parsed if isinstance(one, Add) for task in one.tasks)
    return tuple(dict.fromkeys((*added(parsed), *inserted, *tasks)))


def case_moved(case: CaseState, move: CaseMove, **changes: object) -> CaseState:
    return case_with(case, status=next_case(case.status, move), **changes)
