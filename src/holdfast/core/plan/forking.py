"""Forks: a new run from any event of one that is over. What was done there counts as done.

    the origin's journal ──> origin_at ──> fork_of ──> StartFork ──> RunForked, and questions

Listeners that were done or skipped stay so. Those that were ready, waited, backed off or had failed
fire in the new run, with what had been obtained for them: results, values, the calls of a snippet.
So does what was in flight. Its result counts where the origin's later journal has it. Otherwise it
may have taken effect: what may be repeated runs again under the *origin's* key, by which the
outside world knows it, and of all else a person is asked. What a child run did is not known here:
the caller says which ones have done nothing that would be done again, and may be started anew.

That a run was cancelled is not taken over: from there on it counts as it stood right before, with
the results of what ended meanwhile. Nor is its verification, which looks at the outcome of this
run. Consents, cases and repairs are the origin's own too, but what people refused there is refused
here, and what its tree has called counts as called; the plan is the one that held then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final

from holdfast.core.plan.builder import Builder
from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.in_flight import Firing, known_of
from holdfast.core.plan.planner import before_the_trouble, failed_tasks, holding
from holdfast.core.plan.questions import ask_unknown
from holdfast.core.plan.state import PlanState, TaskState, key_of, refused
from holdfast.core.run.state import EMPTY, RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed, NotFound
from holdfast.forms.secrets import references_in
from holdfast.i18n.message import msg, term
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.fork import Fork, ForkedStep, ForkedTask
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.record import record
from holdfast.model.values import Json

_OVER: Final = (PlanInstanceStatus.DONE, PlanInstanceStatus.CANCELLED)
_PASSED: Final = (StepStatus.DONE, StepStatus.SKIPPED)
_BEFORE_THE_PLANNER: Final = (StepStatus.FAILED, StepStatus.CONSULTING)
_READY: Final = StepStatus.READY
_TROUBLE: Final = (TaskStatus.ERROR, TaskStatus.RETRYING)
_OF_FAILURES: Final = frozenset({"error_info", "failed_listener_id", "failed_listener_ids"})
"""What the planner writes into the main task's context, of failures that the fork has not had."""


@record
class Origin:
    """A run as it stood for a fork at its event `seq`, and its journal after that. `late` are the
    results that had come too late to count, by then."""

    state: PlanState
    seq: int
    later: tuple[e.PlanEvent, ...] = ()
    late: tuple[e.LateResultKept, ...] = ()

    def known(self, listener_id: str) -> Firing:
        return known_of(self.state, listener_id, self.late, self.later)


def refuse_alive(origin: RunState, above: Sequence[RunState] = ()) -> None:
    """What goes on, or may be resumed, would do once more what its fork does. So would a run
    `above` that may start the origin anew: each of these had the one before it started."""
    alive = [one for one in (origin, *above) if one.status not in _OVER]
    if not alive:
        return
    last = {"id": alive[-1].run_id, "status": term(alive[-1].status)}
    if alive[-1] is origin:
        told = msg(
            "{id} is {status}, and only a run that is over can be forked: cancel it first", **last
        )
    else:
        told = msg(
            "{child} works for {id}, which is {status} and may start it anew: cancel {id} first",
            child=origin.run_id,
            **last,
        )
    raise NotAllowed(told)


def may_be_started_anew(state: RunState) -> bool:
    """By the run that it works for, which takes it for failed. What is done is never."""
    return state.parent is not None and state.status is not PlanInstanceStatus.DONE


def origin_at(blank: PlanState, records: Sequence[tuple[float, e.PlanEvent]], seq: int) -> Origin:
    """The run of which this is the whole journal, for a fork at its event `seq`."""
    if not 0 < seq <= len(records):
        told = msg(
            "{id} has no event {seq}: its events are 1 to {last}",
            id=blank.run_id,
            seq=seq,
            last=len(records),
        )
        raise NotFound(told)
    cancelled = (n for n, (_, one) in enumerate(records) if isinstance(one, e.CancelRequested))
    stood = min(seq, next(cancelled, seq))
    later = tuple(event for _, event in records[stood:])
    late = tuple(one for _, one in records[:seq] if isinstance(one, e.LateResultKept))
    return Origin(Builder(blank).replay(records[:stood]), seq, later, late)


def children_in_doubt(origin: Origin) -> tuple[str, ...]:
    """The child runs that had begun, and of which no result is known."""
    known = (origin.known(one) for one, _ in _unpassed(origin.state))
    return tuple(one.child_id for one in known if one.child_id is not None and one.in_doubt)


def fork_of(
    origin: Origin,
    untouched: Collection[str] = (),
    wanting: Mapping[str, str] = EMPTY,
    refused: Collection[str] = (),
    called: Collection[str] = (),
) -> Fork:
    """What a fork takes over. The `untouched` child runs have done nothing that would be done
    again; `wanting` are those who want what the origin did beside the people it knew of. `refused`
    and `called` are of the origin as it has ended."""
    state = origin.state
    tasks = tuple(_tasks(state))
    steps = {one.listener_id: one for one in _steps(origin, untouched)}
    steps |= {one.listener_id: one for one in _held_up(state)}
    in_order = tuple(step for _, step in sorted(steps.items()))
    return Fork(
        origin=state.run_id,
        seq=origin.seq,
        plan_id=state.plan_id,
        prompt=state.prompt,
        tasks=tasks,
        steps=in_order,
        wanting={**wanting, **state.wanting},
        secrets=_named(_secrets(tasks, in_order)),
        refused=tuple(sorted(refused)),
        called=tuple(sorted(called)),
    )


def start(builder: Builder, command: c.StartFork) -> None:
    """What is ready may start; of what is in doubt a person is asked at once."""
    fork, state = command.fork, builder.state
    builder.emit(e.RunForked(fork, state.plan.digest, state.run_id, command.by))
    reason = msg(
        "it was under way at event {seq} of {run}, and what came of it is not known",
        seq=fork.seq,
        run=fork.origin,
    )
    for step in fork.steps:
        if step.in_doubt:
            ask_unknown(builder, step.listener_id, reason)


def _tasks(state: PlanState) -> Iterator[ForkedTask]:
    """What failed has not been tried here, and the main task is as it was before the trouble."""
    builder = Builder(state)
    failed = (one for one, step in _unpassed(state) if step.status in _BEFORE_THE_PLANNER)
    untried = {task for one in failed for task in failed_tasks(builder, one)}
    for task_id, task in sorted(state.tasks.items()):
        if task_id == state.plan.main:
            yield _main(task_id, task)
        else:
            status = TaskStatus.NOT_STARTED if task_id in untried else task.status
            yield ForkedTask(task_id, status, task.context)


def _main(task_id: str, task: TaskState) -> ForkedTask:
    status = before_the_trouble(task) if task.status in _TROUBLE else task.status
    context = {name: one for name, one in task.context.items() if name not in _OF_FAILURES}
    return ForkedTask(task_id, status, context)


def _unpassed(state: PlanState) -> Iterator[tuple[str, StepState]]:
    """The listeners that have fired, and are neither done nor passed over."""
    for listener_id, step in state.steps.items():
        if step.status not in _PASSED and not listener_id.startswith(VERIFY):
            yield listener_id, step


def _steps(origin: Origin, untouched: Collection[str]) -> Iterator[ForkedStep]:
    for one, step in origin.state.steps.items():
        if step.status in _PASSED and not one.startswith(VERIFY):
            yield ForkedStep(one, step.firing, step.status, forgotten=step.forgotten)
    for one, step in _unpassed(origin.state):
        yield _going_on(origin, one, step, untouched)


def _going_on(
    origin: Origin, listener_id: str, step: StepState, untouched: Collection[str]
) -> ForkedStep:
    known = origin.known(listener_id)
    doubt = known.in_doubt and known.child_id not in untouched
    asks = doubt and (known.child_id is not None or not known.repeatable)
    sent: dict[str, Any] = {
        "generation": known.generation,
        "idempotent": known.idempotent,
        "args": known.args,
        "key": key_of(origin.state, listener_id, step.firing, known.generation),
        "calling": known.calling if asks else None,
        "in_doubt": asks,
    }
    return ForkedStep(
        listener_id,
        step.firing,
        _READY,
        provided={} if refused(step) else step.provided,
        carried=known.result,
        calls=known.calls,
        clock=step.clock,
        pending=step.pending,
        **(sent if doubt else {}),
    )


def _held_up(state: PlanState) -> Iterator[ForkedStep]:
    """Of a run that has come to nothing: what would fire at its resume."""
    if state.status is not PlanInstanceStatus.ERROR or state.failed:
        return
    steps, listeners = state.steps, state.plan.listeners
    ids = (one.listener_id for one in state.plan.plan.listeners)
    unfired = [listeners[one] for one in ids if one not in steps or steps[one].forgotten]
    for one in holding(state, unfired):
        yield ForkedStep(one, steps[one].firing + 1 if one in steps else 1, _READY)


def _secrets(tasks: Iterable[ForkedTask], steps: Iterable[ForkedStep]) -> Iterator[tuple[str, str]]:
    """Each reference to a secret, and the name of the value that it stands in."""
    for task in tasks:
        yield from _references(task.context)
    for step in steps:
        yield from _references(step.provided)
        yield from _references(step.args or EMPTY)
        calls = [[one.args, one.result] for one in step.calls]
        yield from _references({step.listener_id: [step.carried, calls, step.calling]})


def _references(values: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        for reference in sorted(references_in(value)):
            yield reference, name


def _named(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each by the first name that it has, with a number where another has that already."""
    names: dict[str, str] = {}
    for reference, name in found:
        if reference not in names:
            word, taken = name if name.isidentifier() else "secret", names.values()
            further = (f"{word}_{n}" for n in count(2))
            names[reference] = next(one for one in chain((word,), further) if one not in taken)
    return names
