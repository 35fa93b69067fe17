"""Runs as one caller is shown them: rows for lists, a whole run, an instance with its tasks.

Whether a caller may see a run goes by the plan or agent of its root. A list leaves out what the
caller may not see and reads on until the page is full, or until it has looked far enough.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from fastapi import Request, Response
from pydantic import TypeAdapter

from holdfast.errors import NotFound
from holdfast.i18n.message import msg, term
from holdfast.language.instants import iso
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
    StepShown,
    Summary,
    TaskShown,
    TraceShown,
)
from holdfast.server.services import Services
from holdfast.views.reader import RunVersion
from holdfast.views.records import PlanView, RunView, StepView, TaskView, Trace

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
    return RunLine(
        id=row.run_id,
        kind=KINDS[row.kind],
        name=row.name,
        title=row.title,
        status=RunStatus(row.status),
        parent_id=row.parent_id,
        root_id=row.root_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        summary=Summary.model_validate_json(row.summary),
    )


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
    return await _shown(services, (await services.reader.at(run_id)).view())


async def _shown(services: Services, view: RunView) -> RunShown | InstanceShown:
    shown = await _run(services, view)
    return RunShown(**shown) if view.plan is None else _instance(shown, view, view.plan)


async def _show(services: Services, caller: Caller, run: RunVersion) -> RunShown | InstanceShown:
    return await _shown(services, run.view())


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
        "id": view.run_id,
        "kind": view.kind,
        "name": view.name,
        "title": view.title,
        "status": view.status,
        "parent_id": view.parent_id,
        "root_id": view.root_id,
        "created_at": view.created_at,
        "updated_at": view.updated_at,
        "summary": Summary.model_validate(view.summary),
        "version": view.version,
        "started_by": view.started_by,
        "error": view.error or None,
        "interactions": [row.question_id async for row in asked],
        "server_time": services.now(),
    }


def _instance(shown: dict[str, Any], view: RunView, plan: PlanView) -> InstanceShown:
    return InstanceShown(
        **shown,
        plan_id=plan.plan_id,
        digest=plan.digest,
        prompt=plan.prompt,
        context=dict(plan.context),
        tasks=[_task(one) for one in plan.tasks],
        steps=[_step(one) for one in plan.steps],
        retries=plan.retries,
        error_info=None if plan.error_info is None else dict(plan.error_info),
        failed_listener_id=plan.failed_listener_id,
        failed_listener_ids=[f"{view.run_id}_{one}" for one in view.failed],
        resume_runs=list(plan.resume_runs),
        verification=dict(plan.verification),
    )


def _task(task: TaskView) -> TaskShown:
    return TaskShown(
        task_id=task.task_id,
        name=task.name,
        status=task.status,
        context=dict(task.context),
        trace=[_trace(one) for one in task.trace],
    )


def _step(step: StepView) -> StepShown:
    return StepShown(
        listener_id=step.step_id,
        status=step.status.value,
        firing=step.firing,
        attempt=step.attempt,
        retries=step.retries,
        error=step.error,
        child_id=step.child_id,
        interaction_id=step.question_id,
        retry_at=step.retry_at,
        waits_until=step.waits_until,
    )


def _trace(one: Trace) -> TraceShown:
    return TraceShown(status=one.status, reason=one.reason, at=iso(one.at))
