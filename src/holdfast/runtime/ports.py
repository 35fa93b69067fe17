"""What the engine asks of those who do the work and of those who judge failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.state import PlanState
from holdfast.model.commands import Outcome, ToolFacts
from holdfast.model.effects import CallFunction, CallTool, Conclude, ConsultPlanner, RunSnippet


class Worker(Protocol):
    """Carries out effects; reports what came of them and never raises for it."""

    def tool_facts(self, name: str) -> ToolFacts | None:
        """What the core must know of a tool, or None when there is none of that name."""

    async def perform(
        self,
        effect: CallTool | RunSnippet | CallFunction | Conclude,
        listener: CompiledListener,
        state: PlanState,
        now: float,
        late: Callable[[Outcome], None],
    ) -> Outcome:
        """One attempt; a result that comes after the time-out goes to `late`."""

    async def close(self) -> None:
        """Nobody will hear of a late result any more."""


class Planner(Protocol):
    """Judges failures, and is told of every change of a task's status."""

    async def retries_granted(self, effect: ConsultPlanner, state: PlanState) -> int: ...

    def tasks_changed(self, before: PlanState, after: PlanState) -> None:
        """Called after each commit."""
