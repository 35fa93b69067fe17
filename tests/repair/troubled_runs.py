"""Runs that get into trouble, and what their events teach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from machine import Machine
from small_plans import WILL, on, only, started

from holdfast.core.plan.decide import blank, replay
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.storing import plan_digest
from holdfast.journal.codec import decode
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.interaction import REPAIR
from holdfast.model.plan import Listener, ToolAction
from holdfast.model.recorded import Event
from holdfast.model.repair import (
    Diagnosis,
    Level,
    Look,
    PlanPatch,
    Proposal,
    Verdict,
)
from holdfast.model.retry import Cause, Failure, FailureKind, GiveUp, RetryPolicy
from holdfast.model.values import JsonObject
from holdfast.repair.facts import NO_PAST, Fact, Past, facts_of

DOWN = c.Failed(Failure(FailureKind.TRANSIENT, "out of order", status=503))
REFUSED = c.Failed(Failure(FailureKind.TRANSIENT, "no token", status=401))
ABSENT = c.Failed(Failure(FailureKind.PERMANENT, "there is no such person", status=404))

PLAN = (
    on("L001", "001 Running", ToolAction("plain"), "002", context={"email": "{{result.email}}"}),
    on("L002", "002 Done", ToolAction("keyed", {"mail": "{002.context.email}"}), "001"),
)
RENAME: JsonObject = {
    "op": "set_args",
    "listener_id": "L002",
    "set": {"email": "{002.context.email}"},
    "drop": ["mail"],
}
GUESS = Diagnosis(Cause.ARGUMENT, "an argument has another name", source="rule:renamed")
VERSIONS = {"keyed": "1", "plain": "1"}
SHOWN = {"words": ["L002 passes email instead of mail"]}

Seen = tuple[PlanState, float, Event]


def seen(machine: Machine) -> list[Seen]:
    """All events of a run, each with the state before it."""
    return list(_seen(machine))


def _seen(machine: Machine) -> Iterator[Seen]:
    state = blank(machine.run_id, machine.plan)
    for one in machine.records:
        event = cast(e.PlanEvent, decode(one))
        yield state, one.at, event
        state = replay(state, [(one.at, event)])


def all_facts_of(past: Past, told: Iterable[Seen]) -> tuple[Past, tuple[Fact, ...]]:
    """What several events teach, each with the state before it."""
    found: list[Fact] = []
    for state, at, event in told:
        past, more = facts_of(past, state, at, event)
        found += more
    return past, tuple(found)


def taught(machine: Machine) -> tuple[Fact, ...]:
    return lived(machine)[1]


def lived(machine: Machine) -> tuple[Past, tuple[Fact, ...]]:
    return all_facts_of(NO_PAST, seen(machine))


def facts(machine: Machine, kind: type[Any]) -> list[Any]:
    return [one for one in taught(machine) if isinstance(one, kind)]


def begun(*listeners: Listener, run_id: str = "inst_000001", **plan: Any) -> Machine:
    """A run of the plan whose first step has succeeded."""
    machine = started(*(listeners or PLAN), **plan)
    machine.run_id = run_id
    answer_call(machine)
    return machine


def answer_call(machine: Machine, after: float = 2.0) -> None:
    """The one call in flight succeeds after so many seconds."""
    machine.now += after
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, {"email": "will@example.com"}))
    machine.start_ready()


def fail_call(machine: Machine, outcome: c.Outcome = DOWN, after: float = 0.0) -> None:
    machine.now += after
    machine.report(only(machine), outcome)


def wait(machine: Machine) -> None:
    """Until the next attempt has begun."""
    machine.fire_timer()
    machine.start_ready()


def retrying(most: int, **policy: Any) -> Listener:
    """L002, whose attempts come without a jitter."""
    retry = RetryPolicy(attempts=most, jitter=0.0, **policy)
    return on("L002", "002 Done", ToolAction("keyed"), "001", retry=retry)


def proposal(
    state: PlanState,
    *operations: JsonObject,
    level: Level = Level.RENAME,
    versions: Mapping[str, str] = VERSIONS,
) -> Proposal:
    """As it would be judged for the run as it stands."""
    plan = patched(state.plan.plan, read_operations(operations))
    patch = PlanPatch("k1", state.plan.digest, operations, "It might help.")
    return Proposal(patch, Verdict(plan_digest(plan), level, versions=versions), SHOWN)


def repaired(*operations: JsonObject, machine: Machine | None = None, **more: Any) -> Machine:
    """L002 has failed for good; a person has consented to this repair, and it is under way."""
    machine = machine or begun()
    fail_call(machine, ABSENT)
    asked = machine.consultations.pop(0)
    look = Look(GUESS, proposal(machine.state, *(operations or (RENAME,)), **more))
    machine.submit(c.Advise(asked.listener_id, asked.firing, GiveUp(), look))
    accept(machine)
    return machine


def accept(machine: Machine) -> None:
    questions = machine.state.questions
    (asked,) = (one for one in machine.state.open_questions if questions[one].purpose == REPAIR)
    machine.submit(c.Answer(asked, WILL, "apply"))
    machine.start_ready()
