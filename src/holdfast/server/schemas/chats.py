"""Sessions with agents as the API shows and takes them, in camelCase like their questions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import ConfigDict, Field

from holdfast import ReActStage
from holdfast.model.message import Message, ModelSaid, ToolReturned, UserSaid
from holdfast.model.run import RunStatus
from holdfast.server.schemas.interactions import Given, InteractionShown, Shown
from holdfast.views.records import RunView, SessionView

LONGEST_MESSAGE: Final = 1_000_000

SessionId = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][\w.:-]*$", max_length=256, examples=["chat_000001"])
]
GrantId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
AgentName = Annotated[str, Field(min_length=1, max_length=200)]


class ChatGiven(Given):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agentId": "clerk", "approval": {"delete_file": "require"}}]
        }
    )

    agent_id: AgentName
    session_id: str | None = Field(None, max_length=64, description="Default: the next free one.")
    approval: dict[str, Any] | None = Field(
        None,
        description="Rules by tool that override the agent's. Letting calls run unasked is itself "
        "an approval, and needs the same role.",
    )


class MessageGiven(Given):
    model_config = ConfigDict(json_schema_extra={"examples": [{"message": "帮我申请一台电脑"}]})

    message: str = Field(min_length=1, max_length=LONGEST_MESSAGE)


class ApprovalGiven(Given):
    """Calls of `tool` that fit `pattern` need no further consent in this session."""

    tool: str = Field(min_length=1, max_length=200, examples=["send_email"])
    pattern: dict[str, Any] | None = None
    seconds: float | None = Field(None, gt=0)
    uses: int | None = Field(None, ge=1, le=1_000_000)


class CallShown(Shown):
    call_id: str
    tool: str
    args: dict[str, Any]


class MessageShown(Shown):
    """`role` is user, assistant or tool; a tool's result is `content`."""

    role: str
    text: str | None = None
    calls: list[CallShown] | None = None
    call_id: str | None = None
    tool: str | None = None
    content: Any = None
    failed: bool | None = None


class UsageShown(Shown):
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float
    requests: int


class GrantShown(Shown):
    grant_id: str
    tool: str
    by: str
    at: float
    pattern: dict[str, Any]
    expires_at: float | None
    uses: int | None


class GrantsShown(Shown):
    approvals: list[GrantShown]
    server_time: float


class ChatListed(Shown):
    session_id: str
    agent_id: str
    title: str
    message: str = Field(description="What was said last to the agent, in one line.")
    status: RunStatus
    turn: int
    waiting: int
    created_at: float
    updated_at: float


class ChatsListed(Shown):
    """The newest first; `next` is the `before` of the next page."""

    chats: list[ChatListed]
    next: str | None


class ChatShown(Shown):
    """`version` is the last record that this shows: follow it from there with its events."""

    session_id: str
    agent_id: str
    title: str
    status: RunStatus
    stage: ReActStage
    turn: int
    version: int
    messages: list[MessageShown]
    answer: str
    error: str
    usage: UsageShown
    rules: dict[str, Any]
    approvals: list[GrantShown]
    interactions: list[InteractionShown]
    interactions_next: str | None = Field(
        None, description="`after` for `GET /interactions?run=…`, which has the other open ones."
    )
    started_by: str
    created_at: float
    updated_at: float
    server_time: float


def session_shown(run: RunView, state: SessionView) -> dict[str, Any]:
    return {
        "session_id": run.run_id,
        "agent_id": state.agent_id,
        "title": state.agent_name,
        "status": run.status,
        "stage": state.stage,
        "turn": state.turn,
        "version": run.version,
        "messages": [message_shown(one) for one in state.messages],
        "answer": state.answer,
        "error": state.error,
        "usage": {**asdict(state.usage), "requests": state.requests},
        "rules": state.rules,
        "approvals": state.grants,
        "started_by": run.started_by,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    }


def message_shown(message: Message) -> MessageShown:
    match message:
        case UserSaid(text=text):
            return MessageShown(role="user", text=text)
        case ModelSaid(text=text, calls=calls):
            listed = [CallShown.model_validate(one) for one in calls]
            return MessageShown(role="assistant", text=text, calls=listed)
        case ToolReturned():
            return MessageShown(
                role="tool",
                call_id=message.call_id,
                tool=message.tool,
                content=message.content,
                failed=message.failed,
            )
