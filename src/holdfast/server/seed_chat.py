"""The seed's own paths: a turn as a stream, its questions as events, and their answers.

A POST starts a turn and streams it until DONE. A GET is an EventSource: it names no session,
follows the one that the caller last spoke in, and starts none. Until there is one, and while
the last turn it has heard of is over, it stays open and waits. It ends with DONE like every
stream; the EventSource comes back by itself with the last id it saw, which names the session
too (`17@chat_000001`), because by then the newest may be another one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from fastapi import Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field

from holdfast.core.react.state import ReactState
from holdfast.core.run.draft import iso
from holdfast.core.run.state import RunState
from holdfast.desk import is_above
from holdfast.errors import InvalidAnswer, NotFound, NotPermitted
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.live import AT_REST
from holdfast.model.interaction import InteractionResponse
from holdfast.model.run import RunStatus
from holdfast.runtime.acting import acting, current
from holdfast.runtime.hub import Recorded
from holdfast.runtime.machines import as_session
from holdfast.server.chat_schemas import LONGEST_MESSAGE
from holdfast.server.chats import find, open_session, say
from holdfast.server.guard import Called, Caller, identify
from holdfast.server.idempotency import Claimed, answered_again
from holdfast.server.interaction_schemas import Given, Shown
from holdfast.server.interactions import answer
from holdfast.server.newest import Newest
from holdfast.server.principal import Permission
from holdfast.server.questions import Questions
from holdfast.server.routes import new_router
from holdfast.server.services import Served, Services
from holdfast.server.streams import EventStream, Frame, Frames, sse
from holdfast.server.telling import moved
from holdfast.stream import AgentEventType, AgentExecutionEvent, Narrator

router = new_router("chats", prefix="/api/agent/chat/react")

RESUMED: Final = "用户响应已处理，正在恢复执行"
_BEGINS_A_TURN: Final = frozenset({"TurnStarted", "CallProposed"})
_ENDS_A_TURN: Final = {
    AgentEventType.COMPLETED: RunStatus.DONE,
    AgentEventType.ERROR: RunStatus.ERROR,
}
_PLACE: Final = re.compile(r"(?P<seq>\d{1,18})(@(?P<session>[A-Za-z][\w.:-]{0,255}))?")

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
    await find(served, caller, claimed.run_id)
    records = await served.journal.read(claimed.run_id)
    since, until = _stretch(records, claimed)
    if until is None:
        return await sse(served, _turn(served, Newest(claimed.run_id, since)), request)
    return await sse(served, _past_turn(claimed.run_id, records[:until], since), request)


def _stretch(records: Sequence[Record], claimed: Claimed) -> tuple[int, int | None]:
    """The record before the turn that was begun by `version`, and the last one before the next
    turn, if there is one."""
    begun = [one.seq for one in records if one.type.partition("@")[0] in _BEGINS_A_TURN]
    first = max((seq for seq in begun if seq <= claimed.version), default=1)
    following = next((seq for seq in begun if seq > claimed.version), None)
    return first - 1, None if following is None else following - 1


async def _past_turn(session_id: str, records: Sequence[Record], since: int) -> Frames:
    """A turn that others came after: what is recorded of it, as its followers were told."""
    narrator, ended, turn = Narrator(session_id), RunStatus.DONE, 0
    for record in records:
        told = narrator.tell(Recorded(record.seq, record.at, decode(record)))
        if told is None or record.seq <= since:
            continue
        yield _frame(told)
        turn = told.data.get("turn", turn)
        ended = _ENDS_A_TURN.get(told.type, ended)
    data = {"status": ended.value, "turn": turn}
    yield _frame(AgentExecutionEvent(AgentEventType.DONE, session_id, data))


@router.post("/stream", status_code=200, responses=STREAM, response_class=EventStream)
@answered_again(_turn_again)
async def start_turn(
    body: TurnGiven, request: Request, served: Served, caller: Called
) -> EventStream:
    """Start a turn and stream it until DONE; a session id that is new opens that session."""
    session_id = await _session(served, caller, body)
    turn = await say(served, caller, session_id, body.message)
    return await sse(served, _turn(served, turn), request)


async def _session(served: Services, caller: Caller, body: TurnGiven) -> str:
    if body.session_id is not None and await served.journal.version(body.session_id):
        await find(served, caller, body.session_id)
        return body.session_id
    acts = current()
    assert acts is not None
    # The request is carried out when its message is: an empty session is not that yet.
    with acting(replace(acts, claim=None)):
        agent_id = body.agent_id or _usual_agent(served, caller)
        return (await open_session(served, caller, agent_id, body.session_id)).id


def _usual_agent(served: Services, caller: Caller) -> str:
    """Whom to speak to where nobody is named: one that is configured, or the only one."""
    if served.settings.default_agent is not None:
        return served.settings.default_agent
    every = sorted(served.app.engine.library.agent_ids())
    known = [one for one in every if caller.may(Permission.OPERATE, one)]
    if every and not known:
        raise NotPermitted("your roles do not permit you to speak to any agent: ask an admin")
    if len(known) != 1:
        listed = ", ".join(known) or "none is declared"
        raise InvalidAnswer(
            f"say which agent, as agentId: {listed}", {"agentId": f"one of: {listed}"}
        )
    return known[0]


async def _turn(served: Services, turn: Newest) -> Frames:
    events = served.app.sessions.subscribe(turn.session_id, turn.since)
    async with aclosing(events):
        async for event in events:
            yield _frame(event)


def _frame(event: AgentExecutionEvent, *, named: bool = False) -> Frame:
    place = f"{event.seq}@{event.session_id}" if named else event.seq
    return Frame(event.to_wire(), event.type.value, None if event.seq is None else place)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an EventSource was; without a session it is whichever is the newest."""

    seq: int
    session_id: str | None

    @property
    def cursor(self) -> str:
        return str(self.seq) if self.session_id is None else f"{self.seq}@{self.session_id}"


@dataclass(frozen=True, slots=True)
class Start:
    """What an EventSource is told; `after` is None for what is open and what comes."""

    session_id: str
    after: int | None


def _begin_at(newest: Newest, place: Place, state: ReactState) -> int:
    """After what was seen of this session; of another one its newest turn is all news."""
    same = place.session_id in (None, newest.session_id)
    return place.seq if same and place.seq <= state.version else newest.since


def _place(text: str | None) -> Place | None:
    if not text:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise InvalidAnswer(
            "after is the id of an event, as 17@chat_000001", {"after": "no event has such an id"}
        )
    return Place(int(found["seq"]), found["session"])


@router.get("/stream", status_code=200, responses=STREAM, response_class=EventStream)
async def follow_newest_session(
    request: Request,
    served: Served,
    caller: Called,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    after: Annotated[str | None, Query(max_length=300, description="As Last-Event-ID.")] = None,
) -> EventStream:
    """Follow the session that the caller last spoke in; for an EventSource."""
    await caller.require(served, Permission.READ)
    place = _place(last_event_id or after)
    return await sse(served, Following(served, caller).frames(place), request)


class Following:
    """One EventSource: waits for news of the caller's newest session, and tells one turn."""

    def __init__(self, served: Services, caller: Caller) -> None:
        self._served = served
        self._caller = caller
        self._stirred = asyncio.Event()

    async def frames(self, place: Place | None) -> Frames:
        with ExitStack() as watching:
            who = self._caller.principal.id
            watching.callback(self._served.newest.watch(who, self._stirred.set))
            start = None
            if place is None:
                place, start = await self._newcomer()
                yield moved(place.cursor)
            start = start or await self._news(place, watching)
        events = self._served.app.sessions.subscribe(start.session_id, start.after)
        async with aclosing(events):
            async for event in events:
                yield _frame(event, named=True)

    async def _newcomer(self) -> tuple[Place, Start | None]:
        """Where the newest session is now; one that is under way is told from here on."""
        newest = await self._newest()
        if newest is None:
            return Place(0, None), None
        state = await self._state(newest)
        place = Place(state.version, state.run_id)
        return place, None if state.status in AT_REST else Start(state.run_id, None)

    async def _news(self, place: Place, watching: ExitStack) -> Start:
        """A session and where in it to begin, as soon as there is something to tell."""
        watched: set[str] = set()
        while True:
            self._stirred.clear()
            newest = await self._newest()
            if newest is not None:
                if newest.session_id not in watched:
                    watched.add(newest.session_id)
                    hub = self._served.app.engine.hub
                    watching.callback(hub.watch(newest.session_id, self._stir))
                state = await self._state(newest)
                after = _begin_at(newest, place, state)
                if await self._tells(state, after):
                    return Start(newest.session_id, after)
            await self._stirred.wait()

    def _stir(self, state: RunState) -> None:
        self._stirred.set()

    async def _state(self, newest: Newest) -> ReactState:
        return as_session(await self._served.app.engine.state(newest.session_id))

    async def _newest(self) -> Newest | None:
        served, who = self._served, self._caller.principal.id
        newest = await served.newest.of(served.journal, who, served.now())
        if newest is None:
            return None
        try:
            await find(served, self._caller, newest.session_id)
        except NotFound:
            return None
        return newest

    async def _tells(self, state: ReactState, after: int) -> bool:
        """Whether a follower would hear anything but DONE."""
        if state.status not in AT_REST:
            return True
        narrator = Narrator(state.run_id)
        for record in await self._served.journal.read(state.run_id, after):
            if narrator.tell(Recorded(record.seq, record.at, decode(record))) is not None:
                return True
        return False


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
    row = (await Questions(served, caller).find(body.request_id)).row
    session_id = body.session_id or row.run_id
    if not is_above(session_id, row):
        raise NotFound(f"session {session_id} has no question {body.request_id}")
    response = InteractionResponse(
        body.request_id, session_id, body.selected_option_id, body.data or {}, body.feedback
    )
    await answer(served, caller, response)
    return _taken(served, session_id)


def _taken(served: Services, session_id: str) -> ResponseTaken:
    return ResponseTaken(
        success=True, message=RESUMED, session_id=session_id, timestamp=iso(served.now())
    )
