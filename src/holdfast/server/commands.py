"""Commands to instances, as several paths give them: who may, what is done, what is answered.

Values for several forms are several commits, and the server may fall between them. Where each
value goes is kept before the first, under the request's name: a repeat answers the same
questions, even if others ask for the same by then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from holdfast.model.rows import Attached, ExpiringValue
from holdfast.plans.results import Taken, result_of_answer
from holdfast.plans.routing import Routed
from holdfast.runtime.audit import CLAIM_SECONDS
from holdfast.runtime.identity import acting, current
from holdfast.server.auth.authentication import Caller, identify
from holdfast.server.middleware.idempotency import Claimed
from holdfast.server.questions import Questions, refuse_raw_secrets
from holdfast.server.schemas.runs import Continued
from holdfast.server.services import Services
from holdfast.server.showing import INSTANCES

_ROUTES: Final = "routes"


async def continued(
    services: Services,
    caller: Caller,
    instance_id: str,
    params: Mapping[str, Any],
    wait: float,
) -> Continued:
    """Answer the open forms, each as its role permits; with `wait` see what comes of it."""
    await INSTANCES.find(services, caller, instance_id)
    answers = await _routed_before(services, params)
    answers = answers or await services.app.plans.routed(instance_id, params)
    await _refuse_unauthorised(services, caller, answers)
    await _keep_routes(services, answers)
    taken = await _provided(services, answers, caller.principal.id)
    result = await _result(services, taken, wait) if wait else None
    state = await services.app.engine.state(instance_id)
    return Continued(status=state.status, result=result)


def _routes_key() -> str | None:
    acts = current()
    if acts is None or acts.claim is None:
        return None
    return f"{acts.claim.key} {acts.claim.fingerprint}"


async def _keep_routes(services: Services, answers: Sequence[Routed]) -> None:
    key = _routes_key()
    if key is None or len(answers) < 2:
        return
    routes = [(run_id, one.request.request_id, sorted(values)) for run_id, one, values in answers]
    kept = ExpiringValue(_ROUTES, key, json.dumps(routes), services.now() + CLAIM_SECONDS)
    await services.store.attach(Attached(kept=(kept,)))


async def _routed_before(services: Services, params: Mapping[str, Any]) -> list[Routed]:
    """Where the values of this very request went, as far as it came the first time."""
    key = _routes_key()
    if key is None or len(params) < 2:
        return []
    kept = await services.store.kept(_ROUTES, key, services.now())
    routed: list[Routed] = []
    for run_id, question_id, names in json.loads(kept.body) if kept is not None else ():
        state = await services.app.engine.state(run_id)
        values = {name: params[name] for name in names}
        routed.append((run_id, state.questions[question_id], values))
    return routed


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
    """It went on before, and the caller did not hear it."""
    instance_id = request.path_params.get("plan_instance_id") or request.path_params["instance_id"]
    instance = await INSTANCES.find(services, await identify(request), instance_id)
    return JSONResponse(Continued(status=instance.status, result=None).model_dump(mode="json"))
