"""Many hands on one run: the first valid word counts, once, and nobody is left waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scenes import Desk, assert_sound, history, no_task_left_behind, of_kind, plan, tools, until

from holdfast.app import Holdfast
from holdfast.errors import AlreadyAnswered, JournalUnavailable, NotAllowed, TooLate
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import Append
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.commands import Answer, Tick
from holdfast.runs.handles import PlanInstance
from holdfast.runtime import registry
from holdfast.testing.clock import ManualClock

ORDER = """
plan_id: order
name: An order
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: work
    fields: {note: {type: text, label: What}}
    success_output: {task_id: "001", status: Done}
"""

TWO_ASK = """
plan_id: two
name: Two ask at once
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}, {task_id: "003"}, {task_id: "004"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: left
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: right
    success_output: {task_id: "003", status: Done}
  - listener_id: L003
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: work
    args: {note: meanwhile}
    success_output: {task_id: "004", status: Done}
  - listener_id: L004
    trigger_task_id: "002,003,004"
    trigger_condition: "002.status == Done && 003.status == Done && 004.status == Done"
    listener_type: tool
    tool: work
    args: {note: last}
    success_output: {task_id: "001", status: Done}
"""

PARENT = """
plan_id: parent
name: Parent
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: one
    success_output: {task_id: "001", status: Done}
"""

DEADLINE = """
plan_id: deadline
name: A question with a deadline
main_task_id: "001"
tasks: [{task_id: "001"}, {task_id: "002"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    message: Shall we?
    timeout_seconds: 60
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: work
    args: {note: agreed}
    success_output: {task_id: "001", status: Done}
"""


@pytest.fixture
def desk() -> Desk:
    return Desk()


def furnished(app: Holdfast, desk: Desk, *texts: str) -> Holdfast:
    app.tool(desk.work, name="work")
    for text in texts:
        app.add_plan(plan(text))
    return app


async def pause_many(app: Holdfast, count: int) -> list[PlanInstance]:
    started = (app.plans.start_plan_by_prompt("", "order") for _ in range(count))
    instances = await asyncio.gather(*started)
    for instance in instances:
        assert await instance.wait_until_settled(60) == "pause"
    return instances


async def check_pairs(app: Holdfast, desk: Desk, instances: list[PlanInstance]) -> None:
    """Two people continue each instance at once, with different values."""

    async def pair(instance: PlanInstance) -> None:
        one, other = await asyncio.gather(
            app.planner_agent.continue_plan(instance.id, {"note": "one"}, by="one"),
            app.planner_agent.continue_plan(instance.id, {"note": "other"}, by="other"),
        )
        winner, loser = (one, other) if one["success"] else (other, one)
        won = winner["result"]["result"]["note"]
        assert loser["success"] is False
        assert loser["answered_by"] == won
        assert f"answered by {won}" in loser["error"]

    await asyncio.gather(*(pair(instance) for instance in instances))
    assert len(desk.keys) == len(set(desk.keys)) == len(instances)


@pytest.mark.own_store  # elsewhere a hundred are enough
async def test_of_a_thousand_pairs_of_answers_exactly_one_each_takes_effect(desk: Desk) -> None:
    for _ in range(10):
        desk.keys.clear()
        async with no_task_left_behind(), furnished(Holdfast.in_memory(), desk, ORDER) as app:
            instances = await pause_many(app, 100)
            await check_pairs(app, desk, instances)
            for instance in instances:
                assert await instance.wait_for_completion(60) == "done"
                await assert_sound(app, instance.id)


async def test_a_hundred_pairs_on_disk(tmp_path: Path, desk: Desk) -> None:
    async with no_task_left_behind(), furnished(Holdfast(tmp_path), desk, ORDER) as app:
        instances = await pause_many(app, 100)
        await check_pairs(app, desk, instances)
        for instance in instances:
            assert await instance.wait_for_completion(60) == "done"
            await assert_sound(app, instance.id)


async def test_the_same_answer_twice_at_once_gives_both_the_first_result(desk: Desk) -> None:
    async with furnished(Holdfast.in_memory(), desk, ORDER) as app:
        for instance in await pause_many(app, 100):
            one, other = await asyncio.gather(
                app.planner_agent.continue_plan(instance.id, {"note": "same"}),
                app.planner_agent.continue_plan(instance.id, {"note": "same"}),
            )
            assert one["result"] == other["result"]
            assert one["result"]["result"] == {"note": "same"}
            await instance.wait_for_completion(60)
            late = await app.planner_agent.continue_plan(instance.id, {"note": "same"})
            assert late["result"] == one["result"]
        assert len(desk.keys) == 100


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left"), ("both",)])
async def test_two_questions_of_one_run_are_answered_in_either_order(
    desk: Desk, order: tuple[str, ...]
) -> None:
    calls: list[str] = []
    app = furnished(Holdfast.in_memory(), desk, TWO_ASK)

    @app.tool
    async def left(a: str) -> dict[str, str]:
        calls.append(a)
        return {"a": a}

    @app.tool
    async def right(b: str) -> dict[str, str]:
        calls.append(b)
        return {"b": b}

    async with app:
        instance = await app.plans.start_plan_by_prompt("", "two")
        await until(lambda: instance.get_task_instance("004").status == "Done")
        assert instance.status == "pause"
        assert desk.notes == ["meanwhile"], "the third branch went on while two were waiting"
        values = {"left": {"a": "A"}, "right": {"b": "B"}, "both": {"a": "A", "b": "B"}}
        for one in order:
            result = await app.planner_agent.continue_plan(instance.id, values[one])
            assert result["success"] is True
        assert await instance.wait_for_completion(20) == "done"
        assert sorted(calls) == ["A", "B"]
        assert desk.notes == ["meanwhile", "last"]
        await assert_sound(app, instance.id)


async def test_answer_expiry_and_cancel_at_once_leave_exactly_one_outcome(desk: Desk) -> None:
    clock = ManualClock()
    app = furnished(Holdfast.in_memory(clock=clock), desk, DEADLINE)
    async with app:
        starts = (app.plans.start_plan_by_prompt("", "deadline") for _ in range(60))
        instances = await asyncio.gather(*starts)
        rows = {row.run_id: row.question_id for row in await app.inbox()}
        clock.advance(59.999)
        answers = [app.answer(rows[one.id], option_id="confirm") for one in instances]
        cancels = [app.cancel(one.id) for one in instances[::3]]
        work = [asyncio.ensure_future(one) for one in (*answers, *cancels)]
        clock.advance(0.0005)
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        clock.advance(1)
        for instance in instances:
            await instance.wait_for_completion(20)
        for outcome in outcomes:
            assert not isinstance(outcome, BaseException) or isinstance(
                outcome, TooLate | NotAllowed
            )
        for number, instance in enumerate(instances):
            events = await history(app, instance.id)
            closed = [
                event
                for event in events
                if isinstance(event, e.QuestionAnswered | e.QuestionExpired | e.QuestionWithdrawn)
            ]
            assert len(closed) == 1
            cancelled = number % 3 == 0
            assert instance.status in (("cancelled", "done") if cancelled else ("done",))
            await assert_sound(app, instance.id)


async def test_at_the_deadline_nobody_can_answer_whether_or_not_the_timer_has_fired(
    desk: Desk,
) -> None:
    clock = ManualClock()
    async with furnished(Holdfast.in_memory(clock=clock), desk, DEADLINE) as app:
        instance = await app.plans.start_plan_by_prompt("", "deadline")
        [question] = await app.inbox()
        clock.advance(60)
        with pytest.raises(TooLate):
            await app.answer(question.question_id, option_id="confirm")
        assert await instance.wait_for_completion(20) == "error"
        assert of_kind(await history(app, instance.id), e.QuestionExpired)
        with pytest.raises(TooLate):
            await app.answer(question.question_id, option_id="confirm")
        assert desk.notes == [], "a time-out never approves"


async def test_of_many_resumes_at_once_exactly_one_is_true(desk: Desk) -> None:
    desk.errors = [RuntimeError("no"), RuntimeError("no"), RuntimeError("no")]
    app = Holdfast.in_memory(max_retry_count=0, clock=(clock := ManualClock()))
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        while instance.status != "error":
            clock.advance(60)
            await asyncio.sleep(0)
        resumes = (app.planner_agent.resume_plan(app.plans, "one", instance.id) for _ in range(50))
        assert sum(await asyncio.gather(*resumes)) == 1
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 4
        await assert_sound(app, instance.id)


async def test_runs_are_evicted_while_words_for_them_arrive(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "KEPT_IDLE", 1)
    async with no_task_left_behind(), furnished(Holdfast(tmp_path), desk, ORDER) as app:
        instances = await pause_many(app, 40)
        assert len(app.engine._actors.by_id) <= 2, "waiting runs cost no memory"
        await check_pairs(app, desk, instances)
        for instance in instances:
            assert await instance.wait_for_completion(60) == "done"
            await assert_sound(app, instance.id)
        assert len(app.engine._actors.by_id) <= 2


async def test_a_refused_start_leaves_nothing_behind(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "KEPT_IDLE", 1)
    text = ORDER + "inputs: {size: {type: number, label: Size}}\n"
    async with furnished(Holdfast.in_memory(), desk, text) as app:
        for _ in range(5):
            with pytest.raises(Exception, match="inputs"):
                await app.plans.start_plan_by_prompt("", "order", values={"size": "wide"})
            await app.plans.start_plan_by_prompt("", "order", values={"size": 1})
        assert len(await app.runs()) == 5
        assert len(app.engine._actors.by_id) <= 2


async def test_two_hundred_runs_at_once_share_few_permits_and_none_starves(desk: Desk) -> None:
    app = Holdfast.in_memory(max_effects=3)
    out = [0, 0]

    @app.tool
    async def work(note: str) -> None:
        out[0] += 1
        out[1] = max(out)
        await asyncio.sleep(0)
        out[0] -= 1

    app.add_plan(tools("chain", *["work"] * 5))
    async with no_task_left_behind(), app:
        starts = (app.plans.start_plan_by_prompt("", "chain") for _ in range(200))
        for instance in await asyncio.gather(*starts):
            assert await instance.wait_for_completion(60) == "done"
            await assert_sound(app, instance.id)
    assert out == [0, 3]


async def test_a_permit_goes_to_the_next_when_the_one_it_was_meant_for_cannot_use_it(
    desk: Desk,
) -> None:
    app = Holdfast.in_memory(max_effects=1)
    app.tool(desk.work, name="work")
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with app:
        first, second, third = [await app.plans.start_plan_by_prompt("", "one") for _ in range(3)]
        await until(lambda: len(desk.keys) == 1)
        await app.cancel(second.id)
        desk.open.set()
        assert await first.wait_for_completion(20) == "done"
        assert await third.wait_for_completion(20) == "done"
        assert await second.wait_for_completion(20) == "cancelled"
        assert len(desk.keys) == 2


async def test_a_permit_that_came_free_for_a_start_that_is_refused_goes_to_the_next(
    desk: Desk,
) -> None:
    refused = asyncio.Event()

    class SecondStartRefused(MemoryJournal):
        async def append(self, append: Append) -> int:
            if append.run_id == "inst_000002" and append.expected == 0:
                await refused.wait()
                raise JournalUnavailable("the disk is full")
            return await super().append(append)

    app = furnished(Holdfast(journal=SecondStartRefused(), max_effects=1), desk)
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with app:
        first = await app.plans.start_plan_by_prompt("", "one")
        second = asyncio.create_task(app.plans.start_plan_by_prompt("", "one"))
        await until(lambda: bool(app.engine._limit.waiting))
        desk.open.set()
        assert await first.wait_for_completion(20) == "done"
        refused.set()
        with pytest.raises(JournalUnavailable):
            await second
        third = await app.plans.start_plan_by_prompt("", "one")
        assert await third.wait_for_completion(20) == "done"


async def test_a_child_that_is_spoken_to_before_its_parent_knows_of_its_birth_has_one_actor(
    desk: Desk,
) -> None:
    """Its birth is on disk, and the word of that still on its way."""
    born, acknowledged = asyncio.Event(), asyncio.Event()

    class SlowToTell(MemoryJournal):
        async def append(self, append: Append) -> int:
            version = await super().append(append)
            if append.child_appends:
                born.set()
                await acknowledged.wait()
            return version

    app = furnished(Holdfast(journal=SlowToTell()), desk, PARENT)
    app.add_plan(tools("one", "work"))
    desk.open.clear()
    async with app:
        starting = asyncio.create_task(app.plans.start_plan_by_prompt("", "parent"))
        await born.wait()
        child = await app.instance("inst_000001.L001.1")
        await app.engine.submit(child.id, Tick())
        await until(lambda: bool(desk.keys))
        acknowledged.set()
        instance = await starting
        for _ in range(20):
            await asyncio.sleep(0)
        desk.open.set()
        assert await instance.wait_for_completion(20) == "done"
        assert len(desk.keys) == 1
        assert of_kind(await history(app, child.id), e.StepReleased) == []
        await assert_sound(app, child.id)


async def test_a_long_run_does_not_keep_the_only_permit_from_the_others(desk: Desk) -> None:
    app = Holdfast.in_memory(max_effects=1)
    app.tool(desk.work, name="work")
    app.add_plan(tools("long", *["work"] * 50))
    app.add_plan(tools("short", "work"))
    async with app:
        long = await app.plans.start_plan_by_prompt("", "long")
        short = await app.plans.start_plan_by_prompt("", "short")
        assert await short.wait_for_completion(20) == "done"
        assert long.status == "running"
        assert await long.wait_for_completion(20) == "done"


async def test_a_caller_who_goes_away_leaves_the_others_turn_whole(
    desk: Desk, tmp_path: Path
) -> None:
    async with furnished(Holdfast(tmp_path), desk, ORDER) as app:
        for instance in await pause_many(app, 20):
            going = asyncio.ensure_future(
                app.planner_agent.continue_plan(instance.id, {"note": "one"}, by="one")
            )
            staying = asyncio.ensure_future(
                app.planner_agent.continue_plan(instance.id, {"note": "one"}, by="one")
            )
            await asyncio.sleep(0)
            going.cancel()
            assert (await staying)["success"] is True
            assert await instance.wait_for_completion(20) == "done"
            await assert_sound(app, instance.id)
        assert len(desk.keys) == 20


async def test_an_outdated_snippet_that_ends_is_not_taken_for_the_call_with_its_claim() -> None:
    """After a refused append another step may start under the claim of one that is still at work;
    a call that is thought not to be in flight would be made again."""
    begun, end = asyncio.Event(), asyncio.Event()
    app = Holdfast.in_memory()

    @app.tool
    async def send(note: str = "") -> dict[str, int]:
        begun.set()
        await end.wait()
        return {}

    app.add_plan(tools("one", "send"))
    async with app:
        instance = await app.plans.start_plan_by_prompt("", "one")
        await asyncio.wait_for(begun.wait(), 20)
        actor, task = app.engine._actors.by_id[instance.id], asyncio.current_task()
        assert task is not None
        [place], [claim] = actor.in_flight, {one.claim for one in actor.committed.steps.values()}
        work = f.Work(instance.id, "outdated", 1, 1, claim, "key")
        snippet = f.RunSnippet(work, "result = {}", (), (), {}, 0.0)
        turns = app.engine._turns
        await turns._executor.perform(actor, snippet, task, turns)
        assert list(actor.in_flight) == [place]
        end.set()
        assert await instance.wait_for_completion(20) == "done"


@pytest.mark.own_store  # a shared journal is asked first where the run stands
@pytest.mark.parametrize("on_disk", [True, False])
async def test_a_stale_owner_cannot_append(tmp_path: Path, desk: Desk, on_disk: bool) -> None:
    """Fencing: somebody else has moved the run on; the owner reloads, unseen by its caller."""
    owner = Holdfast(tmp_path) if on_disk else Holdfast.in_memory()
    async with furnished(owner, desk, ORDER) as app:
        [instance] = await pause_many(app, 1)
        [question] = await app.inbox()
        state = await app.engine.state(instance.id)
        other = furnished(Holdfast(journal=app.journal), desk, ORDER)
        theirs = Answer(question.question_id, "intruder", None, {"note": "theirs"})
        await other.engine.submit(instance.id, theirs)
        assert (await app.engine.state(instance.id)).version == state.version, "app is stale now"
        with pytest.raises(AlreadyAnswered) as refused:
            await app.answer(question.question_id, data={"note": "mine"}, by="owner")
        assert refused.value.by == "intruder"
        assert await instance.wait_for_completion(20) == "done"
        await other.engine.close()
        assert desk.notes == ["theirs"]
