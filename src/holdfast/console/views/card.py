"""A question as a card shows it: what is asked and why, what may be answered, how it ended.

Everything a person must know to answer stands on the card itself. Whoever may not answer is
told why, and is offered nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.console.rendering import seen
from holdfast.console.views.about import About, about
from holdfast.console.views.form import Choice, FormView, form_view, taken
from holdfast.console.words import Words
from holdfast.core.interactions.consequences import call_of, consequence
from holdfast.core.interactions.filling import takes_the_form
from holdfast.core.interactions.listing import shown_context
from holdfast.core.interactions.requests import CONFIRM_OPTIONS, PROVIDE_OPTION, SKIP_OPTION
from holdfast.forms.secrets import is_reference
from holdfast.i18n.spoken import asked, labelled, said
from holdfast.language.display import unquoted
from holdfast.model.form import CHOICES, Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
)
from holdfast.model.run import RunKind
from holdfast.model.values import Json
from holdfast.server.auth.authentication import Caller
from holdfast.server.questions import Question, Questions
from holdfast.server.services import Services

CUSTOMARY: Final[Mapping[str, str]] = {
    "Provide": "provide",
    "Skip": "skip",
    "Confirm": "confirm",
    "Reject": "reject",
    "Approve and run": "approve",
    "Ask again with feedback": "retry",
    "Reject and stop everything": "terminate",
    "It happened": "happened",
    "Run it again": "run_again",
    "Stop": "stop",
    "Do not answer": "decline",
}
"""The options that are offered by custom, whose words we know in every language."""

_SELF_EVIDENT: Final = frozenset(
    (one.label, one.action) for one in (PROVIDE_OPTION, SKIP_OPTION, *CONFIRM_OPTIONS)
)
"""Our own words for what is done, where no call is at stake."""

_SAYS_WHY: Final = frozenset(
    {InteractionAction.REJECT_WITH_REASON, InteractionAction.RETRY_WITH_FEEDBACK}
)
_GOES_ON: Final = frozenset({InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO})
_HIDDEN_CONTEXT: Final = frozenset({"tool", "args", "tool_version", "defaults", "quoted"})


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and its value; `long` ones are shown as written, `secret` ones not at all.

    `label` is what its form calls it, where that is another word. What was chosen in a form is
    told in the form's words: `choices`, or `word`, a key of ours.
    """

    name: str
    text: str
    long: bool = False
    secret: bool = False
    label: str = ""
    choices: tuple[Choice, ...] = ()
    word: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """What would run; `defaults` is what takes effect of the arguments that are not given."""

    tool: str
    args: tuple[Fact, ...]
    defaults: tuple[Fact, ...]
    raw: str


@dataclass(frozen=True, slots=True)
class OptionView:
    """`tone` is how its button looks, `again` whether a press asks once more."""

    option: InteractionOption
    word: str
    tone: str
    again: bool
    fills: bool
    """Whether the form goes with it."""
    consequence: str
    """What it does, in our words; empty where its label, which is ours, says it already."""

    def label(self, words: Words) -> str:
        if self.word:
            return words(f"card.option.{self.word}")
        return seen(labelled(self.option.label, words.language))

    def name(self, words: Words) -> str:
        """As it is quoted in our sentences."""
        return unquoted(self.label(words))

    def does(self, words: Words) -> str:
        return seen(asked(self.consequence, words.language))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a question ended; `by` is empty where nobody answered."""

    by: str
    option: OptionView | None
    feedback: str
    data: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One question for one reader; `why_not` is why they may not answer it.

    Under `four_eyes` a change is a wish that another approves; `nobody` says that none is left.
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
    four_eyes: bool = False
    nobody: bool = False

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
        """Whether a plan's step fails when nobody answers in time."""
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
        """The options that need words of the person's own."""
        return tuple(one for one in self.options if one.option.requires_input)

    def title(self, words: Words) -> str:
        return title_of(self.request, words)

    def message(self, words: Words) -> str:
        return message_of(self.request, words)

    def details(self, words: Words) -> str:
        return seen(asked(self.request.details, words.language))

    def refusal(self, words: Words) -> str:
        """Why the reader may not answer."""
        return seen(said(self.why_not or "", words.language))

    def needing_words(self, words: Words) -> str:
        return words("card.comma").join(one.label(words) for one in self.asks_words)

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
        """What came with the question and is shown nowhere else, for whoever looks closely."""
        if self.call is not None:
            return ()
        rest = {k: v for k, v in shown_context(self.request).items() if k not in _HIDDEN_CONTEXT}
        return facts({name: value for name, value in rest.items() if name != "call_id"})


def title_of(request: InteractionRequest, words: Words) -> str:
    return seen(asked(request.title, words.language))


def message_of(request: InteractionRequest, words: Words) -> str:
    return seen(asked(request.message, words.language))


async def card_of(served: Services, caller: Caller, question_id: str) -> Card:
    """The card of a question; NotFound if there is none that the caller may see."""
    questions = Questions(served, caller)
    return await card_from(questions, await questions.find(question_id))


async def card_from(questions: Questions, question: Question) -> Card:
    root = await questions.root(question)
    kind, shown = await questions.kind(question), await questions.shown(question)
    return _card(question, kind, shown, about(root))


def _card(question: Question, kind: RunKind, shown: Mapping[str, Any], told: About) -> Card:
    request, row, draft = question.request, question.row, shown["draft"] or {}
    options = options_of(request)
    named = {one.option.option_id: one for one in options}
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
        four_eyes=shown["wantedBy"] is not None,
        nobody=shown["nobodyMayApprove"],
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
    told = _labelled(request.form, defaults) if isinstance(defaults, Mapping) else ()
    return Call(tool, _labelled(request.form, args), told, _pretty(dict(request.context)))


def _same(label: str, name: str) -> bool:
    """A label that was made from the name, as `Order Id` of `order_id`, says nothing more."""
    said, called = ("".join(filter(str.isalnum, one.casefold())) for one in (label, name))
    return said == called


def _labelled(form: Form, values: Mapping[str, Json]) -> tuple[Fact, ...]:
    labels = {one.name: one.label for one in form.fields if not _same(one.label, one.name)}
    return tuple(replace(one, label=labels.get(one.name, "")) for one in facts(values))


def facts(values: Mapping[str, Json]) -> tuple[Fact, ...]:
    return tuple(_fact(name, value) for name, value in values.items())


def _fact(name: str, value: Json) -> Fact:
    if is_reference(value):
        return Fact(name, "", secret=True)
    if isinstance(value, Mapping) and value.keys() == {"value", "text"}:
        return Fact(name, str(value["text"]))
    if isinstance(value, str):
        return Fact(name, value, long="\n" in value)
    nested = isinstance(value, list | Mapping) and bool(value)
    return Fact(name, _pretty(value), long=nested)


def _pretty(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def options_of(request: InteractionRequest) -> tuple[OptionView, ...]:
    """Where one option alone goes on it leads; among several the reader chooses unguided."""
    ways_on = sum(one.action in _GOES_ON for one in request.options)
    return tuple(_option(request, one, leads=ways_on == 1) for one in request.options)


def _option(request: InteractionRequest, option: InteractionOption, leads: bool) -> OptionView:
    approval = request.type is InteractionType.TOOL_APPROVAL
    goes_on = option.action in _GOES_ON
    consents = approval and goes_on
    again = option.action is InteractionAction.TERMINATE or (option.is_dangerous and not consents)
    first = leads or option.action is InteractionAction.PROVIDE_INFO
    return OptionView(
        option=option,
        word=CUSTOMARY.get(option.label, ""),
        tone="danger" if again else "primary" if goes_on and first else "",
        again=again,
        fills=takes_the_form(request, option),
        consequence=_consequence(request, option),
    )


def _consequence(request: InteractionRequest, option: InteractionOption) -> str:
    evident = call_of(request) is None and (option.label, option.action) in _SELF_EVIDENT
    return "" if evident else consequence(request, option)


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
        data=tuple(_told(fields.get(name), name, value) for name, value in data),
    )


def _told(field: Field | None, name: str, value: Json) -> Fact:
    """An answer in the words of its form."""
    if field is None:
        return _fact(name, value)
    told = _fact(field.label or name, value)
    if field.type is FieldType.BOOLEAN and isinstance(value, bool):
        return replace(told, word="form.yes" if value else "form.no")
    return replace(told, choices=taken(field, value)) if field.type in CHOICES else told
