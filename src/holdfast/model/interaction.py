"""Questions to people: one model for everything that a run may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.model.form import Form
from holdfast.model.values import Json


class InteractionType(StrEnum):
    TOOL_APPROVAL = "TOOL_APPROVAL"
    MISSING_INFO = "MISSING_INFO"
    USER_CONFIRMATION = "USER_CONFIRMATION"
    USER_CHOICE = "USER_CHOICE"
    USER_INPUT = "USER_INPUT"
    CUSTOM = "CUSTOM"


class InteractionAction(StrEnum):
    APPROVE_AND_EXECUTE = "APPROVE_AND_EXECUTE"
    RETRY_WITH_FEEDBACK = "RETRY_WITH_FEEDBACK"
    REJECT_WITH_REASON = "REJECT_WITH_REASON"
    TERMINATE = "TERMINATE"
    PROVIDE_INFO = "PROVIDE_INFO"
    SKIP = "SKIP"
    CUSTOM = "CUSTOM"


class InteractionStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class InteractionOption:
    option_id: str
    label: str
    action: InteractionAction
    description: str = ""
    is_default: bool = False
    is_dangerous: bool = False
    requires_input: bool = False
    input_prompt: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InteractionRequest:
    """A question: what is asked, what may be answered, and until when."""

    request_id: str
    session_id: str
    type: InteractionType
    title: str
    message: str = ""
    details: str = ""
    context: Mapping[str, Json] = field(default_factory=dict)
    options: tuple[InteractionOption, ...] = ()
    form: Form = Form()
    required: bool = True
    timeout_seconds: float | None = None
    default_option_id: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class InteractionResponse:
    """An answer: names the question and an option, never the work itself."""

    request_id: str
    session_id: str = ""
    selected_option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None
