"""What the plan pages show: the plans that the caller may read, one plan with its versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from holdfast.console.views.form import FormView, form_view
from holdfast.core.storing import record_from_json, record_to_json
from holdfast.drawing.graph import render_svg
from holdfast.errors import NotFound
from holdfast.i18n.message import msg
from holdfast.model.plan import Plan
from holdfast.model.rows import RunQuery
from holdfast.runtime.machines import PLAN
from holdfast.runtime.offload import aside
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import PLAN as PLAN_SUBJECT
from holdfast.server.auth.principal import Permission, kind_of, permitted
from holdfast.server.auth.principal import plan as plan_subject
from holdfast.server.routes.plans import list_plan_versions, list_plans
from holdfast.server.schemas.runs import PlanLine, VersionLine
from holdfast.server.services import Services
from holdfast.server.showing import readable_plan
from holdfast.source.plan_text import plan_text

MOST_RUNS: Final = 100
"""Runs of a plan are counted up to this number."""

BLANK: Final = """\
plan_id: my_plan
name: My plan
main_task_id: "001"
tasks:
  - {task_id: "001", name: The goal}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: code
    code_snippet: "result = {'success': True}"
    success_output: {task_id: "001", status: Done}
"""
"""The smallest plan that runs."""


@dataclass(frozen=True, slots=True)
class Row:
    plan: PlanLine
    runs: int
    starts: bool


@dataclass(frozen=True, slots=True)
class PlanView:
    """One plan for one reader; `shown` is the version whose source and graph are shown."""

    plan: PlanLine
    shown: str
    source: str
    graph: Markup
    form: FormView
    versions: tuple[VersionLine, ...]
    starts: bool
    writes: bool

    @property
    def earlier(self) -> bool:
        return self.shown != self.plan.digest


async def plan_rows(served: Services, caller: Caller) -> list[Row]:
    found = await list_plans(served, caller)
    return [await _row(served, caller, one) for one in found.plans]


async def _row(served: Services, caller: Caller, plan: PlanLine) -> Row:
    asked = RunQuery(name=plan.plan_id, kind=PLAN.kind, roots_only=True, limit=MOST_RUNS)
    runs = len(await served.reader.runs(asked))
    return Row(plan, runs, caller.may(Permission.OPERATE, plan_subject(plan.plan_id)))


def may_write(served: Services, caller: Caller) -> bool:
    """Whether the caller may register a plan under some name."""
    held = [
        roles
        for key, roles in caller.principal.grants.items()
        if kind_of(key) in (None, PLAN_SUBJECT)
    ]
    return Permission.AUTHOR in permitted(caller.principal.roles.union(*held))


async def plan_view(
    served: Services, caller: Caller, plan_id: str, version: str | None, language: str
) -> PlanView:
    current = readable_plan(served, caller, plan_id)
    lines = (await list_plans(served, caller)).plans
    versions = (await list_plan_versions(plan_id, served, caller)).versions
    plan, source = await _shown(served, current.plan, current.digest, version)
    graph = await aside(render_svg, plan, styled=False, language=language)
    return PlanView(
        plan=next(one for one in lines if one.plan_id == plan_id),
        shown=version or current.digest,
        source=source,
        graph=Markup(graph),  # noqa: S704 (the drawing escapes every text itself)
        form=form_view(current.plan.inputs, "start"),
        versions=tuple(versions),
        starts=caller.may(Permission.OPERATE, plan_subject(plan_id)),
        writes=caller.may(Permission.AUTHOR, plan_subject(plan_id)),
    )


async def _shown(
    served: Services, current: Plan, digest: str, version: str | None
) -> tuple[Plan, str]:
    if version is None or version == digest:
        written = served.plans.origin(current.plan_id).source
        return current, written or plan_text(record_to_json(current))
    definition = await _definition(served, current.plan_id, version)
    return record_from_json(Plan, definition), plan_text(definition)


async def _definition(served: Services, plan_id: str, version: str) -> dict[str, Any]:
    for one in await served.reader.plan_versions(plan_id):
        if one.digest == version:
            return dict(json.loads(one.body))
    raise NotFound(msg("there is no version {version} of {plan}", version=version, plan=plan_id))
