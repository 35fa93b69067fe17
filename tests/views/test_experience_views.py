"""What was learned of failures as it is shown, and lessons in the light of the plans that there
are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept_lessons import FINGERPRINT, learned, recovered
from plan_texts import end, load, start, step

from holdfast import Holdfast
from holdfast.errors import NotAllowed, NotFound
from holdfast.model.recovery import EDGES, passed_at
from holdfast.model.repair import LessonState
from holdfast.repair.experience import NOTHING_LEARNED, Experience, learn
from holdfast.repair.facts import Took, Tried
from holdfast.views.experience import (
    CurveView,
    DurationView,
    ExperienceView,
    LessonView,
    experience_view,
)
from holdfast.views.lessons import Lessons, opened
from holdfast.views.wire import from_json, to_json

NOW = 1_800_000_000.0
BY_ID = {"op": "set_args", "listener_id": "@listener", "set": {"x": "WZ001"}}


def knowing(cases: int, *failed: float, won: float | None = None) -> Experience:
    """So many calls failed at these seconds, and worked at the last, or never."""
    passed, told = 0, []
    for since, good in [*((one, False) for one in failed), *([(won, True)] if won else [])]:
        of = ("pay", FINGERPRINT, "outage", passed, since, good, "inst_000001", "L001", NOW)
        told.append(Tried(*of))
        passed = passed_at(since)
    return learn(NOTHING_LEARNED, told * cases)[0]


def test_a_curve_says_how_likely_a_call_works_again_by_when() -> None:
    [curve] = experience_view(knowing(40, 0.5, 2.0, 8.0, 30.0, won=120.0), NOW).curves
    assert (curve.tool, curve.fingerprint, curve.cause) == ("pay", FINGERPRINT, "outage")
    assert (curve.cases, curve.last_seen) == (40, NOW)
    assert [one.within for one in curve.chances] == list(EDGES)
    early, late = curve.chances[3].chance, curve.chances[4].chance
    assert early < 0.1 < 0.9 < late


def test_what_never_recovers_says_so() -> None:
    [curve] = experience_view(knowing(40, *EDGES), NOW).curves
    assert curve.chances[-1].chance < 0.05


def test_of_few_calls_it_is_not_said_how_long_they_take() -> None:
    few, _ = learn(NOTHING_LEARNED, [Took("pay", 0.2, "inst_000001", NOW)] * 19)
    [told] = experience_view(few, NOW).durations
    assert told == DurationView("pay", 19, None, NOW)
    enough, _ = learn(few, [Took("pay", 0.2, "inst_000001", NOW)])
    [told] = experience_view(enough, NOW).durations
    assert told.calls == 20
    assert told.usual is not None
    assert 0.2 <= told.usual <= 0.4


def test_nothing_learned_is_nothing_to_show() -> None:
    assert experience_view(NOTHING_LEARNED, NOW) == ExperienceView()


attempts = st.lists(st.sampled_from(EDGES), max_size=7, unique=True).map(sorted)


@given(st.integers(1, 30), attempts, st.none() | st.sampled_from(EDGES), st.floats(0, 9e6))
def test_chances_rise_and_are_chances(
    cases: int, failed: list[float], won: float | None, later: float
) -> None:
    view = experience_view(knowing(cases, *failed, won=won), NOW + later)
    for curve in view.curves:
        chances = [one.chance for one in curve.chances]
        assert chances == sorted(chances)
        assert all(0 <= one <= 1 for one in chances)
    assert from_json(ExperienceView, json.loads(json.dumps(to_json(view)))) == view


def furnish(app: Holdfast, **args: str) -> Holdfast:
    @app.tool(version="1")
    async def pay(x: str = "", y: str = "") -> dict[str, str]:
        return {}

    load(app, step("L001", "001", "002", tool="pay", args=args or {"x": "Will"}), end("002"))
    return app


@pytest.fixture
async def taught(tmp_path: Path) -> str:
    """A home in which a lesson of the plan was learned; its id."""
    async with furnish(Holdfast(tmp_path)) as app:
        await recovered(app, "pay", 5, after=2.0)
        assert await (await start(app)).wait_for_completion(30) == "done"
        return await learned(app, "p", "L001", BY_ID, wins=3)


async def test_a_lesson_is_told_in_words_of_the_plan(taught: str, tmp_path: Path) -> None:
    async with furnish(Holdfast(tmp_path)) as app:
        lessons = Lessons.of(app, await app.engine.learning.experience())
        [view] = await lessons.all()
        assert view == await lessons.one(taught)
    assert view.words == ('L001 passes x = "WZ001" instead of "Will"',)
    assert (view.plan_id, view.tool, view.listener_ids) == ("p", "pay", ("L001",))
    assert (view.state, view.outdated) == (LessonState.PROVEN, False)
    assert from_json(LessonView, json.loads(json.dumps(to_json(view)))) == view


async def test_without_an_application_the_plan_is_the_newest_that_ran(
    taught: str, tmp_path: Path
) -> None:
    async with opened(tmp_path / "holdfast.db") as (keeper, journal):
        assert isinstance(experience_view(keeper.experience, NOW).curves[0], CurveView)
        nothing_here = Holdfast(tmp_path)
        lessons = Lessons.of(nothing_here, keeper, journal)
        [view] = await lessons.all()
        assert (view.listener_ids, view.outdated) == (("L001",), False)
        promotion = await lessons.promoted(taught)
    assert promotion.operations == ({**BY_ID, "listener_id": "L001"},)
    fresh = furnish(Holdfast.in_memory())
    plan = fresh.load_plan_text(promotion.source)
    assert fresh.engine.definitions.current("p").digest == promotion.digest
    assert dict(plan.listeners[0].action.args) == {"x": "WZ001"}  # type: ignore[union-attr]


async def test_a_plan_that_cannot_be_read_leaves_the_lesson_as_it_is_kept(
    taught: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path / "holdfast.db") as (keeper, journal):
        lessons = Lessons.of(Holdfast(tmp_path), keeper, journal)

        async def gone(digest: str) -> None:
            return None

        monkeypatch.setattr(journal, "definition", gone)
        [view] = await lessons.all()
        assert view.listener_ids == ()
        assert view.words == ('the listener passes x = "WZ001"',)
        with pytest.raises(NotFound, match="the plan p is not here any more"):
            await lessons.promoted(taught)


async def test_a_listener_that_has_changed_is_not_what_the_lesson_knows(
    taught: str, tmp_path: Path
) -> None:
    async with furnish(Holdfast(tmp_path), x="somebody else") as app:
        lessons = Lessons.of(app, await app.engine.learning.experience())
        assert (await lessons.one(taught)).listener_ids == ()
        with pytest.raises(NotAllowed, match="the plan p has changed: no listener is what lesson"):
            await lessons.promoted(taught)
        with pytest.raises(NotFound, match="there is no lesson nothing"):
            await lessons.one("nothing")


async def test_operations_that_the_plan_has_no_place_for_are_told_by_themselves(
    tmp_path: Path,
) -> None:
    elsewhere = {"op": "set_output", "listener_id": "L009", "context": {}}
    known = {"op": "set_args", "listener_id": "@listener", "drop": ["nothing"]}
    async with furnish(Holdfast(tmp_path)) as app:
        for one, words in (
            (elsewhere, "L009 gives its task nothing"),
            (known, "the listener does not pass nothing any more"),
        ):
            lesson_id = await learned(app, "p", "L001", one)
            lessons = Lessons.of(app, app.engine.learning.keeper)
            view = await lessons.one(lesson_id)
            assert view.listener_ids == ("L001",)
            assert view.words == (words,)
        first = next(one for one in await lessons.all() if "L009" in one.words[0])
        with pytest.raises(NotAllowed):
            await lessons.promoted(first.lesson_id)


async def test_another_version_of_the_tool_outdates_a_lesson_and_one_that_is_gone_does_not(
    taught: str, tmp_path: Path
) -> None:
    app = Holdfast(tmp_path)

    @app.tool(version="2")
    async def pay(x: str = "") -> dict[str, str]:
        return {}

    async with app:
        view = await Lessons.of(app, await app.engine.learning.experience()).one(taught)
        assert (view.state, view.outdated) == (LessonState.RETIRED, True)
    async with Holdfast(tmp_path) as bare:
        view = await Lessons.of(bare, await bare.engine.learning.experience()).one(taught)
        assert (view.state, view.outdated) == (LessonState.PROVEN, False)


async def test_the_best_lessons_of_a_plan_come_first(tmp_path: Path) -> None:
    async with furnish(Holdfast(tmp_path)) as app:
        made = {
            wins: await learned(app, "p", "L001", {**BY_ID, "set": {"x": str(wins)}}, wins)
            for wins in (1, 2, 3, 4)
        }
        lessons = Lessons.of(app, app.engine.learning.keeper)
        await lessons.say(made[4], LessonState.RETIRED)
        await lessons.say(made[1], LessonState.PINNED)
        assert [one.wins for one in await lessons.all()] == [1, 3, 2, 4]


async def test_where_there_is_no_home_none_is_made(tmp_path: Path) -> None:
    for to_write in (False, True):
        with pytest.raises(NotFound, match="holds no runs yet"):
            async with opened(tmp_path / "none" / "holdfast.db", to_write=to_write):
                raise AssertionError("it was opened")
    assert not (tmp_path / "none").exists()
