"""A plan drawn with the status that its tasks have in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.drawing.graph import render_svg, render_text
from holdfast.runtime.machines import as_plan

if TYPE_CHECKING:
    from holdfast.views.reader import RunVersion


def plan_graph(run: RunVersion, *, svg: bool) -> tuple[str, str]:
    """The plan's id and the drawing; NotFound where it is no run of a plan."""
    state = as_plan(run.state)
    plan = state.plan.plan
    return plan.plan_id, (render_svg if svg else render_text)(plan, state)
