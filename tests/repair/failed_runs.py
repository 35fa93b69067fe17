"""Runs that have failed, as small as a story needs them: a plan, tools, and how one call went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from machine import Machine
from small_plans import WILL, compiled, only

from holdfast.core.plan.state import PlanState
from holdfast.model import commands as c
from holdfast.model.approval import ToolFacts
from holdfast.model.plan import Listener, ToolAction
from holdfast.model.repair import Proposal
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.repair.failed_work import FailedWork
from holdfast.repair.looking import sound_candidates
from holdfast.repair.rules import drafts
from holdfast.repair.surroundings import Surroundings
from holdfast.source.check import Catalog

TEXT = {"type": "string"}


def tool(
    required: str = "", *, optional: Mapping[str, Any] | None = None, **more: Any
) -> ToolFacts:
    """A tool of these arguments, which are texts where `optional` does not say otherwise."""
    names = required.split()
    properties = dict.fromkeys(names, TEXT) | dict(optional or {})
    schema = {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }
    return ToolFacts(schema, more.pop("version", "1"), **more)


def takes(**schemas: Any) -> ToolFacts:
    """A tool that requires arguments of these schemas."""
    return tool(" ".join(schemas), optional=schemas)


def refusal(message: str, cause: Cause = Cause.ARGUMENT, **more: Any) -> Failure:
    return Failure(FailureKind.PERMANENT, message, cause=cause, **more)


def call(name: str, /, **args: Any) -> ToolAction:
    return ToolAction(name, args)


def known(tools: Mapping[str, ToolFacts]) -> Surroundings:
    schemas = {name: one.parameters for name, one in tools.items()}
    return Surroundings(Catalog(tools=schemas), tools)


def failed(
    *listeners: Listener,
    tools: Mapping[str, ToolFacts],
    failure: Failure,
    results: tuple[Any, ...] = (),
    values: Mapping[str, Any] | None = None,
    **plan: Any,
) -> PlanState:
    """The run's calls had these results, one after the other, and the next failed for good. The
    tools are those of today: what the plan was written for took anything."""
    lenient = {name: ToolFacts({}, one.version, one.idempotent) for name, one in tools.items()}
    machine = begun(*listeners, tools=lenient, values=values, **plan)
    for result in results:
        effect = only(machine)
        machine.report(effect, machine.outcome(effect, result))
        machine.start_ready()
    if machine.flying:
        machine.report(only(machine), c.Failed(failure))
    return machine.state


def begun(
    *listeners: Listener,
    tools: Mapping[str, ToolFacts],
    values: Mapping[str, Any] | None = None,
    **plan: Any,
) -> Machine:
    machine = Machine(compiled(*listeners, **plan), tools=dict(tools))
    machine.submit(c.StartRun("small", "go", dict(values or {}), by=WILL))
    machine.start_ready()
    return machine


def failing(state: PlanState) -> str:
    """The listener that the planner is consulted about."""
    (found,) = (one for one, step in state.steps.items() if step.failure is not None)
    return found


def work_of(state: PlanState, tools: Mapping[str, ToolFacts]) -> FailedWork:
    listener_id = failing(state)
    failure = state.steps[listener_id].failure
    assert failure is not None
    return FailedWork(state, listener_id, failure, known(tools))


def proposed(state: PlanState, tools: Mapping[str, ToolFacts]) -> list[tuple[dict[str, Any], ...]]:
    """The operations of each draft, the best first."""
    work = work_of(state, tools)
    assert work.failure.cause is not None
    found = drafts(state, work.id, work.failure, work.failure.cause, known(tools))
    return [tuple(dict(each) for each in one.operations) for one in found]


def sound(state: PlanState, tools: Mapping[str, ToolFacts]) -> tuple[Proposal, ...]:
    work = work_of(state, tools)
    of = (state, work.id, work.failure, (), known(tools))
    return sound_candidates(*of, case_id="", now=0.0)
