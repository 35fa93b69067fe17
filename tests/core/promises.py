"""A suspicious auditor: reads events and effects in order and holds them to the promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.core.approval import mode_of
from holdfast.core.decider import Decision
from holdfast.core.interactions.calls import bind_consent
from holdfast.core.plan.fitting import values_at
from holdfast.core.plan.spent import spent_calls
from holdfast.core.plan.state import PlanState
from holdfast.core.run.tables import StepStatus
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import ApprovalMode
from holdfast.model.commands import ToolFacts
from holdfast.model.interaction import REPAIR, InteractionAction
from holdfast.model.plan import PlanInstanceStatus, ToolAction
from holdfast.model.repair import CaseStatus, Proposal
from holdfast.model.retry import FailureKind
from holdfast.model.values import Json

Firing = tuple[str, int]

_CONSENTS = (InteractionAction.APPROVE_AND_EXECUTE, InteractionAction.PROVIDE_INFO)
_REFUSALS = (
    InteractionAction.REJECT_WITH_REASON,
    InteractionAction.SKIP,
    InteractionAction.TERMINATE,
)


def _was_seen(before: PlanState, proposal: Proposal) -> None:
    """Nothing that the repair was to call first has been called by then, and the values that it
    reads are those that were shown."""
    verdict = proposal.verdict
    assert not set(verdict.fresh) & set(spent_calls(before)), "a repair repeats what nobody saw"
    if verdict.values:
        assert values_at(before, verdict.reads) == verdict.values, "other values than those shown"


class Auditor:
    def __init__(self, tools: Mapping[str, ToolFacts]) -> None:
        self.tools = tools
        self.spent_keys: set[str] = set()
        self.proposed: dict[str, Proposal] = {}
        self.forbidden: set[Firing] = set()
        self.consents: dict[tuple[Firing, str], str] = {}
        self.kept_key: dict[Firing, str] = {}
        self.in_hand: set[str] = set()
        self.returned: dict[str, list[Json]] = {}
        self.handed_out: set[tuple[type, str, int]] = set()
        self.recovering = False

    def audit(self, before: PlanState, decision: Decision, *, recovering: bool) -> None:
        for event in decision.events:
            self._read(before, decision.state, event)
        self.recovering = recovering
        if recovering:
            self.handed_out.clear()
        else:
            self._nothing_new(before, decision)
        for effect in decision.effects:
            self._judge(decision.state, effect)

    def _read(self, before: PlanState, state: PlanState, event: e.PlanEvent) -> None:
        """Remember what the journal says has been decided for good."""
        match event:
            case e.ListenerSucceeded(listener_id=one) | e.CheckConcluded(listener_id=one):
                self._spend(one, event.firing)
                self._start_afresh(one)
            case e.ListenerFailed(listener_id=one):
                self._spend(one, event.firing)
                (self.in_hand.add if event.kept else self.in_hand.discard)(one)
                if event.handled:
                    self._start_afresh(one)
            case e.FunctionReturned(listener_id=one, result=result):
                self.returned.setdefault(one, []).append(result)
            case e.AttemptFailed(step_id=one):
                if event.failure.kind is not FailureKind.UNKNOWN:
                    self._spend(one, event.firing)
            case e.QuestionOpened(step_id=one, purpose="missing"):
                if before.steps[one].status is StepStatus.RUNNING:
                    self._spend(one, event.firing)
            case e.ListenerSkipped(listener_id=one):
                self.forbidden.add((one, event.firing))
                self._start_afresh(one)
            case e.TasksEdited(closed=closed):
                for one in closed:
                    if one in before.steps:
                        self.forbidden.add((one, before.steps[one].firing))
                    self._start_afresh(one)
            case e.PatchProposed(case_id=case_id, proposal=proposal):
                self.proposed[case_id] = proposal
            case e.PlanPatched(case_id=case_id):
                _was_seen(before, self.proposed[case_id])
            case e.QuestionAnswered():
                self._read_answer(state, event)
                self._read_lost_call(before, state, event)
            case e.QuestionExpired(question_id=question_id, option_id=option_id):
                question = state.questions[question_id]
                options = {one.option_id: one.action for one in question.request.options}
                if question.purpose != "missing" or options.get(option_id) not in _CONSENTS:
                    self.forbidden.add((question.step_id, question.firing))
            case _:
                return

    def _start_afresh(self, listener_id: str) -> None:
        self.in_hand.discard(listener_id)
        self.returned.pop(listener_id, None)

    def _read_lost_call(
        self, before: PlanState, state: PlanState, event: e.QuestionAnswered
    ) -> None:
        """A person told what a lost function call had returned."""
        listener_id = state.questions[event.question_id].step_id
        if listener_id not in before.steps:
            return
        if event.option_id == "happened" and before.steps[listener_id].calling is not None:
            self.returned.setdefault(listener_id, []).append(event.values["result"])

    def _spend(self, listener_id: str, firing: int) -> None:
        self.spent_keys.add(self.kept_key.pop((listener_id, firing), ""))

    def _read_answer(self, state: PlanState, event: e.QuestionAnswered) -> None:
        question = state.questions[event.question_id]
        if question.purpose == REPAIR:
            return
        assert question.deadline is None or state.updated_at < question.deadline, "too late"
        place = (question.step_id, question.firing)
        options = {one.option_id: one.action for one in question.request.options}
        action = event.action or options[event.option_id]
        if action in _REFUSALS:
            self.forbidden.add(place)
        elif question.purpose == "approval" and action in _CONSENTS:
            assert question.consent is not None
            shown = question.request.context["tool_version"]
            self.consents[place, question.consent] = shown

    def _judge(self, state: PlanState, effect: f.Effect) -> None:
        match effect:
            case f.ConsultPlanner():
                step = state.steps[effect.listener_id]
                assert step.status is StepStatus.CONSULTING
                assert step.firing == effect.firing
            case f.Diagnose(case_id=case_id, number=number):
                case = state.repair.cases[case_id]
                assert case.busy
                assert number == (case.number if case.status is CaseStatus.THINKING else 0)
            case f.ResumeChild() | f.CancelChild():
                return
            case _:
                self._judge_work(state, effect)

    def _judge_work(
        self,
        state: PlanState,
        effect: f.CallTool
        | f.RunSnippet
        | f.CallFunction
        | f.Conclude
        | f.StartChild
        | f.StartAgent,
    ) -> None:
        work = effect.work
        step = state.steps[work.step_id]
        assert step.status is StepStatus.RUNNING
        assert (step.firing, step.claim) == (work.firing, work.claim)
        assert state.status is not PlanInstanceStatus.CANCELLING
        handed = (type(effect), work.step_id, work.claim)
        assert handed not in self.handed_out, "one claim was handed out twice"
        self.handed_out.add(handed)
        place = (work.step_id, work.firing)
        if isinstance(effect, f.Conclude):
            return
        assert work.step_id not in self.in_hand, "a result in hand was obtained again"
        assert work.key not in self.spent_keys, "a finished effect ran again"
        assert self.kept_key.setdefault(place, work.key) == work.key, "the key changed"
        assert place not in self.forbidden, "what a person refused ran"
        if isinstance(effect, f.CallFunction) and self.recovering:
            assert effect.idempotent, "nobody knows whether it happened, and it ran again"
        assert not isinstance(effect, f.CallTool) or not self.recovering, "it was not judged anew"
        if isinstance(effect, f.CallTool):
            self._judge_consent(state, effect, place)
        if isinstance(effect, f.CallFunction):
            assert effect.index == len(self.returned.get(work.step_id, ()))
        if isinstance(effect, f.RunSnippet):
            recorded = [call.result for call in effect.recorded]
            assert recorded == self.returned.get(work.step_id, []), "a call was forgotten"

    def _judge_consent(self, state: PlanState, effect: f.CallTool, place: Firing) -> None:
        listener = state.plan.listener(effect.work.step_id)
        assert isinstance(listener.action, ToolAction)
        tool = self.tools[effect.tool]
        mode = mode_of(tool.approval, effect.args)
        if not listener.listener.approval and mode is ApprovalMode.AUTO:
            assert effect.consent is None
            return
        assert effect.consent is not None
        version = self.consents.get((place, effect.consent))
        assert version is not None, "nobody consented"
        assert version == tool.version, "another version was consented to"
        call = f"{state.run_id}:{place[0]}:{place[1]}"
        fitting = bind_consent(call, effect.tool, version, effect.args)
        assert effect.consent == fitting, "the bytes are not those that were consented to"

    def _nothing_new(self, before: PlanState, decision: Decision) -> None:
        """In `error` and while cancelling nothing starts."""
        if before.status in (PlanInstanceStatus.ERROR, PlanInstanceStatus.CANCELLING):
            assert not _starts(decision.events)


def _starts(events: Sequence[e.PlanEvent]) -> bool:
    return any(isinstance(event, e.ListenerStarted) for event in events)
