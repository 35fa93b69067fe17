"""Starting what is ready: the most urgent first, while permits last.

A child run is born here too: its first append is prepared, to commit with the start
of its parent's listener.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from holdfast.errors import CallerError, NotAllowed
from holdfast.journal.port import Append
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import Parent
from holdfast.runtime.actor import Actor, Letter, report
from holdfast.runtime.appends import append_of
from holdfast.runtime.library import Library
from holdfast.runtime.machines import blank
from holdfast.runtime.permits import Permits
from holdfast.runtime.ports import Worker
from holdfast.runtime.readiness import is_ready
from holdfast.runtime.tracebacks import noted

log = logging.getLogger("holdfast")

MOST_AT_ONCE = 64
"""Steps that one turn starts: a turn does not give the loop up before it has decided."""

MOST_LEVELS: Final = 30
"""How many runs may lie below each other: plans and agents that call each other would not end."""


class Starter:
    def __init__(
        self,
        worker: Worker,
        library: Library,
        permits: Permits,
        fed: Callable[[Actor], None],
    ) -> None:
        self._worker = worker
        self._library = library
        self._permits = permits
        self._fed = fed

    def start_ready(self, actor: Actor, moment: c.Moment) -> list[f.Effect]:
        """The effects of what could start; where there is more, another turn is asked for."""
        effects: list[f.Effect] = []
        held: list[str] = []
        ready, machine, started = actor.ready, actor.machine, 0
        attended = not machine.pulled or self._worker.attends(actor.state)
        while attended and ready.heap and started < MOST_AT_ONCE and machine.may_start(actor.state):
            step_id = ready.pop(actor.state)
            if step_id is None:
                break
            tool = machine.tool_of(actor.state, step_id)
            if tool is not None:
                if actor.permits:
                    actor.permits -= 1
                elif not self._permits.take():
                    held.append(step_id)
                    self._wait_for_permit(actor)
                    break
            started += 1
            begun = self._start(actor, step_id, tool, moment)
            effects += begun
            if not begun and is_ready(actor.state, step_id):
                held.append(step_id)
        if held:
            ready.push(actor.state, held)
        if started == MOST_AT_ONCE and ready.heap:
            actor.mailbox.append(Letter(c.Tick(), lazy=True))
        while actor.permits:
            actor.permits -= 1
            self._permits.give_back()
        return effects

    def _start(
        self, actor: Actor, step_id: str, tool: str | None, moment: c.Moment
    ) -> Sequence[f.Effect]:
        facts = None if tool is None else self._worker.tool_facts(tool)
        try:
            started = actor.decide(c.StartStep(step_id, facts), moment)
        except Exception:
            # A mistake of ours: the step stays ready, and nobody else suffers for it.
            log.exception("run %s could not start %s", actor.run_id, step_id)
            started = ()
        match started:
            case [f.CallTool()]:
                return started
            case [f.StartChild() | f.StartAgent() as child]:
                return self._bear(actor, child, moment)
            case [f.Conclude() as conclusion]:
                return self._conclude(actor, conclusion, moment)
            case _:
                if tool is not None:
                    self._permits.give_back()
                return started

    def _conclude(self, actor: Actor, effect: f.Conclude, moment: c.Moment) -> Sequence[f.Effect]:
        """What was answered and what it comes to become true together."""
        outcome = self._worker.conclude(effect, actor.state, moment.now)
        if outcome is None:
            return (effect,)
        attached = noted(effect.work, outcome, moment.now)
        return actor.take(Letter(report(effect.work, outcome), attached=attached), moment)

    def _bear(
        self, actor: Actor, effect: f.StartChild | f.StartAgent, moment: c.Moment
    ) -> Sequence[f.Effect]:
        """Prepare a child run; one that cannot be born fails its parent's step."""
        try:
            actor.births.append(self._birth(actor, effect, moment))
            return ()
        except CallerError as error:
            failure = Failure(FailureKind.PERMANENT, f"{_child(effect)}: {error}")
            work, failed = effect.work, c.Failed(failure)
            return actor.decide(report(work, failed), moment)

    def _birth(
        self, actor: Actor, effect: f.StartChild | f.StartAgent, moment: c.Moment
    ) -> tuple[Append, Actor]:
        if effect.child_id.count(".") > 2 * MOST_LEVELS:
            raise NotAllowed(f"there are {MOST_LEVELS} runs above it, and no more may be")
        parent = Parent(actor.run_id, effect.work.step_id, effect.work.firing)
        if isinstance(effect, f.StartChild):
            child = self._plan(actor, effect, parent, moment)
        else:
            child = self._session(actor, effect, parent, moment)
        append = append_of(child)
        child.committed_all()
        return append, child

    def _plan(self, actor: Actor, effect: f.StartChild, parent: Parent, moment: c.Moment) -> Actor:
        plan = self._library.current(effect.plan_id)
        child = Actor.of(blank(effect.child_id, plan))
        command = c.StartRun(
            plan_id=effect.plan_id,
            prompt=getattr(actor.state, "prompt", ""),
            values=effect.values,
            root_id=effect.root_id,
            parent=parent,
            by=actor.state.started_by,
            authors=self._library.authors(plan.digest),
        )
        child.decide(command, moment)
        return child

    def _session(
        self, actor: Actor, effect: f.StartAgent, parent: Parent, moment: c.Moment
    ) -> Actor:
        """An agent that verifies only looks; one that cannot is of no use for it."""
        definition = self._library.agent(effect.agent_id)
        only = definition.agent.verification_tools if effect.verifies else None
        if only == ():
            raise NotAllowed(f"agent {effect.agent_id} has no verification tools")
        child = Actor.of(blank(effect.child_id, definition))
        by = actor.state.started_by
        start = c.StartSession(
            effect.agent_id, effect.root_id, parent, by, approval=effect.approval, only=only
        )
        child.decide(start, moment)
        child.decide(c.Say(effect.prompt, by), moment)
        return child

    def _wait_for_permit(self, actor: Actor) -> None:
        if not actor.hungry:
            actor.hungry = True
            self._permits.when_free(lambda: self._fed(actor))


def _child(effect: f.StartChild | f.StartAgent) -> str:
    if isinstance(effect, f.StartChild):
        return f"plan {effect.plan_id}"
    return f"agent {effect.agent_id}"
