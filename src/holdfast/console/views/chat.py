"""What the chat pages show: agents, sessions, and one session with its entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.console.formatting import query
from holdfast.console.views.card import Card
from holdfast.console.views.facts import Fact, facts
from holdfast.console.views.options import OptionView, options_of
from holdfast.console.views.run import open_cards
from holdfast.console.views.text_blocks import TextBlock, text_blocks
from holdfast.errors import NotFound
from holdfast.i18n.message import msg
from holdfast.language.display import indented
from holdfast.model.agent import Agent
from holdfast.model.rows import RunQuery
from holdfast.model.run import RunStatus
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Permission, agent
from holdfast.server.schemas.runs import RunLine
from holdfast.server.services import Services
from holdfast.server.showing import listed
from holdfast.views.chat import RECORDS as RECORDS
from holdfast.views.chat import Asked, Called, ChatEntry, Replied
from holdfast.views.records import SessionView

PAGE: Final = 50
LONGEST_RESULT: Final = 20_000

_AT_WORK: Final = frozenset({RunStatus.RUNNING, RunStatus.CONTINUE})
_ENDED: Final = frozenset({RunStatus.CANCELLING, RunStatus.CANCELLED})

CONDITIONS: Final[Mapping[str, str]] = {
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
    entries: tuple[ChatEntry, ...]
    cards: Mapping[str, Card]
    records: int
    earlier: int | None
    usage: Mapping[str, Any]
    operates: bool

    def condition(self, call: Called) -> str:
        return CONDITIONS[call.standing]

    def args(self, call: Called) -> tuple[Fact, ...]:
        return facts(call.args)

    def result(self, call: Called) -> str:
        """Of a very long result the beginning."""
        content = call.content
        text = content if isinstance(content, str) else indented(content)
        return text if len(text) <= LONGEST_RESULT else text[:LONGEST_RESULT] + " …"

    def blocks(self, reply: Replied) -> Iterator[TextBlock]:
        return text_blocks(reply.text)

    def option(self, asked: Asked) -> OptionView | None:
        """The option that a question was closed with."""
        options = options_of(asked.request)
        return next((one for one in options if one.option.option_id == asked.option_id), None)

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
    subject = await caller.subject_of(served, session_id)
    run = await served.reader.at(session_id)
    view, agent_of_session = run.view(), run.agent()
    if view.session is None or agent_of_session is None:
        raise NotFound(msg("{id} is not a session with an agent", id=session_id))
    told = await served.reader.chat(session_id, records)
    cards = await open_cards(served, caller, view)
    return ChatView(
        session_id=session_id,
        root_id=view.root_id,
        agent=_agent(served, agent_of_session),
        status=view.status,
        version=view.version,
        replied=told.replied,
        entries=told.entries,
        cards={one.id: one for one in cards},
        records=records,
        earlier=told.earlier,
        usage=_usage(view.session),
        operates=caller.may(Permission.OPERATE, subject),
    )


def _usage(session: SessionView) -> Mapping[str, Any]:
    usage = session.usage
    return {
        "requests": session.requests,
        "input": f"{usage.input_tokens:,}",
        "output": f"{usage.output_tokens:,}",
        "cost": "" if usage.cost is None else f"${usage.cost:.4f}",
    }
