"""A case as a model is asked about it: a badge for an employee whom HR does not know."""

from __future__ import annotations

from typing import Any

from holdfast.model.message import ModelReply, ToolCall, ToolOffer, Usage
from holdfast.model.repair import (
    Diagnosis,
    Evidence,
    Level,
    PlanPatch,
    Proposal,
    Rehearsal,
    RehearsedCall,
    Verdict,
)
from holdfast.model.retry import Cause
from holdfast.model.values import JsonObject
from holdfast.repair.contract import Asked

EVIDENCE = (
    Evidence(7, '{"tool":"grant_access","args":{"employee_id":"ZS009"}}'),
    Evidence(9, '{"error":"HR has no employee \'ZS009\': create the profile first","status":409}'),
)
RULES = Diagnosis(Cause.PRECONDITION, "HR does not know the employee", EVIDENCE[1:], "rule:absent")
CREATE = {
    "op": "insert_before",
    "listener_id": "L002",
    "task": {"task_id": "R1", "name": "Profile"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": "create_employee_profile",
        "args": {"name": "{001.context.name}"},
    },
}
LOOK = {**CREATE, "listener": {**CREATE["listener"], "tool": "query_profile"}}  # type: ignore[dict-item]
CONFIRM = {"op": "ask_first", "listener_id": "L002", "choice": {"title": "Go on?", "message": ""}}


def proposal(number: int, *operations: JsonObject, level: Level = Level.ACT) -> Proposal:
    calls = (RehearsedCall("R1", "create_employee_profile", {"name": "Will Zhang"}, asks=True),)
    verdict = Verdict(
        f"digest{number}",
        level,
        warnings=("one more call",),
        success=Rehearsal(calls, ("Go on?",), reached=True),
        failure=Rehearsal(),
    )
    patch = PlanPatch(f"k{number}", "base", operations, "as HR says")
    return Proposal(patch, verdict, {"words": ["Before L002, a profile is made."]})


CANDIDATES = (proposal(1, LOOK, level=Level.LOOK), proposal(2, CREATE), proposal(3, CONFIRM))
WRITTEN = proposal(9, CREATE)


class Judge:
    """Takes every patch, or has something to say against each; keeps what it was given."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        self.judged: list[tuple[tuple[JsonObject, ...], str]] = []

    def __call__(
        self, operations: tuple[JsonObject, ...], reason: str
    ) -> Proposal | tuple[str, ...]:
        self.judged.append((operations, reason))
        return self.problems or WRITTEN


TOOLS = (
    ToolOffer("create_employee_profile", "Makes a profile.", {"type": "object", "properties": {}}),
    ToolOffer("query_profile", "Looks a profile up.", {"type": "object"}),
)


def asked(**changes: Any) -> Asked:
    usual: dict[str, Any] = {
        "run_id": "inst_000001",
        "case_id": "c1",
        "number": 1,
        "evidence": EVIDENCE,
        "diagnosis": RULES,
        "judge": Judge(),
        "candidates": CANDIDATES,
        "plan": '{"id":"L002","tool":"grant_access"}',
        "tools": TOOLS,
        "listeners": ("L002", "L004"),
        "taken": frozenset({"001", "002", "L002", "R1"}),
    }
    return Asked(**{**usual, **changes})


def said(text: str = "", *calls: tuple[str, JsonObject | str], finish: str = "stop") -> ModelReply:
    """A reply; a call's arguments as text are no JSON object."""
    made = tuple(
        ToolCall(f"call_{number}", tool, {}, args)
        if isinstance(args, str)
        else ToolCall(f"call_{number}", tool, args)
        for number, (tool, args) in enumerate(calls)
    )
    return ModelReply(text, made, Usage(120, 30), "small-model", finish)


def diagnosed(**changes: Any) -> dict[str, Any]:
    """The arguments of a sound call, with changes."""
    usual = {"cause": "precondition", "because": ["E2"], "choice": "k2", "summary": "No profile."}
    return {**usual, **changes}


def patched(*operations: Any, **changes: Any) -> dict[str, Any]:
    usual = {"cause": "precondition", "because": ["E2"], "operations": list(operations)}
    return {**usual, **changes}
