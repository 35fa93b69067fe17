"""`decide`: a command in, events and effects out.

    state, command, moment ──> decide ──> Decision(events, effects, state)

`carry_out` is the same for a draft, into which several commands may be decided one after another.

Pure: it never awaits, logs, sleeps, reads a clock or invents an id. `COMMANDS`
says which command is welcome in which status; a refusal raises and changes
nothing; a word that comes too late decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from holdfast.core.plan import answers, planner, questions, steps
from holdfast.core.plan import interventions as people
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.compiled import INPUTS, CompiledPlan
from holdfast.core.plan.effects import EFFECTS, effects_in_flight, goes_on_by_itself
from holdfast.core.plan.state import PlanState
from holdfast.core.plan.tables import COMMANDS
from holdfast.core.run.builder import MAX_RECOVERIES, Decision, decided, tick, unwelcome
from holdfast.core.run.steps import hears, terminate
from holdfast.core.run.tables import ACCEPT, StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.forms.validation import unsealed, validate
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model.effects import Effect
from holdfast.model.events import PlanEvent, RunRecovered, RunStarted
from holdfast.model.plan import PlanInstanceStatus, TaskStatus, TaskUpdate
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json

_CANCELLING: Final = PlanInstanceStatus.CANCELLING
_follow: Final = EFFECTS.get


def blank(run_id: str, plan: CompiledPlan) -> PlanState:
    """The state of a run of which nothing has been recorded yet."""
    return PlanState(run_id, plan=plan)


def replay(state: PlanState, records: Iterable[tuple[float, PlanEvent]]) -> PlanState:
    """The state after `(at, event)` records: the journal, and nothing else, is the run."""
    return Builder(state).replay(records)


def decide(
    state: PlanState, command: c.Command, moment: c.Moment
) -> Decision[PlanState, PlanEvent]:
    builder = Builder(state, moment)
    return decided(builder, carry_out(builder, command))


def carry_out(builder: Builder, command: c.Command) -> Sequence[Effect]:
    decided = WELCOME[builder.state.status].get(type(command))
    if decided is None:
        return unwelcome(builder.state, command, COMMANDS)
    events, before = builder.events, len(builder.events)
    effects = decided(builder, command) or ()
    if len(events) == before:
        return effects
    state = builder.state
    if not state.active or state.status is _CANCELLING:
        planner.settle(builder)
    for _, event in events[before:]:
        follow = _follow(type(event))
        if follow is not None:
            effects = (*effects, *follow(state, event))
    return effects


def _start_run(builder: Builder, command: c.StartRun) -> None:
    """The main task runs at once, or a form is asked for the inputs that are missing."""
    plan = builder.state.plan
    values, complete = _inputs(plan, command.values)
    update = TaskUpdate(plan.main, TaskStatus.RUNNING, values, "start")
    builder.emit(
        RunStarted(
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


def _hear_child(builder: Builder, command: c.HearChild) -> None:
    if not hears(builder, command):
        return
    if command.ended_by and builder.state.status is not PlanInstanceStatus.CANCELLING:
        terminate(builder, command.ended_by, "")
    _follow_child(builder, command)


def _follow_child(builder: Builder, command: c.HearChild) -> None:
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


def _tick(builder: Builder, command: c.Tick) -> None:
    tick(builder, partial(answers.expire, builder), partial(_end_grace, builder))


def _end_grace(builder: Builder) -> None:
    for listener_id, step in sorted(builder.state.steps.items()):
        if step.status is StepStatus.RUNNING:
            questions.ask_unknown(
                builder, listener_id, msg("it had not ended when the grace was over")
            )


def _recover(builder: Builder, command: c.Recover) -> tuple[Effect, ...]:
    """A run that only rests lost nothing with its owner; the others count the loss."""
    if not goes_on_by_itself(builder.state):
        return ()
    count = builder.state.recoveries + 1
    if count < MAX_RECOVERIES:
        # Before the count, because a release alone would forget earlier crashes.
        steps.release_calls(builder)
    builder.emit(RunRecovered(count))
    steps.recover(builder)
    if count >= MAX_RECOVERIES:
        steps.quarantine(builder, count)
    return effects_in_flight(builder.state)


DECISIONS: Final[Mapping[type, Callable[[Builder, Any], Sequence[Effect] | None]]] = {
    c.StartRun: _start_run,
    c.StartStep: steps.start,
    c.ReportOutcome: steps.report,
    c.Advise: planner.advise,
    c.Answer: answers.answer,
    c.KeepDraft: answers.keep_draft,
    c.Resume: planner.resume,
    c.Skip: people.skip,
    c.MarkDone: people.mark_done,
    c.EditContext: people.edit_context,
    c.RerunFrom: people.rerun_from,
    c.Cancel: people.cancel,
    c.HearChild: _hear_child,
    c.Tick: _tick,
    c.Recover: _recover,
}
"""What each command that `COMMANDS` accepts leads to; the effects that follow from no event."""

WELCOME: Final = {
    status: {kind: DECISIONS[kind] for kind, row in COMMANDS.items() if row[status] is ACCEPT}
    for status in PlanInstanceStatus
}
