"""Questions to people: one model for everything that a run may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.model.form import Form
from holdfast.model.record import TextEnum
from holdfast.model.values import Json


class InteractionType(TextEnum):
    TOOL_APPROVAL = "TOOL_APPROVAL"
    MISSING_INFO = "MISSING_INFO"
    USER_CONFIRMATION = "USER_CONFIRMATION"
    USER_CHOICE = "USER_CHOICE"
    USER_INPUT = "USER_INPUT"
    CUSTOM = "CUSTOM"


class InteractionAction(TextEnum):
    APPROVE_AND_EXECUTE = "APPROVE_AND_EXECUTE"
    RETRY_WITH_FEEDBACK = "RETRY_WITH_FEEDBACK"
    REJECT_WITH_REASON = "REJECT_WITH_REASON"
    TERMINATE = "TERMINATE"
    PROVIDE_INFO = "PROVIDE_INFO"
    SKIP = "SKIP"
    CUSTOM = "CUSTOM"


REPAIR: Final = "repair"
"""The purpose of a question whose answer may change the run's plan."""

RENEWAL: Final = "secret"
"""The purpose of a question for secrets that were entered for the run of which this is a fork."""

RUN_AGAIN: Final = "run_again"
"""The option by which a person has a call made again whose outcome is unknown."""


class InteractionStatus(TextEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class InteractionOption:
    """One way to answer; `metadata` may name the `handler` that decides a CUSTOM one."""

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
    """A question: what is asked, what may be answered, by whom, and until when.

    `reminders` are seconds after the opening; after `escalate_after` seconds the
    question belongs to the role `escalate_to`. `custom_type` names the registered
    type of a CUSTOM question.
    """

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
    reminders: tuple[float, ...] = ()
    escalate_after: float | None = None
    escalate_to: str | None = None
    custom_type: str | None = None


@dataclass(frozen=True, slots=True)
class InteractionResponse:
    """An answer: names the question and an option, never the work itself."""

    request_id: str
    session_id: str = ""
    selected_option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the handler of a CUSTOM option made of an answer: one of the other actions.

    `data` is what PROVIDE_INFO provides, or the arguments that an approval changes.
    """

    action: InteractionAction
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run waits for: the open question that is the oldest, its own or a child run's."""

    question_id: str
    purpose: str
    form: Form
    opened_at: float


@dataclass(frozen=True, slots=True)
class Asking:
    """How an author wants people to be asked; what is left out goes by custom."""

    title: str = ""
    message: str = ""
    details: str = ""
    type: InteractionType | None = None
    custom_type: str | None = None
    options: tuple[InteractionOption, ...] = ()
    required: bool = True
    role: str | None = None
    timeout_seconds: float | None = None
    default_option_id: str | None = None
    reminders: tuple[float, ...] = ()
    escalate_after: float | None = None
    escalate_to: str | None = None
