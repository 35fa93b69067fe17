"""The seed's own paths: a turn as a stream, its questions as events, and their answers.

A POST starts a turn and streams it until DONE. A GET is an EventSource (`seed_following`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field

from holdfast.agents.events import AgentEventType, AgentExecutionEvent, Narrator
from holdfast.errors import InvalidAnswer, NotFound, NotPermitted
from holdfast.i18n.message import msg
from holdfast.interactions.service import is_above
from holdfast.language.ids import may_be_chosen
from holdfast.language.instants import iso
from holdfast.model.interaction import InteractionResponse
from holdfast.model.run import RunStatus
from holdfast.runtime.identity import acting, current
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, agent
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.questions import Questions
from holdfast.server.routes.chats import CHATS, open_session, say
from holdfast.server.routes.interactions import answer
from holdfast.server.routing import new_router
from holdfast.server.schemas.chats import LONGEST_MESSAGE
from holdfast.server.schemas.interactions import Given, Shown
from holdfast.server.services import Served, Services
from holdfast.server.streams.newest import Newest
from holdfast.server.streams.seed import Following, frame, places_in
from holdfast.server.streams.sse import EventStream, Frames, sse
from holdfast.views.published import StoredEvent
from holdfast.views.timeline import decoded

router = new_router("chats", prefix="/api/agent/chat/react")

RESUMED: Final = "用户响应已处理，正在恢复执行"
_BEGINS_A_TURN: Final = frozenset({"TurnStarted", "CallProposed"})
_ENDS_A_TURN: Final = {
    AgentEventType.COMPLETED: RunStatus.DONE,
    AgentEventType.ERROR: RunStatus.ERROR,
}

STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events: `event` is the type, `data` the whole event",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class TurnGiven(Given):
    """`userId` is a label that changes nothing: who speaks is who is authenticated."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"message": "用户消息", "sessionId": "session-123", "userId": "user-456"}]
        }
    )

    message: str = Field(min_length=1, max_length=LONGEST_MESSAGE)
    session_id: str | None = Field(None, max_length=256)
    user_id: str | None = Field(None, max_length=256)
    agent_id: str | None = Field(
        None, max_length=200, description="For a new session; default: the only agent there is."
    )


class ResponseGiven(Given):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "sessionId": "session-123",
                    "requestId": "request-456",
                    "selectedOptionId": "approve",
                    "feedback": "用户反馈（可选）",
                    "data": {},
                }
            ]
        }
    )

    session_id: str | None = Field(None, max_length=256)
    request_id: str = Field(min_length=1, max_length=200)
    selected_option_id: str | None = Field(None, max_length=200)
    feedback: str | None = Field(None, max_length=10_000)
    data: dict[str, Any] | None = None
    user_id: str | None = Field(None, max_length=256)


class ResponseTaken(Shown):
    success: bool
    message: str
    session_id: str
    timestamp: str


async def _turn_again(claimed: Claimed, request: Request, served: Services) -> Response:
    """The turn that this very request started before, from its beginning."""
    caller = await identify(request)
    await CHATS.find(served, caller, claimed.run_id)
    records = await served.reader.records(claimed.run_id)
    since, until = _stretch(records, claimed)
    if until is None:
        turn = Newest(claimed.run_id, since)
        return await sse(served, _turn(served, turn, caller.language), request)
    past = _past_turn(claimed.run_id, records[:until], since, caller.language)
    return await sse(served, past, request)


def _stretch(records: Sequence[StoredEvent], claimed: Claimed) -> tuple[int, int | None]:
    """The record before the turn that was begun by `version`, and the last one before the next
    turn, if there is one."""
    begun = [one.seq for one in records if one.type.partition("@")[0] in _BEGINS_A_TURN]
    first = max((seq for seq in begun if seq <= claimed.version), default=1)
    following = next((seq for seq in begun if seq > claimed.version), None)
    return first - 1, None if following is None else following - 1


async def _past_turn(
    session_id: str, records: Sequence[StoredEvent], since: int, language: str
) -> Frames:
    """A turn that others came after: what is recorded of it, as its followers were told."""
    narrator, ended, turn = Narrator(session_id), RunStatus.DONE, 0
    for record in decoded(records):
        told = narrator.tell(record)
        if told is None or record.seq <= since:
            continue
        yield frame(told, language)
        turn = told.data.get("turn", turn)
        ended = _ENDS_A_TURN.get(told.type, ended)
    data = {"status": ended.value, "turn": turn}
    yield frame(AgentExecutionEvent(AgentEventType.DONE, session_id, data), language)


@router.post("/stream", status_code=200, responses=STREAM, response_class=EventStream)
@answered_again(_turn_again)
async def start_turn(
    body: TurnGiven, request: Request, served: Served, caller: Called
) -> EventStream:
    """Start a turn and stream it until DONE; a session id that is new opens that session."""
    session_id = await _session(served, caller, body)
    turn = await say(served, caller, session_id, body.message)
    return await sse(served, _turn(served, turn, caller.language), request)


async def _session(served: Services, caller: Caller, body: TurnGiven) -> str:
    if body.session_id is not None and await served.reader.version(body.session_id):
        await CHATS.find(served, caller, body.session_id)
        return body.session_id
    acts = current()
    assert acts is not None
    # The request is carried out when its message is: an empty session is not that yet.
    with acting(replace(acts, claim=None)):
        agent_id = body.agent_id or _usual_agent(served, caller)
        return (await open_session(served, caller, agent_id, body.session_id)).id


def _usual_agent(served: Services, caller: Caller) -> str:
    """The agent where none is named: one that is configured, or the only one."""
    if served.settings.default_agent is not None:
        return served.settings.default_agent
    every = sorted(served.app.engine.definitions.agent_ids())
    known = [one for one in every if caller.may(Permission.OPERATE, agent(one))]
    if every and not known:
        raise NotPermitted(msg("your roles do not permit you to speak to any agent: ask an admin"))
    if len(known) != 1:
        listed = ", ".join(known) or msg("none is declared")
        raise InvalidAnswer(
            msg("say which agent, as agentId: {names}", names=listed),
            {"agentId": msg("one of: {names}", names=listed)},
        )
    return known[0]


async def _turn(served: Services, turn: Newest, language: str) -> Frames:
    events = served.app.sessions.subscribe(turn.session_id, turn.since)
    async with aclosing(events):
        async for event in events:
            yield frame(event, language)


@router.get("/stream", status_code=200, responses=STREAM, response_class=EventStream)
async def follow_newest_session(
    request: Request,
    served: Served,
    caller: Called,
    session_id: Annotated[
        str | None,
        Query(
            alias="sessionId",
            max_length=256,
            description="The session to follow; default: those that the caller speaks in.",
        ),
    ] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    after: Annotated[str | None, Query(max_length=1200, description="As Last-Event-ID.")] = None,
) -> EventStream:
    """Follow a session, or those that the caller speaks in from the newest on; for an EventSource.

    A session that does not exist yet is waited for, so that a page may listen before it speaks.
    """
    await caller.require(served, Permission.READ)
    if session_id is not None and not await _may_be_opened(served, session_id):
        await CHATS.find(served, caller, session_id)
    following = Following(served, caller, session_id)
    return await sse(served, following.frames(places_in(last_event_id or after)), request)


async def _may_be_opened(served: Services, session_id: str) -> bool:
    return may_be_chosen(session_id) and not await served.reader.version(session_id)


async def _taken_again(claimed: Claimed, request: Request, served: Services) -> Response:
    body = ResponseGiven.model_validate(await request.json())
    taken = _taken(served, body.session_id or claimed.run_id)
    return JSONResponse(taken.model_dump(by_alias=True))


@router.post("/interaction_response", response_model=ResponseTaken)
@answered_again(_taken_again)
async def respond_to_interaction(
    body: ResponseGiven, served: Served, caller: Called
) -> ResponseTaken:
    """Answer what a session, or a run below it, has asked; it goes on at once."""
    questions = Questions(served, caller)
    question = await questions.find(body.request_id)
    row = question.row
    session_id = body.session_id or row.run_id
    if not is_above(session_id, row):
        raise NotFound(
            msg("session {id} has no question {question}", id=session_id, question=body.request_id)
        )
    response = InteractionResponse(
        body.request_id, session_id, body.selected_option_id, body.data or {}, body.feedback
    )
    await answer(served, questions, question, response)
    return _taken(served, session_id)


def _taken(served: Services, session_id: str) -> ResponseTaken:
    return ResponseTaken(
        success=True, message=RESUMED, session_id=session_id, timestamp=iso(served.now())
    )
