"""What the engine and its worker ask of each other, of the planner and of tests."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias, get_args

from holdfast.core.plan.state import PlanState
from holdfast.model import effects as f
from holdfast.model.commands import Outcome
from holdfast.model.retry import Advice
from holdfast.runtime.actor import Actor

Performed: TypeAlias = (
    f.CallTool | f.RunSnippet | f.CallFunction | f.Conclude | f.AskModel | f.ConversationWork
)
PERFORMED: Final = get_args(Performed)
"""The same as a tuple, which `isinstance` asks at a fifth of the price."""


class Receiver(Protocol):
    """Takes what comes back besides the outcome, and knows what is still wanted."""

    def wants(self, actor: Actor, work: f.Work) -> bool:
        """Whether the run waits for this work and may send it; any thread may ask."""

    def late(self, work: f.Work, outcome: Outcome) -> None:
        """A result after the time-out."""

    def live(self, work: f.Work, text: str | None) -> None:
        """A model's text while it speaks; None takes back what it has said of this reply so far."""


class Planner(Protocol):
    """Judges failures, and is told of every change of a task's status."""

    async def advise(self, effect: f.ConsultPlanner, state: PlanState) -> Advice: ...

    hears_of_tasks: bool

    def tasks_changed(self, before: PlanState, after: PlanState) -> None:
        """Called after each commit, where it `hears_of_tasks`."""


class FaultPoints(Protocol):
    """Named points at which a test may bring the process down."""

    def reach(self, point: str) -> None:
        """Called at `append.before`, `append.after`, `effect.before` and `effect.after`."""
