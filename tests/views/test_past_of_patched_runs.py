"""At each event of a run whose plan was changed the plan is shown that held then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repair_scenes import WHO, Staff, given_up, proposal
from scenes import history
from test_machine_properties import live_on, play

from holdfast import Holdfast
from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import operations_from_json, patched
from holdfast.core.storing import plan_digest
from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Record
from holdfast.model import events as e
from holdfast.model.plan import Plan
from holdfast.model.recorded import Event
from holdfast.model.values import JsonObject
from holdfast.runtime.machines import as_plan
from holdfast.views import past as pasts
from holdfast.views.past import Past
from holdfast.views.pictures import plan_text
from holdfast.views.reader import RunReader, RunVersion

POLITER: JsonObject = {
    "op": "set_args",
    "listener_id": "L002",
    "set": {"to": "Dear {001.context.name}"},
}
BOTH = ({"L002"}, {"L001", "R1"})
"""What the first patch changes, and what the second one."""


async def patched_twice(app: Holdfast) -> str:
    """A run whose plan a person changed, and then what rules had proposed."""
    [(instance, first)] = await given_up(app, ["WZ001"])
    assert app.planner_agent.repairer is not None
    await app.planner_agent.repairer.propose(
        instance.id, [POLITER], by="操作员", listener_id="L001"
    )
    polite = await proposal(app, instance.id, besides=first)
    await app.answer(polite.question_id, option_id="apply", by=WHO)
    second = await proposal(app, instance.id, besides=polite.question_id)
    await app.answer(second.question_id, option_id="apply", by=WHO)
    assert await instance.wait_for_completion(60) == "done"
    return instance.id


def plans_that_held(birth: Plan, events: Sequence[Event]) -> list[Plan]:
    """By event, beginning with none."""
    held = [birth]
    for event in events:
        plan = held[-1]
        if isinstance(event, e.PlanPatched):
            plan = patched(plan, operations_from_json(event.operations))
        held.append(plan)
    return held


def shuffled(last: int) -> list[int]:
    """The events in the order in which somebody might look at them, each twice."""
    seqs = [*range(1, last + 1)] * 2
    Random("looking back and forth").shuffle(seqs)
    return seqs


@pytest.mark.parametrize("stride", [1, 3, 250])
async def test_the_state_at_each_event_has_the_plan_that_held(
    monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    monkeypatch.setattr(pasts, "STRIDE", stride)
    async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        run_id = await patched_twice(app)
        now = as_plan(await app.engine.state(run_id))
        birth = app.engine.definitions.current("access").plan
        held, past = plans_that_held(birth, await history(app, run_id)), Past()
        assert len({plan_digest(plan) for plan in held}) == 3
        for seq in shuffled(now.version):
            then = as_plan(await past.state(app.journal, now, seq))
            assert then.version == seq
            assert then.plan.plan == held[seq], seq
            assert then.plan.digest == plan_digest(held[seq]), seq
            assert (then.origin or then.plan).plan == birth
            assert (then.origin is None) == (held[seq] == birth) == (not then.repair.patches)


async def test_what_is_shown_at_each_event_names_and_draws_that_plan() -> None:
    async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        run_id = await patched_twice(app)
        await check_shown(app, RunReader.of(app), run_id)


async def test_as_does_another_process_that_only_reads_the_journal() -> None:
    async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        run_id = await patched_twice(app)
        await check_shown(app, RunReader(app.journal), run_id)


async def check_shown(app: Holdfast, reader: RunReader, run_id: str) -> None:
    birth = app.engine.definitions.current("access").plan
    events, records = await history(app, run_id), await app.journal.read(run_id)
    held = plans_that_held(birth, events)
    [first, second] = [one for one in events if isinstance(one, e.PlanPatched)]
    assert [set(changed(one)) for one in (first, second)] == [*BOTH]
    for seq in shuffled(len(events)):
        run = await reader.at(run_id, seq)
        shown = run.view().plan
        assert shown is not None
        assert (shown.digest, shown.pinned) == (plan_digest(held[seq]), plan_digest(birth))
        assert [one.task_id for one in shown.tasks] == [one.task_id for one in held[seq].tasks]
        applied = [one for one in (first, second) if events.index(one) < seq]
        assert [one.patch_id for one in shown.patches] == [one.patch_id for one in applied]
        assert [(one.base, one.digest) for one in shown.patches] == [
            (one.base, one.digest) for one in applied
        ]
        places = [events.index(one) + 1 for one in applied]
        moments = [records[place - 1].at for place in places]
        assert [(one.seq, one.at) for one in shown.patches] == [*zip(places, moments, strict=True)]
        assert ("R1" in plan_text(run)) == (second in applied)


def changed(event: e.PlanPatched) -> list[str]:
    """The listeners that a patch names."""
    found = [str(one["listener_id"]) for one in event.operations]
    return [
        *found,
        *(one["listener"]["listener_id"] for one in event.operations if "listener" in one),
    ]


async def test_the_story_told_from_any_event_on_is_the_end_of_the_whole_story() -> None:
    async with Staff().furnish(Holdfast.in_memory(max_retry_count=0)) as app:
        run_id = await patched_twice(app)
        reader = RunReader.of(app)
        whole = await reader.timeline(run_id)
        assert [one.seq for one in whole] == [*range(1, len(whole) + 1)]
        for after in range(len(whole)):
            assert await reader.timeline(run_id, after) == whole[after:], after


async def test_after_a_restart_the_past_is_what_it_was(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home, staff = tmp_path_factory.mktemp("home"), Staff()
    async with staff.furnish(Holdfast(home, max_retry_count=0)) as app:
        run_id = await patched_twice(app)
    async with staff.furnish(Holdfast(home, max_retry_count=0)) as app:
        assert as_plan(await app.engine.state(run_id)).plan.digest != plan_digest(
            app.engine.definitions.current("access").plan
        )
        await check_shown(app, RunReader.of(app), run_id)


class Told(Journal):
    """The records of one run, to be read again."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    async def read(
        self, run_id: str, after: int = 0, limit: int | None = None, most_text: int | None = None
    ) -> list[Record]:
        most = len(self._records) if limit is None else after + limit
        return [*self._records[after:most]]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.binary(min_size=100, max_size=400))
def test_at_each_event_of_a_random_run_the_plan_that_held_is_shown(script: bytes) -> None:
    machine = play(script)
    live_on(machine)
    held = plans_that_held(machine.plan.plan, [decode(one) for one in machine.records])
    asyncio.run(_look_back(machine.state, Told(machine.records), held, machine.plan))


async def _look_back(
    now: PlanState, told: Journal, held: Sequence[Plan], birth: CompiledPlan
) -> None:
    past = Past()
    for seq in shuffled(now.version):
        then = as_plan(await past.state(told, now, seq))
        assert (then.version, then.plan.plan) == (seq, held[seq])
        run = RunVersion(then, 0.0)
        shown = run.view().plan
        assert shown is not None
        assert (shown.digest, shown.pinned) == (plan_digest(held[seq]), birth.digest)
        assert plan_text(run)
