"""What a piece of work costs does not depend on how much there is besides, in Python calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from bench import trial
from bench.budget import Counts, Meter, Metered, metered
from bench.ours import GOAL

from holdfast import Holdfast
from holdfast.journal.port import RunQuery
from holdfast.model.interaction import Asking
from holdfast.model.plan import HumanAction, Listener, Output, Plan, Task, TaskStatus
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.own_store  # what is counted is the work of SQLite

Costs = dict[int, dict[str, float]]
"""By size: calls for each piece, by stage."""

FINISHED = 2_000


def per_piece(counts: Counts, pieces: int) -> dict[str, float]:
    return {stage: calls / pieces for stage, calls in counts["calls"].items()}


def assert_flat(costs: Costs, most: float = 1.2) -> None:
    totals = {size: sum(cost.values()) for size, cost in costs.items()}
    cheap, dear = min(totals, key=totals.__getitem__), max(totals, key=totals.__getitem__)
    grown = {stage: calls - costs[cheap].get(stage, 0) for stage, calls in costs[dear].items()}
    worst = max(grown, key=grown.__getitem__)
    told = ", ".join(f"{total:,.1f} at {size:,}" for size, total in totals.items())
    assert totals[dear] <= most * totals[cheap], f"calls: {told}; {worst} +{grown[worst]:,.1f}"


def test_a_step_costs_the_same_in_a_plan_of_any_length() -> None:
    """The start and the end of a run are known from a chain of one."""

    async def costs(meter: Meter, home: Path) -> Costs:
        system, found = Metered(), {}
        async with trial.opened(system, home):
            for length in (1, 1, 100, 1_000, 10_000):
                run = await system.chain(length)
                with meter:
                    assert await run("") == length
                found[length] = meter.counts
        ends = found.pop(1)["calls"]
        for counts in found.values():
            counts["calls"].subtract(ends)
        return {length: per_piece(counts, length - 1) for length, counts in found.items()}

    assert_flat(metered(costs))


def many_calls(seen: Seen) -> Entry:
    """As many as the message says, all at once."""
    if seen.results:
        return "done"
    return say("", *[call("look", k=number) for number in range(int(seen.asked))])


async def look(k: int) -> dict[str, int]:
    return {"k": k}


def test_a_call_costs_the_same_among_any_number_in_one_turn() -> None:
    async def costs(meter: Meter, home: Path) -> Costs:
        app = Holdfast(home, model=ScriptedModel(many_calls))
        app.tool(look, idempotent=True)
        app.agent("clerk", name="Clerk", tools=["look"])
        found = {}
        async with app:
            for count in (1, 100, 200, 400):
                session = await app.sessions.open("clerk")
                with meter:
                    await app.sessions.say(session.id, str(count), by="someone")
                    assert await session.wait_for_completion() == "done"
                found[count] = per_piece(meter.counts, count)
        del found[1]
        return found

    assert_flat(metered(costs))


def asking(count: int) -> Plan:
    """A plan that asks so many people at once."""
    tasks = [f"t{number:05}" for number in range(count)]
    listeners = (
        Listener(
            f"L{task}",
            (GOAL,),
            f"{GOAL}.status == Running",
            HumanAction(asking=Asking(title=task)),
            Output(task, TaskStatus.DONE),
        )
        for task in tasks
    )
    name = f"asking_{count}"
    return Plan(name, name, GOAL, (Task(GOAL), *map(Task, tasks)), tuple(listeners))


@pytest.fixture(scope="module")
def asked() -> tuple[Costs, Costs]:
    """What it costs to open one of so many questions, and to answer one while all are open."""

    async def costs(meter: Meter, home: Path) -> tuple[Costs, Costs]:
        system, opening, answering = Metered(), {}, {}
        async with trial.opened(system, home):
            for count in (20, 100, 1_000):
                system.app.add_plan(asking(count))
                with meter:
                    instance = await system.app.plans.start_plan_by_prompt("", f"asking_{count}")
                    await system.app.engine.wait_for(
                        instance.id, lambda state, all_=count: len(state.open_questions) == all_
                    )
                opening[count] = per_piece(meter.counts, count)
                questions = sorted((await system.app.engine.state(instance.id)).open_questions)
                assert len(questions) == count
                with meter:
                    for question in questions[count // 2 :][:10]:
                        await system.app.answer(question, option_id="confirm")
                answering[count] = per_piece(meter.counts, 10)
        return opening, answering

    opening, answering = metered(costs)
    del opening[20], answering[20]
    return opening, answering


def test_opening_a_question_costs_the_same_among_any_number(asked: tuple[Costs, Costs]) -> None:
    assert_flat(asked[0])


def test_an_answer_costs_the_same_beside_any_number_of_open_questions(
    asked: tuple[Costs, Costs],
) -> None:
    assert_flat(asked[1])


async def fresh_runs(meter: Meter, home: Path) -> Mapping[str, float]:
    """What ten runs cost in a home that is opened anew."""
    system = Metered(meter)
    async with trial.opened(system, home):
        run = await system.chain(3)
        await run("")
        with meter:
            for _ in range(10):
                await run("")
    return {kind: counter.total() for kind, counter in meter.counts.items()}


def test_new_runs_cost_the_same_beside_finished_ones() -> None:
    async def costs(meter: Meter, home: Path) -> tuple[Mapping[str, float], Mapping[str, float]]:
        full, empty = trial.made(home / "full"), trial.made(home / "empty")
        system = Metered()
        async with trial.opened(system, full):
            run = await system.chain(1)
            for _ in range(FINISHED):
                await run("")
            done = RunQuery(status=frozenset({"done"}), limit=FINISHED)
            assert len(await system.app.runs(done)) == FINISHED
        return await fresh_runs(meter, empty), await fresh_runs(meter, full)

    alone, beside = metered(costs)
    for kind in ("statements", "commits", "tasks"):
        assert beside[kind] == alone[kind], kind
    assert beside["calls"] <= 1.05 * alone["calls"]
