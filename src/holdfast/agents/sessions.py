"""Agents in Python: sessions, the hub that people follow and answer them through.

The names are the seed's. A session is a run like a plan's: it survives its process, a
pause in it is an event and not a waiting coroutine, and its followers read its
journal. A further message is the next turn; while one is open it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from copy import deepcopy
from typing import Any

from holdfast.agents.contexts import AgentContext, ResumePoint, ToolApprovalCallback
from holdfast.agents.events import AgentEventType, AgentExecutionEvent, Narrator
from holdfast.agents.strategy import ReActAgentStrategy
from holdfast.core.agent.state import HELPER, ReactState
from holdfast.core.agent.tables import ReActStage
from holdfast.core.approval import check_pattern, mode_for, read_rule
from holdfast.core.interactions.requests import is_wait, sound
from holdfast.core.interactions.wire import request_from_wire, request_to_wire, response_from_wire
from holdfast.core.run.state import QuestionState, RunState
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.i18n.message import joined, msg
from holdfast.interactions.handlers import Handlers
from holdfast.interactions.service import InteractionService, is_above
from holdfast.journal.codec import decode
from holdfast.journal.port import QuestionRow, questions_below
from holdfast.journal.vault import Vault
from holdfast.language.ids import chosen_id
from holdfast.language.strict import canonical_json, strict_json, strict_text
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalMode, Grant, Rules
from holdfast.model.interaction import InteractionRequest, InteractionResponse
from holdfast.model.rows import request_of
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.runs.handles import AT_REST, AgentSession, ConversationRun, PlanInstance, opened
from holdfast.runtime.engine import Engine
from holdfast.runtime.hub import AskedBelow, Recorded, Spoken
from holdfast.runtime.identity import LOCAL
from holdfast.runtime.machines import as_session
from holdfast.source.agentcheck import not_subject

__all__ = [
    "AgentContext",
    "AgentEventType",
    "AgentExecutionEvent",
    "AgentSession",
    "AgentSessionHub",
    "Handlers",
    "ReActAgentStrategy",
    "ReActStage",
    "ResumePoint",
    "ToolApprovalCallback",
]


class AgentSessionHub(InteractionService):
    """Starts sessions, follows them, and brings people's answers to whatever run asked."""

    def __init__(self, engine: Engine, handlers: Handlers, vault: Vault) -> None:
        super().__init__(engine, handlers, vault)
        # Commands of one moment are answered with one state: whose is what, only turns can tell.
        self._telling_apart = asyncio.Lock()

    async def open(
        self,
        agent_id: str,
        *,
        session_id: str | None = None,
        approval: Mapping[str, object] | None = None,
        by: str = LOCAL,
    ) -> AgentSession:
        """A new session; `approval` overrides the agent's rules for its tools."""
        rules = _session_rules(self.bound_agents(agent_id), approval or {})
        definition = self.engine.definitions.agent(agent_id)
        run_id = await self._free_id(session_id)
        command = c.StartSession(agent_id, by=strict_text(by, "by"), approval=rules)
        return AgentSession(self.engine, await self.engine.begin(run_id, definition, command))

    def bound_agents(self, agent_id: str) -> list[Agent]:
        """Whom a session's rules bind: the agent, and all those that work may be handed on to."""
        agent = self.engine.definitions.agent(agent_id).agent
        self._refuse_incomplete(agent)
        return self._with_helpers(agent)

    def _with_helpers(self, agent: Agent) -> list[Agent]:
        found = [agent]
        for one in agent.agents:
            found += self._with_helpers(self.engine.definitions.agent(one).agent)
        return found

    def _refuse_incomplete(self, agent: Agent) -> None:
        """An agent may be declared before its tools and helpers are, but not put to work."""
        library, facts = self.engine.definitions, self.engine.worker.tool_facts
        tools = [one for one in agent.tools if facts(one) is None]
        agents = [one for one in agent.agents if one not in library.agent_ids()]
        if tools or agents:
            unknown = [
                *(msg("no tool {name!r}", name=one) for one in tools),
                *(msg("no agent {name!r}", name=one) for one in agents),
            ]
            raise NotAllowed(
                msg(
                    "{agent} cannot work: there is {missing}; declare what is missing, or take it "
                    "off the agent",
                    agent=agent.agent_id,
                    missing=", ".join(unknown),
                )
            )
        for one in agent.agents:
            self._refuse_incomplete(library.agent(one).agent)

    async def _free_id(self, session_id: str | None) -> str:
        if session_id is None:
            return f"chat_{await self.engine.journal.next_number('chat'):06d}"
        chosen = chosen_id(session_id, "session", "session_id")
        if await self.engine.journal.version(chosen):
            raise NotAllowed(msg("there already is a session {id}", id=chosen))
        return chosen

    async def session(self, session_id: str) -> AgentSession:
        return AgentSession(self.engine, await self.engine.state(session_id))

    async def say(self, session_id: str, text: str, *, by: str = LOCAL) -> AgentSession:
        """The next turn; NotAllowed while one is open."""
        as_session(await self.engine.state(session_id))
        command = c.Say(strict_text(text, "message", longest=1_000_000), strict_text(by, "by"))
        return AgentSession(self.engine, await self.engine.submit(session_id, command))

    async def cancel(self, session_id: str, *, by: str = LOCAL, reason: str = "") -> AgentSession:
        as_session(await self.engine.state(session_id))
        command = c.Cancel(strict_text(by, "by"), strict_text(reason, "reason"))
        return AgentSession(self.engine, await self.engine.submit(session_id, command))

    async def resume(self, session_id: str, *, by: str = LOCAL) -> AgentSession:
        """Go on with a turn that failed."""
        as_session(await self.engine.state(session_id))
        command = c.Resume(strict_text(by, "by"))
        return AgentSession(self.engine, await self.engine.submit(session_id, command))

    async def subscribe(
        self, session_id: str, after: int | None = 0
    ) -> AsyncGenerator[AgentExecutionEvent, None]:
        """The session's events after record `after`, then each as it happens, then DONE.

        The stream ends with DONE when the session is at rest. With `after=None` it begins
        now, with the questions that are open.
        """
        state = as_session(await self.engine.state(session_id))
        _refuse_no_place(after, state.version)
        shown: set[str] = set()
        newcomer = after is None
        after = state.version if after is None else after
        narrator = await self._narrator(session_id, after)
        for asked in await self._unshown(state, shown, own=newcomer) if after else ():
            yield asked
        async with aclosing(self._heard(state, after)) as heard:
            async for one in heard:
                if isinstance(one, Spoken):
                    yield narrator.speak(one)
                elif isinstance(one, Recorded):
                    told = narrator.tell(one)
                    if told is not None and told.data.get("requestId") not in shown:
                        yield told
                if _asks_below(one):
                    for asked in await self._unshown(state, shown):
                        yield asked
        state = as_session(await self.engine.state(session_id))
        yield AgentExecutionEvent(
            AgentEventType.DONE, session_id, {"status": state.status.value, "turn": state.turn}
        )

    async def _narrator(self, session_id: str, after: int) -> Narrator:
        """One that knows what was told before, so that every follower hears the same."""
        narrator = Narrator(session_id)
        for record in await self.engine.journal.read(session_id, limit=after) if after else ():
            narrator.tell(Recorded(record.seq, record.at, decode(record)))
        return narrator

    async def _heard(
        self, state: ReactState, after: int
    ) -> AsyncGenerator[Recorded | Spoken | AskedBelow, None]:
        """What is recorded and said until the session is at rest."""
        if state.status in AT_REST and state.version <= after:
            return
        async with aclosing(self.engine.hub.listen(state.run_id, after)) as heard:
            async for one in heard:
                yield one
                if isinstance(one, Recorded):
                    current = await self.engine.state_since(state.run_id, one.seq)
                    if current.status in AT_REST and current.version <= one.seq:
                        return

    async def _open_questions(self, state: ReactState) -> list[QuestionRow]:
        """The open questions of a run and of the child runs below it."""
        rows = questions_below(self.engine.journal, state.run_id, state.root_id)
        return [one async for one in rows]

    async def _unshown(
        self, state: ReactState, shown: set[str], *, own: bool = False
    ) -> list[AgentExecutionEvent]:
        """Open questions of runs below, and of the session's `own`, that were not shown yet.

        They are not in the session's journal, so a follower that comes back is shown them again.
        """
        rows = [
            row
            for row in await self._open_questions(state)
            if row.question_id not in shown and (own or row.run_id != state.run_id)
        ]
        shown.update(row.question_id for row in rows)
        return [self._interaction(state.run_id, row) for row in rows]

    def _interaction(self, session_id: str, row: QuestionRow) -> AgentExecutionEvent:
        data = request_to_wire(request_of(row))
        return AgentExecutionEvent(AgentEventType.INTERACTION, session_id, data, at=row.opened_at)

    async def request_interaction(
        self, session_id: str, request: InteractionRequest | Mapping[str, Any]
    ) -> InteractionRequest:
        """Ask a person something in a session; the agent goes on with the answer.

        Returns the question as it was opened: its id is ours, so that it cannot be guessed.
        """
        if isinstance(request, Mapping):
            request = request_from_wire(request)
        self.handlers.check(request)
        request = deepcopy(sound(request))  # the caller may go on changing theirs
        async with self._telling_apart:
            before = as_session(await self.engine.state(session_id)).questions
            state = await self.engine.submit(session_id, c.Ask(request))
        return deepcopy(_asked_since(state, set(before)).request)

    async def pause_for_tool_approval(
        self,
        session_id: str,
        tool_call_id: str,
        tool_name: str,
        tool_args: Mapping[str, Any],
        context: AgentContext | None = None,
    ) -> InteractionRequest:
        """Put a call before a person: approve, retry, reject, terminate.

        A call that the agent itself wants asks by itself, and its open question is
        returned; between turns any call of the agent's tools may be proposed.
        """
        state = as_session(await self.engine.state(session_id))
        by = strict_text(context.user_id if context else LOCAL, "user_id")
        call_id = strict_text(tool_call_id, "tool_call_id")
        args = strict_json(dict(tool_args))
        open_one = _asked_for(state, call_id)
        if open_one is not None:
            return _same_call(open_one.request, tool_name, args)
        self._refuse_closed(state, tool_name, args)
        command = c.Propose(tool_name, args, call_id, by)
        await self.engine.submit(session_id, command)

        def asked_or_ended(state: RunState) -> bool:
            session = as_session(state)
            ended = bool(session.did) or session.status in AT_REST
            return ended or _asked_for(session, tool_call_id) is not None

        state = as_session(await self.engine.wait_for(session_id, asked_or_ended))
        open_one = _asked_for(state, tool_call_id)
        if open_one is None:
            why = state.did[0][2] if state.did else state.error
            raise NotAllowed(
                msg("{tool} could not be proposed: {reason}", tool=tool_name, reason=why)
            )
        return open_one.request

    def _refuse_closed(self, state: ReactState, tool: str, args: Mapping[str, Json]) -> None:
        """Nothing is recorded of a call that no person could consent to."""
        if tool not in state.tools:
            return  # the session itself says so
        facts = self.engine.worker.tool_facts(tool)
        if facts is None:
            raise NotAllowed(
                msg("{tool} could not be proposed: it is not available now", tool=tool)
            )
        rules, own = state.agent.approval, facts.approval
        mode = mode_for(tool, args, own=own, agent=rules, session=state.approval)
        if mode is ApprovalMode.DISABLED:
            raise NotAllowed(
                msg(
                    "{tool} could not be proposed: the tool {name} is disabled",
                    tool=tool,
                    name=tool,
                )
            )

    async def handle_interaction_response(
        self,
        session_id: str,
        response: InteractionResponse | Mapping[str, Any],
        *,
        by: str = LOCAL,
    ) -> PlanInstance | AgentSession | ConversationRun:
        """Answer a question of this run, or of a run below it."""
        if isinstance(response, Mapping):
            response = response_from_wire(response)
        row = await self._row(response.request_id)
        if not is_above(session_id, row):
            raise NotFound(
                msg(
                    "session {id} has no question {question}",
                    id=session_id,
                    question=response.request_id,
                )
            )
        await self.answer(response, by=by)
        return opened(self.engine, await self.engine.state(session_id))

    async def remember_approval(
        self,
        session_id: str,
        tool: str,
        *,
        pattern: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        uses: int | None = None,
        by: str = LOCAL,
    ) -> Grant:
        """Calls of `tool` that fit `pattern` need no further consent in this session."""
        session = as_session(await self.engine.state(session_id))
        facts = HELPER if tool in session.helpers else self.engine.worker.tool_facts(tool)
        if facts is None:
            raise NotFound(msg("there is no tool {tool!r}", tool=tool))
        wanted = strict_json(dict(pattern or {}))
        check_pattern(wanted, facts.parameters)
        if seconds is not None and not is_wait(seconds):
            message = msg("must be a number of seconds above 0, and at most ten years")
            told = msg("{name} {problem}", name="seconds", problem=message)
            raise InvalidAnswer(told, {"seconds": message})
        expires = None if seconds is None else self.engine.clock.now() + seconds
        command = c.RememberApproval(
            tool, facts.version, strict_text(by, "by"), wanted, expires, uses
        )
        async with self._telling_apart:
            before = as_session(await self.engine.state(session_id)).grants
            state = as_session(await self.engine.submit(session_id, command))
        return next(grant for key, grant in state.grants.items() if key not in before)

    async def revoke_approval(self, session_id: str, grant_id: str, *, by: str = LOCAL) -> None:
        await self.engine.submit(session_id, c.RevokeApproval(grant_id, strict_text(by, "by")))

    async def resume_points(self, session_id: str) -> list[ResumePoint]:
        """Where the session, or a run below it, waits for a person; the oldest first."""
        state = as_session(await self.engine.state(session_id))
        context = AgentContext(state.agent.agent_id, session_id, state.started_by)
        return [
            ResumePoint(
                resume_id=row.question_id,
                session_id=session_id,
                current_iteration=state.iteration,
                paused_stage=state.stage,
                interaction_request=request_of(row),
                context=context,
                original_task=state.text,
            )
            for row in await self._open_questions(state)
        ]


def _session_rules(agents: Sequence[Agent], approval: Mapping[str, object]) -> Rules:
    wrong = not_subject(agents[0], approval)
    for helper in agents[1:]:
        wrong = {name: wrong[name] for name in not_subject(helper, wrong)}
    if wrong:
        fields = {f"approval.{name}": message for name, message in wrong.items()}
        raise InvalidAnswer(joined("; ", wrong.values()), fields)
    return {tool: read_rule(raw) for tool, raw in approval.items()}


def _refuse_no_place(after: object, version: int) -> None:
    if after is not None and (type(after) is not int or not 0 <= after <= version):
        message = msg("must be a whole number from 0 to {n}, or None for now", n=version)
        told = msg("{name} {problem}", name="after", problem=message)
        raise InvalidAnswer(told, {"after": message})


def _same_call(
    request: InteractionRequest, tool: str, args: Mapping[str, Json]
) -> InteractionRequest:
    """The open question, if it is about this very call and no other of its id."""
    shown = request.context
    if shown.get("tool") != tool or canonical_json(shown.get("args")) != canonical_json(args):
        raise NotAllowed(
            msg(
                "{call} is another call, about which {title!r} is asked: give that tool and "
                "its arguments, or another call id",
                call=shown.get("call_id"),
                title=request.title,
            )
        )
    return request


def _asks_below(one: Recorded | Spoken | AskedBelow) -> bool:
    if isinstance(one, Recorded):
        return isinstance(one.event, e.ChildHeard) and one.event.status == RunStatus.PAUSE
    return isinstance(one, AskedBelow)


def _asked_since(state: RunState, before: set[str]) -> QuestionState:
    """The new question that belongs to no call; calls may have asked at the same moment."""
    fresh = (one for key, one in state.questions.items() if key not in before)
    return next(one for one in fresh if one.step_id.startswith("q"))


def _asked_for(state: ReactState, call_id: str) -> QuestionState | None:
    """The open question of the call that the model knows by `call_id`."""
    for question_id in state.open_questions:
        question = state.questions[question_id]
        if question.request.context.get("call_id") == call_id:
            return question
    return None
