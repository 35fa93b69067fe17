"""What the events of forks do to a plan's state.

Secrets: people enter one for the calls of a run and of those below it, and for no other opens the
reference that stands for it. A fork takes the references over with all other values. Where one is
about to leave the run, in the arguments of a call or for a child run, the step asks for the secret
first. From the answer on the new reference stands wherever the former one did, so it is asked for
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from immutables import Map
from rpds import List

from holdfast.core.plan.state import Forked, PlanState, TaskState
from holdfast.core.run import reducers as shared
from holdfast.core.run.builder import Reducer
from holdfast.core.run.state import (
    NEW_STEP,
    StepState,
    add_step,
    changed,
    evolve,
    move_step,
    wants,
)
from holdfast.core.run.tables import StepStatus
from holdfast.forms.secrets import fill
from holdfast.model import events as e
from holdfast.model.effects import RecordedCall
from holdfast.model.fork import Fork, ForkedStep, ForkedTask
from holdfast.model.plan import TaskStatus
from holdfast.model.record import replacing
from holdfast.model.values import Json

FORKED: Final = "forked"
"""The reason of the statuses that a fork's tasks begin with."""

_READY: Final = StepStatus.READY
_DONE_AT_ONCE: Final = evolve(NEW_STEP, status=StepStatus.DONE)
_forked_with = replacing(Forked)


def run_forked(state: PlanState, event: e.RunForked, at: float) -> None:
    fork = event.fork
    shared.begun(state, event, at, plan_id=fork.plan_id, prompt=fork.prompt)
    for who, how in fork.wanting.items():
        wants(state, who, how)
    done = sum(one.status is TaskStatus.DONE for one in fork.tasks)
    passed = Map({one.listener_id: _passed(one) for one in fork.steps if one.status is not _READY})
    tasks = _tasks(fork.tasks, at)
    changed(state, tasks=tasks, done_tasks=done, steps=passed, forked=_forked(fork))
    for step in fork.steps:
        if step.status is _READY:
            add_step(state, step.listener_id, _ready(step, state.version))


def _forked(fork: Fork) -> Forked:
    sent = (one for one in fork.steps if one.key)
    keys = {f"{one.listener_id}:{one.firing}:{one.generation}": one.key for one in sent}
    return Forked(fork.origin, fork.seq, keys, fork.secrets, fork.refused, fork.called)


def _tasks(tasks: Iterable[ForkedTask], at: float) -> Map[str, TaskState]:
    """Those of one status have come to it alike."""
    moves = {status: List([(status, FORKED, at)]) for status in TaskStatus}
    return Map(
        {one.task_id: TaskState(one.status, one.context, moves[one.status]) for one in tasks}
    )


def _passed(step: ForkedStep) -> StepState:
    """It is in no count, and most are alike."""
    if step.status is StepStatus.DONE and step.firing == 1 and not step.forgotten:
        return _DONE_AT_ONCE
    known = {"firing": step.firing, "status": step.status, "forgotten": step.forgotten}
    return evolve(NEW_STEP, **known)


def _ready(step: ForkedStep, seq: int) -> StepState:
    """What may have been sent counts as started here."""
    return evolve(
        NEW_STEP,
        firing=step.firing,
        generation=step.generation,
        claim=seq if step.key else 0,
        idempotent=step.idempotent,
        args=step.args,
        provided=step.provided,
        carried=step.carried,
        calls=step.calls,
        calling=step.calling,
        clock=step.clock,
        pending=step.pending,
    )


def secrets_renewed(state: PlanState, event: e.SecretsRenewed, at: float) -> None:
    """What another question has brought by now stands."""
    assert state.forked is not None
    entered, former = event.values, state.forked.secrets
    renewed = {one: str(entered[name]) for one, name in former.items() if name in entered}
    left = {one: name for one, name in former.items() if name not in entered}
    tasks = state.tasks
    for task_id, task in tasks.items():
        tasks = tasks.set(task_id, task._replace(context=_mapping(task.context, renewed)))
    changed(state, tasks=tasks, forked=_forked_with(state.forked, secrets=left))
    for step_id, step in state.steps.items():
        if step.args or step.provided or step.carried or step.calls:
            move_step(state, step_id, None, **_renewed(step, renewed))


def _renewed(step: StepState, renewed: Mapping[str, str]) -> dict[str, Any]:
    calls = [
        RecordedCall(one.function, _mapping(one.args, renewed), fill(one.result, renewed))
        for one in step.calls
    ]
    return {
        "args": None if step.args is None else _mapping(step.args, renewed),
        "provided": _mapping(step.provided, renewed),
        "carried": None if step.carried is None else (fill(step.carried[0], renewed),),
        "calls": tuple(calls),
    }


def _mapping(values: Mapping[str, Json], renewed: Mapping[str, str]) -> dict[str, Json]:
    filled: dict[str, Json] = fill(values, renewed)
    return filled


FORK_REDUCERS: Final[Mapping[type, Reducer]] = {
    e.RunForked: run_forked,
    e.SecretsRenewed: secrets_renewed,
}
