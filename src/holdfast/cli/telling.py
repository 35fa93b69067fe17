"""Telling: what the stories of all runs have in common.

An event becomes a line: when, who, what. A teller remembers the questions it has told
of, because the events that close one name it by its id only. Answers to secret fields
are never told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, assert_never

from holdfast.cli.screen import clock, visible
from holdfast.model import events as e
from holdfast.model.form import FieldType
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.recorded import Event
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded

Sentence: TypeAlias = tuple[str, str]
"""Who did it, and what it was."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened: when, by whom, what."""

    at: float
    who: str
    what: str

    def __str__(self) -> str:
        return self.render()

    def render(self, *, date: bool = False) -> str:
        return f"{clock(self.at, date=date)}  {self.who:<8} {self.what}"


Question: TypeAlias = (
    e.QuestionOpened
    | e.QuestionAnswered
    | e.QuestionExpired
    | e.QuestionWithdrawn
    | e.QuestionReminded
    | e.QuestionEscalated
    | e.DraftKept
)
Shared: TypeAlias = (
    Question
    | e.AttemptFailed
    | e.StepWoken
    | e.StepReleased
    | e.OutcomeLost
    | e.LateResultKept
    | e.ChildHeard
    | e.RunRecovered
    | e.CancelRequested
    | e.RunCancelled
)


class Teller(ABC):
    """Tells the events of one run, in order."""

    engine: ClassVar[str]
    """Who is said to do what nobody in particular does."""

    def __init__(self, asked: Iterable[InteractionRequest] = ()) -> None:
        self._asked = {request.request_id: request for request in asked}

    def tell(self, recorded: Recorded) -> list[Line]:
        who, what = self.sentence(recorded.event)
        return [Line(recorded.at, visible(who), what)]

    @abstractmethod
    def sentence(self, event: Event) -> Sentence: ...

    @abstractmethod
    def step(self, step_id: str) -> str:
        """A step as people know it."""

    def shared(self, event: Shared) -> Sentence:
        match event:
            case e.RunRecovered():
                return self.engine, "the process that ran this went down; another took over"
            case e.CancelRequested():
                return event.by, f"cancelled the run{reason(event.reason)}"
            case e.RunCancelled():
                return self.engine, "nothing is in flight any more: the run is cancelled"
            case e.ChildHeard():
                child = visible(event.child_id)
                paused = event.status == RunStatus.PAUSE
                standing = "waits for a person" if paused else f"is {event.status}"
                return self.engine, f"the sub-run {child} {standing}{reason(event.message)}"
            case (
                e.AttemptFailed()
                | e.StepWoken()
                | e.StepReleased()
                | e.OutcomeLost()
                | e.LateResultKept()
            ):
                return self.engine, f"{self.step(event.step_id)} {_fate(event)}"
            case _:
                return self._question(event)

    def _question(self, event: Question) -> Sentence:
        match event:
            case e.QuestionOpened(request=request):
                self._asked[request.request_id] = request
                return self.engine, f"asks a person: {visible(request.title)}{_wants(request)}"
            case e.QuestionAnswered():
                return event.by, f"answered {self._title(event.question_id)}{self._answer(event)}"
            case e.QuestionExpired():
                taken = f"; {event.option_id} was taken" if event.option_id else ""
                return "clock", f"nobody answered {self._title(event.question_id)} in time{taken}"
            case e.QuestionWithdrawn():
                title = self._title(event.question_id)
                return self.engine, f"no longer asks {title}: {visible(event.reason)}"
            case e.QuestionReminded():
                return (
                    "clock",
                    f"{self._title(event.question_id)} still waits, reminder {event.count}",
                )
            case e.QuestionEscalated():
                role = visible(event.role)
                return "clock", f"{self._title(event.question_id)} now waits for the role {role}"
            case e.DraftKept():
                return event.by, f"has begun to answer {self._title(event.question_id)}"
            case _:
                assert_never(event)

    def _title(self, question_id: str) -> str:
        request = self._asked.get(question_id)
        return visible(request.title) if request else question_id[:8]

    def _answer(self, event: e.QuestionAnswered) -> str:
        secret = self._secrets(event.question_id)
        told = [f"{name} = {_value(value, name in secret)}" for name, value in event.data.items()]
        parts = [", ".join(told), visible(event.feedback or "")]
        words = "; ".join(part for part in parts if part)
        request = self._asked.get(event.question_id)
        choice = request is None or len(request.options) > 1
        return (f" with {event.option_id}" if choice else "") + (f": {words}" if words else "")

    def _secrets(self, question_id: str) -> frozenset[str]:
        request = self._asked.get(question_id)
        fields = request.form.fields if request else ()
        return frozenset(one.name for one in fields if one.type is FieldType.SECRET)


def reason(text: str) -> str:
    return f": {visible(text)}" if text else ""


def _fate(
    event: e.AttemptFailed | e.StepWoken | e.StepReleased | e.OutcomeLost | e.LateResultKept,
) -> str:
    match event:
        case e.AttemptFailed():
            again = f"tries again at {clock(event.retry_at)}"
            return f"failed: {visible(event.failure.message)}; {again}"
        case e.StepWoken():
            return "is due for its next attempt"
        case e.StepReleased():
            return "was not handed over and is ready again"
        case e.OutcomeLost():
            return f"was sent, but nobody knows whether it happened: {visible(event.reason)}"
        case e.LateResultKept():
            return "answered too late; the result is kept, without effect"
        case _:
            assert_never(event)


def _wants(request: InteractionRequest) -> str:
    """What a form asks for; that of an approval only allows changes."""
    if request.type is InteractionType.TOOL_APPROVAL:
        return ""
    wants = ", ".join(one.label or one.name for one in request.form.fields)
    return f" ({visible(wants)})" if wants else ""


def _value(value: Json, secret: bool) -> str:
    if secret:
        return "(secret)"
    match value:
        case {"value": chosen, "text": text}:
            return visible(f"{chosen} ({text})")
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(_value(one, secret) for one in value)
        case _:
            return visible(value)
