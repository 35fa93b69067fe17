"""A plan made ready to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.model.plan import CodeAction, Listener, Plan, Task, TaskStatus
from holdfast.source.planfile import read_plan

DEMO = Path(__file__).parents[2] / "src" / "holdfast" / "demo" / "plans"


def test_preparing_a_plan_parses_everything_at_once() -> None:
    plan = read_plan((DEMO / "onboard_will_zhang.yaml").read_text(encoding="utf-8"))
    compiled = CompiledPlan(plan, "digest")
    compiled.prepare()
    for listener in compiled.listeners.values():
        parsed = {"condition", "args", "success", "failure", "expect", "bounded"}
        assert parsed <= vars(listener).keys()


@pytest.mark.parametrize(
    ("trigger", "condition", "wanted"),
    [
        ("002", " Done ", TaskStatus.DONE),
        ("002", "(Done)", None),
        ("002", "not Done", None),
        ("002", "002.status == Done", None),
        ("002,003", "Done", None),
    ],
)
def test_a_status_is_watched_for_where_it_is_the_whole_condition(
    trigger: str, condition: str, wanted: TaskStatus | None
) -> None:
    action = CodeAction("result = {'success': True}")
    one = Listener("L1", tuple(trigger.split(",")), condition, action)
    plan = Plan("p", "p", "001", tuple(map(Task, ("001", "002", "003"))), (one,))
    compiled = CompiledPlan(plan, "digest")
    assert compiled.listeners["L1"].wanted is wanted
    watched = {status for status, tasks in compiled.watching.items() if "002" in tasks}
    assert watched == ({wanted} if wanted else set(TaskStatus))


def test_a_plan_goes_by_its_digest() -> None:
    plan = read_plan((DEMO / "send_email.yaml").read_text(encoding="utf-8"))
    one, same, other = (CompiledPlan(plan, name) for name in ("a", "a", "b"))
    assert one == same
    assert one not in (other, "a")
    assert len({one, same, other}) == 2
