"""Questions and answers as the API shows and takes them: the seed's names, in camelCase.

Requests are read in both spellings, and nothing in them is guessed: an unknown key is refused.
Answers are written in camelCase alone.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from holdfast.model.interaction import InteractionAction, InteractionStatus, InteractionType

LONGEST_LIST: Final = 200
"""How many questions are listed, or answered at once."""

QuestionId = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$",
        examples=["81a5be415977201aa8807d6eff7e6fa3"],
    ),
]
FieldName = Annotated[str, Path(min_length=1, max_length=200)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Given(BaseModel):
    """What a caller sends."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Shown(BaseModel):
    """What a caller is shown: made of a view with attributes of these names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class AnswerGiven(Given):
    """An answer names an option; the work itself is never sent, so that it cannot be swapped."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"selectedOptionId": "approve"},
                {"selectedOptionId": "reject", "feedback": "not before Monday"},
                {"data": {"computer_model": "MacBook Pro"}},
            ]
        }
    )

    selected_option_id: str | None = Field(None, max_length=200)
    data: dict[str, Any] | None = None
    feedback: str | None = Field(None, max_length=10_000)
    digest: Digest | None = Field(
        None,
        description="The digest of the question as it was shown; another one is refused.",
    )


class AnswersGiven(Given):
    """The same answer to exactly these questions."""

    request_ids: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=LONGEST_LIST, examples=[["4f0c…", "9b1e…"]]
    )
    selected_option_id: str | None = Field(None, max_length=200)
    data: dict[str, Any] | None = None
    feedback: str | None = Field(None, max_length=10_000)
    digests: dict[str, Digest] | None = Field(
        None,
        max_length=LONGEST_LIST,
        description="The digest of each question as it was shown, by its id; another one is "
        "refused, and so is a question that has none here.",
    )


class DraftGiven(Given):
    data: dict[str, Any] = Field(examples=[{"computer_model": "MacBook Pro"}])


class SecretGiven(Given):
    value: str = Field(
        min_length=1,
        max_length=10_000,
        examples=["what no other person may read"],
        json_schema_extra={"format": "password"},
    )


class OptionShown(Shown):
    option_id: str
    label: str
    action: InteractionAction
    description: str
    is_default: bool
    is_dangerous: bool
    requires_input: bool
    input_prompt: str
    metadata: dict[str, Any]
    consequence: str = Field(
        description="What it does, in Holdfast's words; the rest is its author's."
    )


class AtDeadline(Shown):
    """What happens without an answer: an option is taken, or without one it expires."""

    expires: bool
    option_id: str | None = None


class InteractionShown(Shown):
    """A question: the seed's InteractionRequest, how it stands, and what the caller may do.

    Times are epoch seconds, `serverTime` too: a countdown is `deadline - serverTime`.
    """

    request_id: str
    session_id: str
    type: InteractionType
    title: str
    message: str
    details: str
    context: dict[str, Any]
    options: list[OptionShown]
    required: bool
    timeout_seconds: float | None
    default_option_id: str | None
    role: str | None
    reminders: list[float] = []
    escalate_after: float | None = None
    escalate_to: str | None = None
    custom_type: str | None = None
    form: dict[str, Any] = Field({}, description="The fields by name, as a plan declares them.")
    form_schema: dict[str, Any] | None = Field(None, description="The form as JSON Schema.")
    status: InteractionStatus
    run_id: str
    root_id: str
    about: str = Field(description="What the run at the top is about, in one line.")
    opened_at: float
    deadline: float | None
    at_deadline: AtDeadline | None
    closed_at: float | None
    answered_by: str | None
    selected_option_id: str | None
    data: dict[str, Any] | None
    feedback: str | None
    digest: str
    draft: dict[str, Any] | None = Field(description="What the caller has filled in so far.")
    reminded: int = Field(0, description="Reminders so far, told where one question is shown.")
    may_answer: bool
    may_not_because: str | None
    may_not_approve_because: str | None = Field(
        description="Why the caller may answer, but only to refuse: they proposed the repair."
    )
    wanted_by: list[str] | None = Field(
        None, description="Under four eyes: who wants the call, and so may not approve it."
    )
    nobody_may_approve: bool = Field(
        False, description="Under four eyes: all who could approve the call want it."
    )
    server_time: float


class InteractionsShown(Shown):
    """The oldest first; `next` is the `after` of the next page."""

    interactions: list[InteractionShown]
    next: str | None
    server_time: float


class AnswerOutcome(Shown):
    """What became of one of several answers: `status`, and the problem if it was refused, are
    what it alone would have been answered with."""

    request_id: str
    success: bool
    status: int
    error: str | None = None
    problem: dict[str, Any] | None = None


class AnswerOutcomes(Shown):
    success: bool
    outcomes: list[AnswerOutcome]
    server_time: float


class DraftKept(Shown):
    request_id: str
    draft: dict[str, Any]
    server_time: float


class SecretKept(Shown):
    """The value itself is nowhere but under lock; the answer's `data` names the reference."""

    reference: str
