"""A question as its card shows it: what is asked and why, what may be answered, how it ended.

The card has everything that is needed to answer. A reader who may not answer sees why not, and no
buttons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.console.views.facts import Fact, answered_fact, facts, labelled_facts
from holdfast.console.views.form import FormView, form_view
from holdfast.console.views.options import OptionView, going_on, options_of
from holdfast.console.views.repair_card import RepairView, repair_of
from holdfast.interactions.cards import call_of, shown_context
from holdfast.language.display import indented
from holdfast.model.form import Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
)
from holdfast.model.run import RunKind
from holdfast.model.values import Json
from holdfast.server.auth.authentication import Caller
from holdfast.server.questions import Question, Questions
from holdfast.server.services import Services
from holdfast.views.about import About, about

_SAYS_WHY: Final = frozenset(
    {InteractionAction.REJECT_WITH_REASON, InteractionAction.RETRY_WITH_FEEDBACK}
)
_HIDDEN_CONTEXT: Final = frozenset({"tool", "args", "tool_version", "defaults", "quoted"})


@dataclass(frozen=True, slots=True)
class Call:
    """What would run; `defaults` is what takes effect of the arguments that are not given."""

    tool: str
    args: tuple[Fact, ...]
    defaults: tuple[Fact, ...]
    raw: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a question ended; `by` is empty where it was not answered."""

    by: str
    option: OptionView | None
    feedback: str
    data: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One question for one reader; `why_not` is why they may not answer it.

    Under `four_eyes` another person must approve; `no_approver`: there is none left who may.
    `another`: they may refuse it only, for they proposed the repair that it is about.
    """

    request: InteractionRequest
    status: InteractionStatus
    run_id: str
    kind: RunKind
    root_id: str
    name: str
    in_conversation: bool
    role: str | None
    digest: str
    opened_at: float
    deadline: float | None
    closed_at: float | None
    call: Call | None
    form: FormView
    options: tuple[OptionView, ...]
    default: OptionView | None
    why_not: str | None
    draft: Mapping[str, Json]
    ending: Ending | None
    about: About
    repair: RepairView | None = None
    four_eyes: bool = False
    no_approver: bool = False
    another: bool = False

    @property
    def id(self) -> str:
        return self.request.request_id

    @property
    def is_open(self) -> bool:
        return self.status is InteractionStatus.OPEN

    @property
    def answerable(self) -> bool:
        return self.is_open and self.why_not is None

    @property
    def approval(self) -> bool:
        return self.request.type is InteractionType.TOOL_APPROVAL

    @property
    def fails_its_step(self) -> bool:
        """Whether a plan's step fails if the question expires."""
        return self.kind is RunKind.PLAN and self.default is None

    @property
    def dangerous(self) -> bool:
        stops = InteractionAction.TERMINATE
        risky = (one.option for one in self.options if one.option.action is not stops)
        return self.is_open and any(option.is_dangerous for option in risky)

    def named(self, option_id: str) -> OptionView | None:
        return next((one for one in self.options if one.option.option_id == option_id), None)

    @property
    def asks_words(self) -> tuple[OptionView, ...]:
        """The options that require feedback."""
        return tuple(one for one in self.options if one.option.requires_input)

    @property
    def takes_words(self) -> bool:
        actions = {one.option.action for one in self.options}
        return bool(self.asks_words or actions & _SAYS_WHY)

    @property
    def quoted(self) -> str:
        words = self.request.context.get("quoted")
        return words if isinstance(words, str) else ""

    @property
    def context(self) -> tuple[Fact, ...]:
        """What came with the question and is not shown elsewhere on the card."""
        if self.call is not None:
            return ()
        rest = {k: v for k, v in shown_context(self.request).items() if k not in _HIDDEN_CONTEXT}
        return facts({name: value for name, value in rest.items() if name != "call_id"})


async def card_of(
    served: Services, caller: Caller, question_id: str, language: str | None = None
) -> Card:
    """The card of a question; NotFound if there is none that the caller may see. In a language it
    has the picture of what it is about, if that is a repair."""
    questions = Questions(served, caller)
    return await card_from(served, questions, await questions.find(question_id), language)


async def card_from(
    served: Services, questions: Questions, question: Question, language: str | None = None
) -> Card:
    root = await served.reader.at(question.row.root_id)
    kind, shown = await questions.kind(question), await questions.shown(question)
    repair = await repair_of(served, question, language)
    return _card(question, kind, shown, about(root), repair)


def _card(
    question: Question,
    kind: RunKind,
    shown: Mapping[str, Any],
    told: About,
    repair: RepairView | None,
) -> Card:
    request, row, draft = question.request, question.row, shown["draft"] or {}
    another = shown["mayNotApproveBecause"] is not None
    every = options_of(request, repairs=repair is not None)
    options = tuple(one for one in every if not (another and going_on(one)))
    named = {one.option.option_id: one for one in every}
    return Card(
        request=request,
        status=InteractionStatus(row.status),
        run_id=row.run_id,
        kind=kind,
        root_id=row.root_id,
        name=question.name,
        in_conversation=question.in_conversation,
        role=row.role,
        digest=question.digest,
        opened_at=row.opened_at,
        deadline=row.deadline,
        closed_at=row.closed_at,
        call=_call(request),
        form=_form(request, draft),
        options=options,
        default=named.get(request.default_option_id or ""),
        why_not=shown["mayNotBecause"],
        draft=draft,
        ending=_ending(request.form, shown, named),
        about=told,
        repair=repair,
        four_eyes=shown["wantedBy"] is not None,
        no_approver=shown["nobodyMayApprove"],
        another=another,
    )


def _form(request: InteractionRequest, draft: Mapping[str, Json]) -> FormView:
    changes = request.type is InteractionType.TOOL_APPROVAL
    args = request.context.get("args") if changes else None
    given = args if isinstance(args, Mapping) else {}
    return form_view(request.form, f"q-{request.request_id}", draft, given)


def _call(request: InteractionRequest) -> Call | None:
    call = call_of(request)
    if call is None:
        return None
    tool, args = call
    defaults = request.context.get("defaults")
    told = labelled_facts(request.form, defaults) if isinstance(defaults, Mapping) else ()
    return Call(tool, labelled_facts(request.form, args), told, indented(dict(request.context)))


def _ending(
    form: Form, shown: Mapping[str, Any], options: Mapping[str, OptionView]
) -> Ending | None:
    if shown["status"] == InteractionStatus.OPEN:
        return None
    fields = {field.name: field for field in form.fields}
    data = (shown["data"] or {}).items()
    return Ending(
        by=shown["answeredBy"] or "",
        option=options.get(shown["selectedOptionId"] or ""),
        feedback=shown["feedback"] or "",
        data=tuple(answered_fact(fields.get(name), name, value) for name, value in data),
    )
