"""`decide`: a command in, events and effects out.

    state, command, moment ──> decide ──> Decision(events, effects, state)

Pure: it never awaits, logs, sleeps, reads a clock or invents an id. `COMMANDS`
says which command is welcome in which status; a refusal raises and changes
nothing; a word that comes too late decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, assert_never

from holdfast.core.forms.validation import unsealed, validate
from holdfast.core.plan import answers, people, planner, questions, steps
from holdfast.core.plan.apply import write
from holdfast.core.plan.compiled import INPUTS, CompiledPlan
from holdfast.core.plan.draft import Draft
from holdfast.core.plan.follow_up import effects_in_flight, effects_of, goes_on_by_itself
from holdfast.core.plan.state import PlanState
from holdfast.core.plan.tables import COMMANDS
from holdfast.core.run.apply import replayed
from holdfast.core.run.decision import MAX_RECOVERIES, Decision, unwelcome
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import hears, terminate
from holdfast.core.run.tables import ACCEPT, StepStatus
from holdfast.core.run.timing import tick
from holdfast.errors import InvalidAnswer
from holdfast.model import commands as c
from holdfast.model.effects import Effect
from holdfast.model.events import PlanEvent, RunRecovered, RunStarted
from holdfast.model.plan import PlanInstanceStatus, TaskStatus, TaskUpdate
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_CANCELLING: Final = PlanInstanceStatus.CANCELLING


def blank(run_id: str, plan: CompiledPlan) -> PlanState:
    """The state of a run of which nothing has been recorded yet."""
    return PlanState(run_id, plan=plan)


def replay(state: PlanState, records: Iterable[tuple[float, PlanEvent]]) -> PlanState:
    """The state after `(at, event)` records: the journal, and nothing else, is the run."""
    return replayed(state, records, write)


def decide(
    state: PlanState, command: c.Command, moment: c.Moment
) -> Decision[PlanState, PlanEvent]:
    if COMMANDS.get(type(command), EMPTY).get(state.status) is not ACCEPT:
        return unwelcome(state, command, COMMANDS)
    draft = Draft(state, moment)
    effects: list[Effect] = []
    accepted: c.PlanCommand = command  # type: ignore[assignment]  # the table has no others
    match accepted:
        case c.ReportOutcome():
            steps.report(draft, accepted)
        case c.StartStep():
            steps.start(draft, accepted)
        case c.StartRun():
            _start_run(draft, accepted)
        case c.Advise():
            planner.advise(draft, accepted)
        case c.Answer():
            answers.answer(draft, accepted)
        case c.KeepDraft():
            answers.keep_draft(draft, accepted)
        case c.Resume():
            planner.resume(draft, accepted)
        case c.Skip():
            people.skip(draft, accepted)
        case c.MarkDone():
            people.mark_done(draft, accepted)
        case c.EditContext():
            people.edit_context(draft, accepted)
        case c.RerunFrom():
            people.rerun_from(draft, accepted)
        case c.Cancel():
            people.cancel(draft, accepted)
        case c.HearChild():
            _hear_child(draft, accepted)
        case c.Tick():
            tick(draft, partial(answers.expire, draft), partial(_end_grace, draft))
        case c.Recover():
            effects += _recover(draft)
        case _:
            assert_never(accepted)
    events = draft.events
    if events and (not draft.state.active or draft.state.status is _CANCELLING):
        planner.settle(draft)
    for event in events:
        effects += effects_of(draft.state, event)
    return Decision(draft.state, tuple(events), tuple(effects))


def _start_run(draft: Draft, command: c.StartRun) -> None:
    """The main task runs at once, or a form is asked for the inputs that are missing."""
    plan = draft.state.plan
    values, complete = _inputs(plan, command.values)
    update = TaskUpdate(plan.main, TaskStatus.RUNNING, values, "start")
    draft.emit(
        RunStarted(
            plan_id=command.plan_id,
            digest=plan.digest,
            prompt=command.prompt,
            root_id=command.root_id or draft.state.run_id,
            values={} if complete else values,
            parent=command.parent,
            by=command.by,
            moves=draft.moves((update,)) if complete else (),
            fired=() if complete else (INPUTS,),
            authors=command.authors,
        )
    )


def _inputs(plan: CompiledPlan, given: Mapping[str, Json]) -> tuple[dict[str, Json], bool]:
    """The inputs with their defaults, or what is there of them and that some are missing."""
    form = plan.plan.inputs
    if not form.fields:
        return dict(given), True
    partial = validate(form, given, partial=True)
    if errors := unsealed(form, given) | partial.errors:
        raise InvalidAnswer("the plan's inputs are not valid", errors)
    full = validate(form, given)
    return (dict(partial.values), False) if full.errors else (dict(full.values), True)


def _hear_child(draft: Draft, command: c.HearChild) -> None:
    if not hears(draft, command):
        return
    if command.ended_by and draft.state.status is not PlanInstanceStatus.CANCELLING:
        terminate(draft, command.ended_by, "")
    _follow_child(draft, command)


def _follow_child(draft: Draft, command: c.HearChild) -> None:
    """A child that failed fails its listener, and is resumed with it.

    One that is done has made its listener ready to conclude, unless the run is being cancelled.
    """
    step = draft.step(command.step_id)
    if step.status is not StepStatus.RUNNING:
        return
    if command.status == PlanInstanceStatus.ERROR:
        failure = Failure(FailureKind.PERMANENT, f"{command.child_id}: {command.message}")
        planner.fail_listener(draft, command.step_id, failure, updates=(), final=True)
    elif command.status == PlanInstanceStatus.CANCELLED:
        failure = Failure(FailureKind.PERMANENT, f"{command.child_id} was cancelled")
        planner.fail_listener(draft, command.step_id, failure, final=True)
    elif command.status == PlanInstanceStatus.DONE:
        steps.child_finished(draft, command.step_id, command.result)


def _end_grace(draft: Draft) -> None:
    for listener_id, step in sorted(draft.state.steps.items()):
        if step.status is StepStatus.RUNNING:
            questions.ask_unknown(draft, listener_id, "it had not ended when the grace was over")


def _recover(draft: Draft) -> tuple[Effect, ...]:
    """A run that only rests lost nothing with its owner; the others count the loss."""
    if not goes_on_by_itself(draft.state):
        return ()
    count = draft.state.recoveries + 1
    if count < MAX_RECOVERIES:
        # Before the count, because a release alone would forget earlier crashes.
        steps.release_calls(draft)
    draft.emit(RunRecovered(count))
    steps.recover(draft)
    if count >= MAX_RECOVERIES:
        steps.quarantine(draft, count)
    return effects_in_flight(draft.state)
