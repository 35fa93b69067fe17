"""What the engine asks of those who do the work and of those who judge failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.model.commands import Outcome, ToolFacts
from holdfast.model.effects import (
    AskModel,
    CallFunction,
    CallTool,
    Conclude,
    ConsultPlanner,
    ConversationWork,
    RunSnippet,
)
from holdfast.model.retry import Advice

Performed: TypeAlias = CallTool | RunSnippet | CallFunction | Conclude | AskModel | ConversationWork


@dataclass(frozen=True, slots=True)
class Words:
    """What comes back besides the outcome: a result after the time-out, and a model's text
    while it speaks (None takes back what it has said of this reply so far)."""

    late: Callable[[Outcome], None]
    live: Callable[[str | None], None]


class Worker(Protocol):
    """Carries out effects; reports what came of them and never raises for it."""

    def tool_facts(self, name: str) -> ToolFacts | None:
        """What the core must know of a tool, or None when there is none of that name."""

    def attends(self, state: RunState) -> bool:
        """Whether somebody is there to do this run's work."""

    async def perform(
        self,
        effect: Performed,
        state: RunState,
        now: float,
        words: Words,
    ) -> Outcome:
        """One attempt; a result that comes after the time-out goes to `words.late`."""

    def conclude(self, effect: Conclude, state: RunState, now: float) -> Outcome | None:
        """What a result that is at hand comes to; None where finding out may take time."""

    async def close(self) -> None:
        """Nobody will hear of a late result any more."""


class Planner(Protocol):
    """Judges failures, and is told of every change of a task's status."""

    async def advise(self, effect: ConsultPlanner, state: PlanState) -> Advice: ...

    def tasks_changed(self, before: PlanState, after: PlanState) -> None:
        """Called after each commit."""
