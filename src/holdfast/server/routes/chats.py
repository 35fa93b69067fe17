"""Chats over HTTP: sessions with agents, turn by turn.

Letting a tool run unasked is consent given beforehand, whether it is a rule of a new session or
an approval that is remembered. So it takes what an answer takes: the role, and a person. Under
four eyes it is refused, as the session itself says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response

from holdfast.agents.approval import lets_run, read_rule
from holdfast.errors import AuthorError, InvalidAnswer, NotPermitted
from holdfast.i18n.message import msg
from holdfast.model.approval import ApprovalRule, Grant
from holdfast.model.interaction import InteractionType
from holdfast.model.rows import QuestionQuery, RunRow
from holdfast.model.run import RunKind, RunStatus
from holdfast.runs.handles import AgentSession
from holdfast.runtime.machines import as_session
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, agent, may_answer, run_of
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.problems import JSON
from holdfast.server.questions import Questions
from holdfast.server.routes.catalogue import known_agent
from holdfast.server.routing import new_router
from holdfast.server.schemas.chats import (
    ApprovalGiven,
    ChatGiven,
    ChatListed,
    ChatShown,
    ChatsListed,
    GrantId,
    GrantShown,
    GrantsShown,
    MessageGiven,
    SessionId,
    session_shown,
)
from holdfast.server.schemas.runs import Before, Limit, Statuses
from holdfast.server.services import Served, Services
from holdfast.server.showing import RunsOf, query_of, visible
from holdfast.server.streams.newest import Newest
from holdfast.views.reader import RunVersion
from holdfast.views.records import RunView, SessionView
from holdfast.views.wire import from_json

router = new_router("chats")

MOST_OPEN = 1000
"""How many open questions are shown with a session; `interactionsNext` leads to the others."""


def _session(run: RunVersion) -> tuple[RunView, SessionView]:
    view = run.view()
    assert view.session is not None
    return view, view.session


async def _shown(served: Services, caller: Caller, run: RunVersion) -> dict[str, Any]:
    questions = Questions(served, caller)
    view, session = _session(run)
    query = QuestionQuery(frozenset({"open"}), root_id=view.root_id, limit=MOST_OPEN)
    found, following = await questions.listed(query, below=view.run_id)
    cards = []
    for one in found:
        cards.append(await questions.shown(one, whole=False, language=caller.language))
        await asyncio.sleep(0)  # a thousand take long, and others want a turn
    return {
        **session_shown(view, session),
        "interactions": cards,
        "interactionsNext": following,
        "serverTime": served.now(),
    }


CHATS: Final = RunsOf(as_session, _shown, ChatShown)


async def open_session(
    served: Services,
    caller: Caller,
    agent_id: str,
    session_id: str | None = None,
    approval: dict[str, Any] | None = None,
) -> AgentSession:
    await caller.require(served, Permission.OPERATE, subject=agent(agent_id))
    known_agent(served, caller, agent_id)
    rules = {tool: _rule(tool, raw) for tool, raw in (approval or {}).items()}
    if any(map(lets_run, rules.values())):
        bound = served.app.sessions.bound_agents(agent_id)
        _refuse_to_approve(caller, agent(agent_id), [one.asking.role for one in bound])
    by = caller.principal.id
    session = await served.app.sessions.open(agent_id, session_id=session_id, approval=rules, by=by)
    await served.newest.note(by, Newest(session.id, session.version))
    return session


async def say(served: Services, caller: Caller, session_id: str, message: str) -> Newest:
    """The next turn; what was recorded before it is where its followers begin."""
    state = await CHATS.find(served, caller, session_id)
    await caller.require(served, Permission.OPERATE, session_id)
    by = caller.principal.id
    await served.app.sessions.say(session_id, message, by=by)
    newest = Newest(session_id, state.version)
    await served.newest.note(by, newest)
    return newest


def _rule(tool: str, raw: object) -> ApprovalRule:
    try:
        return read_rule(raw)
    except AuthorError as error:
        place = f"approval.{tool}"
        told = msg("{place}: {problem}", place=place, problem=str(error))
        raise InvalidAnswer(told, {place: str(error)}) from None


def _refuse_to_approve(caller: Caller, subject: str, roles: Iterable[str | None]) -> None:
    """Unless the caller could approve the calls of all who ask these roles."""
    kind = InteractionType.TOOL_APPROVAL
    for role in roles:
        reason = may_answer(caller.principal, role, kind, subject, started_by=None, four_eyes=False)
        if reason is not None:
            raise NotPermitted(
                msg("letting calls run unasked is an approval: {reason}", reason=reason)
            )


@router.post("/chats", status_code=201, response_model=ChatShown)
@answered_again(CHATS.again(201))
async def open_chat(body: ChatGiven, served: Served, caller: Called) -> dict[str, Any]:
    """Open a session with an agent; nothing happens in it before its first message."""
    session = await open_session(served, caller, body.agent_id, body.session_id, body.approval)
    return await _shown(served, caller, await CHATS.find(served, caller, session.id))


@router.get("/chats", response_model=ChatsListed, responses=NOT_FOUND)
async def list_chats(
    served: Served,
    caller: Called,
    status: Statuses = None,
    agent_id: Annotated[str | None, Query(alias="agentId", min_length=1, max_length=200)] = None,
    before: Before = None,
    limit: Limit = 50,
) -> ChatsListed:
    """The sessions that the caller may see, the newest first."""
    await caller.require(served, Permission.READ)
    query = query_of(RunKind.CHAT, status, name=agent_id, before=before, limit=limit)
    rows, following = await visible(served, caller, query)
    return ChatsListed(chats=[_listed(row) for row in rows], next=following)


def _listed(row: RunRow) -> ChatListed:
    summary = json.loads(row.summary)
    return ChatListed(
        session_id=row.run_id,
        agent_id=row.name,
        title=row.title,
        message=summary.get("prompt") or "",
        status=RunStatus(row.status),
        turn=summary.get("turn", 0),
        waiting=summary.get("waiting", 0),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


@router.get("/chats/{session_id}", response_model=ChatShown)
async def get_chat(session_id: SessionId, served: Served, caller: Called) -> dict[str, Any]:
    """A session: what was said and called, how it stands, and what it asks."""
    return await _shown(served, caller, await CHATS.find(served, caller, session_id))


@router.post("/chats/{session_id}/messages", response_model=ChatShown)
@answered_again(CHATS.again())
async def send_message(
    session_id: SessionId, body: MessageGiven, served: Served, caller: Called
) -> dict[str, Any]:
    """Say the next turn; 409 while one is open. Answers when it is recorded, not when it ends."""
    await say(served, caller, session_id, body.message)
    return await _shown(served, caller, await CHATS.find(served, caller, session_id))


@router.get("/chats/{session_id}/approvals", response_model=GrantsShown)
async def list_approvals(session_id: SessionId, served: Served, caller: Called) -> GrantsShown:
    """The approvals that this session remembers."""
    state = await CHATS.find(served, caller, session_id)
    return _grants(served, state)


async def _granted_again(claimed: Claimed, request: Request, served: Services) -> Response:
    """The approval that this very request had remembered."""
    await CHATS.find(served, await identify(request), claimed.run_id)
    [event] = await served.reader.events(claimed.run_id, claimed.version - 1, limit=1)
    grant = from_json(Grant, json.loads(event.payload)["grant"])
    shown = GrantShown.model_validate(grant)
    return Response(shown.model_dump_json(by_alias=True), 201, media_type=JSON)


@router.post("/chats/{session_id}/approvals", status_code=201, response_model=GrantShown)
@answered_again(_granted_again)
async def remember_approval(
    session_id: SessionId, body: ApprovalGiven, served: Served, caller: Called
) -> Grant:
    """Have the session remember an approval: fitting calls of the tool are not asked about."""
    state = await CHATS.find(served, caller, session_id)
    view, session = _session(state)
    _refuse_to_approve(caller, await _root_subject(served, view), [session.role])
    return await served.app.sessions.remember_approval(
        session_id,
        body.tool,
        pattern=body.pattern,
        seconds=body.seconds,
        uses=body.uses,
        by=caller.principal.id,
    )


async def _root_subject(served: Services, state: RunView) -> str:
    root = await served.reader.row(state.root_id)
    assert root is not None
    return run_of(root.kind, root.name)


async def _revoked_again(claimed: Claimed, request: Request, served: Services) -> Response:
    state = await CHATS.find(served, await identify(request), claimed.run_id)
    shown = _grants(served, state)
    return Response(shown.model_dump_json(by_alias=True), media_type=JSON)


@router.delete("/chats/{session_id}/approvals/{grant_id}", response_model=GrantsShown)
@answered_again(_revoked_again)
async def revoke_approval(
    session_id: SessionId, grant_id: GrantId, served: Served, caller: Called
) -> GrantsShown:
    """Take a remembered approval back; the approvals that are left are answered."""
    await CHATS.find(served, caller, session_id)
    await caller.require(served, Permission.ANSWER, session_id)
    await served.app.sessions.revoke_approval(session_id, grant_id, by=caller.principal.id)
    return _grants(served, await CHATS.find(served, caller, session_id))


def _grants(served: Services, run: RunVersion) -> GrantsShown:
    return GrantsShown.model_validate(
        {"approvals": _session(run)[1].grants, "server_time": served.now()}
    )
