"""A run's timeline: who did what and when, the newest first, and how long it took.

A page reads a little further back than it shows: what began there may end here. Of the drafts
that somebody kept while filling in one question it tells the last, and nothing of what other
events tell already. The first page grows while somebody looks at it: a row that was shown is not
taken away by what comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from holdfast.console.formatting import query
from holdfast.core.agent.state import THINK, ReactState
from holdfast.core.run.state import RunState
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model.events import DraftKept
from holdfast.model.recorded import Event
from holdfast.runtime.hub import Recorded
from holdfast.server.services import Services
from holdfast.views.stories.lines import UNTOLD, Teller
from holdfast.views.stories.phrases import Voice
from holdfast.views.stories.storyteller import storyteller

PAGE: Final = 20
LONGEST: Final = 200
FURTHER_BACK: Final = 100

TONES: Final[Mapping[str, frozenset[str]]] = {
    "done": frozenset(
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
        }
    ),
    "failed": frozenset(
        {
            "ListenerFailed",
            "PlannerGaveUp",
            "TurnFailed",
            "TaskBroke",
            "TaskFailed",
            "EngineFailed",
            "OutcomeLost",
            "QuestionExpired",
        }
    ),
    "retrying": frozenset({"AttemptFailed", "PlannerRetried", "StepWoken"}),
    "waiting": frozenset(
        {"QuestionOpened", "QuestionReminded", "QuestionEscalated", "EnginePaused", "DraftKept"}
    ),
    "cancelled": frozenset({"CancelRequested", "RunCancelled", "ListenerSkipped"}),
    "idle": frozenset({"QuestionWithdrawn", "StepReleased", "LateResultKept", "PhaseChanged"}),
}
"""Events by the colour of their dot; all others are something under way."""

_TONE_OF: Final = {name: tone for tone, names in TONES.items() for name in names}
_BEGINS: Final = frozenset(
    {"ListenerStarted", "TaskStarted", "CallStarted", "WorkStarted", "ThinkingStarted"}
)
_ENDS: Final = frozenset(
    {
        "ListenerSucceeded",
        "ListenerFailed",
        "AttemptFailed",
        "CheckConcluded",
        "TaskFinished",
        "TaskBroke",
        "StepEnded",
        "ModelReplied",
        "ContextReceived",
        "GoalDecomposed",
    }
)


@dataclass(frozen=True, slots=True)
class Told:
    """One event; `moves` are what it did to tasks, `took` how long what it ends has taken."""

    seq: int
    at: float
    tone: str
    who: str
    what: str
    moves: tuple[str, ...]
    took: float | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """`before` is where the page begins that was asked for, `older` where the next one does.

    The first page's address names the oldest row that it shows, and so keeps it.
    `drawn` says that the run has a graph, which can be seen as it was at each event.
    """

    run_id: str
    rows: tuple[Told, ...]
    before: int | None
    older: int | None
    drawn: bool

    @property
    def part(self) -> str:
        since = self.rows[-1].seq if self.rows and self.before is None else None
        page = query(before=self.before, since=since)
        return f"/console/parts/runs/{self.run_id}/timeline{page}"


async def timeline_of(
    served: Services, state: RunState, say: Voice, before: int | None, since: int | None = None
) -> Timeline:
    """At least a page; with `since` all from that event on, as far as a page may grow."""
    last = state.version if before is None else min(before - 1, state.version)
    first = max(min(since or last, last - PAGE), last - LONGEST)
    back = max(first - FURTHER_BACK, 0)
    records = await served.journal.read(state.run_id, back, last - back)
    told = _told(state, say, _worth_telling(_decoded(records)))
    shown = sum(one.seq >= first for one in told) if since else 0
    rows = told[-max(shown, PAGE) :]
    earlier = rows[0].seq if len(told) > len(rows) else back + 1
    drawn = not isinstance(state, ReactState)
    older = earlier if earlier > 1 else None
    return Timeline(state.run_id, tuple(reversed(rows)), before, older, drawn)


async def told_event(served: Services, state: RunState, say: Voice) -> Told:
    """The event that made the run what it is in `state`."""
    back = max(state.version - FURTHER_BACK, 0)
    records = await served.journal.read(state.run_id, back, state.version - back)
    return _told(state, say, _decoded(records))[-1]


def _decoded(records: Iterable[Record]) -> list[Recorded]:
    return [Recorded(one.seq, one.at, decode(one)) for one in records]


def _worth_telling(events: Sequence[Recorded]) -> list[Recorded]:
    kept, newer = list[Recorded](), set[tuple[str, str]]()
    for one in reversed(events):
        if isinstance(one.event, UNTOLD):
            continue
        if isinstance(one.event, DraftKept):
            draft = (one.event.question_id, one.event.by)
            if draft in newer:
                continue
            newer.add(draft)
        kept.append(one)
    return kept[::-1]


def _told(state: RunState, say: Voice, events: Iterable[Recorded]) -> list[Told]:
    chronicle = _Chronicle(storyteller(state, say), state.created_at)
    return [chronicle.tell(one) for one in events]


@dataclass(slots=True)
class _Chronicle:
    """Remembers when things began, to say at their end how long they took."""

    teller: Teller
    created_at: float
    began: dict[str, float] = field(default_factory=dict)

    def tell(self, recorded: Recorded) -> Told:
        first, *moves = self.teller.lines(recorded)
        kind = type(recorded.event).__name__
        return Told(
            seq=recorded.seq,
            at=recorded.at,
            tone=_TONE_OF.get(kind, "running"),
            who=first.who,
            what=first.what,
            moves=tuple(one.what.strip() for one in moves),
            took=self._took(kind, recorded.event, recorded.at),
        )

    def _took(self, kind: str, event: Event, at: float) -> float | None:
        if kind == "RunCompleted":
            return at - self.created_at
        name = _subject(event)
        if kind in _BEGINS or kind == "QuestionOpened":
            self.began[name] = at
            return None
        ends = kind in _ENDS or kind in ("QuestionAnswered", "QuestionExpired")
        began = self.began.pop(name, None) if ends else None
        return None if began is None else at - began


def _subject(event: Event) -> str:
    """The step or question that an event is about."""
    request = getattr(event, "request", None)
    question = getattr(event, "question_id", None) or getattr(request, "request_id", None)
    step = getattr(event, "step_id", None) or getattr(event, "listener_id", None)
    return question or step or THINK
