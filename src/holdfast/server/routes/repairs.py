"""Repairs of instances over HTTP: what went wrong, what is proposed, and how a plan has changed.

A patch is proposed here and consented to where every question is answered, at
`/interactions/{id}/answer`. Who proposes one must be permitted to operate the plan, and whatever
it would call beyond what the plan calls already: consent to a plan is no way to others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from fastapi import Request, Response

from holdfast.errors import InvalidValue, NotAllowed, NotPermitted, PatchRejected
from holdfast.i18n.message import msg
from holdfast.language.strict import canonical_json
from holdfast.model.repair import PlanPatch, Proposal
from holdfast.model.values import JsonObject
from holdfast.plans.repairs import Repairer
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, agent, plan, tool
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.problems import JSON
from holdfast.server.questions import Questions
from holdfast.server.routes.plans import SVG, SVG_ANSWER
from holdfast.server.routing import new_router
from holdfast.server.schemas.interactions import InteractionShown
from holdfast.server.schemas.repairs import (
    LONGEST_OPERATIONS,
    CaseAnswer,
    CaseId,
    Cases,
    CaseShown,
    Patches,
    PatchGiven,
    PatchId,
    PatchShown,
    ProposalShown,
    Proposed,
    Rehearse,
    Rehearsed,
)
from holdfast.server.schemas.runs import RunId
from holdfast.server.services import Served, Services
from holdfast.server.showing import INSTANCES
from holdfast.views import repairs
from holdfast.views.reader import RunVersion

router = new_router("instances")

Wanted: TypeAlias = Callable[[PlanPatch], bool]

REHEARSED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": Rehearsed, "description": "What it would do; nothing was changed"}
}


@router.get("/instances/{instance_id}/cases")
async def list_cases(instance_id: RunId, served: Served, caller: Called) -> Cases:
    """The instance's failures that a repair could mend, each with what is known of it.

    Those of an instance that works for it stand there; their questions are asked of both.
    """
    run = await INSTANCES.find(served, caller, instance_id)
    found = [CaseShown.of(instance_id, one, caller.language) for one in repairs.cases(run)]
    return Cases(cases=found, server_time=served.now())


@router.get("/instances/{instance_id}/cases/{case_id}")
async def get_case(
    instance_id: RunId, case_id: CaseId, served: Served, caller: Called
) -> CaseAnswer:
    """One failure: its diagnosis with the evidence, and what is proposed."""
    run = await INSTANCES.find(served, caller, instance_id)
    found = CaseShown.of(instance_id, repairs.case(run, case_id), caller.language)
    return CaseAnswer(case=found, server_time=served.now())


@router.get("/instances/{instance_id}/patches")
async def list_patches(instance_id: RunId, served: Served, caller: Called) -> Patches:
    """How the instance's plan has changed since it began."""
    run = await INSTANCES.find(served, caller, instance_id)
    found = await run.beside(repairs.patches, run)
    pinned, digest = repairs.digests(run)
    return Patches(
        patches=[PatchShown.of(one, caller.language) for one in found],
        pinned=pinned,
        digest=digest,
        server_time=served.now(),
    )


@router.get(
    "/instances/{instance_id}/patches/{patch_id}/diff.svg",
    response_class=Response,
    responses=SVG_ANSWER,
)
async def draw_patch(
    instance_id: RunId, patch_id: PatchId, served: Served, caller: Called
) -> Response:
    """The plan before and after a patch, applied or proposed, in one graph.

    What is new is marked `+`, what is changed `~`, and what is gone `−`.
    """
    run = await INSTANCES.find(served, caller, instance_id)
    drawn = await aside(repairs.patch_svg, run, patch_id, language=caller.language)
    return Response(drawn, media_type=SVG)


async def _proposed_again(claimed: Claimed, request: Request, served: Services) -> Response:
    """The case as it is now, where the proposal took effect and the caller did not hear it."""
    caller = await identify(request)
    run = await INSTANCES.find(served, caller, claimed.run_id)
    person = caller.principal.id
    told = await _case(served, caller, run, claimed.version, lambda patch: patch.by == person)
    return Response(told.model_dump_json(by_alias=True), 201, media_type=JSON)


@router.post(
    "/instances/{instance_id}/patches",
    status_code=201,
    response_model=Proposed,
    responses=REHEARSED,
)
@answered_again(_proposed_again)
async def propose_patch(
    instance_id: RunId,
    body: PatchGiven,
    served: Served,
    caller: Called,
    rehearse: Rehearse = False,
) -> Proposed | Response:
    """Propose a change of the instance's plan; once it is consented to, the instance goes on.

    422 has everything that speaks against it. With `rehearse` nothing is changed: the answer is
    200 with what the patch would do, and 422 where it would be that without.
    """
    run = await INSTANCES.operable(served, caller, instance_id)
    _refuse_over(run)
    listener_id = _mended(run, body)
    operations = await _operations(served, caller, run, body)
    given = {"reason": body.reason, "by": caller.principal.id}
    repairer = _repairer(served)
    if rehearse:
        proposal = await repairer.proposal(instance_id, operations, **given)
        if proposal.verdict.problems:
            raise PatchRejected(proposal.verdict.problems)
        return _rehearsed(proposal, caller)
    made = await repairer.propose(instance_id, operations, listener_id=listener_id, **given)
    run = await INSTANCES.read(served, instance_id)
    patch_id = made.patch.patch_id
    return await _case(served, caller, run, run.version, lambda one: one.patch_id == patch_id)


def _rehearsed(proposal: Proposal, caller: Caller) -> Response:
    shown = Rehearsed(proposal=ProposalShown.of(proposal, caller.language))
    return Response(shown.model_dump_json(), media_type=JSON)


def _refuse_over(run: RunVersion) -> None:
    """Also of a rehearsal: what is over goes on nowhere."""
    if run.view(parts=False).over:
        raise NotAllowed(msg("{id} is over: its plan cannot be changed any more", id=run.run_id))


def _repairer(served: Services) -> Repairer:
    found = served.app.planner_agent.repairer
    assert found is not None
    return found


def _mended(run: RunVersion, body: PatchGiven) -> str:
    """The listener as its plan names it; people see it with the instance before it."""
    listener_id = (body.listener_id or "").removeprefix(f"{run.run_id}_")
    if listener_id:
        repairs.refuse_unknown(run, listener_id)
    return listener_id


async def _operations(
    served: Services, caller: Caller, run: RunVersion, body: PatchGiven
) -> Sequence[JsonObject]:
    """What is proposed, of what the caller may have called: an instance of today's version of its
    plan they could start anyway."""
    if body.to_current == (body.operations is not None):
        raise InvalidValue(msg("give operations, or to_current: true"), "operations")
    if body.operations is None:
        return await _to_current(served, run)
    if len(canonical_json(body.operations)) > LONGEST_OPERATIONS:
        too_long = msg("at most {n:,} characters are taken", n=LONGEST_OPERATIONS)
        raise InvalidValue(too_long, "operations")
    await _refuse_reach(served, caller, await aside(repairs.reach, run, body.operations))
    return body.operations


async def _to_current(served: Services, run: RunVersion) -> Sequence[JsonObject]:
    found = await _repairer(served).to_current(run.run_id)
    if not found:
        raise NotAllowed(msg("{id} has today's version of its plan", id=run.run_id))
    return found


async def _refuse_reach(served: Services, caller: Caller, reach: repairs.Reach) -> None:
    for subject in (*map(plan, sorted(reach.plans)), *map(agent, sorted(reach.agents))):
        await caller.require(served, Permission.OPERATE, subject=subject)
    lacking = [one for one in sorted(reach.tools) if not _may_call(caller, one)]
    if lacking:
        raise NotPermitted(
            msg(
                "your grants do not permit you to have {tools} called: ask an admin for a grant "
                "of the role operator, as {tool}",
                tools=", ".join(lacking),
                tool=tool(lacking[0]),
            )
        )


def _may_call(caller: Caller, name: str) -> bool:
    """A person who may write plans that call a tool may propose to call it."""
    subject = tool(name)
    return caller.may(Permission.OPERATE, subject) or caller.may(Permission.AUTHOR, subject)


async def _case(
    served: Services, caller: Caller, run: RunVersion, seq: int, wanted: Wanted
) -> Proposed:
    """The case of what was proposed by event `seq`, as it is now, and its question."""
    case_id = await repairs.last_proposed(served.reader, run.run_id, seq, wanted)
    assert case_id is not None, "what was just proposed has a case"
    case = CaseShown.of(run.run_id, repairs.case(run, case_id), caller.language)
    interaction = None
    if case.interaction_id is not None:
        questions = Questions(served, caller)
        question = await questions.find(case.interaction_id)
        shown = await questions.shown(question, language=caller.language)
        interaction = InteractionShown.model_validate(shown)
    return Proposed(case=case, interaction=interaction)
