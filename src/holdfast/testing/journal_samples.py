"""Plausible rows, records and appends, for tests of journals and of what stands on them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.journal.port import Append, AuditRecord, Journal, QuestionRow, Record, RunRow


def run_row(run_id: str = "inst_000001", **changes: Any) -> RunRow:
    """A plausible row of a root run."""
    row = RunRow(
        run_id=run_id,
        kind="plan",
        name="onboard_will_zhang",
        definition="sha256:plan",
        status="running",
        active=False,
        wake_at=None,
        root_id=run_id,
        parent_id=None,
        created_at=1000.25,
        updated_at=1000.25,
        title="Will Zhang's onboarding",
        summary='{"done": 0}',
    )
    return replace(row, **changes)


def question_row(question_id: str, run_id: str = "inst_000001", **changes: Any) -> QuestionRow:
    """A plausible open question."""
    row = QuestionRow(
        question_id=question_id,
        run_id=run_id,
        root_id=run_id,
        status="open",
        type="missing_info",
        title="电脑型号",
        role="approver",
        opened_at=1001.5,
        deadline=None,
        closed_at=None,
        body='{"fields": {}}',
    )
    return replace(row, **changes)


def records(after: int, count: int, payload: str = '{"value": 1}') -> list[Record]:
    """The `count` records that follow `after`."""
    return [
        Record(seq, 1000.0 + seq / 8, "happened", payload)
        for seq in range(after + 1, after + count + 1)
    ]


def audit_record(action: str = "answered", **changes: Any) -> AuditRecord:
    """A plausible entry of the audit."""
    return replace(AuditRecord(1000.5, "will.zhang", action, "q1", "inst_000001"), **changes)


def birth(run_id: str = "inst_000001", count: int = 1, **changes: Any) -> Append:
    """The append that creates a run; `changes` are those of its row."""
    return Append(run_id, 0, records(0, count), run_row(run_id, **changes))


def step(run_id: str, expected: int, count: int = 1, **company: Any) -> Append:
    """The append that moves a run on."""
    return Append(run_id, expected, records(expected, count), **company)


async def outcomes(journal: Journal, appends: Sequence[Append]) -> list[int | BaseException]:
    """What became of appends made all at once, in order."""
    return await asyncio.gather(*map(journal.append, appends), return_exceptions=True)
