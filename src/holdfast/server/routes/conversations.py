"""Conversations over HTTP: a goal becomes tasks, and the server pursues them.

What a caller wants is recorded before it is answered; from then on the conversation is the
server's to pursue (see `supervisor`), and its events are those of its run.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import ConfigDict, Field

from holdfast.conversations.arguments import LONGEST_INPUT, goal
from holdfast.conversations.runner import open_conversation
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.i18n.catalogue import said
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure, ConversationSettings, EngineState, OnFailure
from holdfast.model.rows import RunRow
from holdfast.model.run import RunKind, RunStatus
from holdfast.runtime.identity import acting, current
from holdfast.runtime.machines import as_conversation
from holdfast.server.auth.authentication import Called, Caller
from holdfast.server.auth.principal import CONVERSATIONS as SUBJECT
from holdfast.server.auth.principal import Permission
from holdfast.server.middleware.idempotency import answered_again
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import Before, Given, Limit, Shown, Statuses
from holdfast.server.services import Served, Services
from holdfast.server.showing import RunsOf, query_of, visible
from holdfast.views.conversation import answer_in, snapshot_of
from holdfast.views.reader import RunVersion
from holdfast.views.records import ConversationView, RunView

router = new_router("conversations")

_ID: Final = r"^[A-Za-z0-9][\w.:-]*$"

ConversationId = Annotated[str, Path(pattern=_ID, max_length=256, examples=["conv_000001"])]


class ConversationGiven(Given):
    model_config = ConfigDict(json_schema_extra={"examples": [{"input": "帮我分析销售数据"}]})

    input: str = Field(min_length=1, max_length=LONGEST_INPUT)
    id: str | None = Field(None, max_length=64, description="Default: the next free one.")
    max_parallel: int = Field(1, ge=1, le=100)
    on_failure: OnFailure = OnFailure.ERROR
    confirm_tasks: bool = Field(False, description="A person sees the tasks before they run.")


class InputGiven(Given):
    input: str = Field(
        min_length=1, max_length=LONGEST_INPUT, examples=["Prepare Will Zhang's first day"]
    )


class SubTaskShown(Shown):
    id: str
    description: str
    type: str
    priority: int
    dependencies: list[str]
    status: str
    result: Any
    skipped: str = Field(description="Why it is left out; empty where it is not.")


class FailureShown(Shown):
    """How a turn that failed may go on: `failed` would be tried again, `skips` left out with
    what depends on it, and about `doubtful` a person is asked first."""

    choices: list[AfterFailure]
    failed: list[str]
    skips: list[str]
    doubtful: list[str]


class ConversationShown(Shown):
    """`version` is the last record that this shows: follow the run from there."""

    id: str
    status: RunStatus
    state: EngineState
    turn: int
    input: str
    progress: float
    total_tasks: int
    completed_tasks: int
    skipped_tasks: int
    tasks: list[SubTaskShown]
    answer: str
    error: str
    failure: FailureShown | None
    will_pause: bool
    waiting: int
    started_by: str
    version: int
    created_at: float
    updated_at: float
    server_time: float


class ConversationListed(Shown):
    id: str
    title: str
    status: RunStatus
    state: EngineState
    turn: int
    total_tasks: int
    completed_tasks: int
    skipped_tasks: int
    waiting: int
    created_at: float
    updated_at: float


class ConversationsListed(Shown):
    """The newest first; `next` is the `before` of the next page."""

    conversations: list[ConversationListed]
    next: str | None


def _shown(served: Services, caller: Caller, run: RunVersion) -> ConversationShown:
    def spoken(text: str) -> str:
        return said(text, caller.language)

    view, state = viewed(run)
    numbered = sorted(state.tasks, key=lambda one: int(one.step_id[1:]))
    return ConversationShown(
        id=view.run_id,
        status=view.status,
        state=state.phase,
        turn=state.turn,
        input=state.text,
        progress=state.progress,
        total_tasks=state.total,
        completed_tasks=state.completed,
        skipped_tasks=state.skipped,
        tasks=[
            SubTaskShown.model_validate(replace(one.task, skipped=spoken(one.task.skipped)))
            for one in numbered
        ],
        answer=answer_in(run, spoken),
        error=state.error,
        failure=_failure(state) if state.phase is EngineState.ERROR else None,
        will_pause=state.pausing,
        waiting=view.summary["waiting"],
        started_by=view.started_by,
        version=view.version,
        created_at=view.created_at,
        updated_at=view.updated_at,
        server_time=served.now(),
    )


def viewed(run: RunVersion) -> tuple[RunView, ConversationView]:
    view = run.view()
    assert view.conversation is not None
    return view, view.conversation


def _failure(state: ConversationView) -> FailureShown:
    return FailureShown(
        choices=list(state.choices),
        failed=list(state.retried),
        skips=list(state.left_out),
        doubtful=list(state.doubtful),
    )


async def _show(served: Services, caller: Caller, run: RunVersion) -> ConversationShown:
    return await run.beside(_shown, served, caller, run)


CONVERSATIONS: Final = RunsOf(as_conversation, _show, ConversationShown)


async def _do(served: Services, caller: Caller, run_id: str, command: c.Command) -> RunVersion:
    await CONVERSATIONS.operable(served, caller, run_id)
    return served.reader.of_state(await served.app.engine.submit(run_id, command))


@router.post("/conversations", status_code=201, response_model=ConversationShown)
@answered_again(CONVERSATIONS.again(201))
async def start_conversation(
    body: ConversationGiven, served: Served, caller: Called
) -> ConversationShown:
    """Pursue a goal; answers when it is recorded."""
    await caller.require(served, Permission.OPERATE, subject=SUBJECT)
    text = goal(body.input)
    if not text.strip():
        raise InvalidAnswer(
            msg("a conversation needs words to begin with"), {"input": msg("needed")}
        )
    run_id = await _opened(served, caller, body)
    return await _converse(served, caller, run_id, text)


async def _opened(served: Services, caller: Caller, body: ConversationGiven) -> str:
    """A conversation that nothing was said in yet."""
    given = body.id
    if given is not None and await served.reader.version(given):
        view, state = viewed(await CONVERSATIONS.find(served, caller, given))
        if state.turn or view.status in (RunStatus.CANCELLING, RunStatus.CANCELLED):
            raise NotAllowed(
                msg("there already is a conversation {id}: send it a message", id=given)
            )
        return given
    settings = ConversationSettings(
        body.max_parallel, on_failure=body.on_failure, confirm_tasks=body.confirm_tasks
    )
    acts = current()
    assert acts is not None
    # The request is carried out when its goal is recorded: an empty conversation is not that yet.
    with acting(replace(acts, claim=None)):
        return await open_conversation(served.app.engine, given, settings, caller.principal.id)


async def _converse(served: Services, caller: Caller, run_id: str, text: str) -> ConversationShown:
    command = c.Converse(text, caller.principal.id)
    state = served.reader.of_state(await served.app.engine.submit(run_id, command))
    served.supervisor.pursue(run_id)
    return await _show(served, caller, state)


@router.get("/conversations", response_model=ConversationsListed, responses=NOT_FOUND)
async def list_conversations(
    served: Served,
    caller: Called,
    status: Statuses = None,
    before: Before = None,
    limit: Limit = 50,
) -> ConversationsListed:
    """The conversations, the newest first, for callers who may read them."""
    await caller.require(served, Permission.READ)
    query = query_of(RunKind.CONVERSATION, status, before=before, limit=limit)
    rows, following = await visible(served, caller, query)
    return ConversationsListed(conversations=[_listed(row) for row in rows], next=following)


def _listed(row: RunRow) -> ConversationListed:
    summary = json.loads(row.summary)
    return ConversationListed(
        id=row.run_id,
        title=row.title,
        status=RunStatus(row.status),
        state=EngineState(summary.get("phase", EngineState.IDLE)),
        turn=summary.get("turn", 0),
        total_tasks=summary.get("tasks", 0),
        completed_tasks=summary.get("done", 0),
        skipped_tasks=summary.get("skipped", 0),
        waiting=summary.get("waiting", 0),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


@router.get("/conversations/{conversation_id}", response_model=ConversationShown)
async def get_conversation(
    conversation_id: ConversationId, served: Served, caller: Called
) -> ConversationShown:
    """A conversation: its phase, its tasks, and what came of them."""
    return await _show(served, caller, await CONVERSATIONS.find(served, caller, conversation_id))


@router.post("/conversations/{conversation_id}/messages", response_model=ConversationShown)
@answered_again(CONVERSATIONS.again())
async def send_input(
    conversation_id: ConversationId, body: InputGiven, served: Served, caller: Called
) -> ConversationShown:
    """The next goal; 409 while one is pursued. After a failure it is a new turn, which is told
    what was done."""
    _, state = viewed(await CONVERSATIONS.operable(served, caller, conversation_id))
    text = goal(body.input)
    if state.phase is EngineState.ERROR and text.strip():
        acts = current()
        assert acts is not None
        with acting(replace(acts, claim=None)):
            stop = c.GoOn(AfterFailure.STOP, caller.principal.id)
            await _do(served, caller, conversation_id, stop)
    return await _converse(served, caller, conversation_id, text)


@router.post("/conversations/{conversation_id}/pause", response_model=ConversationShown)
@answered_again(CONVERSATIONS.again())
async def pause_conversation(
    conversation_id: ConversationId, served: Served, caller: Called
) -> ConversationShown:
    """Start nothing more; a task in flight ends, and is counted after the resume.

    While it still thinks, the pause is kept (`will_pause`) and takes hold before the first task.
    """
    command = c.Hold(when_possible=True)
    return await _show(served, caller, await _do(served, caller, conversation_id, command))


@router.get("/conversations/{conversation_id}/snapshot", response_model=dict[str, Any])
async def get_snapshot(
    conversation_id: ConversationId, served: Served, caller: Called
) -> dict[str, Any]:
    """Everything that another engine needs to go on with it."""
    return snapshot_of(await CONVERSATIONS.find(served, caller, conversation_id))
