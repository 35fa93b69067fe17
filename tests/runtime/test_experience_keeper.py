"""What is learned while runs go on, what is kept of it, and what the journals say of it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scenes import until

from holdfast import Holdfast
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.storing import plan_digest
from holdfast.errors import (
    JournalUnavailable,
    NameTaken,
    NotFound,
    OperatorError,
    PermanentError,
    TransientError,
)
from holdfast.journal.codec import decode
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import (
    DAMAGED_RUN,
    Attached,
    ExpiringValue,
    Journal,
    Written,
)
from holdfast.journal.postgres import PostgresJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.model import commands as c
from holdfast.model.events import AttemptFailed
from holdfast.model.interaction import REPAIR
from holdfast.model.repair import LessonState, Level, PlanPatch, Proposal, Verdict
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.repair import experience as learning
from holdfast.repair.alerts import Alert, AlertKind
from holdfast.repair.budgets import Call
from holdfast.repair.experience import NOTHING_LEARNED
from holdfast.repair.facts import Left, Took, Tried, in_trouble
from holdfast.repair.lessons import id_of
from holdfast.runtime import experience as keeping
from holdfast.runtime import loads, relearning
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.experience import KIND, ExperienceKeeper
from holdfast.runtime.identity import Identity, acting
from holdfast.runtime.machines import blank, replay
from holdfast.runtime.registry import DefinitionRegistry
from holdfast.runtime.relearning import lived_until, relearned
from holdfast.testing.clock import ManualClock

pytestmark = pytest.mark.own_store  # it goes through the stores by itself

PLAN = """
plan_id: work
name: Work
main_task_id: "001"
tasks: [{task_id: "001", name: Work}, {task_id: "002", name: Begun}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: begin
    success_output: {task_id: "002", status: Done}
  - listener_id: L002
    trigger_task_id: "002"
    trigger_condition: Done
    listener_type: tool
    tool: work
    args: {old: "x"}
    retry: {attempts: 4, initial: 0.004}
    success_output: {task_id: "001", status: Done}
"""
RENAME = {"op": "set_args", "listener_id": "L002", "set": {"new": "x"}, "drop": ["old"]}
DOWN = Failure(FailureKind.TRANSIENT, "down", code="TransientError")


class Workshop:
    """An application with a tool that fails as it is told to, and a keeper that follows it."""

    def __init__(self, app: Holdfast, keeper: ExperienceKeeper) -> None:
        self.app = app
        self.keeper = keeper
        self.errors: list[Exception] = []
        self.alerts: list[Alert] = []
        self.woken: list[tuple[Call, float]] = []
        self.working = asyncio.Event()
        self.working.set()

    async def run(self, *errors: Exception) -> str:
        """One run, in which the tool fails so, one after the other."""
        self.errors += errors
        instance = await self.app.plans.start_plan_by_prompt("", "work")
        over = {RunStatus.DONE, RunStatus.ERROR}
        await self.app.engine.wait_for_status(instance.id, over)
        return instance.id

    async def repair(self, run_id: str, *, level: Level = Level.RENAME) -> None:
        """A person proposes a repair of L002, consents to it, and the run goes on."""
        state = await self.state(run_id)
        plan = patched(state.plan.plan, read_operations([RENAME]))
        patch = PlanPatch("p1", state.plan.digest, (RENAME,), "It might help.", by="eve")
        verdict = Verdict(plan_digest(plan), level, versions={"work": "1"}, consent="agreed")
        shown = {"words": ["L002 passes new instead of old"]}
        proposed = c.ProposePatch(Proposal(patch, verdict, shown), "eve", "L002")
        state = await self.app.engine.submit(run_id, proposed)  # type: ignore[assignment]
        questions = state.questions
        [asked] = (one for one in state.open_questions if questions[one].purpose == REPAIR)
        await self.app.engine.submit(run_id, c.Answer(asked, "will", "apply"))

    async def state(self, run_id: str) -> PlanState:
        state = await self.app.engine.state(run_id)
        assert isinstance(state, PlanState)
        return state


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "holdfast.db")


@asynccontextmanager
async def opened(
    journal: Journal, keeper: ExperienceKeeper | None = None
) -> AsyncIterator[Workshop]:
    """An application on a journal, whose engine tells this keeper instead of its own."""
    app = Holdfast(journal=journal)
    background = BackgroundTasks()
    keeper = ExperienceKeeper(
        journal,
        app.engine.clock,
        background,
        lambda alert: shop.alerts.append(alert),
        lambda call, delay: shop.woken.append((call, delay)),
    )
    shop = Workshop(app, keeper)

    @app.tool()
    async def begin() -> dict[str, Any]:
        return {}

    @app.tool(version="1", idempotent=True)
    async def work(old: str = "", new: str = "") -> dict[str, Any]:
        await shop.working.wait()
        if shop.errors:
            raise shop.errors.pop(0)
        return {}

    app.load_plan_text(PLAN)
    app.engine._turns.learns = keeper.note
    async with app:
        await keeper.open()
        yield shop
        await background.finish(1.0)
        await keeper.close()


@pytest.fixture
async def shop(journal: Journal) -> AsyncIterator[Workshop]:
    async with opened(journal) as shop:
        yield shop


def down(times: int) -> list[Exception]:
    return [TransientError("down") for _ in range(times)]


async def work_through(shop: Workshop) -> list[str]:
    """Runs of every kind: untroubled, that recovered, that were given up, resumed and repaired."""
    runs = [await shop.run(*down(times)) for times in (0, 1, 3, 2)]
    runs.append(await shop.run(PermanentError("there is no argument old")))
    await shop.repair(runs[-1])
    await shop.app.engine.wait_for_status(runs[-1], {RunStatus.DONE})
    runs.append(await shop.run(*down(1), PermanentError("gone")))
    await shop.app.engine.submit(runs[-1], c.Resume("will"))
    await shop.app.engine.wait_for_status(runs[-1], {RunStatus.DONE})
    return runs


async def test_what_followed_live_equals_what_is_read_again(shop: Workshop) -> None:
    runs = await work_through(shop)
    learned = shop.keeper.experience
    again = await relearned(shop.app.journal)
    assert again.experience == learned
    assert set(again.versions) == set(runs[1:]), "those that never failed were not read"
    [curve] = learned.curves.values()
    assert curve.cases == 3
    [lesson] = shop.keeper.lessons(lambda tool: "1")
    assert (lesson.wins, lesson.losses, lesson.runs) == (1, 0, (runs[4],))
    assert lesson.operations[0]["listener_id"] == "@listener"
    assert shop.keeper.lessons_for(lesson.key) == (lesson,)
    assert shop.keeper.lessons(lambda tool: "2")[0].state is LessonState.RETIRED


async def test_many_runs_at_once_are_learned_of_as_the_journal_tells_it(shop: Workshop) -> None:
    dice = Random(15)
    kinds = [lambda: TransientError("down"), lambda: TransientError("busy"), _gone]
    shop.errors += [dice.choice(kinds)() for _ in range(120)]
    runs = await asyncio.gather(*(shop.run() for _ in range(60)))
    for run_id in runs:
        if (await shop.state(run_id)).status is RunStatus.ERROR:
            await shop.app.engine.submit(run_id, c.Resume("will"))
            await shop.app.engine.wait_for_status(run_id, {RunStatus.DONE, RunStatus.ERROR})
    assert len(shop.keeper.experience.curves) == 2
    assert (await relearned(shop.app.journal)).experience == shop.keeper.experience


def _gone() -> Exception:
    return PermanentError("gone")


async def test_a_run_without_failures_is_never_read(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.run()
    monkeypatch.setattr(relearning, "lived_until", None)
    assert (await relearned(shop.app.journal)).versions == {}


async def test_rows_and_records_are_read_page_by_page(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work_through(shop)
    monkeypatch.setattr(relearning, "ROWS", 2)
    monkeypatch.setattr(relearning, "RECORDS", 3)
    assert (await relearned(shop.app.journal)).experience == shop.keeper.experience


async def test_what_was_learned_is_kept_between_starts(journal: Journal) -> None:
    async with opened(journal) as shop:
        assert await shop.keeper.open() is False
        await work_through(shop)
        learned = shop.keeper.experience
    async with opened(journal) as shop:
        assert await shop.keeper.open() is True
        assert shop.keeper.experience == learned
        await shop.run(*down(2))
        assert shop.keeper.experience != learned
        assert (await relearned(journal)).experience == shop.keeper.experience


async def test_a_run_that_fails_over_a_restart_is_learned_of_once(journal: Journal) -> None:
    """What a former process had committed of it, that one has learned."""
    async with opened(journal) as shop:
        run_id = await shop.run(*down(2), PermanentError("there is no argument old"))
    async with opened(journal) as shop:
        await shop.repair(run_id)
        await shop.app.engine.wait_for_status(run_id, {RunStatus.DONE})
        await until(lambda: bool(shop.keeper.experience.lessons))
        assert (await relearned(journal)).experience == shop.keeper.experience
    assert not shop.keeper._runs


async def test_a_run_whose_past_cannot_be_read_teaches_nothing_more(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(journal) as shop:
        run_id = await shop.run(*down(2), PermanentError("gone"))
        learned = shop.keeper.experience
    async with opened(journal) as shop:

        async def unreadable(*_: Any) -> None:
            raise NotFound("there is no such definition")

        monkeypatch.setattr(keeping, "lived_until", unreadable)
        await shop.app.engine.submit(run_id, c.Resume("will"))
        await shop.app.engine.wait_for_status(run_id, {RunStatus.DONE})
        await until(lambda: not shop.keeper._background.running)
        assert shop.keeper.experience == learned
        assert not shop.keeper._runs


async def test_a_run_that_cannot_be_read_is_passed_over(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = await shop.run(*down(1)), await shop.run(*down(1))

    async def sometimes(journal: Any, definitions: Any, run_id: str) -> Any:
        if run_id == bad:
            raise OperatorError("damaged")
        return await lived_until(journal, definitions, run_id)

    monkeypatch.setattr(relearning, "lived_until", sometimes)
    with caplog.at_level(logging.WARNING):
        assert set((await relearned(shop.app.journal)).versions) == {good}
    assert f"nothing is learned from {bad}" in caplog.text


async def test_two_processes_add_up_what_they_have_learned(journal: Journal) -> None:
    async with opened(journal) as shop:
        other = ExperienceKeeper(journal, shop.keeper._clock, BackgroundTasks())
        await shop.run(*down(1))
        other._take([tried(), tried()])
        await asyncio.gather(shop.keeper.save(), other.save())
        await shop.keeper.refresh()
        await other.refresh()
        assert shop.keeper.experience == other.experience
        assert sum(one.cases for one in other.experience.curves.values()) == 3
        assert [one.key for one in await journal.all_kept(KIND, 0.0)] == ["1.0", "1.2"]
        await other.close()


async def test_processes_of_one_database_lose_nothing_of_what_they_learn(database: str) -> None:
    journals = [PostgresJournal(database) for _ in range(3)]
    keepers = []
    for journal in journals:
        await journal.open()
        keepers.append(ExperienceKeeper(journal, ManualClock(), BackgroundTasks()))
    for number in range(5):
        for keeper in keepers:
            keeper._take([tried(f"t{number}")])
        await asyncio.gather(*(keeper.save() for keeper in keepers))
    for keeper in keepers:
        await keeper.refresh()
        assert [one.cases for one in keeper.experience.curves.values()] == [3] * 5
        await keeper.close()
    for journal in journals:
        await journal.close()


def tried(tool: str = "work", *, won: bool = True) -> Tried:
    return Tried(tool, "fp1:x", "outage", 0, 1.0, won, "inst_9", "L002", 1_800_000_000.0)


async def test_one_that_has_seen_nothing_kept_does_not_begin_anew(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have kept two values since it looked, and the first of them is spent."""
    async with opened(journal):
        late, other = taking(journal), taking(journal)
        newest, passed = late._newest, []

        async def looked() -> tuple[int, str]:
            found = await newest()
            if not passed:
                passed.append(found)
                for _ in range(2):
                    other._take([tried()])
                    await other.save()
            return found

        monkeypatch.setattr(late, "_newest", looked)
        await late.save()
        assert passed == [(0, "")]
        [curve] = late.experience.curves.values()
        assert curve.cases == 4
        await asyncio.gather(late.close(), other.close())


def taking(journal: Journal) -> ExperienceKeeper:
    keeper = ExperienceKeeper(journal, ManualClock(), BackgroundTasks())
    keeper._take([tried()])
    return keeper


async def test_where_another_is_quicker_it_is_tried_again(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(journal):
        keeper, attach, refused = taking(journal), journal.attach, [NameTaken("experience", "1.1")]

        async def sometimes(attached: Attached) -> None:
            if refused:
                raise refused.pop()
            await attach(attached)

        monkeypatch.setattr(journal, "attach", sometimes)
        await keeper.save()
        assert keeper._unsaved == NOTHING_LEARNED
        fresh = ExperienceKeeper(journal, ManualClock(), BackgroundTasks())
        await fresh.open()
        assert fresh.experience == keeper.experience
        keeper._take([tried()])
        refused += [NameTaken("experience", "1.1") for _ in range(keeping.TRIES)]
        with pytest.raises(OperatorError, match="others are always quicker"):
            await keeper.save()
        refused += [NameTaken("experience", "1.1") for _ in range(keeping.TRIES)]
        with pytest.raises(OperatorError, match="others are always quicker"):
            await keeper.rebuild()
        await keeper.close()


@pytest.mark.parametrize("happened", [True, False])
async def test_a_journal_that_fails_makes_nothing_count_twice(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, happened: bool
) -> None:
    async with opened(journal):
        keeper, attach, failing = taking(journal), journal.attach, [True]

        async def failed(attached: Attached) -> None:
            if happened or not failing:
                await attach(attached)
            if failing:
                failing.pop()
                raise JournalUnavailable("the disk is full")

        monkeypatch.setattr(journal, "attach", failed)
        with pytest.raises(JournalUnavailable):
            await keeper.save()
        learned = keeper.experience
        keeper._take([tried()])
        await keeper.save()
        assert keeper.experience == learning.learn(learned, [tried()])[0]
        [_, kept] = await journal.all_kept(KIND, 0.0)
        assert learning.load(kept.body) == keeper.experience
        await keeper.close()


async def test_a_save_that_is_cancelled_loses_nothing(journal: Journal) -> None:
    async with opened(journal):
        keeper = taking(journal)
        for turns in range(6):
            saving = asyncio.ensure_future(keeper.save())
            for _ in range(turns):
                await asyncio.sleep(0)
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)
        await keeper.save()
        [_, kept] = await journal.all_kept(KIND, 0.0)
        [curve] = learning.load(kept.body).curves.values()
        assert curve.cases == 1
        await keeper.close()


async def test_what_is_learned_is_saved_soon_and_later_where_the_journal_is_down(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "SAVE_SECONDS", 0.001)
    async with opened(journal):
        attach, failing = journal.attach, [JournalUnavailable("the disk is full")]

        async def sometimes(attached: Attached) -> None:
            if failing:
                raise failing.pop()
            await attach(attached)

        monkeypatch.setattr(journal, "attach", sometimes)
        with caplog.at_level(logging.INFO):
            keeper = taking(journal)
            async with asyncio.timeout(20):
                while not await journal.all_kept(KIND, 0.0):  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        assert "what was learned is kept later" in caplog.text
        keeper._take([tried()])
        failing.append(JournalUnavailable("the disk is full"))
        await keeper.close()
        assert "what was learned last is not kept" in caplog.text


async def test_what_another_version_keeps_is_left_alone_and_what_cannot_be_read_is_replaced(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(journal):
        theirs = ExpiringValue(KIND, "2.9", "{}")
        await journal.attach(Attached(kept=[theirs, ExpiringValue(KIND, "1.4", "{}")]))
        keeper = ExperienceKeeper(journal, ManualClock(), BackgroundTasks())
        assert await keeper.open() is True
        assert keeper.experience == NOTHING_LEARNED
        assert "what was learned cannot be read" in caplog.text
        keeper._take([tried()])
        await keeper.close()
        found = await journal.all_kept(KIND, 0.0)
        assert [one.key for one in found] == ["1.5", "2.9"]
        assert found[1] == theirs


async def test_a_rebuild_forgets_what_no_run_says_and_keeps_what_people_said(
    shop: Workshop,
) -> None:
    await work_through(shop)
    truth, keeper = shop.keeper.experience, shop.keeper
    [lesson] = keeper.lessons(lambda tool: None)
    keeper._take([tried("no_such_tool")])
    pinned = await keeper.say(id_of(lesson.key, lesson.operations), LessonState.PINNED)
    assert pinned.state is LessonState.PINNED
    assert await keeper.rebuild() == 5
    assert keeper.experience.curves == truth.curves
    [kept] = keeper.lessons(lambda tool: None)
    assert (kept.state, kept.wins) == (LessonState.PINNED, 1)
    fresh = ExperienceKeeper(shop.app.journal, keeper._clock, BackgroundTasks())
    await fresh.open()
    assert fresh.experience == keeper.experience
    with pytest.raises(NotFound, match="there is no lesson l9"):
        await keeper.say("l9", LessonState.RETIRED)


async def test_what_a_person_says_stands_in_the_audit_or_was_not_said(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work_through(shop)
    keeper, journal = shop.keeper, shop.app.journal
    [name] = keeper.experience.lessons
    attach, failing = journal.attach, [JournalUnavailable("the disk is full")]

    async def sometimes(attached: Attached) -> None:
        if failing:
            raise failing.pop()
        await attach(attached)

    monkeypatch.setattr(journal, "attach", sometimes)
    learned = keeper.experience
    with pytest.raises(JournalUnavailable), acting(Identity("will")):
        await keeper.say(name, LessonState.PINNED)
    await keeper.save()
    assert keeper.experience == learned == (await kept_in(journal)).experience
    assert await journal.audit() == []
    failing.append(NameTaken("experience", "1.1"))  # type: ignore[arg-type]
    with acting(Identity("will", origin="cli")):
        assert (await keeper.say(name, LessonState.PINNED)).state is LessonState.PINNED
    [entry] = await journal.audit()
    told = entry.record
    assert (told.who, told.origin, told.action) == ("will", "cli", "pinned_lesson")
    assert told.subject == name
    assert (await kept_in(journal)).experience == keeper.experience != learned


async def kept_in(journal: Journal) -> ExperienceKeeper:
    """As another process finds it."""
    keeper = ExperienceKeeper(journal, ManualClock(), BackgroundTasks())
    await keeper.open()
    return keeper


async def test_a_request_that_another_server_has_claimed_says_nothing_here(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work_through(shop)
    keeper, journal, learned = shop.keeper, shop.app.journal, shop.keeper.experience

    async def taken(attached: Attached) -> None:
        raise NameTaken("request", "one")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "attach", taken)
        with pytest.raises(NameTaken):
            await keeper.say(next(iter(learned.lessons)), LessonState.PINNED)
    await keeper.save()
    assert keeper.experience == learned == (await kept_in(journal)).experience


async def test_a_lesson_that_others_always_outrun_is_left_as_it_is(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work_through(shop)

    async def taken(attached: Attached) -> None:
        raise NameTaken("experience", "1.1")

    with monkeypatch.context() as patch:
        patch.setattr(shop.app.journal, "attach", taken)
        with pytest.raises(OperatorError, match="others are always quicker"):
            await shop.keeper.say(next(iter(shop.keeper.experience.lessons)), LessonState.PINNED)
    assert shop.keeper.lessons(lambda tool: None)[0].state is LessonState.TRIAL


async def test_what_is_learned_during_a_rebuild_counts_once(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both of a run that was read already, and of one that is read afterwards."""
    shop.working.clear()
    early = await shop.app.plans.start_plan_by_prompt("", "work")
    read: list[Any] = []
    shop.errors += down(1)
    shop.working.set()
    await shop.app.engine.wait_for_status(early.id, {RunStatus.DONE})

    async def in_between(journal: Any, definitions: Any, run_id: str) -> Any:
        if not read:
            before = await shop.run(*down(1))
            read.append(await lived_until(journal, definitions, run_id))
            read.append(before)
            await shop.run(*down(1))
            return read[0]
        return await lived_until(journal, definitions, run_id)

    monkeypatch.setattr(relearning, "lived_until", in_between)
    await shop.keeper.rebuild()
    monkeypatch.undo()
    assert shop.keeper.experience == (await relearned(shop.app.journal)).experience


async def test_runs_that_go_on_during_a_rebuild_count_once(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after it was read, the other before."""
    runs = [await shop.run(*down(1), PermanentError("no argument old")) for _ in range(2)]

    async def in_between(journal: Any, definitions: Any, run_id: str) -> Any:
        lived = await lived_until(journal, definitions, run_id)
        while runs:
            await shop.repair(runs[0])
            await shop.app.engine.wait_for_status(runs.pop(0), {RunStatus.DONE})
        return lived

    monkeypatch.setattr(relearning, "lived_until", in_between)
    await shop.keeper.rebuild()
    monkeypatch.undo()
    [lesson] = shop.keeper.lessons(lambda tool: None)
    assert lesson.wins == 2
    assert shop.keeper.experience == (await relearned(shop.app.journal)).experience


async def test_a_lesson_that_is_lost_is_told_of(shop: Workshop) -> None:
    gone = PermanentError("no argument old")
    run_id = await shop.run(gone)
    await shop.repair(run_id)
    await shop.app.engine.wait_for_status(run_id, {RunStatus.DONE})
    run_id = await shop.run(gone)
    shop.errors.append(gone)
    await shop.repair(run_id)
    await until(lambda: bool(shop.alerts))
    [alert] = shop.alerts
    assert (alert.kind, alert.run_id) == (AlertKind.LESSON_RETIRED, run_id)
    [lesson] = shop.keeper.lessons(lambda tool: "1")
    assert (lesson.wins, lesson.losses, lesson.state) == (1, 1, LessonState.RETIRED)
    assert shop.keeper.lessons_for(lesson.key) == ()


async def test_commits_that_wait_during_a_rebuild_count_once(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has begun the run; its past is read here only after the rebuild."""
    async with opened(journal) as shop:
        run_id = await shop.run(*down(1), PermanentError("there is no argument old"))
    async with opened(journal) as shop:
        rebuilt = asyncio.Event()

        async def later(*of: Any) -> Any:
            await rebuilt.wait()
            return await lived_until(*of)

        monkeypatch.setattr(keeping, "lived_until", later)
        await shop.repair(run_id)
        await shop.app.engine.wait_for_status(run_id, {RunStatus.DONE})
        await shop.keeper.rebuild()
        rebuilt.set()
        await until(lambda: not shop.keeper._background.running)
        assert shop.keeper.experience == (await relearned(journal)).experience


async def commits(shop: Workshop, run_id: str) -> list[tuple[PlanState, PlanState, list[Written]]]:
    """Each record of a run as a commit of its own."""
    now = await shop.state(run_id)
    state: Any = blank(run_id, now.origin or now.plan)
    made = []
    for one in await shop.app.journal.read(run_id):
        before, state = state, replay(state, [(one.at, decode(one))])
        made.append((before, state, [tuple(one)]))
    return made


async def test_commits_of_any_size_teach_the_same(shop: Workshop) -> None:
    """Also one that has in it the failure, its case, the repair and the run's end."""
    run_id = await shop.run(*down(1), PermanentError("no argument old"))
    await shop.repair(run_id)
    await shop.app.engine.wait_for_status(run_id, {RunStatus.DONE})
    made, dice = await commits(shop, run_id), Random(15)
    for most in range(1, 30):
        keeper, rest = alone([], []), list(made)
        while rest:
            batch, rest = rest[: (size := dice.randint(1, most))], rest[size:]
            (before, _, _), (_, after, _) = batch[0], batch[-1]
            if in_trouble(after):
                keeper.note(before, after, [one for _, _, records in batch for one in records])
        assert keeper.experience == shop.keeper.experience
        assert not keeper._runs
        await keeper.close()


async def test_a_gap_is_read_even_while_the_past_is_being_read(shop: Workshop) -> None:
    run_id = await shop.run(*down(3))
    made = await commits(shop, run_id)
    first = next(n for n, (before, _, _) in enumerate(made) if in_trouble(before))
    keeper = ExperienceKeeper(shop.app.journal, ManualClock(), BackgroundTasks())
    for before, after, records in (*made[first : first + 2], *made[first + 4 :]):
        keeper.note(before, after, records)
    await until(lambda: not keeper._background.running)
    assert not keeper._runs
    [curve] = keeper.experience.curves.values()
    assert curve.counts
    assert shop.keeper.experience.curves != keeper.experience.curves, "two commits were missed"
    await keeper.close()


async def test_of_a_run_that_is_gone_nothing_is_known(shop: Workshop) -> None:
    definitions = DefinitionRegistry(shop.app.journal)
    lived = await lived_until(shop.app.journal, definitions, "inst_000009")
    assert (lived.version, lived.facts) == (0, ())


async def test_a_run_whose_row_is_damaged_is_read_all_the_same(shop: Workshop) -> None:
    run_id = await shop.run()
    row = await shop.app.journal.run(run_id)
    assert row is not None
    assert not relearning._teaches(row)
    assert relearning._teaches(replace(row, title=DAMAGED_RUN))


async def test_moments_are_those_of_the_curves(shop: Workshop) -> None:
    for _ in range(5):
        await shop.run(*down(2))
    unknown = shop.keeper.moments("begin", DOWN)
    assert (unknown.known, unknown.cases) == (False, 0)
    [(tool, _)] = shop.keeper.experience.curves
    assert tool == "work"
    [failed] = {
        one.failure.fingerprint: one.failure for one in await failures(shop.app, "inst_000001")
    }.values()
    known = shop.keeper.moments("work", failed, "inst_000001")
    assert known.known
    assert known.wait(0.0, 0.0) == 0.5


async def failures(app: Holdfast, run_id: str) -> list[Any]:
    events = [decode(one) for one in await app.journal.read(run_id)]
    return [one for one in events if isinstance(one, AttemptFailed)]


def alone(alerts: list[Alert], woken: list[tuple[Call, float]]) -> ExperienceKeeper:
    return ExperienceKeeper(
        MemoryJournal(),
        ManualClock(),
        BackgroundTasks(),
        alerts.append,
        lambda call, delay: woken.append((call, delay)),
    )


async def test_an_outage_is_told_of_once_others_are_held_and_woken_when_it_is_over() -> None:
    alerts, woken = [], []
    keeper = alone(alerts, woken)
    found = [keeper.hold("work", DOWN, Call(f"inst_{n}", "L002")) for n in range(8)]
    assert [bool(seconds) for seconds, _ in found] == [False] * 5 + [True] * 3
    assert found[0][1] == ""
    assert found[-1][1] == "work is out: another run tries it, and this one goes on after it"
    [alert] = alerts
    assert (alert.kind, alert.about, alert.run_id) == (AlertKind.OUTAGE, "work", "inst_4")
    fingerprint = next(iter(keeper.loads._by_tool["work"].outages))
    keeper._take([Tried("work", fingerprint, "outage", 0, 9.0, False, "inst_4", "L002", 0.0)])
    assert woken == []
    keeper._take([left(fingerprint, "inst_4")])
    assert woken == [(Call("inst_5", "L002"), 0.0)]
    keeper._take([Tried("work", fingerprint, "outage", 1, 9.0, True, "inst_5", "L002", 0.0)])
    assert woken[1:] == [(Call("inst_6", "L002"), 0.0), (Call("inst_7", "L002"), 0.5)]
    keeper._take([left(fingerprint, "inst_6"), left("fp1:other", "inst_6"), took()])
    assert len(woken) == 3
    await keeper.close()


def left(fingerprint: str, run_id: str) -> Any:
    return Left("work", fingerprint, run_id, "L002", 0.0)


def took() -> Took:
    return Took("other", 1.0, "inst_1", 0.0)


async def test_a_spent_budget_is_told_of_and_successes_earn_it_back() -> None:
    alerts: list[Alert] = []
    keeper = alone(alerts, [])
    assert "work" not in keeper.loads.strained
    for number in range(11):
        failure = Failure(FailureKind.TRANSIENT, "x", code=f"C{number}")
        found = keeper.hold("work", failure, Call(f"inst_{number}", "L002"))
    assert found == (60.0, "too many calls of work fail: its retries are put off")
    [alert] = alerts
    assert alert.kind is AlertKind.BUDGET_SPENT
    assert "work" in keeper.loads.strained
    keeper._clock.advance(600.0)  # type: ignore[attr-defined]
    for _ in range(100):
        keeper.loads.succeeded("work")
    assert "work" not in keeper.loads.strained


async def test_loads_and_runs_are_bounded(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "MOST_TOOLS", 3)
    monkeypatch.setattr(keeping, "MOST_RUNS", 2)
    for number in range(6):
        shop.keeper.hold(f"t{number}", DOWN, Call(f"inst_{number}", "L002"))
        await shop.run(*down(1), PermanentError("gone"))
    assert list(shop.keeper.loads._by_tool) == ["t3", "t4", "t5"]
    assert len(shop.keeper._runs) == 2


async def test_alerts_and_wakings_that_fail_harm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the hook is broken")

    keeper = ExperienceKeeper(MemoryJournal(), ManualClock(), BackgroundTasks(), broken, broken)
    for number in range(6):
        keeper.hold("work", DOWN, Call(f"inst_{number}", "L002"))
    assert "an alert could not be told" in caplog.text
    fingerprint = next(iter(keeper.loads._by_tool["work"].outages))
    keeper._take([Tried("work", fingerprint, "outage", 1, 9.0, True, "inst_4", "L002", 0.0)])
    assert "L002 of inst_5 could not be woken" in caplog.text
    keeper._timer.cancel()  # type: ignore[union-attr]


async def test_a_keeper_without_hooks_tells_nobody() -> None:
    keeper = ExperienceKeeper(MemoryJournal(), ManualClock(), BackgroundTasks())
    for number in range(6):
        keeper.hold("work", DOWN, Call(f"inst_{number}", "L002"))
    assert keeper.loads._by_tool["work"].outages


async def test_what_cannot_be_learned_from_does_not_disturb_the_run(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("it is broken")

    monkeypatch.setattr(keeping, "facts_of", broken)
    run_id = await shop.run(*down(1))
    assert (await shop.state(run_id)).status is RunStatus.DONE
    assert f"nothing is learned from {run_id}" in caplog.text
