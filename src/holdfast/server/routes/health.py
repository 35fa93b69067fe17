"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from holdfast.errors import JournalUnavailable
from holdfast.server.routing import new_router
from holdfast.server.services import Served

router = new_router("operation")


class Alive(BaseModel):
    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    damaged_runs: int = Field(
        0,
        description="Runs that could not be read since the start; the others go on. "
        "`holdfast doctor --integrity` names them.",
    )


@router.get("/healthz", response_model=Alive)
async def healthz() -> Alive:
    """The process lives and answers."""
    return Alive()


@router.get("/readyz", response_model=Ready)
async def readyz(served: Served) -> Ready:
    """The journal can be read and written; 503 while it cannot."""
    refusal = await served.probe.refusal()
    if refusal is not None:
        raise JournalUnavailable(str(refusal)) from refusal
    return Ready(damaged_runs=len(served.app.engine.damaged))
