"""Starting what is ready: the most urgent first, while permits last.

A child run is born here too: its first append is prepared, to commit with the start
of its parent's listener.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.core.plan.decide import blank
from holdfast.core.plan.fold import asks
from holdfast.core.plan.state import PlanState
from holdfast.errors import CallerError
from holdfast.journal.port import Append
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.events import Parent
from holdfast.model.plan import PlanInstanceStatus, ToolAction, WhilePaused
from holdfast.model.retry import Failure, FailureKind
from holdfast.runtime.actor import Actor
from holdfast.runtime.appends import append_of
from holdfast.runtime.library import PlanLibrary
from holdfast.runtime.permits import Permits
from holdfast.runtime.ports import Worker
from holdfast.runtime.readiness import is_ready

_STARTING = (PlanInstanceStatus.RUNNING, PlanInstanceStatus.PAUSE, PlanInstanceStatus.CONTINUE)


class Starter:
    def __init__(
        self,
        worker: Worker,
        library: PlanLibrary,
        permits: Permits,
        moment: Callable[[], c.Moment],
        fed: Callable[[Actor], None],
    ) -> None:
        self._worker = worker
        self._library = library
        self._permits = permits
        self._moment = moment
        self._fed = fed

    def start_ready(self, actor: Actor) -> list[f.Effect]:
        effects: list[f.Effect] = []
        held: list[str] = []
        while _may_start(actor.state):
            listener_id = actor.ready.pop(actor.state)
            if listener_id is None:
                break
            tool = _tool_of(actor.state, listener_id)
            if tool is not None and not self._take_permit(actor):
                held.append(listener_id)
                self._wait_for_permit(actor)
                break
            effects += self._start(actor, listener_id, tool)
            if is_ready(actor.state, listener_id):
                held.append(listener_id)
        if held:
            actor.ready.push(actor.state, held)
        while actor.permits:
            actor.permits -= 1
            self._permits.give_back()
        return effects

    def _start(self, actor: Actor, listener_id: str, tool: str | None) -> Sequence[f.Effect]:
        facts = None if tool is None else self._worker.tool_facts(tool)
        started = actor.decide(c.StartListener(listener_id, facts), self._moment())
        match started:
            case [f.CallTool()]:
                return started
            case [f.StartChild() as child]:
                return self._bear(actor, child)
            case _:
                if tool is not None:
                    self._permits.give_back()
                return started

    def _bear(self, actor: Actor, effect: f.StartChild) -> Sequence[f.Effect]:
        """Prepare a child run; one that cannot be born fails its listener."""
        try:
            actor.births.append(self._birth(actor, effect))
            return ()
        except CallerError as error:
            failure = Failure(FailureKind.PERMANENT, f"plan {effect.plan_id}: {error}")
            work, failed = effect.work, c.Failed(failure)
            report = c.ReportOutcome(work.listener_id, work.firing, work.claim, failed)
            return actor.decide(report, self._moment())

    def _birth(self, actor: Actor, effect: f.StartChild) -> tuple[Append, Actor]:
        child = Actor.of(blank(effect.child_id, self._library.current(effect.plan_id)))
        command = c.StartRun(
            plan_id=effect.plan_id,
            prompt=actor.state.prompt,
            values=effect.values,
            root_id=effect.root_id,
            parent=Parent(actor.run_id, effect.work.listener_id, effect.work.firing),
            by=actor.state.started_by,
        )
        child.decide(command, self._moment())
        append = append_of(child)
        child.committed_all()
        return append, child

    def _take_permit(self, actor: Actor) -> bool:
        if actor.permits:
            actor.permits -= 1
            return True
        return self._permits.take()

    def _wait_for_permit(self, actor: Actor) -> None:
        if not actor.hungry:
            actor.hungry = True
            self._permits.when_free(lambda: self._fed(actor))


def _may_start(state: PlanState) -> bool:
    """Nobody may take a permit who cannot use it: others wait for it."""
    held = state.plan.plan.while_paused is WhilePaused.HOLD and asks(state)
    return state.status in _STARTING and not held


def _tool_of(state: PlanState, listener_id: str) -> str | None:
    """The tool that starting this listener would call."""
    action = state.plan.listeners[listener_id].action
    if not isinstance(action, ToolAction) or state.steps[listener_id].carried is not None:
        return None
    return action.tool
