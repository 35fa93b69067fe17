"""Commands to instances, as several paths give them: who may, what is done, what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from holdfast.core.language.strict import strict_text
from holdfast.core.run.state import RunState
from holdfast.model import commands as c
from holdfast.results import Taken, result_of_answer
from holdfast.routing import Routed
from holdfast.runtime.acting import acting, current
from holdfast.server.guard import Caller, identify
from holdfast.server.idempotency import Claimed
from holdfast.server.principal import Permission
from holdfast.server.questions import Questions, refuse_raw_secrets
from holdfast.server.schemas import Continued
from holdfast.server.services import Services
from holdfast.server.showing import instance_shown, visible_instance


async def continued(
    services: Services,
    caller: Caller,
    instance_id: str,
    params: Mapping[str, Any],
    wait: float,
) -> Continued:
    """Answer the open forms, each as one whom it asks; with `wait` see what comes of it."""
    await visible_instance(services, caller, instance_id)
    answers = await services.app.plans.routed(instance_id, params)
    await _refuse_unauthorised(services, caller, answers)
    taken = await _provided(services, answers, caller.principal.id)
    result = await _result(services, taken, wait) if wait else None
    state = await services.app.engine.state(instance_id)
    return Continued(status=state.status, result=result)


async def _provided(services: Services, answers: Sequence[Routed], by: str) -> list[Taken]:
    """Several answers cannot share one claim: the last one has it, when all are taken."""
    acts = current()
    assert acts is not None
    *others, last = answers
    with acting(replace(acts, claim=None)):
        taken = await services.app.plans.provide(others, by)
    return taken + await services.app.plans.provide([last], by)


async def _refuse_unauthorised(
    services: Services, caller: Caller, answers: Sequence[Routed]
) -> None:
    """A value that fits a form is no authority to answer it."""
    questions = Questions(services, caller)
    for _, question, values in answers:
        found = await questions.find(question.request.request_id)
        await questions.refuse_unauthorised(found)
        refuse_raw_secrets(found.request, values)


async def _result(services: Services, taken: Sequence[Taken], wait: float) -> Any:
    try:
        async with asyncio.timeout(wait):
            return await result_of_answer(services.app.engine, *taken[0])
    except TimeoutError:
        return None


async def continued_again(claimed: Claimed, request: Request, services: Services) -> Response:
    """It went on before, and whoever asked did not hear it."""
    instance_id = request.path_params.get("plan_instance_id") or request.path_params["instance_id"]
    state = await visible_instance(services, await identify(request), instance_id)
    return JSONResponse(Continued(status=state.status, result=None).model_dump(mode="json"))


async def resumed(services: Services, caller: Caller, instance_id: str) -> RunState:
    await caller.require(services, Permission.OPERATE, instance_id)
    command = c.Resume(strict_text(caller.principal.id, "by"))
    return await services.app.engine.submit(instance_id, command)


async def shown_again(claimed: Claimed, request: Request, services: Services) -> Response:
    """The instance as it is now; the command for it took effect before."""
    await visible_instance(services, await identify(request), claimed.run_id)
    shown = await instance_shown(services, claimed.run_id)
    return JSONResponse(shown.model_dump(mode="json"))


async def started_again(claimed: Claimed, request: Request, services: Services) -> Response:
    response = await shown_again(claimed, request, services)
    response.status_code = 201
    return response
