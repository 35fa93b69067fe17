"""A turn of a run: the envelopes in its mailbox are decided, and what is ready is started.

The most urgent steps start first, while permits last. A child run is prepared here too: its first
append commits with the start of its parent's step.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.plan.state import PlanState
from holdfast.errors import (
    CallerError,
    HoldfastError,
    InternalError,
    NameGone,
    NameTaken,
    NotAllowed,
)
from holdfast.i18n.message import msg
from holdfast.journal.port import NOTHING
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.plan import VERSION
from holdfast.model.record import constructor
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import Parent
from holdfast.model.values import Json
from holdfast.runtime.actor import Actor, Envelope, append_of, is_ready, report
from holdfast.runtime.clock import Clock
from holdfast.runtime.executor import ConcurrencyLimit, Worker, is_pure
from holdfast.runtime.four_eyes import FourEyes
from holdfast.runtime.machines import blank
from holdfast.runtime.registry import CompiledPlan, DefinitionRegistry, NotRead
from holdfast.runtime.tracebacks import noted

log = logging.getLogger("holdfast")

MOST_ENVELOPES = 64
"""Envelopes that one turn decides, so that it does not hold the loop for long."""

MOST_AT_ONCE = 64
"""Steps that one turn starts: a turn does not give the loop up before it has decided."""

MOST_LEVELS: Final = 30
"""How many runs may lie below each other: plans and agents that call each other would not end."""

LAZY_EVENTS = 128
"""How many events of pure work may wait for the next append."""

_AHEAD: Final = c.Advance(ahead=True)
_start_step: Final = constructor(c.StartStep)


class Turn:
    """What one turn takes, decides and leaves to be done once it is on disk.

    `postponed` could not be decided for a mistake of ours, and has no caller to tell; `waits` says
    that nothing needs to be on disk yet.
    """

    __slots__ = ("effects", "envelopes", "postponed", "replies", "waits")
    envelopes: Sequence[Envelope]
    postponed: Sequence[Envelope]
    replies: Sequence[tuple[Envelope, HoldfastError | None]]
    effects: Sequence[f.Effect]
    waits: bool


class Scheduler:
    def __init__(
        self,
        worker: Worker,
        definitions: DefinitionRegistry,
        limit: ConcurrencyLimit,
        four_eyes: FourEyes,
        clock: Clock,
    ) -> None:
        self._worker = worker
        self._definitions = definitions
        self._limit = limit
        self._four_eyes = four_eyes
        self._clock = clock
        self._secret = os.urandom(32)

    def decide(self, actor: Actor, *, starts: bool) -> Turn:
        """Decide what is in the mailbox, and start what is ready if it `starts` anything."""
        before = len(actor.unsaved)
        turn, builder, mailbox = Turn(), actor.builder, actor.mailbox
        if len(mailbox) <= MOST_ENVELOPES:
            envelopes = list(mailbox)
            mailbox.clear()
        else:
            envelopes = [mailbox.popleft() for _ in range(MOST_ENVELOPES)]
        turn.envelopes, turn.postponed = envelopes, ()
        effects: list[f.Effect] = []
        carry_out, replies = actor.carry_out, []
        builder.shared, builder.now, builder.entropy = True, self._clock.now(), self._secret
        builder.wanted_by = self._four_eyes.of(builder.state) if self._four_eyes.enabled else None
        for envelope in envelopes:
            # Each by itself: a refusal, or a mistake of ours, concerns no other envelope.
            refusal: HoldfastError | None = None
            mark = len(builder.events), len(builder.readied)
            try:
                if envelope.acting is None and envelope.attached is NOTHING:
                    decided = carry_out(builder, envelope.command)
                else:
                    decided = actor.take(envelope)
                if decided:
                    # What was in flight before us is so again, whether or not a permit is free.
                    self._limit.free -= sum(isinstance(one, f.CallTool) for one in decided)
                    effects += decided
            except Exception as error:
                builder.rewind(actor.committed, mark)
                refusal = error if isinstance(error, CallerError) else internal(error)
                if refusal is not error:
                    kind = type(envelope.command).__name__  # not what was answered
                    log.exception(
                        "run %s could not decide %s", actor.run_id, kind, extra=actor.logged
                    )
                    if envelope.reply is None:
                        turn.envelopes = [one for one in turn.envelopes if one is not envelope]
                        turn.postponed = [*turn.postponed, envelope]
            if envelope.reply is not None:
                replies.append((envelope, refusal))
        if starts and not (self._worker.unrecovered and self._unrecovered(actor, envelopes)):
            self._start_ready(actor, effects)
        elif actor.permits:
            self.give_up(actor)
        turn.effects, turn.replies = effects, replies
        lazy = not envelopes or envelopes[0].lazy or len(actor.unsaved) == before
        turn.waits = lazy and _may_wait(actor, turn, before)
        return turn

    def _unrecovered(self, actor: Actor, envelopes: Sequence[Envelope]) -> bool:
        """Whether the run's consumer has yet to say what was lost before it came."""
        runs = self._worker.unrecovered
        if any(isinstance(one.command, c.Recover) for one in envelopes):
            runs.discard(actor.run_id)
        return actor.run_id in runs

    def give_up(self, actor: Actor) -> None:
        """Free the permits that the run was granted and cannot use now."""
        self._limit.free += actor.permits
        actor.permits = 0

    def _start_ready(self, actor: Actor, effects: list[f.Effect]) -> None:
        """Add the effects of what could start; where there is more, another turn is asked for."""
        held: list[str] = []
        attended = True
        if actor.pulled:
            attended = actor.run_id in self._worker.conversations
            if actor.run_id in self._worker.asking:
                # A consumer waits for what comes next: it goes into the same append.
                try:
                    effects += actor.decide(_AHEAD)
                except Exception:
                    log.exception(
                        "run %s could not decide %s", actor.run_id, _AHEAD, extra=actor.logged
                    )
        ready, machine, builder, started = actor.ready, actor.machine, actor.builder, 0
        state, carry_out, limit = builder.state, actor.carry_out, self._limit
        while attended and (ready.heap or ready.readied) and machine.may_start(state):
            if started == MOST_AT_ONCE:
                if len(held) < started:
                    actor.mailbox.append(Envelope(c.Tick(), lazy=True))
                break
            found = ready.pop(state)
            if found is None:
                break
            step_id, step = found
            tool = machine.tool_of(state, step_id, step)
            if tool is not None:
                if actor.permits:
                    actor.permits -= 1
                elif limit.free > 0 and not limit.waiting:
                    limit.free -= 1
                else:
                    held.append(step_id)
                    if not actor.awaits_permit:
                        actor.awaits_permit = True
                        limit.waiting.append(actor)
                    break
            started += 1
            called, mark = False, (len(builder.events), len(builder.readied))
            try:
                facts = None if tool is None else self._worker.tool_facts(tool)
                begun = carry_out(builder, _start_step(step_id, facts))
                called = len(begun) == 1 and isinstance(begun[0], f.CallTool)
                if not called:
                    begun = self._go_on(actor, begun)
            except NotRead as missing:
                # The step stays ready for the next turn, which comes at once.
                builder.rewind(actor.committed, mark)
                actor.wanted = missing.digest
                actor.mailbox.append(Envelope(c.Tick(), lazy=True))
                begun = ()
            except Exception:
                # A mistake of ours: the step stays ready, and no other is affected.
                builder.rewind(actor.committed, mark)
                log.exception(
                    "run %s could not start %s",
                    actor.run_id,
                    step_id,
                    extra={**actor.logged, "step": step_id},
                )
                begun = ()
            if tool is not None and not called:
                limit.free += 1
            effects += begun
            state = builder.state
            if not begun and is_ready(state, step_id):
                held.append(step_id)
        if held:
            ready.readied.extend(held)
        if actor.permits:
            self.give_up(actor)

    def _go_on(self, actor: Actor, started: Sequence[f.Effect]) -> Sequence[f.Effect]:
        """After a start that is no call: a child run is prepared, or a conclusion drawn at once."""
        match started:
            case [f.StartChild() | f.StartAgent() as child]:
                try:
                    self._start_child(actor, child)
                except CallerError as error:
                    failure = Failure(FailureKind.PERMANENT, f"{_named(child)}: {error}")
                    return actor.decide(report(child.work, c.Failed(failure)))
                return ()
            case [f.Conclude(work=work) as conclusion]:
                # What was answered and what it comes to become true together.
                outcome = self._worker.conclude(conclusion, actor.state)
                if outcome is None:
                    return started
                attached = noted(work, outcome, actor.builder.now)
                return actor.take(Envelope(report(work, outcome), attached=attached))
            case _:
                return started

    def _start_child(self, actor: Actor, effect: f.StartChild | f.StartAgent) -> None:
        """Prepare a child run's first append, to commit with this one; CallerError if it cannot."""
        if effect.child_id.count(".") > 2 * MOST_LEVELS:
            raise NotAllowed(msg("there are {n} runs above it, and no more may be", n=MOST_LEVELS))
        parent = Parent(actor.run_id, effect.work.step_id, effect.work.firing)
        by, moment = actor.state.started_by, actor.builder.moment
        if isinstance(effect, f.StartChild):
            plan, values = self._plan_of(actor, effect)
            child = Actor.of(blank(effect.child_id, plan), moment)
            start = c.StartRun(
                plan_id=effect.plan_id,
                prompt=getattr(actor.state, "prompt", ""),
                values=values,
                root_id=effect.root_id,
                parent=parent,
                by=by,
                authors=self._definitions.authors(plan.digest),
            )
            child.decide(start)
        else:
            agent = self._definitions.agent(effect.agent_id)
            # An agent that verifies only looks; one that cannot is of no use for it.
            only = agent.agent.verification_tools if effect.verifies else None
            if only == ():
                raise NotAllowed(
                    msg("agent {agent} has no verification tools", agent=effect.agent_id)
                )
            child = Actor.of(blank(effect.child_id, agent), moment)
            opening = c.StartSession(
                effect.agent_id, effect.root_id, parent, by, approval=effect.approval, only=only
            )
            child.decide(opening)
            child.decide(c.Say(effect.prompt, by))
        actor.child_appends.append((append_of(child), child))
        child.committed = child.state
        child.unsaved.clear()

    def _plan_of(
        self, actor: Actor, effect: f.StartChild
    ) -> tuple[CompiledPlan, Mapping[str, Json]]:
        """Today's plan of that id, or the version that a plan names among the values."""
        if VERSION not in effect.values or not isinstance(actor.state, PlanState):
            return self._definitions.current(effect.plan_id), effect.values
        plan = self._definitions.version(effect.plan_id, str(effect.values[VERSION]))
        return plan, {name: one for name, one in effect.values.items() if name != VERSION}


def _may_wait(actor: Actor, turn: Turn, before: int) -> bool:
    """Only pure work is under way, and no caller waits for what has happened so far."""
    if actor.attached:
        return False
    if len(actor.unsaved) == before:
        return not actor.unsaved and not any(envelope.notice for envelope in turn.envelopes)
    if not turn.effects or actor.child_appends or len(actor.unsaved) >= LAZY_EVENTS:
        return False
    return all(envelope.lazy for envelope in turn.envelopes) and all(map(is_pure, turn.effects))


def refuse_late(actor: Actor, turn: Turn, error: Exception) -> bool:
    """After an append that failed because another has claimed or spent a name: those for whom it
    was wanted are refused, and the others are decided again. False where it failed for anything
    else."""
    if not isinstance(error, NameTaken | NameGone):
        return False
    wanting = [one for one in turn.envelopes if _wants(one, error)]
    if not wanting:
        return False
    late = {id(one) for one in wanting if not _holds(one, error)}
    turn.replies = [(one, error) for one in wanting if id(one) in late]
    others = [one for one in turn.envelopes if id(one) not in late]
    if actor.committed.version:
        actor.stale = True
        others = others or [Envelope(c.Tick(), lazy=True)]
    actor.mailbox.extendleft(reversed(others))
    return True


def _wants(envelope: Envelope, missed: NameTaken | NameGone) -> bool:
    name, attached = (missed.kind, missed.key), envelope.attached
    if isinstance(missed, NameGone):
        return name in attached.spent
    return envelope.claims(*name) or name in ((one.kind, one.key) for one in attached.claimed)


def _holds(envelope: Envelope, missed: NameTaken | NameGone) -> bool:
    """Whether another command of the same request has made that claim meanwhile."""
    claim = envelope.claim
    return claim is not None and claim.held and envelope.claims(missed.kind, missed.key)


def internal(error: Exception) -> InternalError:
    return InternalError(f"{type(error).__name__}: {error}")


def _named(effect: f.StartChild | f.StartAgent) -> str:
    if isinstance(effect, f.StartChild):
        return f"plan {effect.plan_id}"
    return f"agent {effect.agent_id}"
