"""Telling: what the stories of all runs have in common.

An event becomes a line: when, who, what. A teller remembers the questions it has told
of, because the events that close one name it by its id only. Answers to secret fields
are never told.

A *try* is one start of a step's work; `try 2 of 3` counts within a *round*. The planner's retry
begins the next round. Whatever is tried again without a person is told as `tries again`, so that
whoever counts these has the number that lists of runs show. How tasks and runs are is said in
the words of the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, assert_never

from holdfast.drawing.graph import run_words
from holdfast.language.strict import canonical_json
from holdfast.model import events as e
from holdfast.model.form import FieldType
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.recorded import Event
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded
from holdfast.views.stories.phrases import ENGLISH, Voice
from holdfast.views.stories.text import clock, visible

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

UNTOLD: Final = (e.StepWoken,)
"""What the event before has announced, and the next one does."""

Fate: TypeAlias = e.AttemptFailed | e.StepWoken | e.StepReleased | e.OutcomeLost | e.LateResultKept


class Teller(ABC):
    """Tells the events of one run, in order."""

    engine: ClassVar[str]
    """Who is said to do what nobody in particular does."""

    def __init__(self, asked: Iterable[InteractionRequest] = (), say: Voice = ENGLISH) -> None:
        self._asked = {request.request_id: request for request in asked}
        self.say = say
        self._now = 0.0

    def tell(self, recorded: Recorded) -> list[Line]:
        """Nothing of an event of which its neighbours tell already."""
        return [] if isinstance(recorded.event, UNTOLD) else self.lines(recorded)

    def lines(self, recorded: Recorded) -> list[Line]:
        """As `tell`, and of every event."""
        self._now = recorded.at
        who, what = self.sentence(recorded.event)
        return [Line(recorded.at, visible(who), what)]

    @property
    def itself(self) -> str:
        return self.say(self.engine)

    @property
    def clock(self) -> str:
        return self.say("clock")

    @abstractmethod
    def sentence(self, event: Event) -> Sentence: ...

    @abstractmethod
    def step(self, step_id: str) -> str:
        """A step as people know it."""

    def shared(self, event: Shared) -> Sentence:
        match event:
            case e.RunRecovered():
                told = self.say("the process that ran this went down; another took over")
                return self.itself, told
            case e.CancelRequested():
                return event.by, self.because(self.say("cancelled the run"), event.reason)
            case e.RunCancelled():
                told = self.say("nothing is in flight any more: the run is cancelled")
                return self.itself, told
            case e.ChildHeard():
                return self.itself, self._child(event)
            case (
                e.AttemptFailed()
                | e.StepWoken()
                | e.StepReleased()
                | e.OutcomeLost()
                | e.LateResultKept()
            ):
                return self.itself, self._fate(event, self.step(event.step_id))
            case _:
                return self._question(event)

    def nth_try(self, n: int, most: int = 0) -> str:
        """What follows `started` from the second try on; `most` where that is known."""
        if n < 2:
            return ""
        if n > most:
            return self.say(", try {n}", n=n)
        return self.say(", try {n} of {most}", n=n, most=most)

    def because(self, told: str, reason: str) -> str:
        """What was told, and why if somebody said so."""
        if not reason:
            return told
        return self.say("{told}: {reason}", told=told, reason=visible(self.say.why(reason)))

    def aside(self, reason: str) -> str:
        """A reason in brackets, if there is one."""
        return f" ({visible(self.say.why(reason))})" if reason else ""

    def _child(self, event: e.ChildHeard) -> str:
        child = visible(event.child_id)
        if event.status == RunStatus.ERROR:
            told = self.say("the sub-run {child} has failed", child=child)
        elif event.status == RunStatus.PAUSE:
            told = self.say("the sub-run {child} waits for a person", child=child)
        else:
            status = self.say(run_words(RunStatus(event.status)))
            told = self.say("the sub-run {child} is {status}", child=child, status=status)
        return self.because(told, event.message)

    def _fate(self, event: Fate, step: str) -> str:
        match event:
            case e.AttemptFailed():
                told = self.because(self.say("{step} failed", step=step), event.failure.message)
                due = self.say.due(event.retry_at, self._now)
                return told + self.say("; tries again {due}", due=due) + self.aside(event.why)
            case e.StepWoken():
                return self.say("{step} is ready for its next try", step=step)
            case e.StepReleased():
                return self.say("{step} was taken back and is ready again", step=step)
            case e.OutcomeLost():
                told = self.say("{step} was sent, but nobody knows whether it happened", step=step)
                return self.because(told, event.reason)
            case e.LateResultKept():
                return self.say(
                    "{step} answered too late; the result is kept, without effect", step=step
                )
            case _:
                assert_never(event)

    def _question(self, event: Question) -> Sentence:
        match event:
            case e.QuestionOpened(request=request):
                self._asked[request.request_id] = request
                asked = self._title(request.request_id) + self._wants(request)
                return self.itself, self.say("asks a person: {title}", title=asked)
            case e.QuestionAnswered():
                return event.by, self._answer(event)
            case e.QuestionExpired():
                return self.clock, self._expired(event)
            case e.QuestionWithdrawn():
                title = self._title(event.question_id)
                return self.itself, self.because(
                    self.say("no longer asks {title}", title=title), event.reason
                )
            case e.QuestionReminded():
                title = self._title(event.question_id)
                told = self.say("{title} still waits, reminder {n}", title=title, n=event.count)
                return self.clock, told
            case e.QuestionEscalated():
                title, role = self._title(event.question_id), visible(event.role)
                told = self.say("{title} now waits for the role {role}", title=title, role=role)
                return self.clock, told
            case e.DraftKept():
                title = self._title(event.question_id)
                return event.by, self.say("has begun to answer {title}", title=title)
            case _:
                assert_never(event)

    def _title(self, question_id: str) -> str:
        request = self._asked.get(question_id)
        return visible(self.say.asked(request.title)) if request else question_id[:8]

    def _answer(self, event: e.QuestionAnswered) -> str:
        secret = self._secrets(event.question_id)
        told = [
            f"{name} = {self._value(value, name in secret)}" for name, value in event.data.items()
        ]
        parts = [", ".join(told), visible(event.feedback or "")]
        request, title = self._asked.get(event.question_id), self._title(event.question_id)
        if request is None or len(request.options) > 1:
            option = event.option_id
            answered = self.say("answered {title} with {option}", title=title, option=option)
        else:
            answered = self.say("answered {title}", title=title)
        words = "; ".join(part for part in parts if part)
        return self.say("{told}: {reason}", told=answered, reason=words) if words else answered

    def _expired(self, event: e.QuestionExpired) -> str:
        title = self._title(event.question_id)
        if not event.option_id:
            return self.say("nobody answered {title} in time", title=title)
        return self.say(
            "nobody answered {title} in time; {option} was taken",
            title=title,
            option=event.option_id,
        )

    def _wants(self, request: InteractionRequest) -> str:
        """What a form asks for; that of an approval only allows changes."""
        if request.type is InteractionType.TOOL_APPROVAL:
            return ""
        wants = ", ".join(one.label or one.name for one in request.form.fields)
        return f" ({visible(wants)})" if wants else ""

    def _value(self, value: Json, secret: bool) -> str:
        if secret:
            return self.say("(secret)")
        match value:
            case {"value": chosen, "text": text}:
                return visible(f"{chosen} ({text})")
            case bool():
                return self.say("yes") if value else self.say("no")
            case [*items] if not any(map(_nests, items)):
                return ", ".join(self._value(one, secret) for one in items)
            case list() | dict():
                return visible(canonical_json(value))
            case _:
                return visible(value)

    def _secrets(self, question_id: str) -> frozenset[str]:
        request = self._asked.get(question_id)
        fields = request.form.fields if request else ()
        return frozenset(one.name for one in fields if one.type is FieldType.SECRET)


def _nests(value: Json) -> bool:
    """Whether a list of such values is more than a list of what was chosen."""
    choice = isinstance(value, dict) and value.keys() == {"value", "text"}
    return isinstance(value, list | dict) and not choice
