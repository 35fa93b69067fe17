"""A rehearsal makes the calls that the run makes, where every tool returns what was imagined."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import Machine
from promises import Auditor
from random_plans import TOOLS, random_plan
from small_plans import CALL, WILL, compiled, on
from test_machine_properties import play

from holdfast.core.decider import Decision
from holdfast.core.plan.decide import PlanDecider
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.imagined import Imagination, answers_to
from holdfast.core.repair.rehearsal import rehearse, rehearse_plan
from holdfast.core.run.state import asks
from holdfast.core.run.tables import StepStatus
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.interaction import REPAIR, InteractionAction
from holdfast.model.plan import PlanInstanceStatus
from holdfast.model.retry import GiveUp
from holdfast.model.values import Json

Call = tuple[str, str, Json]

STARTING = (PlanInstanceStatus.RUNNING, PlanInstanceStatus.PAUSE, PlanInstanceStatus.CONTINUE)
YES = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)
MOST = 60


class Mute(Auditor):
    """Promises over a run's life are kept, or broken, elsewhere."""

    def audit(self, before: PlanState, decision: Decision, *, recovering: bool) -> None:
        return None


class World:
    """Drives a run for real, through its journal: tools return what a rehearsal imagines, people
    say yes and fill in what it imagines, and take longer than everything but the clock."""

    def __init__(self, machine: Machine, *, ready: list[str]) -> None:
        self.machine = machine
        self.imagination = Imagination(machine.state.plan, machine.tools.get, {})
        self.calls: list[Call] = []
        self.order: dict[str, int] = {}
        self._note(ready)
        self._decide(lambda: machine.submit(c.Tick()))
        self.flying = deque(PlanDecider.effects_in_flight(machine.state))
        for _, step in sorted(machine.state.steps.items()):
            if step.status is StepStatus.RUNNING and step.awaits_child:
                self._hear(str(step.child_id))

    def run(self) -> list[Call]:
        for _ in range(2_000):
            if not (self._start() or self._work() or self._people() or self._clock()):
                return self.calls
            if len(self.calls) > MOST:
                return self.calls[:MOST]
        raise AssertionError("the run goes on and on")

    def _note(self, step_ids: list[str]) -> None:
        for step_id in step_ids:
            self.order.pop(step_id, None)
            self.order[step_id] = len(self.machine.records)

    def _decide(self, submit: Callable[[], Any]) -> Any:
        decision = submit()
        if decision.events:
            self._note(decision.state.readied)
        return decision

    def _start(self) -> bool:
        machine = self.machine
        if machine.state.status not in STARTING or (
            machine.state.plan.holds and asks(machine.state)
        ):
            return False
        ready = [one for one in self.order if machine.state.steps[one].status is StepStatus.READY]
        if not ready:
            return False
        step_id = min(ready, key=lambda one: machine.state.plan.listeners[one].listener.priority)
        del self.order[step_id]
        effects = self._decide(lambda: machine.start(step_id)).effects
        self.calls += (
            (step_id, one.tool, dict(one.args)) for one in effects if isinstance(one, f.CallTool)
        )
        self.flying += effects
        return True

    def _work(self) -> bool:
        if not self.flying:
            return False
        effect = self.flying.popleft()
        match effect:
            case f.StartChild(child_id=child_id) | f.StartAgent(child_id=child_id):
                self._hear(child_id)
            case f.ConsultPlanner(listener_id=listener_id, firing=firing):
                self._report(c.Advise(listener_id, firing, GiveUp()))
            case f.CallFunction() | f.CallTool() | f.RunSnippet() | f.Conclude():
                work = effect.work
                outcome = self.machine.outcome(effect, self._result(effect))
                self._report(c.ReportOutcome(work.step_id, work.firing, work.claim, outcome))
            case _:
                pass
        return True

    def _report(self, command: c.Command) -> None:
        self.flying += self._decide(lambda: self.machine.submit(command)).effects

    def _result(self, effect: Any) -> Json:
        if isinstance(effect, f.CallFunction):
            return self.imagination.returned(effect.function, effect.work.step_id, ())
        listener = self.machine.state.plan.listeners[effect.work.step_id]
        if isinstance(effect, f.CallTool):
            paths = self.imagination.reads.of_result(listener)
            return self.imagination.returned(effect.tool, listener.id, paths)
        outcome = self.imagination.outcome(effect, self.machine.state)
        return outcome.result if isinstance(outcome, c.Succeeded) else None

    def _hear(self, child_id: str) -> None:
        steps = self.machine.state.steps.items()
        step_id, step = next(one for one in steps if one[1].child_id == child_id)
        seq = self.machine.state.heard.get(child_id, 0) + 1
        word = self.imagination.word_of_child(step_id)
        self._report(c.HearChild(child_id, seq, step_id, step.firing, word[0], "", word[1]))

    def _people(self) -> bool:
        state = self.machine.state
        opened = [state.questions[one] for one in state.open_questions]
        opened = [one for one in opened if one.purpose != REPAIR]
        if not opened:
            return False
        question = min(opened, key=lambda one: one.opened_seq)
        option = next(one for one in question.request.options if one.action in YES)
        provides = option.action is InteractionAction.PROVIDE_INFO
        data = answers_to(question.request.form, question.step_id) if provides else {}
        asked = question.request.request_id
        self._report(c.Answer(asked, WILL, option.option_id, data))
        return True

    def _clock(self) -> bool:
        timers = self.machine.state.timers.items()
        due = [at for name, at in timers if name.startswith(("retry:", "wait:"))]
        if not due:
            return False
        self.machine.now = max(self.machine.now, min(due))
        self._report(c.Tick())
        return True


def ready_in(machine: Machine) -> list[str]:
    steps = sorted(machine.state.steps.items())
    return [one for one, step in steps if step.status is StepStatus.READY]


def assert_made(machine: Machine) -> None:
    before = machine.state
    told = rehearse(before, machine.tools.get, now=machine.now, most=10 * MOST)
    assert machine.state == machine.replayed
    again = rehearse(before, machine.tools.get, now=machine.now, most=10 * MOST)
    assert told == again
    imagined = [
        (one.step_id, one.tool, dict(one.args))
        for one in told.calls
        if not one.tool.startswith(("plan:", "agent:"))
    ]
    machine.auditor = Mute({})
    made = World(machine, ready=ready_in(machine)).run()
    assert imagined[:MOST] == made
    if len(made) < MOST and not machine.state.plan.plan.verify:
        assert told.status == machine.state.status
        assert told.reached == (machine.state.main_task.status == "Done")


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_the_calls_of_a_rehearsal_are_those_of_the_run(script: bytes) -> None:
    machine = Machine(random_plan(Dice(script)))
    machine.submit(c.StartRun("random", "go", {}, by=WILL))
    assert_made(machine)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_so_are_those_from_the_middle_of_a_run(script: bytes) -> None:
    machine = play(script)
    machine.tries(c.Resume(WILL))
    assert_made(machine)


@settings(max_examples=200)
@given(st.binary(max_size=300), st.integers(0, 12))
def test_whatever_fails_a_rehearsal_ends_and_calls_no_more_than_it_may(
    script: bytes, most: int
) -> None:
    machine = play(script)
    for failing in (*machine.state.plan.listeners, "nowhere"):
        told = rehearse(machine.state, TOOLS.get, now=machine.now, failing=failing, most=most)
        assert len(told.calls) <= most
        assert machine.state == machine.replayed


def calls_counted(length: int) -> int:
    """Calls of Python functions that the rehearsal of a chain makes."""
    context = {"x": "{{result.x}}"}
    chain = [on("L0001", "001 Running", CALL, "t0001", context=context)]
    for one in range(2, length + 1):
        chain.append(on(f"L{one:04}", f"t{one - 1:04} Done", CALL, f"t{one:04}", context=context))
    plan = compiled(*chain)
    plan.prepare()
    counted = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        told = rehearse_plan(plan, {}, TOOLS.get, now=0.0, most=length)
    finally:
        sys.setprofile(None)
    assert len(told.calls) == length
    return counted


def test_each_step_of_a_long_plan_costs_the_same() -> None:
    short, long = calls_counted(100), calls_counted(1_000)
    assert long < 10.5 * short
    assert long < 1_000 * 150
