"""Whatever grows with a plan is done beside the loop: judging, rehearsing, drawing up."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from drafting_office import REQUESTS, Office
from repair_scenes import Staff, given_up

from holdfast import Holdfast
from holdfast.model.values import JsonObject
from holdfast.repair import checks, drafting
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.testing.model_script import call
from holdfast.testing.scripted_model import ScriptedModel

OpenApp = Callable[..., Awaitable[Holdfast]]

JUDGING = ("rehearsal_of", "plan_digest", "find_problems", "patched", "as_patched")
DRAWING_UP = ("rehearse_plan", "plan_digest", "find_problems")


class Places:
    """Which work was done, and whether any of it on the thread of the loop."""

    def __init__(self, patching: pytest.MonkeyPatch) -> None:
        self.loop = threading.get_ident()
        self.found: list[tuple[str, bool]] = []
        self.patching = patching

    def watch(self, module: Any, *names: str) -> None:
        for name in names:
            self.patching.setattr(module, name, self._noted(name, getattr(module, name)))

    def _noted(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **options: Any) -> Any:
            self.found.append((name, threading.get_ident() == self.loop))
            return work(*args, **options)

        return noted

    def take(self) -> tuple[set[str], bool]:
        found = {name for name, _ in self.found}, any(on_loop for _, on_loop in self.found)
        self.found.clear()
        return found


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(monkeypatch)


async def test_a_look_at_a_failure_a_persons_patch_and_its_approval(
    open_app: OpenApp, places: Places
) -> None:
    places.watch(checks, *JUDGING)
    app = Staff().furnish(await open_app())
    [(run, question_id)] = await given_up(app, ["WZ001"])
    assert places.take() == ({*JUDGING}, False)

    repairer = app.planner_agent.repairer
    assert repairer is not None
    rename: JsonObject = {"op": "set_retry", "listener_id": "L001", "timeout": 30}
    proposal = await repairer.proposal(run.id, [rename], by="will")
    assert proposal.verdict.problems == ()
    assert places.take() == ({*JUDGING}, False)

    await app.answer(question_id, option_id="apply", by="hr")
    assert await run.wait_for_completion() == "done"
    assert places.take() == (set(), False), "what was judged is not judged again"


async def test_a_plan_that_is_drawn_up(open_app: OpenApp, places: Places, tmp_path: Path) -> None:
    places.watch(drafting, *DRAWING_UP)
    sound = call(SKETCH_PLAN, **REQUESTS["badge"].sketch)
    app = Office(tmp_path / "calls").furnish(await open_app(model=ScriptedModel([sound])))
    run = await app.plans.start_plan_by_prompt(REQUESTS["badge"].text)
    assert await run.wait_until_settled(30) == "pause"
    assert places.take() == ({*DRAWING_UP}, False)
