"""What has become of failures is counted by cause and outcome, and told with the other figures."""

from __future__ import annotations

from collections import Counter

from repair_scenes import REPAIRED, WHO, Staff, given_up
from scenes import history
from server_scene import serving

from holdfast import Holdfast
from holdfast.model.retry import Cause
from holdfast.runtime.case_counts import Outcome

ASKED = {Outcome.OPENED: 1, Outcome.PROPOSED: 1}
HELPED = {**ASKED, Outcome.APPLIED: 1, Outcome.PROVEN: 1}


def counted(app: Holdfast) -> dict[Outcome, int]:
    """Of the only cause that there is."""
    causes = {cause for cause, _ in app.engine.learning.cases}
    assert causes <= {Cause.PRECONDITION}
    return {outcome: n for (_, outcome), n in app.engine.learning.cases.items()}


async def test_a_repair_that_helps_is_counted_at_each_step_of_its_way() -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        [(run, question_id)] = await given_up(app, ["WZ001"])
        assert counted(app) == ASKED
        await app.answer(question_id, option_id="apply", by=WHO)
        assert await run.wait_for_completion() == "done"
        assert counted(app) == HELPED
        assert staff.counts("WZ001") == REPAIRED


async def test_what_is_refused_and_what_is_settled_otherwise_is_told_apart() -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        (first, refused), (second, _) = await given_up(app, ["WZ001", "WZ002"])
        await app.answer(refused, option_id="refuse", feedback="no", by=WHO)
        staff.known |= {"WZ001", "WZ002"}
        for run in (first, second):
            await app.plans.planner_agent.resume_plan(app.plans, "access", run.id, by=WHO)
            assert await run.wait_for_completion() == "done"
        both = dict.fromkeys(ASKED, 2)
        assert counted(app) == {**both, Outcome.REFUSED: 1, Outcome.CLOSED: 2}


async def test_a_repair_that_does_not_help_is_counted_as_disproven() -> None:
    class Idle(Staff):
        """HR says that it has made a profile, and has made none."""

        @property
        def known(self) -> set[str]:
            return set()

        @known.setter
        def known(self, _: set[str]) -> None:
            pass

    async with Idle().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        [(run, question_id)] = await given_up(app, ["WZ001"])
        await app.answer(question_id, option_id="apply", by=WHO)
        assert await run.wait_for_completion() == "error"
        found = counted(app)
        assert (found[Outcome.APPLIED], found[Outcome.DISPROVEN]) == (1, 1)


async def test_the_counts_are_what_the_journals_say() -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        runs = await given_up(app, [f"WZ{number:03}" for number in range(8)])
        for _, question_id in runs[::2]:
            await app.answer(question_id, option_id="apply", by=WHO)
        for run, _ in runs[::2]:
            assert await run.wait_for_completion() == "done"
        events = [type(one).__name__ for run, _ in runs for one in await history(app, run.id)]
        told = Counter(events)
        assert counted(app) == {
            Outcome.OPENED: told["CaseOpened"],
            Outcome.PROPOSED: told["PatchProposed"],
            Outcome.APPLIED: told["PlanPatched"],
            Outcome.PROVEN: told["RepairProven"],
        }
        assert told["RepairProven"] == 4


async def test_they_stand_among_the_figures_for_monitoring() -> None:
    staff = Staff()
    async with staff.furnish(Holdfast.in_memory(max_retry_count=0)) as app, serving(app) as scene:
        [(run, question_id)] = await given_up(app, ["WZ001"])
        await app.answer(question_id, option_id="apply", by=WHO)
        assert await run.wait_for_completion() == "done"
        lines = (await scene.admin.get("/metrics")).text.splitlines()
        assert "# TYPE holdfast_cases_total counter" in lines
        told = [one for one in lines if one.startswith("holdfast_cases_total{")]
        assert told == [
            f'holdfast_cases_total{{cause="precondition",outcome="{one}"}} 1'
            for one in sorted(HELPED)
        ]
        assert run.id not in "".join(told)
