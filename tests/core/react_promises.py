"""What is true of every session: invariants of its state, and an auditor of its promises.

The auditor reads events and effects in order and believes nothing: it recomputes consent,
remembers what was refused, and holds every result in the conversation to its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.core.agent.state import HELPER, THINK, ReactState
from holdfast.core.approval import mode_for, mode_for_helper
from holdfast.core.interactions.calls import bind_consent
from holdfast.core.run.tables import ACTIVE_STEPS, StepStatus
from holdfast.model import agent_events as r
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.interaction import InteractionAction, InteractionStatus
from holdfast.model.message import Message, ModelSaid, ToolReturned
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus

_UNDER_WAY = (RunStatus.RUNNING, RunStatus.PAUSE, RunStatus.CONTINUE)
_GOES_ON = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)


def check_event(state: ReactState) -> None:
    """Holds after every single event."""
    _check_counts(state)
    _check_questions(state)
    _check_timers(state)
    _check_status(state)
    check_conversation(reversed(list(state.messages)))


def check_decision(state: ReactState) -> None:
    """Holds once a decision is complete."""
    for step in state.steps.values():
        assert (step.status is StepStatus.WAITING) == (step.question_id is not None)
    if state.status in _UNDER_WAY:
        assert state.active > 0, "nothing is left to do, and nobody was told"
    if state.status is RunStatus.CANCELLING:
        assert state.in_flight > 0, "nothing holds the cancellation up"


def _check_counts(state: ReactState) -> None:
    steps = list(state.steps.values())
    running = [step for step in steps if step.status is StepStatus.RUNNING]
    by_child = [one for one in running if one.child_id and not one.carried and not one.resuming]
    asleep = [one for one in steps if one.status in (StepStatus.WAITING, StepStatus.BACKOFF)]
    assert state.active == sum(step.status in ACTIVE_STEPS for step in steps)
    assert state.in_flight == len(running)
    assert state.resting == len(by_child) + len(asleep)
    assert state.paused_children == sum(step.child_status == "pause" for step in steps)
    failed = {one for one, step in state.steps.items() if step.status is StepStatus.FAILED}
    assert set(state.failed) - {THINK} == failed - {THINK}
    assert len(state.failed) == len(set(state.failed))
    assert set(state.steps) - {THINK} == set(state.calls)


def _check_questions(state: ReactState) -> None:
    opened = {
        question_id
        for question_id, question in state.questions.items()
        if question.status is InteractionStatus.OPEN
    }
    assert set(state.open_questions) == opened
    for question_id in opened:
        step = state.steps[state.questions[question_id].step_id]
        assert (step.status, step.question_id) == (StepStatus.WAITING, question_id)


def _check_timers(state: ReactState) -> None:
    retries = {
        f"retry:{step_id}"
        for step_id, step in state.steps.items()
        if step.status is StepStatus.BACKOFF
    }
    deadlines = {
        f"question:{one}"
        for one in state.open_questions
        if state.questions[one].deadline is not None
    }
    cancel = {"cancel"} if state.status is RunStatus.CANCELLING else set()
    kept = {name for name in state.timers if not name.startswith(("remind:", "escalate:"))}
    assert kept == retries | deadlines | cancel
    asked = {name.partition(":")[2] for name in set(state.timers) - kept}
    assert asked <= set(state.open_questions)


def _check_status(state: ReactState) -> None:
    asks = bool(state.open_questions) or state.paused_children > 0
    match state.status:
        case RunStatus.RUNNING:
            assert not asks
        case RunStatus.PAUSE:
            assert asks
        case RunStatus.DONE:
            assert not state.active
            assert not state.open
            assert not state.asides
        case RunStatus.CANCELLED:
            assert not state.active
            assert state.cancelled_by is not None
        case RunStatus.CANCELLING:
            assert not state.open_questions
            assert not state.open


def check_conversation(messages: Iterable[Message]) -> set[str]:
    """Results stand directly behind their calls, each once; returns the calls without one."""
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolReturned):
            assert message.call_id in waiting, "a result without its call, or a second one"
            waiting.remove(message.call_id)
            continue
        assert not waiting, "somebody spoke between a call and its result"
        if isinstance(message, ModelSaid):
            waiting = {call.call_id for call in message.calls}
    return waiting


class Auditor:
    def __init__(self, tools: Mapping[str, ToolFacts]) -> None:
        self.tools = tools
        self.over: set[str] = set()
        self.consents: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.spent: set[str] = set()
        self.handed_out: set[tuple[str, int]] = set()

    def audit(self, before: ReactState, decision: Any, *, recovering: bool) -> None:
        if recovering:
            self.handed_out.clear()
        for event in decision.events:
            self._read(before, decision.state, event)
        for effect in decision.effects:
            if isinstance(effect, f.CallTool | f.AskModel | f.StartAgent):
                self._judge(decision.state, effect, recovering=recovering)

    def _read(self, before: ReactState, state: ReactState, event: r.ReactEvent) -> None:
        match event:
            case r.CallStarted(step_id=step_id):
                assert step_id not in self.over, "what had ended, or was refused, ran"
                self._read_start(state, event)
            case r.StepEnded(step_id=step_id) | r.StepAbandoned(step_id=step_id):
                assert step_id not in self.over, "one call came to two ends"
                self.over.add(step_id)
                self.spent.add(self.keys.pop(step_id, ""))
            case e.AttemptFailed(step_id=step_id):
                if event.failure.kind is not FailureKind.UNKNOWN:
                    self.spent.add(self.keys.pop(step_id, ""))
            case e.QuestionOpened(step_id=step_id, purpose="missing"):
                if before.steps[step_id].status is StepStatus.RUNNING:
                    self.spent.add(self.keys.pop(step_id, ""))
            case e.QuestionAnswered(question_id=question_id):
                question = state.questions[question_id]
                assert question.deadline is None or state.updated_at < question.deadline
                offered = question.request.options
                chosen = next(one for one in offered if one.option_id == event.option_id)
                action = event.action or chosen.action
                if question.purpose == "approval" and action in _GOES_ON:
                    self.consents[question.step_id] = event.consent or str(question.consent)
            case e.QuestionExpired(question_id=question_id):
                question = state.questions[question_id]
                assert question.purpose != "approval" or question.by is None
            case _:
                return

    def _read_start(self, state: ReactState, event: r.CallStarted) -> None:
        """Consent is computed anew, from the bytes that will be sent."""
        call = state.calls[event.step_id]
        rules = {"agent": state.agent.approval, "session": state.approval}
        if event.child_id is not None:
            tool, names = HELPER, (call.tool, state.helpers[call.tool])
            mode = mode_for_helper(names, event.args, **rules)
        else:
            tool = self.tools[call.tool]
            mode = mode_for(call.tool, event.args, own=tool.approval, **rules)
        assert mode is not ApprovalMode.DISABLED
        if mode is ApprovalMode.AUTO and not call.proposed and event.consent is None:
            return
        fitting = bind_consent(
            f"{state.run_id}:{event.step_id}:1", call.tool, tool.version, event.args
        )
        assert event.consent == fitting, "the bytes are not those that were consented to"
        if event.grant_id is not None:
            self.consents[event.step_id] = fitting
        assert self.consents.get(event.step_id) == fitting, "nobody consented"

    def _judge(
        self,
        state: ReactState,
        effect: f.CallTool | f.AskModel | f.StartAgent,
        *,
        recovering: bool,
    ) -> None:
        work = effect.work
        step = state.steps[work.step_id]
        assert (step.status, step.claim) == (StepStatus.RUNNING, work.claim)
        assert state.status is not RunStatus.CANCELLING
        assert (work.step_id, work.claim) not in self.handed_out, "handed out twice"
        self.handed_out.add((work.step_id, work.claim))
        if isinstance(effect, f.AskModel):
            assert not check_conversation(effect.messages), "the model was asked too early"
            return
        assert work.key not in self.spent, "a finished call ran again"
        assert self.keys.setdefault(work.step_id, work.key) == work.key, "the key changed"
        if isinstance(effect, f.CallTool):
            assert not recovering, "it was not judged anew"
            assert effect.args == step.args
