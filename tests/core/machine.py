"""A pure simulator of the runtime: feeds commands to one run and carries out its effects.

Every command is decided twice and applied to a second state from *decoded* events only;
invariants are checked after each event and promises after each decision. Time is a number,
the outside world is what a test says it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from invariants import ENDED, check_decision, check_event
from promises import Auditor
from random_plans import TOOLS

from holdfast.core.decider import Decision
from holdfast.core.plan.builder import updates_for
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.decide import blank, decide, goes_on_by_itself, replay
from holdfast.core.plan.state import PlanState, TaskFacts
from holdfast.core.run.steps import succeeded
from holdfast.core.run.tables import StepStatus
from holdfast.errors import CallerError, TemplateError
from holdfast.journal.codec import decode, encode
from holdfast.journal.port import Record
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.plan import PlanInstanceStatus, ToolAction
from holdfast.model.repair import Diagnosis, Look, Thought
from holdfast.model.retry import Advice, Cause, Failure, FailureKind, Retry
from holdfast.model.values import Json

Worked: TypeAlias = f.CallTool | f.RunSnippet | f.CallFunction | f.Conclude


@dataclass
class Child:
    """A child run as its parent sees it: a place, a status, and the words it has sent."""

    listener_id: str
    firing: int
    status: str = "running"
    seq: int = 1


@dataclass
class Machine:
    plan: CompiledPlan
    run_id: str = "inst_000001"
    now: float = 1_700_000_000.0
    tools: dict[str, c.ToolFacts] = field(default_factory=lambda: dict(TOOLS))
    records: list[Record] = field(default_factory=list)
    flying: dict[tuple[str, int], Worked] = field(default_factory=dict)
    past: list[Worked] = field(default_factory=list)
    consultations: list[f.ConsultPlanner] = field(default_factory=list)
    diagnoses: list[f.Diagnose] = field(default_factory=list)
    children: dict[str, Child] = field(default_factory=dict)
    wanted_by: dict[str, str] | None = None

    def __post_init__(self) -> None:
        self.state = blank(self.run_id, self.plan)
        self.replayed = self.state
        self.auditor = Auditor(self.tools)

    def submit(self, command: c.Command) -> Decision:
        """Decide, check everything, and take up the effects; a refusal changes nothing."""
        moment = c.Moment(self.now, len(self.records).to_bytes(8, "big"), self.wanted_by)
        try:
            decision = decide(self.state, command, moment)
        except CallerError:
            assert self.state == self.replayed
            raise
        again = decide(self.state, command, moment)
        assert again.events == decision.events
        assert again.effects == decision.effects
        assert again.state == decision.state
        assert self.state == self.replayed, "deciding changed the state before"
        self._replay(decision)
        recovering = isinstance(command, c.Recover)
        self.auditor.audit(self.state, decision, recovering=recovering)
        self.state = decision.state
        for effect in decision.effects:
            self._take(effect)
        return decision

    def append(self, event: e.PlanEvent) -> None:
        """An event from elsewhere, such as another version of Holdfast."""
        self.records.append(Record(len(self.records) + 1, self.now, *encode(event)))
        self.state = self.replayed = replay(self.state, [(self.now, event)])
        check_event(self.state)

    def tries(self, command: c.Command) -> Decision | CallerError:
        try:
            return self.submit(command)
        except CallerError as refusal:
            return refusal

    def _replay(self, decision: Decision) -> None:
        for event in decision.events:
            record = Record(len(self.records) + 1, self.now, *encode(event))
            self.records.append(record)
            read = decode(record)
            assert read == event
            self.replayed = replay(self.replayed, [(record.at, read)])
            check_event(self.replayed)
        assert self.replayed == decision.state, "replay differs from the live state"
        if decision.events:
            check_decision(self.replayed)

    def _take(self, effect: f.Effect) -> None:
        match effect:
            case (
                f.StartChild(work=work, child_id=child_id)
                | f.StartAgent(work=work, child_id=child_id)
            ):
                self.children[child_id] = Child(work.step_id, work.firing)
            case f.ConsultPlanner():
                self.consultations.append(effect)
            case f.Diagnose():
                self.diagnoses.append(effect)
            case f.ResumeChild(child_id=child_id):
                if self.children[child_id].status == "error":
                    self.children[child_id].status = "resumed"
            case f.CancelChild(child_id=child_id):
                if self.children[child_id].status != "done":
                    self.children[child_id].status = "cancelling"
            case _:
                self.flying[effect.work.step_id, effect.work.claim] = effect

    def reload(self) -> None:
        """The run is evicted, and comes back from its snapshot."""
        loaded = load_state(dump_state(self.state), blank("", self.plan))
        assert loaded == self.state, "the snapshot differs from the state"
        self.state = loaded

    def crash(self) -> None:
        """The process dies with whatever it had in hand; a new owner recovers the run."""
        self.flying.clear()
        self.consultations.clear()
        self.diagnoses.clear()
        self.reload()
        self.submit(c.Recover())

    def ready(self) -> list[str]:
        """The ready listeners, the most urgent first."""
        ids = [one for one, step in self.state.steps.items() if step.status is StepStatus.READY]
        return sorted(ids, key=lambda one: (self.state.plan.listener(one).listener.priority, one))

    def start(self, listener_id: str) -> Decision:
        action = self.state.plan.listener(listener_id).action
        tool = self.tools.get(action.tool) if isinstance(action, ToolAction) else None
        return self.submit(c.StartStep(listener_id, tool))

    def start_ready(self) -> bool:
        """Start whatever may start; True when anything came of it."""
        before = len(self.records)
        for listener_id in self.ready():
            self.start(listener_id)
        return len(self.records) > before

    def report(self, effect: Worked, outcome: c.Outcome) -> Decision:
        work = effect.work
        if self.flying.pop((work.step_id, work.claim), None) is not None:
            self.past.append(effect)
        return self.submit(c.ReportOutcome(work.step_id, work.firing, work.claim, outcome))

    def consult(self, advised: int | Advice) -> Decision:
        """The planner's advice; a number is so many retries, each at once."""
        asked = self.consultations.pop(0)
        advice = Retry(advised, 0) if isinstance(advised, int) else advised
        return self.submit(c.Advise(asked.listener_id, asked.firing, advice))

    def diagnose(self, found: Look | Thought | None = None) -> Decision:
        """What is made of a case, which is nothing unless a test says so."""
        asked = self.diagnoses.pop(0)
        unknown = Diagnosis(Cause.UNKNOWN, "it is not known")
        found = found or (Thought() if asked.number else Look(unknown))
        return self.submit(c.ReportDiagnosis(asked.case_id, asked.number, found))

    def hear(self, child_id: str, status: str, result: Json = None, **more: Any) -> Decision:
        child = self.children[child_id]
        child.seq += 1
        child.status = status
        place = child.listener_id, child.firing
        heard = c.HearChild(child_id, child.seq, *place, status, "as it said", result, **more)
        return self.submit(heard)

    def outcome(self, effect: Worked, result: Json) -> c.Outcome:
        """What the driver makes of a result."""
        if isinstance(effect, f.CallFunction):
            return c.CallReturned(effect.index, result)
        if isinstance(effect, f.Conclude):
            result = effect.result
        listener = self.state.plan.listener(effect.work.step_id)
        success = succeeded(result)
        try:
            updates = updates_for(listener, success, result, TaskFacts(self.state.tasks))
        except TemplateError as error:
            return c.OutputBroken(result, str(error))
        if success:
            return c.Succeeded(result, updates)
        return c.Failed(Failure(FailureKind.TRANSIENT, "it said no"), updates, result)

    def fire_timer(self) -> bool:
        """Jump to the next timer and let it ring."""
        if not len(self.state.timers):
            return False
        self.now = max(self.now, *self.state.timers.values())
        self.submit(c.Tick())
        return True

    def settle(self, *, rounds: int = 400) -> PlanState:
        """Carry everything out, always successfully, until nothing moves by itself."""
        for _ in range(rounds):
            if self.state.status in ENDED:
                return self.state
            if not any(self._round()):
                return self.state
        raise AssertionError("the run goes on and on")

    def settle_with(self, outcome: c.Outcome) -> PlanState:
        """Carry everything out with the same outcome, until a person is needed."""
        while self.start_ready() or self.flying or self.consultations:
            for effect in list(self.flying.values()):
                self.report(effect, outcome)
            while self.consultations:
                self.consult(0)
        return self.state

    @property
    def goes_on(self) -> bool:
        """Whether a new owner of the run would have something to do."""
        return goes_on_by_itself(self.state)

    def _round(self) -> Iterator[bool]:
        yield self.start_ready()
        for effect in list(self.flying.values()):
            yield bool(self.report(effect, self.outcome(effect, {"x": 1})).events)
        while self.consultations:
            yield bool(self.consult(1).events)
        while self.diagnoses:
            yield bool(self.diagnose().events)
        for child_id, child in list(self.children.items()):
            if child.status in _NEXT_WORD:
                yield bool(self.hear(child_id, _NEXT_WORD[child.status], {"x": 1}).events)
        resting = self.state.status not in (PlanInstanceStatus.PAUSE, PlanInstanceStatus.ERROR)
        yield resting and not self.flying and not self.ready() and self.fire_timer()


_NEXT_WORD = {
    "running": "done",
    "continue": "running",
    "resumed": "running",
    "cancelling": "cancelled",
}
"""What a child run does next when nothing disturbs it."""
