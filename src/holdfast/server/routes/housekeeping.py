"""Housekeeping: which finished runs there are, what they hold, and their removal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from holdfast.model.rows import RunRow
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.openapi import NOT_FOUND
from holdfast.server.routing import new_router
from holdfast.server.schemas.runs import Before, Given, RunId
from holdfast.server.services import Served
from holdfast.views.housekeeping import (
    AT_ONCE,
    DAY,
    ERASURE,
    FINISHED,
    RETENTION,
    SETTLED,
    Finished,
    Why,
)

router = new_router("operation")

PAGE: Final = 100
MEDIA_TYPE: Final = "application/jsonl"
_LINES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "JSON Lines: each run, its events and its questions",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}

Status = Literal["done", "cancelled", "error"]


class FinishedRun(BaseModel):
    id: str = Field(examples=["inst_000001"])
    name: str = Field(description="Its plan or agent", examples=["apply_computer"])
    kind: str
    status: str
    title: str
    created_at: float
    updated_at: float
    finished: bool = Field(True, description="Whether all runs below it are, too")


class FinishedRuns(BaseModel):
    """Root runs, the newest first; `next` is what to ask for as `before`, null at the end."""

    runs: list[FinishedRun]
    next: str | None


class Removal(Given):
    """Removes whole trees by their roots. With `digest` only if it is theirs, as they were
    exported: of each tree's lines a SHA-256, and of all those, in order, another."""

    roots: list[str] = Field(min_length=1, max_length=AT_ONCE, examples=[["inst_000001"]])
    digest: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    person: str | None = Field(
        None, max_length=200, description="Whose data is erased; without it this is retention"
    )


class RemovedRuns(BaseModel):
    """`left` are the roots of trees that are in use again, or not finished."""

    removed: list[str]
    runs: int
    records: int
    left: list[str]


@router.get("/housekeeping/finished", responses=NOT_FOUND)
async def list_finished(
    served: Served,
    caller: Called,
    older_than_days: Annotated[float, Query(ge=0, le=36_500)],
    name: Annotated[str | None, Query(description="Only of this plan or agent")] = None,
    status: Annotated[list[Status] | None, Query(description="By default done, cancelled")] = None,
    before: Before = None,
) -> FinishedRuns:
    """Runs that ended so long ago; a page may be empty although more follow."""
    await caller.require(served, Permission.ADMINISTER)
    statuses = frozenset(status) & FINISHED if status else SETTLED
    wanted = Finished(served.now() - older_than_days * DAY, name, statuses)
    found, following = await served.app.engine.housekeeper.finished(wanted, before, PAGE)
    return FinishedRuns(runs=[_run(row) for row in found], next=following)


@router.get("/housekeeping/of-person", responses=NOT_FOUND)
async def list_of_person(
    served: Served,
    caller: Called,
    name: Annotated[str, Query(min_length=1, max_length=200)],
    before: Before = None,
) -> FinishedRuns:
    """Runs that a person started, or in which they answered or did anything else; a page may be
    empty although more follow."""
    await caller.require(served, Permission.ADMINISTER)
    found, following = await served.app.engine.housekeeper.naming(name, before, PAGE)
    return FinishedRuns(runs=[_run(row, whole) for row, whole in found], next=following)


@router.get("/housekeeping/export/{run_id}", response_class=Response, responses=_LINES)
async def export_run(run_id: RunId, served: Served, caller: Called) -> Response:
    """A root run and all below it, as it is stored; of secrets the references."""
    await caller.require(served, Permission.ADMINISTER)
    lines = served.app.engine.housekeeper.lines_of(run_id)
    first = await anext(lines)
    return StreamingResponse(_parts(first, lines), media_type=MEDIA_TYPE)


@router.post("/housekeeping/removals")
async def remove_runs(body: Removal, served: Served, caller: Called) -> RemovedRuns:
    """Remove finished runs for ever; the audit keeps how many went, and a digest."""
    await caller.require(served, Permission.ADMINISTER)
    why = Why(ERASURE, body.person, person=body.person) if body.person else Why(RETENTION)
    removed = await served.app.engine.housekeeper.remove(body.roots, why, body.digest)
    served.caretaker.nudge()
    return RemovedRuns(
        removed=list(removed.roots),
        runs=removed.runs,
        records=removed.records,
        left=list(removed.left),
    )


async def _parts(first: str, lines: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for line in lines:
        yield line


def _run(row: RunRow, whole: bool = True) -> FinishedRun:
    return FinishedRun(
        id=row.run_id,
        name=row.name,
        kind=row.kind,
        status=row.status,
        title=row.title,
        created_at=row.created_at,
        updated_at=row.updated_at,
        finished=whole,
    )
