"""Rehearsals: how a run would go on, played by the very decisions that drive it.

    state ──> commands ──> PlanDecider ──> effects ──> imagined outcomes ──> commands …

Nothing outside is called. What is ready starts, in the order in which a runtime starts it; what has
started is heard of in that order too, as if all work took equally long. People take longer: they
answer when nothing else goes on. Only then is the clock put forward, to the next moment that
something waits for. Calls succeed, but for those of one listener that is imagined to fail; people
approve, confirm and fill in; the planner gives up. What calls return and people fill in is imagined
(`core.repair.imagined`).

A check of the outcome would look at what is imagined: its call is listed, and it is left open what
it says.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Final

from holdfast.core.interactions.filling import takes_the_form
from holdfast.core.plan.compiled import CompiledListener, CompiledPlan
from holdfast.core.plan.decide import PlanDecider, blank
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.imagined import (
    IMAGINED,
    Imagination,
    ToolsByName,
    answers_to,
    is_imagined,
)
from holdfast.core.repair.samples import placeholder
from holdfast.core.run.state import (
    EMPTY,
    NEW_STEP,
    QuestionState,
    StepState,
    asks,
    retry_timer,
    wait_timer,
)
from holdfast.core.run.tables import StepStatus
from holdfast.errors import TemplateError
from holdfast.i18n.message import msg
from holdfast.language.conditions import explain
from holdfast.language.display import clip
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.events import (
    QuestionAnswered,
    QuestionOpened,
    SecretsRenewed,
    WaitEnded,
    WaitStarted,
)
from holdfast.model.interaction import (
    RENEWAL,
    InteractionAction,
    InteractionOption,
    InteractionStatus,
    Resolution,
)
from holdfast.model.plan import PlanInstanceStatus, TaskStatus, WaitAction
from holdfast.model.repair import Rehearsal, RehearsedCall
from holdfast.model.retry import GiveUp
from holdfast.model.values import Json

MOST_STARTS: Final = 2_000

_MOST_LISTED: Final = 8
_LONGEST_PROBLEM: Final = 500
_RUN_ID: Final = "rehearsal"
_RESTS: Final = (retry_timer(""), wait_timer(""))
_ABOUT_THE_WORK: Final = ("human", "missing", "approval", "unknown", "secret")
"""Purposes of the questions that are answered. What a repair asks is no part of the play."""

_PROVIDE: Final = InteractionAction.PROVIDE_INFO
_CUSTOM: Final = InteractionAction.CUSTOM
_GOING_ON: Final = (InteractionAction.APPROVE_AND_EXECUTE, _PROVIDE, _CUSTOM)
_YES: Final = Resolution(InteractionAction.APPROVE_AND_EXECUTE)
_OPEN: Final = InteractionStatus.OPEN
_UNSETTLED: Final = (_OPEN, InteractionStatus.EXPIRED)
_STARTING: Final = (
    PlanInstanceStatus.RUNNING,
    PlanInstanceStatus.PAUSE,
    PlanInstanceStatus.CONTINUE,
)
_DONE: Final = StepStatus.DONE
_READY: Final = StepStatus.READY
_RUNNING: Final = StepStatus.RUNNING


def rehearse(
    state: PlanState,
    tools: ToolsByName,
    *,
    now: float,
    seen: Mapping[str, Json] = EMPTY,
    failing: str | None = None,
    most: int = MOST_STARTS,
) -> Rehearsal:
    """How the run would go on from this state, which stays as it is.

    `seen` has the last result of each tool, `failing` is the listener whose work fails. `most` is
    how often something starts; what is asked about, or handed to another run, starts twice.
    """
    imagination = Imagination(state.plan, tools, seen, failing)
    return _Play(PlanDecider(state, c.Moment(now)), imagination, most).told()


def rehearse_plan(
    plan: CompiledPlan,
    values: Mapping[str, Json],
    tools: ToolsByName,
    *,
    now: float,
    most: int = MOST_STARTS,
) -> Rehearsal:
    """A run of the plan from its birth; InvalidAnswer for values that its inputs do not take."""
    builder = PlanDecider(blank(_RUN_ID, plan), c.Moment(now))
    builder.carry_out(c.StartRun(plan.plan.plan_id, values=values))
    return _Play(builder, Imagination(plan, tools, EMPTY), most).told()


class _Play:
    def __init__(self, builder: PlanDecider, imagination: Imagination, most: int) -> None:
        state = builder.state
        self.builder, self.imagination, self.left = builder, imagination, most
        self.listeners = state.plan.listeners
        self.before = state.steps
        self.spent = _spent(state)
        self.order = count()
        self.ready: list[tuple[int, int, str]] = []
        self.flying: deque[f.Effect] = deque()
        self.asked: deque[str] = deque()
        self.approved: set[tuple[str, int]] = set()
        self.calls: list[RehearsedCall] = []
        self.questions: list[str] = []
        self.cut = False

    def told(self) -> Rehearsal:
        self._take_up()
        moves = (self._start, self._hear, self._answer, self._let_time_pass)
        while not self.cut and any(move() for move in moves):
            pass
        state = self.builder.state
        return Rehearsal(
            calls=tuple(self.calls),
            questions=tuple(self.questions),
            stays=tuple(_unmoved(state, self.before)),
            reached=state.main_task.status is TaskStatus.DONE,
            stopped=tuple(self._stopped()),
            open_conditions=tuple(_open_conditions(state)),
            status=state.status.value,
            cut=self.cut,
        )

    def _stopped(self) -> Iterator[str]:
        """What has failed in the play without being imagined to, each with its reason."""
        state = self.builder.state
        for listener_id in state.failed[:_MOST_LISTED]:
            step, before = state.steps[listener_id], self.before.get(listener_id, NEW_STEP)
            failure = step.failure
            if failure is None or failure is before.failure or step.child_id is not None:
                continue
            if failure.message != IMAGINED.message:
                problem = clip(failure.message, _LONGEST_PROBLEM)
                yield msg("{place}: {problem}", place=listener_id, problem=problem)

    def _take_up(self) -> None:
        """What is due, ready, asked or under way already; only what starts anew is listed."""
        builder, state = self.builder, self.builder.state
        builder.events.clear()
        steps = state.steps.items()
        builder.readied[:] = sorted(one for one, step in steps if step.status is _READY)
        opened = (state.questions[one] for one in state.open_questions)
        by_age = sorted(opened, key=lambda one: one.opened_seq)
        self.asked += (one.request.request_id for one in by_age)
        self._decide(c.Tick())
        self.flying += PlanDecider.effects_in_flight(builder.state)
        steps = builder.state.steps.items()
        for step_id, step in sorted(one for one in steps if _awaits_child(one[1])):
            self._hear_child(step_id, step)

    def _decide(self, command: c.Command) -> Iterable[f.Effect]:
        effects = self.builder.carry_out(command)
        self.flying += effects
        self._note()
        return effects

    def _note(self) -> None:
        """Take over what has become ready, and what is asked."""
        builder = self.builder
        for step_id in builder.readied:
            priority = self.listeners[step_id].listener.priority
            heapq.heappush(self.ready, (priority, next(self.order), step_id))
        opened = (one for _, one in builder.events if isinstance(one, QuestionOpened))
        self.asked += (one.request.request_id for one in opened)
        builder.readied.clear()
        builder.events.clear()

    def _start(self) -> bool:
        """Start the most urgent step that is ready, unless nothing may start."""
        state = self.builder.state
        held = state.plan.holds and asks(state)
        if held or state.status not in _STARTING or not self.ready:
            return False
        self.cut = not self.left
        if not self.cut:
            self.left -= 1
            self._start_step(heapq.heappop(self.ready)[-1])
        return True

    def _start_step(self, step_id: str) -> None:
        listener, step = self.listeners[step_id], self.builder.step(step_id)
        if step.carried is None and self._waits_for_the_unknown(listener):
            now = self.builder.now
            self.builder.emit(WaitStarted(step_id, step.firing, now))
            self.builder.emit(WaitEnded(step_id, step.firing, now))
            self._note()
            return
        facts = self.imagination.tools(listener.tool) if listener.tool else None
        for effect in self._decide(c.StartStep(step_id, facts)):
            self._list(effect, listener)

    def _waits_for_the_unknown(self, listener: CompiledListener) -> bool:
        """The decider could make no moment of a placeholder: the wait would fail."""
        if not isinstance(listener.action, WaitAction):
            return False
        try:
            words = listener.args.fill(self.builder.state)
        except TemplateError:
            return False
        return any(map(is_imagined, words.values()))

    def _list(self, effect: f.Effect, listener: CompiledListener) -> None:
        """The call that an effect is, if it is one."""
        acts, asked, times = not listener.verifies, False, 0
        match effect:
            case f.CallTool(work=work, tool=tool, args=args):
                facts = self.imagination.tools(tool)
                looks = facts is not None and facts.read_only
                acts, asked = acts and not looks, (listener.id, work.firing) in self.approved
                times = 0 if looks or effect.idempotent else self.spent[tool]
            case f.StartChild(plan_id=plan_id, values=args):
                tool = f"plan:{plan_id}"
            case f.StartAgent(agent_id=agent_id, prompt=prompt):
                tool, args = f"agent:{agent_id}", {"prompt": prompt}
            case _:
                return
        self.calls.append(RehearsedCall(listener.id, tool, args, asked, acts, times))

    def _hear(self) -> bool:
        """Hear of what started first."""
        if not self.flying:
            return False
        match effect := self.flying.popleft():
            case f.CallTool() | f.RunSnippet() | f.CallFunction() | f.Conclude():
                work = effect.work
                outcome = self.imagination.outcome(effect, self.builder.state)
                self._decide(c.ReportOutcome(work.step_id, work.firing, work.claim, outcome))
            case f.StartChild(work=work) | f.StartAgent(work=work):
                self._hear_child(work.step_id, self.builder.step(work.step_id))
            case f.ConsultPlanner(listener_id=listener_id, firing=firing):
                self._decide(c.Advise(listener_id, firing, GiveUp()))
            case _:
                pass  # what other runs are told, or a model is asked, is no part of the play
        return True

    def _hear_child(self, step_id: str, step: StepState) -> None:
        child_id = str(step.child_id)
        seq = self.builder.state.heard.get(child_id, 0) + 1
        status, result = self.imagination.word_of_child(step_id)
        self._decide(c.HearChild(child_id, seq, step_id, step.firing, status, "", result))

    def _answer(self) -> bool:
        """Answer the question that has been open for longest."""
        questions = self.builder.state.questions
        while self.asked:
            question = questions[self.asked.popleft()]
            if question.status is _OPEN and question.purpose in _ABOUT_THE_WORK:
                self._answer_question(question)
                return True
        return False

    def _answer_question(self, question: QuestionState) -> None:
        request = question.request
        going_on = (one for one in request.options if one.action in _GOING_ON)
        option = next(going_on, request.options[0])
        if question.purpose == "approval":
            self.approved.add((question.step_id, question.firing))
        else:
            self.questions.append(request.title)
            if takes_the_form(request, option):
                self._fill_in(question, option)
                return
        words = placeholder(question.step_id) if option.requires_input else None
        handled = _YES if option.action is _CUSTOM else None
        asked, by = request.request_id, _by(question)
        self._decide(c.Answer(asked, by, option.option_id, {}, words, handled))

    def _fill_in(self, question: QuestionState, option: InteractionOption) -> None:
        """A placeholder is no date and meets no pattern: what is filled in is not judged."""
        values = answers_to(question.request.form, question.step_id)
        if option.action is not _PROVIDE and question.purpose != "missing":
            values = {**values, **option.metadata, "option": option.option_id}
        asked, by = question.request.request_id, _by(question)
        answered = QuestionAnswered(asked, option.option_id, by, values=values, action=_PROVIDE)
        self.builder.emit(answered)
        if question.purpose == RENEWAL:
            self.builder.emit(SecretsRenewed(question.step_id, values))
        self._note()

    def _let_time_pass(self) -> bool:
        timers = self.builder.state.timers.items()
        due = min((at for name, at in timers if name.startswith(_RESTS)), default=None)
        if due is None:
            return False
        self.builder.now = due
        self._decide(c.Tick())
        return True


def _by(question: QuestionState) -> str:
    """Each question has a person of its own: under four eyes who answers one may want the next."""
    return placeholder(_RUN_ID, question.request.request_id)


def _awaits_child(step: StepState) -> bool:
    return step.status is _RUNNING and step.awaits_child


def _unmoved(state: PlanState, before: Mapping[str, StepState]) -> Iterable[str]:
    """The author's listeners that were done, and have not fired again."""
    for one in state.plan.plan.listeners:
        step = None if _has_yet_to_fire(before, one.id) else before[one.id]
        if step is not None and step.status is _DONE and state.steps[one.id].firing == step.firing:
            yield one.id


def _open_conditions(state: PlanState) -> Iterable[str]:
    listeners = state.plan.plan.listeners
    unfired = (one for one in listeners if _has_yet_to_fire(state.steps, one.id))
    for one in islice(unfired, _MOST_LISTED):
        condition = state.plan.listeners[one.id].condition
        problem = explain(condition, one.trigger_task_id, state)
        yield msg("{place}: {problem}", place=one.id, problem=problem)


def _has_yet_to_fire(steps: Mapping[str, StepState], listener_id: str) -> bool:
    return listener_id not in steps or steps[listener_id].forgotten


def _spent(state: PlanState) -> Counter[str]:
    """How often each tool has taken effect in this run, or may have: its call is under way, or its
    outcome is not known."""
    spent: Counter[str] = Counter()
    for step_id, step in state.steps.items():
        spent.update(_spent_by(step, state.plan.listeners[step_id].tool))
    for one in state.questions.values():
        if one.purpose == "unknown" and one.status in _UNSETTLED:
            spent[str(one.request.context.get("tool"))] += 1
    return spent


def _spent_by(step: StepState, tool: str | None) -> Iterable[str]:
    """Tools by each call that a step has made with success, or that is under way."""
    under_way = step.status is _RUNNING and step.carried is None
    yield from (one.function for one in step.calls)
    if under_way and step.calling is not None:
        yield step.calling[0]
    if tool is not None:
        done = step.status is _DONE and step.failure is None
        yield from [tool] * (step.repeats + (done or under_way or step.carried is not None))
