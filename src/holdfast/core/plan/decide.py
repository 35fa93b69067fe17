"""A plan's decisions and effects: which command leads to what, and what is done outside then.

`DECISIONS` says which function decides which command. An effect that is worked out here is the same
after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, assert_never

from holdfast.core import decider
from holdfast.core.decider import (
    OF_EVERY_RUN,
    Decider,
    Decisions,
    Following,
    hear_child,
    resumed_children,
    under_way,
)
from holdfast.core.plan import advice, cases, forking, interventions, planner, questions, steps
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.compiled import INPUTS, CompiledPlan
from holdfast.core.plan.state import PlanState, key_of
from holdfast.core.plan.tables import COMMANDS
from holdfast.core.repair.state import NO_REPAIRS, CaseState
from holdfast.core.run.state import EMPTY, StepState, asks
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.forms.validation import unsealed, validate
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.events import TaskUpdate
from holdfast.model.plan import (
    AgentAction,
    CodeAction,
    HumanAction,
    PlanAction,
    PlanInstanceStatus,
    TaskStatus,
    ToolAction,
    WaitAction,
)
from holdfast.model.record import constructor
from holdfast.model.repair import CaseStatus
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_RUNNING: Final = StepStatus.RUNNING
_ERROR: Final = PlanInstanceStatus.ERROR
_CANCELLING: Final = PlanInstanceStatus.CANCELLING
_OVER: Final = (PlanInstanceStatus.DONE, PlanInstanceStatus.CANCELLED)
_claimed: Final = constructor(f.Work)
_call_tool: Final = constructor(f.CallTool)


def blank(run_id: str, plan: CompiledPlan) -> PlanState:
    """The state of a run of which nothing has been recorded yet."""
    return PlanState(run_id, plan=plan)


def _start_run(builder: Builder, command: c.StartRun) -> None:
    """The main task runs at once, or a form is asked for the inputs that are missing."""
    plan = builder.state.plan
    values, complete = _inputs(plan, command.values)
    update = TaskUpdate(plan.main, TaskStatus.RUNNING, values, "start")
    builder.emit(
        e.RunStarted(
            plan_id=command.plan_id,
            digest=plan.digest,
            prompt=command.prompt,
            root_id=command.root_id or builder.state.run_id,
            values={} if complete else values,
            parent=command.parent,
            by=command.by,
            moves=builder.moves((update,)) if complete else (),
            fired=() if complete else (INPUTS,),
            authors=command.authors,
            usage=command.usage,
        )
    )


def _inputs(plan: CompiledPlan, given: Mapping[str, Json]) -> tuple[dict[str, Json], bool]:
    """The inputs with their defaults, or what is there of them and that some are missing."""
    form = plan.plan.inputs
    if not form.fields:
        return dict(given), True
    partial = validate(form, given, partial=True)
    if errors := unsealed(form, given) | partial.errors:
        raise InvalidAnswer(msg("the plan's inputs are not valid"), errors)
    full = validate(form, given)
    return (dict(partial.values), False) if full.errors else (dict(full.values), True)


def _hear_child(builder: PlanDecider, command: c.HearChild) -> None:
    """A child that was mended, while nothing else keeps this run from going on, takes it along."""
    step = builder.state.steps.get(command.step_id)
    hear_child(builder, command)
    if step is None or step.status is not StepStatus.FAILED:
        return
    state = builder.state
    revived = state.steps[command.step_id].status in (_RUNNING, StepStatus.READY)
    if revived and state.status is _ERROR and not state.failed:
        planner.go_on(builder)


def _child_heard(builder: Builder, command: c.HearChild) -> None:
    """A child that failed fails its listener, and is resumed with it.

    One that is done has made its listener ready to conclude, unless the run is being cancelled.
    """
    step = builder.step(command.step_id)
    if step.status is not StepStatus.RUNNING:
        return
    if command.status == PlanInstanceStatus.ERROR:
        failure = Failure(
            FailureKind.PERMANENT,
            msg("{place}: {problem}", place=command.child_id, problem=command.message),
        )
        planner.fail_listener(builder, command.step_id, failure, updates=(), final=True)
    elif command.status == PlanInstanceStatus.CANCELLED:
        failure = Failure(
            FailureKind.PERMANENT, msg("{child} was cancelled", child=command.child_id)
        )
        planner.fail_listener(builder, command.step_id, failure, final=True)
    elif command.status == PlanInstanceStatus.DONE:
        steps.child_finished(builder, command.step_id, command.result)


DECISIONS: Final[Decisions] = {
    **OF_EVERY_RUN,
    c.StartRun: _start_run,
    c.HearChild: _hear_child,
    c.StartFork: forking.start,
    c.StartStep: steps.start,
    c.ReportOutcome: steps.report,
    c.Advise: advice.advise,
    c.ReportDiagnosis: cases.report,
    c.ProposePatch: cases.propose_patch,
    c.ReviewProposal: cases.review,
    c.WakeEarly: advice.wake_early,
    c.Resume: planner.resume,
    c.Skip: interventions.skip,
    c.MarkDone: interventions.mark_done,
    c.EditContext: interventions.edit_context,
    c.RerunFrom: interventions.rerun_from,
}


def goes_on_by_itself(state: PlanState) -> bool:
    """Something is under way or ready to start, so a new owner has work to take up."""
    status = state.status
    if status in _OVER:
        return False
    if status is _CANCELLING:
        return state.in_flight > 0
    if state.repair is not NO_REPAIRS and any(state.repair.busy()):
        return True
    if status is _ERROR or (state.plan.holds and asks(state)):
        return under_way(state)
    return state.active > state.resting


def _started(
    state: PlanState, event: e.ListenerStarted | e.FunctionCalled | e.FunctionReturned
) -> Iterable[f.Effect]:
    step_id = event.listener_id
    step = state.steps[step_id]
    return (_work(state, step_id, step),) if step.status is _RUNNING else ()


def _failed(state: PlanState, event: e.ListenerFailed) -> Iterable[f.Effect]:
    step = state.steps[event.listener_id]
    if step.status is StepStatus.CONSULTING:
        yield _consultation(state, event.listener_id, step)


def _skipped(state: PlanState, event: e.ListenerSkipped) -> Iterable[f.Effect]:
    return _abandoned(state, (event.listener_id,), event.by, event.reason)


def _edited(state: PlanState, event: e.TasksEdited) -> Iterable[f.Effect]:
    return _abandoned(state, event.closed, event.by, event.reason)


def _cancelled(state: PlanState, event: e.CancelRequested) -> Iterable[f.Effect]:
    return _abandoned(state, sorted(state.steps), event.by, event.reason)


def _looks(
    state: PlanState, event: e.CaseOpened | e.RepairDisproven | e.DiagnosisRequested
) -> Iterable[f.Effect]:
    case = state.repair.cases[event.case_id]
    return (_diagnosis(state, case),) if case.busy else ()


def _diagnosis(state: PlanState, case: CaseState) -> f.Diagnose:
    number = case.number if case.status is CaseStatus.THINKING else 0
    return f.Diagnose(state.run_id, case.case_id, number)


EFFECTS: Final[Following] = {
    e.CaseOpened: _looks,
    e.RepairDisproven: _looks,
    e.DiagnosisRequested: _looks,
    e.ListenerStarted: _started,
    e.FunctionCalled: _started,
    e.FunctionReturned: _started,
    e.ListenerFailed: _failed,
    e.RunResumed: resumed_children,
    e.ListenerSkipped: _skipped,
    e.TasksEdited: _edited,
    e.CancelRequested: _cancelled,
}


def _abandoned(
    state: PlanState, listener_ids: Iterable[str], by: str, reason: str
) -> Iterator[f.Effect]:
    """Child runs that are not waited for any more; one in error would wait for ever."""
    for listener_id in listener_ids:
        step = state.steps[listener_id]
        over = step.child_status in _OVER
        if step.awaits_child and step.status in _LEFT_BEHIND and not over:
            yield f.CancelChild(str(step.child_id), by, reason)


_LEFT_BEHIND = (StepStatus.RUNNING, StepStatus.SKIPPED, StepStatus.STOPPED)


def _work(state: PlanState, listener_id: str, step: StepState) -> f.Effect:
    """The generation in its key rises only after a failure that the tool itself answered."""
    listener = state.plan.listeners[listener_id]
    run_id, firing, timeout = state.run_id, step.firing, listener.listener.timeout
    key = f"{run_id}:{listener_id}:{firing}:{step.generation}"
    if state.forked is not None:
        key = key_of(state, listener_id, firing, step.generation)
    work = _claimed(run_id, listener_id, firing, step.attempt, step.claim, key, timeout)
    if step.carried is not None:
        return f.Conclude(work, step.carried[0])
    if step.calling is not None:
        function, args, idempotent = step.calling
        return f.CallFunction(work, len(step.calls), function, args, idempotent)
    if listener.tool is not None:
        return _call_tool(work, listener.tool, step.args or EMPTY, step.idempotent, step.consent)
    match listener.action:
        case CodeAction(code_snippet=snippet, functions=functions):
            return f.RunSnippet(work, snippet, functions, step.calls, step.provided, step.clock)
        case PlanAction(plan_id=plan_id):
            values = step.args or EMPTY
            return f.StartChild(work, str(step.child_id), plan_id, values, state.root_id)
        case AgentAction(agent_id=agent_id):
            prompt = str((step.args or EMPTY).get("prompt", ""))
            child_id, only = str(step.child_id), listener.verifies
            return f.StartAgent(work, child_id, agent_id, prompt, state.root_id, only)
        case HumanAction() | ToolAction() | WaitAction():
            raise AssertionError(f"{listener_id} has no work to do outside")
        case _:
            assert_never(listener.action)


def _consultation(state: PlanState, listener_id: str, step: StepState) -> f.ConsultPlanner:
    task_id = state.plan.listener(listener_id).target or state.plan.main
    failure = step.failure or Failure(FailureKind.TRANSIENT, "")
    return f.ConsultPlanner(state.run_id, listener_id, step.firing, task_id, failure, step.retries)


def _work_or_advice(state: PlanState, listener_id: str, step: StepState) -> f.Effect:
    consults = step.status is StepStatus.CONSULTING
    return (_consultation if consults else _work)(state, listener_id, step)


def effects_in_flight(state: PlanState) -> tuple[f.Effect, ...]:
    found = decider.effects_in_flight(state, _work_or_advice)
    if state.status in _OVER or state.status is _CANCELLING:
        return found
    return (*found, *(_diagnosis(state, case) for case in state.repair.busy()))


class PlanDecider(Builder, Decider[PlanState, e.PlanEvent]):
    COMMANDS = COMMANDS
    DECISIONS = DECISIONS
    EFFECTS = EFFECTS
    answered = questions.answered
    ask_unknown = questions.ask_unknown
    child_heard = _child_heard
    settle = planner.settle
    quarantine = planner.quarantine
    recovered = cases.recovered
    restarts = steps.restarts
    goes_on_by_itself = staticmethod(goes_on_by_itself)
    effects_in_flight = staticmethod(effects_in_flight)


decide, replay = PlanDecider.decide, PlanDecider.replayed
