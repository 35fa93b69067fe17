"""A plan made ready to run."""

from __future__ import annotations

from pathlib import Path

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.source.planfile import read_plan

DEMO = Path(__file__).parents[2] / "src" / "holdfast" / "demo" / "plans"


def test_preparing_a_plan_parses_everything_at_once() -> None:
    plan = read_plan((DEMO / "onboard_will_zhang.yaml").read_text(encoding="utf-8"))
    compiled = CompiledPlan(plan, "digest")
    compiled.prepare()
    for listener in compiled.listeners.values():
        parsed = {"condition", "wanted", "args", "success", "failure", "expect"}
        assert parsed <= vars(listener).keys()
    assert "by_trigger" in vars(compiled)
