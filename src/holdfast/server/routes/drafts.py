"""Plans that a model would draw up for a request: shown, and nothing is started.

An instance that is started without `plan_id` has one drawn up where no plan fits, and asks a person
before it runs.
"""

from __future__ import annotations

from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.routing import new_router
from holdfast.server.schemas.drafts import DraftWanted, DrawnShown
from holdfast.server.services import Served

router = new_router("plans")


@router.post("/plans/draft")
async def draft_plan(body: DraftWanted, served: Served, caller: Called) -> DrawnShown:
    """Have a model draw up a plan for a request, and say what it would do; nothing is kept.

    As for an instance without `plan_id`, one must be permitted to run any plan. 409 where no
    model is named.
    """
    await caller.require(served, Permission.OPERATE)
    drawn = await served.app.plans.draft(body.prompt, values=body.values)
    return DrawnShown.of(drawn, caller.language)
