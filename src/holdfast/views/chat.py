"""A chat: a fold of a session's events into entries, in reading order.

The session's state knows what the model was told; the events also know who spoke, when, what a
person decided about a call, and what went wrong. Each entry has a key that stays and `rev`, the
event that changed it last. A question stands below its call, wherever it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded
from holdfast.views.records import InteractionView

RECORDS: Final = 600
"""How far back a chat is read unasked; a turn has some five to twenty records."""

OVER: Final = frozenset(
    {"done", "failed", "refused", "rejected", "retry", "skipped", "expired", "provided", "stopped"}
)
"""How a call may end; whatever else it is, it is under way."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said."""

    key: str
    rev: int
    at: float
    by: str
    text: str
    under: str = ""


@dataclass(frozen=True, slots=True)
class Replied:
    key: str
    rev: int
    at: float
    text: str
    under: str = ""


@dataclass(frozen=True, slots=True)
class Called:
    """`args` are those that ran, else those that the model wanted; `changed` by a person."""

    key: str
    rev: int
    at: float
    tool: str
    args: Mapping[str, Json]
    malformed: str | None = None
    standing: str = "ready"
    content: Json = None
    problem: str = ""
    changed: bool = False
    child_id: str | None = None
    under: str = ""

    @property
    def over(self) -> bool:
        return self.standing in OVER


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and how it ended; `option_id` is what was chosen."""

    key: str
    rev: int
    at: float
    question_id: str
    request: InteractionRequest
    status: str = "open"
    by: str = ""
    option_id: str | None = None
    feedback: str = ""
    under: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something about the chat itself: `what` is failed, resumed or stopping."""

    key: str
    rev: int
    at: float
    what: str
    by: str = ""
    text: str = ""
    under: str = ""


ChatEntry: TypeAlias = Said | Replied | Called | Asked | Noted


@dataclass(frozen=True, slots=True)
class Chat:
    """The last events of a session as entries; `replied` is the last reply's event. `earlier` is
    how many records would show more, None where these are all."""

    entries: tuple[ChatEntry, ...]
    replied: int
    earlier: int | None


@dataclass
class Transcript:
    """Takes a session's records one after another."""

    entries: dict[str, Any] = field(default_factory=dict)
    replied: int = 0

    @classmethod
    def of(cls, records: Iterable[Recorded]) -> Transcript:
        told = cls()
        for one in records:
            told.hear(one)
        return told

    def hear(self, one: Recorded) -> None:
        """Records that mean nothing to a reader pass."""
        seq, at, event = one.seq, one.at, one.event
        match event:
            case r.TurnStarted():
                self._add(Said(f"said-{seq}", seq, at, event.by, event.text))
            case r.CallProposed():
                self._add(Said(f"said-{seq}", seq, at, event.by, ""))
                self._want(one, event.call)
            case r.ModelReplied():
                self._reply(one, event)
            case r.CallStarted():
                self._call_started(seq, event)
            case r.StepEnded():
                self._change(
                    f"call-{event.step_id}", seq, standing=event.how, content=event.content
                )
            case r.StepAbandoned():
                key = f"call-{event.step_id}"
                self._change(key, seq, standing="failed", content=event.content)
            case r.TurnFailed():
                self._add(Noted(f"note-{seq}", seq, at, "failed", text=event.message))
            case r.TurnResumed():
                self._add(Noted(f"note-{seq}", seq, at, "resumed", event.by))
            case _:
                self._hear_of_steps(one)

    def _hear_of_steps(self, one: Recorded) -> None:
        seq, at, event = one.seq, one.at, one.event
        match event:
            case e.AttemptFailed():
                told = event.failure.message
                self._change(f"call-{event.step_id}", seq, standing="retrying", problem=told)
            case e.OutcomeLost():
                self._change(f"call-{event.step_id}", seq, standing="lost", problem=event.reason)
            case e.StepReleased():
                self._change(f"call-{event.step_id}", seq, standing="ready")
            case e.QuestionOpened():
                self._ask(one, event)
            case e.QuestionAnswered():
                feedback = event.feedback or ""
                self._answer(
                    event.question_id, seq, "answered", event.option_id, event.by, feedback
                )
            case e.QuestionExpired():
                self._answer(event.question_id, seq, "expired", event.option_id)
            case e.QuestionWithdrawn():
                self._answer(event.question_id, seq, "withdrawn", None)
            case e.CancelRequested():
                self._add(Noted(f"note-{seq}", seq, at, "stopping", event.by, event.reason))
            case e.RunCancelled():
                self._stop(seq)

    def _add(self, entry: ChatEntry) -> None:
        self.entries[entry.key] = entry

    def _change(self, key: str, rev: int, **changes: Any) -> None:
        """A question that belongs to no call is a step without an entry, and so is thinking."""
        if key in self.entries:
            self.entries[key] = replace(self.entries[key], rev=rev, **changes)

    def _reply(self, one: Recorded, event: r.ModelReplied) -> None:
        self.replied = one.seq
        if event.text.strip():
            self._add(Replied(f"said-{one.seq}", one.seq, one.at, event.text))
        for call in event.calls:
            self._want(one, call)

    def _want(self, one: Recorded, call: r.Call) -> None:
        key = f"call-{call.step_id}"
        self._add(Called(key, one.seq, one.at, call.tool, call.args, call.malformed))

    def _call_started(self, seq: int, event: r.CallStarted) -> None:
        key = f"call-{event.step_id}"
        wanted = self.entries.get(key)
        if wanted is None:
            return
        otherwise = wanted.changed or dict(wanted.args) != dict(event.args)
        self._change(
            key,
            seq,
            standing="running",
            args=event.args or wanted.args,
            changed=otherwise and bool(event.args),
            child_id=event.child_id or wanted.child_id,
            problem="",
        )

    def _ask(self, one: Recorded, event: e.QuestionOpened) -> None:
        under = f"call-{event.step_id}"
        self._change(under, one.seq, standing="waiting")
        question_id = event.request.request_id
        asked = Asked(f"ask-{question_id}", one.seq, one.at, question_id, event.request)
        self._add(replace(asked, under=under if under in self.entries else ""))

    def _answer(
        self,
        question_id: str,
        rev: int,
        status: str,
        option_id: str | None,
        by: str = "",
        feedback: str = "",
    ) -> None:
        asked = self.entries.get(f"ask-{question_id}")
        if asked is None:
            return
        changes = {"status": status, "by": by, "feedback": feedback}
        self._change(asked.key, rev, option_id=option_id, **changes)
        self._change(asked.under, rev, standing="ready")

    def _stop(self, seq: int) -> None:
        for key, entry in tuple(self.entries.items()):
            if isinstance(entry, Called) and not entry.over:
                self._change(key, seq, standing="stopped")

    def put_open(self, questions: Iterable[InteractionView]) -> None:
        """The questions that are open now, with those of agents that work was handed on to."""
        for one in questions:
            key = f"ask-{one.question_id}"
            if key not in self.entries:
                under = self._helper_of(one.run_id)
                asked = Asked(key, 0, one.opened_at, one.question_id, one.request, under=under)
                self._add(asked)

    def _helper_of(self, run_id: str) -> str:
        calls = (one for one in self.entries.values() if isinstance(one, Called) and one.child_id)
        return next((one.key for one in calls if f"{run_id}.".startswith(f"{one.child_id}.")), "")

    def in_order(self) -> tuple[ChatEntry, ...]:
        """Everything as it came, and what belongs to a call right below it."""
        below: dict[str, list[ChatEntry]] = {}
        for one in self.entries.values():
            below.setdefault(one.under, []).append(one)
        return tuple(entry for one in below.get("", ()) for entry in (one, *below.get(one.key, ())))
