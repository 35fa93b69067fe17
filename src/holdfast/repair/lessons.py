"""Lessons: operations that repaired a failure, kept so that they fit other runs of the plan.

A lesson's key names where it fits: the plan, what the listener is, its tool with the version, and
the fingerprint of the failure; `relative` has what becomes of ids and of a run's own values.

Three wins without a loss prove a lesson; a loss retires it. What a person says stands until a
person says otherwise: a pinned lesson is offered first and outlives its losses. Nothing is learned
from words.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from holdfast.core.plan.state import PlanState
from holdfast.language.strict import canonical_json, digest
from holdfast.model.record import record, replacing
from holdfast.model.repair import Lesson, LessonState, Level
from holdfast.model.values import JsonObject
from holdfast.repair.relative import content_of

WINS_THAT_PROVE: Final = 3
RUNS_KEPT: Final = 10

_DIGEST: Final = 16


class Place(NamedTuple):
    """What a key says."""

    plan_id: str
    listener: str
    tool: str
    version: str
    fingerprint: str


def key_of(state: PlanState, listener_id: str, version: str, fingerprint: str) -> str:
    """Where a lesson about this listener's failure fits; `version` is its tool's."""
    tool = state.plan.listeners[listener_id].tool or ""
    content = listener_digest(state, listener_id)
    place = Place(state.plan.plan.plan_id, content, tool, version, fingerprint)
    return canonical_json(list(place))


def listener_digest(state: PlanState, listener_id: str) -> str:
    """What a key calls a listener: by its content, whatever its name."""
    return digest(content_of(state, listener_id))[:_DIGEST]


def place_of(key: str) -> Place:
    return Place(*json.loads(key))


def id_of(key: str, operations: Sequence[JsonObject]) -> str:
    """What a lesson is called."""
    return digest([key, list(operations)])[:_DIGEST]


@record
class Learned:
    """What is known of one lesson; `runs` are the newest that told of it, with their moments.
    `said` is what a person last made of it, and when."""

    key: str
    operations: tuple[JsonObject, ...]
    level: Level = Level.ACT
    wins: int = 0
    losses: int = 0
    runs: tuple[tuple[float, str], ...] = ()
    said: tuple[float, str] = (0.0, "")

    @property
    def last(self) -> float:
        """When it was heard of last."""
        return max(self.said[0], *(at for at, _ in self.runs), 0.0)

    @property
    def state(self) -> LessonState:
        if self.said[1]:
            return LessonState(self.said[1])
        if self.losses:
            return LessonState.RETIRED
        return LessonState.PROVEN if self.wins >= WINS_THAT_PROVE else LessonState.TRIAL


_with = replacing(Learned)


def told(learned: Learned, run_id: str, at: float, *, won: bool) -> Learned:
    """With what became of it in one more run."""
    runs = _newest({*learned.runs, (at, run_id)})
    return _with(learned, wins=learned.wins + won, losses=learned.losses + (not won), runs=runs)


def said(learned: Learned, state: LessonState, at: float) -> Learned:
    """A person pins or retires it, or (`trial`) leaves it to its wins and losses again."""
    word = "" if state in (LessonState.TRIAL, LessonState.PROVEN) else state.value
    return _with(learned, said=max(learned.said, (at, word)))


def together(one: Learned, other: Learned) -> Learned:
    return _with(
        one,
        level=max(one.level, other.level, key=tuple(Level).index),
        wins=one.wins + other.wins,
        losses=one.losses + other.losses,
        runs=_newest({*one.runs, *other.runs}),
        said=max(one.said, other.said),
    )


def _newest(runs: Collection[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    return tuple(sorted(runs, reverse=True)[:RUNS_KEPT])


def lesson_of(learned: Learned, version: str | None = None) -> Lesson:
    """As others see it; one for another `version` of the tool is retired."""
    state = learned.state
    if version is not None and version != place_of(learned.key).version:
        state = LessonState.RETIRED
    runs = tuple(run_id for _, run_id in learned.runs)
    of = (learned.key, learned.operations, learned.wins, learned.losses, state)
    return Lesson(*of, learned.level, runs)


_BEST_FIRST: Final = (LessonState.PINNED, LessonState.PROVEN, LessonState.TRIAL)


def offered(known: Collection[Learned]) -> tuple[Lesson, ...]:
    """Those that are not retired, the best first."""
    lessons = [lesson_of(one) for one in known if one.state is not LessonState.RETIRED]
    return tuple(sorted(lessons, key=_rank))


def _rank(lesson: Lesson) -> tuple[int, int, str]:
    place = _BEST_FIRST.index(lesson.state)
    return place, -lesson.wins, id_of(lesson.key, lesson.operations)
