"""What the chat pages show: agents, sessions, and one session with its entries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.console.formatting import query
from holdfast.console.transcript import Called, Entry, Transcript
from holdfast.console.views.facts import Fact, facts
from holdfast.console.views.run import open_cards
from holdfast.core.agent.state import ReactState
from holdfast.journal.codec import decode
from holdfast.journal.port import RunQuery
from holdfast.model.agent import Agent
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Permission, agent, run_of
from holdfast.server.routes.chats import find
from holdfast.server.schemas.runs import RunLine
from holdfast.server.services import Services
from holdfast.server.showing import listed

PAGE: Final = 50
RECORDS: Final = 600
"""How many records a chat is read from at first; a turn has five to twenty."""

LONGEST_RESULT: Final = 20_000

_AT_WORK: Final = frozenset({RunStatus.RUNNING, RunStatus.CONTINUE})
_ENDED: Final = frozenset({RunStatus.CANCELLING, RunStatus.CANCELLED})

STANDINGS: Final[Mapping[str, str]] = {
    "ready": "idle",
    "running": "running",
    "waiting": "waiting",
    "retrying": "retrying",
    "lost": "waiting",
    "done": "done",
    "provided": "done",
    "failed": "failed",
    "refused": "failed",
    "rejected": "cancelled",
    "retry": "retrying",
    "skipped": "skipped",
    "expired": "failed",
    "stopped": "cancelled",
}
"""The condition of a call, by its status."""


@dataclass(frozen=True, slots=True)
class ModelView:
    """An agent's model; `scripted`: it follows a script and needs no key."""

    name: str
    scripted: bool = False


@dataclass(frozen=True, slots=True)
class AgentView:
    agent_id: str
    name: str
    description: str
    tools: tuple[str, ...]
    model: ModelView | None


@dataclass(frozen=True, slots=True)
class Session:
    run: RunLine
    turn: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ChatsPage:
    sessions: tuple[Session, ...]
    older: str | None
    before: str | None
    withheld: bool
    """There are agents, but the reader may start a session with none."""

    @property
    def part(self) -> str:
        return f"/console/parts/chats{query(before=self.before)}"


@dataclass(frozen=True, slots=True)
class ChatView:
    """One session for one reader; `why_not` is the key of the reason why they cannot write."""

    session_id: str
    root_id: str
    agent: AgentView
    status: RunStatus
    version: int
    replied: int
    entries: tuple[Entry, ...]
    earlier: int | None
    usage: Mapping[str, Any]
    operates: bool

    @property
    def at_work(self) -> bool:
        return self.status in _AT_WORK

    @property
    def is_open(self) -> bool:
        return self.at_work or self.status is RunStatus.PAUSE

    @property
    def thinking(self) -> bool:
        """The model is being asked: no call is under way."""
        return self.at_work and not any(
            isinstance(one, Called) and not one.over for one in self.entries
        )

    @property
    def why_not(self) -> str:
        if self.status in _ENDED:
            return "ended"
        if not self.operates:
            return "role"
        if self.agent.model is None:
            return "model"
        if self.status is RunStatus.PAUSE:
            return "asks"
        return "works" if self.at_work else ""

    @property
    def resumable(self) -> bool:
        return self.status is RunStatus.ERROR and self.operates

    @property
    def stoppable(self) -> bool:
        return self.is_open and self.operates


async def chats_page(served: Services, caller: Caller, before: str | None) -> ChatsPage:
    asked = RunQuery(kind="react", roots_only=True, before=before, limit=PAGE)
    lines, following = await listed(served, caller, asked)
    sessions = tuple(map(_session, lines))
    older = f"/console/chat{query(before=following)}" if following else None
    known = served.app.engine.definitions.agent_ids()
    return ChatsPage(sessions, older, before, bool(known) and not agents_of(served, caller))


def _session(line: RunLine) -> Session:
    summary: Mapping[str, Any] = line.summary.model_dump()
    return Session(line, summary.get("turn") or 0, summary.get("waiting") or 0)


def agents_of(served: Services, caller: Caller) -> tuple[AgentView, ...]:
    """The agents that the caller may start a session with."""
    library = served.app.engine.definitions
    names = sorted(one for one in library.agent_ids() if caller.may(Permission.OPERATE, agent(one)))
    return tuple(_agent(served, library.agent(one).agent) for one in names)


def _agent(served: Services, agent: Agent) -> AgentView:
    return AgentView(
        agent.agent_id,
        agent.name or agent.agent_id,
        agent.description,
        agent.tools,
        _model(served, agent),
    )


def _model(served: Services, agent: Agent) -> ModelView | None:
    chosen = agent.model or served.app.models.default_model
    if chosen is None:
        return None
    if isinstance(chosen, str):
        return ModelView(chosen)
    return ModelView(chosen.model_name, scripted=chosen.system == "function")


async def chat_view(
    served: Services, caller: Caller, session_id: str, records: int = RECORDS
) -> ChatView:
    """The session's last records; `earlier` asks for twice as many."""
    state = await find(served, caller, session_id)
    after = max(0, state.version - records)
    told = Transcript.of(await _recorded(served, state, after))
    told.put_cards(await open_cards(served, caller, state))
    return ChatView(
        session_id=session_id,
        root_id=state.root_id,
        agent=_agent(served, state.agent),
        status=state.status,
        version=state.version,
        replied=told.replied,
        entries=told.in_order(),
        earlier=2 * records if after else None,
        usage=_usage(state),
        operates=caller.may(Permission.OPERATE, await _root_subject(served, state)),
    )


async def _recorded(served: Services, state: ReactState, after: int) -> list[Recorded]:
    stored = await served.journal.read(state.run_id, after, state.version - after)
    return [Recorded(one.seq, one.at, decode(one)) for one in stored]


async def _root_subject(served: Services, state: ReactState) -> str:
    root = await served.journal.run(state.root_id)
    return agent(state.agent.agent_id) if root is None else run_of(root.kind, root.name)


def _usage(state: ReactState) -> Mapping[str, Any]:
    usage = state.usage
    return {
        "requests": state.requests,
        "input": f"{usage.input_tokens:,}",
        "output": f"{usage.output_tokens:,}",
        "cost": "" if usage.cost is None else f"${usage.cost:.4f}",
    }


def args_of(call: Called) -> tuple[Fact, ...]:
    return facts(call.args)


def result_of(content: Json) -> str:
    """A result as text; of a very long one the beginning."""
    text = (
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
    )
    return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + " …"
