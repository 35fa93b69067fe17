"""One active run: its state, its mailbox and what it has in flight.

`state` may be ahead of the journal by events of pure work; `committed` never is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.core.run.state import RunState
from holdfast.errors import HoldfastError
from holdfast.journal.port import NOTHING, Append, Attached
from holdfast.model.commands import Command, Moment, Outcome, ReportOutcome
from holdfast.model.effects import Effect, Work
from holdfast.model.recorded import Event
from holdfast.runtime.acting import Acting
from holdfast.runtime.deeds import left_by
from holdfast.runtime.machines import Machine, machine_of
from holdfast.runtime.readiness import Readiness
from holdfast.runtime.views import Standing


@dataclass(slots=True)
class Letter:
    """A command on its way to a run; `reply` is None when nobody waits for it.

    What a `lazy` one decides could be decided again at no cost, so it may wait for
    company on its way to disk. `attached` becomes true with the command, if it is accepted.
    """

    command: Command
    reply: asyncio.Future[RunState] | None = None
    notice: tuple[str, int] | None = None
    lazy: bool = False
    acting: Acting | None = None
    attached: Attached = NOTHING

    def answer(self, state: RunState, refusal: HoldfastError | None) -> None:
        """Tell whoever waits, if somebody still does."""
        if self.reply is None or self.reply.done():
            return
        if refusal is None:
            self.reply.set_result(state)
        else:
            self.reply.set_exception(refusal)


def report(work: Work, outcome: Outcome) -> ReportOutcome:
    return ReportOutcome(work.step_id, work.firing, work.claim, outcome)


@dataclass(slots=True, eq=False)
class Actor:
    run_id: str
    machine: Machine
    state: RunState
    committed: RunState
    ready: Readiness
    mailbox: deque[Letter] = field(default_factory=deque)
    unsaved: list[tuple[float, Event]] = field(default_factory=list)
    births: list[tuple[Append, Actor]] = field(default_factory=list)
    attached: list[Attached] = field(default_factory=list)
    flying: dict[tuple[str, int], asyncio.Task[None]] = field(default_factory=dict)
    draining: bool = False
    stale: bool = False
    hungry: bool = False
    permits: int = 0
    retry: asyncio.Handle | None = None
    flush_timer: asyncio.TimerHandle | None = None
    standing: Standing | None = None
    row_at: float = 0.0
    snapshot_size: int = 0
    bytes_since: int = 0

    @classmethod
    def of(cls, state: RunState) -> Actor:
        return cls(state.run_id, machine_of(state), state, state, Readiness(state))

    @property
    def idle(self) -> bool:
        busy = self.mailbox or self.unsaved or self.flying or self.draining or self.hungry
        return not busy and not self.stale

    def decide(self, command: Command, moment: Moment) -> Sequence[Effect]:
        """What the core says; its events wait in `unsaved` to be committed."""
        decision = self.machine.decide(self.state, command, moment)
        events = decision.events
        if events:
            self.state = decision.state
            now, unsaved = moment.now, self.unsaved
            for event in events:
                unsaved.append((now, event))
            self.ready.note(decision.state, events)
        return decision.effects

    def take(self, letter: Letter, moment: Moment) -> Sequence[Effect]:
        """As `decide`, with what goes along with the letter when it is accepted."""
        before = self.state
        effects = self.decide(letter.command, moment)
        if letter.acting is None and letter.attached is NOTHING:
            return effects
        if letter.acting is not None:
            left = left_by(letter.acting, letter.command, before, self.state, moment.now)
            self._attach(left)
        if letter.attached is not NOTHING:
            self._attach(letter.attached)
        return effects

    def _attach(self, attached: Attached) -> None:
        if attached.deeds or attached.kept or attached.dropped:
            self.attached.append(attached)

    def committed_all(self) -> RunState:
        """Everything decided so far is on disk; the state that was there before."""
        before, self.committed = self.committed, self.state
        self.unsaved.clear()
        self.births, self.attached = [], []
        if self.flush_timer is not None:
            self.flush_timer.cancel()
            self.flush_timer = None
        return before

    def forget(self) -> None:
        """What was decided since the last commit has not happened."""
        self.unsaved.clear()
        self.births.clear()
        self.attached.clear()
        self.state = self.committed
        self.standing = None
        self.ready.rebuild(self.state)
