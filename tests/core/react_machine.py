"""A pure simulator of the runtime for sessions: feeds commands and carries out effects.

Every command is decided twice and applied to a second state from *decoded* events only;
invariants are checked after each event and promises after each decision. Time is a number,
the model and the tools are what a test says they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from react_promises import Auditor, check_decision, check_event

from holdfast.core.agent.decide import blank, decide, replay
from holdfast.core.agent.state import THINK, AgentDefinition, ReactState
from holdfast.core.decider import Decision
from holdfast.core.run.tables import StepStatus
from holdfast.core.storing import agent_digest
from holdfast.errors import CallerError
from holdfast.journal.codec import decode, encode
from holdfast.journal.port import Record
from holdfast.journal.snapshots import dump_state, load_state
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.agent import Agent
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.interaction import InteractionOption, InteractionRequest
from holdfast.model.message import Message, ModelReply, ToolCall, ToolReturned, Usage, UserSaid
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import Parent, RunStatus
from holdfast.model.values import Json

WILL = "Will Zhang"
RUN_ID = "chat_000001"

Decided: TypeAlias = Decision[ReactState, r.ReactEvent]
Worked: TypeAlias = f.CallTool | f.AskModel
Kind = TypeVar("Kind")

REQUIRE = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)
AUTO = ApprovalRule(ApprovalMode.AUTO)
DISABLED = ApprovalRule(ApprovalMode.DISABLED)

AMOUNT: dict[str, Json] = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["amount"],
}
TOOLS: dict[str, c.ToolFacts] = {
    "look": c.ToolFacts({"type": "object", "properties": {}}, "1"),
    "keyed": c.ToolFacts({}, "1", idempotent=True),
    "pay": c.ToolFacts(AMOUNT, "1", approval=REQUIRE),
    "shut": c.ToolFacts({}, "1", approval=DISABLED),
    "picky": c.ToolFacts(
        {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}, "1"
    ),
}
CLERK = Agent(
    "clerk",
    name="Clerk",
    system_context="You pay.",
    tools=(*TOOLS, "absent"),
    agents=("scout",),
    asks_people=True,
)

TRANSIENT = c.Failed(Failure(FailureKind.TRANSIENT, "out of order"))
PERMANENT = c.Failed(Failure(FailureKind.PERMANENT, "no such thing"))
UNKNOWN = c.Failed(Failure(FailureKind.UNKNOWN, "cut off"))


class Child:
    """A helper's session as its parent sees it."""

    def __init__(self, step_id: str) -> None:
        self.step_id = step_id
        self.seq = 1
        self.status = "running"


class Chat:
    """One session and the world around it; `flying` is work that nobody has answered yet."""

    def __init__(self, agent: Agent = CLERK, tools: Mapping[str, c.ToolFacts] = TOOLS) -> None:
        self.definition = AgentDefinition(agent, agent_digest(agent))
        self.tools = dict(tools)
        self.now = 1_700_000_000.0
        self.records: list[Record] = []
        self.flying: dict[tuple[str, int], Worked] = {}
        self.past: list[Worked] = []
        self.stopped: list[f.StopModel] = []
        self.children: dict[str, Child] = {}
        self.wanted = 0
        self.wanted_by: dict[str, str] | None = None
        self.state = self.replayed = blank(RUN_ID, self.definition)
        self.auditor = Auditor(self.tools)

    def submit(self, command: c.Command) -> Decided:
        """Decide, check everything, and take up the effects; a refusal changes nothing."""
        moment = c.Moment(self.now, len(self.records).to_bytes(8, "big"), self.wanted_by)
        try:
            decision = decide(self.state, command, moment)
        except CallerError:
            assert self.state == self.replayed
            raise
        again = decide(self.state, command, moment)
        assert (again.events, again.effects) == (decision.events, decision.effects)
        assert self.state == self.replayed, "deciding changed the state before"
        self._replay(decision)
        self.auditor.audit(self.state, decision, recovering=isinstance(command, c.Recover))
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
        assert self.replayed == decision.state, "replay differs from the live state"
        if decision.events:
            check_decision(self.replayed)

    def _take(self, effect: f.Effect) -> None:
        match effect:
            case f.CallTool() | f.AskModel():
                self.flying[effect.work.step_id, effect.work.claim] = effect
            case f.StartAgent(work=work, child_id=child_id):
                self.children.setdefault(child_id, Child(work.step_id))
            case f.StopModel():
                self.stopped.append(effect)
            case f.ResumeChild(child_id=child_id):
                if self.children[child_id].status == "error":
                    self.children[child_id].status = "resumed"
            case f.CancelChild(child_id=child_id):
                if self.children[child_id].status not in ("done", "cancelled"):
                    self.children[child_id].status = "cancelling"
            case _:
                raise AssertionError(f"a session has no such effect: {effect}")

    def reload(self) -> None:
        """The session is evicted, and comes back from its snapshot."""
        loaded = load_state(dump_state(self.state), blank(RUN_ID, self.definition))
        assert loaded == self.state, "the snapshot differs from the state"
        self.state = loaded

    def crash(self) -> Decided:
        """The process dies with whatever it had in hand; a new owner recovers the session."""
        self.flying.clear()
        self.reload()
        return self.submit(c.Recover())

    def say(self, text: str = "Pay, please.") -> Decided:
        return self.submit(c.Say(text, WILL))

    def think(self) -> f.AskModel:
        """The model is asked, and has not replied yet."""
        self.start(THINK)
        return one_of(self.flying.values(), f.AskModel)

    def reply(self, text: str = "", *calls: ToolCall, finish: str = "stop") -> Decided:
        """The model is asked if it was not yet, and replies."""
        if self.state.steps[THINK].status is StepStatus.READY:
            self.start(THINK)
        asked = one_of(self.flying.values(), f.AskModel)
        said = ModelReply(text, calls, Usage(10, 5, 0.25, 1.5), "scripted", finish)
        return self.report(asked, c.Replied(said))

    def want(self, tool: str, /, **args: Json) -> ToolCall:
        self.wanted += 1
        return ToolCall(f"k{self.wanted}", tool, args)

    def calls(self, *calls: ToolCall) -> list[str]:
        """The model wants these calls; they are started as far as they may be."""
        before = self.state.numbered
        self.reply("", *calls)
        ids = [f"c{before + number}" for number in range(1, len(calls) + 1)]
        for step_id in ids:
            self.start(step_id)
        return ids

    def ready(self) -> list[str]:
        steps = self.state.steps.items()
        return sorted(one for one, step in steps if step.status is StepStatus.READY)

    def start(self, step_id: str) -> Decided:
        call = self.state.calls.get(step_id)
        return self.submit(c.StartStep(step_id, self.tools.get(call.tool) if call else None))

    def start_ready(self) -> bool:
        before = len(self.records)
        for step_id in self.ready():
            self.start(step_id)
        return len(self.records) > before

    def report(self, effect: Worked, outcome: c.Outcome) -> Decided:
        work = effect.work
        if self.flying.pop((work.step_id, work.claim), None) is not None:
            self.past.append(effect)
        return self.submit(c.ReportOutcome(work.step_id, work.firing, work.claim, outcome))

    def out(self, step_id: str) -> f.CallTool:
        """The call of this step that is out in the world."""
        flying = [one for (at, _), one in self.flying.items() if at == step_id]
        return one_of(flying, f.CallTool)

    def returns(self, step_id: str, result: Json = None) -> Decided:
        return self.report(self.out(step_id), c.Succeeded(result))

    def question(self, step_id: str | None = None) -> InteractionRequest:
        asked = [self.state.questions[one] for one in self.state.open_questions]
        (found,) = (one for one in asked if step_id in (None, one.step_id))
        return found.request

    def answer(
        self, option: str | None, feedback: str | None = None, at: str | None = None, **data: Json
    ) -> Decided:
        asked = self.question(at).request_id
        return self.submit(c.Answer(asked, WILL, option, data, feedback))

    def hear(self, child_id: str, status: str, result: Json = None) -> Decided:
        child = self.children[child_id]
        child.seq += 1
        child.status = status
        told = (child_id, child.seq, child.step_id, 1, status, "as it said", result)
        return self.submit(c.HearChild(*told))

    def wait(self, seconds: float) -> Decided:
        self.now += seconds
        return self.submit(c.Tick())

    @property
    def events(self) -> list[Any]:
        return [decode(record) for record in self.records]

    def happened(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def messages(self) -> list[Message]:
        return list(reversed(list(self.state.messages)))

    def result(self, call: ToolCall) -> ToolReturned:
        """What the model was told of its call."""
        (found,) = (
            one
            for one in self.messages
            if isinstance(one, ToolReturned) and one.call_id == call.call_id
        )
        return found

    def heard(self) -> list[str]:
        return [one.text for one in self.messages if isinstance(one, UserSaid)]

    def settle(self, *, rounds: int = 300) -> ReactState:
        """Everything out in the world comes back well, until nothing moves by itself."""
        for _ in range(rounds):
            if not self._round():
                return self.state
        raise AssertionError("the session goes on and on")

    def _round(self) -> bool:
        before = len(self.records)
        self.start_ready()
        for effect in list(self.flying.values()):
            if isinstance(effect, f.CallTool):
                self.report(effect, c.Succeeded({"x": 1}))
            else:
                said = ModelReply("That is all.", (), Usage(), "scripted")
                self.report(effect, c.Replied(said))
        for child_id, child in list(self.children.items()):
            if child.status in _NEXT_WORD:
                self.hear(child_id, _NEXT_WORD[child.status], {"x": 1})
        timers = self.state.timers
        sleeping = [at for name, at in timers.items() if name.startswith("retry:")]
        if sleeping and self.state.status is not RunStatus.ERROR:
            self.now = max(self.now, *sleeping)
            self.submit(c.Tick())
        return len(self.records) > before


_NEXT_WORD = {"running": "done", "resumed": "running", "cancelling": "cancelled"}
"""What a helper does next when nothing disturbs it."""


def one_of(found: Any, kind: type[Kind]) -> Kind:
    (one,) = (each for each in found if isinstance(each, kind))
    return one


def opened(agent: Agent = CLERK, **session: Any) -> Chat:
    """A session in which nothing has been said."""
    chat = Chat(agent)
    chat.submit(c.StartSession(agent.agent_id, by=WILL, **session))
    return chat


def begun(agent: Agent = CLERK, **session: Any) -> Chat:
    """A session with its first message; the model has yet to be asked."""
    chat = opened(agent, **session)
    chat.say()
    return chat


def helping(agent: Agent = CLERK) -> Chat:
    """A session that works for another."""
    return begun(agent, root_id="chat_000000", parent=Parent("chat_000000", "c1", 1))


def clerk(**changes: Any) -> Agent:
    return replace(CLERK, **changes)


def request(title: str = "Which colour?", **changes: Any) -> InteractionRequest:
    """A question of its own; every option that a test may want."""
    made = InteractionRequest("", "", changes.pop("type"), title)
    return replace(made, **changes)


def option(option_id: str, action: Any, **changes: Any) -> InteractionOption:
    return InteractionOption(option_id, option_id.title(), action, **changes)
