"""Reading runs: what surfaces ask of the read model, of an application or of a home's journal.

`RunReader.of(app)` reads what the engine has; `RunReader(journal)` folds what is committed, so it
also reads a home that another process drives. Nothing here changes a run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, Self, TypeVar, cast

from holdfast.errors import NotFound
from holdfast.i18n.message import msg, term
from holdfast.journal.condition import Figures
from holdfast.journal.port import Journal, Record, questions_below
from holdfast.journal.shared import SharedJournal
from holdfast.model.rows import ANY_RUN, QuestionQuery, QuestionRow, RunQuery, RunRow
from holdfast.model.run import KINDS, RunKind, RunStatus
from holdfast.views.records import (
    EventRecord,
    InteractionView,
    Raised,
    RunLine,
    RunView,
    about_row,
    interaction_view,
    run_line,
)

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.core.run.state import RunState
    from holdfast.journal.port import Record, StoredDefinition
    from holdfast.model.agent import Agent
    from holdfast.model.interaction import InteractionRequest
    from holdfast.model.rows import AuditEntry
    from holdfast.runtime.hub import AskedBelow, Hub, Spoken
    from holdfast.views.attempts import Attempt
    from holdfast.views.chat import Chat
    from holdfast.views.past import Past
    from holdfast.views.records import ConversationView, TimelineEntry
    from holdfast.views.timeline import Following

P = ParamSpec("P")
R = TypeVar("R")

LARGE: Final = 1000
"""A run of more events or tasks is looked at beside the event loop: a view of 10,000 tasks takes
80 ms, their graph 150 ms."""

TURN_SECONDS: Final = 0.005
"""How long events are told before others have their turn."""

RECALLED: Final = 100
"""How many events are recalled at once."""

PLAN: Final = "plan"


class CommittedEvent(NamedTuple):
    """Where an event stands among those of all runs, and in its own."""

    position: int
    run_id: str
    seq: int


@dataclass(frozen=True, slots=True)
class RunVersion:
    """A run as it was after one event. Only `views` looks at its state: surfaces hand it back to
    ask more of the very same version."""

    state: RunState
    now: float

    @property
    def run_id(self) -> str:
        return self.state.run_id

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def kind(self) -> RunKind:
        from holdfast.runtime.machines import machine_of

        return KINDS[machine_of(self.state).kind]

    @property
    def status(self) -> RunStatus:
        return self.state.status

    async def beside(self, work: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
        """What `work`, which looks at this run, returns; it is done beside the event loop where the
        run is large."""
        from holdfast.runtime.offload import aside

        if max(self.version, self._tasks()) > LARGE:
            return await aside(work, *args, **options)
        return work(*args, **options)

    def _tasks(self) -> int:
        """Its tasks, and how often one waits for another."""
        from holdfast.core.conversation.state import ConversationState
        from holdfast.core.plan.state import PlanState

        state = self.state
        if isinstance(state, PlanState):
            return len(state.plan.task_ids)
        if isinstance(state, ConversationState):
            return sum(1 + len(state.tasks[one].dependencies) for one in state.order)
        return 0

    def view(self, *, parts: bool = True) -> RunView:
        from holdfast.views.folds import run_view

        return run_view(self.state, self.now, parts=parts)

    def agent(self) -> Agent | None:
        """The agent that a session is pinned to."""
        from holdfast.core.agent.state import ReactState

        return self.state.agent if isinstance(self.state, ReactState) else None

    def question(
        self, row: QuestionRow, about: str = "", request: InteractionRequest | None = None
    ) -> InteractionView:
        """One of its questions; `request` where it was read from the row before."""
        return interaction_view(row, about, request, self.state.questions.get(row.question_id))

    def conversation(self) -> ConversationView | None:
        """What a conversation has beyond other runs."""
        from holdfast.core.conversation.state import ConversationState
        from holdfast.views.folds import conversation_view

        state = self.state
        return conversation_view(state) if isinstance(state, ConversationState) else None


@dataclass(frozen=True)
class RunReader:
    journal: Journal
    states: Callable[[str], Awaitable[RunState]] | None = None
    clock: Callable[[], float] = time.time
    hub: Hub | None = None
    _past: list[Past] = field(default_factory=list)

    @classmethod
    def of(cls, app: Holdfast) -> Self:
        engine = app.engine
        return cls(app.journal, engine.state, engine.clock.now, engine.hub)

    # Lists: rows only.

    async def runs(self, query: RunQuery = ANY_RUN) -> list[RunLine]:
        """A page, the newest first."""
        return [run_line(row) for row in await self.journal.runs(query)]

    async def line(self, run_id: str) -> RunLine | None:
        row = await self.journal.run(run_id)
        return None if row is None else run_line(row)

    async def rows(self, query: RunQuery = ANY_RUN) -> list[RunRow]:
        """As `runs`, the rows themselves."""
        return await self.journal.runs(query)

    async def row(self, run_id: str) -> RunRow | None:
        return await self.journal.run(run_id)

    async def root(self, run_id: str) -> RunRow | None:
        """The run at the top of a run's tree."""
        row = await self.journal.run(run_id)
        if row is None or row.root_id == row.run_id:
            return row
        return await self.journal.run(row.root_id)

    async def run_counts(self) -> Mapping[tuple[str, str], int]:
        """How many runs there are of each kind and status."""
        return await self.journal.run_counts()

    async def version(self, run_id: str) -> int:
        """The run's last event; 0 when there is no such run."""
        return await self.journal.version(run_id)

    # One run.

    async def run(self, run_id: str, *, parts: bool = True) -> RunView:
        """The run as it is; NotFound when there is none."""
        return (await self.at(run_id)).view(parts=parts)

    async def at(self, run_id: str, seq: int | None = None) -> RunVersion:
        """The run after event `seq`, or as it is."""
        state = await self._state(run_id)
        if seq is not None and seq < state.version:
            state = await self._earlier(state, seq)
        return RunVersion(state, self.clock())

    def of_state(self, state: RunState) -> RunVersion:
        """What a command has led to, as it is returned by the engine."""
        return RunVersion(state, self.clock())

    def watch(self, run_id: str, moved: Callable[[RunStatus, int], None]) -> Callable[[], None]:
        """Tell the status and version of each commit, until the returned function is called."""
        assert self.hub is not None, "only a run of this process can be watched"
        return self.hub.watch(run_id, lambda state: moved(state.status, state.version))

    async def events(
        self, run_id: str, after: int = 0, limit: int | None = None
    ) -> list[EventRecord]:
        """What was recorded, as it is published."""
        from holdfast.views.published import event_record

        records = await self.journal.read(run_id, after, limit)
        return [event_record(run_id, one) for one in records]

    async def timeline(
        self, run_id: str, after: int = 0, limit: int | None = None
    ) -> list[TimelineEntry]:
        """The run's events in words, from the one after `after`, with how the run was then."""
        return await self.more(await self.following(run_id, after), limit)

    async def following(self, run_id: str, after: int = 0) -> Following:
        """The run after event `after`, to be folded along with what comes next."""
        from holdfast.views.timeline import FURTHER_BACK, Following, is_session

        now = await self._state(run_id)
        following = Following(await self._earlier(now, after))
        for told in range(0, after if is_session(now) else 0, RECALLED):
            following.recall(await self.journal.read(run_id, told, min(RECALLED, after - told)))
            await asyncio.sleep(0)
        if after:
            back = max(after - FURTHER_BACK, 0)
            following.look_back(await self.journal.read(run_id, back, after - back))
        return following

    async def more(self, following: Following, limit: int | None = None) -> list[TimelineEntry]:
        """What was committed since, in words; a home that another process drives is polled so."""
        records = await self.journal.read(following.run_id, following.state.version, limit)
        return await self.told(following, records)

    async def told(self, following: Following, records: Sequence[Record]) -> list[TimelineEntry]:
        """These records in words, which come next in the run; others have their turn meanwhile."""
        await following.look_below(self.journal, records)
        entries: list[TimelineEntry] = []
        since = time.perf_counter()
        for one in records:
            entries.append(following.tell(one))
            if time.perf_counter() - since > TURN_SECONDS:
                await asyncio.sleep(0)
                since = time.perf_counter()
        return entries

    async def follow(
        self, run_id: str, after: int = 0, *, views: bool = False
    ) -> AsyncGenerator[TimelineEntry | Spoken | AskedBelow | RunView, None]:
        """As `timeline`, and then each event as it is committed; with `views` the run itself after
        each page of events."""
        assert self.hub is not None, "only a run of this process can be followed"
        following: Following | None = None
        async with aclosing(self.hub.follow(run_id, after)) as followed:
            async for one in followed:
                if not isinstance(one, list):
                    yield one
                    continue
                # Read once the hub listens, so that no live words are missed meanwhile.
                following = following or await self.following(run_id, after)
                for entry in await self.told(following, one):
                    yield entry
                if one and views:
                    yield following.view(self.clock())

    async def chat(self, run_id: str, records: int | None = None) -> Chat:
        """A session's last `records` events as its reader sees them, with all open questions."""
        from holdfast.views.chat import RECORDS, Chat, Transcript
        from holdfast.views.timeline import decoded

        wanted = RECORDS if records is None else records
        last = await self.version(run_id)
        after = max(0, last - wanted)
        told = Transcript.of(decoded(await self.journal.read(run_id, after, last - after)))
        told.put_open([one async for one in self.open_questions(run_id)])
        return Chat(told.in_order(), told.replied, 2 * wanted if after else None)

    async def attempts(
        self, run: RunVersion, step_ids: Collection[str]
    ) -> Mapping[str, tuple[Attempt, ...]]:
        """Each start of these steps' work up to that version, by step."""
        from holdfast.views.attempts import attempts

        if not step_ids:
            return {}
        records = await self.journal.read(run.run_id, 0, run.version)
        return await run.beside(attempts, run.state, records, step_ids)

    async def tracebacks(self, run_id: str) -> list[Raised]:
        """What its tools raised: the last of each step, the newest first."""
        from holdfast.runtime.tracebacks import tracebacks_of
        from holdfast.views.stories.storyteller import storyteller

        found = await tracebacks_of(self.journal, run_id, self.clock())
        if not found:
            return []
        name = storyteller(await self._state(run_id)).step
        return [
            Raised(one.step_id, name(one.step_id), one.attempt, one.at, one.text) for one in found
        ]

    # All runs together.

    async def records(
        self, run_id: str, after: int = 0, limit: int | None = None, most_text: int | None = None
    ) -> list[Record]:
        """What was recorded, as it is stored; with `most_text` the record that brings the text to
        that length is the last."""
        return await self.journal.read(run_id, after, limit, most_text)

    async def figures(self) -> Figures | None:
        """How an installation is whose journal many processes share; None of any other."""
        if not self.journal.shared:
            return None
        return await cast(SharedJournal, self.journal).figures()

    async def last_position(self) -> int:
        """The newest position of a committed event; 0 when there is none."""
        return await self.journal.last_commit()

    async def committed(self, after: int, limit: int) -> list[CommittedEvent] | None:
        """The events after a position, in the order of their commits; None where that is no longer
        known."""
        if after < await self.journal.forgotten():
            return None
        found = (
            CommittedEvent(one.position - (one.last - seq), one.run_id, seq)
            for one in await self.journal.commits(after, limit)
            for seq in range(one.first, one.last + 1)
        )
        return list(islice(found, limit))

    async def audit(self, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """The audit's entries from the one after `after`, in order."""
        return await self.journal.audit(after, limit)

    async def plan_versions(self, plan_id: str) -> list[StoredDefinition]:
        """All that were registered or run under the id, the newest first."""
        return await self.journal.definitions(PLAN, plan_id)

    # Questions.

    async def question_counts(self) -> Mapping[tuple[str, str], int]:
        """How many questions there are of each status and type."""
        return await self.journal.question_counts()

    async def question_row(self, question_id: str) -> QuestionRow | None:
        return await self.journal.question(question_id)

    async def question_rows(self, query: QuestionQuery) -> list[QuestionRow]:
        """A page, the oldest first."""
        return await self.journal.questions(query)

    async def questions(self, query: QuestionQuery) -> list[InteractionView]:
        """A page; `about` is left out."""
        return [interaction_view(row) for row in await self.journal.questions(query)]

    async def question(self, question_id: str) -> InteractionView | None:
        """One question, with how it was answered or what was filled in so far."""
        row = await self.journal.question(question_id)
        return None if row is None else await self.whole(row)

    async def whole(self, row: QuestionRow) -> InteractionView:
        root = await self.journal.run(row.root_id)
        about = "" if root is None else about_row(root)
        return (await self.at(row.run_id)).question(row, about)

    async def open_questions(self, run_id: str) -> AsyncIterator[InteractionView]:
        """All that a run and those below it ask a person, the oldest first, however many."""
        root = await self.journal.run(run_id)
        if root is None:
            raise NotFound(msg("there is no {kind} {name}", kind=term("run"), name=run_id))
        async for row in self.open_rows(run_id, root.root_id):
            yield interaction_view(row)

    def open_rows(
        self, run_id: str, root_id: str, after: str | None = None
    ) -> AsyncGenerator[QuestionRow, None]:
        """As `open_questions`, the rows themselves; with `after` those asked after that one."""
        return questions_below(self.journal, run_id, root_id, after=after)

    async def _state(self, run_id: str) -> RunState:
        if self.states is not None:
            return await self.states(run_id)
        from holdfast.views.home import committed_state

        return await committed_state(self.journal, run_id)

    async def _earlier(self, now: RunState, seq: int) -> RunState:
        from holdfast.views.past import Past

        if not self._past:
            self._past.append(Past())
        return await self._past[0].state(self.journal, now, seq)
