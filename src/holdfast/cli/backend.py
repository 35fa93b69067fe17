"""What commands talk to: a home that this process opens, or a server that `--url` names.

Commands are written against these two protocols, which speak in the records of `views` and
`model`. A `Reader` only looks, so it works while another process drives the runs; a `Backend` also
changes them. `HomeReader` and `HomeBackend` ask the read model of this process, `ServerBackend`
the HTTP client; the records are the same, so a command has one way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from holdfast.errors import HoldfastError, NotAllowed

if TYPE_CHECKING:
    from holdfast.conversations.runner import ConversationRunner
    from holdfast.model.conversation import AfterFailure
    from holdfast.model.interaction import InteractionResponse
    from holdfast.model.plan import Plan
    from holdfast.model.repair import Proposal
    from holdfast.model.rows import QuestionQuery, RunQuery
    from holdfast.model.values import JsonObject
    from holdfast.runtime.hub import AskedBelow, Spoken
    from holdfast.views.records import (
        CaseView,
        InteractionView,
        Raised,
        RunLine,
        RunView,
        TimelineEntry,
    )

Update: TypeAlias = "TimelineEntry | Spoken | AskedBelow | RunView"
Updates: TypeAlias = AsyncGenerator[Update, None]
Outcomes: TypeAlias = Mapping[str, HoldfastError | None]


@dataclass(frozen=True, slots=True)
class Partner:
    """An agent to chat with."""

    agent_id: str
    name: str


@dataclass(frozen=True, slots=True)
class OwnPatch:
    """A person's patch of a run's plan: operations, or None for what brings the run to today's
    version of its plan. `listener_id` is the failed listener that it mends, if any."""

    operations: Sequence[JsonObject] | None
    reason: str = ""
    listener_id: str = ""


class Reader(Protocol):
    """Reads runs, by what is committed of them."""

    @property
    def look_again(self) -> float:
        """Seconds between two looks where no news is announced."""

    def is_driven(self) -> bool:
        """Whether a process seems to drive the runs, so that waiting makes sense."""

    async def runs(self, query: RunQuery) -> list[RunLine]: ...

    async def run(self, run_id: str) -> RunView: ...

    async def is_newest(self, run_id: str, version: int) -> bool:
        """Whether nothing was committed of the run after event `version`."""

    async def questions(self, query: QuestionQuery) -> list[InteractionView]: ...

    async def inbox(self, query: QuestionQuery) -> list[InteractionView]:
        """As `questions`, each with what its run is about."""

    async def question(self, question_id: str) -> InteractionView | None:
        """With the drafts and reminders so far."""

    async def open_questions(self, run_id: str) -> list[InteractionView]:
        """What the run and its sub-runs ask, the oldest first."""

    async def cases(self, run_id: str) -> list[CaseView]:
        """The failures of a plan's run that a repair could mend, the oldest first; those of its
        sub-runs are theirs."""

    async def timeline(self, run_id: str) -> list[TimelineEntry]: ...

    async def tracebacks(self, run_id: str) -> list[Raised]:
        """What its tools raised, where the caller may see it; the newest first."""

    async def graph(self, run_id: str, *, svg: bool) -> tuple[str, str]:
        """The plan's id, and the plan drawn with the status of its tasks."""

    def follow(self, run_id: str, after: int = 0, *, views: bool = False) -> Updates:
        """The run's timeline after event `after`, and each entry as it is committed; with `views`
        the run itself after each page of entries."""


class Backend(Reader, Protocol):
    """Where runs can be changed; what is refused raises and changes nothing.

    Plans are read before it is opened, all else within `opened`.
    """

    def opened(self) -> AbstractAsyncContextManager[None]: ...

    @property
    def keeps_runs(self) -> bool:
        """Whether its runs outlive this process."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether a server drives the runs."""

    @property
    def is_shared(self) -> bool:
        """Whether the runs go on without this process."""

    async def refuse_without_tools(self, run_id: str, *, anyway: bool) -> None:
        """NotAllowed when the run needs tools that are not known where it is driven."""

    async def plan(self, name: str) -> Plan: ...

    async def start(self, plan_id: str, prompt: str, values: Mapping[str, Any]) -> str:
        """A new run's id, once it is on disk."""

    async def provide(self, run_id: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Hand values to the open forms; the future ends when all of them are taken."""

    async def answer(self, response: InteractionResponse) -> None: ...

    async def answer_many(
        self, question_ids: Sequence[str], response: InteractionResponse
    ) -> Outcomes:
        """The same answer to exactly these questions; the outcome of each."""

    async def resume(self, run_id: str, failed: AfterFailure | None = None) -> None:
        """`failed` says how a conversation goes on after a failure."""

    async def cancel(self, run_id: str, reason: str) -> None: ...

    async def fork(self, run_id: str, seq: int) -> str:
        """A new run's id, which goes on from event `seq` of one that is over."""

    async def rehearsed(self, run_id: str, patch: OwnPatch) -> Proposal:
        """What a patch would do, and the problems that speak against it; nothing is changed."""

    async def propose(self, run_id: str, patch: OwnPatch) -> str | None:
        """The id of the question that asks for consent, None where it is answered already;
        PatchRejected has all that is wrong."""

    async def runner(self, run_id: str) -> ConversationRunner | None:
        """Carries a conversation on in this process; None where that cannot be done."""

    async def partner(self, wanted: str | None) -> Partner:
        """The agent that was named, else the only one."""

    async def open_chat(self, agent_id: str) -> str:
        """A new session's id."""

    async def say(self, session_id: str, message: str) -> None: ...


def question_about(cases: Sequence[CaseView], patch_id: str) -> str | None:
    """The open question that asks for consent to a patch."""
    about = (one for one in cases if one.proposal and one.proposal.patch.patch_id == patch_id)
    return next((one.question_id for one in about), None)


def the_only_agent(known: Sequence[str]) -> str:
    if len(known) > 1:
        raise NotAllowed(f"there are several agents, name one with --agent: {', '.join(known)}")
    return known[0]
