"""Recorded journals: a header with the plan and what became of the run, then its records.

They are kept for ever: a journal that some version wrote must replay in every later one
to the same end. Never mend a recording; write an upcaster.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.decide import blank, replay
from holdfast.core.plan.state import PlanState
from holdfast.core.source.planjson import plan_digest, plan_from_json, plan_to_json
from holdfast.journal.codec import decode
from holdfast.journal.port import Record

HERE = Path(__file__).parent


def summary(state: PlanState) -> dict[str, Any]:
    """What a person would call the outcome of a run."""
    return {
        "status": state.status.value,
        "version": state.version,
        "tasks": {
            one: [task.status.value, task.context] for one, task in sorted_items(state.tasks)
        },
        "steps": {one: [step.status.value, step.firing] for one, step in sorted_items(state.steps)},
        "questions": {one: asked.status.value for one, asked in sorted_items(state.questions)},
        "verification": dict(state.verification),
        "failed": list(state.failed),
    }


def sorted_items(found: Any) -> list[tuple[str, Any]]:
    return sorted(found.items())


def write(name: str, state: PlanState, records: Sequence[Record]) -> None:
    header = {
        "run_id": state.run_id,
        "plan": plan_to_json(state.plan.plan),
        "digest": state.plan.digest,
        "summary": summary(state),
    }
    lines = [header, *({**_fields(record)} for record in records)]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (HERE / f"{name}.jsonl").write_text(text + "\n", encoding="utf-8")


def _fields(record: Record) -> dict[str, Any]:
    payload = json.loads(record.payload)
    return {"seq": record.seq, "at": record.at, "type": record.type, "payload": payload}


def read(file: Path) -> tuple[dict[str, Any], list[Record]]:
    header, *lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return header, [
        Record(line["seq"], line["at"], line["type"], json.dumps(line["payload"])) for line in lines
    ]


def replayed(header: dict[str, Any], records: Sequence[Record]) -> PlanState:
    plan = plan_from_json(header["plan"])
    compiled = CompiledPlan(plan, plan_digest(plan))
    timed = ((record.at, decode(record)) for record in records)
    return replay(blank(header["run_id"], compiled), timed)
