"""One active run: its state, its mailbox and what it has in flight.

`state` may be ahead of the journal by events of pure work; `committed` never is.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from holdfast.core.run.builder import NO_MOMENT, DecisionBuilder
from holdfast.core.run.state import ANY_STEP, RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import HoldfastError
from holdfast.journal.codec import encode_all
from holdfast.journal.port import NOTHING, Append, Attached, Drive
from holdfast.model.commands import Command, Moment, Outcome, ReportOutcome
from holdfast.model.effects import Effect, Work
from holdfast.model.record import constructor
from holdfast.model.recorded import Event
from holdfast.model.run import RunStatus
from holdfast.runtime import projections
from holdfast.runtime.audit import REQUEST, left_by
from holdfast.runtime.identity import Claim, Identity
from holdfast.runtime.machines import Machine, machine_of, run_row

_READY: Final = StepStatus.READY

RowProjection: TypeAlias = tuple[RunStatus, bool, float | None]
"""What must be in a run's row at once; all else of it may lag behind a little."""


class Readiness:
    """The steps that are ready, the most urgent first."""

    __slots__ = ("_priority", "_pushed", "heap", "readied")

    def __init__(self, state: RunState, readied: list[str]) -> None:
        self.heap: list[tuple[int, int, str]] = []
        self.readied = readied
        self._pushed = 0
        self._priority = machine_of(state).priority
        self.rebuild(state)

    def rebuild(self, state: RunState) -> None:
        self.heap.clear()
        self.readied.clear()
        self._push(state, sorted(one for one in state.steps if is_ready(state, one)))

    def _push(self, state: RunState, step_ids: Iterable[str]) -> None:
        for step_id in step_ids:
            self._pushed += 1
            priority = self._priority(state, step_id)
            heapq.heappush(self.heap, (priority, self._pushed, step_id))

    def note(self, state: RunState) -> None:
        """Take over what has become ready."""
        if ANY_STEP in self.readied:
            self.rebuild(state)
        else:
            self._push(state, self.readied)
            self.readied.clear()

    def pop(self, state: RunState) -> tuple[str, StepState] | None:
        """The most urgent step that is really ready."""
        heap, readied = self.heap, self.readied
        while heap or readied:
            if len(readied) == 1 and not heap and readied[0] != ANY_STEP:
                step_id = readied.pop()  # there is no other to compare it with
            elif readied:
                self.note(state)
                continue
            else:
                step_id = heapq.heappop(heap)[2]
            try:
                step = state.steps[step_id]
            except KeyError:
                continue
            if step.status is _READY:
                return step_id, step
        return None


def is_ready(state: RunState, step_id: str) -> bool:
    step = state.steps.get(step_id)
    return step is not None and step.status is _READY


@dataclass(slots=True)
class Envelope:
    """A command on its way to a run; `reply` is None where no caller waits for it.

    What a `lazy` one decides could be decided again at no cost, so it may wait for
    company on its way to disk. `attached` becomes true with the command, if it is accepted;
    `attempts` counts how often a mistake of ours has kept it from the journal. One with a `drive`
    counts only while the run is driven as that.
    """

    command: Command
    reply: asyncio.Future[RunState] | None = None
    notice: tuple[str, int] | None = None
    lazy: bool = False
    acting: Identity | None = None
    attached: Attached = NOTHING
    attempts: int = 0
    drive: Drive | None = None

    @property
    def claim(self) -> Claim | None:
        """That of the request which gave the command."""
        return None if self.acting is None else self.acting.claim

    def claims(self, kind: str, key: str) -> bool:
        """Whether its request has that claim."""
        return self.claim is not None and (kind, key) == (REQUEST, self.claim.key)

    def answer(self, state: RunState, refusal: HoldfastError | None) -> None:
        """Tell the caller, if one still waits."""
        if self.reply is None or self.reply.done():
            return
        if refusal is None:
            self.reply.set_result(state)
        else:
            self.reply.set_exception(refusal)


envelope: Final = constructor(Envelope)
report_outcome: Final = constructor(ReportOutcome)


def report(work: Work, outcome: Outcome) -> ReportOutcome:
    return ReportOutcome(work.step_id, work.firing, work.claim, outcome)


@dataclass(slots=True, eq=False)
class Actor:
    run_id: str
    machine: Machine
    builder: DecisionBuilder[Any, Event]
    committed: RunState
    ready: Readiness
    unsaved: list[tuple[float, Event]]
    pulled: bool
    carry_out: Callable[[Any, Command], Sequence[Effect]]
    goes_on_by_itself: Callable[[Any], bool]
    mailbox: deque[Envelope] = field(default_factory=deque)
    child_appends: list[tuple[Append, Actor]] = field(default_factory=list)
    attached: list[Attached] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    in_flight: dict[tuple[str, int], asyncio.Future[None]] = field(default_factory=dict)
    """What is under way, by its step and claim: after a refused append another step may get the
    claim of a snippet that is still at work."""
    draining: bool = False
    stale: bool = False
    wanted: str = ""
    """The version that a ready step would run, to be read before the next turn."""
    appending: int = 0
    """The version that an append will have made which is under way, on a shared journal."""
    drive: Drive | None = None
    """As whose driver this process starts its steps, where the journal is shared."""
    taking: bool = False
    unmoved: bool = False
    """It has just been taken to be driven, at the version that is known: nothing is to be read."""
    let_go: asyncio.Future[None] | None = None
    readers: list[asyncio.Future[RunState]] = field(default_factory=list)
    """Callers that wait until the run is as it is on disk."""
    awaits_permit: bool = False
    permits: int = 0
    retry: asyncio.Handle | None = None
    flush_timer: asyncio.TimerHandle | None = None
    projected: RowProjection | None = None
    row_at: float = 0.0
    snapshot_size: int = 0
    bytes_since: int = 0

    @classmethod
    def of(cls, state: RunState, moment: Moment = NO_MOMENT) -> Actor:
        machine = machine_of(state)
        builder = machine.builder(state, moment)
        ready = Readiness(state, builder.readied)
        # What a turn asks of the machine is kept here: of its class it would be read slowly.
        asked = machine.pulled, machine.carry_out, machine.goes_on_by_itself
        return cls(state.run_id, machine, builder, state, ready, builder.events, *asked)

    @property
    def logged(self) -> dict[str, str]:
        """What a log line about it carries."""
        return {"run": self.run_id}

    @property
    def state(self) -> RunState:
        state: RunState = self.builder.state
        return state

    @property
    def idle(self) -> bool:
        busy = self.mailbox or self.unsaved or self.in_flight or self.draining or self.awaits_permit
        return not busy and not self.stale and self.drive is None

    def decide(self, command: Command) -> Sequence[Effect]:
        """What the core says; its events wait in `unsaved` to be committed. A refusal raises and
        leaves everything as it was."""
        mark = self.builder.mark
        try:
            return self.carry_out(self.builder, command)
        except Exception:
            self.builder.rewind(self.committed, mark)
            raise

    def take(self, envelope: Envelope) -> Sequence[Effect]:
        """As `decide`, with what commits together with the envelope when it is accepted."""
        before, self.builder.shared = self.state, True
        effects = self.decide(envelope.command)
        if envelope.acting is not None:
            left = left_by(envelope.acting, envelope.command, before, self.state, self.builder.now)
            self._attach(left)
            if left.claimed and envelope.claim is not None:
                self.claims.append(envelope.claim)
        if envelope.attached is not NOTHING:
            self._attach(envelope.attached)
        return effects

    def awaited(self) -> asyncio.Future[RunState]:
        """What a caller waits for who wants the run as it is on disk."""
        reader: asyncio.Future[RunState] = asyncio.get_running_loop().create_future()
        self.readers.append(reader)
        return reader

    def answer_readers(self, refusal: HoldfastError | None = None) -> None:
        readers, self.readers = self.readers, []
        for reader in readers:
            if reader.done():
                continue
            if refusal is None:
                reader.set_result(self.committed)
            else:
                reader.set_exception(refusal)

    def refuse_callers(self, refusal: HoldfastError) -> None:
        """Tell all who wait; what no caller waits for stays in the mailbox."""
        for envelope in self.mailbox:
            envelope.answer(self.committed, refusal)
        self.answer_readers(refusal)
        kept = [envelope for envelope in self.mailbox if envelope.reply is None]
        self.mailbox.clear()
        self.mailbox.extend(kept)

    def drop_of_drives(self) -> None:
        """Forget what counted only while the run was driven otherwise than it is now: another
        driver's calls are in flight, and nobody else knows what became of them."""
        if self.mailbox:
            kept = [one for one in self.mailbox if one.drive is None or one.drive == self.drive]
            self.mailbox.clear()
            self.mailbox.extend(kept)

    def _attach(self, attached: Attached) -> None:
        one = attached
        if one.audit or one.kept or one.dropped or one.claimed or one.spent:
            self.attached.append(attached)

    def settle(self) -> None:
        """What went along with the events is on disk too."""
        self.child_appends, self.attached = [], []
        for claim in self.claims:
            claim.held = True
        self.claims.clear()
        if self.flush_timer is not None:
            self.flush_timer.cancel()
            self.flush_timer = None

    def forget(self) -> None:
        """What was decided since the last commit has not happened."""
        self.unsaved.clear()
        self.child_appends.clear()
        self.attached.clear()
        self.claims.clear()
        self.builder.state, self.builder.shared = self.committed, True
        self.projected = None
        self.ready.rebuild(self.state)


_append: Final = constructor(Append)

ROW_LAG = 1.0
"""How old the progress in lists may be, in seconds, while nothing else in the row changes."""


def append_of(
    actor: Actor, envelopes: Sequence[Envelope] = (), along: Sequence[Attached] = ()
) -> Append:
    state, committed, unsaved = actor.builder.state, actor.committed, actor.unsaved
    heard: tuple[tuple[str, int], ...] = ()
    for envelope in envelopes:
        if envelope.notice is not None:
            heard = (*heard, envelope.notice)
    records, size = encode_all(unsaved, committed.version + 1)
    actor.bytes_since += size
    # The row, where something in it cannot wait or has waited long enough. Only a run that goes on
    # by itself may let it wait: another append is sure to follow.
    row, timers = None, state.timers
    goes_on_by_itself = actor.goes_on_by_itself
    goes_on = goes_on_by_itself(state)
    projected = (state.status, goes_on, min(timers.values()) if timers else None)
    at = unsaved[-1][0] if unsaved else 0.0
    if not goes_on or projected != actor.projected or at - actor.row_at >= ROW_LAG:
        actor.row_at, actor.projected = at, projected
        row = run_row(state)
    return _append(
        actor.run_id,
        committed.version,
        records,
        row,
        () if state.questions is committed.questions else projections.question_rows(state, unsaved),
        [append for append, _ in actor.child_appends] if actor.child_appends else (),
        projections.notices(committed, state) if state.parent is not None else (),
        heard,
        _together([*actor.attached, *along]) if actor.attached or along else NOTHING,
    )


def _together(attached: Sequence[Attached]) -> Attached:
    """Everything that goes into one append."""
    if len(attached) == 1:
        return attached[0]
    # Two commands of one request have one claim, and the later says how far the run has come.
    claimed = {(kept.kind, kept.key): kept for one in attached for kept in one.claimed}
    return Attached(
        audit=[record for one in attached for record in one.audit],
        kept=[kept for one in attached for kept in one.kept],
        dropped=[name for one in attached for name in one.dropped],
        claimed=tuple(claimed.values()),
        spent=[name for one in attached for name in one.spent],
        at=max(one.at for one in attached),
    )
