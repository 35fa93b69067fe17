"""The strategy: a task in, the stream of what an agent does about it out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.agents.contexts import AgentContext, ResumePoint, ToolApprovalCallback
from holdfast.agents.events import AgentEventType, AgentExecutionEvent
from holdfast.core.approval import read_rule
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.i18n.message import msg
from holdfast.runs.handles import AgentSession

if TYPE_CHECKING:
    from holdfast.agents.sessions import AgentSessionHub


class ReActAgentStrategy:
    """Runs a task with an agent and streams what happens, until it rests."""

    def __init__(self, hub: AgentSessionHub) -> None:
        self.hub = hub

    async def execute_stream(
        self, task: str, context: AgentContext
    ) -> AsyncGenerator[AgentExecutionEvent, None]:
        """One turn; the session is opened if there is none of that id yet."""
        session = await self._session(context)
        before = session.version
        await self.hub.say(session.id, task, by=context.user_id)
        async with aclosing(self._told(session.id, before, context)) as events:
            async for event in events:
                yield event

    async def resume_from_tool_approval(
        self,
        resume_point: ResumePoint,
        approval_callback: ToolApprovalCallback | None = None,
    ) -> AsyncGenerator[AgentExecutionEvent, None]:
        """Give the person's response and stream what follows from it."""
        response = resume_point.user_response
        if response is None:
            raise InvalidAnswer("the resume point has no user_response to go on with")
        session_id, context = resume_point.session_id, resume_point.context
        before = (await self.hub.session(session_id)).version
        given = replace(response, request_id=resume_point.interaction_request.request_id)
        await self.hub.handle_interaction_response(session_id, given, by=context.user_id)
        if approval_callback is not None:
            context = replace(context, tool_approval_callback=approval_callback)
        async with aclosing(self._told(session_id, before, context)) as events:
            async for event in events:
                yield event

    async def _session(self, context: AgentContext) -> AgentSession:
        if context.session_id is not None:
            try:
                session = await self.hub.session(context.session_id)
            except NotFound:
                pass
            else:
                _refuse_another(session, context)
                return session
        return await self.hub.open(
            context.agent_id,
            session_id=context.session_id,
            approval=context.approval,
            by=context.user_id,
        )

    async def _told(
        self, session_id: str, after: int, context: AgentContext
    ) -> AsyncGenerator[AgentExecutionEvent, None]:
        async with aclosing(self.hub.subscribe(session_id, after)) as events:
            async for event in events:
                if event.type is AgentEventType.INTERACTION:
                    await _tell_callback(event, context)
                yield event


def _refuse_another(session: AgentSession, context: AgentContext) -> None:
    """A session keeps the agent and the rules that it was opened with."""
    if session.agent_id != context.agent_id:
        raise NotAllowed(
            msg(
                "{id} is a session with {agent}: name that agent",
                id=session.id,
                agent=session.agent_id,
            )
        )
    rules = {tool: read_rule(raw) for tool, raw in context.approval.items()}
    if rules and rules != session.rules:
        raise NotAllowed(
            msg(
                "{id} was opened with other rules of approval, and keeps them: leave "
                "`approval` out to go on with it, or name a new session",
                id=session.id,
            )
        )


async def _tell_callback(event: AgentExecutionEvent, context: AgentContext) -> None:
    callback = context.tool_approval_callback
    if callback is None or event.data["type"] != "TOOL_APPROVAL":
        return
    shown = event.data["context"]
    tool, args = shown.get("tool"), shown.get("args")
    if isinstance(tool, str) and isinstance(args, Mapping):
        call_id = str(shown.get("call_id", ""))
        await callback.request_approval(event.session_id, call_id, tool, args, context)
