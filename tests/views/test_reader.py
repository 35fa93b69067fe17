"""Reading runs: lists, one run, its timeline, and the open questions of a whole run tree."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from immutables import Map

from holdfast import Holdfast
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.model.conversation import ConversationSettings, SubTask
from holdfast.model.interaction import InteractionStatus
from holdfast.model.rows import RunQuery
from holdfast.model.run import RunKind, RunStatus, is_below
from holdfast.views.reader import RunReader, RunVersion

ASK = """
plan_id: ask
name: Ask
main_task_id: "001"
tasks: [{task_id: "001", name: Ask}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: human
    title: Which one?
    form: {which: {type: text}}
    success_output: {task_id: "001", status: Done}
"""
OVER = """
plan_id: over
name: Over
main_task_id: "001"
tasks: [{task_id: "001", name: Over}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: plan
    plan_id: ask
    success_output: {task_id: "001", status: Done}
"""


async def test_a_run_is_listed_shown_and_told(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    app.load_plan_text(ASK)
    async with app:
        reader = RunReader.of(app)
        run = await app.plans.start_plan_by_prompt("ask", "ask")
        await run.wait_until_settled()
        [line] = await reader.runs(RunQuery(roots_only=True))
        assert (line.run_id, line.kind, line.status) == (run.id, RunKind.PLAN, RunStatus.PAUSE)
        view = await reader.run(run.id)
        assert view.rests
        assert view.plan is not None
        assert [one.words for one in view.plan.tasks] == ["waiting"]
        assert [one.status for one in view.steps] == ["waiting"]
        assert (await reader.run(run.id, parts=False)).plan is None
        told = await reader.timeline(run.id)
        assert [one.seq for one in told] == list(range(1, view.version + 1))
        assert told[-1].rests
        assert await reader.timeline(run.id, after=1) == told[1:]
        [asked] = [one async for one in reader.open_questions(run.id)]
        await app.answer(asked.question_id, data={"which": "this"}, by="will.zhang")
        answered = await reader.question(asked.question_id)
        assert answered is not None
        assert answered.status is InteractionStatus.ANSWERED
        assert (answered.by, answered.data) == ("will.zhang", {"which": "this"})
        before = (await reader.at(run.id, told[-1].seq)).view()
        assert before.status is RunStatus.PAUSE


async def test_an_event_is_told_the_same_wherever_the_reader_begins(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    app.load_plan_text(ASK)
    app.load_plan_text(OVER)
    async with app:
        reader = RunReader.of(app)
        run = await app.plans.start_plan_by_prompt("over", "over")
        await run.wait_until_settled()
        [asked] = [one async for one in reader.open_questions(run.id)]
        await app.answer(asked.question_id, data={"which": "this"})
        await run.wait_for_completion()
        for run_id in (run.id, f"{run.id}.L001.1"):
            told = await reader.timeline(run_id)
            assert any(one.took is not None for one in told)
            for place in range(len(told)):
                assert await reader.timeline(run_id, after=place) == told[place:]


async def test_a_home_is_read_as_the_engine_has_it(tmp_path: Path) -> None:
    app = Holdfast(tmp_path, clock=None)
    app.load_plan_text(ASK)
    async with app:
        run = await app.plans.start_plan_by_prompt("ask", "ask")
        await run.wait_until_settled()
        now = app.engine.clock.now
        live, home = RunReader.of(app), RunReader(app.journal, clock=now)
        seen, read = await live.at(run.id), await home.at(run.id)
        assert seen.view() == read.view()
        following = await home.following(run.id)
        assert await home.more(following) == await live.timeline(run.id)
        assert await home.more(following) == []


async def test_the_open_questions_of_a_tree_have_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.journal.port.QUESTIONS_PAGE", 3)
    app = Holdfast(tmp_path)
    fan = "\n".join(
        f"""  - listener_id: L{n:03}
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: human
    title: Question {n}
    form: {{which: {{type: text}}}}
    success_output: {{task_id: "001", status: Done}}"""
        for n in range(1, 9)
    )
    wide = ASK[: ASK.index("listeners:")].replace("plan_id: ask", "plan_id: wide")
    wide = wide.replace('{task_id: "001", name: Ask}', '{task_id: "001", name: Wide}')
    app.load_plan_text(f"{wide}listeners:\n{fan}\n")
    app.load_plan_text(OVER.replace("plan_id: ask", "plan_id: wide"))
    async with app:
        reader = RunReader.of(app)
        run = await app.plans.start_plan_by_prompt("over", "over")
        await run.wait_until_settled()
        asked = [one async for one in reader.open_questions(run.id)]
        assert len(asked) == 8
        [child] = {one.run_id for one in asked}
        assert is_below(child, run.id)
        assert len([one async for one in reader.open_questions(child)]) == 8


@pytest.mark.parametrize(("tasks", "beside"), [(10, False), (60, True)])
async def test_a_conversation_is_large_by_how_often_its_tasks_wait(
    tasks: int, beside: bool
) -> None:
    """Sixty that all wait for all before them wait 1,770 times."""
    ids = [f"t{n}" for n in range(tasks)]
    made = {one: SubTask(one, one, "", 1, tuple(ids[:n])) for n, one in enumerate(ids)}
    definition = ConversationDefinition(ConversationSettings(), "d")
    state = ConversationState(
        "conv_000001", definition=definition, tasks=Map(made), order=tuple(ids), turn=1
    )
    worker = await RunVersion(state, 0.0).beside(lambda: threading.current_thread().name)
    assert worker.startswith("holdfast-aside") is beside
