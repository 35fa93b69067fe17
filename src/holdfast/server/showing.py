"""Runs as one caller is shown them: rows for lists, a whole run, an instance with its tasks.

Whether somebody may see a run goes by the plan or agent of its root. A list leaves out what
they may not see and reads on until the page is full, or until it has looked far enough.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState, retry_timer
from holdfast.errors import NotFound
from holdfast.i18n.message import msg, term
from holdfast.journal.port import QuestionQuery, RunQuery, RunRow
from holdfast.model.run import KINDS, RunStatus
from holdfast.runs.plan_instance import TaskInstance, instance_context, resumed_listeners
from holdfast.runtime.machines import as_plan, machine_of
from holdfast.runtime.projections import run_row
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Permission, plan, run_of, sees_all
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

MOST_PAGES_READ: Final = 20
"""How far a list reads on for one who may see little of it."""


def run_line(row: RunRow) -> RunLine:
    return RunLine(**_line(row))


def _line(row: RunRow) -> dict[str, Any]:
    return {
        "id": row.run_id,
        "kind": KINDS[row.kind],
        "name": row.name,
        "title": row.title,
        "status": RunStatus(row.status),
        "parent_id": row.parent_id,
        "root_id": row.root_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "summary": Summary.model_validate_json(row.summary),
    }


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
        rows = await services.journal.runs(query)
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
    root = row if row.root_id == row.run_id else await services.journal.run(row.root_id)
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


async def run_shown(services: Services, run_id: str) -> RunShown | InstanceShown:
    """A run of any kind as it is on disk; whoever asks may see it."""
    state = await services.app.engine.state(run_id)
    shown = await _run(services, state)
    return _instance(shown, state) if isinstance(state, PlanState) else RunShown(**shown)


async def instance_shown(services: Services, run_id: str) -> InstanceShown:
    state = as_plan(await services.app.engine.state(run_id))
    return _instance(await _run(services, state), state)


async def _run(services: Services, state: RunState) -> dict[str, Any]:
    return _line(run_row(state)) | {
        "version": state.version,
        "started_by": state.started_by,
        "error": machine_of(state).error(state) or None if _failed(state) else None,
        "interactions": await _open_questions(services, state),
        "server_time": services.now(),
    }


async def visible_instance(services: Services, caller: Caller, run_id: str) -> PlanState:
    """The instance, or NotFound when there is none or the caller may not see it."""
    await caller.require(services, Permission.READ, run_id)
    try:
        return as_plan(await services.app.engine.state(run_id))
    except NotFound:
        raise NotFound(msg("Plan instance {id} not found", id=run_id)) from None


def _failed(state: RunState) -> bool:
    return state.status is RunStatus.ERROR


async def _open_questions(services: Services, state: RunState) -> list[str]:
    query = QuestionQuery(status=frozenset({"open"}), root_id=state.root_id, limit=1000)
    rows = await services.journal.questions(query)
    below = f"{state.run_id}."
    return [row.question_id for row in rows if f"{row.run_id}.".startswith(below)]


def _instance(shown: dict[str, Any], state: PlanState) -> InstanceShown:
    main = state.main_task.context
    return InstanceShown(
        **shown,
        plan_id=state.plan_id,
        digest=state.plan.digest,
        prompt=state.prompt,
        context=instance_context(state),
        tasks=[_task(state, one.task_id, one.name) for one in state.plan.plan.tasks],
        steps=[_step(state, one, state.steps[one]) for one in sorted(state.steps)],
        retries=sum(step.retries for step in state.steps.values()),
        error_info=_mapping(main.get("error_info")),
        failed_listener_id=_text(main.get("failed_listener_id")),
        failed_listener_ids=[f"{state.run_id}_{one}" for one in state.failed],
        resume_runs=resumed_listeners(state, shown["server_time"]),
        verification=dict(state.verification),
    )


def _task(state: PlanState, task_id: str, name: str) -> TaskShown:
    task = TaskInstance(state, task_id)
    return TaskShown(
        task_id=task_id,
        name=name,
        status=state.task(task_id).status,
        context=task.context,
        trace=[TraceShown.model_validate(one) for one in task.trace],
    )


def _step(state: PlanState, listener_id: str, step: StepState) -> StepShown:
    return StepShown(
        listener_id=listener_id,
        status=step.status.value,
        firing=step.firing,
        attempt=step.attempt,
        retries=step.retries,
        error=step.failure.message if step.failure else None,
        child_id=step.child_id,
        interaction_id=step.question_id,
        retry_at=state.timers.get(retry_timer(listener_id)),
    )


def _mapping(value: object) -> dict[str, object] | None:
    return dict(value) if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
