"""The backend: where runs live and where commands go, be it a home on this disk or a server.

Commands are written against these two protocols and know no third thing. `Reading` only
looks, so it works while another process drives the runs; a `House` is where they can be
changed. `local` has the backend of this process, `remote` that of a server: there a run is
folded from the same events, so what is shown and printed is the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from holdfast.conversations.runner import ConversationRunner
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.run.state import RunState
from holdfast.errors import HoldfastError, NotAllowed
from holdfast.journal.port import QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.model.conversation import AfterFailure
from holdfast.model.interaction import InteractionResponse
from holdfast.runtime.hub import AskedBelow, Recorded, Spoken
from holdfast.runtime.tracebacks import Traceback

Heard: TypeAlias = AsyncGenerator[Recorded | Spoken | AskedBelow, None]
Outcomes: TypeAlias = Mapping[str, HoldfastError | None]


@dataclass(frozen=True, slots=True)
class Partner:
    """An agent to talk to."""

    agent_id: str
    name: str


class Reading(Protocol):
    """A look at runs, by what is committed of them."""

    @property
    def look_again(self) -> float:
        """Seconds between two looks where nobody says that there is something new."""

    def is_driven(self) -> bool:
        """Whether somebody seems to be at work here, so that waiting makes sense."""

    async def runs(self, query: RunQuery) -> list[RunRow]: ...

    async def version(self, run_id: str) -> int: ...

    async def questions(self, query: QuestionQuery) -> list[QuestionRow]: ...

    async def question(self, question_id: str) -> QuestionRow | None: ...

    async def about(self, row: QuestionRow) -> str:
        """What the run that a question stands under is about, in one line."""

    async def beginning(self, run_id: str) -> RunState:
        """The run before its first event."""

    async def records(self, run_id: str, after: int = 0) -> list[Recorded]: ...

    async def tracebacks(self, run_id: str) -> list[Traceback]:
        """What its tools raised, as far as one may see it; the newest first."""

    async def state(self, run_id: str) -> RunState: ...

    def listen(self, run_id: str, after: int = 0) -> Heard:
        """The run's events from `after` on, and then each as it is committed."""


class Backend(Reading, Protocol):
    """Where runs can be changed; whatever is refused raises and changes nothing.

    Its plans can be had at once, all else once it is entered.
    """

    def entered(self) -> AbstractAsyncContextManager[None]: ...

    @property
    def keeps_runs(self) -> bool:
        """Whether its runs outlive this process."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the runs go on without this process."""

    async def is_newest(self, state: RunState) -> bool:
        """Whether nothing more has been committed of the run."""

    async def refuse_without_tools(self, run_id: str, *, anyway: bool) -> None:
        """NotAllowed when the run needs tools that are not known where it is driven."""

    async def plan(self, name: str) -> CompiledPlan: ...

    async def start(self, plan: CompiledPlan, prompt: str, values: Mapping[str, Any]) -> str:
        """A new run's id, once it is on disk."""

    async def provide(self, run_id: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Hand values to the open forms; what is returned ends when all is said about them."""

    async def answer(self, response: InteractionResponse) -> None: ...

    async def answer_many(
        self, question_ids: Sequence[str], response: InteractionResponse
    ) -> Outcomes:
        """The same answer to exactly these questions; what became of each."""

    async def resume(self, run_id: str, failed: AfterFailure | None = None) -> None:
        """`failed` says how a conversation goes on after a failure."""

    async def cancel(self, run_id: str, reason: str) -> None: ...

    async def runner(self, state: ConversationState) -> ConversationRunner | None:
        """For whoever goes on with a conversation here; None where that cannot be done."""

    async def partner(self, wanted: str | None) -> Partner:
        """The agent that was named, else the only one."""

    async def open_chat(self, agent_id: str) -> str:
        """A new session's id."""

    async def say(self, session_id: str, message: str) -> None: ...


def the_only_agent(known: Sequence[str]) -> str:
    if len(known) > 1:
        raise NotAllowed(f"there are several agents, name one with --agent: {', '.join(known)}")
    return known[0]
