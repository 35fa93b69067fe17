"""Starting what is ready: the most urgent first, while permits last.

A child run is born here too: its first append is prepared, to commit with the start
of its parent's listener.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from holdfast.errors import CallerError, NotAllowed
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.record import constructor
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import Parent
from holdfast.runtime.actor import Actor, Envelope, report
from holdfast.runtime.actors import ActorRegistry
from holdfast.runtime.appends import append_of
from holdfast.runtime.concurrency import ConcurrencyLimit
from holdfast.runtime.delivery import Delivery
from holdfast.runtime.machines import blank
from holdfast.runtime.readiness import is_ready
from holdfast.runtime.registry import DefinitionRegistry
from holdfast.runtime.tracebacks import noted
from holdfast.runtime.worker import Worker

log = logging.getLogger("holdfast")

MOST_AT_ONCE = 64
"""Steps that one turn starts: a turn does not give the loop up before it has decided."""

MOST_LEVELS: Final = 30
"""How many runs may lie below each other: plans and agents that call each other would not end."""


_AHEAD: Final = c.Advance(ahead=True)
_start_step: Final = constructor(c.StartStep)


class Scheduler:
    def __init__(
        self,
        worker: Worker,
        library: DefinitionRegistry,
        concurrency: ConcurrencyLimit,
        actors: ActorRegistry,
        delivery: Delivery,
    ) -> None:
        self._worker = worker
        self._library = library
        self._concurrency = concurrency
        self._actors = actors
        self._delivery = delivery

    def start_ready(self, actor: Actor, effects: list[f.Effect]) -> None:
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
                    log.exception("run %s could not decide %s", actor.run_id, _AHEAD)
        ready, machine, builder, started = actor.ready, actor.machine, actor.builder, 0
        state, carry_out = builder.state, actor.carry_out
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
                if actor.concurrency:
                    actor.concurrency -= 1
                elif self._concurrency.free > 0:
                    self._concurrency.free -= 1
                else:
                    held.append(step_id)
                    if not actor.hungry:
                        actor.hungry = True
                        self._concurrency.when_free(partial(self._fed, actor))
                    break
            started += 1
            called, mark = False, (len(builder.events), len(builder.readied))
            try:
                facts = None if tool is None else self._worker.tool_facts(tool)
                begun = carry_out(builder, _start_step(step_id, facts))
                called = len(begun) == 1 and isinstance(begun[0], f.CallTool)
                if not called:
                    begun = self._go_on(actor, begun)
            except Exception:
                # A mistake of ours: the step stays ready, and nobody else suffers for it.
                builder.rewind(actor.committed, mark)
                log.exception("run %s could not start %s", actor.run_id, step_id)
                begun = ()
            if tool is not None and not called:
                self._concurrency.give_back()
            effects += begun
            state = builder.state
            if not begun and is_ready(state, step_id):
                held.append(step_id)
        if held:
            ready.readied.extend(held)
        if actor.concurrency:
            self.give_up(actor)

    def give_up(self, actor: Actor) -> None:
        """The permits that came free for a run which cannot use them now are others'."""
        while actor.concurrency:
            actor.concurrency -= 1
            self._concurrency.give_back()

    def _go_on(self, actor: Actor, started: Sequence[f.Effect]) -> Sequence[f.Effect]:
        """With a start that is no call: a child run is born, or a conclusion drawn at once."""
        match started:
            case [f.StartChild() | f.StartAgent() as child]:
                try:
                    self._bear(actor, child)
                except CallerError as error:
                    failure = Failure(FailureKind.PERMANENT, f"{_child(child)}: {error}")
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

    def _bear(self, actor: Actor, effect: f.StartChild | f.StartAgent) -> None:
        """Prepare a child run; CallerError where it cannot be born."""
        if effect.child_id.count(".") > 2 * MOST_LEVELS:
            raise NotAllowed(msg("there are {n} runs above it, and no more may be", n=MOST_LEVELS))
        parent = Parent(actor.run_id, effect.work.step_id, effect.work.firing)
        by, moment = actor.state.started_by, actor.builder.moment
        if isinstance(effect, f.StartChild):
            plan = self._library.current(effect.plan_id)
            child = Actor.of(blank(effect.child_id, plan), moment)
            start = c.StartRun(
                plan_id=effect.plan_id,
                prompt=getattr(actor.state, "prompt", ""),
                values=effect.values,
                root_id=effect.root_id,
                parent=parent,
                by=by,
                authors=self._library.authors(plan.digest),
            )
            child.decide(start)
        else:
            agent = self._library.agent(effect.agent_id)
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

    def _fed(self, actor: Actor) -> None:
        """A permit has come free for a run that waits for one."""
        actor.hungry = False
        if self._actors.holds(actor):
            actor.concurrency += 1
            self._delivery.put(actor, Envelope(c.Tick()))
        else:
            self._concurrency.give_back()


def _child(effect: f.StartChild | f.StartAgent) -> str:
    if isinstance(effect, f.StartChild):
        return f"plan {effect.plan_id}"
    return f"agent {effect.agent_id}"
