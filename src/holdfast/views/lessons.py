"""Lessons, for surfaces: in words of the plans that they are about, as a person judges them, and as
a part of their plan.

A lesson knows a listener by its content: which one that is says today's version of the plan, or the
newest that ran where this process has none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.storing import plan_digest, record_to_json
from holdfast.errors import HoldfastError, NotAllowed, NotFound, PatchRejected
from holdfast.i18n.message import msg
from holdfast.journal.port import Journal
from holdfast.journal.reading import refuse_empty
from holdfast.model.plan import Plan
from holdfast.model.repair import Lesson, LessonState
from holdfast.model.values import JsonObject
from holdfast.repair.lessons import Place, id_of, listener_digest, place_of
from holdfast.repair.parts import tools_called
from holdfast.repair.relative import absolute
from holdfast.repair.words import described
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.experience import ExperienceKeeper
from holdfast.runtime.machines import as_plan, blank
from holdfast.runtime.offload import aside
from holdfast.runtime.registry import DefinitionRegistry
from holdfast.source.plan_text import plan_text
from holdfast.views import homes
from holdfast.views.experience import LessonView, Promotion
from holdfast.views.lesson_words import kept_words
from holdfast.views.reader import PLAN

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@asynccontextmanager
async def opened(
    place: homes.Place, *, to_write: bool = False
) -> AsyncIterator[tuple[ExperienceKeeper, Journal]]:
    """What is known where no engine is open; to change it a home is taken for this."""
    if isinstance(place, Path):
        refuse_empty(place)
    async with (homes.writing if to_write else homes.reading)(place) as journal:
        keeper = ExperienceKeeper(journal, SystemClock(), BackgroundTasks())
        await keeper.open()
        yield keeper, journal


class Lessons:
    """The lessons of a journal, in the light of the plans and tools that there are."""

    def __init__(
        self,
        keeper: ExperienceKeeper,
        library: DefinitionRegistry,
        version_of: Callable[[str], str | None],
        journal: Journal,
    ) -> None:
        self._keeper = keeper
        self._library = library
        self._version_of = version_of
        self._journal = journal

    @classmethod
    def of(cls, app: Holdfast, keeper: ExperienceKeeper, journal: Journal | None = None) -> Self:
        """`journal` where the application itself is not open."""

        def version_of(tool: str) -> str | None:
            facts = app.engine.worker.tool_facts(tool)
            return None if facts is None else facts.version

        return cls(keeper, app.engine.definitions, version_of, journal or app.journal)

    async def all(self) -> tuple[LessonView, ...]:
        """By plan; of each the best first."""
        found = self._found()
        plans = {one: await self._plan(one) for one in {place_of(one.key).plan_id for one in found}}
        return await aside(_views, found, plans, self._version_of)

    async def one(self, lesson_id: str) -> LessonView:
        lesson = self._lesson(lesson_id)
        plan = await self._plan(place_of(lesson.key).plan_id)
        return await aside(_view, lesson, plan, self._version_of)

    async def say(self, lesson_id: str, state: LessonState) -> LessonView:
        """What a person makes of it, which stands until a person says otherwise."""
        await self._keeper.say(lesson_id, state)
        return await self.one(lesson_id)

    async def promoted(self, lesson_id: str) -> Promotion:
        """What the plan would be with the repair in it; NotAllowed where it has none such part, or
        a tool that it would call is gone."""
        lesson = self._lesson(lesson_id)
        plan_id = place_of(lesson.key).plan_id
        plan = await self._plan(plan_id)
        if plan is None:
            raise NotFound(msg("the plan {plan} is not here any more", plan=plan_id))
        found, after = await aside(_promotion, lesson, plan)
        called = {tool for one in after.listeners for tool in tools_called(one)}
        gone = sorted(one for one in called if self._version_of(one) is None)
        known = called.union((place_of(lesson.key).tool,)).difference(gone)
        if gone and known:  # else there is only the journal, and no tool at all
            raise NotAllowed(msg("there is no tool {tool} any more", tool=", ".join(gone)))
        return found

    def _found(self) -> tuple[Lesson, ...]:
        return self._keeper.lessons(self._version_of)

    def _lesson(self, lesson_id: str) -> Lesson:
        found = (one for one in self._found() if id_of(one.key, one.operations) == lesson_id)
        lesson = next(found, None)
        if lesson is None:
            raise NotFound(msg("there is no lesson {id}", id=lesson_id))
        return lesson

    async def _plan(self, plan_id: str) -> CompiledPlan | None:
        if plan_id in self._library.plan_ids():
            return self._library.current(plan_id)
        stored = await self._journal.definitions(PLAN, plan_id)
        if not stored:
            return None
        try:
            found = await DefinitionRegistry(self._journal).by_digest(stored[0].digest)
        except HoldfastError:
            return None
        assert isinstance(found, CompiledPlan)
        return found


def _views(
    found: Iterable[Lesson],
    plans: Mapping[str, CompiledPlan | None],
    version_of: Callable[[str], str | None],
) -> tuple[LessonView, ...]:
    views = (_view(one, plans[place_of(one.key).plan_id], version_of) for one in found)
    return tuple(sorted(views, key=_rank))


def _view(
    lesson: Lesson, plan: CompiledPlan | None, version_of: Callable[[str], str | None]
) -> LessonView:
    place = place_of(lesson.key)
    fits = () if plan is None else _fitting(plan, place)
    return LessonView(
        lesson_id=id_of(lesson.key, lesson.operations),
        plan_id=place.plan_id,
        tool=place.tool,
        version=place.version,
        fingerprint=place.fingerprint,
        state=lesson.state,
        wins=lesson.wins,
        losses=lesson.losses,
        level=lesson.level,
        words=_words(lesson, plan, fits),
        listener_ids=fits,
        runs=lesson.runs,
        outdated=version_of(place.tool) not in (None, place.version),
    )


_BEST_FIRST: Final = (
    LessonState.PINNED,
    LessonState.PROVEN,
    LessonState.TRIAL,
    LessonState.RETIRED,
)


def _rank(view: LessonView) -> tuple[str, int, int, str]:
    return view.plan_id, _BEST_FIRST.index(view.state), -view.wins, view.lesson_id


def _fitting(plan: CompiledPlan, place: Place) -> tuple[str, ...]:
    """The listeners of the plan that are what the lesson knows."""
    state = _state_of(plan)
    of_tool = (one for one, found in plan.listeners.items() if (found.tool or "") == place.tool)
    return tuple(one for one in of_tool if listener_digest(state, one) == place.listener)


def _state_of(plan: CompiledPlan) -> PlanState:
    """As it is when a run of the plan begins."""
    return as_plan(blank("", plan))


def _words(lesson: Lesson, plan: CompiledPlan | None, fits: Sequence[str]) -> tuple[str, ...]:
    """As they are kept, where the plan has no place for them any more."""
    if plan is not None and fits:
        operations = absolute(lesson.operations, _state_of(plan), fits[0])
        with suppress(PatchRejected):
            if operations is not None:
                return described(plan.plan, operations)
    return tuple(map(kept_words, lesson.operations))


def _promotion(lesson: Lesson, before: CompiledPlan) -> tuple[Promotion, Plan]:
    plan, place = before, place_of(lesson.key)
    changed, made, words = list[str](), list[JsonObject](), list[str]()
    for listener_id in _fitting(plan, place):
        operations = absolute(lesson.operations, _state_of(plan), listener_id)
        if operations is not None:
            words += described(plan.plan, operations)
            after = patched(plan.plan, read_operations(operations))
            plan = CompiledPlan(after, plan_digest(after))
            changed.append(listener_id)
            made += operations
    if not made:
        told = msg(
            "the plan {plan} has changed: no listener is what lesson {id} is about any more",
            plan=place.plan_id,
            id=id_of(lesson.key, lesson.operations),
        )
        raise NotAllowed(told)
    definition = record_to_json(plan.plan)
    promotion = Promotion(
        lesson_id=id_of(lesson.key, lesson.operations),
        plan_id=place.plan_id,
        base=before.digest,
        digest=plan.digest,
        listener_ids=tuple(changed),
        operations=tuple(made),
        words=tuple(words),
        definition=definition,
        source=plan_text(definition),
    )
    return promotion, plan.plan
