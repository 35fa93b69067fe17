"""A run's timeline: each event in words, who did what and when, and how long it took.

`Chronicle` tells events without the run's state: a page of a long run reads its own records and
`FURTHER_BACK` before them, for what began there may end here. `Following` folds the run along and
also says how the run is after each event, and what its followers hear.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from holdfast.agents.events import Narrator
from holdfast.conversations.events import narrate
from holdfast.core.agent.state import THINK, ReactState
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.state import RunState
from holdfast.drawing.picture import Condition
from holdfast.i18n.message import joined
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Record
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded
from holdfast.runtime.machines import replay
from holdfast.views.folds import rests, run_view
from holdfast.views.published import published
from holdfast.views.records import ChatLine, RunView, TimelineEntry
from holdfast.views.stories.below import Below, words_in
from holdfast.views.stories.lines import UNTOLD, Line, Teller
from holdfast.views.stories.sessions import ended, spelled
from holdfast.views.stories.storyteller import storyteller
from holdfast.views.stories.text import named, visible

FURTHER_BACK: Final = 100
_LONGEST_ARGS: Final = 2_000

TONES: Final[Mapping[Condition, frozenset[str]]] = {
    Condition.DONE: frozenset(
        {
            "ListenerSucceeded",
            "RunCompleted",
            "TurnCompleted",
            "TaskFinished",
            "TaskCompleted",
            "EngineCompleted",
            "CheckConcluded",
            "FunctionReturned",
            "StepEnded",
            "PlanPatched",
            "RepairProven",
        }
    ),
    Condition.FAILED: frozenset(
        {
            "ListenerFailed",
            "PlannerGaveUp",
            "TurnFailed",
            "TaskBroke",
            "TaskFailed",
            "EngineFailed",
            "OutcomeLost",
            "QuestionExpired",
            "RepairDisproven",
        }
    ),
    Condition.RETRYING: frozenset({"AttemptFailed", "PlannerRetried", "StepWoken"}),
    Condition.WAITING: frozenset(
        {
            "QuestionOpened",
            "QuestionReminded",
            "QuestionEscalated",
            "EnginePaused",
            "DraftKept",
            "WaitStarted",
            "PatchProposed",
        }
    ),
    Condition.CANCELLED: frozenset({"CancelRequested", "RunCancelled", "ListenerSkipped"}),
    Condition.IDLE: frozenset(
        {"QuestionWithdrawn", "StepReleased", "LateResultKept", "PhaseChanged", "CaseClosed"}
    ),
}
"""Event types by the colour of their dot; all others are something under way."""

_TONE_OF: Final = {name: tone for tone, names in TONES.items() for name in names}
_BEGINS: Final = frozenset(
    {
        "ListenerStarted",
        "WaitStarted",
        "TaskStarted",
        "CallStarted",
        "WorkStarted",
        "ThinkingStarted",
        "QuestionOpened",
    }
)
_ENDS: Final = frozenset(
    {
        "ListenerSucceeded",
        "ListenerFailed",
        "AttemptFailed",
        "CheckConcluded",
        "WaitEnded",
        "TaskFinished",
        "TaskBroke",
        "StepEnded",
        "ModelReplied",
        "ContextReceived",
        "GoalDecomposed",
        "QuestionAnswered",
        "QuestionExpired",
    }
)


def decoded(records: Iterable[Record]) -> list[Recorded]:
    return [Recorded(one.seq, one.at, decode(one)) for one in records]


def worth_telling(events: Sequence[Recorded]) -> list[Recorded]:
    """Without what other events tell already; of the drafts that one person kept of one question
    the last."""
    kept, newer = list[Recorded](), set[tuple[str, str]]()
    for one in reversed(events):
        if isinstance(one.event, UNTOLD):
            continue
        if isinstance(one.event, e.DraftKept):
            draft = (one.event.question_id, one.event.by)
            if draft in newer:
                continue
            newer.add(draft)
        kept.append(one)
    return kept[::-1]


@dataclass(slots=True)
class Chronicle:
    """Tells events one after another; remembers when things began."""

    teller: Teller
    created_at: float
    _began: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, state: RunState) -> Chronicle:
        return cls(storyteller(state), state.created_at)

    def tell(self, recorded: Recorded) -> TimelineEntry:
        return self._entry(recorded, self.teller.lines(recorded))

    def _entry(self, recorded: Recorded, lines: Sequence[Line]) -> TimelineEntry:
        kind = type(recorded.event).__name__
        return TimelineEntry(
            seq=recorded.seq,
            at=recorded.at,
            type=kind,
            who=lines[0].who,
            what=lines[0].what,
            moves=tuple(one.what for one in lines[1:]),
            tone=_TONE_OF.get(kind, Condition.RUNNING),
            took=self._took(kind, recorded.event, recorded.at),
            told=not isinstance(recorded.event, UNTOLD),
        )

    def _took(self, kind: str, event: Event, at: float) -> float | None:
        if kind == "RunCompleted":
            return at - self.created_at
        name = _subject(event)
        if kind in _BEGINS:
            self._began[name] = at
            return None
        began = self._began.pop(name, None) if kind in _ENDS else None
        return None if began is None else at - began


class Following:
    """As `Chronicle`, from a state on: folds each record into it."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self._chronicle = Chronicle.of(state)
        self._narrator = Narrator(state.run_id)
        self._heard = dict(state.heard)

    async def look_below(self, journal: Journal, records: Iterable[Record]) -> None:
        """Read what sub-runs asked, as far as these records have heard of them."""
        below = Below(journal, self._heard)
        self._chronicle.teller.below |= await below.told(words_in(records))

    @property
    def run_id(self) -> str:
        return self.state.run_id

    def recall(self, records: Iterable[Record]) -> None:
        """What was told before: later events of a session name calls by number only."""
        for one in decoded(records):
            self._narrator.tell(one)

    def look_back(self, records: Iterable[Record]) -> None:
        """The last events that were told before: what began in them may end in the next."""
        for one in decoded(records):
            self._chronicle.tell(one)

    def view(self, now: float, *, parts: bool = True) -> RunView:
        """The run after the last event that was told."""
        return run_view(self.state, now, parts=parts)

    def tell(self, record: Record) -> TimelineEntry:
        recorded = Recorded(record.seq, record.at, decode(record))
        self.state = replay(self.state, [(record.at, recorded.event)])
        if not self._chronicle.created_at:
            self._chronicle.created_at = self.state.created_at
        entry = self._chronicle.tell(recorded)
        return replace(
            entry,
            status=self.state.status,
            rests=rests(self.state),
            data=json.loads(published(record)[1]),
            chat=self._chat(recorded, entry),
            narrated=self._narrated(recorded),
        )

    def _narrated(self, recorded: Recorded) -> Mapping[str, Json] | None:
        if isinstance(self.state, ReactState):
            told = self._narrator.tell(recorded)
            return None if told is None else told.to_wire()
        if not isinstance(self.state, ConversationState):
            return None
        event = narrate(self.state, recorded.seq, recorded.at, recorded.event)
        return None if event is None else {"type": event.event_type.value, "data": dict(event.data)}

    def _chat(self, recorded: Recorded, entry: TimelineEntry) -> ChatLine | None:
        if not isinstance(self.state, ReactState):
            return None
        match recorded.event:
            case r.ModelReplied(text=text):
                return ChatLine("reply", text)
            case r.CallStarted(step_id=step_id, args=args):
                call = f"{self._tool(step_id)} {visible(spelled(args), _LONGEST_ARGS)}"
                return ChatLine("call", call)
            case r.StepEnded(step_id=step_id) as event if step_id != THINK:
                by = self._chronicle.teller.calls.confirmed_by(step_id)
                return ChatLine("result", ended(event, self._tool(step_id), by))
            case r.TurnStarted():
                return ChatLine("said", joined(" ", (entry.who, entry.what)))
            case (
                e.AttemptFailed()
                | e.OutcomeLost()
                | e.QuestionAnswered()
                | e.QuestionExpired()
                | e.QuestionWithdrawn()
                | e.QuestionReminded()
                | e.QuestionEscalated()
                | e.CancelRequested()
                | r.StepAbandoned()
                | r.TurnResumed()
            ):
                return ChatLine("note", joined(" ", (entry.who, entry.what)))
            case _:
                return None

    def _tool(self, step_id: str) -> str:
        assert isinstance(self.state, ReactState)
        call = self.state.calls.get(step_id)
        return named(call.tool if call is not None and call.tool else step_id)


def is_session(state: RunState) -> bool:
    return isinstance(state, ReactState)


def _subject(event: Event) -> str:
    """The step or question that an event is about."""
    request = getattr(event, "request", None)
    question = getattr(event, "question_id", None) or getattr(request, "request_id", None)
    step = getattr(event, "step_id", None) or getattr(event, "listener_id", None)
    return question or step or THINK
