"""What is true of every conversation: invariants of its state, and an auditor of its promises.

The auditor reads events and effects in order and believes nothing: it counts for itself what
was completed, what is under way, what was consented to and what must never run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.approval import mode_of
from holdfast.core.conversation import schedule
from holdfast.core.conversation.state import ANSWER, CONFIRM, CONTEXT, DECOMPOSE, ConversationState
from holdfast.core.conversation.tables import VALID_STATE_TRANSITIONS
from holdfast.core.interactions.calls import bind_consent
from holdfast.core.run.tables import ACTIVE_STEPS, StepStatus
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.conversation import EngineState
from holdfast.model.interaction import InteractionAction, InteractionStatus
from holdfast.model.retry import FailureKind
from holdfast.model.run import RunStatus

_GOES_ON = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)
_AT_REST = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)
Working = f.CallTool | f.RunTask | f.StartAgent | f.StartChild | f.FetchContext | f.Decompose


def fields_of(state: ConversationState) -> dict[str, Any]:
    """Everything that the state says; a heap is what it holds, however it is built."""
    return {**state.__dict__, "queue": schedule.heap_items(state.queue), "readied": ()}


def check_event(state: ConversationState) -> None:
    """Holds after every single event."""
    _check_counts(state)
    _check_tasks(state)
    _check_questions(state)
    _check_timers(state)
    _check_status(state)


def _check_counts(state: ConversationState) -> None:
    steps = list(state.steps.values())
    running = [step for step in steps if step.status is StepStatus.RUNNING]
    by_child = [one for one in running if one.awaits_child and not one.resuming]
    asleep = [one for one in steps if one.status in (StepStatus.WAITING, StepStatus.BACKOFF)]
    assert state.active == sum(step.status in ACTIVE_STEPS for step in steps)
    assert state.in_flight == len(running)
    assert state.resting == len(by_child) + len(asleep)
    assert state.paused_children == sum(one.child_status == "pause" for one in running)
    assert state.held == (state.phase is EngineState.PAUSED) or state.cancelled_by is not None


def _check_tasks(state: ConversationState) -> None:
    done = {one for one, task in state.tasks.items() if task.status in ("completed", "skipped")}
    skipped = {one for one in done if state.tasks[one].skipped}
    assert skipped == {one for one in done if state.tasks[one].status == "skipped"}
    assert (state.skipped, state.completed) == (len(skipped), len(done - skipped))
    assert state.total == len(state.tasks)
    assert 0.0 <= state.progress <= 1.0
    assert set(state.order) == set(state.tasks)
    assert set(state.steps) <= {CONTEXT, DECOMPOSE, CONFIRM, ANSWER, *state.tasks}
    assert not done & set(state.steps)
    for step_id, task in state.tasks.items():
        assert state.steps_of[task.id] == step_id
        left = {one for one in task.dependencies if state.steps_of[one] not in done}
        assert step_id in done or state.waits_for[step_id] == len(left)
    queued = [f"t{number}" for _, number in schedule.heap_items(state.queue)]
    assert len(queued) == len(set(queued))
    free = {one for one, count in state.waits_for.items() if not count} - done
    begun = set(state.steps) if state.phase not in (EngineState.ERROR, EngineState.IDLE) else free
    assert set(queued) <= free
    assert free - begun <= set(queued)
    assert len(state.untold) == len(set(state.untold))
    ends = (StepStatus.DONE, StepStatus.FAILED, StepStatus.STOPPED)
    assert all(state.steps[one].status in ends for one in state.untold)


def _check_questions(state: ConversationState) -> None:
    opened = {
        question_id
        for question_id, question in state.questions.items()
        if question.status is InteractionStatus.OPEN
    }
    assert set(state.open_questions) == opened
    for question_id in opened:
        step = state.steps[state.questions[question_id].step_id]
        assert (step.status, step.question_id) == (StepStatus.WAITING, question_id)


def _check_timers(state: ConversationState) -> None:
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
    assert set(state.timers) == retries | deadlines | cancel


def _check_status(state: ConversationState) -> None:
    asks = bool(state.open_questions) or state.paused_children > 0 or state.held
    match state.status:
        case RunStatus.RUNNING:
            assert not asks
            assert state.phase not in _AT_REST or state.pending or state.all_told
        case RunStatus.PAUSE:
            assert asks
        case RunStatus.DONE:
            assert state.phase in (EngineState.IDLE, EngineState.COMPLETED)
            assert not state.active
        case RunStatus.ERROR:
            assert state.phase is EngineState.ERROR
            assert not state.active
            assert not state.timers
        case RunStatus.CANCELLED:
            assert not state.in_flight
            assert state.cancelled_by is not None


class Auditor:
    """Follows one conversation; `begin` forgets what belongs to the turn before."""

    def __init__(self, tools: Mapping[str, ToolFacts], max_parallel: int) -> None:
        self.tools = tools
        self.max_parallel = max_parallel
        self.keys: set[str] = set()
        self.spent: set[str] = set()
        self.children: set[str] = set()
        self.handed_out: set[tuple[str, int]] = set()
        self.turns: set[int] = set()
        self.begin()

    def begin(self, done: set[str] | None = None) -> None:
        self.completed = done or set()
        self.finished: set[str] = set()
        self.over: set[str] = set()
        self.consents: dict[str, str] = {}
        self.key_of: dict[str, str] = {}
        self.progress = 0.0

    def audit(self, before: ConversationState, decision: Any) -> None:
        for event in decision.events:
            self._read(before, decision.state, event)
        for effect in decision.effects:
            if isinstance(effect, Working):
                self._judge(decision.state, effect)
        if decision.state.tasks and decision.state.phase in _IN_TURN:
            assert decision.state.progress >= self.progress, "progress went back"
            self.progress = decision.state.progress
        if before.phase is EngineState.PAUSED is decision.state.phase:
            assert before.progress == decision.state.progress, "progress moved while paused"

    def _read(self, before: ConversationState, state: ConversationState, event: Any) -> None:
        match event:
            case v.InputReceived(turn=turn):
                assert turn not in self.turns, "a turn was had twice"
                self.turns.add(turn)
                self.begin()
            case v.StartedOver():
                self.begin()
            case v.ConversationResumed(skipped=skipped):
                self.finished = {one for one in self.finished if one in state.steps} | {*skipped}
                self.over = set()
            case e.LateResultKept(step_id=step_id) if before.phase is EngineState.ERROR:
                if step_id in before.former and not event.stale:
                    self.finished.add(step_id)
            case v.SnapshotRestored():
                told = ("completed", "skipped")
                self.begin({one for one, task in state.tasks.items() if task.status in told})
                assert state.turn not in self.turns or before.turn == 0
                self.turns.add(state.turn)
            case v.PhaseChanged(before=left, after=after):
                assert after in VALID_STATE_TRANSITIONS[left]
            case v.TaskStarted(step_id=step_id):
                self._read_start(before, state, event)
            case v.TaskFinished(step_id=step_id):
                assert step_id not in self.completed | self.finished, "finished twice"
                self.finished.add(step_id)
                self.spent.add(self.key_of.pop(step_id, ""))
            case v.TaskCompleted(step_id=step_id):
                assert step_id not in self.completed, "completed twice"
                assert before.phase is EngineState.EXECUTING
                self.completed.add(step_id)
            case v.TaskBroke(step_id=step_id, failure=failure):
                if failure.kind is FailureKind.FORBIDDEN:
                    self.over.add(step_id)
                if failure.kind is not FailureKind.UNKNOWN:
                    self.spent.add(self.key_of.pop(step_id, ""))
            case e.AttemptFailed(step_id=step_id, failure=failure):
                if failure.kind is not FailureKind.UNKNOWN:
                    self.spent.add(self.key_of.pop(step_id, ""))
            case e.QuestionOpened(step_id=step_id, purpose="missing"):
                if before.steps[step_id].status is StepStatus.RUNNING:
                    self.spent.add(self.key_of.pop(step_id, ""))
            case e.QuestionAnswered():
                self._read_answer(state, event)

    def _read_answer(self, state: ConversationState, event: e.QuestionAnswered) -> None:
        question = state.questions[event.question_id]
        offered = {one.option_id: one.action for one in question.request.options}
        if question.purpose == "approval" and offered[event.option_id] in _GOES_ON:
            self.consents[question.step_id] = event.consent or str(question.consent)

    def _read_start(
        self, before: ConversationState, state: ConversationState, event: v.TaskStarted
    ) -> None:
        step_id, task = event.step_id, state.tasks[event.step_id]
        assert before.phase is EngineState.EXECUTING, "a task started outside the execution"
        assert step_id not in self.completed | self.finished | self.over, "it ran again"
        needed = {state.steps_of[one] for one in task.dependencies}
        assert needed <= self.completed, "it started before what it depends on"
        under_way = before.in_flight - before.paused_children
        assert under_way < self.max_parallel, "too many at once"
        if event.child_id is not None and not event.resumes:
            assert event.child_id not in self.children, "a child run was born twice"
            self.children.add(event.child_id)
        if task.route == "tool":
            self._check_consent(state, event)

    def _check_consent(self, state: ConversationState, event: v.TaskStarted) -> None:
        """Consent is computed anew, from the bytes that will be sent."""
        name = state.tasks[event.step_id].type
        tool, args = self.tools[name], event.args or {}
        mode = mode_of(tool.approval, args)
        assert mode is not ApprovalMode.DISABLED, "a disabled tool ran"
        if mode is ApprovalMode.AUTO and event.consent is None:
            return
        call = f"{state.run_id}:{event.step_id}:{event.firing}"
        fitting = bind_consent(call, name, tool.version, args)
        assert event.consent == fitting, "the bytes are not those that were consented to"
        assert self.consents.get(event.step_id) == fitting, "nobody consented"

    def _judge(self, state: ConversationState, effect: Working) -> None:
        work = effect.work
        step = state.steps[work.step_id]
        assert (step.status, step.claim) == (StepStatus.RUNNING, work.claim)
        assert state.status is not RunStatus.CANCELLING
        assert (work.step_id, work.claim) not in self.handed_out, "handed out twice"
        self.handed_out.add((work.step_id, work.claim))
        if work.step_id in (CONTEXT, DECOMPOSE, ANSWER) or isinstance(effect, f.FillArguments):
            return
        assert work.key not in self.spent, "work that has answered ran again under its key"
        if work.step_id not in self.key_of:
            assert work.key not in self.keys, "two pieces of work have one key"
        assert self.key_of.setdefault(work.step_id, work.key) == work.key, "the key changed"
        self.keys.add(work.key)
        if isinstance(effect, f.CallTool):
            assert effect.args == step.args


_IN_TURN = (EngineState.SCHEDULING, EngineState.EXECUTING, EngineState.PAUSED)
