"""What a run is pinned to: with it and the run's history a client can fold the run itself."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, Field

from holdfast.runtime.machines import definition_of, kind_and_body
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import RunId
from holdfast.server.services import Served

router = new_router("runs")

_WITHHELD: Final = frozenset({"system_context"})
"""What an agent is told is its author's business; no fold needs it."""


class DefinitionShown(BaseModel):
    """`kind` is `plan`, `react` for an agent, or `conversation`."""

    run_id: str = Field(examples=["inst_000001"])
    kind: str = Field(examples=["plan"])
    name: str = Field(examples=["apply_computer"])
    digest: str = Field(description="Of the whole of it, by content.")
    definition: dict[str, Any]


@router.get("/runs/{run_id}/definition")
async def get_run_definition(run_id: RunId, served: Served, caller: Called) -> DefinitionShown:
    """The plan, agent or settings of a run, as they were when it began."""
    await caller.require(served, Permission.READ, run_id)
    pinned = definition_of(await served.app.engine.state(run_id))
    kind, name, body = kind_and_body(pinned)
    shown = {key: value for key, value in body.items() if key not in _WITHHELD}
    return DefinitionShown(
        run_id=run_id, kind=kind, name=name, digest=pinned.digest, definition=shown
    )
