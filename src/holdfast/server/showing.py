"""Runs as one caller is shown them: rows for lists, a whole run, an instance with its tasks.

Whether a caller may see a run goes by the plan or agent of its root. A list leaves out what the
caller may not see and reads on until the page is full, or until it has looked far enough.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from fastapi import Request, Response
from pydantic import BaseModel, TypeAdapter

from holdfast.errors import NotFound
from holdfast.i18n.message import msg, term
from holdfast.model.rows import RunQuery, RunRow
from holdfast.model.run import JOURNAL_KINDS, KINDS, RunKind, RunStatus
from holdfast.runtime.machines import as_plan
from holdfast.runtime.registry import CompiledPlan
from holdfast.server.auth.authentication import Caller, identify
from holdfast.server.auth.principal import Permission, plan, run_of, sees_all
from holdfast.server.middleware.idempotency import Again, Claimed
from holdfast.server.problems import JSON
from holdfast.server.schemas.runs import (
    InstanceShown,
    RunLine,
    RunShown,
    Summary,
)
from holdfast.server.services import Services
from holdfast.views.reader import RunVersion
from holdfast.views.records import PlanView, RunView

MOST_PAGES_READ: Final = 20
"""How far a list reads on where the caller may see little of it."""


def query_of(kind: RunKind | None, status: Collection[RunStatus] | None, **named: Any) -> RunQuery:
    """A page of runs that stand at the top; `status` is any of these, or of all."""
    return RunQuery(
        kind=None if kind is None else JOURNAL_KINDS[kind],
        status=frozenset(one.value for one in status) if status else None,
        **{"roots_only": True, **named},
    )


def run_line(row: RunRow) -> RunLine:
    summary = Summary.model_validate_json(row.summary)
    told = {"id": row.run_id, "kind": KINDS[row.kind], "summary": summary}
    return RunLine.model_validate({**taken(row, RunLine), **told})


def line_of(view: RunView) -> RunLine:
    """As `run_line`, of a run that was read."""
    return RunLine.model_validate({**taken(view, RunLine), "id": view.run_id})


async def listed(
    services: Services, caller: Caller, query: RunQuery
) -> tuple[list[RunLine], str | None]:
    """A page of what the caller may see, and where the next one begins."""
    rows, following = await visible(services, caller, query)
    return [run_line(row) for row in rows], following


async def visible(
    services: Services, caller: Caller, query: RunQuery
) -> tuple[list[RunRow], str | None]:
    """As `listed`, the rows themselves."""
    wanted, found = query.limit, list[RunRow]()
    everything = sees_all(caller.principal)
    for _ in range(MOST_PAGES_READ):
        rows = await services.reader.rows(query)
        for row in rows:
            if everything or await _may_see(services, caller, row):
                found.append(row)
            if len(found) == wanted:
                return found, row.run_id
        if len(rows) < query.limit:
            return found, None
        query = replace(query, before=rows[-1].run_id)
    return found, query.before


async def _may_see(services: Services, caller: Caller, row: RunRow) -> bool:
    root = row if row.root_id == row.run_id else await services.reader.row(row.root_id)
    return root is not None and caller.may(Permission.READ, run_of(root.kind, root.name))


def readable_plan(services: Services, caller: Caller, plan_id: str) -> CompiledPlan:
    """A plan that the caller may not read does not exist for them, nor do its neighbours."""
    library = services.app.engine.definitions
    everything = sees_all(caller.principal)
    if not everything and not (
        caller.may(Permission.READ, plan(plan_id)) and plan_id in library.plan_ids()
    ):
        raise NotFound(msg("there is no {kind} {name!r}", kind=term("plan"), name=plan_id))
    return library.current(plan_id)


Show: TypeAlias = Callable[[Services, Caller, RunVersion], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RunsOf:
    """How runs of one kind are found and shown; `narrow` raises NotFound for another kind."""

    narrow: Callable[[Any], Any]
    show: Show
    model: Any

    async def find(self, services: Services, caller: Caller, run_id: str) -> RunVersion:
        """One that the caller may see."""
        await caller.require(services, Permission.READ, run_id)
        return await self.read(services, run_id)

    async def read(self, services: Services, run_id: str) -> RunVersion:
        """As `find`, where the caller's permission was judged before."""
        state = await services.app.engine.state(run_id)
        return services.reader.of_state(self.narrow(state))

    async def operable(self, services: Services, caller: Caller, run_id: str) -> RunVersion:
        """One that the caller may see and command."""
        run = await self.find(services, caller, run_id)
        await caller.require(services, Permission.OPERATE, run_id)
        return run

    def again(self, status: int = 200) -> Again:
        """Answers a request that took effect before: with the run as it is now."""
        model = TypeAdapter(self.model)

        async def shown_again(claimed: Claimed, request: Request, services: Services) -> Response:
            caller = await identify(request)
            run = await self.find(services, caller, claimed.run_id)
            shown = model.validate_python(await self.show(services, caller, run))
            return Response(model.dump_json(shown, by_alias=True), status, media_type=JSON)

        return shown_again


async def run_shown(services: Services, run_id: str) -> RunShown | InstanceShown:
    """A run of any kind as it is on disk; the caller's permission was judged before."""
    return await _shown(services, await services.reader.at(run_id))


async def _shown(services: Services, run: RunVersion) -> RunShown | InstanceShown:
    shown = await _run(services, run.view(parts=False))
    return await run.beside(_whole, run, shown)


def _whole(run: RunVersion, shown: dict[str, Any]) -> RunShown | InstanceShown:
    if run.kind is not RunKind.PLAN:
        return RunShown(**shown)
    view = run.view()
    assert view.plan is not None
    return _instance(shown, view, view.plan)


async def _show(services: Services, caller: Caller, run: RunVersion) -> RunShown | InstanceShown:
    return await _shown(services, run)


def _instance_of_a_plan(state: Any) -> Any:
    try:
        return as_plan(state)
    except NotFound:
        raise NotFound(msg("Plan instance {id} not found", id=state.run_id)) from None


ALL_RUNS: Final = RunsOf(lambda state: state, _show, InstanceShown | RunShown)
INSTANCES: Final = RunsOf(_instance_of_a_plan, _show, InstanceShown)


async def _run(services: Services, view: RunView) -> dict[str, Any]:
    asked = services.reader.open_rows(view.run_id, view.root_id)
    return {
        **taken(view, RunShown),
        "id": view.run_id,
        "error": view.error or None,
        "interactions": [row.question_id async for row in asked],
        "server_time": services.now(),
    }


def _instance(shown: dict[str, Any], view: RunView, plan: PlanView) -> InstanceShown:
    failed = [f"{view.run_id}_{one}" for one in view.failed]
    told = {**shown, **taken(plan, InstanceShown), "failed_listener_ids": failed}
    return InstanceShown.model_validate(told)


def taken(view: object, model: type[BaseModel]) -> dict[str, Any]:
    """What the model shows under the names that the view has for it."""
    return {name: getattr(view, name) for name in model.model_fields if hasattr(view, name)}
