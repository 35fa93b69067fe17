"""A run's cases and patches, read without the rest of the run, and its plan as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import operations_from_json, patched, read_operations
from holdfast.drawing.difference import render_difference
from holdfast.errors import NotFound, PatchRejected
from holdfast.i18n.message import msg
from holdfast.journal.codec import decode
from holdfast.model.events import PatchProposed
from holdfast.model.interaction import InteractionRequest
from holdfast.model.plan import AgentAction, Listener, Plan, PlanAction
from holdfast.model.repair import CaseStatus, Evidence, Level, PlanPatch
from holdfast.model.run import RunKind
from holdfast.model.values import JsonObject
from holdfast.repair.parts import tools_called
from holdfast.runtime.machines import Definition, as_plan, definition_of
from holdfast.views.cases import case_view, patch_views
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.records import CaseView, PatchView

LOOKED_BACK: Final = 500
"""How far before some event a proposal is looked for."""

_BY_A_PERSON: Final = "person"


def cases(run: RunVersion) -> tuple[CaseView, ...]:
    """The oldest first."""
    state = as_plan(run.state)
    return tuple(case_view(state, one) for one in state.repair.in_order())


def case(run: RunVersion, case_id: str) -> CaseView:
    state = as_plan(run.state)
    found = state.repair.cases.get(case_id)
    if found is None:
        raise NotFound(msg("{id} has no case {case}", id=run.run_id, case=case_id))
    return case_view(state, found)


def patches(run: RunVersion) -> tuple[PatchView, ...]:
    """In the order in which they were applied."""
    return tuple(patch_views(as_plan(run.state)))


def proposes(request: InteractionRequest) -> bool:
    """Whether it has what questions about repairs have."""
    context = request.context
    named = all(isinstance(context.get(one), str) for one in ("case_id", "patch_id"))
    return named and isinstance(context.get("repair_tools"), list)


def case_of(run: RunVersion, request: InteractionRequest) -> CaseView | None:
    """What a question about a repair is about."""
    if run.kind is RunKind.PLAN:
        with suppress(NotFound):
            return case(run, str(request.context["case_id"]))
    return None


async def proposer(reader: RunReader, run_id: str, request: InteractionRequest) -> str:
    """Who proposed the repair that a question is about, where another person must approve it; else
    empty. The run is read only where a person proposes what acts."""
    source, level = request.context.get("source"), request.context.get("level")
    if not proposes(request) or source != _BY_A_PERSON or level != Level.ACT:
        return ""
    found = case_of(await reader.at(run_id), request)
    return "" if found is None or found.proposal is None else found.proposal.patch.by


def refuse_unknown(run: RunVersion, listener_id: str) -> None:
    """NotFound unless the plan, as it is now, has the listener."""
    as_plan(run.state).plan.listener(listener_id)


def digests(run: RunVersion) -> tuple[str, str]:
    """The name of the plan that the run began with, and of the one that it has."""
    state = as_plan(run.state)
    return (state.origin or state.plan).digest, state.plan.digest


def patch_svg(run: RunVersion, patch_id: str, *, styled: bool = True, language: str = "en") -> str:
    """The plan before and after a patch in one picture; also after one that is proposed."""
    found = _changes(as_plan(run.state)).get(patch_id)
    if found is None:
        raise NotFound(msg("{id} has no patch {patch}", id=run.run_id, patch=patch_id))
    return render_difference(*found, styled=styled, language=language)


def _changes(state: PlanState) -> Mapping[str, tuple[Plan, Plan]]:
    """By each patch that was applied or is proposed, the plan before and after it."""
    first = state.origin or state.plan
    plans, found = {first.digest: first.plan}, dict[str, tuple[Plan, Plan]]()
    for event in state.repair.patches:
        before = plans[event.base]
        plans[event.digest] = _patched(before, event.operations)
        found[event.patch_id] = before, plans[event.digest]
    for one in state.repair.in_status(CaseStatus.PROPOSED):
        assert one.proposal is not None
        patch = one.proposal.patch
        before = plans[patch.base]
        found[patch.patch_id] = before, _patched(before, patch.operations)
    return found


def _patched(plan: Plan, operations: Sequence[JsonObject]) -> Plan:
    return patched(plan, operations_from_json(operations))


def definition_then(run: RunVersion) -> Definition:
    """What held after this version's last event; of a plan with its patches up to there."""
    state = run.state
    return state.plan if isinstance(state, PlanState) else definition_of(state)


async def last_proposed(
    reader: RunReader, run_id: str, seq: int, wanted: Callable[[PlanPatch], bool]
) -> str | None:
    """The case of the last such patch that was proposed, up to event `seq`."""
    after = max(0, seq - LOOKED_BACK)
    for record in reversed(await reader.records(run_id, after, seq - after)):
        event = decode(record)
        if isinstance(event, PatchProposed) and wanted(event.proposal.patch):
            return event.case_id
    return None


async def cited(reader: RunReader, run: RunVersion, evidence: Evidence) -> str:
    """What the event that is cited says of a failure, which can be put into every language; empty
    where it says nothing."""
    if not 0 < evidence.seq <= run.version:
        return ""
    [record] = await reader.records(run.run_id, evidence.seq - 1, 1)
    event = decode(record)
    failure = getattr(event, "failure", None)
    return getattr(event, "message", "") if failure is None else str(failure.message)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a plan would call that it does not call yet."""

    tools: frozenset[str] = frozenset()
    plans: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()


def reach(run: RunVersion, operations: Sequence[JsonObject]) -> Reach:
    """Beyond what the plan calls already, and what its author lets repairs call; nothing of
    operations that cannot be carried out."""
    plan = as_plan(run.state).plan.plan
    try:
        after = patched(plan, read_operations(operations))
    except PatchRejected:
        return Reach()
    old, new = _called(plan.listeners), _called(after.listeners)
    allowed = {*plan.repair.tools, *(one.tool for one in plan.verify)}
    return Reach(new.tools - old.tools - allowed, new.plans - old.plans, new.agents - old.agents)


def _called(listeners: Sequence[Listener]) -> Reach:
    actions = [one.action for one in listeners]
    return Reach(
        frozenset(name for one in listeners for name in tools_called(one)),
        frozenset(one.plan_id for one in actions if isinstance(one, PlanAction)),
        frozenset(one.agent_id for one in actions if isinstance(one, AgentAction)),
    )
