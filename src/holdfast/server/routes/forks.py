"""Forks over HTTP: a new instance from any event of one that is over.

It is an instance of its own, at the top, also where the origin worked for another. So who forks
must be permitted to operate the origin, and to start its plan.
"""

from __future__ import annotations

from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission, plan
from holdfast.server.middleware.idempotency import answered_again
from holdfast.server.routing import new_router
from holdfast.server.schemas.forks import ForkGiven
from holdfast.server.schemas.runs import InstanceShown, RunId
from holdfast.server.services import Served
from holdfast.server.showing import INSTANCES

router = new_router("instances")


@router.post("/instances/{instance_id}/fork", status_code=201)
@answered_again(INSTANCES.again(201))
async def fork_instance(
    instance_id: RunId, body: ForkGiven, served: Served, caller: Called
) -> InstanceShown:
    """Go on from an event of an instance that is over, as a new instance.

    What was done by then counts as done, and what came of calls in flight as far as it is known;
    of all other such calls a person is asked. What was not done is done by the new instance.
    """
    origin = await INSTANCES.operable(served, caller, instance_id)
    plan_id = origin.view(parts=False).name
    await caller.require(served, Permission.OPERATE, subject=plan(plan_id))
    fork = await served.app.plans.fork(instance_id, body.at, by=caller.principal.id)
    run = await INSTANCES.read(served, fork.id)
    shown: InstanceShown = await INSTANCES.show(served, caller, run)
    return shown
