"""Recorded journals: a header with the definition and what became of the run, then its records.

They are kept for ever: a journal that some version wrote must replay in every later one
to the same end. Never mend a recording; write an upcaster. The first recordings are all
of plans, and their headers say `plan` where later ones say `kind` and `definition`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.core.agent.state import ReactState, result
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.core.storing import agent_digest, plan_digest, record_from_json
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model.agent import Agent
from holdfast.model.plan import Plan
from holdfast.runtime.machines import (
    Definition,
    blank,
    definition_from,
    definition_of,
    kind_and_body,
    replay,
)

HERE = Path(__file__).parent


def summary(state: RunState) -> dict[str, Any]:
    """What a person would call the outcome of a run."""
    return {
        "status": state.status.value,
        "version": state.version,
        **_outcome(state),
        "steps": {one: [step.status.value, step.firing] for one, step in sorted_items(state.steps)},
        "questions": {one: asked.status.value for one, asked in sorted_items(state.questions)},
        "failed": list(state.failed),
    }


def _outcome(state: RunState) -> dict[str, Any]:
    match state:
        case PlanState():
            tasks = {
                one: [task.status.value, task.context] for one, task in sorted_items(state.tasks)
            }
            return {"tasks": tasks, "verification": dict(state.verification)}
        case ReactState():
            return {"turn": state.turn, "said": len(list(state.messages)), "result": result(state)}
        case ConversationState():
            results = {task.id: task.result for _, task in sorted_items(state.tasks)}
            return {"phase": state.phase.value, "turn": state.turn, "results": results}
        case _:
            raise AssertionError(f"no recording of a {type(state).__name__} yet")


def sorted_items(found: Any) -> list[tuple[str, Any]]:
    return sorted(found.items())


def write(name: str, state: RunState, records: Sequence[Record]) -> None:
    definition = definition_of(state)
    kind, _, body = kind_and_body(definition)
    header = {
        "run_id": state.run_id,
        "kind": kind,
        "definition": body,
        "digest": definition.digest,
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


def definition(header: dict[str, Any]) -> Definition:
    kind = header.get("kind", "plan")
    body = header.get("definition") or header["plan"]
    return definition_from(kind, body, digest_of(kind, body) or header["digest"])


def digest_of(kind: str, body: dict[str, Any]) -> str | None:
    """The name by content that the version at hand gives it."""
    match kind:
        case "plan":
            return plan_digest(record_from_json(Plan, body))
        case "react":
            return agent_digest(record_from_json(Agent, body))
        case _:
            return None


def replayed(header: dict[str, Any], records: Sequence[Record]) -> RunState:
    timed = ((record.at, decode(record)) for record in records)
    return replay(blank(header["run_id"], definition(header)), timed)
