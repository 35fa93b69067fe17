"""Telling: what the stories of all runs have in common.

An event becomes a line: when, who, what. A teller remembers the questions it has told
of, because the events that close one name it by its id only. Answers to secret fields
are never told. Lines are messages, which each surface puts into its reader's language; a time to
come is told by how far away it is, because the reader's time zone is not known.

A *try* is one start of a step's work; `try 2 of 3` counts within a *round*. The planner's retry
begins the next round. Whatever is tried again without a person is told as `tries again`, so that
a count of these is the number that lists of runs show. How tasks and runs are is said in
the words of the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, assert_never

from holdfast.drawing.graph import run_words
from holdfast.i18n.message import joined, msg, recalled, span
from holdfast.i18n.terms import role_name
from holdfast.language.strict import canonical_json
from holdfast.model import events as e
from holdfast.model.form import FieldType
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.recorded import Event
from holdfast.model.run import RunStatus
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded
from holdfast.views.stories.below import BelowEvent, Word
from holdfast.views.stories.calls import Asked, Calls
from holdfast.views.stories.text import visible

Sentence: TypeAlias = tuple[str, str]
"""Who did it, and what it was."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened: when, by whom, what. What an event has moved has no `who`."""

    at: float
    who: str
    what: str


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

_LONGEST_LABEL: Final = 80
SOON: Final = 0.5
"""A wait of so many seconds is not noticed."""

CLOCK: Final = msg("clock")

UNTOLD: Final = (e.StepWoken,)
"""What the event before has announced, and the next one does."""

Fate: TypeAlias = e.AttemptFailed | e.StepWoken | e.StepReleased | e.OutcomeLost | e.LateResultKept


class Teller(ABC):
    """Tells the events of one run, in order."""

    itself: ClassVar[str]
    """Who is said to do what no person does."""

    def __init__(self, asked: Iterable[Asked] = ()) -> None:
        self._asked = {one.request.request_id: one for one in asked}
        self.calls = Calls()
        self.below: dict[Word, Sequence[BelowEvent]] = {}
        self._now = 0.0

    def tell(self, recorded: Recorded) -> list[Line]:
        """Nothing of an event of which its neighbours tell already."""
        return [] if isinstance(recorded.event, UNTOLD) else self.lines(recorded)

    def lines(self, recorded: Recorded) -> list[Line]:
        """As `tell`, and of every event."""
        self._now = recorded.at
        who, what = self.sentence(recorded.event)
        self.calls.note(recorded.event, self._asked)
        asked = [Line(recorded.at, "", one) for one in self._asked_below(recorded.event)]
        return [Line(recorded.at, visible(who), what), *asked]

    def _asked_below(self, event: Event) -> Iterator[str]:
        """What a sub-run has asked since it was last heard of, and who answered."""
        if not isinstance(event, e.ChildHeard):
            return
        for one in self.below.pop((event.child_id, event.seq), ()):
            if isinstance(one, e.QuestionOpened) and not one.firing:
                self._asked[one.request.request_id] = one
                continue
            who, what = self._question(one)
            by_person = isinstance(one, e.QuestionAnswered)
            yield joined(" ", (visible(who), what)) if by_person else what

    @abstractmethod
    def sentence(self, event: Event) -> Sentence: ...

    @abstractmethod
    def step(self, step_id: str) -> str:
        """A step as people know it."""

    def shared(self, event: Shared) -> Sentence:
        match event:
            case e.RunRecovered():
                told = msg("the process that ran this went down; another took over")
                return self.itself, told
            case e.CancelRequested():
                return event.by, self.because(msg("cancelled the run"), event.reason)
            case e.RunCancelled():
                told = msg("nothing is in flight any more: the run is cancelled")
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
            return msg(", try {n}", n=n)
        return msg(", try {n} of {most}", n=n, most=most)

    def because(self, told: str, reason: str) -> str:
        """What was told, and why if a reason was given."""
        if not reason:
            return told
        return msg("{told}: {reason}", told=told, reason=visible(recalled(reason)))

    def aside(self, reason: str) -> str:
        """A reason in brackets, if there is one."""
        return in_brackets(visible(recalled(reason))) if reason else ""

    def due(self, at: float) -> str:
        """When something will happen that the event announces."""
        away = at - self._now
        if away >= SOON:
            return msg("in {span}", span=span(away))
        return msg("in a moment") if away > 0 else msg("at once")

    def _child(self, event: e.ChildHeard) -> str:
        child = visible(event.child_id)
        if event.status == RunStatus.ERROR:
            told = msg("the sub-run {child} has failed", child=child)
        elif event.status == RunStatus.PAUSE:
            told = msg("the sub-run {child} waits for a person", child=child)
        else:
            status = run_words(RunStatus(event.status))
            told = msg("the sub-run {child} is {status}", child=child, status=status)
        return self.because(told, event.message)

    def _fate(self, event: Fate, step: str) -> str:
        match event:
            case e.AttemptFailed():
                told = self.because(msg("{step} failed", step=step), event.failure.message)
                again = msg("; tries again {due}", due=self.due(event.retry_at))
                return joined("", (told, again, self.aside(event.why)))
            case e.StepWoken():
                return msg("{step} is ready for its next try", step=step)
            case e.StepReleased():
                return msg("{step} was taken back and is ready again", step=step)
            case e.OutcomeLost():
                told = msg("{step} was sent, but it is not known whether it happened", step=step)
                return self.because(told, event.reason)
            case e.LateResultKept():
                return self._late(event.step_id, step)
            case _:
                assert_never(event)

    def _late(self, step_id: str, step: str) -> str:
        """A call that may not run twice is not made again while its earlier try runs, and takes
        what that one brings."""
        if self.calls.waits_for_former(step_id):
            return msg(
                "an earlier try of {step} has answered after all; its result is kept", step=step
            )
        if self.calls.repeats(step_id):
            return msg(
                "an earlier try of {step} answered too late; its result is kept, without effect",
                step=step,
            )
        return msg("{step} answered too late; the result is kept, without effect", step=step)

    def _question(self, event: Question) -> Sentence:
        match event:
            case e.QuestionOpened(request=request):
                self._asked[request.request_id] = event
                asked = joined("", (self._title(request.request_id), self._wants(request)))
                if request.role:
                    role = visible(role_name(request.role))
                    return self.itself, msg("asks the role {role}: {title}", role=role, title=asked)
                return self.itself, msg("asks a person: {title}", title=asked)
            case e.QuestionAnswered():
                return event.by, self._answer(event)
            case e.QuestionExpired():
                return CLOCK, self._expired(event)
            case e.QuestionWithdrawn():
                title = self._title(event.question_id)
                return self.itself, self.because(
                    msg("no longer asks {title}", title=title), event.reason
                )
            case e.QuestionReminded():
                title = self._title(event.question_id)
                told = msg("{title} still waits, reminder {n}", title=title, n=event.count)
                return CLOCK, told
            case e.QuestionEscalated():
                title, role = self._title(event.question_id), visible(role_name(event.role))
                told = msg("{title} now waits for the role {role}", title=title, role=role)
                return CLOCK, told
            case e.DraftKept():
                title = self._title(event.question_id)
                return event.by, msg("has begun to answer {title}", title=title)
            case _:
                assert_never(event)

    def _title(self, question_id: str) -> str:
        asked = self._asked.get(question_id)
        return visible(recalled(asked.request.title)) if asked else question_id[:8]

    def _option(self, question_id: str, option_id: str) -> str:
        """What the option is called; its id where the question was not told."""
        asked = self._asked.get(question_id)
        options = asked.request.options if asked else ()
        labels = (one.label for one in options if one.option_id == option_id)
        return visible(recalled(next(labels, option_id)), _LONGEST_LABEL)

    def _answer(self, event: e.QuestionAnswered) -> str:
        secret = self._secrets(event.question_id)
        told = [
            joined(" = ", (name, self._value(value, name in secret)))
            for name, value in event.data.items()
        ]
        parts = filter(None, [joined(", ", told), visible(event.feedback or "")])
        asked, title = self._asked.get(event.question_id), self._title(event.question_id)
        if asked is None or len(asked.request.options) > 1:
            option = self._option(event.question_id, event.option_id)
            answered = msg("answered {title} with “{option}”", title=title, option=option)
        else:
            answered = msg("answered {title}", title=title)
        words = joined("; ", parts)
        return msg("{told}: {reason}", told=answered, reason=words) if words else answered

    def _expired(self, event: e.QuestionExpired) -> str:
        title = self._title(event.question_id)
        if not event.option_id:
            return msg("{title} was not answered in time", title=title)
        option = self._option(event.question_id, event.option_id)
        return msg(
            "{title} was not answered in time; “{option}” was taken", title=title, option=option
        )

    def _wants(self, request: InteractionRequest) -> str:
        """What a form asks for; that of an approval only allows changes."""
        if request.type is InteractionType.TOOL_APPROVAL:
            return ""
        wants = joined(", ", (one.label or one.name for one in request.form.fields))
        return in_brackets(visible(wants)) if wants else ""

    def _value(self, value: Json, secret: bool) -> str:
        if secret:
            return msg("(secret)")
        match value:
            case {"value": chosen, "text": text}:
                return visible(f"{chosen} ({text})")
            case bool():
                return msg("yes") if value else msg("no")
            case [*items] if not any(map(_nests, items)):
                return joined(", ", (self._value(one, secret) for one in items))
            case list() | dict():
                return visible(canonical_json(value))
            case _:
                return visible(value)

    def _secrets(self, question_id: str) -> frozenset[str]:
        asked = self._asked.get(question_id)
        fields = asked.request.form.fields if asked else ()
        return frozenset(one.name for one in fields if one.type is FieldType.SECRET)


def said_so(step: str, by: str) -> str:
    """Of a call of which only that person knew whether it took effect."""
    return msg("{step} counts as done: {by} said so", step=step, by=visible(by))


def as_child(child_id: str | None) -> str:
    """What follows `started` where a sub-run does the work."""
    return msg(" as {child}", child=visible(child_id)) if child_id else ""


def in_brackets(text: str) -> str:
    return joined("", (" (", text, ")"))


def _nests(value: Json) -> bool:
    """Whether a list of such values is more than a list of what was chosen."""
    choice = isinstance(value, dict) and value.keys() == {"value", "text"}
    return isinstance(value, list | dict) and not choice
