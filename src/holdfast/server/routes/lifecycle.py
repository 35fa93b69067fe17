"""Cancelling and resuming runs: one pair of routes for all kinds, under `/runs/{run_id}`.

The older paths are aliases, declared in `ALIASES`: each finds runs of its kind alone, and answers
with the run as that kind is shown. `/plans/{plan_id}/resume` is the seed's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Any, Final

from fastapi import Request, Response

from holdfast.errors import InvalidAnswer, NotFound
from holdfast.i18n.message import msg, term
from holdfast.language.strict import strict_text
from holdfast.model import commands as c
from holdfast.model.conversation import AfterFailure, EngineState
from holdfast.model.run import RunKind, RunStatus
from holdfast.server.auth.authentication import Called, Caller, identify
from holdfast.server.auth.principal import Permission, plan
from holdfast.server.middleware.idempotency import Claimed, answered_again
from holdfast.server.problems import JSON, Refusal
from holdfast.server.routes.chats import CHATS
from holdfast.server.routes.conversations import CONVERSATIONS, ConversationId, viewed
from holdfast.server.routing import new_router
from holdfast.server.schemas.chats import SessionId
from holdfast.server.schemas.runs import (
    PlanId,
    Reason,
    Resumed,
    ResumeGiven,
    ResumePlan,
    RunId,
)
from holdfast.server.services import Served, Services
from holdfast.server.showing import ALL_RUNS, INSTANCES, RunsOf, query_of
from holdfast.views.reader import RunVersion

router = new_router("runs")


async def cancel(served: Services, caller: Caller, run_id: str, reason: str) -> RunVersion:
    command = c.Cancel(strict_text(caller.principal.id, "by"), strict_text(reason, "reason"))
    return served.reader.of_state(await served.app.engine.submit(run_id, command))


async def resume(
    served: Services, caller: Caller, run: RunVersion, failed: AfterFailure | None = None
) -> RunVersion:
    """Go on with what failed; a conversation also with what was paused."""
    by = strict_text(caller.principal.id, "by")
    if run.kind is RunKind.CONVERSATION:
        command: c.Command = _resuming(run, failed, by)
    elif failed is None:
        command = c.Resume(by)
    else:
        raise InvalidAnswer(
            msg("{id} is not a conversation", id=run.run_id),
            {"failed": msg("only a conversation takes this")},
        )
    resumed = served.reader.of_state(await served.app.engine.submit(run.run_id, command))
    if run.kind is RunKind.CONVERSATION:
        served.supervisor.pursue(run.run_id)
    return resumed


def _resuming(run: RunVersion, failed: AfterFailure | None, by: str) -> c.Unhold | c.GoOn:
    """How a failed conversation goes on is chosen by a person, never by default."""
    if failed is not None:
        return c.GoOn(failed, by)
    _, state = viewed(run)
    if state.phase is EngineState.ERROR:
        choose = msg(
            "say how to go on: failed is one of {choices}",
            choices=", ".join(state.choices),
        )
        told = msg("{id} has failed; {remedy}", id=run.run_id, remedy=choose)
        raise InvalidAnswer(told, {"failed": choose})
    return c.Unhold()


@dataclass(frozen=True, slots=True)
class Alias:
    """A pair of paths, `{path}/cancel` and `{path}/resume`, for runs of one kind. `noun` is for the
    operations' names; `how` says that the resume takes `failed`."""

    path: str
    parameter: str
    takes: Any
    tag: str
    noun: str
    runs: RunsOf
    cancels: str
    resumes: str
    how: bool = False


ALIASES: Final = (
    Alias(
        path="/runs/{run_id}",
        parameter="run_id",
        takes=RunId,
        tag="runs",
        noun="run",
        runs=ALL_RUNS,
        cancels="Cancel a run of any kind: nothing new starts, what is in flight ends first.",
        resumes="Go on with a run of any kind that failed, or with a paused conversation.\n\n"
        "What is done stays done. A conversation that failed takes `failed`.",
        how=True,
    ),
    Alias(
        path="/instances/{instance_id}",
        parameter="instance_id",
        takes=RunId,
        tag="instances",
        noun="instance",
        runs=INSTANCES,
        cancels="Nothing new starts; what is in flight ends first.",
        resumes="Run again what failed; what is done stays done.",
    ),
    Alias(
        path="/chats/{session_id}",
        parameter="session_id",
        takes=SessionId,
        tag="chats",
        noun="chat",
        runs=CHATS,
        cancels="End the session for good: nothing more starts in it.",
        resumes="Go on with a turn that failed; what was done in it is not done again.",
    ),
    Alias(
        path="/conversations/{conversation_id}",
        parameter="conversation_id",
        takes=ConversationId,
        tag="conversations",
        noun="conversation",
        runs=CONVERSATIONS,
        cancels="End the conversation for good: nothing more starts in it.",
        resumes="Go on from where it was paused; after a failure, as `failed` says.",
        how=True,
    ),
)
"""The first is what every kind of run has; the others are older."""


def _serve(alias: Alias) -> None:
    runs = alias.runs

    async def cancels(
        served: Served, caller: Called, body: Reason | None = None, **path: str
    ) -> Any:
        [run_id] = path.values()
        await runs.operable(served, caller, run_id)
        run = await cancel(served, caller, run_id, "" if body is None else body.reason)
        return await runs.show(served, caller, run)

    async def resumes(served: Served, caller: Called, **path: str) -> Any:
        [run_id] = path.values()
        run = await runs.operable(served, caller, run_id)
        return await runs.show(served, caller, await resume(served, caller, run))

    async def resumes_as_said(
        served: Served, caller: Called, body: ResumeGiven | None = None, **path: str
    ) -> Any:
        [run_id] = path.values()
        run = await runs.operable(served, caller, run_id)
        run = await resume(served, caller, run, body.failed if body else None)
        return await runs.show(served, caller, run)

    routes = new_router(alias.tag)
    for verb, endpoint, told in (
        ("cancel", cancels, alias.cancels),
        ("resume", resumes_as_said if alias.how else resumes, alias.resumes),
    ):
        endpoint.__dict__["__signature__"] = _signature(endpoint, alias)
        routes.add_api_route(
            f"{alias.path}/{verb}",
            answered_again(runs.again())(endpoint),
            methods=["POST"],
            name=f"{verb}_{alias.noun}",
            description=told,
            response_model=runs.model,
        )
    router.routes.extend(routes.routes)


def _signature(endpoint: Callable[..., Any], alias: Alias) -> Signature:
    """The endpoint's, with the id under the name that it has in the path."""
    found = signature(endpoint)
    named = Parameter(alias.parameter, Parameter.KEYWORD_ONLY, annotation=alias.takes)
    others = [one for one in found.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    return found.replace(parameters=[*others, named])


for _alias in ALIASES:
    _serve(_alias)


async def _resumed_again(claimed: Claimed, request: Request, served: Services) -> Response:
    run = await INSTANCES.find(served, await identify(request), claimed.run_id)
    shown = Resumed(plan_instance_id=run.run_id, status=run.status)
    return Response(shown.model_dump_json(), media_type=JSON)


seeds = new_router("plans")


@seeds.post("/plans/{plan_id}/resume", tags=["instances"])
@answered_again(_resumed_again)
async def resume_plan(
    plan_id: PlanId, served: Served, caller: Called, body: ResumePlan | None = None
) -> Resumed:
    """Run again what failed in an instance of this plan; what is done stays done.

    The instance may be left out when only one waits; with several, 409 lists them.
    """
    instance_id = None if body is None else body.plan_instance_id
    if instance_id is None:
        instance_id = await _only_one_waiting(served, caller, plan_id)
    instance = await INSTANCES.find(served, caller, instance_id)
    if instance.view(parts=False).name != plan_id:
        raise NotFound(
            msg("Plan instance {id} not found among those of {plan}", id=instance_id, plan=plan_id)
        )
    await caller.require(served, Permission.OPERATE, instance_id)
    resumed = await resume(served, caller, instance)
    return Resumed(plan_instance_id=instance_id, status=resumed.status)


router.routes.extend(seeds.routes)


async def _only_one_waiting(served: Services, caller: Caller, plan_id: str) -> str:
    if not caller.sees(plan(plan_id)):
        raise NotFound(msg("there is no {kind} {name}", kind=term("plan"), name=plan_id))
    query = query_of(RunKind.PLAN, (RunStatus.ERROR,), name=plan_id, limit=100)
    waiting = [row.run_id for row in await served.reader.rows(query)]
    if not waiting:
        raise NotFound(msg("no instance of {plan} waits for a resume", plan=plan_id))
    if len(waiting) > 1:
        names = ", ".join(waiting)
        raise Refusal(
            msg(
                "several instances of {plan} wait for a resume: name one of {names}",
                plan=plan_id,
                names=names,
            ),
            plan_instance_ids=waiting,
        )
    return waiting[0]
