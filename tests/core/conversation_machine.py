"""A pure simulator of the runtime for conversations: feeds commands and carries out effects.

Every command is decided twice and applied to a second state from *decoded* events only;
invariants are checked after each event and promises after each decision. Time is a number;
coordinator, model and tasks are what a test says they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from conversation_promises import Auditor, check_event, fields_of

from holdfast.conversations.events import narrate
from holdfast.core.conversation import snapshot
from holdfast.core.conversation.decide import blank, decide, replay
from holdfast.core.conversation.state import (
    ConversationDefinition,
    ConversationState,
)
from holdfast.core.decider import Decision
from holdfast.core.run.tables import StepStatus
from holdfast.errors import CallerError
from holdfast.journal.codec import decode, encode
from holdfast.journal.port import Record
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.conversation import AfterFailure, ConversationSettings, EngineState, SubTask
from holdfast.model.interaction import InteractionRequest
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

WILL = "Will Zhang"
RUN_ID = "conversation"

Decided: TypeAlias = Decision[ConversationState, v.ConversationEvent]
Worked: TypeAlias = f.CallTool | f.ConversationWork
Kind = TypeVar("Kind")

REQUIRE = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)
DISABLED = ApprovalRule(ApprovalMode.DISABLED)
AMOUNT: dict[str, Json] = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["amount"],
}
TOOLS: dict[str, c.ToolFacts] = {
    "look": c.ToolFacts({}, "1", idempotent=True),
    "send": c.ToolFacts({}, "1"),
    "pay": c.ToolFacts(AMOUNT, "1", approval=REQUIRE),
    "shut": c.ToolFacts({}, "1", approval=DISABLED),
}

TRANSIENT = c.Failed(Failure(FailureKind.TRANSIENT, "out of order"))
PERMANENT = c.Failed(Failure(FailureKind.PERMANENT, "no such thing"))
UNKNOWN = c.Failed(Failure(FailureKind.UNKNOWN, "cut off"))
EXECUTING = EngineState.EXECUTING
OVER = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)


class Child:
    """A child run as its parent sees it."""

    def __init__(self, step_id: str) -> None:
        self.step_id = step_id
        self.seq = 1
        self.status = "running"


class Talk:
    """One conversation and the world around it; `flying` is work that nobody has answered yet."""

    def __init__(self, tools: Mapping[str, c.ToolFacts] = TOOLS, **settings: Any) -> None:
        self.definition = ConversationDefinition(ConversationSettings(**settings), "digest")
        self.tools = dict(tools)
        self.goal: tuple[SubTask, ...] = (SubTask("only"),)
        self.by_model = False
        self.now = 1_700_000_000.0
        self.records: list[Record] = []
        self.flying: dict[tuple[str, int], Worked] = {}
        self.past: list[Worked] = []
        self.children: dict[str, Child] = {}
        self.wanted_by: dict[str, str] | None = None
        self.state = self.replayed = blank(RUN_ID, self.definition)
        self.auditor = Auditor(self.tools, self.definition.settings.max_parallel)

    def submit(self, command: c.Command) -> Decided:
        """Decide, check everything, and take up the effects; a refusal changes nothing."""
        before = fields_of(self.state)
        moment = c.Moment(self.now, len(self.records).to_bytes(8, "big"), self.wanted_by)
        try:
            decision = decide(self.state, command, moment)
        finally:
            assert fields_of(self.state) == before, "deciding changed the state before"
        again = decide(self.state, command, moment)
        assert (again.events, again.effects) == (decision.events, decision.effects)
        self._replay(decision)
        self.auditor.audit(self.state, decision)
        self.state = decision.state
        for effect in decision.effects:
            self._take(effect)
        return decision

    def tries(self, command: c.Command) -> Decided | CallerError:
        try:
            return self.submit(command)
        except CallerError as refusal:
            return refusal

    def _replay(self, decision: Decided) -> None:
        for event in decision.events:
            record = Record(len(self.records) + 1, self.now, *encode(event))
            self.records.append(record)
            read = decode(record)
            assert read == event
            self.replayed = replay(self.replayed, [(record.at, read)])
            check_event(self.replayed)
        assert fields_of(self.replayed) == fields_of(decision.state), "replay differs"
        waiting = [one for one in decision.state.steps.values() if one.question_id is not None]
        assert all(one.status is StepStatus.WAITING for one in waiting)

    def record(self, event: v.ConversationEvent) -> None:
        """The journal holds this, whoever decided it."""
        self._replay(Decision(replay(self.state, [(self.now, event)]), (event,)))
        self.state = self.replayed

    def _take(self, effect: f.Effect) -> None:
        match effect:
            case (
                f.CallTool()
                | f.RunTask()
                | f.FetchContext()
                | f.Decompose()
                | f.FillArguments()
                | f.WriteAnswer()
            ):
                self.flying[effect.work.step_id, effect.work.claim] = effect
            case f.StartAgent(work=work) | f.StartChild(work=work):
                self.children[effect.child_id] = Child(work.step_id)
            case f.ResumeChild(child_id=child_id):
                if self.children[child_id].status == "error":
                    self.children[child_id].status = "running"
            case f.CancelChild(child_id=child_id):
                if self.children[child_id].status not in ("done", "cancelled"):
                    self.children[child_id].status = "cancelling"
            case _:
                raise AssertionError(f"a conversation has no such effect: {effect}")

    def reload(self) -> None:
        """It is evicted, and comes back from its snapshot in the journal."""
        loaded = load_state(dump_state(self.state), blank(RUN_ID, self.definition))
        assert fields_of(loaded) == fields_of(self.state), "the snapshot differs from the state"
        self.state = loaded

    def crash(self) -> Decided:
        """The process dies with whatever it had in hand; a new owner recovers it."""
        self.flying.clear()
        self.reload()
        return self.submit(c.Recover())

    def open(self) -> Talk:
        self.submit(c.OpenConversation(by=WILL))
        return self

    def converse(self, text: str = "Go.") -> Decided:
        return self.submit(c.Converse(text, WILL))

    def advance(self) -> Decided:
        return self.submit(c.Advance())

    def until(self, phase: EngineState) -> Talk:
        """On to this phase, with a coordinator that knows little and the goal's tasks."""
        for _ in range(4 * len(self.goal) + 20):
            if self.state.phase is phase:
                return self
            self.advance()
            self.answer_phase()
        raise AssertionError(f"it is {self.state.phase} and does not get to {phase}")

    def answer_phase(self) -> None:
        for effect in list(self.flying.values()):
            if isinstance(effect, f.FetchContext):
                self.report(effect, c.Fetched(("be brief",), (), ("look",)))
            elif isinstance(effect, f.Decompose):
                self.report(effect, c.Decomposed(self.goal, self.by_model))
            elif isinstance(effect, f.WriteAnswer):
                self.report(effect, c.Written("All is done."))
            elif isinstance(effect, f.FillArguments):
                self.report(effect, c.Filled({}))

    def start(self, step_id: str) -> Decided:
        task = self.state.tasks.get(step_id)
        return self.submit(c.StartStep(step_id, self.tools.get(task.type) if task else None))

    def start_ready(self) -> None:
        ready = [one for one, step in self.state.steps.items() if step.status is StepStatus.READY]
        for step_id in sorted(ready, key=self.urgency):
            self.start(step_id)

    def urgency(self, step_id: str) -> tuple[int, str]:
        task = self.state.tasks.get(step_id)
        return (task.priority if task else 0, step_id)

    def pull(self) -> list[v.ConversationEvent]:
        """As the engine does it: the next step, and what is ready starts."""
        before = len(self.records)
        self.advance()
        self.start_ready()
        return self.events[before:]

    def fill(self) -> Talk:
        """Everything that may start has started."""
        while self.pull():
            pass
        return self

    def report(self, effect: Worked, outcome: c.Outcome) -> Decided:
        work = effect.work
        if self.flying.pop((work.step_id, work.claim), None) is not None:
            self.past.append(effect)
        return self.submit(c.ReportOutcome(work.step_id, work.firing, work.claim, outcome))

    def out(self, task_id: str) -> Any:
        """The work of this task that is out in the world."""
        step_id = self.state.steps_of.get(task_id, task_id)
        (found,) = (one for (at, _), one in self.flying.items() if at == step_id)
        return found

    def running(self) -> list[str]:
        steps = [one for one, _ in self.flying if one in self.state.tasks]
        return sorted(self.state.tasks[one].id for one in steps)

    def done(self, task_id: str, result: Json = None) -> Decided:
        return self.report(self.out(task_id), c.Succeeded(result))

    def fails(self, task_id: str, outcome: c.Outcome = PERMANENT) -> Decided:
        return self.report(self.out(task_id), outcome)

    def question(self, task_id: str | None = None) -> InteractionRequest:
        asked = [self.state.questions[one] for one in self.state.open_questions]
        step_id = None if task_id is None else self.state.steps_of[task_id]
        (found,) = (one for one in asked if step_id in (None, one.step_id))
        return found.request

    def answer(
        self, option: str | None, feedback: str | None = None, at: str | None = None, **data: Json
    ) -> Decided:
        asked = self.question(at).request_id
        return self.submit(c.Answer(asked, WILL, option, data, feedback))

    def hear(
        self, child_id: str, status: str, result: Json = None, *, ended_by: str = ""
    ) -> Decided:
        child = self.children[child_id]
        child.seq += 1
        child.status = status
        told = (child_id, child.seq, child.step_id, 1, status, "as it said", result, ended_by)
        return self.submit(c.HearChild(*told))

    def child(self) -> str:
        """The one child run that is still at work."""
        (found,) = (one for one, child in self.children.items() if child.status == "running")
        return found

    def wait(self, seconds: float) -> Decided:
        self.now += seconds
        return self.submit(c.Tick())

    def go_on(self, failed: str = "retry") -> Decided:
        return self.submit(c.GoOn(AfterFailure(failed), WILL))

    def hold(self) -> Decided:
        return self.submit(c.Hold())

    def unhold(self) -> Decided:
        return self.submit(c.Unhold())

    def task(self, task_id: str) -> SubTask:
        return self.state.tasks[self.state.steps_of[task_id]]

    @property
    def events(self) -> list[Any]:
        return [decode(record) for record in self.records]

    def happened(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """What a consumer has seen, from the first record on."""
        state, seen = blank(RUN_ID, self.definition), []
        for record in self.records:
            event = decode(record)
            state = replay(state, [(record.at, event)])  # type: ignore[arg-type]
            told = narrate(state, record.seq, record.at, event)
            if told is not None:
                seen.append((told.event_type.value, dict(told.data)))
        return seen

    def snapshot(self) -> dict[str, Json]:
        return snapshot.dump(self.state)

    def settle(self, *, rounds: int = 500) -> ConversationState:
        """Everything out in the world comes back well, until nothing moves by itself."""
        for _ in range(rounds):
            before = len(self.records)
            self._round()
            if len(self.records) == before:
                return self.state
        raise AssertionError("the conversation goes on and on")

    def _round(self) -> None:
        self.pull()
        self.answer_phase()
        for effect in list(self.flying.values()):
            self.report(effect, c.Succeeded(result_of(effect)))
        for child_id, child in list(self.children.items()):
            if child.status in _NEXT_WORD:
                self.hear(child_id, _NEXT_WORD[child.status], {"by": "child"})
        sleeping = [at for name, at in self.state.timers.items() if name.startswith("retry:")]
        if sleeping:
            self.now = max(self.now, *sleeping)
            self.submit(c.Tick())


_NEXT_WORD = {"running": "done", "cancelling": "cancelled"}
"""What a child does next when nothing disturbs it."""


def result_of(effect: Worked) -> Json:
    """The same task returns the same, wherever it runs."""
    name = effect.task.id if isinstance(effect, f.RunTask) else effect.work.step_id
    return {"did": name}


def opened(**settings: Any) -> Talk:
    """A conversation in which nothing is wanted yet."""
    return Talk(**settings).open()


def wanted(*tasks: SubTask, **settings: Any) -> Talk:
    """A goal has been given that will be decomposed into these tasks."""
    talk = opened(**settings)
    talk.goal = tasks or talk.goal
    talk.converse()
    return talk


def executing(*tasks: SubTask, **settings: Any) -> Talk:
    """These tasks are scheduled, and none is chosen yet."""
    return wanted(*tasks, **settings).until(EXECUTING)


def chain(*ids: str) -> tuple[SubTask, ...]:
    """Each waits for the one before."""
    before: tuple[str, ...] = ()
    made = []
    for one in ids:
        made.append(SubTask(one, dependencies=before))
        before = (one,)
    return tuple(made)


def several(ids: Iterable[str]) -> tuple[SubTask, ...]:
    return tuple(SubTask(one) for one in ids)


def at_phase(phase: EngineState) -> Talk:
    """A conversation that stands in this phase, with something to lose in it."""
    talk = wanted(SubTask("first"), SubTask("second"))
    match phase:
        case EngineState.IDLE:
            return opened()
        case EngineState.PAUSED:
            talk.until(EXECUTING).fill().hold()
        case EngineState.COMPLETED:
            talk.settle()
        case EngineState.ERROR:
            talk.until(EXECUTING).submit(c.Abort())
        case EngineState.EXECUTING:
            talk.until(phase).fill()
        case _:
            talk.until(phase)
    if phase in (EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING):
        talk.advance()
    assert talk.state.phase is phase
    return talk
