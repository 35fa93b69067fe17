"""Who speaks to an agent, and where it waits for a person, as the seed names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from holdfast.core.agent.tables import ReActStage
from holdfast.core.approval import read_rule, rule_to_json
from holdfast.core.interactions.wire import (
    REQUEST,
    RESPONSE,
    RecordReader,
    request_to_wire,
    response_to_wire,
    word_of,
)
from holdfast.errors import HoldfastError
from holdfast.forms.problems import Problems
from holdfast.i18n.message import msg
from holdfast.language.strict import strict_text
from holdfast.model.approval import ApprovalRule
from holdfast.model.interaction import InteractionRequest, InteractionResponse
from holdfast.model.values import Json
from holdfast.runtime.identity import LOCAL


class ToolApprovalCallback(Protocol):
    """Told of every approval that a strategy's session asks for; the pause is on disk by then."""

    async def request_approval(
        self,
        session_id: str,
        tool_call_id: str,
        tool_name: str,
        tool_args: Mapping[str, Json],
        context: AgentContext,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Who speaks to which agent in which session; `user_id` is a label, never authority."""

    agent_id: str
    session_id: str | None = None
    user_id: str = LOCAL
    approval: Mapping[str, object] = field(default_factory=dict)
    tool_approval_callback: ToolApprovalCallback | None = None

    def to_wire(self) -> dict[str, Json]:
        """Without the callback, which only a process can hold."""
        rules = {name: rule_to_json(read_rule(raw)) for name, raw in self.approval.items()}
        return {
            "agentId": self.agent_id,
            "sessionId": self.session_id,
            "userId": self.user_id,
            "approval": rules,
        }

    @classmethod
    def from_wire(cls, raw: object) -> AgentContext:
        """The context, or InvalidAnswer with one message per wrong field."""
        return _CONTEXT.from_wire(raw)


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where a session waits for a person: a fold of its journal, made when it is asked for."""

    resume_id: str
    session_id: str
    current_iteration: int
    paused_stage: ReActStage
    interaction_request: InteractionRequest
    context: AgentContext
    original_task: str
    user_response: InteractionResponse | None = None

    def to_wire(self) -> dict[str, Json]:
        response = self.user_response
        return {
            "resumeId": self.resume_id,
            "sessionId": self.session_id,
            "currentIteration": self.current_iteration,
            "pausedStage": self.paused_stage.value,
            "interactionRequest": request_to_wire(self.interaction_request),
            "userResponse": None if response is None else response_to_wire(response),
            "context": self.context.to_wire(),
            "originalTask": self.original_task,
        }

    @classmethod
    def from_wire(cls, raw: object) -> ResumePoint:
        """The point in either spelling, or InvalidAnswer with one message per wrong field."""
        return _RESUME_POINT.from_wire(raw)


def _count(value: object, problems: Problems) -> object:
    if type(value) is not int or value < 0:
        problems.add(msg("must be a whole number from 0"))
    return value


def _rules(value: object, problems: Problems) -> dict[str, ApprovalRule]:
    if not isinstance(value, Mapping):
        problems.add(msg("must be an object with a rule for each tool"))
        return {}
    return dict(_each_rule(value, problems))


def _each_rule(
    rules: Mapping[object, object], problems: Problems
) -> Iterator[tuple[str, ApprovalRule]]:
    for name, rule in rules.items():
        try:
            yield strict_text(name, "tool"), read_rule(rule)
        except HoldfastError as refused:
            problems.at(str(name)).add(str(refused))


_CONTEXT: Final = RecordReader(AgentContext, AgentContext.__name__, approval=_rules)
_RESUME_POINT: Final = RecordReader(
    ResumePoint,
    ResumePoint.__name__,
    current_iteration=_count,
    paused_stage=word_of(ReActStage),
    interaction_request=REQUEST.read,
    user_response=RESPONSE.read,
    context=_CONTEXT.read,
)
